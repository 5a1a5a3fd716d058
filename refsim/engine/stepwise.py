"""Threads one at a time: for kernels in which threads wait for each other in loops.

Lockstep cannot finish a spin lock: the lanes that got through wait for those that did not. Here every thread runs
on its own, as a generator of lane code that stops at barriers, warp operations and the ends of ``while`` loops, and
takes turns with all other threads of the batch. What nobody can ever end is a deadlock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.engine.lane_types import lane_dtype, same_value
from refsim.engine.lanes import LaneSet
from refsim.engine.matrix import register_types

if TYPE_CHECKING:
    from refsim.engine.batch import Batch

MOST_THREADS = 16384
OF_A_WARP = frozenset({"warp", "warp_barrier", "matrix"})
WAITING = OF_A_WARP | {"barrier", "grid_barrier", "block_vote"}


class Thread:
    """One thread: its generator, and what it stopped at: (kind, set, site, payload)."""

    def __init__(self, lanes: LaneSet, steps: Generator[Any, Any, None]) -> None:
        self.lanes = lanes
        self.steps = steps
        self.number = int(lanes.t.reshape(-1)[0])
        self.column = int(lanes.b.reshape(-1)[0])
        self.stop: tuple[str, LaneSet, int, Any] | None = None
        self.done = False
        self.moved = True

    @property
    def kind(self) -> str:
        """What the thread stopped at; empty while it can go on."""
        return "" if self.stop is None else self.stop[0]

    def advance(self, batch: Batch, value: Any = None) -> None:
        """Run to the next stop."""
        before, exited = self.stop, batch.exited
        try:
            self.stop = self.steps.send(value) if before is not None else next(self.steps)
        except StopIteration:
            self.done = True
            self.stop = None
            if batch.exited == exited:
                batch.exit(self.lanes)
        after = self.stop
        self.moved = True
        if before is not None and after is not None and before[0] == after[0] == "loop" and before[2] == after[2]:
            self.moved = not all(map(same_value, before[3][0], after[3][0]))


class Schedule:
    """Takes turns among the threads of a batch until all have ended or none can."""

    def __init__(self, batch: Batch, function: Any, values: list[Any]) -> None:
        self.batch = batch
        self.warp_size = batch.run.device.warp_size
        self.threads = []
        for column in range(batch.columns):
            for number in range(batch.threads):
                lanes = LaneSet(batch, np.array([number]), np.array([column]))
                self.threads.append(Thread(lanes, function(batch, lanes, *values)))

    def run(self) -> None:
        """Run all threads to their end."""
        alive = self.threads
        known: Any = None
        while alive:
            moved = False
            for thread in alive:
                if thread.kind not in WAITING:
                    thread.advance(self.batch)
                    moved |= thread.moved
            alive = [thread for thread in alive if not thread.done]
            released = self._release_warps(alive, force=False) or self._release_barriers(alive)
            if alive and all(thread.kind == "grid_barrier" for thread in alive):
                self._grid_barrier(alive)
                released = True
            if moved or released:
                known = None
                continue
            if any(thread.kind == "loop" for thread in alive):
                # threads repeat loops with unchanged variables; memory decides whether that can end
                now = self.batch.run.fingerprint(self.batch)
                if known != now:
                    known = now
                    continue
            if alive and not self._release_warps(alive, force=True):
                self._deadlock(alive)

    # -------------------------------------------------------------------------------------- barriers

    def _release_barriers(self, alive: list[Thread]) -> bool:
        """Let the blocks go on in which every living thread waits at a barrier."""
        released = False
        blocks: dict[int, list[Thread]] = {}
        for thread in alive:
            blocks.setdefault(thread.column, []).append(thread)
        for threads in blocks.values():
            if not all(thread.kind in ("barrier", "block_vote") for thread in threads):
                continue
            released = True
            sites = Counter(thread.stop[2] for thread in threads if thread.stop is not None)
            for site in sites:  # different barriers in one block: each is reached by a part of it
                here = [thread for thread in threads if thread.stop is not None and thread.stop[2] == site]
                self._barrier(here, site)
        return released

    def _barrier(self, threads: list[Thread], site: int) -> None:
        lanes = self._together(threads)
        assert threads[0].stop is not None
        payload = threads[0].stop[3]
        results: list[Any] = [None] * len(threads)
        if threads[0].kind == "barrier":
            self.batch.barrier(lanes, site)
        else:
            predicate = np.array([[bool(np.any(t.stop[3][1]))] for t in threads if t.stop is not None])
            count = self.batch.block_vote(lanes, site, payload[0], predicate)
            results = [int(count.reshape(-1)[0])] * len(threads)
        self._go_on(threads, results)

    def _grid_barrier(self, threads: list[Thread]) -> None:
        lanes = np.sort(np.array([thread.number * self.batch.columns + thread.column for thread in threads]))
        assert threads[0].stop is not None
        self.batch.grid_barrier(LaneSet(self.batch, None, None, lanes), threads[0].stop[2])
        self._go_on(threads, [None] * len(threads))

    def _together(self, threads: list[Thread]) -> LaneSet:
        """The set of some threads of one block, in ascending order."""
        rows = np.array([thread.number for thread in threads])
        whole = len(rows) == self.batch.threads
        return LaneSet(self.batch, None if whole else rows, np.array([threads[0].column]))

    def _go_on(self, threads: list[Thread], results: list[Any]) -> None:
        for thread, result in zip(threads, results, strict=True):
            thread.advance(self.batch, result)

    # ----------------------------------------------------------------------------------------- warps

    def _release_warps(self, alive: list[Thread], force: bool) -> bool:
        """Perform warp operations for which all named living lanes have come; with `force` for those that are here."""
        released = False
        warps: dict[tuple[int, int], list[Thread]] = {}
        for thread in alive:
            warps.setdefault((thread.column, thread.number // self.warp_size), []).append(thread)
        for members in warps.values():
            sites = {t.stop[2] for t in members if t.stop is not None and t.kind in OF_A_WARP}
            for site in sites:
                here = [t for t in members if t.stop is not None and t.stop[2] == site]
                if force or all(self._complete(thread, here, members) for thread in here):
                    self._warp(here, site)
                    released = True
        return released

    def _complete(self, thread: Thread, here: list[Thread], members: list[Thread]) -> bool:
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

    def _warp(self, threads: list[Thread], site: int) -> None:
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
    def _column(threads: list[Thread], part: Any, dtype: Any) -> Any:
        values = [np.asarray(part(t.stop[3])).reshape(-1)[0] for t in threads if t.stop is not None]
        return np.array(values, dtype).reshape(-1, 1)

    # -------------------------------------------------------------------------------------- deadlock

    def _deadlock(self, alive: list[Thread]) -> None:
        where = Counter((thread.kind, thread.stop[2]) for thread in alive if thread.stop is not None)
        self.batch.run.deadlock(self.batch, alive[0].lanes, where)


def _scalar(value: Any) -> Any:
    return value.item() if value.dtype.kind in "biu" else value
