"""Error rules of what chooses among elements: maximum, minimum, clip, where, argmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.error.array import ErrorBounded, lift, spread
from oracle.error.comparison import ThreeValued
from oracle.error.fields import Array, Errors, full, plus_zero, root_sum
from oracle.error.registry import UndecidableError, UnsupportedOperationError, function_rule, ufunc_rule
from oracle.error.settle import make, settle
from oracle.numerics import Numerics


def _full(errors: Any, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(np.asarray(plus_zero(errors), dtype=np.float64), shape)


def _aligned(numerics: Numerics, *inputs: Any) -> tuple[list[ErrorBounded], tuple[int, ...]]:
    lifted = [lift(x, numerics) for x in inputs]
    shape = np.broadcast_shapes(*(x.shape for x in lifted))
    return [spread(x, shape) for x in lifted], shape


@ufunc_rule(np.maximum)
def maximum(numerics: Numerics, a: Any, b: Any) -> ErrorBounded:
    """The larger of two: an interval."""
    return _extreme(numerics, np.maximum, a, b)


@ufunc_rule(np.minimum)
def minimum(numerics: Numerics, a: Any, b: Any) -> ErrorBounded:
    """The smaller of two: an interval."""
    return _extreme(numerics, np.minimum, a, b)


def _extreme(numerics: Numerics, ufunc: np.ufunc, a: Any, b: Any) -> ErrorBounded:
    (x, y), shape = _aligned(numerics, a, b)
    value = np.asarray(
        ufunc(a.value if isinstance(a, ErrorBounded) else a, b.value if isinstance(b, ErrorBounded) else b)
    )
    first = np.broadcast_to(value == x.value, shape)
    pending: Any = _chosen_pending(first, x, y)
    if x.bound is None and y.bound is None:
        return make(value, numerics, pending=pending)
    if pending is not False:
        x, y, pending = spread(settle(x), shape), spread(settle(y), shape), False
    xb, yb = plus_zero(x.bound), plus_zero(y.bound)
    above, below = ufunc(x.value + xb, y.value + yb) - value, value - ufunc(x.value - xb, y.value - yb)
    bound = np.where(np.isinf(value), np.where(first, xb, yb), np.maximum(above, below))
    bound = np.where(np.isinf(xb) | np.isinf(yb), np.inf, bound)  # nothing is known of an operand, NaN included
    sigma = np.where(first, _full(x.sigma, shape), _full(y.sigma, shape))
    common = np.where(first, _full(x.common, shape), _full(y.common, shape))
    unsure = np.abs(x.value - y.value) < np.minimum(xb + yb, 1e300)
    sigma = np.where(unsure, np.maximum(_full(x.sigma, shape), _full(y.sigma, shape)), sigma)
    common = np.where(unsure, np.maximum(_full(x.common, shape), _full(y.common, shape)), common)
    return make(value, numerics, bound, sigma, common, pending)


def _chosen_pending(first: Any, x: ErrorBounded, y: ErrorBounded) -> Any:
    if x.pending is False and y.pending is False:
        return False
    if x.pending is True and y.pending is True:
        return True
    return np.where(first, x.pending, y.pending)


@function_rule(np.clip)
def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **options: Any) -> ErrorBounded:
    """min(max(x, low), high)."""
    low, high = options.pop("min", a_min), options.pop("max", a_max)
    if options:
        raise UnsupportedOperationError(f"np.clip with {', '.join(sorted(options))}= has no error rule.")
    numerics = next(x.numerics for x in (a, low, high) if isinstance(x, ErrorBounded))
    result = lift(a, numerics)
    result = result if low is None else maximum(numerics, result, low)
    return result if high is None else minimum(numerics, result, high)


@function_rule(np.max, np.amax)
def max_(
    a: ErrorBounded, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> ErrorBounded:
    """The largest element: an interval; exact for exact elements."""
    return _reduce_extreme(np.max, a, axis, keepdims is True, initial, where)


@function_rule(np.min, np.amin)
def min_(
    a: ErrorBounded, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> ErrorBounded:
    """The smallest element: an interval; exact for exact elements."""
    return _reduce_extreme(np.min, a, axis, keepdims is True, initial, where)


def _reduce_extreme(
    function: Any, a: ErrorBounded, axis: Any, keepdims: bool, initial: Any, where: Any
) -> ErrorBounded:
    if not (where is True or where is np._NoValue):
        raise UnsupportedOperationError(
            f"np.{function.__name__}(..., where=) has no error rule; use np.where with an infinity first."
        )
    given = initial is not None and initial is not np._NoValue
    if given and isinstance(initial, ErrorBounded):
        raise UnsupportedOperationError(f"np.{function.__name__}(..., initial=) must be a plain number.")
    options: dict[str, Any] = {"axis": axis, "keepdims": keepdims} | ({"initial": initial} if given else {})
    value = np.asarray(function(a.value, **options))
    if a.size == 0:
        return make(value, a.numerics)
    if a.bound is None:
        pending: Any = a.pending
        if isinstance(pending, np.ndarray):
            pending = pending.any(axis=axis, keepdims=keepdims)
        return make(value, a.numerics, pending=pending)
    x = settle(a)
    bound = x.bound
    if bound is None:
        return make(value, a.numerics)
    above = function(x.value + bound, **options) - value
    below = value - function(x.value - bound, **options)
    limit = np.where(np.isinf(value), 0.0, np.maximum(above, below))
    limit = np.where(np.isinf(bound).any(axis=axis, keepdims=keepdims), np.inf, limit)
    whole: Errors = root_sum(x.sigma, x.common)
    if whole is not None:
        top = function(a.value, axis=axis, keepdims=True)
        rivals = np.abs(x.value - top) <= 2.0 * bound
        rivals |= x.value == top
        whole = np.max(np.where(rivals, whole, 0.0), axis=axis, keepdims=keepdims)
    return make(value, a.numerics, limit, None, whole)


@function_rule(np.where)
def where(condition: Any, x: Any = None, y: Any = None) -> ErrorBounded:
    """Choose by a condition; where it is undecided, the hull of both."""
    if isinstance(condition, ErrorBounded):
        raise UnsupportedOperationError("np.where got an ErrorBounded array as condition; compare it first (x > 0).")
    if x is None or y is None:
        raise UndecidableError(
            "np.where(condition) alone gives indices of an undecided comparison; give both alternatives."
        )
    numerics = next((z.numerics for z in (x, y) if isinstance(z, ErrorBounded)), None)
    chosen = condition.value if isinstance(condition, ThreeValued) else np.asarray(condition)
    if numerics is None:
        raise UndecidableError(
            "np.where of plain numbers under an undecided comparison; lift one of them with exact() first."
        )
    shape = np.broadcast_shapes(chosen.shape, np.shape(getattr(x, "value", x)), np.shape(getattr(y, "value", y)))
    p, q = spread(lift(x, numerics), shape), spread(lift(y, numerics), shape)
    value = np.where(
        chosen, x.value if isinstance(x, ErrorBounded) else x, y.value if isinstance(y, ErrorBounded) else y
    )
    decided = condition.decided if isinstance(condition, ThreeValued) else None
    if decided is not None:
        p, q = spread(settle(p), shape), spread(settle(q), shape)
    pending = _chosen_pending(chosen, p, q)
    fields: list[Errors] = []
    for name in ("bound", "sigma", "common"):
        one, two = getattr(p, name), getattr(q, name)
        fields.append(None if one is None and two is None else np.where(chosen, plus_zero(one), plus_zero(two)))
    bound, sigma, common = fields
    if decided is not None:
        gap = np.abs(p.value - q.value) * (1.0 + 2.0**-50)
        wide = np.maximum(plus_zero(bound), gap + np.where(chosen, plus_zero(q.bound), plus_zero(p.bound)))
        bound = np.where(decided, plus_zero(bound), wide)
        common = np.where(decided, plus_zero(common), plus_zero(root_sum(common, gap)))
    pending = np.array(np.broadcast_to(pending, shape)) if isinstance(pending, np.ndarray) else pending
    return make(
        value,
        numerics,
        full(bound, shape),
        full(sigma, shape),
        full(common, shape),
        pending,
    )


def _argument(function: Any, sign: float) -> None:
    @function_rule(function)
    def rule(a: ErrorBounded, axis: Any = None, out: Any = None, **options: Any) -> Any:
        """Index of the extreme element; raises where the errors leave it open."""
        index = function(a.value, axis=axis, **options)
        x = settle(a)
        if x.bound is not None:
            keep = {"axis": axis, "keepdims": True}
            top = np.max(sign * x.value, **keep)
            rivals = sign * x.value + x.bound >= np.max(sign * x.value - x.bound, **keep)
            ties = (sign * x.value == top) & (x.bound == 0.0)
            if (np.count_nonzero(rivals & ~ties, axis=axis) + ties.any(axis=axis) > 1).any():
                raise UndecidableError(
                    f"np.{function.__name__}: the errors leave the index open; judge the selection as a stage."
                )
        return index


_argument(np.argmax, 1.0)
_argument(np.argmin, -1.0)
