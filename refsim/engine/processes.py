"""The blocks of a launch spread over processes, with the results and findings of one.

Every worker is a fork with the launch's memory as it was, and runs a part of the blocks. What it read and wrote comes
back through anonymous shared memory. Where no worker touched what another wrote, and none found anything, the writes
of all together are the result. Otherwise nothing has happened yet, and the launch runs in one process.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import pickle
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.dialect import Atomic, AtomicAt, Fence, Print, walk_expressions, walk_statements
from refsim.engine.combining import Combined
from refsim.engine.uses import roots
from refsim.errors import RefsimError

if TYPE_CHECKING:
    from refsim.engine.codegen import LaneCode
    from refsim.engine.memory import GlobalMemory
    from refsim.engine.run import Run

WRITTEN = 2  # and 1 for read
DIES_WITH_ITS_PARENT = 1  # prctl's PR_SET_PDEATHSIG


class WorkerError(RefsimError):
    """A worker process ended before its blocks had."""


def blocks_meet(code: LaneCode, combined: Container[str]) -> str:
    """Why the blocks of a program cannot run in processes of their own; empty if nothing speaks against it.

    What processes make of the arrays `combined` can be put together afterwards.
    """
    program = code.program
    shared = {allocation.name for allocation in program.allocations if allocation.space != "constant"}
    if code.whole_grid:
        return "its blocks meet in a barrier of the grid"
    if code.may_wait:
        return "its threads may wait for each other"
    for s in walk_statements(program.body):
        if isinstance(s, Print):
            return "it prints"
        if isinstance(s, Fence) and s.scope != "block":
            return "it has a fence between blocks"
        for part in walk_expressions(s):
            if isinstance(part, (Atomic, AtomicAt)):
                target = part.array if isinstance(part, Atomic) else part.pointer
                names = roots(target)
                if not names or not all(name in shared or name in combined for name in names):
                    return "the order of its atomic operations on global memory may matter"
    return ""


@dataclass
class _Returned:
    """What a worker hands back of one memory: for each granule whether it read or wrote it, and what it wrote."""

    touched: Any
    values: Any
    granule: int


@dataclass
class _Worker:
    """A fork, the end of its pipe, and the memory that it shares."""

    pid: int
    pipe: int
    first: int
    last: int
    returned: list[_Returned]
    ended: bool = False


def run_in_processes(
    run: Run,
    count: int,
    blocks: int,
    work: Callable[[int, int], None],
    checked: bool,
    combined: Mapping[GlobalMemory, Combined],
) -> str:
    """Run ranges of blocks in `count` processes.

    Parameters
    ----------
    run
        The launch; its memories take the results, and their shadows what was written.
    blocks
        Number of blocks.
    work
        ``work(first, last)`` runs a range of blocks, in this process.
    checked
        Whether shadows say what was read and written.
    combined
        Memories that one kind of atomic operation alone touches, and how what processes make of them is put together.

    Returns
    -------
    Empty if all is done; else why the launch must run in one process. Then nothing has changed.

    Raises
    ------
    WorkerError
        If a worker was killed.
    """
    memories = [memory for memory in run.memories if memory.written]
    edges = [blocks * i // count for i in range(count + 1)]
    workers: list[_Worker] = []
    try:
        for first, last in pairwise(edges):
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Ctrl-C waits until the fork is known
            try:
                workers.append(_start(run, memories, first, last, work, checked, workers))
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        reasons = [_wait(worker, run.code) for worker in workers]
    finally:
        for worker in workers:
            _end(worker)
    if any(reasons):
        return next(filter(None, reasons))
    for position, memory in enumerate(memories):
        if memory not in combined and _conflict([worker.returned[position].touched for worker in workers]):
            return "its blocks touch what others write"
    for position, memory in enumerate(memories):
        parts = [worker.returned[position] for worker in workers]
        if memory in combined:
            _combine(memory, parts, combined[memory])
            continue
        for part in parts:
            _apply(memory, part)
    return ""


def is_own(array: Any) -> bool:
    """True for an array in ordinary memory of this process, which a fork gets a copy of."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return False
        if array.base is None:
            return True
        array = array.base
    return False


def _start(
    run: Run,
    memories: list[GlobalMemory],
    first: int,
    last: int,
    work: Callable[[int, int], None],
    checked: bool,
    others: list[_Worker],
) -> _Worker:
    returned = [_shared(memory, _granule(memory, checked)) for memory in memories]
    receive, send = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # Threads of numerical libraries are idle now; a worker calls NumPy only, not JAX, which warns of forks.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        pid = os.fork()
    if pid:
        os.close(send)
        return _Worker(pid, receive, first, last, returned)
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        _die_with_parent()
        os.close(receive)
        for other in others:
            os.close(other.pipe)
        run.cores, run.may_compile = 1, False  # another thread may hold the compiler, and not be here to give it back
        before = [None if _tags(m, checked) is not None else m.raw.copy() for m in memories]
        work(first, last)
        report = run.report_out
        said = "something was found" if report.findings or report.raised is not None else ""
        if not said:
            for memory, old, back in zip(memories, before, returned, strict=True):
                _hand_back(memory, old, back, checked)
        loops = [loop.known() for loop in run.code.native_loops]
        _send(send, pickle.dumps((said, (run.code.irregular, run.code.uneven, loops))))
        status = 0
    except BaseException as error:
        text = "".join(traceback.format_exception_only(error)).strip()
        with contextlib.suppress(OSError):
            _send(send, pickle.dumps((f"a worker failed: {text}", (set(), set(), []))))
        status = 0
    finally:
        os._exit(status)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(DIES_WITH_ITS_PARENT, signal.SIGKILL)


def _send(pipe: int, message: bytes) -> None:
    while message:
        message = message[os.write(pipe, message) :]


def _tags(memory: GlobalMemory, checked: bool) -> Any:
    """Who wrote each granule last, if the shadow keeps that."""
    shadow = memory.shadow if checked else None
    return shadow.tag if shadow is not None and len(shadow.tag) else None


def _granule(memory: GlobalMemory, checked: bool) -> int:
    return memory.granule if _tags(memory, checked) is not None or memory.granule in (1, 2, 4, 8) else 1


def _shared(memory: GlobalMemory, granule: int) -> _Returned:
    size = len(memory.raw)
    buffer = mmap.mmap(-1, max(1, size + size // granule))
    whole = np.frombuffer(buffer, np.uint8)
    return _Returned(whole[size : size + size // granule], whole[:size], granule)


def _hand_back(memory: GlobalMemory, before: Any, back: _Returned, checked: bool) -> None:
    """In a worker: copy what was written to where the parent finds it."""
    tags = _tags(memory, checked)
    if tags is None:
        words = f"u{back.granule}"
        written = memory.raw.view(words) != before.view(words)
    else:
        written = tags != 0
    np.multiply(written.view(np.uint8), np.uint8(WRITTEN), out=back.touched)
    if tags is not None and memory.shadow.reader is not None:
        back.touched |= (memory.shadow.reader != 0).view(np.uint8)
    _copy(memory.raw, back.values, written, back.granule)


def _copy(source: Any, target: Any, chosen: Any, granule: int) -> None:
    """Copy chosen granules of bytes; those from the first to the last at once where all are chosen."""
    first, last = int(chosen.argmax()), len(chosen) - int(chosen[::-1].argmax())
    if not len(chosen) or not chosen[first]:
        return
    part = slice(first * granule, last * granule)
    if chosen[first:last].all():
        target[part] = source[part]
    else:
        target[part].reshape(-1, granule)[chosen[first:last]] = source[part].reshape(-1, granule)[chosen[first:last]]


def _wait(worker: _Worker, code: LaneCode) -> str:
    """Why a worker's part must run again; empty if it is done."""
    parts = []
    while part := os.read(worker.pipe, 1 << 16):
        parts.append(part)
    _, status = os.waitpid(worker.pid, 0)
    worker.ended = True
    if status != 0 or not parts:
        exit_code = os.waitstatus_to_exitcode(status)
        how = f"signal {-exit_code}" if exit_code < 0 else f"status {exit_code}"
        raise WorkerError(
            f"the worker process of blocks {worker.first} to {worker.last - 1} ended with {how} before they were done "
            "(out of memory?); launch with processes=1"
        )
    reason, (irregular, uneven, loops) = pickle.loads(b"".join(parts))
    code.irregular |= irregular
    code.uneven |= uneven
    for loop, known in zip(code.native_loops, loops, strict=bool(loops)):
        loop.learn(*known)
    return str(reason)


def _end(worker: _Worker) -> None:
    """Leave nothing of a worker behind."""
    os.close(worker.pipe)
    if not worker.ended:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(worker.pid, 0)


def _conflict(touched: list[Any]) -> bool:
    """True if a worker touched a granule that another one wrote."""
    before = touched[0].copy()
    for one in touched[1:]:
        both = (before != 0) & (one != 0)
        if ((before | one)[both] & WRITTEN).any():
            return True
        before |= one
    return False


def _combine(memory: GlobalMemory, parts: list[_Returned], way: Combined) -> None:
    """Make of a memory what all workers together have made of it."""
    after = []
    for part in parts:
        mine = memory.raw.copy()
        _copy(part.values, mine, (part.touched & WRITTEN) != 0, part.granule)
        after.append(mine)
    together = way.together(memory.raw, after)
    for part in parts:
        _apply(memory, part)  # for what is written from now on
    memory.raw[...] = together


def _apply(memory: GlobalMemory, back: _Returned) -> None:
    """Take over what a worker wrote, and that it was written."""
    written = (back.touched & WRITTEN) != 0
    if not written.any():
        return
    _copy(back.values, memory.raw, written, back.granule)
    shadow = memory.shadow
    if shadow is not None and shadow.initialized is not None and len(shadow.tag) == len(written):
        shadow.tag[written] = 1
