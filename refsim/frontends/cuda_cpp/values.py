"""What C++ expressions are while they are translated: places that hold objects, and values."""

from __future__ import annotations

from dataclasses import dataclass, field

from refsim.dialect import (
    Binary,
    Bitcast,
    Compare,
    Const,
    Convert,
    Expr,
    Intrinsic,
    NullPointer,
    PointerAdd,
    PointerCompare,
    PointerDifference,
    Select,
    Unary,
)
from refsim.frontends.cuda_cpp.tree import Node
from refsim.frontends.cuda_cpp.types import CType, Record


@dataclass(eq=False)
class Object:
    """A variable whose numbers and pointers are program variables of their own.

    Attributes
    ----------
    leaves
        The program variable (or the constant) of each leaf, by byte offset.
    references
        What each reference inside the object is bound to, by byte offset.
    key
        Names the declaration, so that it can be put into memory if its address is needed.
    """

    type: CType
    key: str
    leaves: dict[int, Expr] = field(default_factory=dict)
    references: dict[int, LValue] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class InObject:
    """A part of an object in program variables."""

    object: Object
    offset: int
    type: CType


@dataclass(frozen=True, eq=False)
class InMemory:
    """An object in memory, a constant number of bytes after a pointer."""

    pointer: Expr
    offset: int
    type: CType
    volatile: bool = False


LValue = InObject | InMemory


@dataclass(frozen=True, eq=False)
class Aggregate:
    """A record's value: a value for each leaf by byte offset."""

    type: CType
    leaves: dict[int, Expr]
    references: dict[int, LValue] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class AddressOf:
    """A pointer to an object in program variables; the object moves to memory if the pointer is more than a name."""

    place: InObject
    type: CType


@dataclass(frozen=True, eq=False)
class FunctionName:
    """A function that is called by name."""

    node: Node


@dataclass(frozen=True, eq=False)
class Text:
    """A string literal."""

    text: str


Value = Expr | Aggregate | AddressOf | FunctionName | Text | None

PURE = (
    Binary, Bitcast, Compare, Convert, Intrinsic, PointerAdd, PointerCompare, PointerDifference, Select, Unary,
)  # fmt: skip
CONSTANT = (Const, NullPointer)

__all__ = [
    "CONSTANT", "PURE", "AddressOf", "Aggregate", "FunctionName", "InMemory", "InObject", "LValue", "Object",
    "Record", "Text", "Value",
]  # fmt: skip
