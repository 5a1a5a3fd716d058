"""How machine code finds its data: where each reading, invariant and state lies, and what its parameters are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from refsim.engine.lane_types import lane_dtype
from refsim.engine.native.plans import Plan

VECTOR = 16  # lanes of one vector
WIDEST = 2 * VECTOR  # lanes that a plan with calls works on side by side
CARRIERS = ("float32", "float64", "int64", "uint64")  # what lane values travel as


@dataclass(frozen=True)
class Group:
    """Readings of one array whose cells lie at fixed distances from each other.

    A cell of shared memory is one value for each block. `varies` says what the cell depends on: nothing (``one``), the
    thread (``row``), the block (``column``) or both (``full``); in shared memory it depends on the thread at most.
    `stride` is how many cells a trip moves on, `distances` has (number of the reading, cells from the group's first).
    """

    dtype: str
    shared: bool
    varies: str
    stride: int
    distances: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Layout:
    """What one variant of a plan's function takes.

    Attributes
    ----------
    columns
        Blocks of the batch.
    kinds
        For each invariant of the plan how it varies: ``one``, ``row`` (with the thread), ``column``, ``full``.
    groups
        Groups of the plan's readings.
    """

    columns: int
    kinds: tuple[str, ...]
    groups: tuple[Group, ...]

    def members(self, plan: Plan, kind: str, dtype: str) -> list[str]:
        """Invariants that vary in one way and travel as one type, in the order of their block."""
        named = zip(plan.invariants, self.kinds, strict=True)
        return [n for n, k in named if k == kind and carrier(plan.types[n]) == dtype]


def pitch_of(columns: int) -> int:
    """Elements from one variable to the next in a block: not a multiple of what caches map to one place."""
    return columns + VECTOR if columns % WIDEST == 0 else columns


KINDS = ("full", "row", "column", "one")
HEAD = ("first row", "end row", "first trip", "end trip", "counter", "step")
BLOCKS = tuple(f"{what} {dtype}" for dtype in CARRIERS for what in ("out", "in", *KINDS))


def parameters(plan: Plan, layout: Layout) -> dict[str, int]:
    """Position of each parameter in the array that the function takes."""
    names = [*HEAD, *BLOCKS]
    for number in range(len(layout.groups)):
        names += [f"data {number}", f"cells {number}"]
    for name in functions_called(plan):
        names += [f"loop {name}", f"loop data {name}"]
    return {name: position for position, name in enumerate(names)}


def functions_called(plan: Plan) -> list[str]:
    """Functions of NumPy that a plan calls."""
    return sorted({str(o.detail) for o in plan.operations if o.kind == "call"})


def states_of(plan: Plan, dtype: str) -> list[str]:
    """States that travel as one type, in the order of their block."""
    return [name for name, _ in plan.states if carrier(plan.types[name]) == dtype]


@cache
def carrier(kind: str) -> str:
    """The type that lane values of a type travel as."""
    return str(lane_dtype(kind))
