"""Mean and variance: `moments`, in two passes, or in Welford's where that is granted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oracle.error.array import ErrorBounded
from oracle.error.fields import ROOT_THIRD, Array, plus, plus_zero, root_sum
from oracle.error.settle import make, settle

Axes = int | tuple[int, ...]


def moments(x: Any, axis: Axes = -1) -> tuple[Any, Any]:
    """Mean and variance over an axis, which stays with length 1: ``mean(x)`` and ``mean((x - mean(x))²)``.

    Parameters
    ----------
    x
        Array with at least one element along `axis`.
    axis
        One axis or several.

    Notes
    -----
    The variance is stationary in the mean: an error δ of the mean changes it by δ² only, however large the mean is
    beside the deviations. A kernel that takes mean(x²) - mean(x)² has no such excuse. Where `Numerics.welford` is
    granted the mean may be updated term by term, and then neither is exact and the variance feels δ in first order.
    """
    mean = np.mean(x, axis=axis, keepdims=True)
    if not isinstance(x, ErrorBounded):
        return mean, np.mean(np.square(x - mean), axis=axis, keepdims=True)
    numerics = x.numerics
    welford = numerics.welford and _terms(x, axis) > 1
    if welford:
        mean = _updated_mean(settle(x), settle(mean), axis)
    off = settle(mean)
    centre = ErrorBounded(mean.value, numerics)
    centre.is_pivot, centre.dropped = True, off.bound
    deviation: Any = x - centre
    variance = np.mean(np.square(deviation), axis=axis, keepdims=True)
    if off.bound is None:
        return mean, variance
    with np.errstate(all="ignore"):
        u, delta = numerics.unit_roundoff, plus_zero(off.bound)
        likely = plus_zero(root_sum(off.sigma, off.common))
        distance = np.abs(deviation.value)
        size = np.mean(distance, axis=axis, keepdims=True)
        own = np.mean(plus_zero(settle(x).bound) + np.zeros(x.shape), axis=axis, keepdims=True)
        # the deviations of this run add up to 0 but for float64's rounding
        rest = 2.0**-51 * np.abs(mean.value) + own
        extra = delta * delta * (1.0 + 4.0 * u) + 4.0 * u * delta * size + 2.0 * delta * rest
        usual = likely * likely + 2.0 * likely * rest
        if welford:
            reach = size + np.max(distance, axis=axis, keepdims=True)
            repeated = (_terms(x, axis) + 3.0) * u * (variance.value + delta * reach)
            extra, usual = extra + 2.0 * delta * reach + repeated, usual + 2.0 * likely * reach + repeated * ROOT_THIRD
    result = make(
        variance.value,
        numerics,
        plus(variance.bound, extra),
        variance.sigma,
        plus(variance.common, usual),
        variance.pending,
    )
    return mean, result


def _terms(x: ErrorBounded, axis: Axes) -> int:
    return math.prod(x.shape[one] for one in (axis if isinstance(axis, tuple) else (axis,)))


def _updated_mean(x: ErrorBounded, mean: ErrorBounded, axis: Axes) -> ErrorBounded:
    """mean += (term - mean) / k: each step rounds the mean, and the step itself three times."""
    terms, u = _terms(x, axis), x.numerics.unit_roundoff
    size: Array = np.mean(np.abs(x.value) + plus_zero(x.bound), axis=axis, keepdims=True)
    with np.errstate(all="ignore"):
        extra = u * size * (terms + 3.0 * (2.0 + math.log(terms)))
        extra = np.where(np.isfinite(mean.value), extra, 0.0)
    return make(
        mean.value, x.numerics, plus(mean.bound, extra), mean.sigma, plus(mean.common, extra * ROOT_THIRD), mean.pending
    )
