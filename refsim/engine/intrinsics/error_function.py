"""erf and erfc for float64 lanes: a Taylor polynomial around the nearest of many tabulated points.

Around x, exp(-(x + h)**2) = exp(-x**2) * sum(a[n] * h**n) with a[0] = 1, a[n+1] = -2 * (x * a[n] + a[n-1]) / (n + 1),
and erf(x + h) = erf(x) + 2/sqrt(pi) * exp(-x**2) * sum(a[n] * h**(n+1) / (n + 1)). The points are 1/128 apart; the
values at them come from `math`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

from refsim.engine.intrinsics.conversion import Lane

Doubles = npt.NDArray[np.float64]

_STEPS = 128  # points per unit


def erf(x: Lane) -> Lane:
    """Error function; its error bound is that of `INTRINSICS`."""
    values = np.asarray(x, np.float64)
    size = _evaluate(values, _polynomials(math.erf, 1.0, 6.0, 9), 6.0)  # erf is 1 from 6 on
    return np.where(np.isnan(values), values, np.copysign(size, values))[()]


def erfc(x: Lane) -> Lane:
    """Complementary error function; its error bound, in `INTRINSICS`, ends where the result is subnormal."""
    values = np.asarray(x, np.float64)
    tail = _evaluate(values, _polynomials(math.erfc, -1.0, 27.25, 13), 27.25)  # erfc is 0 from 27.25 on
    return np.where(np.isnan(values), values, np.where(values < 0, 2.0 - tail, tail))[()]


def _evaluate(values: Doubles, rows: Doubles, end: float) -> Doubles:
    """The polynomial of the point nearest to |x|, by Horner's rule; NaN is taken for `end`."""
    size = np.fmin(np.abs(np.atleast_1d(values)), end)
    point = np.rint(size * _STEPS)
    step = size - point / _STEPS
    index = point.astype(np.int64)
    total: Doubles = rows[-1].take(index)
    for row in rows[-2::-1]:
        total *= step
        total += row.take(index)
    shaped: Doubles = total.reshape(values.shape)
    return shaped


@cache
def _polynomials(function: Callable[[float], float], sign: float, end: float, degree: int) -> Doubles:
    """Coefficients: row n holds those of h**n at every point; `sign` is that of the slope."""
    x = np.arange(int(end * _STEPS) + 1) / _STEPS
    before, term = np.zeros_like(x), np.array([math.exp(-each * each) for each in x.tolist()])
    rows = [np.array([function(each) for each in x.tolist()])]
    for n in range(degree):
        rows.append(sign * 2.0 / math.sqrt(math.pi) * term / (n + 1))
        before, term = term, -2.0 * (x * term + before) / (n + 1)
    return np.array(rows)
