"""Building dialect expressions, with operators on constants carried out at once."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from refsim.dialect import (
    FLOATS,
    INTEGERS,
    ITEM_BYTES,
    Binary,
    Compare,
    Const,
    Convert,
    Expr,
    PointerAdd,
    Select,
    Type,
    Unary,
)

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
NATIVE = ("float16", "float32", "float64")


@cache
def integer(value: int, kind: str) -> Const:
    """An integer constant, wrapped to its type."""
    return Const(wrapped(value, kind), type=kind)


def wrapped(value: int, kind: str) -> int:
    """An integer as its type holds it."""
    if kind == "bool":
        return int(value != 0)
    bits = 8 * ITEM_BYTES[kind]
    low = value & ((1 << bits) - 1)
    return low - (1 << bits) if kind.startswith("int") and low >> (bits - 1) else low


def truncated_quotient(a: int, b: int) -> int:
    """C's integer division."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def binary(op: str, left: Expr, right: Expr) -> Expr:
    """An arithmetic, bit, shift or logical operator; both operands have the type of the result."""
    kind = str(left.type)
    if isinstance(left, Const) and isinstance(right, Const):
        folded = _fold(op, left.value, right.value, kind)
        if folded is not None:
            return folded
    if op in ("and", "or"):
        for side, other in ((left, right), (right, left)):
            if isinstance(side, Const):
                return other if bool(side.value) == (op == "and") else side
    if kind in INTEGERS:
        if op in ("+", "-", "|", "^", "<<", ">>") and isinstance(right, Const) and right.value == 0:
            return left
        if op in ("*", "div") and isinstance(right, Const) and right.value == 1:
            return left
        if op == "+" and isinstance(left, Const) and left.value == 0:
            return right
        if op == "*" and isinstance(left, Const) and left.value == 1:
            return right
    return Binary(op, left, right, type=kind)


def _fold(op: str, a: Any, b: Any, kind: str) -> Const | None:
    if op == "and":
        return Const(bool(a) and bool(b), type="bool")
    if op == "or":
        return Const(bool(a) or bool(b), type="bool")
    if kind not in INTEGERS:
        return None
    x, y, bits = int(a), int(b), 8 * ITEM_BYTES[kind]
    if op in ("<<", ">>"):
        if not 0 <= y < bits:
            return None
        return integer(x << y if op == "<<" else x >> y, kind)
    if op in ("div", "rem"):
        if y == 0:
            return None
        quotient = truncated_quotient(x, y)
        return integer(quotient if op == "div" else x - quotient * y, kind)
    functions: dict[str, Callable[[int, int], int]] = {
        "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_,
        "^": operator.xor,
    }  # fmt: skip
    return integer(functions[op](x, y), kind) if op in functions else None


def compare(op: str, left: Expr, right: Expr) -> Expr:
    """A comparison of two operands of one type."""
    if isinstance(left, Const) and isinstance(right, Const):
        return Const(bool(COMPARE[op](left.value, right.value)), type="bool")
    return Compare(op, left, right, type="bool")


def unary(op: str, value: Expr) -> Expr:
    """``-``, ``~`` or ``not``."""
    kind = str(value.type)
    if isinstance(value, Const):
        if op == "not":
            return Const(not value.value, type="bool")
        if kind in INTEGERS:
            return integer(-int(value.value) if op == "-" else ~int(value.value), kind)
        if kind in NATIVE:
            return Const(-np.dtype(kind).type(value.value), type=kind)
    return Unary(op, value, type=kind)


def convert(value: Expr, kind: str) -> Expr:
    """A number as another type, as C++ converts it; to bool means "is not zero"."""
    if value.type == kind:
        return value
    source = str(value.type)
    if isinstance(value, Const):
        if kind == "bool":
            return Const(bool(value.value != 0), type="bool")
        if source not in FLOATS and kind in INTEGERS:
            return integer(int(value.value), kind)
        if source not in FLOATS and kind in NATIVE:
            with np.errstate(over="ignore"):  # an integer beyond float16 is infinite
                return Const(np.array(int(value.value), source).astype(kind)[()], type=kind)
        if source in NATIVE and kind in NATIVE:
            with np.errstate(all="ignore"):
                return Const(np.dtype(kind).type(value.value), type=kind)
    if kind == "bool" and source in (*INTEGERS, *NATIVE):
        zero: Any = 0 if source in INTEGERS else np.dtype(source).type(0)
        return Compare("!=", value, Const(zero, type=source), type="bool")
    return Convert(value, type=kind)


def select(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    """One of two values that are both evaluated."""
    if isinstance(condition, Const):
        return then if condition.value else otherwise
    return Select(condition, then, otherwise, type=then.type)


def advance(pointer: Expr, offset: Expr | int, kind: Type | None = None) -> Expr:
    """A pointer moved by bytes; additions to one pointer become one."""
    kind = kind or pointer.type
    if isinstance(offset, int):
        offset = Const(offset, type="int64")
    if isinstance(offset, Const) and offset.value == 0 and pointer.type == kind:
        return pointer
    if isinstance(pointer, PointerAdd):
        return PointerAdd(pointer.pointer, binary("+", pointer.offset, offset), type=kind)
    return PointerAdd(pointer, offset, type=kind)


def not_(value: Expr) -> Expr:
    """Logical negation of a bool."""
    if isinstance(value, Unary) and value.op == "not":
        return value.value
    return unary("not", value)
