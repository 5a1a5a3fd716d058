"""Scaled and inverse error functions and the normal distribution, on float64 arrays.

The inverses are roots of `erf` and `erfc` by Newton's method with Halley's correction, from a first guess good to two
digits; the difference that they drive to zero is taken where it does not cancel.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from refsim.engine.intrinsics.error_function import erf, erfc
from refsim.engine.intrinsics.fused import fma_float64

Doubles = npt.NDArray[np.float64]

_ROOT_PI = math.sqrt(math.pi)
_ROOT_TWO = math.sqrt(2.0)
_ROOT_TWO_REST = -9.667293313452913e-17  # the square root of 2 minus its float64
_ASYMPTOTIC = 10.0  # from here on 14 terms of the asymptotic series of erfcx are exact to float64


def erfcx(x: Doubles) -> Doubles:
    """``exp(x**2) * erfc(x)``."""
    size = np.abs(x)
    near = np.fmin(size, _ASYMPTOTIC)
    result = _exp_of_square(near) * erfc(near)
    far = size > _ASYMPTOTIC
    if far.any():
        large = size[far]
        result[far] = _asymptotic_series(large) / (large * _ROOT_PI)
    negative = x < 0
    if negative.any():
        result[negative] = 2.0 * _exp_of_square(size[negative]) - result[negative]
    return np.where(np.isnan(x), x, result)


def _exp_of_square(x: Doubles) -> Doubles:
    """``exp(x**2)`` with what the rounded square misses."""
    square = x * x
    rest = np.where(np.isfinite(square), fma_float64(x, x, -square), 0.0)
    return np.asarray(np.exp(square) * (1.0 + rest))


def _asymptotic_series(x: Doubles) -> Doubles:
    step = -0.5 / x / x
    total, term = np.ones_like(x), np.ones_like(x)
    for n in range(1, 15):
        term = term * (step * (2 * n - 1))
        total = total + term
    return total


def erfinv(y: Doubles) -> Doubles:
    """The inverse of `erf`."""
    size = np.abs(y)
    with_erf = size <= 0.5
    small = np.where(with_erf, size, 0.0)
    root = small * (_ROOT_PI / 2.0)
    for _ in range(4):
        root = _corrected(root, (erf(root) - small) * (_ROOT_PI / 2.0) * np.exp(root * root))
    tiny = small < 1e-8  # the series' first term; the root of a subnormal would lose digits
    root = np.where(tiny, small * (_ROOT_PI / 2.0), root)
    tail = _tail_root(np.where(with_erf, 0.5, 1.0 - size))
    result = np.copysign(np.where(with_erf, root, tail), y)
    return np.where(np.isnan(y) | (size > 1.0), np.nan, result)


def erfcinv(y: Doubles) -> Doubles:
    """The inverse of `erfc`."""
    middle = (y >= 0.5) & (y <= 1.5)
    result = erfinv(np.where(middle, 1.0 - y, 0.0))
    upper = _tail_root(np.where(middle, 0.5, np.fmin(y, 2.0 - y)))
    result = np.where(middle, result, np.where(y < 1.0, upper, -upper))
    return np.where(np.isnan(y) | (y < 0.0) | (y > 2.0), np.nan, result)


def _tail_root(tail: Doubles) -> Doubles:
    """x > 0 with ``erfc(x) == tail``, for tails up to 1/2: the root of a difference of logarithms."""
    inside = np.where((tail > 0.0) & (tail <= 0.5), tail, 0.5)
    wanted = np.log(inside)
    root = np.sqrt(np.fmax(-wanted - 0.5 * np.log(np.fmax(-wanted, 1.0)) - math.log(_ROOT_PI) + 0.3, 0.2))
    for _ in range(6):
        scaled = erfcx(root)
        slope = -2.0 / (_ROOT_PI * scaled)  # of log(erfc)
        difference = np.log(scaled) - root * root - wanted
        root = np.fmax(root - difference / slope, 0.01)
    # once more where the difference of values does not cancel: relative to the tail itself
    scaled = erfcx(root)
    value = np.exp(-root * root) * (1.0 - fma_float64(root, root, -root * root)) * scaled
    usable = inside > 1e-290
    change = np.where(usable, (value - inside) / np.where(usable, inside, 1.0), 0.0)
    root = root + change * (_ROOT_PI / 2.0) * scaled
    return np.where(tail == 0.0, np.inf, root)


def _corrected(root: Doubles, newton: Doubles) -> Doubles:
    """Halley's step for erf and erfc, whose second derivative is -2x times the first."""
    return np.asarray(root - newton / (1.0 + root * newton))


def normcdf(x: Doubles) -> Doubles:
    """``erfc(-x / sqrt(2)) / 2``; what the rounded argument misses matters in the lower tail."""
    argument = x * (-1.0 / _ROOT_TWO)
    bounded = np.clip(np.where(np.isnan(x), 0.0, x), -60.0, 60.0)
    held = np.clip(argument, -60.0, 60.0)
    held = np.where(np.isnan(held), 0.0, held)
    # -x - held * sqrt(2), exactly enough
    missing = fma_float64(-held, np.full_like(held, _ROOT_TWO), -bounded) - held * _ROOT_TWO_REST
    factor = 2.0 * (missing / _ROOT_TWO) / (_ROOT_PI * erfcx(np.fmax(held, -5.0)))
    tail = 0.5 * erfc(argument)
    return np.where(np.isnan(x), x, np.where(np.abs(x) < 60.0, tail * (1.0 - factor), tail))


def normcdfinv(p: Doubles) -> Doubles:
    """The inverse of `normcdf`."""
    return np.asarray(-_ROOT_TWO * erfcinv(2.0 * p) + 0.0)
