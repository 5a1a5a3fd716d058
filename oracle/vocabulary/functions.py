"""Functions that NumPy lacks or that overflow on the way: `rsqrt`, `sigmoid`, `softplus` and `erf`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from oracle.error.array import ErrorBounded
from oracle.error.fields import ROOT_THIRD, Array, plus, root_sum
from oracle.error.functions import add_absolute, exp_log_constant, monotone, reciprocal_root
from oracle.error.settle import make


def rsqrt(x: Any) -> Any:
    """1/√x, by the hardware's rsqrt, or a root and a reciprocal, or (in a `chain`) a division by the root."""
    if not isinstance(x, ErrorBounded):
        return 1.0 / np.sqrt(x)
    with np.errstate(all="ignore"):
        return reciprocal_root(x)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)); exp may overflow on the way without harm to the result."""
    if not isinstance(x, ErrorBounded):
        return _sigmoid(x)
    numerics = x.numerics
    with np.errstate(all="ignore"):
        result = monotone(x, _sigmoid, "exp", lambda z: _sigmoid(z) * (1.0 - _sigmoid(z)), zero=math.nan)
        size = np.where(np.isfinite(x.value), np.abs(x.value), 0.0)
        u = numerics.unit_roundoff
        steps = 1.0 + exp_log_constant(numerics) * size + 2.0 * numerics.exp_argument_ulps * size
        steps = steps * u + max(2.0 * u, numerics.relative_error("division"))
        extra = result.value * steps + np.where(
            size > math.log(numerics.format.max) - 1.0, 2.0 / numerics.format.max, 0.0
        )
        extra = np.where(np.isneginf(x.value), 0.0, extra)
        return make(
            result.value,
            numerics,
            plus(result.bound, extra),
            root_sum(result.sigma, extra * ROOT_THIRD),
            result.common,
        )


def _sigmoid(x: Any) -> Any:
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-x))


def softplus(x: Any) -> Any:
    """log(1 + exp(x)), by log1p of the exponential, without overflow for large x, or as x itself beyond 20."""
    if not isinstance(x, ErrorBounded):
        return _softplus(x)
    numerics = x.numerics
    with np.errstate(all="ignore"):
        result = monotone(x, _softplus, "log1p", _sigmoid, zero=math.nan)
        size = np.where(np.isfinite(x.value), np.abs(x.value), 0.0)
        u = numerics.unit_roundoff
        # the error of the exponential: its own, and what its argument gains in the exp2 form
        relative = numerics.relative_error("exp") + (exp_log_constant(numerics) + 1.0) * u * size
        relative = relative + 2.0 * numerics.exp_argument_ulps * u * size
        share = np.where(x.value < math.log(numerics.format.max) - 1.0, _sigmoid(x.value), 0.0)
        beyond = 0.0 if numerics.is_float64 else np.where(x.value > 20.0, np.exp(-size), 0.0)
        extra = share * relative + u * result.value + beyond
        extra = np.where(np.isfinite(x.value), extra, 0.0)
        return make(
            result.value,
            numerics,
            plus(result.bound, extra),
            root_sum(result.sigma, extra * ROOT_THIRD),
            result.common,
        )


def _softplus(x: Any) -> Any:
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def erf(x: Any) -> Any:
    """The error function."""
    if not isinstance(x, ErrorBounded):
        return _erf(x)
    with np.errstate(all="ignore"):
        result = monotone(x, _erf, "erf", lambda z: 2.0 / math.sqrt(math.pi) * np.exp(-z * z))
        absolute = x.numerics.absolute.get("erf", 0.0)
        return add_absolute(result, absolute, x.value == 0.0) if absolute else result


_erf: Callable[[Any], Array] = np.vectorize(math.erf, otypes=[np.float64])
