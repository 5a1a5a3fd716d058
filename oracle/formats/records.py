"""The table of number formats: one record each, with its range, its special values and its overflow rule.

Sources: IEEE 754-2019 (float64, float32, float16), OCP 8-bit Floating Point Specification 1.0 (e4m3fn, e5m2), OCP
Microscaling Formats 1.0 (e8m0, e2m3, e3m2, e2m1), Noune et al. 2022, "8-bit numerical formats for deep neural
networks" (fnuz).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike


@dataclass(frozen=True)
class Format:
    """A number format of at most 64 bits.

    A floating-point code is, from the top, an optional sign bit, `exponent_bits` and `mantissa_bits`; its value is
    ``(1 + mantissa / 2**mantissa_bits) * 2**(exponent - bias)``, and ``mantissa * min_subnormal`` where the exponent
    field is 0 (float8_e8m0fnu has neither a mantissa, subnormals nor a zero). An integer code is two's complement.

    Attributes
    ----------
    name : str
        The name that ml_dtypes or NumPy gives it.
    exponent_bits, mantissa_bits, bias : int
        Layout; integers have ``exponent_bits == bias == 0`` and their magnitude bits as mantissa.
    max, lowest : float
        Largest and least finite value (``lowest == -max`` but for integers and the unsigned float8_e8m0fnu).
    min_normal, min_subnormal : float
        Smallest positive normal number, and the smallest positive number (1 for integers).
    signed : bool
        Whether negative values exist.
    signed_zero : bool
        Whether -0 exists. Where it does not, -0 and negative values that round to zero become +0.
    has_infinity : bool
        Whether +inf and -inf exist.
    nan : {"ieee", "all_ones", "negative_zero", "none"}
        Which codes are NaN: largest exponent field with a nonzero mantissa; exponent and mantissa all ones; the code
        that would be -0; or no code at all, in which case storing a NaN is an error.
    overflow : {"infinity", "saturate"}
        What happens beyond `max` unless the caller says otherwise. Formats with infinities overflow to them, all
        others go to the nearest finite value, as the conversion instructions of GPUs do (``cvt.rn.satfinite``, which
        does so for float8_e5m2 too: pass ``saturate=True`` to model that).
    dtype : numpy.dtype
        The array type that holds it (4-bit and 6-bit formats take a byte per element there).
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    max: float
    lowest: float
    min_normal: float
    min_subnormal: float
    signed: bool
    signed_zero: bool
    has_infinity: bool
    nan: Literal["ieee", "all_ones", "negative_zero", "none"]
    overflow: Literal["infinity", "saturate"]
    dtype: np.dtype[Any]

    @property
    def is_integer(self) -> bool:
        """Whether this is an integer format."""
        return self.exponent_bits == 0

    @property
    def has_nan(self) -> bool:
        """Whether a NaN can be stored."""
        return self.nan != "none"

    @property
    def bits(self) -> int:
        """Number of bits of a code."""
        return self.signed + self.exponent_bits + self.mantissa_bits

    @property
    def precision(self) -> int:
        """Number of significant bits, the implied one included."""
        return self.mantissa_bits if self.is_integer else self.mantissa_bits + 1

    @property
    def unit_roundoff(self) -> float:
        """Largest relative error of rounding to nearest in the normal range, ``2**-precision``.

        Raises
        ------
        ValueError
            For an integer format, whose rounding error is absolute (half of a spacing of 1).
        """
        if self.is_integer:
            raise ValueError(f"{self.name} has no relative rounding error: its spacing is 1 everywhere; use spacing()")
        return 2.0**-self.precision

    @cached_property
    def max_binade(self) -> float:
        """The power of two at or below `max`."""
        return 2.0 ** (math.frexp(self.max)[1] - 1)


def _floating(
    name: str,
    dtype: DTypeLike,
    exponent_bits: int,
    mantissa_bits: int,
    *,
    nan: Literal["ieee", "all_ones", "negative_zero", "none"],
    bias: int | None = None,
) -> Format:
    """The record of a signed floating-point format with subnormals."""
    bias = 2 ** (exponent_bits - 1) - 1 if bias is None else bias
    # The largest finite code is the last one that is neither infinity nor NaN.
    field, mantissa = 2**exponent_bits - 1, 2**mantissa_bits - 1
    if nan == "ieee":
        field -= 1
    elif nan == "all_ones":
        mantissa -= 1
    largest = math.ldexp(2**mantissa_bits + mantissa, field - bias - mantissa_bits)
    has_infinity = nan == "ieee"
    return Format(
        name=name,
        exponent_bits=exponent_bits,
        mantissa_bits=mantissa_bits,
        bias=bias,
        max=largest,
        lowest=-largest,
        min_normal=math.ldexp(1.0, 1 - bias),
        min_subnormal=math.ldexp(1.0, 1 - bias - mantissa_bits),
        signed=True,
        signed_zero=nan != "negative_zero",
        has_infinity=has_infinity,
        nan=nan,
        overflow="infinity" if has_infinity else "saturate",
        dtype=np.dtype(dtype),
    )


def _integer(name: str, dtype: DTypeLike, bits: int, signed: bool = True) -> Format:
    """The record of an integer format, two's complement where it is signed."""
    return Format(
        name=name,
        exponent_bits=0,
        mantissa_bits=bits - signed,
        bias=0,
        max=2.0 ** (bits - signed) - 1,
        lowest=-(2.0 ** (bits - 1)) if signed else 0.0,
        min_normal=1.0,
        min_subnormal=1.0,
        signed=signed,
        signed_zero=False,
        has_infinity=False,
        nan="none",
        overflow="saturate",
        dtype=np.dtype(dtype),
    )


_E8M0 = Format(
    name="float8_e8m0fnu",
    exponent_bits=8,
    mantissa_bits=0,
    bias=127,
    max=2.0**127,
    lowest=2.0**-127,
    min_normal=2.0**-127,
    min_subnormal=2.0**-127,
    signed=False,
    signed_zero=False,
    has_infinity=False,
    nan="all_ones",
    overflow="saturate",
    dtype=np.dtype(ml_dtypes.float8_e8m0fnu),
)

FORMATS: dict[str, Format] = {
    format.name: format
    for format in (
        _floating("float64", np.float64, 11, 52, nan="ieee"),
        _floating("float32", np.float32, 8, 23, nan="ieee"),
        _floating("float16", np.float16, 5, 10, nan="ieee"),
        _floating("bfloat16", ml_dtypes.bfloat16, 8, 7, nan="ieee"),
        _floating("float8_e4m3fn", ml_dtypes.float8_e4m3fn, 4, 3, nan="all_ones"),
        _floating("float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz, 4, 3, nan="negative_zero", bias=8),
        _floating("float8_e5m2", ml_dtypes.float8_e5m2, 5, 2, nan="ieee"),
        _floating("float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz, 5, 2, nan="negative_zero", bias=16),
        _E8M0,
        _floating("float6_e2m3fn", ml_dtypes.float6_e2m3fn, 2, 3, nan="none"),
        _floating("float6_e3m2fn", ml_dtypes.float6_e3m2fn, 3, 2, nan="none"),
        _floating("float4_e2m1fn", ml_dtypes.float4_e2m1fn, 2, 1, nan="none"),
        _integer("int8", np.int8, 8),
        _integer("int4", ml_dtypes.int4, 4),
        _integer("uint4", ml_dtypes.uint4, 4, signed=False),
    )
}
"""Every format by name."""

COUNTING: dict[str, Format] = {
    format.name: format for format in (_integer("int32", np.int32, 32), _integer("uint8", np.uint8, 8, signed=False))
}
"""Integer types that hold indices, counts and packed codes, by name; no operator computes in them."""

_BY_DTYPE = {format.dtype: format for format in (*FORMATS.values(), *COUNTING.values())}


def format_of(name_or_dtype: str | DTypeLike | Format) -> Format:
    """The format of a name, a dtype, a scalar type, or itself.

    Raises
    ------
    ValueError
        If there is no such format; the message lists those there are.
    """
    if isinstance(name_or_dtype, Format):
        return name_or_dtype
    if isinstance(name_or_dtype, str):
        found = FORMATS.get(name_or_dtype) or COUNTING.get(name_or_dtype)
    elif name_or_dtype is None:  # NumPy would read it as float64
        found = None
    else:
        try:
            found = _BY_DTYPE.get(np.dtype(name_or_dtype).newbyteorder("="))
        except TypeError:
            found = None
    if found is None:
        raise ValueError(f"unknown number format {name_or_dtype!r}; known formats: {', '.join(FORMATS)}")
    return found
