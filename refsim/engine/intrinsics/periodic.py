"""sin and cos of multiples of pi, reciprocal roots, and whole numbers of floats, on float64 arrays."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from refsim.engine.intrinsics.fused import fma_float64

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]

_PI, _PI_REST = math.pi, 1.2246467991473532e-16


def sinpi(x: Doubles) -> Doubles:
    """``sin(pi * x)``; a zero has the sign of x."""
    quadrant, angle, rest = _reduced(x)
    result = _turned(quadrant, angle, rest)
    return np.where(result == 0, np.copysign(0.0, x), result)


def cospi(x: Doubles) -> Doubles:
    """``cos(pi * x)``; a zero is positive."""
    quadrant, angle, rest = _reduced(x)
    return np.asarray(_turned(quadrant + 1, angle, rest) + 0.0)


def _reduced(x: Doubles) -> tuple[npt.NDArray[np.int64], Doubles, Doubles]:
    """Quadrant, and pi times the rest as a number and what it misses."""
    turns = np.fmod(x, 2.0)
    quadrant = np.rint(turns * 2.0)
    part = turns - quadrant * 0.5
    angle = part * _PI
    rest = np.where(np.isfinite(part), fma_float64(part, np.full_like(part, _PI), -angle) + part * _PI_REST, 0.0)
    return np.where(np.isfinite(quadrant), quadrant, 0.0).astype(np.int64), angle, rest


def _turned(quadrant: npt.NDArray[np.int64], angle: Doubles, rest: Doubles) -> Doubles:
    sine, cosine = np.sin(angle), np.cos(angle)
    value = np.where(quadrant & 1, cosine - sine * rest, sine + cosine * rest)
    return np.where(quadrant & 2, -value, value)


def rsqrt(x: Doubles) -> Doubles:
    """``1 / sqrt(x)``, corrected by what root and quotient miss."""
    usable = (x > 0) & np.isfinite(x)
    mantissa, exponent = np.frexp(np.where(usable, x, 1.0))
    odd = exponent & 1
    mantissa, half = np.ldexp(mantissa, odd), (exponent - odd) // 2
    root = np.sqrt(mantissa)
    nearest = 1.0 / root
    missing = fma_float64(-root, root, mantissa)
    change = nearest * fma_float64(-nearest, root, np.ones_like(root)) - nearest**3 * (missing / 2.0)
    return np.where(usable, np.ldexp(nearest + change, -half), 1.0 / np.sqrt(x))


def rcbrt(x: Doubles) -> Doubles:
    """``1 / cbrt(x)``, with one step of Newton's method on the rounded value."""
    nearest = 1.0 / np.cbrt(x)
    usable = np.isfinite(x) & (x != 0)
    safe, y = np.where(usable, x, 1.0), np.where(usable, nearest, 1.0)
    product, square = safe * y, y * y
    product_rest, square_rest = fma_float64(safe, y, -product), fma_float64(y, y, -square)
    missing = fma_float64(-product, square, np.ones_like(y)) - (product * square_rest + product_rest * square)
    return np.where(usable, nearest + y * missing / 3.0, nearest)


def round_away(x: Array) -> Array:
    """To the nearest integer, ties away from zero."""
    whole = np.trunc(x)
    up = np.abs(x - whole) >= 0.5
    return np.asarray(np.where(np.isinf(x), x, np.copysign(np.abs(whole) + up.astype(x.dtype), x)))


def positive_difference(x: Array, y: Array) -> Array:
    """``fdim``: x - y where that is positive, else +0."""
    return np.asarray(np.where(x <= y, x.dtype.type(0), x - y))


def saturate(x: Array) -> Array:
    """Clamped to [0, 1]; a NaN gives +0."""
    return np.asarray(np.fmin(np.fmax(x, x.dtype.type(0)) + x.dtype.type(0), x.dtype.type(1)))


def unbiased_exponent(x: Array) -> Array:
    """``logb``: the exponent as a float."""
    _, exponent = np.frexp(x)
    result = (exponent - 1).astype(x.dtype)
    return np.asarray(np.where(x == 0, -np.inf, np.where(np.isfinite(x), result, np.abs(x))).astype(x.dtype))


def integer_exponent(x: Array) -> Array:
    """``ilogb``: the lowest int32 for 0 and NaN, the highest for an infinity."""
    _, exponent = np.frexp(x)
    special = np.where(np.isinf(x), 2**31 - 1, -(2**31))
    return np.asarray(np.where((x == 0) | ~np.isfinite(x), special, exponent.astype(np.int64) - 1))


def remainder_and_quotient(x: Array, y: Array) -> tuple[Array, Array]:
    """``remquo``: IEEE remainder, and the low three bits of the rounded quotient with its sign."""
    rest, quotient = np.full(x.shape, np.nan, x.dtype), np.zeros(x.shape, np.int64)
    for position, (a, b) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
            continue
        rest[position] = math.remainder(a, b)
        if not math.isinf(b):
            whole = round(Fraction(a) / Fraction(b))
            quotient[position] = math.copysign(abs(whole) & 7, whole)
    return rest, quotient
