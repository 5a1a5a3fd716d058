"""Memories that count the accesses they serve."""

from __future__ import annotations

from typing import Any

import numpy as np

from refsim.counters.patterns import WORD_BYTES, Banks
from refsim.engine.lanes import LaneSet
from refsim.engine.memory import GlobalMemory, LocalMemory, SharedMemory
from refsim.engine.views import View


class CountingGlobalMemory(GlobalMemory):
    """Global memory that counts; `start` is its first byte counted from the beginning of the host's allocation.

    Device allocations begin at a multiple of 256 bytes, wherever the host's array happens to lie.
    """

    start = 0
    unwatched = False
    takes_windows = False
    kind_of_space = "global"

    def _bytes(self, view: View, address: Any) -> tuple[Any, int]:
        item = view.data.dtype.itemsize
        return address * view.data.strides[0] + (view.base * self.granule + self.start), item

    def read(self, lanes: LaneSet, view: View, address: Any, site: int) -> Any:
        """See `Memory.read`."""
        where, item = self._bytes(view, address)
        lanes.batch.counts.global_access(self, lanes, where, item, site, self.kind_of_space, "load")
        return super().read(lanes, view, address, site)

    def write(self, lanes: LaneSet, view: View, address: Any, value: Any, site: int) -> None:
        """See `Memory.write`."""
        where, item = self._bytes(view, address)
        lanes.batch.counts.global_access(self, lanes, where, item, site, "global", "store")
        super().write(lanes, view, address, value, site)

    def atomic(
        self, lanes: LaneSet, view: View, address: Any, op: str, args: tuple[Any, ...], site: int, used: bool
    ) -> Any:
        """See `Memory.atomic`."""
        where, item = self._bytes(view, address)
        counts = lanes.batch.counts
        counts.atomic(self, lanes, where, item, site)
        before = counts.content(lanes, view.data, address)
        result = super().atomic(lanes, view, address, op, args, site, used)
        counts.updated(self, lanes, where, before, counts.content(lanes, view.data, address))
        return result


class CountingSharedMemory(SharedMemory):
    """Shared memory that counts, and keeps for each word how its accesses conflicted."""

    def __init__(self, name: str, batch: Any, size: int, data: Any) -> None:
        super().__init__(name, batch, size, data)
        self.degrees: dict[str, Any] = {}
        self.worst: dict[str, tuple[int, Any, int]] = {}
        batch.counts.shared.append(self)

    def note(self, site: int, kind: str, warps: Any, where: Any, width: int, found: Banks) -> None:
        """Remember the degree of conflict of the words that an access touched."""
        kind = "store" if kind == "atomic" else kind
        if kind not in self.degrees:
            self.degrees[kind] = np.zeros(-(-self.bytes // WORD_BYTES), np.int64)
            self.worst[kind] = (0, None, site)
        first = where // WORD_BYTES
        for part, degrees in enumerate(found.degrees):
            np.maximum.at(self.degrees[kind], first + part, degrees)
        if found.worst > self.worst[kind][0]:
            self.worst[kind] = found.worst, first[warps == found.worst_warp], site

    def read(self, lanes: LaneSet, view: View, address: Any, site: int) -> Any:
        """See `Memory.read`."""
        lanes.batch.counts.shared_access(self, lanes, address * self.word, site, "load")
        return super().read(lanes, view, address, site)

    def write(self, lanes: LaneSet, view: View, address: Any, value: Any, site: int) -> None:
        """See `Memory.write`."""
        lanes.batch.counts.shared_access(self, lanes, address * self.word, site, "store")
        super().write(lanes, view, address, value, site)

    def atomic(
        self, lanes: LaneSet, view: View, address: Any, op: str, args: tuple[Any, ...], site: int, used: bool
    ) -> Any:
        """See `Memory.atomic`."""
        counts, flat = lanes.batch.counts, self._flat_address(lanes, address)
        counts.atomic(self, lanes, address * self.word, self.word, site)
        before = counts.content(lanes, view.data, flat)
        result = super().atomic(lanes, view, address, op, args, site, used)
        counts.updated(self, lanes, address * self.word, before, counts.content(lanes, view.data, flat))
        return result


class CountingLocalMemory(LocalMemory):
    """A local array that counts; it `varies` once lanes of one warp access different elements at once."""

    varies = False

    def __init__(self, name: str, batch: Any, size: int, dtype: str) -> None:
        super().__init__(name, batch, size, dtype)
        self.label = f"local {name}"
        batch.counts.local.append(self)

    def read(self, lanes: LaneSet, view: View, address: Any, site: int) -> Any:
        """See `Memory.read`."""
        lanes.batch.counts.local_access(self, lanes, address * self.word, site, "load")
        return super().read(lanes, view, address, site)

    def write(self, lanes: LaneSet, view: View, address: Any, value: Any, site: int) -> None:
        """See `Memory.write`."""
        lanes.batch.counts.local_access(self, lanes, address * self.word, site, "store")
        super().write(lanes, view, address, value, site)
