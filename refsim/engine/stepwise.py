"""Groups of lanes that take turns: single threads, warps or blocks that wait for each other.

Lockstep cannot finish a spin lock: the lanes that got through wait for those that did not. Here every group runs on
its own, as a generator of lane code that stops at barriers, warp operations and the ends of ``while`` loops (with
some schedules also at every access), and takes turns with all other groups of the batch. What nobody can ever end is
a deadlock if the groups are single threads; otherwise smaller groups must try.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.engine.lane_types import lane_dtype, same_value
from refsim.engine.lanes import LaneSet
from refsim.engine.matrix import register_types
from refsim.engine.turns import Turns

if TYPE_CHECKING:
    from refsim.engine.batch import Batch

MOST_GROUPS = 16384
MOST_PATIENCE = 64
OF_A_WARP = frozenset({"warp", "warp_barrier", "matrix"})
WAITING = OF_A_WARP | {"barrier", "grid_barrier", "block_vote"}


class Waits(Exception):
    """Groups wait for others that cannot run: the launch must start again with smaller groups."""


class Group:
    """Some threads of one block: their generator, and what it stopped at: (kind, set, site, payload).

    `number` is the first thread, `column` the block within the batch.
    """

    def __init__(self, lanes: LaneSet, steps: Generator[Any, Any, Any]) -> None:
        self.batch = lanes.batch
        self.size = lanes.size
        self.steps = steps
        self.number = int(lanes.t.reshape(-1)[0])
        self.column = int(lanes.b.reshape(-1)[0])
        self.block = int(self.batch.blocks[self.column])
        self.stop: tuple[str, LaneSet, int, Any] | None = None
        self.done = False
        self.moved = True
        self.spins = False  # since its last stop at the end of a loop
        self.pause = 0  # rounds to sit out, longer and longer while it spins
        self._patience = 1
        self._trips: dict[int, tuple[int, Any]] = {}

    @property
    def kind(self) -> str:
        """What the group stopped at; empty while it has not begun."""
        return "" if self.stop is None else self.stop[0]

    @property
    def line(self) -> int:
        """Source line of the stop."""
        return 0 if self.stop is None else self.batch.run.sites[self.stop[2]].place.line

    @property
    def here(self) -> LaneSet:
        """The lanes that stopped."""
        assert self.stop is not None
        return self.stop[1]

    def advance(self, value: Any = None) -> None:
        """Run to the next stop."""
        self.batch.group = self
        try:
            self.stop = self.steps.send(value) if self.stop is not None else next(self.steps)
        except StopIteration:
            self.done = True
            self.stop = None
        self._compare()

    def _compare(self) -> None:
        """Whether the stop is news: not so if a loop repeats itself with the same lanes and variables."""
        kind = self.kind
        if kind == "access":
            self.moved = not self.spins
            return
        self.moved, self.spins = True, False
        patience, self._patience = self._patience, 1
        if kind != "loop":
            self._trips.clear()
            return
        assert self.stop is not None
        _, lanes, site, payload = self.stop
        before, self._trips[site] = self._trips.get(site), (lanes.size, payload[0])
        if before is not None and before[0] == lanes.size and all(map(same_value, before[1], payload[0])):
            self.moved, self.spins = False, True
            self.pause = patience + self.number * 7 % patience  # so that not all spin in the same round
            self._patience = min(2 * patience, MOST_PATIENCE)


def groups_of(batch: Batch, lanes: str, turns: Turns) -> list[LaneSet]:
    """The sets of lanes that take turns: single threads, the warps or the blocks of a batch."""
    sets = []
    for column in range(batch.columns):
        alone = lanes == "thread" or turns.alone(int(batch.blocks[column]))
        step = 1 if alone else batch.run.device.warp_size if lanes == "warp" else batch.threads
        for first in range(0, batch.threads, step):
            rows = np.arange(first, min(first + step, batch.threads))
            sets.append(LaneSet(batch, None if len(rows) == batch.threads else rows, np.array([column])))
    return sets


class Schedule:
    """Takes turns among the groups of a batch until all have ended or none can."""

    def __init__(self, batch: Batch, function: Any, values: list[Any], lanes: str, turns: Turns) -> None:
        self.batch = batch
        self.turns = turns
        self.warp_size = batch.run.device.warp_size
        self.groups = [Group(s, function(batch, s, *values)) for s in groups_of(batch, lanes, turns)]
        self.smallest = all(group.size == 1 for group in self.groups)

    def run(self) -> None:
        """Run all groups to their end."""
        alive = self.groups
        stalled, known = False, None
        while alive:
            moved = False
            for group in alive if stalled else self.turns.order(alive):
                if group.kind in WAITING or group.done or self.turns.holds(group):
                    continue
                if group.pause > 0 and not stalled:
                    group.pause -= 1
                    continue
                moved |= self._turn(group, stalled)
            alive = [group for group in alive if not group.done]
            released = self._release_warps(alive, force=False) or self._release_barriers(alive)
            if alive and all(group.kind == "grid_barrier" for group in alive):
                self._grid_barrier(alive)
                released = True
            if moved or released:
                stalled = False
                continue
            # groups repeat loops with unchanged variables; memory decides whether that can end
            now = self.batch.run.fingerprint(self.batch) if any(group.kind == "loop" for group in alive) else None
            if not stalled or known != now:
                stalled, known = True, now
                continue
            stalled = False
            if alive and not self.turns.let_go() and not self._release_warps(alive, force=True):
                if not self.smallest:
                    raise Waits
                self._deadlock(alive)

    def _turn(self, group: Group, whole_trip: bool) -> bool:
        """Let a group go on for a while, or for a whole trip of its loop; True if it got anywhere."""
        moved = False
        left = 0 if whole_trip else self.turns.burst()
        while True:
            self.turns.passed(group)
            self._step(group)
            moved |= group.moved
            left -= 1
            ended = group.kind == "loop" if whole_trip else left <= 0 or not group.moved
            if ended or group.done or group.kind in WAITING or self.turns.holds(group):
                return moved

    def _step(self, group: Group, value: Any = None) -> None:
        """Advance a group; warp operations of whole warps take place at once."""
        group.advance(value)
        while group.kind in OF_A_WARP and group.size > 1:
            assert group.stop is not None
            kind, lanes, site, payload = group.stop
            group.advance(getattr(self.batch, kind)(lanes, site, *payload))

    # -------------------------------------------------------------------------------------- barriers

    def _release_barriers(self, alive: list[Group]) -> bool:
        """Let the blocks go on in which every living group waits at a barrier."""
        released = False
        blocks: dict[int, list[Group]] = {}
        for group in alive:
            blocks.setdefault(group.column, []).append(group)
        for groups in blocks.values():
            if not all(group.kind in ("barrier", "block_vote") for group in groups):
                continue
            released = True
            sites = Counter(group.stop[2] for group in groups if group.stop is not None)
            for site in sites:  # different barriers in one block: each is reached by a part of it
                here = [group for group in groups if group.stop is not None and group.stop[2] == site]
                self._barrier(here, site)
        return released

    def _barrier(self, groups: list[Group], site: int) -> None:
        lanes = self._together(groups)
        assert groups[0].stop is not None
        payload = groups[0].stop[3]
        result = None
        if groups[0].kind == "barrier":
            self.batch.barrier(lanes, site)
        else:
            parts = [group.here.full(group.stop[3][1], bool) for group in groups if group.stop is not None]
            predicate = np.concatenate(parts) if lanes.flat is None else np.concatenate([p.reshape(-1) for p in parts])
            result = int(self.batch.block_vote(lanes, site, payload[0], predicate).reshape(-1)[0])
        self._go_on(groups, [result] * len(groups))

    def _grid_barrier(self, groups: list[Group]) -> None:
        lanes = np.sort(np.concatenate([np.broadcast_to(g.here.lane, g.here.shape).reshape(-1) for g in groups]))
        assert groups[0].stop is not None
        self.batch.grid_barrier(LaneSet(self.batch, None, None, lanes), groups[0].stop[2])
        self._go_on(groups, [None] * len(groups))

    def _together(self, groups: list[Group]) -> LaneSet:
        """The set of the lanes of some groups of one block, in ascending order."""
        if len(groups) == 1:
            return groups[0].here
        rows = np.concatenate([group.here.t.reshape(-1) for group in groups])
        whole = len(rows) == self.batch.threads
        return LaneSet(self.batch, None if whole else rows, np.array([groups[0].column]))

    def _go_on(self, groups: list[Group], results: list[Any]) -> None:
        if self.batch.counts is not None:
            self.batch.counts.met(lane for group in groups for lane in group.here.lane.reshape(-1).tolist())
        for group, result in zip(groups, results, strict=True):
            self._step(group, result)

    # ----------------------------------------------------------------------------------------- warps

    def _release_warps(self, alive: list[Group], force: bool) -> bool:
        """Perform warp operations for which all named living lanes have come; with `force` for those that are here."""
        released = False
        warps: dict[tuple[int, int], list[Group]] = {}
        for group in alive:
            if group.size == 1:
                warps.setdefault((group.column, group.number // self.warp_size), []).append(group)
        for members in warps.values():
            sites = {t.stop[2] for t in members if t.stop is not None and t.kind in OF_A_WARP}
            for site in sorted(sites):
                here = [t for t in members if t.stop is not None and t.stop[2] == site and t.kind in OF_A_WARP]
                if here and (force or all(self._complete(thread, here, members) for thread in here)):
                    self._warp(here, site)
                    released = True
        return released

    def _complete(self, thread: Group, here: list[Group], members: list[Group]) -> bool:
        """True if every living lane that a thread's mask names has come."""
        assert thread.stop is not None
        kind, _, _, payload = thread.stop
        if kind == "matrix":
            return all(other in here for other in members)
        args = payload[1] if kind == "warp" else payload
        if not args:
            return True
        mask = int(np.asarray(args[0]).reshape(-1)[0])
        return all(other in here for other in members if mask >> (other.number % self.warp_size) & 1)

    def _warp(self, threads: list[Group], site: int) -> None:
        lanes = self._together(threads)
        assert threads[0].stop is not None
        kind, _, _, payload = threads[0].stop
        if kind == "warp_barrier":
            masks = self._column(threads, lambda p: p[0], np.int64)
            self.batch.warp_barrier(lanes, site, masks)
            self._go_on(threads, [None] * len(threads))
            return
        if kind == "matrix":
            spec, args = payload
            types = register_types(spec)
            values = tuple(
                self._column(threads, lambda p, i=i: p[1][i], lane_dtype(types[i])) for i in range(len(args))
            )
            results = [np.broadcast_to(r, (len(threads), 1)) for r in self.batch.matrix(lanes, site, spec, values)]
            self._go_on(threads, [tuple(_scalar(r[i, 0]) for r in results) for i in range(len(threads))])
            return
        op, args, dtype = payload
        kinds = [np.int64, lane_dtype(dtype), np.int64, np.int64]
        columns = tuple(self._column(threads, lambda p, i=i: p[1][i], kinds[i]) for i in range(len(args)))
        result = np.broadcast_to(self.batch.warp(lanes, site, op, columns, dtype), (len(threads), 1))
        self._go_on(threads, [_scalar(result[i, 0]) for i in range(len(threads))])

    @staticmethod
    def _column(threads: list[Group], part: Any, dtype: Any) -> Any:
        values = [np.asarray(part(t.stop[3])).reshape(-1)[0] for t in threads if t.stop is not None]
        return np.array(values, dtype).reshape(-1, 1)

    # -------------------------------------------------------------------------------------- deadlock

    def _deadlock(self, alive: list[Group]) -> None:
        where = Counter((group.kind, group.stop[2]) for group in alive if group.stop is not None)
        self.batch.run.deadlock(self.batch, alive[0].here, where)


def _scalar(value: Any) -> Any:
    return value.item() if value.dtype.kind in "biu" else value
