"""Asynchronous copies that are on their way: which thread made them, in which of its groups, and when they arrive.

The bytes move when a copy is issued. For the checks they are on their way until the thread that made the copy waits
for it: then they count as written by that thread, at that moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.engine.lanes import LaneSet

if TYPE_CHECKING:
    from refsim.checks.shared_shadow import SharedShadow
    from refsim.engine.batch import Batch

ARRIVED = np.iinfo(np.int64).max


@dataclass
class _Copy:
    """One copy of every lane of a set; `group` is the number of the lane's group, `ARRIVED` once it is waited for."""

    shadow: SharedShadow
    lanes: LaneSet
    address: Any
    serial: int
    group: Any


class Copies:
    """Asynchronous copies of a batch."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.pending: list[_Copy] = []
        self.groups = np.zeros((batch.threads, batch.columns), np.int64)  # that each thread has committed

    def issue(self, shadow: SharedShadow, lanes: LaneSet, address: Any, serial: int) -> None:
        """A set of lanes has begun to copy to cells."""
        self.pending.append(_Copy(shadow, lanes, address, serial, lanes.take(self.groups).copy()))

    def commit(self, lanes: LaneSet) -> None:
        """What the lanes copied since their last group is a group."""
        lanes.put(self.groups, lanes.take(self.groups) + 1)

    def wait(self, lanes: LaneSet, count: Any) -> None:
        """The lanes wait for all their groups but the last `count`."""
        if not self.pending:
            return
        arrived = np.full(self.groups.shape, -1, np.int64)  # groups before these have arrived
        lanes.put(arrived, lanes.take(self.groups) - count)
        still = []
        for copy in self.pending:
            done = copy.group < copy.lanes.take(arrived)
            if done.any():
                copy.shadow.copied(copy.lanes, copy.address, done, copy.serial)
                copy.group = np.where(done, ARRIVED, copy.group)
            if (copy.group != ARRIVED).any():
                still.append(copy)
        self.pending = still
