"""The state of one launch: its operations, its findings, and who waits."""

from __future__ import annotations

import math
import os
from collections import Counter
from typing import Any

import numpy as np

from refsim.checks.findings import CHECK_GROUPS, Access, Finding, Report
from refsim.checks.order import SyncLog
from refsim.checks.spots import Spot
from refsim.devices import Device
from refsim.engine.batch import Batch
from refsim.engine.codegen import LaneCode
from refsim.engine.lanes import LaneSet
from refsim.engine.memory import GlobalMemory
from refsim.engine.stepwise import Waits
from refsim.engine.views import View

GROUP_OF_KIND = {kind: group for group, kinds in CHECK_GROUPS.items() for kind in kinds}


MOST_OUTSIDE = 20_000


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Stuck(Exception):
    """The launch cannot go on: no thread makes progress, or what they do has lost all meaning."""


class Run:
    """State of one launch, shared by its batches.

    Attributes
    ----------
    operations
        Site of every checked access, by serial number; serial 0 is never used.
    batches
        Batches in the order in which they ran; `Batch.number` is the position.
    """

    def __init__(
        self,
        code: LaneCode,
        device: Device,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        groups: frozenset[str],
        shared_bytes: int,
        note_negative: bool,
        counting: Any = None,
        native: str = "auto",
    ) -> None:
        self.code = code
        self.native = native
        self.cores = usable_cores()
        self.may_compile = True
        self.counting = counting
        self.device = device
        self.grid = grid
        self.block = block
        self.groups = groups
        self.racecheck = "racecheck" in groups
        self.initcheck = "initcheck" in groups
        self.shared_bytes = shared_bytes
        self.note_negative = note_negative
        self.threads = math.prod(block)
        self.all_threads = np.arange(self.threads, dtype=np.int64).reshape(-1, 1)
        self.sites = code.sites
        self.operations: list[int] = [0]
        self.grid_serial = 0  # accesses before this were ended by a barrier of the whole grid
        self.sync = SyncLog() if code.hands_on and self.racecheck else None
        self.batches: list[Batch] = []
        self.constants: dict[str, Any] = {}
        self.memories: list[GlobalMemory] = []
        self.report_out = Report(code.program.name, f"sim:{device.name}")
        self.racing: dict[int, tuple[Spot, Spot]] = {}  # the two accesses of races, by position of their finding
        self.outside: Counter[int] = Counter()  # accesses out of bounds by site, after the one that was reported
        self._seen: set[Any] = set()

    # ------------------------------------------------------------------------------------- coordinates

    def thread_axis(self, axis: int) -> Any:
        """Lane value of ``threadIdx`` along an axis."""
        bx, by, bz = self.block
        if self.block[axis] == 1:
            return 0
        if axis == 0:
            return self.all_threads if by == bz == 1 else self.all_threads % bx
        return self.all_threads // bx % by if axis == 1 else self.all_threads // (bx * by)

    def thread_of(self, thread: int) -> tuple[int, int, int]:
        """Three-dimensional coordinates of a linear thread number."""
        bx, by, _ = self.block
        return thread % bx, thread // bx % by, thread // (bx * by)

    # ------------------------------------------------------------------------------------- operations

    def operation(self, site: int) -> int:
        """Number of a new access or synchronisation."""
        operations = self.operations
        operations.append(site)
        return len(operations) - 1

    def batch_of(self, serials: Any) -> Any:
        """Batch in which each serial number was given out."""
        starts = np.array([batch.first_serial for batch in self.batches])
        return np.searchsorted(starts, serials, side="right") - 1

    @property
    def columns_of_batch(self) -> Any:
        """Number of blocks of each batch."""
        return np.array([batch.columns for batch in self.batches])

    # ----------------------------------------------------------------------------------------- findings

    def _key(self, kind: str, a: int, b: int) -> Any:
        lines = frozenset(
            (self.sites[s].place.file, self.sites[s].place.line, self.sites[s].array) if s >= 0 else s for s in (a, b)
        )
        return kind, lines

    def unreported(self, kind: str, a: int, b: int) -> bool:
        """True if this kind of finding is wanted and not yet reported for this pair of lines."""
        return GROUP_OF_KIND[kind] in self.groups and self._key(kind, a, b) not in self._seen

    def access(self, site: int, index: Any, block: Any, thread: Any, memory: Any = None) -> Access:
        """One side of a finding; an access through a pointer is named after its `memory`, which `index` counts in."""
        s = self.sites[site]
        array = s.array if memory is None else memory.name.split("@")[0]
        return Access(s.place.file, s.place.line, s.place.text, s.action, array, index, block, thread)

    def report(
        self,
        kind: str,
        severity: str,
        message: str,
        me: Access,
        other: Access | None,
        view: View | None,
        pair: tuple[int, int],
    ) -> None:
        """Add a finding, unless its group is off or its lines were reported."""
        if not self.unreported(kind, *pair):
            return
        if severity == "error":
            self._seen.add(self._key(kind, *pair))
        elif (severity, *self._key(kind, *pair)) in self._seen:
            return
        else:
            self._seen.add((severity, *self._key(kind, *pair)))
        self.report_out.findings.append(
            Finding(
                kind=kind,
                kernel=self.code.program.name,
                message=message,
                severity=severity,
                file=me.file,
                line=me.line,
                source=me.source,
                array=me.array,
                index=me.index,
                block=me.block,
                thread=me.thread,
                dtype=None if view is None else view.dtype,
                space=None if view is None else view.memory.space,
                other=other,
            )
        )

    # ----------------------------------------------------------------------------------------- progress

    def outside_again(self, batch: Any, lanes: LaneSet, site: int) -> None:
        """Another access out of bounds, in a line that was reported.

        A loop whose end was read out of bounds may run for hours. A GPU would have ended the kernel at the first.
        """
        if GROUP_OF_KIND["out_of_bounds"] not in self.groups:
            return
        self.outside[site] += 1
        if self.outside[site] < MOST_OUTSIDE:
            return
        column, thread = int(lanes.b.reshape(-1)[0]), int(lanes.t.reshape(-1)[0])
        me = self.access(site, None, batch.block_of(column), self.thread_of(thread))
        message = f"the launch ended after {MOST_OUTSIDE:,} accesses out of bounds here; its results are incomplete"
        self.report("out_of_bounds", "note", message, me, None, None, pair=(site, -2))
        raise Stuck

    def fingerprint(self, batch: Batch) -> tuple[Any, ...]:
        """The memory that a spinning thread could see change."""
        shared = tuple(memory.data.tobytes() for memory in batch.memories)
        written = tuple(m.raw.tobytes() for m in self.memories if m.written)
        return hash(shared), hash(written), batch.barrier_objects.fingerprint()

    def stuck(self, batch: Batch, lanes: LaneSet, site: int) -> None:
        """A loop repeats itself in lockstep: a deadlock if nobody else is left."""
        if self.code.may_wait and (batch.remaining or not batch.covers_alive(lanes)):
            raise Waits
        self.deadlock(batch, lanes, Counter({("loop", site): lanes.size}))

    def deadlock(self, batch: Batch, lanes: LaneSet, where: Counter[tuple[str, int]]) -> None:
        """Nobody can go on: report who waits where, and end the launch."""
        ways = {"loop": "in the loop", "barrier": "at the barrier", "block_vote": "at the barrier"}
        parts = [
            f"{count} thread{'s' * (count > 1)} {ways.get(kind, 'at the warp operation')} "
            f"at line {self.sites[site].place.line}"
            for (kind, site), count in where.most_common()
        ]
        site = where.most_common(1)[0][0][1]
        column, thread = int(lanes.b.reshape(-1)[0]), int(lanes.t.reshape(-1)[0])
        me = self.access(site, None, batch.block_of(column), self.thread_of(thread))
        message = f"{', '.join(parts)} wait for what can never happen"
        self.report("deadlock", "error", message, me, None, None, pair=(site, site))
        raise Stuck
