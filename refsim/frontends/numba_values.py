"""Values while a Numba kernel is translated: typed expressions, compile-time objects, tuples of values."""

from __future__ import annotations

import ast
from dataclasses import dataclass
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
    """A tuple; exists only during translation."""

    items: tuple[Value, ...]


Value = Union[Expr, Static, "TupleValue"]
Environment = dict[str, Value]


def to_expression(value: Value) -> Expr | None:
    """A value as an expression; a static number becomes a constant, anything else None."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, Static):
        held = value.value
        if isinstance(held, (bool, int, float)):
            return Const(held, type=numba_types.literal_type(held))
        if isinstance(held, np.generic) and held.dtype.name in numba_types.SCALAR_TYPES:
            return Const(held.item() if held.dtype.kind in "biu" else held, type=held.dtype.name)
    return None


def assigned_names(node: ast.AST) -> set[str]:
    """Names that a statement binds, nested statements included."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
