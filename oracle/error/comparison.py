"""Comparisons under error: true, false, or undecided."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from oracle.error.arithmetic import operands
from oracle.error.array import ErrorBounded
from oracle.error.fields import plus_zero
from oracle.error.registry import FUNCTIONS, UndecidableError, UnsupportedOperationError, ufunc_rule
from oracle.numerics import Numerics


class ThreeValued(NDArrayOperatorsMixin):
    """A boolean array some of whose elements the error leaves open. Combine with ``& | ~``, use in ``np.where``."""

    __array_priority__ = 1001.0
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: NDArray[np.bool_], decided: NDArray[np.bool_]) -> None:
        self.value = value
        self.decided = decided

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions of the array."""
        return self.value.shape

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options or any(isinstance(x, ErrorBounded) for x in inputs):
            raise UnsupportedOperationError(
                f"np.{ufunc.__name__} has no rule for an undecided comparison; use & | ~ and np.where."
            )
        values = [x.value if isinstance(x, ThreeValued) else np.asarray(x, bool) for x in inputs]
        known = [x.decided if isinstance(x, ThreeValued) else np.asarray(True) for x in inputs]
        if ufunc in (np.invert, np.logical_not):
            return ThreeValued(~values[0], known[0])
        (p, q), (kp, kq) = values, known
        if ufunc in (np.bitwise_and, np.logical_and):
            return three_valued(p & q, (kp & kq) | (kp & ~p) | (kq & ~q))
        if ufunc in (np.bitwise_or, np.logical_or):
            return three_valued(p | q, (kp & kq) | (kp & p) | (kq & q))
        raise UnsupportedOperationError(
            f"np.{ufunc.__name__} has no rule for an undecided comparison; use & | ~ and np.where."
        )

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.where:
            return FUNCTIONS[np.where](*args, **kwargs)
        raise UndecidableError(f"np.{function.__name__} of a comparison that the error leaves undecided; use np.where.")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise UndecidableError(
            "a comparison that the error leaves undecided would become a plain array; pass it to np.where."
        )

    def __bool__(self) -> bool:
        raise UndecidableError("the truth of a comparison that the error leaves undecided is asked for; use np.where.")


def three_valued(value: NDArray[np.bool_], decided: NDArray[np.bool_]) -> Any:
    """A plain bool array if everything is decided."""
    return value if decided.all() else ThreeValued(value, np.broadcast_to(decided, value.shape))


def _comparison(ufunc: np.ufunc) -> None:
    @ufunc_rule(ufunc)
    def rule(numerics: Numerics, a: Any, b: Any) -> Any:
        (x, y), shape = operands(numerics, a, b)
        value = np.asarray(ufunc(x.value, y.value))
        if x.bound is None and y.bound is None:
            return value
        error = np.broadcast_to(plus_zero(x.bound) + plus_zero(y.bound), shape)
        decided = (
            (error == 0.0)
            | (np.abs(x.value - y.value) > error)
            | (np.isinf(x.value) ^ np.isinf(y.value)) & np.isfinite(error)
        )
        decided = decided | np.isnan(x.value) | np.isnan(y.value)
        return three_valued(value, np.broadcast_to(decided, shape))


for _ufunc in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal):
    _comparison(_ufunc)


def _classification(ufunc: np.ufunc) -> None:
    @ufunc_rule(ufunc)
    def rule(numerics: Numerics, a: ErrorBounded) -> Any:
        value = np.asarray(ufunc(a.value))
        if a.bound is None:
            return value
        return three_valued(value, np.isfinite(a.bound) | ~np.isfinite(a.value))


for _test in (np.isfinite, np.isnan, np.isinf):
    _classification(_test)
