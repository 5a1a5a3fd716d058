"""Counting while a batch of blocks runs: pieces of lane code, branches, and every access to memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.counters import patterns
from refsim.counters.code import Tables
from refsim.counters.record import SECTOR_BYTES, Traffic
from refsim.counters.warps import WarpsOf, distinct, spread
from refsim.engine.lanes import LaneSet

if TYPE_CHECKING:
    from refsim.counters.memory import CountingLocalMemory, CountingSharedMemory
    from refsim.engine.batch import Batch

BANK_PERIOD = 128
ATOMIC_PERIOD = 1 << 62  # addresses of atomics that blocks share are told apart


class Collector:
    """Counts of one batch.

    Attributes
    ----------
    runs
        By number of a piece: threads and warps that executed it.
    splits
        By number of a branch: warps that it divided.
    traffic
        By site, space and kind of access.
    """

    def __init__(self, batch: Batch, tables: Tables) -> None:
        device = batch.run.device
        self.widths = tables.widths
        self.warp_size = device.warp_size
        self.banks = device.shared_banks
        self.warps = WarpsOf(device.warp_size)
        self.octets = WarpsOf(SECTOR_BYTES // patterns.WORD_BYTES)
        self.runs = [[0, 0] for _ in tables.pieces]
        self.splits = [0] * len(tables.splits)
        self.traffic: dict[tuple[int, str, str], Traffic] = {}
        self.shared: list[CountingSharedMemory] = []
        self.local: list[CountingLocalMemory] = []

    def run(self, lanes: LaneSet, piece: int) -> None:
        """A straight run of statements is executed by a set."""
        counted = self.runs[piece]
        counted[0] += lanes.size
        counted[1] += self.warps(lanes)

    def split(self, lanes: LaneSet, yes: LaneSet, no: LaneSet, branch: int) -> None:
        """A branch sent some lanes of a set one way and some the other."""
        self.splits[branch] += self.warps(yes) + self.warps(no) - self.warps(lanes)

    def content(self, lanes: LaneSet, data: Any, address: Any) -> bytes:
        """What a cell holds before and after an atomic operation; nothing where that is not asked for."""
        return b""

    def updated(self, memory: Any, lanes: LaneSet, address: Any, before: bytes, after: bytes) -> None:
        """An atomic operation is done."""

    def met(self, lanes: Iterable[int]) -> None:
        """Groups that take turns go on from a barrier together."""

    def finish(self) -> None:
        """The batch has ended."""

    # ------------------------------------------------------------------------------------------- accesses

    def _tally(self, site: int, space: str, kind: str, lanes: LaneSet, width: int) -> Traffic:
        key = site, space, kind
        found = self.traffic.get(key)
        if found is None:
            found = self.traffic[key] = Traffic()
        found.lanes += lanes.size
        found.requests += self.warps(lanes)
        found.bytes += lanes.size * width
        return found

    def _whole(self, site: int, address: Any, item: int) -> int:
        """Bytes of the access that one of `item` bytes is part of; 0 for a part that is not its first."""
        width = self.widths.get(site, item)
        if width <= item:
            return item
        first = address if type(address) is int else int(address.flat[0])
        return 0 if first % width else width

    def global_access(
        self, memory: Any, lanes: LaneSet, address: Any, item: int, site: int, space: str, kind: str
    ) -> None:
        """Loads or stores of a set at addresses in bytes, counted from the beginning of an allocation."""
        width = self._whole(site, address, item)
        if not width:
            return
        tally = self._tally(site, space, kind, lanes, width)
        if type(address) is int:
            tally.sectors += self.warps(lanes) * -(-width // SECTOR_BYTES)
            return
        warps, _, where, times = spread(lanes, address, self.warp_size, SECTOR_BYTES)
        tally.sectors += patterns.sectors(warps, where, width) * times

    def shared_access(self, memory: CountingSharedMemory, lanes: LaneSet, address: Any, site: int, kind: str) -> None:
        """Loads or stores of shared memory."""
        width = self._whole(site, address, memory.word)
        if not width:
            return
        tally = self._tally(site, "shared", kind, lanes, width)
        self._banks(memory, lanes, address, site, kind, width, tally)

    def _banks(
        self,
        memory: CountingSharedMemory,
        lanes: LaneSet,
        address: Any,
        site: int,
        kind: str,
        width: int,
        tally: Traffic,
    ) -> None:
        warps, inside, where, times = spread(lanes, address, self.warp_size, BANK_PERIOD)
        found = patterns.bank_wavefronts(warps, inside, where, width, self.banks, kind, self.warp_size)
        tally.wavefronts += found.wavefronts * times
        tally.conflicts += found.conflicts * times
        memory.note(site, kind, warps, where, width, found)

    def local_access(self, memory: CountingLocalMemory, lanes: LaneSet, address: Any, site: int, kind: str) -> None:
        """Loads or stores of a local array; whether it lies in memory or in registers shows at the end."""
        width = self._whole(site, address, memory.word)
        if not width:
            return
        tally = self._tally(site, memory.label, kind, lanes, width)
        if type(address) is int:  # one word of neighbouring threads after the other
            tally.sectors += self.octets(lanes) * -(-width // patterns.WORD_BYTES)
            return
        warps, inside, where, times = spread(lanes, address, self.warp_size, SECTOR_BYTES)
        if not memory.varies:
            memory.varies = len(distinct(warps, where)[0]) * times > self.warps(lanes)
        tally.sectors += patterns.local_sectors(warps, inside, where, width) * times

    def atomic(self, memory: Any, lanes: LaneSet, address: Any, item: int, site: int) -> None:
        """Atomic operations of a set."""
        tally = self._tally(site, memory.space, "atomic", lanes, item)
        if memory.space == "shared":
            self._banks(memory, lanes, address, site, "atomic", item, tally)
            warps, _, where, times = spread(lanes, address, self.warp_size, BANK_PERIOD)
        else:
            warps, _, where, times = spread(lanes, address, self.warp_size, SECTOR_BYTES)
            tally.sectors += patterns.atomic_sectors(warps, where) * times
        _, counts = np.unique(np.stack([warps, where]), axis=1, return_counts=True)
        tally.addresses += len(counts) * times
        tally.most_on_one_address = max(tally.most_on_one_address, int(counts.max()))
