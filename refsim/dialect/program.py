"""A kernel in the dialect: its parameters, allocations and statements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from refsim.dialect.expressions import Var
from refsim.dialect.statements import Stmt
from refsim.dialect.types import Place, Type

INDICES = (
    *(f"{name}.{axis}" for name in ("threadIdx", "blockIdx", "blockDim", "gridDim") for axis in "xyz"),
    "laneid",
)


@dataclass(frozen=True)
class Allocation:
    """A shared or local array that the kernel declares; `dynamic` shared arrays take their size at launch.

    A `raw` one is a pointer to its first byte; a constant one (space ``constant``) takes its bytes from
    `Program.constants`.
    """

    name: str
    space: str
    dtype: str
    shape: tuple[int, ...]
    dynamic: bool = False
    raw: bool = False

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count


@dataclass
class Function:
    """A function of numbers that calls itself; it touches no memory, and `result` holds what it returns."""

    name: str
    place: Place
    parameters: tuple[tuple[str, Type | None], ...]
    body: list[Stmt]
    result: Var


@dataclass
class Program:
    """A kernel in the dialect. `most_threads` is the largest block that its source says it may be launched with."""

    name: str
    place: Place
    parameters: tuple[tuple[str, Type | None], ...]
    body: list[Stmt]
    allocations: tuple[Allocation, ...] = ()
    constants: dict[str, Any] = field(default_factory=dict)
    wraps_negative: bool = True
    exit_label: str = "kernel"
    most_threads: int | None = None
    functions: tuple[Function, ...] = ()
