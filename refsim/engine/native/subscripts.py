"""Integers that grow by the same step in each trip: subscripts, and the cells that they lead to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from refsim.dialect import Binary, Compare, Const, Convert, Expr, Var
from refsim.engine.native.plans import Reading
from refsim.engine.pointers import Pointer
from refsim.engine.views import View

WIDEST = 1 << 62  # numbers up to here can be added without leaving int64
LIMITS = {f"{sign}int{bits}": (low, high) for bits in (8, 16, 32, 64) for sign, low, high in (
    ("", -(1 << (bits - 1)), (1 << (bits - 1)) - 1), ("u", 0, (1 << bits) - 1))}  # fmt: skip


class Unready(Exception):
    """What the loop meets this time is not what machine code was made for."""


@dataclass(frozen=True)
class Course:
    """The trips that all lanes make: the counter's first value, a number or one for each lane, its step, how many."""

    first: Any
    step: int
    trips: int

    def counter_after(self, trips: int) -> Any:
        """The counter when so many trips are done."""
        return self.first + trips * self.step


@dataclass(frozen=True)
class Line:
    """A number of each lane and trip: `begin`, and `slope` more in every trip.

    It is never less than `low` nor more than `high`, which it may not reach.
    """

    begin: Any
    slope: int
    low: int
    high: int


def is_number(value: Any) -> bool:
    """True for what integers of at most 64 bits with a sign travel as."""
    return type(value) is int or (isinstance(value, np.ndarray) and value.dtype == np.int64)


def line(begin: Any, slope: int, trips: int) -> Line:
    """A line with the bounds that it reaches."""
    if not is_number(begin):
        raise Unready
    least, most = (int(begin.min()), int(begin.max())) if isinstance(begin, np.ndarray) else (begin, begin)
    rise = slope * (trips - 1)
    return Line(begin, slope, least + min(0, rise), most + max(0, rise))


class Subscripts:
    """The integers of a loop, for the trips that it makes now."""

    def __init__(self, known: dict[str, Line], copies: dict[str, Expr], trips: int) -> None:
        self.known = known
        self.copies = copies
        self.trips = trips

    def line(self, e: Expr) -> Line:
        """An integer expression, no part of which leaves its type."""
        if isinstance(e, Const):
            return Line(int(e.value), 0, int(e.value), int(e.value))
        if isinstance(e, Var):
            if e.name not in self.known:
                self.known[e.name] = self.line(self.copies[e.name])
            return self.known[e.name]
        if isinstance(e, Convert):
            found = self.line(e.value)
        else:
            assert isinstance(e, Binary)
            found = _combined(e.op, self.line(e.left), self.line(e.right))
        low, high = LIMITS[str(e.type)]
        if not low <= found.low <= found.high <= high:
            found = line(found.begin, found.slope, self.trips)
            if not low <= found.low <= found.high <= high:
                raise Unready
        return found

    def trips_while(self, condition: Compare) -> int:
        """How many trips pass before a comparison first does not hold in some lane."""
        left, right = self.line(condition.left), self.line(condition.right)
        if condition.op in (">", ">="):
            left, right = right, left
        room = _combined("-", right, left)
        least = int(room.begin.min()) if isinstance(room.begin, np.ndarray) else room.begin
        least -= condition.op in ("<", ">")  # from here on it must not be negative
        if least < 0:
            return 0
        return self.trips if room.slope >= 0 else min(self.trips, least // -room.slope + 1)

    def cells(self, reading: Reading, array: Any, view: View) -> tuple[Any, int]:
        """The cell that is read in the first trip, in each lane, and the way to the next; all are inside the array."""
        lines = [self.line(e) for e in reading.index]
        if reading.through_pointer:
            start = array.offset // np.dtype(reading.dtype).itemsize
            lines[0] = _combined("+", lines[0], line(start, 0, self.trips))
        if len(lines) != len(view.shape):
            raise Unready
        begin, stride = view.offset, 0
        for subscript, extent, distance in zip(lines, view.shape, view.strides, strict=True):
            if not 0 <= subscript.low <= subscript.high < extent:
                exact = line(subscript.begin, subscript.slope, self.trips)
                if not 0 <= exact.low <= exact.high < extent:
                    raise Unready
            begin = begin + (subscript.begin if distance == 1 else subscript.begin * distance)
            stride += subscript.slope * distance
        return begin, stride


def _combined(op: str, left: Line, right: Line) -> Line:
    if op == "-":
        right = Line(-right.begin, -right.slope, -right.high, -right.low)
    if op != "*":
        found = Line(left.begin + right.begin, left.slope + right.slope, left.low + right.low, left.high + right.high)
    else:
        if left.slope:
            left, right = right, left
        if right.slope and type(left.begin) is not int:
            raise Unready  # each lane would have a slope of its own
        ends = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
        slope = left.begin * right.slope if right.slope else 0
        found = Line(left.begin * right.begin, slope, min(ends), max(ends))
    if max(abs(found.low), abs(found.high)) >= WIDEST:
        raise Unready
    return found


def view_of(reading: Reading, array: Any) -> View:
    """The array that is read, as elements of its type; a shared one in rows of blocks."""
    if reading.through_pointer:
        if type(array) is not Pointer or not is_number(array.offset):
            raise Unready
        size = np.dtype(reading.dtype).itemsize
        if array.memory.word not in (None, size) or np.any(array.offset % size):
            raise Unready
        view: View = array.memory.window(reading.dtype)
    else:
        view = array
        if type(view) is not View or view.varies:
            raise Unready
    data = view.data
    dimensions = 2 if view.memory.space == "shared" else 1
    if data.ndim != dimensions or not data.flags.c_contiguous or data.dtype != np.dtype(reading.dtype):
        raise Unready
    return view
