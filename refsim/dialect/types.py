"""Types of the dialect: element types, arrays, pointers, and places in the source."""

from __future__ import annotations

from dataclasses import dataclass
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
