"""``cvt``: between integers, floats, halves, tf32 and 8-bit floats."""

from __future__ import annotations

from refsim.dialect import FLOATS, ITEM_BYTES, Bitcast, Expr, Intrinsic
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.assembly.forms import Form
from refsim.frontends.cuda_cpp.assembly.machine import TYPES, Machine
from refsim.frontends.cuda_cpp.assembly.matrices import half_of, pack
from refsim.frontends.cuda_cpp.assembly.parsing import Instruction
from refsim.frontends.cuda_cpp.intrinsics.mathematics import constant, function, rint
from refsim.frontends.cuda_cpp.intrinsics.rounding import to_eight_bits

ROUND = {"rni": rint}
TOWARDS = {"rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
PAIRS = {"f16x2": "float16", "bf16x2": "bfloat16"}
EIGHT = {"e4m3x2": "float8_e4m3fn", "e5m2x2": "float8_e5m2"}


def _numbers(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    """Between the types of registers."""
    words = i.name.split(".")
    target, source = TYPES[words[-2]], TYPES[words[-1]]
    value = m.keep(_source(m, i, source))
    mode = next((word for word in words if word in (*ROUND, *TOWARDS)), None)
    if mode:
        value = rint(value) if mode in ROUND else function(TOWARDS[mode], value)
    if "sat" in words and target in FLOATS:
        value = function("fmin", function("fmax", value, constant(0.0, source)), constant(1.0, source))
    result = folding.convert(value, target)
    kind = m.register(str(i.operands[0])).type
    if target not in FLOATS and ITEM_BYTES[kind] > ITEM_BYTES[target]:
        result = folding.convert(result, kind)  # a narrow result in a wide register is extended
    m.write(i.operands[0], result)


def _source(m: Machine, i: Instruction, kind: str) -> Expr:
    value = m.raw(i.operands[1])
    narrower = str(value.type) in ITEM_BYTES and ITEM_BYTES[str(value.type)] > ITEM_BYTES[kind]
    if narrower and kind not in FLOATS and str(value.type) not in FLOATS:
        return folding.convert(value, kind)
    return m.read(i.operands[1], kind)


def _relu(m: Machine, i: Instruction, value: Expr) -> Expr:
    if "relu" not in i.name.split("."):
        return value
    zero = constant(0.0, str(value.type))
    value = m.keep(value)
    return folding.select(folding.compare("<", value, zero), zero, value)


def _pair(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    """Two floats into one register: the first operand is the upper half."""
    kind = PAIRS[i.name.split(".")[-2]]
    high, low = (
        Bitcast(_relu(m, i, folding.convert(m.read(operand, "float32"), kind)), type="uint16")
        for operand in i.operands[1:3]
    )
    m.write(i.operands[0], pack(m.keep(low), m.keep(high)))


def _tf32(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    """A float32 rounded to 10 mantissa bits: ties away from zero, or to even."""
    value = m.keep(m.read(i.operands[1], "float32"))
    bits = m.keep(Bitcast(value, type="uint32"))
    added: Expr
    if ".rna." in i.name:
        added = folding.integer(0x1000, "uint32")
    else:
        last = folding.binary("&", folding.binary(">>", bits, _word(13)), _word(1))
        added = folding.binary("+", last, _word(0xFFF))
    rounded = folding.binary("&", folding.binary("+", bits, added), _word(0xFFFFE000))
    finite = Intrinsic("isfinite", "float32", (value,), type="bool")
    m.write(i.operands[0], folding.select(finite, rounded, bits))


def _word(value: int) -> Expr:
    return folding.integer(value, "uint32")


def _to_eight(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    """Two numbers into a 16-bit register of 8-bit floats, limited to the largest finite one."""
    kind = EIGHT[i.name.split(".")[-2]]
    if i.name.endswith(".f32"):
        high, low = (m.keep(m.read(operand, "float32")) for operand in i.operands[1:3])
    else:
        packed = m.keep(m.read(i.operands[1], "uint32"))
        low, high = (
            m.keep(folding.convert(Bitcast(half_of(packed, half), type="float16"), "float32")) for half in (0, 1)
        )
    codes = [folding.convert(to_eight_bits(kind, _relu(m, i, x), True), "uint16") for x in (low, high)]
    upper = folding.binary("<<", codes[1], folding.integer(8, "uint16"))
    m.write(i.operands[0], folding.binary("|", codes[0], upper))


def _from_eight(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    kind = EIGHT[i.name.split(".")[-1]]
    packed = m.keep(m.read(i.operands[1], "uint16"))
    halves = []
    for byte in (0, 1):
        code = folding.convert(folding.binary(">>", packed, folding.integer(8 * byte, "uint16")), "uint8")
        wide = folding.convert(Bitcast(code, type=kind), "float32")
        halves.append(m.keep(Bitcast(_relu(m, i, folding.convert(wide, "float16")), type="uint16")))
    m.write(i.operands[0], pack(*halves))


_INTEGER = "{u8,s8,u16,s16,u32,s32,u64,s64}"
_FLOAT = "{f16,bf16,f32,f64}"
TABLE: tuple[Form, ...] = (
    Form(f"cvt.{_INTEGER}.{_INTEGER}", "d, a", _numbers),
    Form("cvt.rn." + _FLOAT + "." + _INTEGER, "d, a", _numbers),
    Form("cvt.{rni,rzi,rmi,rpi}." + _INTEGER + "." + _FLOAT, "d, a", _numbers),
    Form("cvt.{rni,rzi,rmi,rpi}.{f32,f64}.{f32,f64}", "d, a", _numbers),
    Form("cvt.rn[.sat]." + _FLOAT + "." + _FLOAT, "d, a", _numbers),
    Form("cvt.{f32,f64}." + _FLOAT, "d, a", _numbers),
    Form("cvt.rn[.relu].{f16x2,bf16x2}.f32", "d, high, low", _pair),
    Form("cvt.{rn,rna}.tf32.f32", "d, a", _tf32),
    Form("cvt.rn.satfinite[.relu].{e4m3x2,e5m2x2}.f32", "d, high, low", _to_eight),
    Form("cvt.rn.satfinite[.relu].{e4m3x2,e5m2x2}.f16x2", "d, a", _to_eight),
    Form("cvt.rn[.relu].f16x2.{e4m3x2,e5m2x2}", "d, a", _from_eight),
)
