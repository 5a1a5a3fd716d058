"""Expressions of the dialect."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from refsim.dialect.types import Place, Type


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
    """A local variable, a parameter or an index such as ``threadIdx.x``; an integer's magnitude is at most 2**bits."""

    name: str
    bits: int = 63


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
