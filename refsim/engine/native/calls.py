"""Calls of machine code: their parameters, how trips and threads are divided, and the loops of NumPy that it calls."""

from __future__ import annotations

import ctypes
from functools import cache
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.engine.intrinsics import elementary
from refsim.engine.native.layouts import CARRIERS

if TYPE_CHECKING:
    from refsim.engine.native.machine_code import Compiled

WORTH_A_CORE = 4e7  # operations of lanes for each core, in one run of a loop: about a millisecond
MOST_AT_ONCE = 2e9  # operations of lanes for each core, that no signal can interrupt


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

    def run(self, rows: int, trips: int, work: int, cores: int) -> None:
        """Run all trips, some at a time, so that Ctrl-C need not wait for all of them.

        `work` is the number of operations of a trip, of all lanes together.
        """
        cores = max(1, min(cores, rows, int(work * trips / WORTH_A_CORE)))
        step = max(1, int(cores * MOST_AT_ONCE / work))
        for first in range(0, trips, step):
            self.set("first trip", first)
            self.set("end trip", min(trips, first + step))
            self._run_rows(rows, cores)
            for dtype in CARRIERS:  # where one part ends, the next begins
                self.set(f"in {dtype}", int(self.table[self.code.positions[f"out {dtype}"]]))

    def _run_rows(self, rows: int, cores: int) -> None:
        """Run all threads of the set, a part of them on each core."""
        parts = []
        for core in range(cores):
            self.set("first row", rows * core // cores)
            self.set("end row", rows * (core + 1) // cores)
            parts.append(self.table.copy())
        helpers = [Thread(target=self.code.run, args=(part.ctypes.data,)) for part in parts[1:]]
        try:
            mine = [parts[0]]
            for helper, part in zip(helpers, parts[1:], strict=True):
                try:
                    helper.start()
                except RuntimeError:  # no thread is to be had
                    mine.append(part)
            for part in mine:
                self.code.run(part.ctypes.data)
        finally:
            _wait_for(helpers)


def _wait_for(helpers: list[Thread]) -> None:
    """Wait for threads, which write to memory that is given up next, also while Ctrl-C is pressed."""
    interrupted = None
    for helper in helpers:
        while helper.is_alive():
            try:
                helper.join()
            except KeyboardInterrupt as error:
                interrupted = error
    if interrupted is not None:
        raise interrupted


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
