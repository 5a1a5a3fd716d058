"""Happens-before through atomics and fences, worked out only when a race is suspected.

A thread that fences and then performs an atomic operation releases what it wrote before the fence, what others wrote
before they met it in a barrier before that, and what others fenced before they met it later. A thread whose later
atomic operation touches the same cell acquires that, and passes it on at its next barrier. Warp barriers do the same
for the threads of a warp. Chains of such hand-offs count.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from refsim.engine.lanes import LaneSet
    from refsim.engine.warp import Meeting


@dataclass
class _AtomicEvent:
    """One atomic instruction: its lanes in the order in which they were applied."""

    serial: int
    batch: int
    memory: int
    threads: Any
    columns: Any
    cells: Any
    narrow: bool


@dataclass
class Known:
    """What an agent knows of one block: all threads before `everyone`, single threads before their own time.

    `atomics` holds, per thread, its last atomic operation that an own one on the same cell came after.
    """

    everyone: int = 0
    threads: dict[int, int] = field(default_factory=dict)
    atomics: dict[int, int] = field(default_factory=dict)

    def covers(self, thread: int, serial: int, atomic: bool) -> bool:
        """True if the access of a thread at a time is known."""
        before = serial < self.everyone or serial < self.threads.get(thread, 0)
        return before or (atomic and serial <= self.atomics.get(thread, 0))

    def learn(self, other: Known) -> None:
        """Add what somebody else knows of the same block."""
        self.everyone = max(self.everyone, other.everyone)
        for mine, theirs in ((self.threads, other.threads), (self.atomics, other.atomics)):
            for thread, time in theirs.items():
                mine[thread] = max(mine.get(thread, 0), time)


Knowledge = dict[tuple[int, int], Known]

MOST_REMEMBERED = 4096  # answers, and
MOST_CHAINED = 64  # states of one cell: older ones are worked out again


class SyncLog:
    """Atomics, fences and barriers of a launch, in the order of their serial numbers.

    Kept only for kernels that contain a fence or use what an atomic operation returns: without them nothing is
    handed on.
    """

    def __init__(self) -> None:
        self._atomics: list[_AtomicEvent] = []
        self._fences: list[tuple[int, int, LaneSet, bool]] = []
        self._barriers: dict[int, list[tuple[int, Any]]] = {}
        self._meetings: list[Meeting] = []
        self._memo: dict[tuple[int, int, int, int], Knowledge] = {}
        self._own_fences: dict[tuple[int, int, int], list[tuple[int, bool]]] = {}  # of single threads
        self._wide_fences: list[tuple[int, int, LaneSet, bool]] = []
        self._fences_seen = self._atomics_seen = 0
        self._scoped = False  # something reaches no further than its block
        self._by_cell: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._by_block: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        self._chains: dict[Any, list[tuple[int, Knowledge]]] = {}

    def atomic(self, serial: int, batch: int, memory: int, lanes: LaneSet, address: Any, narrow: bool) -> None:
        """Record an atomic instruction on cells of a memory; a `narrow` one hands on within a block only."""
        cells = np.broadcast_to(np.asarray(address), lanes.shape).reshape(-1)
        threads = np.broadcast_to(lanes.t, lanes.shape).reshape(-1)
        columns = np.broadcast_to(lanes.b, lanes.shape).reshape(-1)
        self._atomics.append(_AtomicEvent(serial, batch, memory, threads, columns, cells, narrow))

    def fence(self, serial: int, batch: int, lanes: LaneSet, narrow: bool) -> None:
        """Record a fence; a `narrow` one orders for the own block only."""
        self._fences.append((serial, batch, lanes, narrow))

    def barrier(self, serial: int, batch: int, columns: Any) -> None:
        """Record a barrier of the given block columns; None stands for all blocks of the batch."""
        self._barriers.setdefault(batch, []).append((serial, columns))

    def warp_barrier(self, meeting: Meeting) -> None:
        """Record a warp barrier."""
        self._meetings.append(meeting)

    def ordered(self, first: tuple[int, int, int, int], second: tuple[int, int, int, int], atomic: bool) -> bool:
        """True if the access `first` happens before `second`; each is (batch, column, thread, serial).

        `atomic` says that `first` is an atomic operation: it is also ordered by a later one on its own cell.
        """
        batch, column, thread, serial = first
        known = self._known(*second).get((batch, column))
        return known is not None and known.covers(thread, serial, atomic)

    # ------------------------------------------------------------------------------------------------

    def _last_barrier(self, batch: int, column: int, before: int) -> int:
        entries = self._barriers.get(batch, [])
        for position in range(bisect.bisect_left(entries, before, key=lambda e: e[0]) - 1, -1, -1):
            serial, columns = entries[position]
            if columns is None or columns[column]:
                return serial
        return 0

    def _last_fence(self, batch: int, column: int, thread: int, before: int, within: bool) -> int:
        """The last fence of a thread before a time; of those of its block's scope only `within` it."""
        self._index()
        own = self._own_fences.get((batch, column, thread), [])
        best = next((s for s, narrow in reversed(own) if s < before and (within or not narrow)), 0)
        for serial, where, lanes, narrow in reversed(self._wide_fences):
            if serial <= best:
                break
            if serial < before and where == batch and (within or not narrow) and lanes.contains(thread, column):
                return serial
        return best

    def _index(self) -> None:
        """Sort what was recorded since the last time: fences by thread, atomic operations by cell and by block."""
        for fence in self._fences[self._fences_seen :]:
            serial, batch, lanes, narrow = fence
            if lanes.size == 1:
                agent = batch, int(lanes.b.reshape(-1)[0]), int(lanes.t.reshape(-1)[0])
                self._own_fences.setdefault(agent, []).append((serial, narrow))
            else:
                self._wide_fences.append(fence)
            self._scoped |= narrow
        self._fences_seen = len(self._fences)
        for number in range(self._atomics_seen, len(self._atomics)):
            event = self._atomics[number]
            self._scoped |= event.narrow
            for position in range(len(event.cells)):
                cell = event.memory, int(event.cells[position])
                operations = self._by_cell.setdefault(cell, [])
                block = event.batch, int(event.columns[position])
                self._by_block.setdefault(block, []).append((number, position, len(operations)))
                operations.append((number, position))
        self._atomics_seen = len(self._atomics)

    def _known(self, batch: int, column: int, thread: int, serial: int) -> Knowledge:
        key = (batch, column, thread, serial)
        if key in self._memo:
            return self._memo[key]
        known: Knowledge = {}
        self._memo[key] = known
        self._index()
        last_barrier = self._last_barrier(batch, column, serial)
        operations = self._by_block.get((batch, column), [])
        end = bisect.bisect_left(operations, serial, key=lambda entry: self._atomics[entry[0]].serial)
        cells: set[tuple[int, int]] = set()
        for number, position, place in reversed(
            operations[:end]
        ):  # of each cell the last: it knows what earlier ones do
            event = self._atomics[number]
            cell = event.memory, int(event.cells[position])
            if cell in cells and not self._scoped:
                continue
            acquirer = int(event.threads[position])
            if acquirer == thread or event.serial < last_barrier or self._met(event, acquirer, thread, column, serial):
                cells.add(cell)
                _learn(known, self._handed_on(cell, place, (batch, column)))
        if len(self._memo) > MOST_REMEMBERED:
            del self._memo[next(iter(self._memo))]
        return known

    def _handed_on(self, cell: tuple[int, int], place: int, block: tuple[int, int]) -> Knowledge:
        """What the atomic operations on a cell before one of them handed on to it, which is made by a block."""
        key = (cell, block if self._scoped else None)
        earlier = self._chains.setdefault(key, [(0, {})])
        at = bisect.bisect_right(earlier, place, key=lambda entry: entry[0]) - 1
        done, known = earlier[at] if at >= 0 else (0, {})
        if done == place:
            return known
        operations = self._by_cell[cell]
        narrow = self._atomics[operations[place][0]].narrow
        known = {where: Known(k.everyone, dict(k.threads), dict(k.atomics)) for where, k in known.items()}
        for number, position in operations[done:place]:
            event = self._atomics[number]
            batch, column, thread = event.batch, int(event.columns[position]), int(event.threads[position])
            within = (batch, column) == block
            if not within and (event.narrow or narrow):
                continue
            entry = known.setdefault((batch, column), Known())
            entry.learn(Known(atomics={thread: event.serial}))
            self._released(known, (batch, column, thread), event.serial, within)
        if not self._scoped:  # otherwise it depends on the scope of this very operation
            bisect.insort(earlier, (place, known), key=lambda entry: entry[0])
            if len(earlier) > MOST_CHAINED:
                del earlier[0]
        return known

    def _met(self, event: _AtomicEvent, acquirer: int, thread: int, column: int, before: int) -> bool:
        """True if two threads took part in a warp barrier after an atomic operation of one of them."""
        return any(
            event.serial < meeting.serial < before
            and meeting.batch == event.batch
            and meeting.joins(acquirer, thread, column)
            for meeting in self._meetings
        )

    def _released(self, known: Knowledge, agent: tuple[int, int, int], serial: int, within: bool) -> None:
        """What a thread hands on with an atomic operation: what it fenced, and others before they met it.

        `within` its block, fences of block scope count.
        """
        batch, column, thread = agent
        entry = known.setdefault((batch, column), Known())
        fence = self._last_fence(batch, column, thread, serial, within)
        if fence:
            entry.learn(Known(self._last_barrier(batch, column, fence), {thread: fence}))
            for mate, time in self._warp_mates(batch, column, thread, fence).items():
                entry.learn(Known(threads={mate: time}))
            _learn(known, self._known(batch, column, thread, fence))
        barrier = self._last_barrier(batch, column, serial)
        for time, where, lanes, narrow in self._fences if barrier else ():
            if where == batch and time < barrier and (within or not narrow):
                entry.learn(Known(threads=dict.fromkeys(_threads_of(lanes, column), time)))
        for mate, met in self._warp_mates(batch, column, thread, serial).items():
            time = self._last_fence(batch, column, mate, met, within)
            if time:
                entry.learn(Known(threads={mate: time}))

    def _warp_mates(self, batch: int, column: int, thread: int, before: int) -> dict[int, int]:
        """Threads that met a thread in a warp barrier, and when they last did."""
        mates: dict[int, int] = {}
        for meeting in self._meetings:
            if meeting.batch == batch and meeting.serial < before and meeting.lanes.contains(thread, column):
                mates.update(dict.fromkeys(meeting.mates(thread, column), meeting.serial))
        return mates


def _learn(known: Knowledge, other: Knowledge) -> None:
    """Add what somebody else knows."""
    for block, passed in other.items():
        known.setdefault(block, Known()).learn(passed)


def _threads_of(lanes: LaneSet, column: int) -> list[int]:
    """Threads of a set in one block column."""
    if lanes.flat is not None:
        return [int(t) for t in lanes.t[lanes.b == column]]
    if lanes.cols is not None and column not in lanes.cols:
        return []
    return [int(t) for t in lanes.t.reshape(-1)]
