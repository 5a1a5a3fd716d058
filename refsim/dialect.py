"""The kernel dialect: the small typed language between the front ends and the engine.

A front end turns source text into a `Program`; the engine turns a `Program` into lane code. Every
conversion is explicit, every operator has operands of one type, and control flow is structured:
`If`, `Loop`, `Block` and `Break` out of a labelled block or loop. Scalar types are the strings
``bool int8 … uint64 float16 float32 float64 complex64 complex128`` and the narrow floats; arrays have an `ArrayType`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

import numpy as np

ITEM_BYTES = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "float16": 2, "int32": 4, "uint32": 4,
    "float32": 4, "int64": 8, "uint64": 8, "float64": 8, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "float8_e8m0fnu": 1,
    "complex64": 8, "complex128": 16,
}  # fmt: skip
INTEGERS = frozenset(name for name in ITEM_BYTES if "int" in name)
FLOATS = frozenset(name for name in ITEM_BYTES if "float" in name)
COMPLEX = frozenset(name for name in ITEM_BYTES if "complex" in name)


class RecordType(str):
    """Element type of an array of records, by its NumPy type; as a string it names that type for people."""

    dtype: np.dtype[Any]

    def __new__(cls, dtype: np.dtype[Any]) -> RecordType:
        """The record type of a structured NumPy type."""
        self = super().__new__(cls, f"record {dtype}")
        self.dtype = dtype
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return RecordType, (self.dtype,)


@cache
def dtype_name(dtype: np.dtype[Any]) -> str:
    """Element type of a NumPy type: its name, which NumPy works out anew each time, or the type of its records."""
    if dtype.names is not None:
        return RecordType(np.dtype((np.void, dtype)))
    return str(dtype.name)


def item_bytes(dtype: str) -> int:
    """Bytes of an array element: of a scalar type or a record."""
    return dtype.dtype.itemsize if isinstance(dtype, RecordType) else ITEM_BYTES[dtype]


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """NumPy's type for an element type."""
    return dtype.dtype if isinstance(dtype, RecordType) else np.dtype(dtype)


@dataclass(frozen=True)
class ArrayType:
    """Type of an array value: type of an element (a scalar type or a `RecordType`) and number of dimensions."""

    dtype: str
    ndim: int

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(':' * self.ndim)}]"


@dataclass(frozen=True)
class PointerType:
    """Type of a pointer: a memory object and an offset in bytes. `pointee` is the scalar type it was declared for."""

    pointee: str

    def __str__(self) -> str:
        return f"{self.pointee}*"


Type = str | ArrayType | PointerType


@dataclass(frozen=True)
class KnownType:
    """Type of a kernel argument whose value is part of the type: a member of an enumeration."""

    value: Any


@dataclass(frozen=True)
class NamedTupleType:
    """Type of a kernel argument that is a named tuple."""

    names: tuple[str, ...]
    items: tuple[Any, ...]


@dataclass(frozen=True)
class Place:
    """A line of source: what a finding points at."""

    file: str
    line: int
    text: str


# ---------------------------------------------------------------------------------------------- expressions


@dataclass(frozen=True, kw_only=True)
class Expr:
    """Base of all expressions; `type` is the type of the value."""

    type: Type


@dataclass(frozen=True)
class Const(Expr):
    """A compile-time scalar."""

    value: Any


@dataclass(frozen=True)
class Var(Expr):
    """A local variable, a parameter or an index such as ``threadIdx.x``."""

    name: str


@dataclass(frozen=True)
class Convert(Expr):
    """Conversion of a scalar to another scalar type."""

    value: Expr


@dataclass(frozen=True)
class Unary(Expr):
    """``-``, ``~`` or ``not`` on an operand of type `type`."""

    op: str
    value: Expr


@dataclass(frozen=True)
class Binary(Expr):
    """Arithmetic, bit, shift or logical operator; both operands have the type of the result."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Compare(Expr):
    """Comparison of two operands of one type; the result is bool."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Select(Expr):
    """``then if condition else otherwise`` with both sides evaluated; both are free of effects."""

    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True)
class Intrinsic(Expr):
    """An element-wise function, such as ``sqrt`` or ``popc``, on operands of `operand` type."""

    name: str
    operand: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class Call(Expr):
    """A call of one of the program's functions, by those threads that get there."""

    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class Load(Expr):
    """One element of an array."""

    array: Expr
    index: tuple[Expr, ...]
    place: Place


@dataclass(frozen=True)
class SliceItem:
    """``start:stop:step`` in a subscript; absent parts are None."""

    start: Expr | None
    stop: Expr | None
    step: Expr | None


@dataclass(frozen=True)
class Slice(Expr):
    """A view of part of an array; an index drops its dimension, a `SliceItem` keeps it."""

    array: Expr
    items: tuple[Expr | SliceItem, ...]
    place: Place


@dataclass(frozen=True)
class Dim(Expr):
    """Length of one dimension of an array."""

    array: Expr
    axis: int


@dataclass(frozen=True)
class Stride(Expr):
    """Bytes from one element of an array to the next along one dimension."""

    array: Expr
    axis: int


@dataclass(frozen=True)
class Field(Expr):
    """One field of every record of an array, as a view; the dimensions of a field that is an array come last."""

    array: Expr
    name: str


@dataclass(frozen=True)
class Rearranged(Expr):
    """The same elements seen otherwise.

    ``transpose`` takes the axes in the order of `extents`, ``reshape`` gives a contiguous array these extents, and
    ``view`` reads the bytes as the element type of `type`.
    """

    array: Expr
    how: str
    extents: tuple[Expr, ...]
    place: Place


@dataclass(frozen=True)
class ConstArray(Expr):
    """A read-only array whose values were fixed when the kernel was translated."""

    name: str


@dataclass(frozen=True)
class PointerAdd(Expr):
    """A pointer moved by a number of bytes (int64)."""

    pointer: Expr
    offset: Expr


@dataclass(frozen=True)
class PointerDifference(Expr):
    """Bytes (int64) from the right pointer to the left one; both point into one memory object."""

    left: Expr
    right: Expr


@dataclass(frozen=True)
class PointerCompare(Expr):
    """Comparison of two pointers."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class NullPointer(Expr):
    """The pointer to nothing."""


@dataclass(frozen=True)
class SharedAddress(Expr):
    """The 32-bit address of a pointer within the shared memory of its block (uint32)."""

    pointer: Expr


@dataclass(frozen=True)
class SharedPointer(Expr):
    """The pointer that a 32-bit address within shared memory stands for."""

    address: Expr


@dataclass(frozen=True)
class LoadAt(Expr):
    """A scalar at a pointer, which must be a multiple of the scalar's size."""

    pointer: Expr
    place: Place
    volatile: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class AtomicAt(Expr):
    """Atomic read-modify-write of the scalar at a pointer; the value is what was there before."""

    op: str
    pointer: Expr
    args: tuple[Expr, ...]
    scope: str
    place: Place


@dataclass(frozen=True)
class BarrierObject(Expr):
    """An operation on the barrier object at a pointer into shared memory: see `refsim.engine.barrier_objects`."""

    op: str
    pointer: Expr
    args: tuple[Expr, ...]
    place: Place


@dataclass(frozen=True)
class Bitcast(Expr):
    """The bits of a scalar read as another scalar type of the same size."""

    value: Expr


@dataclass(frozen=True)
class Atomic(Expr):
    """Atomic read-modify-write; the value is what the cell held before."""

    op: str
    array: Expr
    index: tuple[Expr, ...]
    args: tuple[Expr, ...]
    place: Place


@dataclass(frozen=True)
class Warp(Expr):
    """A warp-wide operation: shuffle, vote, match, active mask."""

    op: str
    args: tuple[Expr, ...]
    place: Place


@dataclass(frozen=True)
class BlockVote(Expr):
    """A barrier that also counts, ands or ors a predicate over the block."""

    op: str
    predicate: Expr
    place: Place


# ----------------------------------------------------------------------------------------------- statements


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

# -------------------------------------------------------------------------------------------------- program

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


def _find_expression_fields(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if "Expr" in str(each.type))


_expression_fields: Callable[[Any], tuple[str, ...]] = cache(_find_expression_fields)
"""Names of the fields of a kind of expression or statement that may hold expressions."""


def child_expressions(node: Any) -> Iterator[Expr]:
    """Expressions directly below an expression or statement (not those of nested statement lists)."""
    for name in _expression_fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, Expr):
            yield value
        elif isinstance(value, tuple):
            for item in value:
                if isinstance(item, Expr):
                    yield item
                elif isinstance(item, SliceItem):
                    for part in (item.start, item.stop, item.step):
                        if part is not None:
                            yield part


def walk_expressions(node: Any) -> list[Expr]:
    """All expressions below a node, children first."""
    found: list[Expr] = []
    _collect(node, found)
    return found


def _collect(node: Any, found: list[Expr]) -> None:
    if not _expression_fields(type(node)):
        return
    for child in child_expressions(node):
        _collect(child, found)
        found.append(child)


def walk_statements(body: list[Stmt]) -> Iterator[Stmt]:
    """All statements of a list and of the lists nested in it."""
    for statement in body:
        yield statement
        if isinstance(statement, If):
            yield from walk_statements(statement.then)
            yield from walk_statements(statement.otherwise)
        elif isinstance(statement, Block):
            yield from walk_statements(statement.body)
        elif isinstance(statement, Loop):
            yield from walk_statements(statement.body)
            yield from walk_statements(statement.step)


def assigned_names(statement: Stmt) -> tuple[str, ...]:
    """Variables that a statement itself assigns."""
    if isinstance(statement, Assign):
        return (statement.name,)
    return statement.targets if isinstance(statement, MatrixMultiply) else ()


EFFECTS = (Call, Atomic, AtomicAt, BarrierObject, Warp, BlockVote)


def is_free(expression: Expr) -> bool:
    """True if evaluating the expression in a thread that does not need it changes and touches nothing."""
    guarded = (Load, LoadAt, Slice, Rearranged, *EFFECTS)
    return not isinstance(expression, guarded) and not any(
        isinstance(part, guarded) for part in walk_expressions(expression)
    )
