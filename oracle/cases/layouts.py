"""Layouts: where an array's elements lie in memory, with poison in every cell that must not be read."""

from __future__ import annotations

import mmap
import sys
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


NO_RESERVE = 0x4000 if sys.platform == "linux" else 0  # MAP_NORESERVE; elsewhere memory is not reserved anyway
FAR = 2**31  # elements: an index from here on does not fit into 32 bits


def _sparse(size: int) -> mmap.mmap:
    """Memory that is there where it is written to, in pages, and 0 elsewhere."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return memory


def far(values: Array) -> Array:
    """Rows so far apart that the last one begins past element 2^31, in memory that is there only where they lie.

    What is between them is 0. A kernel that counts elements in 32 bits reads there, or outside.
    """
    axis = next((axis for axis, size in enumerate(values.shape) if size > 1), None)
    if axis is None or not values.size:
        return contiguous(values)
    row = values.size // values.shape[axis]
    stride = max(-(-FAR // (values.shape[axis] - 1)), row) | 1  # odd, so that no power of two of it wraps to 0
    within = contiguous(np.take(values, 0, axis)).strides
    strides = (*within[:axis], stride * values.itemsize, *within[axis:])
    memory = _sparse(((values.shape[axis] - 1) * stride + row) * values.itemsize)
    view: Array = np.ndarray(values.shape, values.dtype, memory, 0, strides)
    view[...] = values
    return view


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "contiguous": contiguous,
    "transposed": transposed,
    "padded": padded,
    "strided": strided,
    "misaligned": misaligned,
}
"""Layouts that cases are drawn in."""

SPARSE_LAYOUTS: dict[str, Callable[[Array], Array]] = {"far": far}
"""Layouts of cases that are asked for; see `oracle.cases.far_cases`."""


def buffer_of(array: Array) -> Array:
    """The whole buffer that a laid-out array is a view of, poisoned cells included."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
