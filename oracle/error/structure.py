"""Rules of what rearranges elements: the same rearrangement of every field."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oracle.error.arithmetic import subtract
from oracle.error.array import ErrorBounded, lift
from oracle.error.fields import Errors
from oracle.error.registry import FUNCTIONS, UnsupportedOperationError, function_rule
from oracle.error.settle import make


def _rearrangement(function: Callable[..., Any], shared: bool = False) -> None:
    def rule(a: ErrorBounded, *args: Any, **kwargs: Any) -> ErrorBounded:
        if not isinstance(a, ErrorBounded) or any(isinstance(x, ErrorBounded) for x in (*args, *kwargs.values())):
            raise UnsupportedOperationError(
                f"np.{function.__name__} takes an ErrorBounded array as its first argument only."
            )
        return a.map(lambda field: function(field, *args, **kwargs), shared=shared)

    FUNCTIONS[function] = rule


_MOVES: tuple[Callable[..., Any], ...] = (
    np.reshape, np.ravel, np.transpose, np.swapaxes, np.moveaxis, np.expand_dims, np.squeeze, np.flip, np.roll,
    np.tril, np.triu, np.copy, np.atleast_1d, np.atleast_2d, np.rot90, np.diagonal,
)  # fmt: skip
_COPIES: tuple[Callable[..., Any], ...] = (np.broadcast_to, np.repeat, np.tile, np.take, np.take_along_axis)
_JOINS: tuple[Callable[..., Any], ...] = (np.concatenate, np.stack, np.vstack, np.hstack)

for _function in _MOVES:
    _rearrangement(_function)
for _function in _COPIES:
    _rearrangement(_function, shared=True)


def _joined(function: Callable[..., Any]) -> None:
    def rule(arrays: Sequence[Any], *args: Any, **kwargs: Any) -> ErrorBounded:
        arrays = list(arrays)
        numerics = next(x.numerics for x in arrays if isinstance(x, ErrorBounded))
        lifted = [lift(x, numerics) for x in arrays]
        value = function([x.value if isinstance(x, ErrorBounded) else x for x in arrays], *args, **kwargs)
        fields: list[Errors] = []
        for name in ("bound", "sigma", "common"):
            errors = [getattr(x, name) for x in lifted]
            if all(e is None for e in errors):
                fields.append(None)
            else:
                fields.append(
                    function([np.zeros(x.shape) if e is None else e for x, e in zip(lifted, errors)], *args, **kwargs)
                )
        pending: Any = lifted[0].pending
        if any(x.pending is not pending for x in lifted) or isinstance(pending, np.ndarray):
            pending = function([np.broadcast_to(x.pending, x.shape) for x in lifted], *args, **kwargs)
        return make(value, numerics, fields[0], fields[1], fields[2], pending)

    FUNCTIONS[function] = rule


for _function in _JOINS:
    _joined(_function)


@function_rule(np.split, np.array_split)
def split(a: ErrorBounded, sections: Any, axis: int = 0) -> list[ErrorBounded]:
    """Pieces along an axis."""
    pieces = np.array_split(np.arange(a.shape[axis]), sections)
    starts = [(int(piece[0]), int(piece[-1]) + 1) if len(piece) else (0, 0) for piece in pieces]
    lead = (slice(None),) * (axis % a.ndim)
    return [a[(*lead, slice(start, stop))] for start, stop in starts]


@function_rule(np.pad)
def pad(array: ErrorBounded, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> ErrorBounded:
    """Padding with a constant, or with repeated edge elements."""
    if mode not in ("constant", "edge", "wrap", "reflect"):
        raise UnsupportedOperationError(f"np.pad(mode={mode!r}) has no error rule; use mode='constant' or 'edge'.")
    value = np.pad(array.value, pad_width, mode, **kwargs)
    fill = {} if mode != "constant" else {"constant_values": 0}
    constants = kwargs.get("constant_values", 0)
    if not np.array_equal(np.asarray(constants, np.float32), np.asarray(constants)):
        raise UnsupportedOperationError(
            f"np.pad(constant_values={constants!r}): the constant must be exact in float32."
        )
    fields = [
        None if e is None else np.pad(e, pad_width, mode, **fill) for e in (array.bound, array.sigma, array.common)
    ]
    pending = np.pad(array.pending, pad_width, mode, **fill) if isinstance(array.pending, np.ndarray) else array.pending
    return make(value, array.numerics, fields[0], fields[1], fields[2], pending)


@function_rule(np.diff)
def diff(a: ErrorBounded, n: int = 1, axis: int = -1) -> ErrorBounded:
    """Differences of neighbours."""
    result = a
    for _ in range(n):
        lead = (slice(None),) * (axis % a.ndim)
        result = subtract(a.numerics, result[(*lead, slice(1, None))], result[(*lead, slice(None, -1))])
    return result


@function_rule(np.zeros_like)
def zeros_like(
    a: ErrorBounded, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None
) -> ErrorBounded:
    """Zeros to write into."""
    _refuse_dtype("zeros_like", dtype)
    return ErrorBounded(np.zeros_like(a.value, order=order, shape=shape), a.numerics)


@function_rule(np.empty_like)
def empty_like(
    a: ErrorBounded, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None
) -> ErrorBounded:
    """An array to write into."""
    _refuse_dtype("empty_like", dtype)
    return ErrorBounded(np.empty_like(a.value, order=order, shape=shape), a.numerics)


@function_rule(np.ones_like)
def ones_like(
    a: ErrorBounded, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None
) -> ErrorBounded:
    """Ones."""
    _refuse_dtype("ones_like", dtype)
    return ErrorBounded(np.ones_like(a.value, order=order, shape=shape), a.numerics)


@function_rule(np.full_like)
def full_like(
    a: ErrorBounded, fill_value: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None
) -> ErrorBounded:
    """A constant everywhere."""
    _refuse_dtype("full_like", dtype)
    if isinstance(fill_value, ErrorBounded):
        raise UnsupportedOperationError(
            "np.full_like takes a plain number; use np.broadcast_to for an ErrorBounded array."
        )
    return lift(np.full_like(a.value, fill_value, order=order, shape=shape), a.numerics)


def _refuse_dtype(name: str, dtype: Any) -> None:
    if dtype is not None and np.dtype(dtype) != np.float64:
        raise UnsupportedOperationError(
            f"np.{name}(x, dtype={dtype!r}) of an ErrorBounded array would lose the error; leave dtype out."
        )


@function_rule(np.shape)
def shape_of(a: ErrorBounded) -> tuple[int, ...]:
    """Dimensions."""
    return a.shape


@function_rule(np.ndim)
def ndim_of(a: ErrorBounded) -> int:
    """Number of dimensions."""
    return a.ndim


@function_rule(np.size)
def size_of(a: ErrorBounded, axis: Any = None) -> int:
    """Number of elements."""
    return a.size if axis is None else a.shape[axis]
