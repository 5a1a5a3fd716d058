"""Between values and codes: the bit patterns of every format of at most 16 bits, and arrays of the format's dtype."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from oracle.formats.records import Format, format_of
from oracle.formats.rounding import Floats, Rounding, round_to


def cast(
    x: ArrayLike,
    format: str | DTypeLike | Format,
    rounding: Rounding = "nearest_even",
    saturate: bool | None = None,
) -> NDArray[Any]:
    """Store values in a format: `round_to`, as an array of `Format.dtype`.

    Parameters and errors are those of `round_to`; a NaN is stored as the canonical one (see `encode`).
    """
    target = format_of(format)
    if target.bits > 16 or target.is_integer:
        return round_to(x, target, rounding, saturate).astype(target.dtype)
    return encode(x, target, rounding, saturate).view(target.dtype)


def encode(
    x: ArrayLike,
    format: str | DTypeLike | Format,
    rounding: Rounding = "nearest_even",
    saturate: bool | None = None,
) -> NDArray[np.uint8] | NDArray[np.uint16]:
    """Codes of values in a format of at most 16 bits, rounded by `round_to`.

    Parameters and errors are those of `round_to`.

    Returns
    -------
    numpy.ndarray of uint8 (formats of at most 8 bits) or uint16, shape of `x`
        Below ``2**bits``. A NaN gets one code whatever its sign and payload: 0x7E00 in float16, 0x7FC0 in bfloat16,
        0x7E in float8_e5m2, 0x7F in float8_e4m3fn, 0x80 in the fnuz formats, 0xFF in float8_e8m0fnu.

    Raises
    ------
    ValueError
        Also for a format of more than 16 bits.
    """
    target = _short(format)
    values = round_to(x, target, rounding, saturate)
    flat = values.reshape(-1)
    codes = flat.astype(np.int64) if target.is_integer else _floating_codes(flat, target)
    codes &= 2**target.bits - 1
    codes = codes.reshape(values.shape)
    return codes.astype(np.uint8) if target.bits <= 8 else codes.astype(np.uint16)


def decode(codes: ArrayLike, format: str | DTypeLike | Format) -> Floats:
    """Values of codes in a format of at most 16 bits.

    Parameters
    ----------
    codes : array_like of integers
        Any shape; ``0 <= code < 2**bits``.
    format : str, dtype or Format
        The format.

    Returns
    -------
    numpy.ndarray of float64, shape of `codes`

    Raises
    ------
    ValueError
        For a code outside the format, or a format of more than 16 bits.
    TypeError
        If the codes are not integers.
    """
    target = _short(format)
    array = np.asarray(codes)
    if array.dtype.kind not in "iu":
        raise TypeError(f"expected integer codes, got dtype {array.dtype}; view the array as uint8 or uint16")
    outside = (array < 0) | (array >= 2**target.bits)
    if outside.any():
        last = 2**target.bits - 1
        raise ValueError(f"code {array[outside].flat[0]} is outside {target.name}, whose codes are 0 to {last}")
    return np.asarray(_values(target)[array])


def _short(format: str | DTypeLike | Format) -> Format:
    """The format, refused if it has more than 16 bits."""
    target = format_of(format)
    if target.bits > 16:
        raise ValueError(f"{target.name} codes have more than 16 bits; view the result of cast() as unsigned integers")
    return target


def _nan_code(format: Format) -> int:
    """The canonical NaN: quiet and positive."""
    if format.nan == "negative_zero":
        return 1 << (format.bits - 1)
    fields: int = (1 << (format.exponent_bits + format.mantissa_bits)) - 1
    if format.nan == "ieee":  # only the top mantissa bit
        fields ^= (1 << (format.mantissa_bits - 1)) - 1
    return fields


def _floating_codes(values: Floats, format: Format) -> NDArray[np.int64]:
    """Codes of representable values, a one-dimensional array."""
    magnitude = np.abs(values)
    small = magnitude < format.min_normal
    special = np.isnan(values)
    # A normal number has float64's fields, with fewer mantissa bits and another bias. So has an infinity, once it
    # stands just beyond the last binade.
    np.fmin(magnitude, 2.0 * format.max_binade, out=magnitude)
    codes = magnitude.view(np.int64) >> (52 - format.mantissa_bits)
    codes -= (1023 - format.bias) << format.mantissa_bits
    if small.any():
        codes[small] = (magnitude[small] / format.min_subnormal).astype(np.int64)
    if format.signed:
        codes |= np.signbit(values).astype(np.int64) << (format.bits - 1)
    if special.any():
        codes[special] = _nan_code(format)
    return codes


@cache
def _values(format: Format) -> Floats:
    """The value of every code, in order."""
    codes = np.arange(2**format.bits)
    values: Floats
    if format.is_integer:
        values = np.where(codes > format.max, codes - 2.0**format.bits, codes)
        values.setflags(write=False)
        return values
    last = (1 << format.exponent_bits) - 1
    mantissa = codes & ((1 << format.mantissa_bits) - 1)
    field = (codes >> format.mantissa_bits) & last
    if format.signed:
        significand = mantissa + np.where(field == 0, 0.0, 1 << format.mantissa_bits)
        values = np.ldexp(significand, np.maximum(field, 1) - format.bias - format.mantissa_bits)
        values[codes >> (format.bits - 1) == 1] *= -1.0
    else:
        values = np.ldexp(np.ones(codes.shape), field - format.bias)
    if format.nan == "ieee":
        values[(field == last) & (mantissa != 0)] = np.nan
        values[(field == last) & (mantissa == 0)] *= np.inf
    elif format.nan == "all_ones":
        values[(field == last) & (mantissa == (1 << format.mantissa_bits) - 1)] = np.nan
    elif format.nan == "negative_zero":
        values[_nan_code(format)] = np.nan
    values.setflags(write=False)
    return values
