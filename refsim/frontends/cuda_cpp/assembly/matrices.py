"""Matrix instructions: ``mma.sync``, and the loads and stores of 8 × 8 tiles."""

from __future__ import annotations

from refsim.dialect import (
    Align,
    Const,
    Expr,
    Fragment,
    If,
    LoadAt,
    MatrixMultiply,
    PointerType,
    SharedPointer,
    StoreAt,
    Warp,
)
from refsim.engine.fragments import ELEMENT_BYTES, REGISTER_BYTES, positions
from refsim.engine.matrix import register_type
from refsim.engine.matrix_units import UNITS
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.assembly.forms import Form
from refsim.frontends.cuda_cpp.assembly.machine import Machine
from refsim.frontends.cuda_cpp.assembly.parsing import Address, Instruction, Operand
from refsim.frontends.cuda_cpp.intrinsics.warps import lane_number

ELEMENTS = {
    "f16": "float16", "bf16": "bfloat16", "tf32": "tfloat32", "f32": "float32", "f64": "float64", "s8": "int8",
    "u8": "uint8", "s32": "int32", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
}  # fmt: skip
ROW_BYTES = 16


def check_unit(m: Machine, capability: int) -> None:
    """Refuse a matrix instruction that the device does not have."""
    unit = UNITS.get(m.t.device.name)
    if unit is None:
        raise m.unsupported(f"device {m.t.device.name} has no matrix unit that refsim models")
    if unit.capability < capability:
        raise m.unsupported(f"needs compute capability {capability} or later; {m.t.device.name} has {unit.capability}")


def fragments(shape: tuple[int, int, int], types: tuple[str, str, str, str]) -> tuple[Fragment, ...]:
    """Fragments of a, b, c and d of an ``mma`` whose operands fill 32-bit registers; types in the same order."""
    m, n, k = shape
    a, b, c, d = types
    extents = (("a", a, m, k), ("b", b, k, n), ("c", c, m, n), ("c", d, m, n))
    return tuple(
        Fragment(role, dtype, rows, columns, max(1, REGISTER_BYTES // ELEMENT_BYTES[dtype]))
        for role, dtype, rows, columns in extents
    )


def _mma(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    """``mma.sync d, a, b, c``: the parts are shape, [options…], and the types of d, a, b, c."""
    shape, d_type, a_type, b_type, c_type = parts[0], *parts[-4:]
    saturate = ".satfinite" in parts
    form = next(form for form in TABLE if form.handler is _mma and form.match(i.name))
    check_unit(m, form.capability)
    extents = tuple(int(x) for x in shape[1:].replace("n", " ").replace("k", " ").split())
    assert len(extents) == 3
    kinds = tuple(ELEMENTS[x] for x in (a_type, b_type, c_type, d_type))
    of = fragments(extents, kinds)  # type: ignore[arg-type]
    if a_type != b_type and not {a_type, b_type} <= {"s8", "u8"} and not {a_type, b_type} <= {"e4m3", "e5m2"}:
        raise m.unsupported("the types of a and b differ")
    if c_type != d_type:
        raise m.unsupported("an accumulator of another type than the result is not supported")
    if len(i.operands) != 4:
        raise m.unsupported("takes the operands d, a, b, c")
    a, b, c = (_registers(m, operand, fragment) for operand, fragment in zip(i.operands[1:], of[:3]))
    results = multiply(m, i.name, of, a, b, c, saturate)  # type: ignore[arg-type]
    targets = _vector(m, i.operands[0], len(results))
    for target, value in zip(targets, results):
        m.write(target, value)


def multiply(
    m: Machine,
    name: str,
    of: tuple[Fragment, Fragment, Fragment, Fragment],
    a: tuple[Expr, ...],
    b: tuple[Expr, ...],
    c: tuple[Expr, ...],
    saturate: bool,
) -> list[Expr]:
    """Emit the multiplication; the registers of the result."""
    kind = register_type(of[3])
    count = len(positions(of[3]).row) // of[3].packed
    results = [m.t.variable("d@", kind) for _ in range(count)]
    m.t.stable.update(result.name for result in results)
    targets = tuple(result.name for result in results)
    m.emit(MatrixMultiply(name, targets, of, a, b, c, saturate, m.where))
    return list(results)


def _vector(m: Machine, operand: Operand, count: int) -> tuple[str, ...]:
    """Registers of an operand in braces; one register needs none."""
    names = operand if isinstance(operand, tuple) else (operand,)
    if len(names) != count or not all(isinstance(name, str) for name in names):
        raise m.unsupported(f"operand {operand!r}: {count} registers are expected")
    return names  # type: ignore[return-value]


def _registers(m: Machine, operand: Operand, fragment: Fragment) -> tuple[Expr, ...]:
    count = len(positions(fragment).row) // fragment.packed
    kind = register_type(fragment)
    # a tf32 operand is a 32-bit register of either kind
    return tuple(m.keep(m.read(name, kind)) for name in _vector(m, operand, count))


# ------------------------------------------------------------------------------------------------ 8 × 8 tiles


def _from_lane(m: Machine, name: str, value: Expr, lane: Expr) -> Expr:
    """What another lane of the warp holds."""
    full = Const(m.t.device.full_mask, type="int64")
    width = Const(m.t.device.warp_size, type="int64")
    source = m.keep(folding.convert(lane, "int64"))
    return m.keep(Warp(name, (full, m.keep(value), source, width), m.where, type=value.type))


def _lane(m: Machine) -> Expr:
    return folding.convert(lane_number(m.t), "int64")


def _number(value: int) -> Expr:
    return folding.integer(value, "int64")


def _quotient(value: Expr, divisor: int) -> Expr:
    return folding.binary(">>", value, _number(divisor.bit_length() - 1))


def _remainder(value: Expr, divisor: int) -> Expr:
    return folding.binary("&", value, _number(divisor - 1))


def _row_address(m: Machine, operand: Operand, mark: str) -> Expr:
    """The address of a row that a lane names, checked to be a multiple of 16."""
    if not isinstance(operand, Address):
        raise m.unsupported(f"operand {operand!r} where an address is expected")
    address = m.read(operand.base, "uint32") if not _is_pointer(m, operand.base) else None
    if address is None:
        raise m.unsupported(f"the address in {operand.base} must be a 32-bit shared address")
    if operand.offset:
        address = folding.binary("+", address, folding.convert(m.raw(operand.offset), "uint32"))
    return m.keep(address)


def _is_pointer(m: Machine, text: str) -> bool:
    return isinstance(m.raw(text).type, PointerType)


def _rows_of_lanes(m: Machine, address: Expr, tiles: int) -> None:
    """Report rows that are not aligned: those of the lanes that name one, ``8 × tiles`` of them."""
    body = [Align(SharedPointer(address, type=PointerType("uint32")), ROW_BYTES, m.where)]
    if tiles == 4:
        m.t.out.extend(body)
    else:
        named = folding.compare("<", _lane(m), _number(8 * tiles))
        m.emit(If(named, list(body), []))


def _ldmatrix(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    tiles, transposed = int(parts[0]), bool(parts[1])
    check_unit(m, 75)
    address = _row_address(m, i.operands[1], "ldmatrix")
    _rows_of_lanes(m, address, tiles)
    lane = _lane(m)
    group, thread = _quotient(lane, 4), _remainder(lane, 4)
    for number, target in enumerate(_vector(m, i.operands[0], tiles)):
        if not transposed:
            row = folding.binary("+", group, _number(8 * number))
            column = folding.binary("*", thread, _number(4))
            value = _element(m, "ldmatrix", address, row, column, "uint32")
        else:
            halves = []
            for half in (0, 1):
                row = folding.binary("+", folding.binary("*", thread, _number(2)), _number(8 * number + half))
                column = folding.binary("*", group, _number(2))
                halves.append(_element(m, "ldmatrix", address, row, column, "uint16"))
            value = pack(*halves)
        m.write(target, value)


def _element(m: Machine, name: str, address: Expr, row: Expr, column: Expr, kind: str) -> Expr:
    """An element of the row that a lane names."""
    start = _from_lane(m, name, address, row)
    pointer = SharedPointer(start, type=PointerType(kind))
    return m.keep(LoadAt(folding.advance(pointer, column), m.where, type=kind))


def pack(low: Expr, high: Expr) -> Expr:
    """Two 16-bit numbers in one register."""
    upper = folding.binary("<<", folding.convert(high, "uint32"), folding.integer(16, "uint32"))
    return folding.binary("|", upper, folding.convert(low, "uint32"))


def half_of(register: Expr, number: int) -> Expr:
    """The lower or the upper 16 bits of a register."""
    shifted = folding.binary(">>", register, folding.integer(16 * number, "uint32"))
    return folding.convert(shifted, "uint16")


def _stmatrix(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    tiles, transposed = int(parts[0]), bool(parts[1])
    check_unit(m, 90)
    address = _row_address(m, i.operands[0], "stmatrix")
    _rows_of_lanes(m, address, tiles)
    lane = _lane(m)
    group, thread = _quotient(lane, 4), _remainder(lane, 4)
    for number, source in enumerate(_vector(m, i.operands[1], tiles)):
        register = m.keep(m.read(source, "uint32"))
        if not transposed:
            row = folding.binary("+", group, _number(8 * number))
            pairs = [(row, folding.binary("*", thread, _number(4)), register)]
        else:
            pairs = []
            for half in (0, 1):
                row = folding.binary("+", folding.binary("*", thread, _number(2)), _number(8 * number + half))
                pairs.append((row, folding.binary("*", group, _number(2)), half_of(register, half)))
        for row, column, value in pairs:
            start = _from_lane(m, "stmatrix", address, row)
            pointer = SharedPointer(start, type=PointerType(str(value.type)))
            m.emit(StoreAt(folding.advance(pointer, column), value, m.where))


def _movmatrix(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    check_unit(m, 75)
    register = m.keep(m.read(i.operands[1], "uint32"))
    lane = _lane(m)
    group, thread = _quotient(lane, 4), _remainder(lane, 4)
    upper = folding.convert(_remainder(group, 2), "bool")
    halves = []
    for half in (0, 1):
        row = folding.binary("+", folding.binary("*", thread, _number(2)), _number(half))
        source = folding.binary("+", folding.binary("*", row, _number(4)), _quotient(group, 2))
        there = _from_lane(m, "movmatrix", register, source)
        halves.append(folding.select(upper, half_of(there, 1), half_of(there, 0)))
    m.write(i.operands[0], pack(*halves))


_D_ABC = "d, a, b, c"
TABLE: tuple[Form, ...] = (
    Form("mma.sync.aligned.{m16n8k8}.row.col.{f16,f32}.{f16}.{f16}.{f16,f32}", _D_ABC, _mma, 75),
    Form("mma.sync.aligned.{m16n8k16}.row.col.{f16,f32}.{f16}.{f16}.{f16,f32}", _D_ABC, _mma, 80),
    Form("mma.sync.aligned.{m16n8k8,m16n8k16}.row.col.{f32}.{bf16}.{bf16}.{f32}", _D_ABC, _mma, 80),
    Form("mma.sync.aligned.{m16n8k4,m16n8k8}.row.col.{f32}.{tf32}.{tf32}.{f32}", _D_ABC, _mma, 80),
    Form("mma.sync.aligned.{m8n8k4}.row.col.{f64}.{f64}.{f64}.{f64}", _D_ABC, _mma, 80),
    Form("mma.sync.aligned.{m16n8k4,m16n8k8,m16n8k16}.row.col.{f64}.{f64}.{f64}.{f64}", _D_ABC, _mma, 90),
    Form("mma.sync.aligned.{m8n8k16}.row.col[.satfinite].{s32}.{s8,u8}.{s8,u8}.{s32}", _D_ABC, _mma, 75),
    Form("mma.sync.aligned.{m16n8k16,m16n8k32}.row.col[.satfinite].{s32}.{s8,u8}.{s8,u8}.{s32}", _D_ABC, _mma, 80),
    Form("mma.sync.aligned.{m16n8k32}.row.col.{f32,f16}.{e4m3,e5m2}.{e4m3,e5m2}.{f32,f16}", _D_ABC, _mma, 89),
    Form("ldmatrix.sync.aligned.m8n8.x{1,2,4}[.trans].shared[::cta].b16", "r, [a]", _ldmatrix, 75),
    Form("ldmatrix.sync.aligned.x{1,2,4}[.trans].m8n8.shared[::cta].b16", "r, [a]", _ldmatrix, 75),
    Form("stmatrix.sync.aligned.m8n8.x{1,2,4}[.trans].shared[::cta].b16", "[a], r", _stmatrix, 90),
    Form("stmatrix.sync.aligned.x{1,2,4}[.trans].m8n8.shared[::cta].b16", "[a], r", _stmatrix, 90),
    Form("movmatrix.sync.aligned.m8n8.trans.b16", "d, a", _movmatrix, 75),
)
