"""Barrier objects in shared memory (``mbarrier``), and the named barriers of a block, which work alike.

An object expects a number of arrivals in each phase; the last one ends the phase and begins the next. Its state is
opaque to kernels: it is kept here, by the place of the object, for every block of the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.engine.joins import rejoin_one
from refsim.engine.lanes import LaneSet
from refsim.engine.pointers import Pointer

if TYPE_CHECKING:
    from refsim.engine.batch import Batch

OBJECT_BYTES = 8


class _Object:
    """State of one barrier object in every block: arrivals expected and still missing, and the number of the phase."""

    def __init__(self, columns: int) -> None:
        self.expected = np.zeros(columns, np.int64)  # 0 where there is none
        self.missing = np.zeros(columns, np.int64)
        self.phase = np.zeros(columns, np.int64)


class BarrierObjects:
    """The barrier objects of a batch."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.objects: dict[tuple[int, int], _Object] = {}

    def fingerprint(self) -> int:
        """Changes with every arrival."""
        return hash(tuple((key, o.missing.tobytes(), o.phase.tobytes()) for key, o in self.objects.items()))

    def run(self, lanes: LaneSet, site: int, op: str, pointer: Any, args: tuple[Any, ...]) -> Any:
        """Perform an operation for every lane.

        Parameters
        ----------
        op
            ``init`` (number of arrivals), ``arrive`` and ``drop`` (arrivals; the phase they belong to), ``named``
            (arrivals expected; the phase), ``test`` (phase; whether it has ended), ``parity`` (0 or 1; whether the last
            phase of that parity has ended), ``inval``.
        """
        if isinstance(pointer, Pointer) and not pointer.varies:
            return self._one(lanes, site, op, pointer.memory, pointer.offset, args)
        options = pointer.alternatives()
        condition, first = options[0]
        if condition is True:
            condition = first.offset == first.offset.reshape(-1)[0]
        yes, no = lanes.split(condition)
        if yes is not None and no is None:
            if first.varies and (first.offset != first.offset.reshape(-1)[0]).any():
                return self.run(yes, site, op, first, args)
            offset = int(np.asarray(first.offset).reshape(-1)[0])
            return self._one(yes, site, op, first.memory, offset, args)
        parts = []
        for part in (yes, no):
            assert part is not None
            there = pointer.cut_to(part)
            if part is yes:
                there = first.cut_to(part)
            parts.append(self.run(part, site, op, there, tuple(part.cut(arg) for arg in args)))
        assert yes is not None
        assert no is not None
        if parts[0] is None:
            return None
        return rejoin_one(lanes, yes, parts[0], no, parts[1], bool if op in ("test", "parity") else np.uint64)

    def _one(self, lanes: LaneSet, site: int, op: str, memory: Any, offset: int, args: tuple[Any, ...]) -> Any:
        """An operation of all lanes on one object."""
        batch = self.batch
        named = op == "named"
        if not named and not self._usable(lanes, site, op, memory, offset):
            return {"arrive": 0, "drop": 0, "test": True, "parity": True}.get(op)
        key = (memory.number, offset)
        if key not in self.objects:
            self.objects[key] = _Object(batch.columns)
        found = self.objects[key]
        here = np.zeros(batch.columns, np.int64)  # lanes in each block
        if lanes.flat is None:
            here[lanes.b.reshape(-1)] = lanes.shape[0]
        else:
            np.add.at(here, lanes.flat % batch.columns, 1)
        if op == "init" or named:
            count = self._by_column(lanes, args[0])
            fresh = here > 0 if op == "init" else (here > 0) & (found.missing == found.expected)
            found.expected[fresh] = found.missing[fresh] = count[fresh]
            if op == "init":
                found.phase[fresh] = 0
                return None
        if op == "inval":
            found.expected[here > 0] = 0
            return None
        if op in ("test", "parity"):
            return self._test(lanes, site, key, found, op, args[0])
        each = self._by_column(lanes, args[0]) if op == "arrive" else 1
        return self._arrive(lanes, site, key, found, op, here * each)

    def _by_column(self, lanes: LaneSet, value: Any) -> Any:
        """A number that is the same in all lanes of a block."""
        out = np.zeros((self.batch.threads, self.batch.columns), np.int64)
        lanes.put(out, value)
        return out.max(axis=0)

    def _arrive(self, lanes: LaneSet, site: int, key: Any, found: _Object, op: str, total: Any) -> Any:
        batch = self.batch
        token = found.phase.copy()
        if batch.clocks is not None:
            batch.clocks.arrive(lanes, key, batch.run.operation(site))
        if op == "drop":
            found.expected -= total
        left = found.missing - total
        ended = (left <= 0) & (total > 0)
        expected = np.maximum(found.expected, 1)
        phases = np.where(ended, 1 + -left // expected, 0)
        found.phase += phases
        found.missing = left + phases * expected
        if ended.any() and batch.clocks is not None:
            batch.clocks.complete(key, ended)
        return self._of_lanes(lanes, token.astype(np.uint64))

    def _test(self, lanes: LaneSet, site: int, key: Any, found: _Object, op: str, wanted: Any) -> Any:
        now = self._of_lanes(lanes, found.phase)
        wanted = wanted.astype(np.int64) if isinstance(wanted, np.ndarray) else int(wanted)
        ended = now != wanted if op == "test" else (now & 1) != (wanted & 1)
        if not isinstance(ended, np.ndarray):
            ended = bool(ended)
        through, _ = lanes.split(ended)
        if through is not None and self.batch.clocks is not None:
            for memory in self.batch.memories:
                if memory.shadow is not None:
                    memory.shadow.warp_barrier()  # what was read is checked with what was known
            self.batch.clocks.waited(through, key)
        return ended

    @staticmethod
    def _of_lanes(lanes: LaneSet, values: Any) -> Any:
        """A number of each block as a lane value."""
        if (values == values[0]).all():
            return int(values[0])
        return values[lanes.b] if lanes.flat is None else values[lanes.flat % lanes.batch.columns]

    def _usable(self, lanes: LaneSet, site: int, op: str, memory: Any, offset: int) -> bool:
        """Report a place that is no initialised object in shared memory; its checks are those of an access."""
        if getattr(memory, "space", "") != "shared" or not 0 <= offset <= memory.bytes - OBJECT_BYTES:
            self.batch.report_bad_pointer(lanes, memory, offset, "uint64", site)
            return False
        if offset % OBJECT_BYTES:
            self.batch.report_misaligned(lanes, memory, offset, True, OBJECT_BYTES, site)
            return False
        view = memory.window(str(memory.data.dtype))
        if memory.shadow is not None:
            first = offset // memory.word
            if op == "init":
                for word in range(first, (offset + OBJECT_BYTES) // memory.word):
                    memory.shadow.write(lanes, view, word, 0, site)
            else:
                memory.shadow.atomic(lanes, view, first, site)
        known = self.objects.get((memory.number, offset))
        if op != "init" and (known is None or not known.expected[lanes.b.reshape(-1)].all()):
            self.batch.report_uninitialized(lanes, view, offset // memory.word, True, site)
            return False
        return True
