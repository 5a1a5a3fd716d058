"""Conversions of 16-bit floats whose names say how they round: ``__float2half_rd``, ``__bfloat162int_ru``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refsim.dialect import Expr, Intrinsic
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.intrinsics.directed import MODES
from refsim.frontends.cuda_cpp.intrinsics.rounding import to_integer
from refsim.frontends.cuda_cpp.intrinsics.table import Call, Handler, numbers
from refsim.frontends.cuda_cpp.values import Value

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.declarations import Declarations

KINDS = {"half": "float16", "bfloat16": "bfloat16"}
SOURCES = {
    "float": "float32", "int": "int32", "uint": "uint32", "short": "int16", "ushort": "uint16", "ll": "int64",
    "ull": "uint64",
}  # fmt: skip
TARGETS = {name: kind for name, kind in SOURCES.items() if name != "float"}


def _narrowed(source: str, target: str, mode: str) -> Handler:
    """A number to a 16-bit float, by way of float64; integers of 64 bits are rounded to that in the same direction."""

    def translate(t: Declarations, call: Call) -> Value:
        x: Expr = numbers(t, call, source)[0]
        if source in ("int64", "uint64"):
            x = Intrinsic(f"to_float64_{mode}", source, (x,), type="float64")
        return Intrinsic(f"to_{target}_{mode}", "float64", (folding.convert(x, "float64"),), type=target)

    return translate


def _whole(source: str, target: str, mode: str) -> Handler:
    def translate(t: Declarations, call: Call) -> Value:
        return to_integer(folding.convert(numbers(t, call, source)[0], "float32"), target, mode)

    return translate


TABLE: dict[str, Handler] = {
    f"__{source_name}2{name}_{mode}": _narrowed(source, kind, mode)
    for name, kind in KINDS.items()
    for source_name, source in SOURCES.items()
    for mode in MODES
} | {
    f"__{name}2{target_name}_{mode}": _whole(kind, target, mode)
    for name, kind in KINDS.items()
    for target_name, target in TARGETS.items()
    for mode in ("rn", *MODES)
}
