"""Counting one launch: the memories and collectors that the engine is to use, and what they counted in the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from refsim.counters.by_thread import ThreadCollector
from refsim.counters.collector import Collector
from refsim.counters.memory import CountingGlobalMemory, CountingLocalMemory, CountingSharedMemory
from refsim.counters.mix import flops
from refsim.counters.record import Counters, Counts, Line, SharedArray, Traffic
from refsim.dialect import INTEGERS, Place


class Counting:
    """What `refsim.engine.launch` asks for when a launch counts."""

    def __init__(self, constants: frozenset[str] = frozenset()) -> None:
        self.constants = constants  # parameters that stand for ``__constant__`` variables

    shared_memory = CountingSharedMemory
    local_memory = CountingLocalMemory

    def global_memory(
        self, name: str, bytes_: int, granule: int, low: int, raw: Any, array: Any, constant: bool
    ) -> CountingGlobalMemory:
        """Memory of arguments; `array` is the one that lies lowest."""
        memory = CountingGlobalMemory(name, bytes_, granule, low, raw)
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        memory.start = low - owner.ctypes.data if array.size else 0
        if constant or name in self.constants:
            memory.kind_of_space = "constant"
        return memory

    def collector(self, batch: Any) -> Collector:
        """Counts of a new batch."""
        tables = batch.run.code.tables
        return ThreadCollector(batch, tables) if tables.stepwise else Collector(batch, tables)

    def result(self, run: Any) -> Counters:
        """The counters of a launch that has ended."""
        total = Counters(kernel=run.code.program.name, device=run.report_out.device, warp_size=run.device.warp_size)
        lines: dict[Place, Counts] = {}
        for batch in run.batches:
            batch.counts.finish()
        local = [memory for batch in run.batches for memory in batch.counts.local]
        in_memory = {memory.label for memory in local if memory.varies}
        registers = {memory.label for memory in local} - in_memory
        for batch in run.batches:
            self._batch(batch, run, lines, in_memory, registers)
            for memory in batch.counts.shared:
                self._shared(memory, run, total)
        for place, counts in lines.items():
            total.lines.setdefault(_line(place), Counts()).add(counts)
            total.add(counts)
        return total

    def _batch(
        self, batch: Any, run: Any, lines: dict[Place, Counts], in_memory: set[str], registers: set[str]
    ) -> None:
        collector, tables, home = batch.counts, run.code.tables, run.code.program.place
        for piece, (threads, warps) in zip(tables.pieces, collector.runs, strict=True):
            if not threads:
                continue
            for place, mix in piece.items():
                counts = lines.setdefault(place or home, Counts())
                for (kind, dtype), number in mix.items():
                    if kind == "operations of a warp":
                        if dtype not in INTEGERS:
                            counts.operations[dtype] += warps * number
                        continue
                    if kind == "branch":
                        counts.branches += warps * number
                        kind = "control"
                    counts.instructions[kind] += threads * number
                    counts.warp_instructions[kind] += warps * number
                    if flops(kind, dtype):
                        counts.operations[dtype] += threads * number * flops(kind, dtype)
        for place, warps in zip(tables.splits, collector.splits, strict=True):
            if warps:
                lines.setdefault(place or home, Counts()).divergent_branches += warps
        for (site, space, kind), traffic in collector.traffic.items():
            if space in registers:
                continue
            self._traffic(lines.setdefault(run.sites[site].place, Counts()), space, kind, traffic, in_memory)

    @staticmethod
    def _traffic(counts: Counts, space: str, kind: str, traffic: Traffic, in_memory: set[str]) -> None:
        space = "local" if space in in_memory else space
        counts.traffic.setdefault((space, kind), Traffic()).add(traffic)
        name = "atomic" if kind == "atomic" else f"{space}_{kind}"
        counts.instructions[name] += traffic.lanes
        counts.warp_instructions[name] += traffic.requests

    @staticmethod
    def _shared(memory: CountingSharedMemory, run: Any, total: Counters) -> None:
        name = memory.name.split("@")[0]
        declared = next((a for a in run.code.program.allocations if a.name == memory.name), None)
        shape = declared.shape if declared is not None and not declared.dynamic else (memory.size,)
        dtype = declared.dtype if declared is not None else str(memory.data.dtype)
        worst = {
            kind: (ways, words, _line(run.sites[site].place)) for kind, (ways, words, site) in memory.worst.items()
        }
        array = SharedArray(name, dtype, shape, run.device.shared_banks, memory.degrees, worst)
        others = {a.name.split("@")[0] for a in run.code.program.allocations if a.name < memory.name}
        key = memory.name if name in others else name  # device functions may have arrays of one name
        if key in total.shared_arrays:
            total.shared_arrays[key].add(array)
        else:
            total.shared_arrays[key] = array


def _line(place: Place) -> Line:
    return Line(place.file, place.line, place.text)
