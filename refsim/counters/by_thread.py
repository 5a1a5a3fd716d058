"""Counting where threads run one at a time: which of the things they do a warp would have done together.

Threads that wait for each other take turns (`refsim.engine.stepwise`), so no two are ever at one place at once. What
each does is noted with the trips of the loops around it. In the end, notes of one place and equal trips are put
together to the sets of lanes that lockstep would have had, and counted as those; but not what one thread did after it
had waited for another (`Order`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from refsim.counters.code import Tables
from refsim.counters.collector import Collector
from refsim.engine.lanes import LaneSet

Key = tuple[Any, ...]


class Order:
    """How often threads of one warp came after each other, because one waited for what another had written.

    A thread waits for what it reads in the last trip of a ``while`` loop, if another thread has written that since the
    two last met at a barrier. What a thread knows is for each warp how many generations of its threads came before.
    """

    def __init__(self, warp_of: dict[int, int]) -> None:
        self._warp_of = warp_of
        self._known: dict[int, dict[int, int]] = {}
        self._written: dict[Key, tuple[int, int, dict[int, int]]] = {}  # writer, time, what it knew
        self._waited: dict[int, tuple[int, dict[int, int]]] = {}  # loop, and what ending it would teach
        self._time = 0
        self._met: dict[int, int] = {}

    def generation(self, lane: int) -> int:
        """How many threads of its own warp a thread came after, one after another."""
        return self._known.get(lane, {}).get(self._warp_of[lane], 0)

    def wrote(self, lane: int, cell: Key, atomically: bool) -> None:
        """A thread has written: who waits for that comes after its generation, and after those it counted on to."""
        knew = dict(self._known.get(lane, {}))
        if atomically and cell in self._written:
            _learn(knew, self._written[cell][2])
        _learn(knew, {self._warp_of[lane]: self.generation(lane) + 1})
        self._written[cell] = lane, self._time, knew

    def saw(self, lane: int, cell: Key, loop: int) -> None:
        """A thread reads in a trip of a loop that may wait."""
        writer, time, knew = self._written.get(cell, (lane, 0, {}))
        if writer != lane and time >= self._met.get(lane, 0):
            _, pending = self._waited.setdefault(lane, (loop, {}))
            _learn(pending, knew)

    def trip(self, lane: int) -> None:
        """A thread begins another trip: what it read before did not end the loop."""
        self._waited.pop(lane, None)

    def at(self, lane: int, loops: tuple[int, ...]) -> None:
        """A thread is within these loops: another one that it waited in has ended."""
        pending = self._waited.get(lane)
        if pending is not None and pending[0] not in loops:
            _learn(self._known.setdefault(lane, {}), pending[1])
            del self._waited[lane]

    def met(self, lanes: Iterable[int]) -> None:
        """Threads go on from a barrier together."""
        self._time += 1
        together: dict[int, int] = {}
        for lane in lanes:
            _learn(together, self._known.get(lane, {}))
        for lane in lanes:
            self._met[lane] = self._time
            if together:
                self._known[lane] = dict(together)


def _learn(known: dict[int, int], more: dict[int, int]) -> None:
    for warp, generation in more.items():
        known[warp] = max(known.get(warp, 0), generation)


class ThreadCollector(Collector):
    """Counts of a batch whose groups take turns; groups of several threads are counted at once."""

    def __init__(self, batch: Any, tables: Tables) -> None:
        super().__init__(batch, tables)
        self._batch = batch
        self._tables = tables
        lanes = np.arange(batch.threads * batch.columns)
        warps = lanes // batch.columns // self.warp_size * batch.columns + lanes % batch.columns
        self._order = Order(dict(enumerate(warps.tolist())))
        self._trips: dict[int, list[int]] = {}  # of each loop, by lane
        self._notes: dict[Key, dict[int, Any]] = {}
        self._again: Counter[tuple[Key, int]] = Counter()

    def _alone(self, lanes: LaneSet) -> bool:
        return lanes.size == 1 and self._batch.group.size == 1

    def _note(self, key: Key, loops: tuple[int, ...], lane: int, value: Any = None) -> None:
        self._order.at(lane, loops)
        trips = self._trips.get(lane, ())
        when = (self._order.generation(lane), *(trips[loop] for loop in loops))
        notes = self._notes.setdefault((*key, when), {})
        if lane in notes:  # a function that calls itself comes by several times
            self._again[key, lane] += 1
            notes = self._notes.setdefault((*key, (*when, self._again[key, lane])), {})
        notes[lane] = value

    # ------------------------------------------------------------------------------------ what lane code tells

    def run(self, lanes: LaneSet, piece: int) -> None:
        """See `Collector.run`."""
        if not self._alone(lanes):
            super().run(lanes, piece)
            return
        lane = _lane(lanes)
        loop = self._tables.trips.get(piece)
        if loop is not None:
            trips = self._trips.setdefault(lane, [0] * len(self._tables.inside))
            trips[loop] += 1
            for inner in self._tables.inside[loop]:
                trips[inner] = 0
            self._order.trip(lane)
        self._note(("run", piece), self._tables.loops_of_pieces[piece], lane)

    def decides(self, lanes: LaneSet, yes: LaneSet | None, branch: int) -> None:
        """A set is at an ``if``, and `yes` of it goes into its first side."""
        if self._alone(lanes):
            self._note(("if", branch), self._tables.loops_of_splits[branch], _lane(lanes), yes is not None)

    def enters(self, lanes: LaneSet, branch: int) -> None:
        """A set goes into the body of a loop after its test."""
        if self._alone(lanes):
            self._note(("loop", branch), self._tables.loops_of_splits[branch], _lane(lanes))

    def met(self, lanes: Iterable[int]) -> None:
        """Threads go on from a barrier or an operation of a warp, all of them."""
        if self._notes:  # else nobody ran alone
            self._order.met(list(lanes))

    # --------------------------------------------------------------------------------- what memories tell

    def _access(self, key: Key, memory: Any, lanes: LaneSet, address: Any, site: int, kind: str) -> None:
        lane, where = _lane(lanes), int(np.asarray(address).reshape(-1)[0])
        loops = self._tables.loops_of_sites.get(site, ())
        waits = [loop for loop in loops if loop in self._tables.waiting]
        if waits and kind != "store":
            self._order.saw(lane, (memory, where), waits[-1])
        self._note(key, loops, lane, where)
        if kind == "store":
            self._order.wrote(lane, (memory, where), atomically=False)

    def global_access(
        self, memory: Any, lanes: LaneSet, address: Any, item: int, site: int, space: str, kind: str
    ) -> None:
        """See `Collector.global_access`."""
        if self._alone(lanes):
            self._access(("global", memory, item, site, space, kind), memory, lanes, address, site, kind)
        else:
            super().global_access(memory, lanes, address, item, site, space, kind)

    def shared_access(self, memory: Any, lanes: LaneSet, address: Any, site: int, kind: str) -> None:
        """See `Collector.shared_access`."""
        if self._alone(lanes):
            self._access(("shared", memory, site, kind), memory, lanes, address, site, kind)
        else:
            super().shared_access(memory, lanes, address, site, kind)

    def local_access(self, memory: Any, lanes: LaneSet, address: Any, site: int, kind: str) -> None:
        """See `Collector.local_access`."""
        if self._alone(lanes):
            loops = self._tables.loops_of_sites.get(site, ())
            self._note(("local", memory, site, kind), loops, _lane(lanes), int(np.asarray(address).reshape(-1)[0]))
        else:
            super().local_access(memory, lanes, address, site, kind)

    def atomic(self, memory: Any, lanes: LaneSet, address: Any, item: int, site: int) -> None:
        """See `Collector.atomic`."""
        if self._alone(lanes):
            self._access(("atomic", memory, item, site), memory, lanes, address, site, "atomic")
        else:
            super().atomic(memory, lanes, address, item, site)

    def content(self, lanes: LaneSet, data: Any, address: Any) -> bytes:
        """See `Collector.content`."""
        return bytes(np.asarray(data.reshape(-1)[address]).tobytes()) if self._alone(lanes) else b""

    def updated(self, memory: Any, lanes: LaneSet, address: Any, before: bytes, after: bytes) -> None:
        """An atomic operation is done; one that changes nothing is a read."""
        if before != after:
            where = int(np.asarray(address).reshape(-1)[0])
            self._order.wrote(_lane(lanes), (memory, where), atomically=True)

    # -------------------------------------------------------------------------------------------- the end

    def finish(self) -> None:
        """Count what was noted, in the order in which it was first met."""
        for (what, *parts, when), notes in self._notes.items():
            lanes = self._set(notes)
            address = np.array([notes[lane] for lane in lanes.lane.tolist()])
            if what == "run":
                super().run(lanes, parts[0])
            elif what == "if":
                self._divided(lanes, [lane for lane, yes in notes.items() if yes], parts[0])
            elif what == "loop":
                asked = self._notes["run", self._tables.tests[parts[0]], when]
                self._divided(self._set(asked), list(notes), parts[0])
            elif what == "global":
                super().global_access(parts[0], lanes, address, *parts[1:])
            elif what == "shared":
                super().shared_access(parts[0], lanes, address, *parts[1:])
            elif what == "local":
                super().local_access(parts[0], lanes, address, *parts[1:])
            else:
                super().atomic(parts[0], lanes, address, *parts[1:])
        self._notes.clear()

    def _divided(self, lanes: LaneSet, through: list[int], branch: int) -> None:
        if 0 < len(through) < lanes.size:
            yes = self._set(through)
            no = LaneSet(self._batch, None, None, np.setdiff1d(lanes.lane, yes.lane))
            super().split(lanes, yes, no, branch)

    def _set(self, lanes: Iterable[int]) -> LaneSet:
        return LaneSet(self._batch, None, None, np.array(sorted(lanes), np.int64))


def _lane(lanes: LaneSet) -> int:
    return int(lanes.lane.reshape(-1)[0])
