"""One launch: from arguments to batches of blocks to a report."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from refsim.checks.findings import Finding, Report
from refsim.devices import Device
from refsim.dialect import item_bytes
from refsim.engine.arguments import _add_views, flat_arguments, lane_scalar, views_of
from refsim.engine.batch import Batch
from refsim.engine.buffers import mark_written
from refsim.engine.codegen import LaneCode
from refsim.engine.combining import Combined, combinable
from refsim.engine.lanes import Irregular
from refsim.engine.processes import blocks_meet, is_own, run_in_processes
from refsim.engine.run import Run, Stuck
from refsim.engine.stepwise import MOST_GROUPS, Schedule, Waits
from refsim.engine.turns import LANES, Turns
from refsim.engine.witness import Inputs, add_witnesses
from refsim.errors import UnsupportedError

LANES_PER_BATCH = 65536
WORTH_SPLITTING = 4096


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


def _spread(
    run: Run,
    processes: int,
    arguments: list[tuple[str, Any]],
    views: dict[str, Any],
    values: list[Any],
    lanes_per_batch: int,
) -> str:
    """Run the blocks in several processes; else why they must run in one."""
    total = math.prod(run.grid)
    ways = combinable(run.code.program)
    reason = blocks_meet(run.code, ways) or ("it is counted" if run.counting is not None else "")
    if reason or total == 1:
        return reason or "it has one block"
    if not all(
        is_own(value) for name, value in arguments if isinstance(value, np.ndarray) and name in run.code.written
    ):
        return "an array lies in a file or in shared memory"
    combined = _combined(views, ways)
    if not all(views[name].memory in combined for name in ways):
        return "an array of its atomic operations overlaps another"
    checked = run.racecheck or run.initcheck

    def work(first: int, last: int) -> None:
        run_lockstep(run, values, lanes_per_batch, first, last)

    return run_in_processes(run, min(processes, total), total, work, checked, combined)


def _combined(views: dict[str, Any], ways: dict[str, Combined]) -> dict[Any, Combined]:
    """The memories that are reached as arrays of `ways` alone, all in one way, and hold whole numbers of it."""
    found: dict[Any, set[Combined | None]] = {}
    for name, view in views.items():
        found.setdefault(view.memory, set()).add(ways.get(name))
    only = {memory: next(iter(kinds)) for memory, kinds in found.items() if len(kinds) == 1}
    return {
        memory: way
        for memory, way in only.items()
        if way is not None and memory.granule == np.dtype(way.dtype).itemsize
    }


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
    native: str = "auto",
) -> Report:
    """Run a compiled kernel over its grid and report what was found; with `counting`, the code is one that counts.

    Where groups of `lanes` wait for each other in vain, smaller ones try from the start. With `witness`, races
    are given a schedule that shows them. With several `processes`, each runs a part of the blocks.
    """
    run = Run(code, device, grid, block, groups, shared_bytes, note_negative, counting, native)
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
                single = (
                    _spread(run, processes, arguments, views, values, size) if processes > 1 else "one was asked for"
                )
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
    if run.counting is not None:
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
