"""Conversions between numbers: bits, rounding modes, 16-bit and 8-bit floats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refsim.dialect import Bitcast, Expr, Intrinsic
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.intrinsics.mathematics import constant, function
from refsim.frontends.cuda_cpp.intrinsics.table import Call, Handler, numbers
from refsim.frontends.cuda_cpp.values import Value

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.declarations import Declarations

BITS = {
    "__float_as_int": ("float32", "int32"), "__float_as_uint": ("float32", "uint32"),
    "__int_as_float": ("int32", "float32"), "__uint_as_float": ("uint32", "float32"),
    "__double_as_longlong": ("float64", "int64"), "__longlong_as_double": ("int64", "float64"),
    "__refsim_half_as_ushort": ("float16", "uint16"), "__refsim_ushort_as_half": ("uint16", "float16"),
    "__refsim_bfloat16_as_ushort": ("bfloat16", "uint16"), "__refsim_ushort_as_bfloat16": ("uint16", "bfloat16"),
    "__refsim_uchar_as_e4m3": ("uint8", "float8_e4m3fn"), "__refsim_uchar_as_e5m2": ("uint8", "float8_e5m2"),
}  # fmt: skip
MODES = ("rn", "rz", "rd", "ru")
SOURCES = {"float": "float32", "double": "float64"}
TARGETS = {"int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64"}


def _bits(source: str, target: str) -> Handler:
    return lambda t, call: Bitcast(t.scalar(call.arguments[0], source, call.node), type=target)


def to_integer(value: Expr, target: str, mode: str) -> Expr:
    """A float rounded to an integer as a mode says; what lies outside saturates."""
    return Intrinsic(f"to_{target}_{mode}", str(value.type), (value,), type=target)


def _to_integer(source: str, target: str, mode: str) -> Handler:
    def translate(t: Declarations, call: Call) -> Value:
        x = t.scalar(call.arguments[0], source, call.node)
        return to_integer(x, target, mode)

    return translate


def _convert(t: Declarations, call: Call) -> Value:
    return folding.convert(t.expression(call.arguments[0], call.node), call.dtype)


def _high_word(t: Declarations, call: Call) -> Value:
    bits = Bitcast(numbers(t, call, "float64")[0], type="int64")
    shifted = folding.binary(">>", bits, folding.integer(32 if call.name.endswith("hiint") else 0, "int64"))
    return folding.convert(shifted, "int32")


def _from_words(t: Declarations, call: Call) -> Value:
    high, low = numbers(t, call, "int32", "uint32")
    wide = folding.binary("<<", folding.convert(high, "int64"), folding.integer(32, "int64"))
    return Bitcast(folding.binary("|", wide, folding.convert(low, "int64")), type="float64")


def to_eight_bits(kind: str, x: Expr, saturate: bool) -> Expr:
    """A float32 or float64 to the code of an 8-bit float: to nearest even, or limited to the largest finite one."""
    wide = str(x.type)
    if saturate:
        limit = constant(448.0 if kind == "float8_e4m3fn" else 57344.0, wide)
        x = folding.select(folding.compare(">", function("abs", x), limit), function("copysign", limit, x), x)
    return Bitcast(folding.convert(x, kind), type="uint8")


def _to_eight_bits(kind: str) -> Handler:
    """A float32 or float64 to the code of an 8-bit float, with or without saturation; NaN as an H200 has it."""

    def translate(t: Declarations, call: Call) -> Value:
        number, saturate = (t.expression(argument, call.node) for argument in call.arguments)
        x, is_e4m3 = t.temporary(number), kind == "float8_e4m3fn"
        wide = str(x.type)
        code, saturated = to_eight_bits(kind, x, False), to_eight_bits(kind, x, True)
        negative = folding.compare("<", function("copysign", constant(1.0, wide), x), constant(0.0, wide))

        def signed(size: int) -> Expr:
            return folding.select(negative, folding.integer(size | 0x80, "uint8"), folding.integer(size, "uint8"))

        # half a step above the largest value rounds to infinity, or to NaN where there is none
        edge = constant(464.0 if is_e4m3 else 61440.0, wide)
        above = folding.compare(">" if is_e4m3 else ">=", function("abs", x), edge)
        unbounded = folding.select(above, signed(0x7F if is_e4m3 else 0x7C), code)
        finite = folding.select(folding.convert(saturate, "bool"), saturated, unbounded)
        # a float32 becomes the one NaN of the hardware; a float64 keeps its sign, as the library's code has it
        nan = folding.integer(0x7F, "uint8") if wide == "float32" else signed(0x7F if is_e4m3 else 0x7E)
        return folding.select(folding.compare("==", x, x), finite, nan)

    return translate


def _table() -> dict[str, Handler]:
    table: dict[str, Handler] = {name: _bits(*kinds) for name, kinds in BITS.items()}
    for source_name, source in SOURCES.items():
        for target_name, target in TARGETS.items():
            for mode in MODES:
                table[f"__{source_name}2{target_name}_{mode}"] = _to_integer(source, target, mode)
    for name in TARGETS:
        table[f"__{name}2float_rn"] = _convert
        table[f"__{name}2double_rn"] = _convert
    table["__double2float_rn"] = _convert
    table["__double2hiint"] = table["__double2loint"] = _high_word
    table["__hiloint2double"] = _from_words
    table["__refsim_to_e4m3"] = _to_eight_bits("float8_e4m3fn")
    table["__refsim_to_e5m2"] = _to_eight_bits("float8_e5m2")
    table["__refsim_e4m3_to_float"] = _from_eight_bits("float8_e4m3fn")
    table["__refsim_e5m2_to_float"] = _from_eight_bits("float8_e5m2")
    return table


def _from_eight_bits(kind: str) -> Handler:
    def translate(t: Declarations, call: Call) -> Value:
        code: Expr = numbers(t, call, "uint8")[0]
        return folding.convert(Bitcast(code, type=kind), "float32")

    return translate


TABLE = _table()
