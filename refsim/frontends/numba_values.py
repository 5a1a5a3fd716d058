"""Values while a Numba kernel is translated: typed expressions, compile-time objects, tuples of values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Union

import numpy as np

from refsim.dialect import Const, Expr
from refsim.frontends import numba_types


@dataclass(frozen=True)
class Static:
    """An object known when the kernel is translated: a constant, a module, a function, a type."""

    value: Any


@dataclass(frozen=True)
class TupleValue:
    """A tuple; exists only during translation.

    `names` are the attributes of a named tuple or of a vector such as ``cuda.float4``; `vector` is the vector's type,
    empty for a tuple.
    """

    items: tuple[Value, ...]
    names: tuple[str, ...] = ()
    vector: str = ""

    def having(self, items: Iterable[Value]) -> TupleValue:
        """A tuple of the same type with other items."""
        return TupleValue(tuple(items), self.names, self.vector)


@dataclass(frozen=True, eq=False)
class LocalFunction:
    """A function that is defined within a kernel: it sees the variables around it as they are when it is called."""

    definition: ast.FunctionDef
    defaults: tuple[Value, ...]
    scope: Any


@dataclass(frozen=True)
class Method:
    """A method of an array that is about to be called."""

    owner: Value
    name: str


@dataclass(frozen=True)
class Buffer:
    """``ffi.from_buffer(a)`` of cffi: a pointer to the first element of an array."""

    array: Expr


@dataclass(frozen=True)
class Elements:
    """``a.flat`` and ``np.nditer(a)``: the elements of an array in C order, one by one; `boxed` for the latter."""

    array: Expr
    boxed: bool = False


@dataclass(frozen=True)
class Iteration:
    """What a loop runs over: a number of trips, and what each gives."""

    length: Expr
    item: Callable[[Expr], Value]


def as_tuple(value: Value) -> TupleValue | None:
    """A value as a tuple: also one that the kernel captured; None if it is none."""
    if isinstance(value, TupleValue):
        return None if value.vector else value
    if isinstance(value, Static) and isinstance(value.value, (tuple, list)):
        return TupleValue(tuple(Static(item) for item in value.value), getattr(value.value, "_fields", ()))
    return None


Value = Union[Expr, Static, "TupleValue"]
Environment = dict[str, Value]


def to_expression(value: Value) -> Expr | None:
    """A value as an expression; a static number becomes a constant, anything else None."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, Static):
        held = value.value
        if isinstance(held, Enum):
            held = held.value
        if isinstance(held, (bool, int, float, complex)) and not isinstance(held, np.generic):
            return Const(held, type=numba_types.literal_type(held))
        if isinstance(held, np.generic) and held.dtype.name in numba_types.SCALAR_TYPES:
            return Const(held.item() if held.dtype.kind in "biu" else held, type=held.dtype.name)
    return None


def is_known(value: Value) -> bool:
    """True if a value is known when the kernel is translated."""
    if isinstance(value, TupleValue):
        return all(is_known(item) for item in value.items)
    return isinstance(value, Static)


def assigned_names(node: ast.AST) -> set[str]:
    """Names that a statement binds, nested statements included."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
