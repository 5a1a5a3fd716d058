"""C++ types: numbers, pointers, references, arrays, records and functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from refsim.dialect import PointerType


@dataclass(frozen=True)
class Scalar:
    """A number: its C++ name and its dialect type. Enumerations are numbers too."""

    name: str
    dtype: str


@dataclass(frozen=True)
class Void:
    """No value."""


@dataclass(frozen=True)
class Pointer:
    """A pointer."""

    pointee: CType


@dataclass(frozen=True)
class Reference:
    """A reference, lvalue or rvalue."""

    target: CType


@dataclass(frozen=True)
class Array:
    """An array; `count` is None where the source leaves it open."""

    element: CType
    count: int | None


@dataclass(frozen=True)
class Record:
    """A class, struct, union or closure, by the id of its declaration."""

    id: str
    name: str


@dataclass(frozen=True)
class Function:
    """A function: its result and parameters."""

    result: CType
    parameters: tuple[CType, ...]


@dataclass(frozen=True)
class Piece:
    """Bits of a word: its byte offset from that of the bit-field, its type, the lowest bit and how many."""

    offset: int
    dtype: str
    shift: int
    width: int


@dataclass(frozen=True)
class BitField:
    """A bit-field: its declared type, and where its bits lie, the lowest ones first."""

    scalar: Scalar
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Qualified:
    """A const or volatile type, as far as it tells template arguments apart: nowhere else does it matter."""

    kind: CType


pointer_to = cache(PointerType)
"""The dialect's pointer to a scalar type; one object each, which keeps stored translations small."""

CType = Scalar | Void | Pointer | Reference | Array | Record | Function | BitField | Qualified

BUILTIN: dict[str, str] = {
    "bool": "bool", "_Bool": "bool", "char": "int8", "signed char": "int8", "unsigned char": "uint8",
    "char8_t": "uint8", "short": "int16", "unsigned short": "uint16", "char16_t": "uint16", "int": "int32",
    "unsigned int": "uint32", "unsigned": "uint32", "char32_t": "uint32", "wchar_t": "int32", "long": "int64",
    "unsigned long": "uint64", "long long": "int64", "unsigned long long": "uint64", "float": "float32",
    "double": "float64", "_Float16": "float16", "__fp16": "float16", "half": "float16", "__bf16": "bfloat16",
    "long double": "float64", "__size_t": "uint64", "__ptrdiff_t": "int64", "__signed_size_t": "int64",
}  # fmt: skip
SCALARS = {name: Scalar(name, dtype) for name, dtype in BUILTIN.items()}
# types made of built-in ones only mean the same everywhere
_BUILT_IN: dict[str, CType] = {}
BOOL, INT, UNSIGNED, LONG = (SCALARS[name] for name in ("bool", "int", "unsigned int", "long"))
TABLE = Scalar("vtable", "uint64")
CHAR, FLOAT, DOUBLE, SIZE = (SCALARS[name] for name in ("char", "float", "double", "unsigned long"))


class UnknownTypeError(Exception):
    """A type that is not known; becomes an `UnsupportedError` with file and line."""


@dataclass(frozen=True)
class Leaf:
    """A number, pointer or reference inside an object: where it lies and its type."""

    offset: int
    type: CType
    path: str


@dataclass
class Layout:
    """Size and alignment in bytes, and byte offset of every field and base, by id."""

    size: int
    align: int
    data_size: int
    fields: dict[str, int] = field(default_factory=dict)
    bases: dict[str, int] = field(default_factory=dict)
    members: list[tuple[str, int, CType]] = field(default_factory=list)
    is_union: bool = False
    bits: dict[str, BitField] = field(default_factory=dict)
    words: list[tuple[int, Scalar]] = field(default_factory=list)


def number_type(kind: CType) -> Scalar | None:
    """Type of a number, or of the number that a bit-field holds."""
    return kind.scalar if isinstance(kind, BitField) else kind if isinstance(kind, Scalar) else None


def describe(kind: CType) -> str:
    """A type as C++ writes it."""
    if isinstance(kind, Scalar | Record):
        return kind.name
    if isinstance(kind, BitField):
        return describe(kind.scalar)
    if isinstance(kind, Pointer):
        return f"{describe(kind.pointee)}*"
    if isinstance(kind, Reference):
        return f"{describe(kind.target)}&"
    if isinstance(kind, Array):
        return f"{describe(kind.element)}[{'' if kind.count is None else kind.count}]"
    if isinstance(kind, Function):
        return f"{describe(kind.result)}({', '.join(map(describe, kind.parameters))})"
    return "void"
