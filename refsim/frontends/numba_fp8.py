"""8-bit floats of ``numba.cuda._internal.cuda_fp8``: constructors, conversions, and functions that give codes."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from refsim.dialect import INTEGERS, Binary, Bitcast, Const, Convert, Expr, Intrinsic
from refsim.frontends.numba_values import Static, TupleValue, Value

if TYPE_CHECKING:
    from refsim.frontends.numba_expressions import Expressions

TYPES = {"fp8_e4m3": "float8_e4m3fn", "fp8_e5m2": "float8_e5m2", "fp8_e8m0": "float8_e8m0fnu"}
E8M0 = "float8_e8m0fnu"
ENCODINGS = {0: "float8_e4m3fn", 1: "float8_e5m2"}  # fp8_interpretation_t
ROUNDINGS = {1: "rz", 2: "ru"}  # cudaRoundMode: the two that e8m0 has
CODES = {  # function -> type of the number or of both numbers, whether it gives e8m0
    "cvt_float_to_fp8": ("float32", False), "cvt_double_to_fp8": ("float64", False),
    "cvt_float2_to_fp8x2": ("float32", False), "cvt_double2_to_fp8x2": ("float64", False),
    "cvt_float_to_e8m0": ("float32", True), "cvt_double_to_e8m0": ("float64", True),
    "cvt_float2_to_e8m0x2": ("float32", True), "cvt_double2_to_e8m0x2": ("float64", True),
}  # fmt: skip


def call(t: Expressions, name: str, values: list[Value]) -> Value:
    """A constructor or a conversion function."""
    if name in TYPES:
        if len(values) != 1:
            raise t.unsupported(f"{name}() without a value, or with more than one")
        return _constructed(t, TYPES[name], t.scalar(values[0]))
    if name not in CODES:
        raise t.unsupported(f"{name}(): structures of raw 16-bit floats and of several 8-bit floats")
    if len(values) != 3:
        raise t.wrong(f"{name}() takes 3 arguments, got {len(values)}")
    kind, exponent_only = CODES[name]
    saturation = "sat" if _known(t, values[1], name) else "nosat"
    choice = _known(t, values[2], name)
    table = ROUNDINGS if exponent_only else ENCODINGS
    if choice not in table:
        raise t.wrong(f"{name}(): the last argument is {choice}; it can be one of {', '.join(map(str, table))}")
    engine = f"{E8M0}_{ROUNDINGS[choice]}_{saturation}" if exponent_only else f"{ENCODINGS[choice]}_{saturation}"
    if "2" not in name.split("_")[1]:
        return _code(t, engine, kind, t.scalar(values[0]))
    pair = values[0]
    if not isinstance(pair, TupleValue) or len(pair.items) != 2:
        raise t.wrong(f"{name}() takes a vector of two")
    low, high = (t.convert(_code(t, engine, kind, t.scalar(item)), "uint16") for item in pair.items)
    shifted = Binary("<<", high, Const(8, type="int64"), type="uint16")
    return Binary("|", low, shifted, type="uint16")


def _known(t: Expressions, value: Value, name: str) -> int:
    held = value.value if isinstance(value, (Static, Const)) else None
    held = held.value if isinstance(held, Enum) else held
    if not isinstance(held, int):
        raise t.unsupported(f"{name}(): saturation and rounding must be known when the kernel is translated")
    return held


def _code(t: Expressions, engine: str, kind: str, value: Expr) -> Expr:
    wide = t.convert(t.convert(value, kind), "float64")
    return Intrinsic(engine, "float64", (wide,), type="uint8")


def _constructed(t: Expressions, target: str, value: Expr) -> Expr:
    """A number as an 8-bit float: saturated; to the nearest, and up for e8m0."""
    source = str(value.type)
    if source in ("int64", "uint64") and target == E8M0:
        size = value if source == "uint64" else t.convert(Intrinsic("abs", source, (value,), type=source), "uint64")
        wide: Expr = Intrinsic("to_float64_ru", "uint64", (size,), type="float64")
    else:
        wide = t.convert(from_eight_bits(t, value, "float64") if is_eight_bits(value) else value, "float64")
    suffix = "_ru_sat" if target == E8M0 else "_sat"
    return Bitcast(Intrinsic(f"{target}{suffix}", "float64", (wide,), type="uint8"), type=target)


def is_eight_bits(value: Expr) -> bool:
    """True for a number of one of these types."""
    return value.type in TYPES.values()


def from_eight_bits(t: Expressions, value: Expr, target: str) -> Expr:
    """An 8-bit float as another number; to an integer toward zero, saturating."""
    if target not in INTEGERS:
        return Convert(value, type=target)
    through = "bfloat16" if value.type == E8M0 else "float16"
    return Intrinsic(f"to_{target}_rz", through, (Convert(value, type=through),), type=target)
