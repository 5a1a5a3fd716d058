"""32-bit addresses within shared memory, as PTX instructions take them: which array, and the byte in it.

Every shared array of a block lies at a multiple of 2**20, far from the others, so that an address that leaves an
array is known to do so. 0 lies in no array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from refsim.engine.pointers import NULL, MixedPointer, Pointer

OFFSET_BITS = 20
OFFSET_MASK = (1 << OFFSET_BITS) - 1
HALF = 1 << (OFFSET_BITS - 1)
ADDRESS_MASK = 0xFFFFFFFF


def encode(pointer: Any) -> Any:
    """Address of a pointer, per lane; a pointer to other memory than shared memory has one that lies in no array."""
    mixed = MixedPointer.of(pointer)
    numbers = np.array([getattr(memory, "number", 0) for memory in mixed.memories], np.int64)[mixed.which]
    address = (numbers << OFFSET_BITS) + mixed.offset & ADDRESS_MASK
    return int(address) if np.ndim(address) == 0 else address


def decode(memories: list[Any], address: Any) -> Any:
    """The pointer that an address stands for, per lane; `memories` are the block's shared arrays in order."""
    moved = np.asarray(address, np.int64) + HALF  # so that bytes before an array still belong to it
    numbers, offsets = moved >> OFFSET_BITS, (moved & OFFSET_MASK) - HALF
    offset: Any = int(offsets) if offsets.ndim == 0 else offsets
    first = int(numbers.reshape(-1)[0])
    if numbers.ndim == 0 or (numbers == first).all():
        return Pointer(_memory(memories, first), offset)
    known, which = np.unique(numbers, return_inverse=True)
    return MixedPointer([_memory(memories, int(n)) for n in known], which.reshape(numbers.shape), offset)


def _memory(memories: list[Any], number: int) -> Any:
    return memories[number - 1] if 0 < number <= len(memories) else NULL.memory
