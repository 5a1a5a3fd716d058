"""Rounding float64 values to a format: once, in any direction, with the format's overflow and zero rules."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from oracle.formats.records import FORMATS, Format, format_of

Floats = NDArray[np.float64]
Rounding = Literal["nearest_even", "nearest_away", "toward_zero", "up", "down"]

ROUNDINGS: tuple[Rounding, ...] = ("nearest_even", "nearest_away", "toward_zero", "up", "down")
"""Names of the rounding directions; "nearest_away" takes ties away from zero, "up" goes towards +inf."""

_EXPONENT_FIELD = np.int64(0x7FF << 52)
_EXACT_DTYPES = frozenset(format.dtype for format in FORMATS.values())
_CHUNK = 1 << 14  # elements per pass, so that the temporaries stay in the cache


def round_to(
    x: ArrayLike,
    format: str | DTypeLike | Format,
    rounding: Rounding = "nearest_even",
    saturate: bool | None = None,
) -> Floats:
    """Round values to a format; the result stays in float64, where every format is exact.

    Each value is rounded once, with an unbounded exponent above and the subnormal spacing below, and then checked
    against the range. Nearest-even means the even significand, so float8_e8m0fnu (significand 1) takes ties upwards.

    Parameters
    ----------
    x : array_like of real numbers
        Any shape. Integers must be exact in float64.
    format : str, dtype or Format
        Where the values are to be stored.
    rounding : str
        One of `ROUNDINGS`.
    saturate : bool, optional
        What becomes of values beyond the range, infinities included. True: the nearest finite value. False: infinity,
        or NaN where there is none; as in IEEE 754, a finite value does not overflow in a direction that points back
        to the range. Default: `Format.overflow`. For float8_e8m0fnu the range starts at 2**-127, so zero and
        negative values are beyond it; positive values below 2**-127 are beyond it only when rounding down.

    Returns
    -------
    numpy.ndarray of float64, shape of `x`
        NaN stays NaN.

    Raises
    ------
    ValueError
        For an unknown format or rounding; for a NaN where the format has none; for ``saturate=False`` where the format
        has neither infinity nor NaN.
    TypeError
        If `x` isn't real or is not exact in float64.
    """
    target = format_of(format)
    check_rounding(rounding)
    values = exact_float64(x)
    if saturate is None:
        saturate = target.overflow == "saturate"
    elif not saturate and not target.has_infinity and not target.has_nan:
        raise ValueError(f"{target.name} has neither infinity nor NaN to overflow to; leave saturate out or pass True")
    if not target.has_nan:
        refuse_nan(values, target)
    with np.errstate(all="ignore"):  # overflow and underflow are the purpose here
        if target.is_integer:
            return _round_integer(values, target, rounding)
        if target.name == "float64":
            return np.asarray(np.clip(values, target.lowest, target.max)) if saturate else values.copy()
        if target.name == "float32" and rounding == "nearest_even" and not saturate:
            return values.astype(np.float32).astype(np.float64)
        flat = np.ascontiguousarray(values).reshape(-1)
        result = np.empty_like(flat)
        for start in range(0, flat.size, _CHUNK):
            chunk = slice(start, start + _CHUNK)
            _round_floating(flat[chunk], result[chunk], target, rounding, saturate)
    return result.reshape(values.shape)


def spacing(x: ArrayLike, format: str | DTypeLike | Format) -> Floats:
    """Distance between neighbouring values of a format in the binade of ``|x|``.

    That is the distance from a representable `x` to the next larger magnitude; ``min_subnormal`` at the bottom, the
    spacing of the last binade from there up to infinity, 1 for integers, NaN for NaN.

    Parameters
    ----------
    x : array_like of real numbers
        Any shape; need not be representable.
    format : str, dtype or Format
        The format.

    Returns
    -------
    numpy.ndarray of float64, shape of `x`
    """
    target = format_of(format)
    values = exact_float64(x)
    step = 1.0 if target.is_integer else _binade(values, target) * 2.0**-target.mantissa_bits
    return np.where(np.isnan(values), np.nan, step)


def next_up(x: ArrayLike, format: str | DTypeLike | Format) -> Floats:
    """The least value of a format above each `x`; `Format.overflow` decides above `Format.max`."""
    return round_to(np.nextafter(exact_float64(x), np.inf), format, "up")


def next_down(x: ArrayLike, format: str | DTypeLike | Format) -> Floats:
    """The greatest value of a format below each `x`; `Format.overflow` decides below `Format.lowest`."""
    return round_to(np.nextafter(exact_float64(x), -np.inf), format, "down")


def check_rounding(rounding: str) -> None:
    """Raise ValueError unless `rounding` is one of `ROUNDINGS`."""
    if rounding not in ROUNDINGS:
        raise ValueError(f"unknown rounding {rounding!r}; expected one of {', '.join(ROUNDINGS)}")


def refuse_nan(values: Floats, format: Format) -> None:
    """Raise ValueError if there is a NaN among values for a format that has none."""
    where = np.isnan(values)
    if where.any():
        index = tuple(int(i) for i in np.argwhere(where)[0])
        raise ValueError(f"NaN at index {index}: {format.name} has no NaN; replace it before the cast")


def exact_float64(x: ArrayLike) -> Floats:
    """`x` as a float64 array; TypeError where that would not be exact."""
    array: NDArray[Any] = np.asarray(x)
    if array.dtype == np.float64:
        return array
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        if array.size and max(abs(int(array.max())), abs(int(array.min()))) > 2**53:
            raise TypeError(f"{array.dtype} values beyond 2**53 are not exact in float64; cast them to float64 first")
    elif array.dtype.kind not in "biu" and array.dtype.newbyteorder("=") not in _EXACT_DTYPES:
        raise TypeError(f"expected real numbers that float64 holds exactly, got dtype {array.dtype}")
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
        return array.astype(np.float64)


def _binade(values: Floats, format: Format) -> Floats:
    """The power of two at or below each magnitude, kept within those of a floating-point format."""
    binade: Floats = (np.ascontiguousarray(values).view(np.int64) & _EXPONENT_FIELD).view(np.float64)
    np.maximum(binade, format.min_normal, out=binade)
    np.minimum(binade, format.max_binade, out=binade)  # infinity and NaN have the largest exponent
    return binade.reshape(values.shape)


def _round_integer(values: Floats, format: Format, rounding: Rounding) -> Floats:
    """Round to an integer and saturate. Adding 0.0 at the end turns -0 into +0."""
    whole: Floats
    if rounding == "nearest_even":
        whole = np.rint(values)
    elif rounding == "up":
        whole = np.ceil(values)
    elif rounding == "down":
        whole = np.floor(values)
    else:
        whole = np.trunc(values)
        if rounding == "nearest_away":
            bounded = np.clip(values, format.lowest, format.max)  # inf - inf would be NaN
            whole = np.trunc(bounded)
            whole = whole + np.copysign(np.abs(bounded - whole) >= 0.5, bounded)
    return np.asarray(np.clip(whole, format.lowest, format.max) + 0.0)


def _round_floating(values: Floats, out: Floats, format: Format, rounding: Rounding, saturate: bool) -> None:
    """Round a one-dimensional array into `out`.

    Adding 2**52 spacings to a magnitude puts it where float64's own spacing is the format's, so that the hardware
    rounds it there, once, to nearest even; the subtraction is exact. The other directions correct that result.
    Beyond the last binade the result is only known to overflow.
    """
    step = _binade(values, format)
    step *= 2.0 ** (52 - format.mantissa_bits)
    magnitude = np.abs(values)
    rounded = np.add(magnitude, step, out=out)
    rounded -= step
    if rounding != "nearest_even":
        step *= 2.0**-52
        _redirect(rounded, magnitude, step, values, rounding)
    if not format.signed:
        _fit_unsigned(rounded, values, format, rounding, saturate)
        return
    beyond = rounded > format.max
    if beyond.any():
        rounded[beyond] = format.max if saturate else _overflow(values[beyond], format, rounding)
    np.copysign(rounded, values, out=out)
    if not format.signed_zero:
        out += 0.0  # -0 becomes +0


def _redirect(rounded: Floats, magnitude: Floats, step: Floats, values: Floats, rounding: Rounding) -> None:
    """Change magnitudes rounded to nearest even into those of another direction, in place."""
    if rounding == "nearest_away":
        rounded += step * (magnitude - rounded == 0.5 * step)
        return
    rounded -= step * (rounded > magnitude)
    if rounding == "up":
        rounded += step * ((rounded < magnitude) & (values > 0))
    elif rounding == "down":
        rounded += step * ((rounded < magnitude) & (values < 0))


def _overflow(values: Floats, format: Format, rounding: Rounding) -> Floats:
    """Magnitudes that values beyond the range become without saturation."""
    outside = np.inf if format.has_infinity else np.nan
    if rounding in ("nearest_even", "nearest_away"):
        return np.full_like(values, outside)
    if rounding == "toward_zero":
        back = np.isfinite(values)
    else:
        back = np.isfinite(values) & ((values < 0) if rounding == "up" else (values > 0))
    return np.where(back, format.max, outside)


def _fit_unsigned(rounded: Floats, values: Floats, format: Format, rounding: Rounding, saturate: bool) -> None:
    """Fit magnitudes into the range of a format without sign and without zero, in place."""
    beyond = rounded > format.max
    rounded[beyond] = format.max if saturate else _overflow(values[beyond], format, rounding)
    rounded[(values > 0) & (rounded < format.lowest) & (rounding not in ("toward_zero", "down"))] = format.lowest
    below = (values < 0) | (rounded < format.lowest)
    rounded[below] = format.lowest if saturate else np.nan
