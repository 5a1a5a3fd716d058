"""The instruction mix of dialect code: which classes of instructions a statement's expressions are."""

from __future__ import annotations

from collections import Counter
from typing import Any

from refsim.dialect import (
    FLOATS,
    Binary,
    BlockVote,
    Compare,
    Const,
    Convert,
    Expr,
    Intrinsic,
    PointerAdd,
    PointerCompare,
    Select,
    Unary,
    Warp,
    child_expressions,
)

Mix = Counter[tuple[str, str]]
"""Numbers of instructions by (class, operand type)."""

FLOAT_OPERATORS = {"+": "float_add", "-": "float_add", "*": "float_mul", "/": "float_div"}
FUNCTIONS = {
    "fma": "float_fma", "hfma": "float_fma", "hadd": "float_add", "hsub": "float_add", "hmul": "float_mul",
    "hdiv": "float_div",
    **dict.fromkeys(("floor", "ceil", "trunc", "rint", "round", "nearbyint", "hfloor", "hceil", "htrunc", "hrint"),
                    "conversion"),
    **dict.fromkeys(("fmin", "fmax", "min", "max", "minimum", "maximum", "numpy_fmin", "numpy_fmax", "hmin", "hmax",
                     "isnan", "isinf", "isfinite", "selp", "heq", "hne", "hge", "hgt", "hle", "hlt"), "compare"),
    **dict.fromkeys(("abs", "fabs", "habs", "hneg", "copysign", "signbit"), "integer"),
}  # fmt: skip
"""Classes of functions; others are ``special`` on floats and ``integer`` on integers."""

FLOPS = {"float_add": 1, "float_mul": 1, "float_div": 1, "float_fma": 2}
FREE = frozenset({"bits_to_pointer", "pointer_to_bits"})


def mix_of(node: Any) -> Mix:
    """Instructions of the expressions of a statement, or of an expression and its parts.

    Loads, stores and atomics are counted where they are executed, as their memory is known there only. Moves,
    constants, changes of a float's sign and the addition of an offset to a pointer are no instructions.
    """
    found: Mix = Counter()
    _visit(node, found)
    return found


def _visit(node: Any, found: Mix) -> None:
    if isinstance(node, PointerAdd):
        _visit(node.pointer, found)
        offset = node.offset
        if isinstance(offset, Binary) and offset.op == "*" and Const in (type(offset.left), type(offset.right)):
            # the size of an element: part of the address, as a subscript's is
            offset = offset.left if isinstance(offset.right, Const) else offset.right
        _visit(offset, found)
        return
    if isinstance(node, Expr):
        kind = _class(node)
        if kind is not None:
            found[kind] += 1
    for child in child_expressions(node):
        _visit(child, found)


def _class(node: Expr) -> tuple[str, str] | None:
    if isinstance(node, Binary):
        kind = str(node.type)
        if kind in FLOATS:
            return FLOAT_OPERATORS.get(node.op, "special"), kind
        return "integer", kind
    if isinstance(node, Unary):
        return None if node.type in FLOATS else ("integer", str(node.type))
    if isinstance(node, (Compare, PointerCompare, Select)):
        return "compare", str(node.left.type if isinstance(node, Compare) else node.type)
    if isinstance(node, Convert):
        return None if node.value.type == node.type else ("conversion", str(node.type))
    if isinstance(node, Intrinsic):
        name = node.name.rpartition(".")[2]
        if name == "skips_nan" or name.isdigit():
            name = node.name.split(".")[-2]
        if name in FREE:
            return None
        return FUNCTIONS.get(name, "special" if node.operand in FLOATS else "integer"), node.operand
    if isinstance(node, Warp):
        return "warp", ""
    if isinstance(node, BlockVote):
        return "barrier", ""
    return None
