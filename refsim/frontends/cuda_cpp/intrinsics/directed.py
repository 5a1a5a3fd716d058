"""Arithmetic on float32 and float64, and conversions to them, rounded by name: ``__fadd_rd``, ``__int2float_rz``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refsim.dialect import Intrinsic
from refsim.frontends.cuda_cpp.intrinsics.table import Call, Handler, numbers
from refsim.frontends.cuda_cpp.values import Value

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.declarations import Declarations

MODES = ("rd", "ru", "rz")
# name without the mode: the engine's operation, operands
FLOAT32 = {
    "__fadd": ("add", 2), "__fsub": ("sub", 2), "__fmul": ("mul", 2), "__fdiv": ("div", 2), "__frcp": ("rcp", 1),
    "__fsqrt": ("sqrt", 1), "__fmaf": ("fma", 3),
}  # fmt: skip
FLOAT64 = {
    "__dadd": ("add", 2), "__dsub": ("sub", 2), "__dmul": ("mul", 2), "__ddiv": ("div", 2), "__drcp": ("rcp", 1),
    "__dsqrt": ("sqrt", 1), "__fma": ("fma", 3),
}  # fmt: skip
INTEGERS = {"int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64"}
# name without the mode: operand, result
CONVERSIONS = {
    "__double2float": ("float64", "float32"),
    **{f"__{name}2float": (kind, "float32") for name, kind in INTEGERS.items()},
    **{f"__{name}2double": (kind, "float64") for name, kind in INTEGERS.items() if kind.endswith("64")},
}  # fmt: skip


def _arithmetic(name: str, kind: str, count: int) -> Handler:
    def translate(t: Declarations, call: Call) -> Value:
        return Intrinsic(name, kind, tuple(numbers(t, call, *[kind] * count)), type=kind)

    return translate


def _conversion(name: str, source: str, target: str) -> Handler:
    def translate(t: Declarations, call: Call) -> Value:
        return Intrinsic(name, source, tuple(numbers(t, call, source)), type=target)

    return translate


TABLE: dict[str, Handler] = {
    f"{name}_{mode}": _arithmetic(f"{op}_{mode}", kind, count)
    for names, kind in ((FLOAT32, "float32"), (FLOAT64, "float64"))
    for name, (op, count) in names.items()
    for mode in MODES
} | {
    f"{name}_{mode}": _conversion(f"to_{target}_{mode}", source, target)
    for name, (source, target) in CONVERSIONS.items()
    for mode in MODES
}
