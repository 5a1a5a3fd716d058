"""Lanes by warp: which warp each lane of a set belongs to, and its address, as flat arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from refsim.engine.lanes import LaneSet

Ints = Any


class WarpsOf:
    """The number of warps of a set, remembered for the sets met last."""

    REMEMBERED = 64

    def __init__(self, warp_size: int) -> None:
        self.warp_size = warp_size
        self._known: dict[int, tuple[LaneSet, int]] = {}

    def __call__(self, lanes: LaneSet) -> int:
        """Number of warps with a lane in the set."""
        known = self._known.get(id(lanes))
        if known is not None and known[0] is lanes:
            return known[1]
        count = self._count(lanes)
        if len(self._known) >= self.REMEMBERED:
            self._known.clear()
        self._known[id(lanes)] = lanes, count
        return count

    def _count(self, lanes: LaneSet) -> int:
        if lanes.flat is not None:
            return len(np.unique(warp_numbers(lanes, self.warp_size)))
        if lanes.rows is None:
            return -(-int(lanes.batch.threads) // self.warp_size) * lanes.shape[1]
        return len(np.unique(lanes.rows // self.warp_size)) * int(lanes.shape[1])


def warp_numbers(lanes: LaneSet, warp_size: int) -> Ints:
    """The warp of each lane of a flat set, numbered through all blocks of the batch."""
    assert lanes.flat is not None
    columns = lanes.batch.columns
    return lanes.flat // columns // warp_size * columns + lanes.flat % columns


def spread(lanes: LaneSet, address: Any, warp_size: int, period: int) -> tuple[Ints, Ints, Ints, int]:
    """Warp, lane within the warp and address of each lane of a set, and how many times that is to be counted.

    Blocks whose addresses differ by a multiple of `period` alone are counted by one of them.
    """
    if lanes.flat is not None:
        where = np.broadcast_to(np.asarray(address), lanes.shape)
        return warp_numbers(lanes, warp_size), lanes.t % warp_size, where, 1
    rows = np.arange(lanes.batch.threads) if lanes.rows is None else lanes.rows
    count = lanes.shape[1]
    if isinstance(address, np.ndarray) and address.shape[1] > 1:
        first, shift = address[:, :1], address[:1] - address[0, 0]
        # a number per block is one address for each warp, whatever it is
        if address.shape[0] == 1 or (not (shift % period).any() and bool((address - shift == first).all())):
            address = first
    if not isinstance(address, np.ndarray) or address.shape[1] == 1:
        where = np.broadcast_to(np.asarray(address).reshape(-1), rows.shape)
        return rows // warp_size, rows % warp_size, where, count
    where = np.broadcast_to(address, lanes.shape).reshape(-1)
    warps = (rows // warp_size)[:, None] * count + np.arange(count)
    inside = np.broadcast_to((rows % warp_size)[:, None], lanes.shape)
    return warps.reshape(-1), inside.reshape(-1), where, 1


def distinct(warps: Ints, values: Ints) -> tuple[Ints, Ints]:
    """The different (warp, value) pairs, in order."""
    low = int(values.min())
    span = int(values.max()) - low + 1
    keys = np.unique(warps * span + (values - low))
    return keys // span, keys % span + low
