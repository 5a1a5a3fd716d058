"""Pointers as 64-bit numbers, as they are kept in memory: which memory it is, and the offset in bytes.

A memory gets its number when a pointer to it is first stored. The null pointer is 0; a number that no pointer was
made into points to nothing, and so does an address of the host, which is smaller than any pointer's number.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import numpy as np

from refsim.engine.pointers import NULL, MixedPointer, Pointer

OFFSET_BITS = 40
OFFSET_MASK = (1 << OFFSET_BITS) - 1
HALF = 1 << (OFFSET_BITS - 1)

HOST_ADDRESS_BITS = 48

_numbers = itertools.count(1 << (HOST_ADDRESS_BITS - OFFSET_BITS))
_number_of: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_memory_of: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def _number(memory: Any) -> int:
    if memory is NULL.memory:
        return 0
    number = _number_of.get(memory)
    if number is None:
        number = next(_numbers)
        _number_of[memory] = number
        _memory_of[number] = memory
    return number


def encode(pointer: Any) -> Any:
    """The number of a pointer, per lane."""
    if isinstance(pointer, MixedPointer):
        number = np.array([_number(memory) for memory in pointer.memories], np.uint64)[pointer.which]
    else:
        number = np.uint64(_number(pointer.memory))
    high = np.asarray(number, np.uint64) << np.uint64(OFFSET_BITS)
    low = np.asarray(pointer.offset, np.int64) & np.int64(OFFSET_MASK)
    bits = high | low.astype(np.uint64)
    return int(bits) if bits.ndim == 0 else bits


def decode(bits: Any) -> Any:
    """The pointer that a number stands for, per lane."""
    wide = np.asarray(bits, np.uint64)
    numbers = (wide >> np.uint64(OFFSET_BITS)).astype(np.int64)
    low = (wide & np.uint64(OFFSET_MASK)).astype(np.int64)
    offsets = np.where(low >= HALF, low - (1 << OFFSET_BITS), low)
    offset: Any = int(offsets) if offsets.ndim == 0 else offsets
    known, which = np.unique(numbers, return_inverse=True)
    memories = [_memory_of.get(int(number), NULL.memory) for number in known]
    if len(memories) == 1:
        return Pointer(memories[0], offset)
    return MixedPointer(memories, which.reshape(numbers.shape), offset)


# by the names that front ends give them
FUNCTIONS = {"pointer_to_bits": encode, "bits_to_pointer": decode}
