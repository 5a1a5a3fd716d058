"""Arithmetic rounded down, up or toward zero: the nearest result, moved by one step if it lies on the wrong side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refsim.dialect import Expr, Intrinsic
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.intrinsics.mathematics import constant, function
from refsim.frontends.cuda_cpp.intrinsics.table import Call, Handler, numbers
from refsim.frontends.cuda_cpp.values import Value

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.declarations import Declarations

WIDE = "float64"
MODES = ("rd", "ru", "rz")
# name without the mode, operation, operands
FLOAT32 = {
    "__fadd": ("add", 2), "__fsub": ("sub", 2), "__fmul": ("mul", 2), "__fdiv": ("div", 2), "__frcp": ("rcp", 1),
    "__fsqrt": ("sqrt", 1), "__fmaf": ("fma", 3),
}  # fmt: skip
FLOAT64 = {
    "__dadd": ("add", 2), "__dsub": ("sub", 2), "__dmul": ("mul", 2), "__ddiv": ("div", 2), "__drcp": ("rcp", 1),
    "__dsqrt": ("sqrt", 1),
}  # fmt: skip


def _fma(a: Expr, b: Expr, c: Expr) -> Expr:
    return Intrinsic("fma", WIDE, (a, b, c), type=WIDE)


def _sum(t: Declarations, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """A float64 sum and what it misses, exactly (Knuth's two-sum)."""
    total = t.temporary(folding.binary("+", a, b))
    part = t.temporary(folding.binary("-", total, a))
    rest = folding.binary("-", a, folding.binary("-", total, part))
    return total, t.temporary(folding.binary("+", rest, folding.binary("-", b, part)))


def _exact(t: Declarations, op: str, operands: list[Expr]) -> tuple[Expr, Expr]:
    """The float64 result, and a number with the sign of what it misses."""
    a, b = operands[0], operands[min(1, len(operands) - 1)]
    if op in ("add", "sub"):
        return _sum(t, a, b if op == "add" else folding.unary("-", b))
    if op == "mul":
        product = t.temporary(folding.binary("*", a, b))
        return product, t.temporary(_fma(a, b, folding.unary("-", product)))
    if op == "fma":
        return _sum(t, t.temporary(folding.binary("*", a, b)), operands[2])
    if op == "sqrt":
        root = t.temporary(function("sqrt", a))
        return root, t.temporary(_fma(folding.unary("-", root), root, a))
    numerator = constant(1.0, WIDE) if op == "rcp" else a
    quotient = t.temporary(folding.binary("/", numerator, b))
    rest = _fma(folding.unary("-", quotient), b, numerator)
    return quotient, t.temporary(folding.binary("*", rest, function("copysign", constant(1.0, WIDE), b)))


def _directed(op: str, count: int, kind: str, mode: str) -> Handler:
    def translate(t: Declarations, call: Call) -> Value:
        narrow = numbers(t, call, *[kind] * count)
        operands = [t.temporary(folding.convert(operand, WIDE)) for operand in narrow]
        wide, missing = _exact(t, op, operands)
        nearest = t.temporary(folding.convert(wide, kind))
        rest = t.temporary(folding.binary("-", wide, folding.convert(nearest, WIDE)))
        zero, below = constant(0.0, WIDE), constant(0.0, kind)
        # what the rounded result misses, or its sign if float64 missed that too
        error = t.temporary(folding.select(folding.compare("==", rest, zero), missing, rest))
        too_high, too_low = folding.compare("<", error, zero), folding.compare(">", error, zero)
        down = function("nextafter", nearest, constant(float("-inf"), kind))
        up = function("nextafter", nearest, constant(float("inf"), kind))
        if mode == "rz":
            positive = folding.compare(">", nearest, below)
            negative = folding.compare("<", nearest, below)
            too_high, too_low = folding.binary("and", too_high, positive), folding.binary("and", too_low, negative)
        if mode in ("rd", "rz"):
            nearest = folding.select(too_high, down, nearest)
        if mode in ("ru", "rz"):
            nearest = folding.select(too_low, up, nearest)
        return nearest

    return translate


TABLE: dict[str, Handler] = {
    f"{name}_{mode}": _directed(op, count, kind, mode)
    for names, kind in ((FLOAT32, "float32"), (FLOAT64, "float64"))
    for name, (op, count) in names.items()
    for mode in MODES
}
