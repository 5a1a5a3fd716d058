"""What one warp instruction costs by its addresses: sectors of global memory, wavefronts of shared memory.

The rules are those that Nsight Compute's counters show on hardware (docs/explanation/counters.md).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from refsim.counters.record import SECTOR_BYTES
from refsim.counters.warps import distinct

WORD_BYTES = 4
LANES_AT_ONCE = 32  # that a wavefront serves if each accesses a word
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


def _groups(warps: Ints, lanes: Ints, addresses: Ints, parts: int) -> Ints:
    """Which lanes of a warp are served together, as a number below `parts`."""
    if parts == 1:
        return 0
    apart = lanes // max(1, LANES_AT_ONCE // parts)
    order = np.lexsort((lanes, warps))
    warp, lane, address = warps[order], lanes[order], addresses[order]
    neighbours = (warp[1:] == warp[:-1]) & (lane[1:] == lane[:-1] + 1) & (lane[1:] % 2 == 1)
    differing = np.unique(warp[1:][neighbours & (address[1:] != address[:-1])])
    return np.where(np.isin(warps, differing), apart, apart // 2)


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
    halves or quarters of the warp; of twice as many lanes at once if no two neighbours, 2·i and 2·i + 1, differ in
    their address.
    """
    parts = max(1, width // WORD_BYTES)
    group = warps * parts + _groups(warps, lanes, addresses, parts)
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
