"""The instruction mix of dialect code: which classes of instructions a statement's expressions are."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any

from refsim.dialect import (
    COMPLEX,
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
NAMED = (
    ("float_fma", "h?fma"),
    ("float_add", "h?add|h?sub"),
    ("float_mul", "h?mul"),
    ("float_div", "h?div|h?rcp|fdividef|div_approx|div_full"),
    ("conversion", "to_.*|float8_.*|h?floor|h?ceil|h?trunc|h?rint|round(_.*)?|nearbyint"),
    ("compare", "(numpy_)?f?min|(numpy_)?f?max|hmin|hmax|minimum|maximum|selp|saturate|h?is(nan|inf|finite)"
                "|h(eq|ne|ge|gt|le|lt)u?"),
    ("integer", "f?abs|habs|hneg|copysign|signbit|high_word|low_word|from_words"),
    ("", "flush|as_u?int\\d+|bits_to_pointer|pointer_to_bits"),
)  # fmt: skip
"""Classes of functions by their names, and those that are no instruction; others are ``special`` on floats and
``integer`` on integers."""

MODES = re.compile(r"_(rn|rd|ru|rz|sat|relu|nan)$")
FLOPS = {"float_add": 1, "float_mul": 1, "float_div": 1, "float_fma": 2}
COMPLEX_FLOPS = {"float_add": 2, "float_mul": 6, "float_div": 11}  # written out in real and imaginary parts
NUMBERS = FLOATS | COMPLEX


def flops(kind: str, dtype: str) -> int:
    """Floating-point operations of an instruction of a class on a type."""
    if dtype in FLOATS:
        return FLOPS.get(kind, 0)
    return COMPLEX_FLOPS.get(kind, 0) if dtype in COMPLEX else 0


@cache
def class_of_function(name: str, operand: str) -> str:
    """Class of a function; empty for one that is no instruction."""
    base = name.rpartition(".")[2]
    if base == "skips_nan" or base.isdigit():
        base = name.split(".")[-2]
    bare = MODES.sub("", base)
    for kind, names in NAMED:
        if re.fullmatch(names, base) or re.fullmatch(names, bare):
            return "integer" if operand not in NUMBERS and kind.startswith("float") else kind
    return "special" if operand in NUMBERS else "integer"


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
        if kind in NUMBERS:
            return FLOAT_OPERATORS.get(node.op, "special"), kind
        return "integer", kind
    if isinstance(node, Unary):
        return None if node.type in NUMBERS else ("integer", str(node.type))
    if isinstance(node, (Compare, PointerCompare, Select)):
        return "compare", str(node.left.type if isinstance(node, Compare) else node.type)
    if isinstance(node, Convert):
        return None if node.value.type == node.type else ("conversion", str(node.type))
    if isinstance(node, Intrinsic):
        kind = class_of_function(node.name, node.operand)
        return (kind, node.operand) if kind else None
    if isinstance(node, Warp):
        return "warp", ""
    if isinstance(node, BlockVote):
        return "barrier", ""
    return None
