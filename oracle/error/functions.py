"""Error rules of the elementary functions: the argument's error carried through, and the declared ulps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from oracle.error.array import ErrorBounded
from oracle.error.fields import ROOT_THIRD, Array, Errors, full, plus, plus_zero, root_sum, times, ulp_share
from oracle.error.registry import ufunc_rule
from oracle.error.settle import make, settle
from oracle.numerics import Numerics


def _finish(
    x: ErrorBounded,
    value: Array,
    spread_by: Array,
    eps: Any,
    slope: Array,
    *,
    exact_where: Any = False,
    systematic: Any = 0.0,
) -> ErrorBounded:
    """Error of a function's result: what its argument's error does, and its own declared error `eps` (relative)."""
    numerics = x.numerics
    fmt = numerics.format
    size = np.abs(value)
    fresh = eps * (size + spread_by)
    share = ulp_share(size)
    least = fmt.min_normal if numerics.flush_to_zero else fmt.min_subnormal * 4.0
    smallest, largest = (size.min(), size.max()) if size.size else (1.0, 1.0)
    if not smallest >= 2.0 * fmt.min_normal:
        small = size < 2.0 * fmt.min_normal
        fresh = np.where(small, np.maximum(fresh, np.minimum(least, size + least)), fresh)
        share = np.where(small, 1.0, share)
    if np.any(exact_where):
        spread_by, fresh = np.where(exact_where, 0.0, spread_by), np.where(exact_where, 0.0, fresh)
        systematic = np.where(exact_where, 0.0, systematic)
    typical = fresh * share  # what is promised in ulps is 2u at most where an ulp is worth that
    bound = spread_by + fresh
    if not largest <= fmt.max and not numerics.is_float64:
        bound = np.where(size > fmt.max, np.inf, bound)
    if x.bound is not None and np.isinf(np.max(x.bound, initial=0.0)):
        bound = np.where(np.isinf(x.bound), np.inf, bound)  # nothing is known of the argument, NaN included
    if not np.isfinite(largest):
        bound = np.where(np.isinf(value) & (np.asarray(plus_zero(x.bound)) == 0.0), 0.0, bound)
    sigma = root_sum(times(slope, x.sigma), typical * ROOT_THIRD)
    common = times(slope, x.common)
    if isinstance(systematic, np.ndarray):
        common = plus(common, systematic)
    return make(value, numerics, full(bound, value.shape), full(sigma, value.shape), full(common, value.shape))


def exp_log_constant(numerics: Numerics) -> float:
    """Ulps of u that exp gains per unit of its argument, from the form it is evaluated in."""
    return 0.0 if numerics.exp_form == "exp" else 2.0


@ufunc_rule(np.exp)
def exp(numerics: Numerics, a: ErrorBounded) -> ErrorBounded:
    """e^x: r·expm1(θ) with θ the argument's error, that of the constant log2(e) included; plus the declared ulps."""
    x = settle(a)
    value = np.exp(a.value)
    u, fmt = numerics.unit_roundoff, numerics.format
    size = np.abs(x.value)
    if not np.max(size, initial=0.0) < np.inf:
        size = np.where(np.isfinite(size), size, 0.0)
    shift = exp_log_constant(numerics) * u * size
    if x.reach is not None:
        shift = shift + 2.0 * u * x.reach
    theta = plus_zero(x.bound) + shift
    relative = numerics.relative_error(
        "exp" if numerics.exp_form == "exp" or numerics.exp_ulps >= numerics.exp2_ulps else "exp2"
    )
    eps: Any = relative
    if numerics.exp_argument_ulps:
        eps = relative + 2.0 * u * numerics.exp_argument_ulps * size
    grown = times(value, np.expm1(theta))
    assert grown is not None
    nothing = np.isneginf(x.value)
    if not np.min(value, initial=1.0) > 0.0:
        grown = np.where(value == 0.0, np.where(np.isfinite(theta), np.exp(x.value + theta), np.inf), grown)
        grown = np.where(nothing & np.isfinite(theta), 0.0, grown)
    certain = nothing | ((x.value == 0.0) & (theta == 0.0))
    result = _finish(x, value, grown, eps, value, exact_where=certain, systematic=value * shift)
    # far below the smallest subnormal the kernel holds 0
    vanishing = math.log(fmt.min_subnormal) - 2.0 * math.log(2.0)
    gone = x.value + theta < vanishing
    if x.bound is not None and np.isinf(np.max(x.bound, initial=0.0)):
        # an argument may be without a bound because it overflows downwards only, and then it vanishes
        unbounded = np.isinf(x.bound)
        gone |= unbounded & (0.5 * (a.value + plus_zero(a.bound)) + shift < vanishing)
        result.may_overflow = bool((unbounded & ~gone).any())
    if result.bound is not None and gone.any():
        result.bound = np.where(gone, value, result.bound)
        result.sigma = None if result.sigma is None else np.where(gone, value, result.sigma)
        result.common = None if result.common is None else np.where(gone, 0.0, result.common)
    return result


@ufunc_rule(np.exp2)
def exp2(numerics: Numerics, a: ErrorBounded) -> ErrorBounded:
    """2^x: exact for integers."""
    x = settle(a)
    value = np.exp2(a.value)
    theta = plus_zero(x.bound) * math.log(2.0) + np.zeros_like(value)
    grown = np.where(np.isneginf(x.value) & np.isfinite(theta), 0.0, plus_zero(times(value, np.expm1(theta))))
    whole = ((x.value == 0.0) | np.isneginf(x.value)) & (theta == 0.0)
    return _finish(x, value, grown, numerics.relative_error("exp2"), value * math.log(2.0), exact_where=whole)


def _monotone(
    ufunc: np.ufunc, name: str, slope: Callable[[Array], Array], low: float = -math.inf, high: float = math.inf
) -> None:
    """A monotone function: its values at both ends of the argument's interval, and its declared ulps."""

    @ufunc_rule(ufunc)
    def rule(numerics: Numerics, a: ErrorBounded) -> ErrorBounded:
        return monotone(a, ufunc, name, slope, low, high)


def monotone(
    a: ErrorBounded,
    function: Callable[[Array], Array],
    name: str,
    slope: Callable[[Array], Array],
    low: float = -math.inf,
    high: float = math.inf,
    zero: float = 0.0,
) -> ErrorBounded:
    """Rule for an increasing function defined on [low, high] whose value at 0 (or at `zero`) is exact."""
    x = settle(a)
    numerics = a.numerics
    value = np.asarray(function(a.value))
    eps = numerics.relative_error(name)
    if name in ("log", "log2") and numerics.exp_form != "exp":
        eps = max(eps, numerics.relative_error("log2")) + 2.0 * numerics.unit_roundoff  # log2(x)·ln2
    if x.bound is None:
        grown = np.zeros_like(value)
    else:
        above, below = function(np.minimum(x.value + x.bound, high)), function(np.maximum(x.value - x.bound, low))
        grown = np.maximum(above - value, value - below)
        grown = np.where(x.bound == 0.0, 0.0, grown)
    absolute = numerics.absolute.get(name, 0.0)
    fixed = (x.value == zero) & (plus_zero(x.bound) == 0.0)
    derivative = np.where(np.isfinite(x.value), np.abs(slope(x.value)), 0.0)
    result = _finish(
        x, value, grown, eps, derivative, exact_where=fixed | ((plus_zero(x.bound) == 0.0) & np.isinf(x.value))
    )
    return add_absolute(result, absolute, fixed) if absolute else result


def add_absolute(x: ErrorBounded, absolute: float, exact_where: Any) -> ErrorBounded:
    """An absolute error on top, where the result is not exact."""
    extra = np.where(exact_where | ~np.isfinite(x.value), 0.0, absolute)
    return make(x.value, x.numerics, plus(x.bound, extra), root_sum(x.sigma, extra * ROOT_THIRD), x.common)


def _inverse(x: Array) -> Array:
    return np.divide(1.0, x)


_monotone(np.log1p, "log1p", lambda x: 1.0 / (1.0 + x), low=-1.0)
_monotone(np.expm1, "expm1", np.exp)
_monotone(np.tanh, "tanh", lambda x: 1.0 - np.tanh(x) ** 2)


@ufunc_rule(np.log)
def log(numerics: Numerics, a: ErrorBounded) -> ErrorBounded:
    """ln x."""
    return monotone(a, np.log, "log", _inverse, low=0.0, zero=1.0)


@ufunc_rule(np.log2)
def log2(numerics: Numerics, a: ErrorBounded) -> ErrorBounded:
    """log2 x."""
    return monotone(a, np.log2, "log2", lambda x: _inverse(x * math.log(2.0)), low=0.0, zero=1.0)


@ufunc_rule(np.sqrt)
def sqrt(numerics: Numerics, a: ErrorBounded) -> ErrorBounded:
    """√x by its ends; one rounding where promised correct, the declared ulps otherwise."""
    x = settle(a)
    value = np.sqrt(a.value)
    bound, slope = _root_growth(x, value)
    sigma, common = times(slope, x.sigma), times(slope, x.common)
    if numerics.correct_sqrt:
        return make(value, numerics, bound, sigma, common, True)
    extra = numerics.relative_error("sqrt") * (value + plus_zero(bound))
    extra = np.where(np.isfinite(value), extra, 0.0)
    return make(value, numerics, plus(bound, extra), root_sum(sigma, extra * ROOT_THIRD), common)


def _root_growth(x: ErrorBounded, value: Array) -> tuple[Errors, Array]:
    slope = np.where(value > 0.0, 0.5 / value, 0.0)
    if x.bound is None:
        return None, slope
    below = value - np.sqrt(np.maximum(x.value - x.bound, 0.0))
    return np.where(x.bound == 0.0, 0.0, np.maximum(np.sqrt(x.value + x.bound) - value, below)), slope


def reciprocal_root(a: ErrorBounded) -> ErrorBounded:
    """1/√x: the hardware rsqrt, or a root and a reciprocal, or a root and a division by it."""
    x = settle(a)
    numerics = a.numerics
    value = np.asarray(1.0 / np.sqrt(a.value))
    grown = np.zeros_like(value)
    if x.bound is not None:
        below = np.maximum(x.value - x.bound, 0.0)
        grown = np.where(
            x.bound == 0.0, 0.0, np.maximum(1.0 / np.sqrt(below) - value, value - 1.0 / np.sqrt(x.value + x.bound))
        )
    u = numerics.unit_roundoff
    eps = max(
        numerics.relative_error("rsqrt"),
        numerics.relative_error("sqrt") + max(2.0 * u, numerics.relative_error("division")),
    )
    slope = np.where(np.isfinite(value), 0.5 * value**3, 0.0)
    return _finish(x, value, grown, eps, slope)


@ufunc_rule(np.sin)
def sin(numerics: Numerics, a: ErrorBounded) -> ErrorBounded:
    """sin x: moves by at most the argument's error."""
    return _circular(a, np.sin, np.cos, "sin")


@ufunc_rule(np.cos)
def cos(numerics: Numerics, a: ErrorBounded) -> ErrorBounded:
    """cos x: moves by at most the argument's error."""
    return _circular(a, np.cos, np.sin, "cos")


def _circular(a: ErrorBounded, function: np.ufunc, derivative: np.ufunc, name: str) -> ErrorBounded:
    x = settle(a)
    value = function(a.value)
    grown = np.minimum(plus_zero(x.bound) + np.zeros_like(value), 2.0)
    fixed = (x.value == 0.0) & (plus_zero(x.bound) == 0.0)
    result = _finish(x, value, grown, a.numerics.relative_error(name), np.abs(derivative(x.value)), exact_where=fixed)
    absolute = a.numerics.absolute.get(name, 0.0)
    return add_absolute(result, absolute, fixed) if absolute else result
