"""What one warp instruction costs by its addresses: sectors of global memory, wavefronts of shared memory.

The rules are those that Nsight Compute's counters show on hardware (docs/explanation/counters.md).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from refsim.counters.record import SECTOR_BYTES
from refsim.counters.warps import distinct

WORD_BYTES = 4
LANES_AT_ONCE = 32  # that a wavefront serves, if each accesses a word
Ints = Any


def sectors(warps: Ints, addresses: Ints, width: int) -> int:
    """Sectors that the lanes of each warp touch, each once per warp; addresses in bytes, multiples of `width`."""
    low = addresses // SECTOR_BYTES
    if width <= SECTOR_BYTES:
        return len(distinct(warps, low)[0])
    every = np.concatenate([low + i for i in range(width // SECTOR_BYTES)])
    return len(distinct(np.tile(warps, width // SECTOR_BYTES), every)[0])


def atomic_sectors(warps: Ints, addresses: Ints) -> int:
    """Sectors of atomic operations: lanes on one address come one after another, each with its sector."""
    order = np.lexsort((addresses, warps))
    warp, address = warps[order], addresses[order]
    new = np.r_[True, (warp[1:] != warp[:-1]) | (address[1:] != address[:-1])]
    starts = np.flatnonzero(new)
    turn = np.arange(len(address)) - np.repeat(starts, np.diff(np.r_[starts, len(address)]))
    return len(distinct(warp * (LANES_AT_ONCE * 2) + turn, address // SECTOR_BYTES)[0])


def local_sectors(warps: Ints, lanes: Ints, addresses: Ints, width: int) -> int:
    """Sectors of local memory, in which the same word of neighbouring threads lies side by side."""
    per_sector = SECTOR_BYTES // WORD_BYTES
    found = 0
    for first in range(0, max(width, WORD_BYTES), WORD_BYTES):
        word = (addresses + first) // WORD_BYTES
        found += len(distinct(warps, word * 64 + lanes // per_sector)[0])
    return found


def _groups(warps: Ints, lanes: Ints, addresses: Ints, parts: int, kind: str, warp_size: int) -> Ints:
    """Which lanes of a warp are served together, as a number."""
    apart = lanes // (LANES_AT_ONCE // parts)
    if parts == 1 or kind != "load":
        return apart
    first = int(warps.min())
    table = np.full((int(warps.max()) - first + 1, warp_size), -1, np.int64)
    table[warps - first, lanes] = addresses
    together = np.zeros(len(table), bool)
    for distance in (1, 2):
        other = table[:, np.arange(warp_size) ^ distance]
        together |= ((table == other) | (table < 0) | (other < 0)).all(axis=1)
    return np.where(together[warps - first], apart // 2, apart)


class Banks(NamedTuple):
    """Wavefronts of the accesses, those beyond what they would take without conflicts, and each lane's degree."""

    wavefronts: int
    conflicts: int
    degrees: Ints
    worst: int
    worst_warp: int


def bank_wavefronts(
    warps: Ints, lanes: Ints, addresses: Ints, width: int, banks: int, kind: str, warp_size: int
) -> Banks:
    """Passes through shared memory.

    A wavefront serves one word of each bank, to any number of lanes; at most 32 lanes. Lanes that access 8 or 16 bytes
    are served in groups of 16 or 8; loads of twice as many lanes at once, if all neighbours 1 apart, or all 2 apart,
    load from one address. Atomic operations of several lanes on one word come one after another.
    """
    parts = max(1, width // WORD_BYTES)
    most_groups = parts * max(1, warp_size // LANES_AT_ONCE)
    group = warps * most_groups + _groups(warps, lanes, addresses, parts, kind, warp_size)
    words = addresses // WORD_BYTES
    every = np.concatenate([words + i for i in range(parts)])
    groups = np.tile(group, parts)
    pair_group, pair_word = (groups, every) if kind == "atomic" else distinct(groups, every)
    low = int(pair_group.min())
    slot = (pair_group - low) * banks + pair_word % banks
    ways = np.bincount(slot, minlength=(int(pair_group.max()) - low + 1) * banks).reshape(-1, banks)
    most = ways.max(axis=1)
    degrees = ways.reshape(-1)[(groups - low) * banks + every % banks].reshape(parts, -1)
    worst = int(most.argmax())
    conflicts = int(most.sum() - np.count_nonzero(most))
    return Banks(int(most.sum()), conflicts, degrees, int(most[worst]), (worst + low) // most_groups)
