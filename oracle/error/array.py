"""`ErrorBounded`: an array that carries its value, a guaranteed error bound and a standard deviation.

The value is the plain float64 run, bit for bit: every operation calls the same NumPy function on the values, then the
rule for its error, found in the tables of `oracle.error.registry`. What has no rule raises `UnsupportedOperationError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import ArrayLike, NDArray

from oracle.error.facts import SumFacts
from oracle.error.fields import Array, Errors, Pending, root_sum, round_exactly
from oracle.error.refusals import REFUSED_METHODS, holds, reduce_options, unsupported
from oracle.error.registry import FUNCTIONS, UFUNCS, UndecidableError, UnsupportedOperationError
from oracle.numerics import Numerics

FIELDS = ("bound", "sigma", "common", "dropped", "reach")


class ErrorBounded(NDArrayOperatorsMixin):
    """An array of float64 values with what an honest implementation under `numerics` may be off by.

    Make one with `exact`, read the result with `envelope`; in between it is used as a NumPy array.

    Attributes
    ----------
    value : float64 array
        The plain float64 run.
    bound : float64 array or None
        Guaranteed limit of the distance between `value` and what any honest kernel holds here. None = 0 everywhere.
    sigma : float64 array or None
        Standard deviation of the part that is independent from element to element.
    common : float64 array or None
        Standard deviation of the part shared between elements: it adds linearly.
    pending : bool or bool array
        Where the last operation has not been rounded to the compute format yet (lazy rounding).
    numerics : Numerics
        The arithmetic under which all of this holds.
    """

    __array_priority__ = 1000.0
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        value: Array,
        numerics: Numerics,
        *,
        bound: Errors = None,
        sigma: Errors = None,
        common: Errors = None,
        pending: Pending = False,
    ) -> None:
        self.value = value
        self.numerics = numerics
        self.bound = bound
        self.sigma = sigma
        self.common = common
        self.pending = pending
        self.dropped: Errors = None  # of a pivot: the bound it had
        self.is_pivot = False
        self.reach: Errors = None  # of x - pivot(m): max(|x|, |m|), where exp needs it
        self.facts: SumFacts | None = None
        self.may_overflow = False  # an exponential upstream had an argument without a bound: NaN cannot be excluded
        self._origin: tuple[ErrorBounded, Callable[[Any], Any]] | None = None
        self._settled: ErrorBounded | None = None

    # shape and printing

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions of the array."""
        return self.value.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.value.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.value.size

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """Always float64: the format of the value, not of the kernel."""
        return self.value.dtype

    @property
    def T(self) -> ErrorBounded:
        """The transpose."""
        return self.map(np.transpose)

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        return (
            f"ErrorBounded({self.numerics.name}, value={self.value!r}, bound={self.bound!r}, "
            f"sigma={self.sigma!r}, common={self.common!r}, pending={self.pending!r})"
        )

    # structure: the same view or copy of every field

    def map(self, function: Callable[[Any], Any], *, shared: bool = False) -> ErrorBounded:
        """Apply a rearrangement of elements to every field. `shared`: elements may come out more than once."""
        result = ErrorBounded(function(self.value), self.numerics)
        for name in FIELDS:
            errors = getattr(self, name)
            if errors is not None:
                setattr(result, name, function(errors))
        result.pending = function(self.pending) if isinstance(self.pending, np.ndarray) else self.pending
        result.is_pivot, result.may_overflow = self.is_pivot, self.may_overflow
        result._origin = (self, function)
        if shared and result.sigma is not None:
            result.common = result.sigma if result.common is None else np.sqrt(result.sigma**2 + result.common**2)
            result.sigma = None
            result._origin = None
        return result

    def __getitem__(self, key: Any) -> ErrorBounded:
        if holds(key, ErrorBounded):
            raise UnsupportedOperationError(
                "an ErrorBounded array is used as an index; indices must be plain integer arrays."
            )
        key = _plain_key(key)
        shared = isinstance(key, np.ndarray | list) or (
            isinstance(key, tuple) and any(isinstance(k, np.ndarray | list) for k in key)
        )
        return self.map(lambda field: np.asarray(field[key]), shared=shared)

    def __setitem__(self, key: Any, item: ArrayLike | ErrorBounded) -> None:
        if holds(key, ErrorBounded):
            raise UnsupportedOperationError(
                "an ErrorBounded array is used as an index; indices must be plain integer arrays."
            )
        key = _plain_key(key)
        source = lift(item, self.numerics)
        self.own()
        self.may_overflow |= source.may_overflow
        target_shape = np.shape(self.value[key])
        source = spread(source, target_shape) if source.shape != target_shape else source
        self.value[key] = source.value
        for name in ("bound", "sigma", "common"):
            errors = getattr(source, name)
            getattr(self, name)[key] = 0.0 if errors is None else errors
        cast("NDArray[np.bool_]", self.pending)[key] = source.pending

    def own(self) -> None:
        """Give the array full fields that may be written in place; a view gets views of its origin's fields."""
        self._settled = None
        self.facts = None
        self.is_pivot, self.reach, self.dropped = False, None, None
        if self._origin is not None:
            parent, function = self._origin
            parent.own()
            for name in ("bound", "sigma", "common", "pending"):
                setattr(self, name, function(getattr(parent, name)))
            return
        for name in ("bound", "sigma", "common"):  # copies: results of earlier operations may share the old fields
            errors = getattr(self, name)
            setattr(
                self,
                name,
                np.zeros_like(self.value) if errors is None else np.array(np.broadcast_to(errors, self.shape)),
            )
        self.pending = np.array(np.broadcast_to(self.pending, self.shape))

    # methods that NumPy arrays have

    def sum(self, axis: Any = None, keepdims: bool = False) -> ErrorBounded:
        """See `numpy.sum`."""
        return cast(ErrorBounded, np.sum(cast(Any, self), axis=axis, keepdims=keepdims))

    def mean(self, axis: Any = None, keepdims: bool = False) -> ErrorBounded:
        """See `numpy.mean`."""
        return cast(ErrorBounded, np.mean(cast(Any, self), axis=axis, keepdims=keepdims))

    def max(self, axis: Any = None, keepdims: bool = False) -> ErrorBounded:
        """See `numpy.max`."""
        return cast(ErrorBounded, np.max(cast(Any, self), axis=axis, keepdims=keepdims))

    def min(self, axis: Any = None, keepdims: bool = False) -> ErrorBounded:
        """See `numpy.min`."""
        return cast(ErrorBounded, np.min(cast(Any, self), axis=axis, keepdims=keepdims))

    def reshape(self, *shape: Any) -> ErrorBounded:
        """See `numpy.ndarray.reshape`."""
        return self.map(lambda field: field.reshape(*shape))

    def ravel(self) -> ErrorBounded:
        """See `numpy.ravel`."""
        return self.map(np.ravel)

    def transpose(self, *axes: Any) -> ErrorBounded:
        """See `numpy.ndarray.transpose`."""
        return self.map(lambda field: field.transpose(*axes))

    def swapaxes(self, axis1: int, axis2: int) -> ErrorBounded:
        """See `numpy.swapaxes`."""
        return self.map(lambda field: field.swapaxes(axis1, axis2))

    def squeeze(self, axis: Any = None) -> ErrorBounded:
        """See `numpy.squeeze`."""
        return self.map(lambda field: np.squeeze(field, axis=axis))

    def copy(self) -> ErrorBounded:
        """A copy that shares nothing."""
        result = self.map(np.copy)
        result._origin = None
        return result

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        target = None
        if out is not None:
            (target,) = out if isinstance(out, tuple) else (out,)
            if not isinstance(target, ErrorBounded):
                raise UnsupportedOperationError(
                    f"np.{ufunc.__name__}(..., out=) would write an error-bounded result into a plain array and "
                    "lose its error; write into np.zeros_like or np.empty_like of an input."
                )
        if method == "reduce" and ufunc in _REDUCTIONS:
            result = cast(Any, _REDUCTIONS[ufunc])(*inputs, **reduce_options(ufunc, options))
        else:
            rule = UFUNCS.get(ufunc) if method == "__call__" else None
            label = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
            if rule is None:
                raise UnsupportedOperationError(unsupported(label))
            if options:
                raise UnsupportedOperationError(
                    f"{label} with {', '.join(sorted(options))}= has no error rule; use np.where instead."
                )
            with np.errstate(all="ignore"):
                result = rule(self.numerics, *inputs)
            _pass_on(inputs, result)
        if target is None:
            return result
        target[...] = result
        return target

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        rule = FUNCTIONS.get(function)
        if rule is None:
            raise UnsupportedOperationError(unsupported(f"np.{function.__name__}"))
        if kwargs.get("out") is not None:
            raise UnsupportedOperationError(
                f"np.{function.__name__}(..., out=) would lose the error; assign the result instead."
            )
        with np.errstate(all="ignore"):
            result = rule(*args, **kwargs)
        _pass_on(args, result)
        return result

    # silent loss of the error is refused by name

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise UnsupportedOperationError(
            "an ErrorBounded array would become a plain array and lose its error; read .value, or use a NumPy function "
            "with a rule (np.stack instead of np.array([...]), np.zeros_like(x) instead of np.zeros)."
        )

    def __float__(self) -> float:
        raise UnsupportedOperationError(unsupported("float()"))

    def __int__(self) -> int:
        raise UnsupportedOperationError(unsupported("int()"))

    def __complex__(self) -> complex:
        raise UnsupportedOperationError(unsupported("complex()"))

    def __index__(self) -> int:
        raise UnsupportedOperationError(unsupported("operator.index()"))

    def __bool__(self) -> bool:
        if self.size == 1 and self.bound is None:
            return bool(self.value)
        raise UndecidableError(
            "the truth of an ErrorBounded array is asked for; compare it and pass the result to np.where."
        )

    def __getattr__(self, name: str) -> Any:
        if name in REFUSED_METHODS or (not name.startswith("_") and hasattr(np.ndarray, name)):
            raise UnsupportedOperationError(unsupported(f"ndarray.{name}"))
        raise AttributeError(f"ErrorBounded has no attribute {name!r}.")


_REDUCTIONS: dict[np.ufunc, Any] = {np.add: np.sum, np.maximum: np.max, np.minimum: np.min, np.multiply: np.prod}


def _pass_on(inputs: Any, result: Any) -> None:
    """A result may overflow where one of its operands may."""
    if isinstance(result, ErrorBounded) and not result.may_overflow:
        result.may_overflow = any(
            any(getattr(part, "may_overflow", False) for part in x)
            if isinstance(x, list | tuple)
            else isinstance(x, ErrorBounded) and x.may_overflow
            for x in inputs
        )


def _plain_key(key: Any) -> Any:
    from oracle.error.comparison import ThreeValued

    if holds(key, ThreeValued):
        raise UndecidableError(
            "a comparison that the error leaves undecided is used as a mask; pass it to np.where instead."
        )
    return key


# lifting


def lift(x: Any, numerics: Numerics) -> ErrorBounded:
    """An operand as an ErrorBounded array: constants are exact in the formula, rounded where not representable."""
    if isinstance(x, ErrorBounded):
        if x.numerics != numerics:
            raise ValueError(
                f"arrays of two arithmetics meet: {x.numerics.name!r} and {numerics.name!r}; "
                "lift all inputs with one Numerics."
            )
        return x
    array = np.asarray(x)
    if array.dtype.kind not in "fiub":
        raise UnsupportedOperationError(
            f"an operand of dtype {array.dtype} meets an ErrorBounded array; use real numbers."
        )
    value = array if array.dtype == np.float64 else array.astype(np.float64)
    return exact(value, numerics)


def exact(array: ArrayLike, numerics: Numerics) -> ErrorBounded:
    """Lift an input: the kernel is given exactly these values.

    Parameters
    ----------
    array
        Real numbers of any shape and dtype; converted to float64, keeping the memory layout.
    numerics
        The arithmetic to analyse. Values that its compute format cannot hold are rounded at their first use.

    Returns
    -------
    ErrorBounded
        With bound 0, or \\|x\\| for subnormal inputs that may be flushed.
    """
    if isinstance(array, ErrorBounded):
        raise UnsupportedOperationError("exact() got an ErrorBounded array; it lifts plain arrays.")
    value = np.asarray(array)
    value = value if value.dtype == np.float64 else value.astype(np.float64)
    result = ErrorBounded(value, numerics)
    if not numerics.is_float64:
        with np.errstate(all="ignore"):
            off = np.not_equal(round_exactly(value, numerics), value) & ~np.isnan(value)
        result.pending = bool(off.any())
    if numerics.flush_to_zero:
        size = np.abs(value)
        flushed = np.where(size < numerics.format.min_normal, size, 0.0)
        if flushed.any():
            result.bound, result.common = flushed, flushed
    return result


def spread(x: ErrorBounded, shape: tuple[int, ...]) -> ErrorBounded:
    """The array as an operand of a wider one: independent errors that are repeated become common."""
    if x.sigma is None or x.shape == shape or x.size == 0:
        return x
    if int(np.prod(shape)) == x.size:
        return x
    result = ErrorBounded(x.value, x.numerics, bound=x.bound, common=root_sum(x.sigma, x.common), pending=x.pending)
    result.dropped, result.is_pivot, result.reach = x.dropped, x.is_pivot, x.reach
    result.may_overflow = x.may_overflow
    return result
