"""Statements of the dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from refsim.dialect.expressions import Expr
from refsim.dialect.types import Place


@dataclass
class Assign:
    """Bind a local variable. With a place, an int32 overflow of a value that later indexes memory is reported.

    `line` is where the statement stands, for counters.
    """

    name: str
    value: Expr
    place: Place | None = None
    line: Place | None = None


@dataclass
class Store:
    """Write one element of an array."""

    array: Expr
    index: tuple[Expr, ...]
    value: Expr
    place: Place


@dataclass
class StoreAt:
    """Write a scalar at a pointer, which must be a multiple of the scalar's size."""

    pointer: Expr
    value: Expr
    place: Place
    volatile: bool = False


@dataclass
class Align:
    """The following accesses at a pointer are one of this many bytes: it must be a multiple of them."""

    pointer: Expr
    bytes: int
    place: Place


@dataclass(frozen=True)
class Fragment:
    """How one operand of a matrix instruction lies in the registers of a warp.

    Attributes
    ----------
    role
        ``a`` (rows × depth), ``b`` (depth × columns) or ``c`` (rows × columns, also the result).
    dtype
        Scalar type of an element; ``tfloat32`` is a float32 of which the low 13 bits are not looked at.
    rows, columns
        Extents of the matrix.
    packed
        Elements in one register.
    """

    role: str
    dtype: str
    rows: int
    columns: int
    packed: int


@dataclass
class MatrixMultiply:
    """``d = a × b + c`` by all lanes of a warp; each operand is the registers of a `Fragment`, `targets` those of d."""

    name: str
    targets: tuple[str, ...]
    fragments: tuple[Fragment, Fragment, Fragment, Fragment]
    a: tuple[Expr, ...]
    b: tuple[Expr, ...]
    c: tuple[Expr, ...]
    saturate: bool
    place: Place


@dataclass
class Effect:
    """Evaluate for effect, dropping the value."""

    value: Expr


@dataclass
class If:
    """Threads for which the condition holds run `then`, the others `otherwise`."""

    condition: Expr
    then: list[Stmt]
    otherwise: list[Stmt]
    line: Place | None = None


@dataclass
class Block:
    """Statements that a `Break` to the label leaves."""

    label: str
    body: list[Stmt]


@dataclass
class Loop:
    """Repeat `body` and `step` while `condition` holds; `Break` to the label leaves the loop."""

    label: str
    condition: Expr | None
    body: list[Stmt]
    step: list[Stmt]
    place: Place


@dataclass
class Break:
    """Leave the labelled block or loop."""

    label: str


@dataclass
class Barrier:
    """All threads of the block wait for each other; with scope ``grid``, all threads of the launch."""

    place: Place
    scope: str = "block"


@dataclass
class WarpBarrier:
    """The threads of a warp named in the mask wait for each other."""

    mask: Expr
    place: Place


@dataclass
class Fence:
    """Order this thread's memory accesses: scope ``block``, ``device`` or ``system``."""

    scope: str
    place: Place


@dataclass
class Asynchronous:
    """Copies that run beside the kernel: stores between ``begin`` and ``end`` are such copies, ``commit`` makes a group
    of them, ``wait`` waits for all groups of this thread but the last `count`.
    """

    action: str
    count: Expr | None
    place: Place


@dataclass
class Print:
    """Print one line per thread; strings are constants. With `printf` the first part is a C format."""

    parts: tuple[Expr | str, ...]
    place: Place
    printf: bool = False


@dataclass
class Assert:
    """A condition that every thread claims to hold; `exception` is what is raised: a class and its arguments."""

    condition: Expr
    message: str
    place: Place
    exception: tuple[Any, tuple[Any, ...]] | None = None


Stmt = (
    Assign
    | Store
    | StoreAt
    | Align
    | MatrixMultiply
    | Effect
    | If
    | Block
    | Loop
    | Break
    | Barrier
    | WarpBarrier
    | Fence
    | Asynchronous
    | Print
    | Assert
)
