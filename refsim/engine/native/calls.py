"""Calls of machine code: their parameters, how trips and threads are divided, and the loops of NumPy that it calls."""

from __future__ import annotations

import _thread
import ctypes
import time
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.engine.intrinsics import elementary
from refsim.engine.native.layouts import CARRIERS

if TYPE_CHECKING:
    from refsim.engine.native.machine_code import Compiled

WORTH_A_CORE = 4e7  # operations of lanes for each core, in one run of a loop: about a millisecond
FIRST_PART = 1e7  # operations of lanes for each core, after which it is known how long they take
PART_SECONDS = 0.05  # for which no signal can interrupt a loop
MOST_GROWTH = 16.0  # of a part over the one before it


class Call:
    """One run of machine code: its parameters, and how its trips and rows are divided."""

    def __init__(self, code: Compiled) -> None:
        self.code = code
        self.table = np.zeros(len(code.positions), np.int64)
        self.arrays: dict[str, Any] = {}

    def set(self, name: str, value: int) -> None:
        """Give a parameter."""
        self.table[self.code.positions[name]] = value

    def point(self, name: str, array: Any) -> None:
        """Give an array, which lives until another takes its place."""
        self.arrays[name] = array
        self.set(name, array.ctypes.data)

    def run(self, rows: int, trips: int, work: int, cores: int, kept: Any) -> None:
        """Run all trips, some at a time, so that Ctrl-C need not wait for all of them.

        `work` is the number of operations of a trip, of all lanes together, `kept` what the parameters point into.
        """
        cores = max(1, min(cores, rows, int(work * trips / WORTH_A_CORE)))
        step = max(1, int(cores * FIRST_PART / work))
        first = 0
        while first < trips:
            last = min(trips, first + step)
            self.set("first trip", first)
            self.set("end trip", last)
            started = time.perf_counter()
            self._run_rows(rows, cores, kept)
            faster = PART_SECONDS / max(time.perf_counter() - started, 1e-9)
            step = max(1, int(step * min(faster, MOST_GROWTH)))
            first = last
            for dtype in CARRIERS:  # where one part ends, the next begins
                self.set(f"in {dtype}", int(self.table[self.code.positions[f"out {dtype}"]]))

    def _run_rows(self, rows: int, cores: int, kept: Any) -> None:
        """Run all threads of the set, a part of them on each core."""
        parts = []
        for core in range(cores):
            self.set("first row", rows * core // cores)
            self.set("end row", rows * (core + 1) // cores)
            parts.append(self.table.copy())
        mine, waiting = [parts[0]], []
        for part in parts[1:]:
            done = _thread.allocate_lock()
            done.acquire()
            try:
                _thread.start_new_thread(_run_part, (self.code, part, dict(self.arrays), kept, done))
                waiting.append(done)
            except RuntimeError:  # no thread is to be had
                mine.append(part)
        for part in mine:
            self.code.run(part.ctypes.data)
        for done in waiting:
            done.acquire()


def _run_part(code: Compiled, part: Any, arrays: dict[str, Any], kept: Any, done: Any) -> None:
    """Run a part in a thread, which holds all that it reads and writes: Ctrl-C may end the launch before it is done."""
    try:
        code.run(part.ctypes.data)
    finally:
        done.release()


# ------------------------------------------------------------------------------------- loops of NumPy's functions


class _UFunc(ctypes.Structure):
    """The beginning of NumPy's public ``PyUFuncObject``."""

    _fields_ = [
        ("head", ctypes.c_ssize_t * (object.__basicsize__ // ctypes.sizeof(ctypes.c_ssize_t))),
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
    ]


@cache
def loop_of(name: str) -> tuple[int, int]:
    """Addresses of the loop of a function of one float64 that NumPy itself runs, and of its data."""
    function = elementary.UNARY[name]
    assert isinstance(function, np.ufunc)
    fields = _UFunc.from_address(id(function))
    position = function.types.index("d->d")
    return fields.functions[position] or 0, (fields.data[position] if fields.data else 0) or 0
