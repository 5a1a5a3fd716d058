"""What one warp instruction costs by its addresses: sectors of global memory, wavefronts of shared memory.

The rules are those that Nsight Compute's counters show on hardware (docs/explanation/counters.md).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from refsim.counters.record import SECTOR_BYTES
from refsim.counters.warps import distinct

WORD_BYTES = 4
Ints = Any


def sectors(warps: Ints, addresses: Ints, width: int) -> int:
    """Sectors that the lanes of each warp touch, each once per warp; addresses in bytes, multiples of `width`."""
    low = addresses // SECTOR_BYTES
    if width <= SECTOR_BYTES:
        return len(distinct(warps, low)[0])
    every = np.concatenate([low + i for i in range(width // SECTOR_BYTES)])
    return len(distinct(np.tile(warps, width // SECTOR_BYTES), every)[0])


def local_sectors(warps: Ints, lanes: Ints, addresses: Ints, width: int) -> int:
    """Sectors of local memory, in which the same word of neighbouring threads lies side by side."""
    per_sector = SECTOR_BYTES // WORD_BYTES
    found = 0
    for first in range(0, max(width, WORD_BYTES), WORD_BYTES):
        word = (addresses + first) // WORD_BYTES
        found += len(distinct(warps, word * 64 + lanes // per_sector)[0])
    return found


class Banks(NamedTuple):
    """Wavefronts of the accesses, those beyond what they would take without conflicts, and each lane's degree."""

    wavefronts: int
    conflicts: int
    degrees: Ints
    worst: int
    worst_warp: int


def bank_wavefronts(warps: Ints, lanes: Ints, addresses: Ints, width: int, banks: int) -> Banks:
    """Passes through shared memory.

    A wavefront serves one word of each bank, to any number of lanes. Lanes that access 8 or 16 bytes are served in
    halves or quarters of the warp.
    """
    parts = max(1, width // WORD_BYTES)
    group = warps * parts + lanes // max(1, 32 // parts)
    words = addresses // WORD_BYTES
    every = np.concatenate([words + i for i in range(parts)])
    groups = np.tile(group, parts)
    pair_group, pair_word = distinct(groups, every)
    low = int(pair_group.min())
    slot = (pair_group - low) * banks + pair_word % banks
    ways = np.bincount(slot, minlength=(int(pair_group.max()) - low + 1) * banks).reshape(-1, banks)
    most = ways.max(axis=1)
    present = most > 0
    degrees = ways.reshape(-1)[(groups - low) * banks + every % banks].reshape(parts, -1)
    worst = int(most.argmax())
    return Banks(int(most.sum()), int(most.sum() - present.sum()), degrees, int(most[worst]), (worst + low) // parts)
