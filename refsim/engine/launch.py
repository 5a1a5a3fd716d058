"""One launch: from arguments to batches of blocks to a report."""

from __future__ import annotations

import ctypes
import math
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np

from refsim.checks.findings import CHECK_GROUPS, Access, Finding, Report
from refsim.checks.global_shadow import GlobalShadow
from refsim.checks.order import SyncLog
from refsim.checks.spots import Spot
from refsim.devices import Device
from refsim.dialect import (
    ITEM_BYTES,
    ArrayType,
    KnownType,
    NamedTupleType,
    PointerType,
    RecordType,
    Type,
    dtype_name,
    item_bytes,
)
from refsim.engine.batch import Batch
from refsim.engine.buffers import initialized_elements, mark_written
from refsim.engine.codegen import LaneCode
from refsim.engine.lanes import Irregular, LaneSet
from refsim.engine.memory import GlobalMemory
from refsim.engine.pointers import NULL, Pointer
from refsim.engine.processes import blocks_meet, is_own, run_in_processes
from refsim.engine.stepwise import MOST_GROUPS, Schedule, Waits
from refsim.engine.turns import LANES, Turns
from refsim.engine.views import View
from refsim.engine.witness import Inputs, add_witnesses
from refsim.errors import UnsupportedError

LANES_PER_BATCH = 65536
WORTH_SPLITTING = 4096
GROUP_OF_KIND = {kind: group for group, kinds in CHECK_GROUPS.items() for kind in kinds}


class Stuck(Exception):
    """The launch cannot go on: no thread makes progress."""


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
    ) -> None:
        self.code = code
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
        self.operations.append(site)
        return len(self.operations) - 1

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


# ------------------------------------------------------------------------------------------------ arguments


def argument_type(value: Any) -> Any:
    """Dialect type of a kernel argument: a scalar type, an `ArrayType`, None, or a tuple of types."""
    if isinstance(value, np.ndarray):
        name = dtype_name(value.dtype)
        if name not in ITEM_BYTES and not isinstance(name, RecordType):
            raise TypeError(
                f"array argument of dtype {value.dtype} is not supported; use one of {', '.join(ITEM_BYTES)}"
            )
        return ArrayType(name, value.ndim)
    if isinstance(value, np.void) and value.dtype.names is not None:
        return ArrayType(dtype_name(value.dtype), 0)
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, Enum):
        return KnownType(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise TypeError(f"integer argument {value} does not fit 64 bits")
        return "int64" if value < 2**63 else "uint64"
    if isinstance(value, (float, complex)) and not isinstance(value, np.generic):
        return "float64" if isinstance(value, float) else "complex128"
    if isinstance(value, np.generic) and value.dtype.name in ITEM_BYTES:
        return value.dtype.name
    if value is None:
        return None
    if isinstance(value, tuple):
        items = tuple(argument_type(item) for item in value)
        names = getattr(value, "_fields", None)
        return items if names is None else NamedTupleType(names, items)
    raise TypeError(
        f"kernel argument {value!r} of type {type(value).__name__}: "
        "expected a NumPy array, a number, None or a tuple of these"
    )


def flat_arguments(values: tuple[Any, ...], names: tuple[tuple[str, Type | None], ...]) -> list[tuple[str, Any]]:
    """Arguments as the program takes them: tuples spread out, None dropped."""
    flat: list[Any] = []

    def visit(value: Any) -> None:
        if isinstance(value, tuple):
            for item in value:
                visit(item)
        else:
            flat.append(value)

    for value in values:
        visit(value)
    return [(name, value) for (name, kind), value in zip(names, flat, strict=True) if kind is not None]


def lane_scalar(value: Any, kind: Type) -> Any:
    """A scalar argument as the engine carries it."""
    if isinstance(kind, PointerType):
        if value is None or (isinstance(value, int) and value == 0):
            return NULL
        raise TypeError(f"a pointer parameter takes a NumPy array or None, not {value!r}")
    name = str(kind)
    if "float" in name or "complex" in name:
        return np.dtype(name).type(value)
    return bool(value) if name == "bool" else int(value)


def views_of(
    run: Run, arguments: list[tuple[str, Any]], code: LaneCode
) -> tuple[dict[str, Any], list[tuple[Any, Any]]]:
    """A view for every array argument; arrays that overlap share one memory.

    Returns the views by parameter name, and (copy, original) pairs to write back after the launch for arrays
    whose layout the engine cannot address.
    """
    arrays: list[tuple[str, Any]] = []
    write_back: list[tuple[Any, Any]] = []
    for name, value in arguments:
        if isinstance(value, np.void):
            write_back.append((np.array(value), value))
            value = write_back[-1][0]
        if isinstance(value, np.ndarray):
            if name in code.written and not value.flags.writeable:
                raise TypeError(f"the array argument {name} is read-only, and {code.program.name}() writes to it")
            item = value.dtype.itemsize
            unaligned = value.ctypes.data % item if value.dtype.names is None else 0
            odd = any(stride % item for stride in value.strides) or not value.dtype.isnative or unaligned
            if odd:
                copy = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("="))
                write_back.append((copy, value))
                value = copy
            arrays.append((name, value))
    spans = sorted((np.lib.array_utils.byte_bounds(a) if a.size else (0, 0), i) for i, (_, a) in enumerate(arrays))
    groups: list[list[int]] = []
    end = -1
    for (low, high), position in spans:
        if low >= end or not arrays[position][1].size:
            groups.append([])
        groups[-1].append(position)
        end = max(end, high)
    views: dict[str, Any] = {}
    for group in groups:
        _add_views(run, [arrays[position] for position in group], code, views)
    return views, write_back


def _add_views(run: Run, arrays: list[tuple[str, Any]], code: LaneCode, views: dict[str, Any]) -> None:
    bounds = [np.lib.array_utils.byte_bounds(array) if array.size else (0, 0) for _, array in arrays]
    low, high = min(b[0] for b in bounds), max(b[1] for b in bounds)
    sizes = [code.words.get(name, array.dtype.itemsize) for name, array in arrays]
    items = (granule_of(array.dtype) for _, array in arrays)
    granule = math.gcd(*sizes, *items, *(b[0] - low for b in bounds))
    writeable = any(array.flags.writeable for _, array in arrays)
    raw = _bytes_of(arrays, low, high)
    raw.flags.writeable = writeable
    title = " / ".join(name for name, _ in arrays)
    if run.counting is None:
        memory = GlobalMemory(title, high - low, granule, low, raw)
    else:
        lowest = min(zip(bounds, (array for _, array in arrays), strict=True), key=lambda pair: pair[0])[1]
        constant = arrays[0][0] in code.program.constants
        memory = run.counting.global_memory(title, high - low, granule, low, raw, lowest, constant)
    run.memories.append(memory)
    writes = any(name in code.written for name, _ in arrays)
    reads = any(name in code.read for name, _ in arrays)
    known = initialized_elements(arrays, low, high, granule) if run.initcheck else None
    memory.written = writes
    races = writes and run.racecheck and any(name in code.plain for name, _ in arrays)
    if races or known is not None:
        memory.shadow = GlobalShadow(run, (high - low) // granule, known, races, reads)
    kinds = dict(code.program.parameters)
    for (name, array), (start, stop) in zip(arrays, bounds, strict=True):
        if isinstance(kinds.get(name), PointerType):
            views[name] = Pointer(memory, (array.ctypes.data if array.size else start) - low)
            continue
        item = array.dtype.itemsize
        flat = raw[start - low : stop - low].view(array.dtype)
        strides = tuple(stride // item for stride in array.strides)
        offset = sum(-stride * (n - 1) for stride, n in zip(strides, array.shape, strict=True) if stride < 0)
        views[name] = View(
            memory, flat, dtype_name(array.dtype), offset if array.size else 0, array.shape, strides,
            code.program.wraps_negative, (start - low) // granule,
        )  # fmt: skip


def granule_of(dtype: np.dtype[Any]) -> int:
    """Bytes of an element, or the largest number that divides sizes and offsets of all fields of a record."""
    if dtype.subdtype is not None:
        return granule_of(dtype.subdtype[0])
    if dtype.names is None or dtype.fields is None:
        return dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize  # the parts of a complex number
    fields = dtype.fields.values()
    return math.gcd(dtype.itemsize, *(field[1] for field in fields), *(granule_of(field[0]) for field in fields))


def _bytes_of(arrays: list[tuple[str, Any]], low: int, high: int) -> Any:
    """The bytes from one address to another, which the arrays span, as they are in memory."""
    first = arrays[0][1]
    if len(arrays) == 1 and first.flags.c_contiguous:
        return first.view(np.ndarray).reshape(-1).view(np.uint8)
    if high == low:
        return np.empty(0, np.uint8)
    return np.asarray((ctypes.c_uint8 * (high - low)).from_address(low))


# -------------------------------------------------------------------------------------------------- running


def check_limits(run: Run) -> bool:
    """Report what the device would refuse to launch; True if it can be launched."""
    device, program = run.device, run.code.program
    static = sum(a.size * item_bytes(a.dtype) for a in program.allocations if a.space == "shared" and not a.dynamic)
    shared = static + run.shared_bytes
    problems = []
    if run.threads > device.max_threads_per_block:
        problems.append(f"{run.threads} threads per block; {device.name} allows {device.max_threads_per_block}")
    elif program.most_threads is not None and run.threads > program.most_threads:
        problems.append(f"{run.threads} threads per block; __launch_bounds__ allows {program.most_threads}")
    for what, sizes, limits in (("block", run.block, device.max_block), ("grid", run.grid, device.max_grid)):
        for axis, size, limit in zip("xyz", sizes, limits, strict=True):
            if size > limit:
                problems.append(f"{what} size {size} along {axis}; {device.name} allows {limit}")
    if shared > device.shared_bytes_per_block:
        problems.append(f"{shared} bytes of shared memory per block; {device.name} has {device.shared_bytes_per_block}")
    for problem in problems if "memcheck" in run.groups else ():
        run.report_out.findings.append(
            Finding(
                "launch_limit",
                program.name,
                problem,
                "error",
                program.place.file,
                program.place.line,
                program.place.text,
            )
        )
    return not problems


def batches(run: Run, code: LaneCode, lanes_per_batch: int, first: int, last: int) -> Iterator[tuple[Any, bool, bool]]:
    """Block numbers of each batch of a range of blocks, whether it may restart, and whether others follow.

    A batch that met an uneven branch is sent back by noting its launch in `code.irregular`; the blocks at the far
    edges of the grid then run apart from the interior. Where the interior is uneven too, that was in vain: the
    launch is noted in `code.uneven`, and blocks are not taken apart any more.
    """
    total = last
    size = total if code.whole_grid else max(1, lanes_per_batch // run.threads)
    key = (run.grid, run.block)
    done = first
    while done < total and (key not in code.irregular or key in code.uneven):
        blocks = np.arange(done, min(done + size, total), dtype=np.int64)
        worth = len(blocks) * run.threads >= WORTH_SPLITTING and total > 1 and key not in code.uneven
        worth = worth and not code.whole_grid
        yield blocks, worth, done + len(blocks) < total
        if key not in code.irregular or key in code.uneven:
            done += len(blocks)
    if done == total:
        return
    rest = np.arange(done, total, dtype=np.int64)
    edge = _edges(run.grid, rest)
    while len(rest):
        kind = int(edge[0]) if not (edge == 0).any() else 0
        part = rest[:size] if key in code.uneven else rest[edge == kind][:size]
        left = ~np.isin(rest, part)
        rest, edge = rest[left], edge[left]
        yield part, False, len(rest) > 0


def _edges(grid: tuple[int, int, int], blocks: Any) -> Any:
    """At which far edges of the grid each block lies, as bits; 0 for the interior."""
    gx, gy, gz = grid
    x, y, z = blocks % gx, blocks // gx % gy, blocks // (gx * gy)
    return (x == gx - 1) * (gx > 1) + (y == gy - 1) * (2 * (gy > 1)) + (z == gz - 1) * (4 * (gz > 1))


def run_lockstep(run: Run, values: list[Any], lanes_per_batch: int, first: int, last: int) -> None:
    """Run a range of blocks in batches, all threads of a batch in lockstep."""
    code = run.code
    with np.errstate(all="ignore"):
        for blocks, may_restart, remaining in batches(run, code, lanes_per_batch, first, last):
            batch = Batch(run, len(run.batches), blocks, may_restart, remaining)
            run.batches.append(batch)
            findings = len(run.report_out.findings)
            try:
                code.function(batch, batch.everything, *values)
            except Irregular:
                del run.report_out.findings[findings:]
                run.racing = {position: spots for position, spots in run.racing.items() if position < findings}
                run.batches.pop()
                code.irregular.add((run.grid, run.block))
            except Stuck:
                return
            else:
                batch.finish()
                if batch.uneven and (run.grid, run.block) in code.irregular and not _edges(run.grid, blocks).any():
                    code.uneven.add((run.grid, run.block))


def _spread(run: Run, processes: int, arguments: list[tuple[str, Any]], values: list[Any], lanes_per_batch: int) -> str:
    """Run the blocks in several processes; else why they must run in one."""
    total = math.prod(run.grid)
    reason = blocks_meet(run.code) or ("it is counted" if run.counting is not None else "")
    if reason or total == 1:
        return reason or "it has one block"
    if not all(
        is_own(value) for name, value in arguments if isinstance(value, np.ndarray) and name in run.code.written
    ):
        return "an array lies in a file or in shared memory"
    checked = run.racecheck or run.initcheck

    def work(first: int, last: int) -> None:
        run_lockstep(run, values, lanes_per_batch, first, last)

    return run_in_processes(run, min(processes, total), total, work, checked)


def run_stepwise(
    run: Run, arguments: list[tuple[str, Any]], views: dict[str, Any], lanes: str, turns: Turns, together: bool
) -> None:
    """Run groups of lanes that take turns; blocks that may wait for each other all `together`."""
    total = math.prod(run.grid)
    per_block = {"block": 1, "warp": -(-run.threads // run.device.warp_size), "thread": run.threads}[lanes]
    size = total if together else max(1, MOST_GROUPS // (4 * per_block))
    if min(size, total) * per_block > MOST_GROUPS:
        kind = {"block": "blocks", "warp": "warps", "thread": "threads"}[lanes]
        raise UnsupportedError(
            f"threads of this kernel wait for each other, and {total * per_block} {kind} take turns: "
            f"at most {MOST_GROUPS} are simulated one at a time; launch a smaller grid",
            run.code.program.place,
        )
    values = lane_arguments(run, arguments, views)
    order = np.array(turns.blocks(total), np.int64)
    with np.errstate(all="ignore"):
        for start in range(0, total, size):
            blocks = order[start : start + size]
            batch = Batch(run, len(run.batches), blocks, may_restart=False, remaining=start + size < total)
            run.batches.append(batch)
            try:
                Schedule(batch, run.code.function, values, lanes, turns).run()
            except Stuck:
                return
            batch.finish()


def lane_arguments(run: Run, arguments: list[tuple[str, Any]], views: dict[str, Any]) -> list[Any]:
    """Arguments as lane code takes them; prepares the constants of the program."""
    program = run.code.program
    for name, array in program.constants.items():
        _add_views(run, [(name, array)], run.code, run.constants)
    kinds = dict(program.parameters)
    return [views[name] if name in views else lane_scalar(value, kinds[name] or "int64") for name, value in arguments]


def execute(
    code: LaneCode,
    device: Device,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    args: tuple[Any, ...],
    groups: frozenset[str],
    shared_bytes: int,
    note_negative: bool,
    lanes_per_batch: int = LANES_PER_BATCH,
    counting: Any = None,
    lanes: str = "blocks",
    turns: Turns | None = None,
    witness: bool = False,
    processes: int = 1,
) -> Report:
    """Run a compiled kernel over its grid and report what was found; with `counting`, the code is one that counts.

    Where groups of `lanes` wait for each other in vain, smaller ones try from the start. With `witness`, races
    are given a schedule that shows them. With several `processes`, each runs a part of the blocks.
    """
    run = Run(code, device, grid, block, groups, shared_bytes, note_negative, counting)
    if not check_limits(run):
        return run.report_out
    arguments = flat_arguments(args, code.program.parameters)
    views, write_back = views_of(run, arguments, code)
    inputs = Inputs(arguments) if witness else None
    plain = turns is None
    turns = Turns() if turns is None else turns
    together = code.may_wait or code.whole_grid
    may_repeat = together or lanes != "blocks"
    saved = [m.raw.copy() if m.written else None for m in run.memories] if may_repeat else []
    for level in LANES[LANES.index(lanes) :]:
        lockstep = plain and (level == "blocks" or (level == "block" == lanes and not together))
        if level == "blocks" and not lockstep:
            continue
        if level != lanes or not lockstep:
            stepwise = code if lockstep else code.at_accesses if turns.at_accesses else code.stepwise
            run = Run(stepwise, device, grid, block, groups, shared_bytes, note_negative, counting)
            views, write_back = views_of(run, arguments, code)
        try:
            if lockstep:
                values = lane_arguments(run, arguments, views)
                size, total = lanes_per_batch if level == "blocks" else 1, math.prod(grid)
                single = _spread(run, processes, arguments, values, size) if processes > 1 else "one was asked for"
                if single:
                    run_lockstep(run, values, size, 0, total)
                run.report_out.processes = 1 if single else min(processes, total)
                run.report_out.why_one_process = single
            else:
                run_stepwise(run, arguments, views, level, turns, together)
            break
        except Waits:
            for memory, content in zip(run.memories, saved, strict=True):
                if content is not None:
                    memory.raw[...] = content
            turns = turns.again()
    for copy, original in write_back:
        if isinstance(original, np.void):
            for field in original.dtype.names or ():
                original[field] = copy[field]
        else:
            original[...] = copy
    if run.initcheck:
        mark_written(views, arguments)
    if run.counting is not None and level != "thread":  # single threads execute no warp instructions
        run.report_out.counters = run.counting.result(run)
    if inputs is not None and run.racing:
        launched = math.prod(grid) * run.threads

        def again(other: Turns) -> Report:
            deadlocks = frozenset({"synccheck"})
            which = other.lanes(launched)
            return execute(
                code, device, grid, block, args, deadlocks, shared_bytes, note_negative, lanes=which, turns=other
            )

        add_witnesses(run.report_out, run.racing, launched, inputs, arguments, again)
    return run.report_out
