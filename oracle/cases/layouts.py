"""Layouts: where an array's elements lie in memory, with poison in every cell that must not be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oracle.formats import format_of
from oracle.signature import Array


def _poisoned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A buffer of NaN, or of the largest integer: reading it spoils a result or leaves every table."""
    if dtype.kind in "iu":
        return np.full(shape, np.iinfo(dtype).max, dtype)
    number_format = format_of(dtype)
    poison = np.nan if number_format.has_nan else number_format.max
    return np.full(shape, poison, np.float64).astype(dtype)


def contiguous(values: Array) -> Array:
    """Row-major, nothing between the elements."""
    return values.copy()


def transposed(values: Array) -> Array:
    """Column-major: the first axis is the fastest."""
    return values.T.copy().T


def padded(values: Array) -> Array:
    """A corner of a larger array: each axis is followed by 3 poisoned cells."""
    buffer = _poisoned(tuple(size + 3 for size in values.shape), values.dtype)
    view = buffer[tuple(slice(0, size) for size in values.shape)]
    view[...] = values
    return view


def strided(values: Array) -> Array:
    """Every second element of the last axis, poison between."""
    if values.ndim == 0:
        return contiguous(values)
    buffer = _poisoned((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
    view = buffer[..., ::2]
    view[...] = values
    return view


def misaligned(values: Array) -> Array:
    """Row-major, but one element past the start of an aligned buffer, poison before and after."""
    buffer = _poisoned((values.size + 2,), values.dtype)
    buffer[1:-1] = values.reshape(-1)
    return buffer[1:-1].reshape(values.shape)


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "contiguous": contiguous,
    "transposed": transposed,
    "padded": padded,
    "strided": strided,
    "misaligned": misaligned,
}


def buffer_of(array: Array) -> Array:
    """The whole buffer that a laid-out array is a view of, poisoned cells included."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
