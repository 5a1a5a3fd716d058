"""A batch: the blocks that run in lockstep, their barriers, and what their accesses report."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.checks.clocks import Clocks
from refsim.checks.reports import Reports
from refsim.checks.shared_shadow import SharedShadow
from refsim.checks.tags import MOST_LANES
from refsim.dialect import Allocation, RecordType, dtype_name
from refsim.engine import atomics, matrix, shared_addresses, warp
from refsim.engine.barrier_objects import BarrierObjects
from refsim.engine.copies import Copies
from refsim.engine.joins import Exit, merge
from refsim.engine.lane_types import poison, same_value
from refsim.engine.lanes import Irregular, LaneSet
from refsim.engine.memory import LocalMemory, SharedMemory
from refsim.engine.mixed_shared import MixedSharedMemory
from refsim.engine.pointers import UNSIGNED, Pointer
from refsim.engine.rearranged import RecordMemory
from refsim.engine.views import View
from refsim.errors import UnsupportedError

if TYPE_CHECKING:
    from refsim.engine.run import Run


class Batch(Reports):
    """State of the blocks of one batch while they run.

    Attributes
    ----------
    threads, columns
        Threads per block and number of blocks.
    blocks
        Linear block numbers, one per column.
    bar, bar_low
        First serial number of the current barrier interval: one number, or one per column; and its minimum.
    dirty
        True once something outside the batch changed, so that it can no longer be restarted.
    uneven
        True once a branch split threads of several blocks unevenly.
    """

    def __init__(self, run: Run, number: int, blocks: Any, may_restart: bool, remaining: bool) -> None:
        self.run = run
        self.number = number
        self.blocks = blocks
        self.threads = run.threads
        self.columns = len(blocks)
        if self.threads * self.columns > MOST_LANES:
            raise UnsupportedError(
                f"{self.threads * self.columns} threads at once: at most {MOST_LANES} can meet in a barrier of the "
                "grid or wait for each other; launch a smaller grid",
                run.code.program.place,
            )
        self.all_threads = run.all_threads
        self.all_columns = np.arange(self.columns, dtype=np.int64).reshape(1, -1)
        self.may_restart = may_restart
        self.remaining = remaining
        self.dirty = False
        self.uneven = False
        self.first_serial = len(run.operations)
        self.bar: Any = self.first_serial
        self.bar_low = self.first_serial
        self.warp_barriers: list[warp.Meeting] = []
        self.everything = LaneSet(self, None, None)
        self.exits: list[LaneSet] = []
        self.exited = 0
        self.dynamic: SharedMemory | None = None
        self.mixed: MixedSharedMemory | None = None
        self.allocated: dict[str, Any] = {}
        self.copying = False
        self.asynchronous_copies: Copies | None = None
        self.clocks = Clocks(self) if run.code.barrier_objects and run.racecheck else None
        self.barrier_objects = BarrierObjects(self)
        self.memories: list[SharedMemory] = []
        self.native: dict[int, dict[Any, Any]] = {}  # what loops of machine code remember, by loop
        self.counts: Any = None if run.counting is None else run.counting.collector(self)

    # ------------------------------------------------------------------------------------- coordinates

    def index_values(self, name: str) -> Any:
        """Lane value of ``threadIdx.x`` and its kin."""
        run = self.run
        kind, _, axis_name = name.partition(".")
        if kind == "laneid":
            return self.all_threads % run.device.warp_size
        axis = "xyz".index(axis_name)
        if kind == "blockDim":
            return run.block[axis]
        if kind == "gridDim":
            return run.grid[axis]
        if kind == "threadIdx":
            return run.thread_axis(axis)
        gx, gy, _ = run.grid
        linear = self.blocks
        values = (linear % gx, linear // gx % gy, linear // (gx * gy))[axis]
        first = int(values[0])
        return first if (values == first).all() else values.reshape(1, -1)

    # ------------------------------------------------------------------------------------- allocations

    def allocate(self, allocation: Allocation, word: int) -> Any:
        """A shared or local array that the kernel declares: a view, or a pointer if it is raw.

        `word` is the size in bytes of the smallest access to it.
        """
        if allocation.space == "constant":
            return Pointer(self.run.constants[allocation.name].memory, 0)
        if allocation.name not in self.allocated:  # threads that run one at a time share them
            self.allocated[allocation.name] = self._allocate(allocation, word)
        return self.allocated[allocation.name]

    def _allocate(self, allocation: Allocation, word: int) -> Any:
        if isinstance(allocation.dtype, RecordType):
            return self._records(allocation)
        item = np.dtype(allocation.dtype)
        dtype = allocation.dtype if word == item.itemsize else UNSIGNED[word]
        if allocation.dynamic:
            return self._dynamic(allocation, dtype)
        size = allocation.size * item.itemsize // word
        memory: Any
        if allocation.space == "local":
            kind = LocalMemory if self.run.counting is None else self.run.counting.local_memory
            memory, data = kind(allocation.name, self, size, dtype), np.empty(0)
        else:
            memory = self._shared_memory(allocation.name, size, dtype)
            data = memory.data
            if allocation.space == "barriers":  # no memory of the kernel's
                memory.shadow = None
        if allocation.raw:
            return Pointer(memory, 0)
        return View(memory, data, allocation.dtype, 0, allocation.shape, _strides(allocation.shape), True)

    def _records(self, allocation: Allocation) -> View:
        """An array of records: an array per field."""
        assert isinstance(allocation.dtype, RecordType)
        if allocation.dynamic:
            raise UnsupportedError(
                f"dynamic shared memory {allocation.name.split('@')[0]!r} of records; declare it with its size, "
                "or use an array per field"
            )
        fields: dict[str, View] = {}
        for name in allocation.dtype.dtype.names or ():
            kind = allocation.dtype.dtype[name]
            base, extents = kind.subdtype or (kind, ())
            inner = (allocation.size, *extents)
            part = Allocation(f"{allocation.name}.{name}", allocation.space, dtype_name(base), inner)
            fields[name] = self._allocate(part, base.itemsize)
        memory = RecordMemory(allocation.name, allocation.space, fields)
        shape = allocation.shape
        return View(memory, np.empty(0), allocation.dtype, 0, shape, _strides(shape), True)

    def _shared_memory(self, name: str, size: int, dtype: str) -> SharedMemory:
        kind = SharedMemory if self.run.counting is None else self.run.counting.shared_memory
        memory: SharedMemory = kind(name, self, size, np.full((size, self.columns), poison(dtype), dtype))
        if self.run.initcheck or self.run.racecheck:
            memory.shadow = SharedShadow(self, size)
        self.memories.append(memory)
        memory.number = len(self.memories)
        return memory

    def shared_pointer(self, address: Any) -> Any:
        """The pointer that a 32-bit address within shared memory stands for."""
        return shared_addresses.decode(self.memories, address)

    def _dynamic_name(self) -> str:
        """What the source calls dynamic shared memory, where it has one name for it."""
        names = {a.name.split("@")[0] for a in self.run.code.program.allocations if a.dynamic}
        return names.pop() if len(names) == 1 else "dynamic shared memory"

    def _dynamic(self, allocation: Allocation, dtype: str) -> Any:
        """Dynamic shared memory: every array of it begins at the same byte."""
        item = np.dtype(dtype)
        declared = {
            np.dtype(a.dtype).itemsize
            for a in self.run.code.program.allocations
            if a.dynamic and not a.raw and not isinstance(a.dtype, RecordType)
        }
        if len(declared) > 1 and not allocation.raw:
            if self.mixed is None:
                word = UNSIGNED[min(declared)]
                count = self.run.shared_bytes // min(declared)
                self.mixed = MixedSharedMemory(self._shared_memory(self._dynamic_name(), count, word))
            return self.mixed.array(dtype)
        size = self.run.shared_bytes // item.itemsize
        if self.dynamic is None:
            self.dynamic = self._shared_memory(self._dynamic_name(), size, dtype)
        if self.dynamic.word != item.itemsize:
            raise UnsupportedError(
                f"dynamic shared memory used as {self.dynamic.data.dtype} and as {dtype}: elements of different size"
            )
        if allocation.raw:
            return Pointer(self.dynamic, 0)
        return View(self.dynamic, self.dynamic.data.view(item), dtype, 0, (size,), (1,), True)

    # ----------------------------------------------------------------------------------- control flow

    def met_irregular_branch(self) -> None:
        """A branch went unevenly through several blocks: start again in more uniform batches if possible."""
        self.uneven = True
        if self.may_restart and not self.dirty:
            raise Irregular

    def exit(self, lanes: LaneSet) -> None:
        """Threads return from the kernel."""
        self.exits.append(lanes)
        self.exited += lanes.size

    def covers_alive(self, lanes: LaneSet) -> bool:
        """True if the set holds every thread that has not returned."""
        return lanes.size + self.exited == self.everything.size

    def call(self, lanes: LaneSet, function: Any, args: tuple[Any, ...]) -> Any:
        """Call a function of the program for these lanes."""
        try:
            return function(self, lanes, *args)
        except RecursionError:
            raise UnsupportedError("a device function calls itself hundreds of times, one call in the other") from None

    def leave(self, parent: LaneSet, exits: list[Exit], dtypes: Any) -> tuple[LaneSet, tuple[Any, ...]]:
        """The set after a block or loop: the union of all that left it."""
        return merge(parent, exits, dtypes)

    def looped(
        self, lanes: LaneSet, before: tuple[LaneSet, Any, tuple[Any, ...]], now: tuple[Any, ...], site: int
    ) -> None:
        """Called now and then after two trips of a loop: stop one that repeats itself.

        In lockstep, threads that spin on memory see nothing new if the variables that decide the loop's course
        and the memory they could read stay the same for a whole trip.
        """
        same = before[0] is lanes and all(same_value(a, b) for a, b in zip(before[2], now, strict=True))
        if same and before[1] == self.run.fingerprint(self):
            self.run.stuck(self, lanes, site)

    def finish(self) -> None:
        """The blocks have ended: check what is left of their last barrier interval."""
        self.native.clear()
        for memory in self.memories:
            if memory.shadow is not None:
                memory.shadow.barrier(not memory.shadow.wide)

    # --------------------------------------------------------------------------------------- barriers

    def barrier(self, lanes: LaneSet, site: int) -> None:
        """``syncthreads``: end the barrier interval of the blocks that reach it."""
        run = self.run
        if self.covers_alive(lanes):
            columns = None
        else:
            columns = self._columns_at_barrier(lanes, site)
        everywhere = columns is None and (self.exited == 0 or bool(self._alive_columns().all()))
        for memory in self.memories:
            if memory.shadow is not None:
                memory.shadow.barrier(everywhere)
        serial = run.operation(site)
        if everywhere:
            self.bar = self.bar_low = serial + 1
        else:
            if type(self.bar) is int:
                self.bar = np.full(self.columns, self.bar, np.int64)
            else:
                self.bar = self.bar.copy()
            self.bar[self._alive_columns() if columns is None else columns] = serial + 1
            self.bar_low = int(self.bar.min())
            for memory in self.memories:
                if memory.shadow is not None:
                    memory.shadow.forget_ended()
        if run.sync is not None:
            run.sync.barrier(serial, self.number, columns)

    def grid_barrier(self, lanes: LaneSet, site: int) -> None:
        """A barrier of the whole grid: it orders the accesses of all blocks."""
        self.barrier(lanes, site)
        if self.covers_alive(lanes):
            self.run.grid_serial = self.run.operation(site) + 1
            return
        gone = np.zeros((self.threads, self.columns), bool)
        for left in (*self.exits, lanes):
            left.put(gone, True)
        thread, column = (int(i) for i in np.argwhere(~gone)[0])
        who = f"thread {self.run.thread_of(thread)} of block {self.block_of(column)}"
        message = f"{lanes.size} threads reach this barrier of the grid, {who} does not; all threads must"
        me = self.run.access(site, None, *self._spot(lanes, 0))
        self.run.report("barrier_divergence", "error", message, me, None, None, pair=(site, site))

    def interval_start(self, lanes: LaneSet) -> int:
        """First serial number of the oldest barrier interval that a block of the set is in."""
        if type(self.bar) is int:
            return self.bar
        known = lanes.interval
        if known is None or known[0] is not self.bar:
            known = lanes.interval = (self.bar, int(self.bar[lanes.b].min()))
        return known[1]

    def _alive_columns(self) -> Any:
        gone = np.zeros(self.columns, np.int64)
        for lanes in self.exits:
            self._count(gone, lanes)
        return gone < self.threads

    def _count(self, counts: Any, lanes: LaneSet) -> None:
        if lanes.flat is not None:
            counts += np.bincount(lanes.b, minlength=self.columns)
        elif lanes.cols is None:
            counts += lanes.shape[0]
        else:
            counts[lanes.cols] += lanes.shape[0]

    def _columns_at_barrier(self, lanes: LaneSet, site: int) -> Any:
        """Blocks that reach a barrier; a block of which only a part does is a finding."""
        here = np.zeros(self.columns, np.int64)
        gone = np.zeros(self.columns, np.int64)
        self._count(here, lanes)
        for left in self.exits:
            self._count(gone, left)
        partial = (here > 0) & (here + gone < self.threads)
        if partial.any():
            column = int(np.flatnonzero(partial)[0])
            present = np.zeros((self.threads, self.columns), bool)
            lanes.put(present, True)
            absent = ~present[:, column]
            for left in self.exits:
                out = np.zeros((self.threads, self.columns), bool)
                left.put(out, True)
                absent &= ~out[:, column]
            missing = np.flatnonzero(absent)
            thread = int(np.flatnonzero(present[:, column])[0])
            waits = self.run.thread_of(int(missing[0]))
            message = (
                f"{int(here[column])} of {self.threads} threads of the block reach this barrier; "
                f"thread {waits} and {len(missing) - 1} more do not; all threads or none must reach it"
            )
            me = self.run.access(site, None, self.block_of(column), self.run.thread_of(thread))
            self.run.report("barrier_divergence", "error", message, me, None, None, pair=(site, site))
        return here > 0

    def block_vote(self, lanes: LaneSet, site: int, op: str, predicate: Any) -> Any:
        """``syncthreads_count``, ``_and``, ``_or``: a barrier with a block-wide reduction."""
        self.barrier(lanes, site)
        votes = lanes.full(predicate, np.int64) != 0
        if lanes.flat is None:
            count = votes.sum(axis=0, keepdims=True)
            total: Any = lanes.shape[0]
        else:
            count = np.bincount(lanes.b, weights=votes, minlength=self.columns).astype(np.int64)[lanes.b]
            total = np.bincount(lanes.b, minlength=self.columns)[lanes.b]
        result = {"count": lambda: count, "and": lambda: count == total, "or": lambda: count > 0}[op]()
        return np.asarray(result).astype(np.int64)

    def fence(self, lanes: LaneSet, site: int, scope: str) -> None:
        """``threadfence``: what it hands on depends on later atomic operations."""
        if self.run.sync is not None:
            self.run.sync.fence(self.run.operation(site), self.number, lanes, scope == "block")

    @property
    def copies(self) -> Copies:
        """The asynchronous copies of the blocks."""
        if self.asynchronous_copies is None:
            self.asynchronous_copies = Copies(self)
        return self.asynchronous_copies

    def asynchronous(self, lanes: LaneSet, action: str, count: Any) -> None:
        """Begin, end, group or await copies that run beside the kernel; each thread has groups of its own."""
        if action in ("begin", "end"):
            self.copying = action == "begin"
        elif action == "commit":
            self.copies.commit(lanes)
        else:
            self.copies.wait(lanes, count)

    def warp_barrier(self, lanes: LaneSet, site: int, mask: Any) -> None:
        """``syncwarp``: orders the accesses of the threads of a warp."""
        warp.check_mask(self, lanes, mask, site)
        for memory in self.memories:
            if memory.shadow is not None:
                memory.shadow.warp_barrier()
        self.warp_barriers.append(warp.Meeting(self.run.operation(site), self, lanes, mask))
        if self.clocks is not None:
            self.clocks.met(lanes, mask, self.warp_barriers[-1].serial)
        if self.run.sync is not None:
            self.run.sync.warp_barrier(self.warp_barriers[-1])

    def met_in_warp_barrier(self, threads: tuple[int, int], column: int, first: int, last: int) -> bool:
        """True if two threads of a warp both took part in a warp barrier between two accesses.

        The first may stand for several of the warp, all of which must have.
        """
        one, other = threads
        start = bisect.bisect_right(self.warp_barriers, first, key=lambda event: event.serial)
        for meeting in self.warp_barriers[start:]:
            if meeting.serial > last:
                return False
            if one < self.threads and meeting.joins(one, other, column):
                return True
            if one >= self.threads and meeting.joins_warp(other, column):
                return True
        return False

    def warp(self, lanes: LaneSet, site: int, op: str, args: tuple[Any, ...], dtype: str) -> Any:
        """A warp-wide operation."""
        return warp.run(self, lanes, site, op, args, dtype)

    def matrix(self, lanes: LaneSet, site: int, spec: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """A matrix multiplication by all lanes of each warp."""
        return matrix.multiply(self, lanes, site, spec, args)

    # ---------------------------------------------------------------------------------------- atomics

    def apply_atomic(
        self, lanes: LaneSet, data: Any, address: Any, op: str, args: tuple[Any, ...], dtype: str, used: bool
    ) -> Any:
        """Apply an atomic operation of all lanes, in lane order."""
        return atomics.apply(lanes, data, address, op, args, dtype, used)

    def log_atomic(self, serial: int, view: View, lanes: LaneSet, address: Any) -> None:
        """Remember an atomic operation for `refsim.checks.order`."""
        if self.run.sync is not None:
            cells = address if view.memory.space == "global" else address * self.columns + lanes.b
            narrow = self.run.sites[self.run.operations[serial]].scope == "block"
            self.run.sync.atomic(serial, self.number, id(view.memory), lanes, cells, narrow)


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)
