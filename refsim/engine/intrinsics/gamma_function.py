"""gamma and the logarithm of its magnitude, for float64 lanes: the C library's, through `math`.

Near its zeros 1 and 2, `math.lgamma` keeps only an absolute error. There the series around 2 takes over:
lgamma(2 + z) = (1 - g) z + sum over k >= 2 of (zeta(k) - 1) (-z)**k / k, with Euler's constant g.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from refsim.engine.intrinsics.conversion import Lane

Doubles = npt.NDArray[np.float64]

_TERMS = 30
_EULER = 0.5772156649015329


def by_element(function: Callable[..., float], exceptional: Callable[..., float]) -> Callable[..., Lane]:
    """A function of Python floats on every lane; `exceptional` answers where it raises."""

    def one(*values: float) -> float:
        try:
            return function(*values)
        except (ValueError, OverflowError):
            return exceptional(*values)

    def every(*values: Lane) -> Lane:
        operands = [np.asarray(value, np.float64) for value in values]
        return np.asarray(np.frompyfunc(one, len(operands), 1)(*operands)).astype(np.float64)[()]

    return every


def _gamma_exceptional(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    return math.inf if x > 0 else math.nan


gamma = by_element(math.gamma, _gamma_exceptional)
_lgamma = by_element(math.lgamma, lambda x: math.inf)


def lgamma(x: Lane) -> Lane:
    """``log(abs(gamma(x)))``."""
    values = np.asarray(x, np.float64)
    result = np.asarray(_lgamma(values))
    near_two, near_one = np.abs(values - 2.0) <= 0.5, np.abs(values - 1.0) < 0.5
    if near_two.any():
        result = np.where(near_two, _around_two(np.where(near_two, values - 2.0, 0.0)), result)
    if near_one.any():
        step = np.where(near_one, values - 1.0, 0.0)
        result = np.where(near_one, _around_two(step) - np.log1p(step), result)
    return result[()]


def _around_two(z: Doubles) -> Doubles:
    total: Doubles = np.zeros_like(z)
    for coefficient in _coefficients()[::-1]:
        total = total * z + coefficient
    return total * z


@cache
def _coefficients() -> list[float]:
    """Of z, z**2, ...; zeta from the alternating series by Borwein's weights."""
    count = 40
    weights, term = [Fraction(0)], Fraction(0)
    for i in range(count + 1):
        term += Fraction(
            count * math.factorial(count + i - 1) * 4**i, math.factorial(count - i) * math.factorial(2 * i)
        )
        weights.append(term)
    last = weights[-1]
    found: list[float] = [1.0 - _EULER]
    for k in range(2, _TERMS):
        total: Any = sum(((-1) ** i * (last - weights[i + 1])) / Fraction((i + 1) ** k) for i in range(count))
        zeta = total / (last * (1 - Fraction(1, 2 ** (k - 1))))
        found.append(float((zeta - 1) * (-1) ** k / k))
    return found
