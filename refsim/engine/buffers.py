"""Buffers handed over as uninitialised: `empty`, and which of their elements have been given a value since.

An element counts as initialised once a kernel wrote it, or once the host changed it from the fill pattern.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from refsim.dialect import ITEM_BYTES

_PATTERNS = {
    "float16": np.array(0x7E5A, np.uint16).view(np.float16)[()],
    "float32": np.array(0x7FE15A5A, np.uint32).view(np.float32)[()],
    "float64": np.array(0x7FFC5A5A5A5A5A5A, np.uint64).view(np.float64)[()],
}


class _Buffer:
    """Book-keeping for one `empty` array: which elements are known to be written."""

    def __init__(self, array: Any, pattern: Any) -> None:
        self.reference = weakref.ref(array)
        self.pattern = pattern.tobytes()
        self.written = np.zeros(array.size, bool)
        self.complete = False


_buffers: dict[int, _Buffer] = {}


def empty(shape: int | tuple[int, ...], dtype: Any = np.float64) -> np.ndarray[Any, Any]:
    """A NumPy array whose elements count as uninitialised until something writes them.

    Parameters
    ----------
    shape
        Extents.
    dtype
        A scalar type that kernels know.

    Returns
    -------
    Array filled with a pattern (a NaN for floats); a kernel that reads an element nobody wrote gets a finding
    of kind ``uninitialized_read``.

    Raises
    ------
    TypeError
        If the dtype is not one that kernels know.
    """
    kind = np.dtype(dtype)
    if kind.name not in ITEM_BYTES:
        raise TypeError(f"refsim.empty() of dtype {kind}: expected one of {', '.join(ITEM_BYTES)}")
    array = np.empty(shape, kind)
    if kind.name in _PATTERNS:
        pattern = _PATTERNS[kind.name]
    elif kind.name == "bool":
        pattern = np.bool_(False)
    else:
        pattern = np.array([0x5A] * kind.itemsize, np.uint8).view(kind)[0]
    array[...] = pattern
    if array.size:
        buffer = _Buffer(array, pattern)
        address = array.ctypes.data
        _buffers[address] = buffer
        weakref.finalize(array, _forget, address, buffer)
    return array


def _forget(address: int, buffer: _Buffer) -> None:
    if _buffers.get(address) is buffer:
        del _buffers[address]


def _owner(array: Any) -> Any:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _buffer_of(array: Any) -> tuple[Any, _Buffer] | None:
    """The uninitialised buffer that an array is, or is a view of."""
    if not _buffers or not array.size:
        return None
    owner = _owner(array)
    buffer = _buffers.get(owner.ctypes.data)
    if buffer is None or buffer.reference() is not owner:
        return None
    return owner, buffer


def initialized_elements(arrays: list[tuple[str, Any]], low: int, high: int, granule: int) -> Any:
    """Which granules of ``[low, high)`` hold a value; None if all do."""
    known: Any = None
    for _, array in arrays:
        found = _buffer_of(array)
        if found is None:
            continue
        owner, buffer = found
        if not buffer.complete:
            words = np.dtype(f"u{owner.dtype.itemsize}")
            buffer.written |= owner.reshape(-1).view(words) != np.frombuffer(buffer.pattern, words)[0]
            buffer.complete = bool(buffer.written.all())
        if buffer.complete:
            continue
        if known is None:
            known = np.ones((high - low) // granule, bool)
        per_element = owner.dtype.itemsize // granule
        start = (owner.ctypes.data - low) // granule
        elements = buffer.written if per_element == 1 else np.repeat(buffer.written, per_element)
        first, last = max(0, start), min(len(known), start + len(elements))
        known[first:last] = elements[first - start : last - start]
    return known


def mark_written(views: dict[str, Any], arguments: list[tuple[str, Any]]) -> None:
    """After a launch: elements that it wrote are initialised."""
    for name, array in arguments:
        if not isinstance(array, np.ndarray) or name not in views:
            continue
        found = _buffer_of(array)
        shadow = views[name].memory.shadow
        if found is None or shadow is None or not len(shadow.tag):
            continue
        owner, buffer = found
        low, _ = np.lib.array_utils.byte_bounds(array)
        granule = views[name].memory.granule
        per_element = owner.dtype.itemsize // granule
        start = (low - owner.ctypes.data) // owner.dtype.itemsize
        written = shadow.tag[(low - views[name].memory.address) // granule :]
        whole = len(written) // per_element
        flags = (written[: whole * per_element].reshape(whole, per_element) != 0).any(axis=1)
        stop = min(len(buffer.written), start + whole)
        buffer.written[start:stop] |= flags[: stop - start]
