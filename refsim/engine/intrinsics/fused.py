"""Fused multiply-add with one rounding, for float32 and float64 lanes.

float32: the product is exact in float64. Where the rounded sum lies midway between two float32, or is subnormal in
float32, it is rounded to odd instead, which leaves enough for the rounding to float32 to be right.

float64: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd"
(IEEE Trans. Computers 57, 2008), with lanes whose exponents could overflow or lose bits done in exact integers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from refsim.engine.intrinsics.conversion import Lane

Doubles = npt.NDArray[np.float64]

_SPLIT = 134217729.0  # 2**27 + 1
_BELOW_FLOAT32, _HALF_FLOAT32 = (1 << 29) - 1, 1 << 28  # bits of a double that a float32 lacks; half a unit of its last
_NORMAL_FLOAT32 = 2.0**-126
_LOW, _HIGH = 2.0**-450, 2.0**450  # operands within keep every product, split and error term normal


def fma_float32(a: Lane, b: Lane, c: Lane) -> Lane:
    """``a * b + c`` rounded once to float32."""
    product, addend = np.broadcast_arrays(
        np.atleast_1d(np.asarray(a, np.float64) * np.asarray(b, np.float64)), np.asarray(c, np.float64)
    )
    total = product + addend
    midway = (total.view(np.int64) & _BELOW_FLOAT32) == _HALF_FLOAT32  # elsewhere a second rounding does no harm
    doubtful = midway | ((np.abs(total) < _NORMAL_FLOAT32) & (total != 0))
    if doubtful.any():
        total[doubtful] = sum_rounded_to_odd(product[doubtful], addend[doubtful])
    return _shaped(total.astype(np.float32), a, b, c)


def fma_float64(a: Lane, b: Lane, c: Lane) -> Lane:
    """``a * b + c`` rounded once to float64."""
    x, y, z = np.broadcast_arrays(*(np.atleast_1d(np.asarray(value, np.float64)) for value in (a, b, c)))
    high, low = _exact_product(x, y)
    inner, inner_error = _exact_sum(z, low)
    outer, outer_error = _exact_sum(high, inner)
    result = outer + sum_rounded_to_odd(inner_error, outer_error)
    zero = (high == 0) & (z == 0)
    if zero.any():
        result = np.where(zero, high + z, result)  # keeps the sign of zero
    unsafe = ~(_moderate(x) & _moderate(y) & _moderate(z))
    if unsafe.any():
        result[unsafe] = [_fma_exactly(*each) for each in zip(x[unsafe], y[unsafe], z[unsafe], strict=True)]
    return _shaped(result, a, b, c)


def _shaped(result: npt.NDArray[Any], *operands: Lane) -> Lane:
    """A scalar if every operand is one."""
    return result if any(isinstance(each, np.ndarray) for each in operands) else result[0]


def _moderate(x: Doubles) -> npt.NDArray[np.bool_]:
    size = np.abs(x)
    moderate: npt.NDArray[np.bool_] = (size == 0) | ((size > _LOW) & (size < _HIGH))
    return moderate


def _exact_sum(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """Rounded sum and its error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _exact_product(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """Rounded product and its error (Dekker)."""
    product = a * b
    scaled_a, scaled_b = _SPLIT * a, _SPLIT * b
    high_a, high_b = scaled_a - (scaled_a - a), scaled_b - (scaled_b - b)
    low_a, low_b = a - high_a, b - high_b
    return product, low_a * low_b - (((product - high_a * high_b) - low_a * high_b) - high_a * low_b)


def sum_rounded_to_odd(a: Doubles, b: Doubles) -> Doubles:
    """``a + b``, and where it is inexact the neighbour whose last bit is 1."""
    total, error = _exact_sum(a, b)
    inexact = (error != 0) & np.isfinite(error)
    if not inexact.any():
        return total
    bits = total.view(np.int64)
    away = np.where((error > 0) == (total > 0), 1, -1)  # towards the exact sum, in units of the last place
    return np.where(inexact & (bits & 1 == 0), bits + away, bits).view(np.float64)


def _fma_exactly(a: float, b: float, c: float) -> float:
    a, b, c = float(a), float(b), float(c)
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        with np.errstate(all="ignore"):
            product = np.float64(a) * np.float64(b) if math.isinf(a) or math.isinf(b) else np.float64(a * 0.0 + b * 0.0)
            return float(product + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        # an exact cancellation is +0; a zero product keeps the sign rule of addition
        return math.copysign(0.0, a) * math.copysign(1.0, b) + c if a == 0 or b == 0 else 0.0
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
