"""Arithmetic, logic, comparison and moves."""

from __future__ import annotations

from collections.abc import Callable

from refsim.dialect import FLOATS, ITEM_BYTES, Bitcast, Const, Expr, Intrinsic, PointerType
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.assembly.forms import Form
from refsim.frontends.cuda_cpp.assembly.machine import TYPES, Machine
from refsim.frontends.cuda_cpp.assembly.matrices import half_of, pack
from refsim.frontends.cuda_cpp.assembly.parsing import Instruction, Operand
from refsim.frontends.cuda_cpp.intrinsics.bits import byte_permutation, high_product, high_product_64
from refsim.frontends.cuda_cpp.intrinsics.mathematics import constant, function, reciprocal_root

PACKED = {"f16x2": "float16", "bf16x2": "bfloat16"}
OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^"}
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">",
               "hs": ">="}  # fmt: skip
FUNCTIONS = {"ex2": "exp2", "lg2": "log2", "sin": "sin", "cos": "cos", "tanh": "tanh", "sqrt": "sqrt", "abs": "abs"}
Compute = Callable[..., Expr]


def _words(i: Instruction) -> list[str]:
    return i.name.split(".")


def _apply(m: Machine, i: Instruction, compute: Compute, sources: tuple[Operand, ...] | None = None) -> None:
    """``d = compute(a, b, …)`` on the type that the name ends in; packed halves one by one."""
    words = _words(i)
    packed = PACKED.get(words[-1])
    operands = i.operands[1:] if sources is None else sources
    if packed:
        registers = [m.keep(m.read(operand, "uint32")) for operand in operands]
        halves = []
        for half in (0, 1):
            values = [m.keep(Bitcast(half_of(register, half), type=packed)) for register in registers]
            halves.append(m.keep(Bitcast(_finished(m, words, compute(*values), values), type="uint16")))
        m.write(i.operands[0], pack(*halves))
        return
    kind = TYPES[words[-1]]
    values = [m.keep(_flushed(m, words, m.read(operand, kind))) for operand in operands]
    m.write(i.operands[0], _finished(m, words, compute(*values), values))


def _flushed(m: Machine, words: list[str], value: Expr) -> Expr:
    """With ``.ftz``: a subnormal float32 becomes zero of the same sign."""
    if "ftz" not in words or value.type != "float32":
        return value
    value = m.keep(value)
    small = folding.compare("<", function("abs", value), constant(2.0**-126, "float32"))
    return folding.select(small, function("copysign", constant(0.0, "float32"), value), value)


def _finished(m: Machine, words: list[str], value: Expr, _values: list[Expr]) -> Expr:
    """``.ftz``, ``.sat`` and ``.relu``."""
    value = _flushed(m, words, value)
    kind = str(value.type)
    if "sat" in words and kind in FLOATS:
        value = function("fmin", function("fmax", value, constant(0.0, kind)), constant(1.0, kind))
    if "relu" in words:
        value = m.keep(value)
        value = folding.select(folding.compare("<", value, constant(0.0, kind)), constant(0.0, kind), value)
    return value


def _binary(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    name = _words(i)[0]
    kind = TYPES.get(_words(i)[-1], "uint32")
    if name == "div" and kind not in FLOATS:
        return _apply(m, i, lambda a, b: folding.binary("div", a, b))
    if kind == "bool":
        logical = {"and": "and", "or": "or"}.get(name)
        return _apply(m, i, lambda a, b: folding.binary(logical, a, b) if logical else folding.compare("!=", a, b))
    return _apply(m, i, lambda a, b: folding.binary(OPERATORS[name], a, b))


def _remainder(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    _apply(m, i, lambda a, b: folding.binary("rem", a, b))


def _unary(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    name = _words(i)[0]
    if name == "neg":
        _apply(m, i, lambda a: folding.unary("-", a))
    elif name == "not":
        logical = _words(i)[-1] == "pred"
        _apply(m, i, lambda a: folding.not_(a) if logical else folding.unary("~", a))
    elif name == "rcp":
        _apply(m, i, lambda a: folding.binary("/", constant(1.0, str(a.type)), a))
    elif name == "rsqrt":
        _apply(m, i, reciprocal_root)
    else:
        _apply(m, i, lambda a: function(FUNCTIONS[name], a))


def _extreme(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    words = _words(i)

    def compute(a: Expr, b: Expr) -> Expr:
        kind = str(a.type)
        if kind not in FLOATS:
            return Intrinsic(words[0], kind, (a, b), type=kind)
        smaller = function(f"f{words[0]}", a, b)
        if "NaN" not in words:
            return smaller
        either = folding.binary("+", a, b)
        return folding.select(
            folding.binary("and", folding.compare("==", a, a), folding.compare("==", b, b)), smaller, either
        )

    _apply(m, i, compute)


def _fused(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    _apply(m, i, fused)


def fused(a: Expr, b: Expr, c: Expr) -> Expr:
    """``a * b + c`` rounded once."""
    kind = str(a.type)
    if kind == "bfloat16":
        wide = tuple(folding.convert(x, "float64") for x in (a, b, c))
        return folding.convert(Intrinsic("fma", "float64", wide, type="float64"), kind)
    return Intrinsic("hfma" if kind == "float16" else "fma", kind, (a, b, c), type=kind)


# -------------------------------------------------------------------------------------------- integer products


def _product(m: Machine, kind: str, half: str, a: Operand, b: Operand) -> Expr:
    x, y = m.keep(m.read(a, kind)), m.keep(m.read(b, kind))
    if half == "lo":
        return folding.binary("*", x, y)
    wide = kind.replace("32", "64") if "32" in kind else kind.replace("16", "32")
    if half == "wide":
        return folding.binary("*", folding.convert(x, wide), folding.convert(y, wide))
    return high_product(x, y) if ITEM_BYTES[kind] == 4 else _high_64(m, x, y)


def _high_64(m: Machine, x: Expr, y: Expr) -> Expr:
    if x.type == "uint64":
        return high_product_64(x, y)
    a, b = (m.keep(folding.convert(v, "uint64")) for v in (x, y))
    high = high_product_64(a, b)
    for negative, other in ((x, b), (y, a)):
        below = folding.compare("<", negative, folding.integer(0, "int64"))
        high = folding.binary("-", high, folding.select(below, other, folding.integer(0, "uint64")))
    return folding.convert(high, "int64")


def _multiply(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    half, kind = parts
    m.write(i.operands[0], _product(m, TYPES[kind], half, i.operands[1], i.operands[2]))


def _multiply_add(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    half, kind = parts
    product = _product(m, TYPES[kind], half, i.operands[1], i.operands[2])
    m.write(i.operands[0], folding.binary("+", product, m.read(i.operands[3], str(product.type))))


def _dot(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    """``dp4a``: four products of bytes and an addend."""
    a, b = (m.keep(m.read(operand, "uint32")) for operand in i.operands[1:3])
    kind = "uint32" if parts == ("u32", "u32") else "int32"
    total = m.read(i.operands[3], kind)
    for byte in range(4):
        amount = folding.integer(8 * byte, "uint32")
        x, y = (
            folding.convert(folding.convert(folding.binary(">>", v, amount), "int8" if s == "s32" else "uint8"), kind)
            for v, s in zip((a, b), parts)
        )
        total = folding.binary("+", total, folding.binary("*", x, y))
    m.write(i.operands[0], total)


# ------------------------------------------------------------------------------------------------------ bits


def _shift(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    """Shifts by more than the width leave nothing, or the sign."""
    left = _words(i)[0] == "shl"
    kind = TYPES[parts[-1]]
    value, amount = m.keep(m.read(i.operands[1], kind)), m.keep(m.read(i.operands[2], "uint32"))
    bits = 8 * ITEM_BYTES[kind]
    last = folding.integer(bits - 1, "uint32")
    fits = folding.compare("<=", amount, last)
    steps = folding.convert(folding.select(fits, amount, last), kind)
    shifted = folding.binary("<<" if left else ">>", value, steps)
    if not kind.startswith("int"):
        shifted = folding.select(fits, shifted, folding.integer(0, kind))
    m.write(i.operands[0], shifted)


def _funnel(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    """``shf``: 32 bits out of 64 that are shifted."""
    left, wraps = parts[0] == "l", parts[1] == "wrap"
    low, high = (m.read(operand, "uint32") for operand in i.operands[1:3])
    both = folding.binary("<<", folding.convert(high, "uint64"), folding.integer(32, "uint64"))
    both = m.keep(folding.binary("|", both, folding.convert(low, "uint64")))
    amount = m.keep(m.read(i.operands[3], "uint32"))
    if wraps:
        amount = folding.binary("&", amount, folding.integer(31, "uint32"))
    else:
        limit = folding.integer(32, "uint32")
        amount = folding.select(folding.compare("<", amount, limit), amount, limit)
    steps = folding.convert(amount, "uint64")
    if left:
        steps = folding.binary("-", folding.integer(32, "uint64"), steps)
    m.write(i.operands[0], folding.convert(folding.binary(">>", both, steps), "uint32"))


def _lookup(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    """``lop3``: any logical function of three words, by its table."""
    words = [m.keep(m.read(operand, "uint32")) for operand in i.operands[1:4]]
    table = m.known(i.operands[4])
    result: Expr = folding.integer(0, "uint32")
    for row in range(8):
        if table >> row & 1:
            chosen = [w if row >> (2 - n) & 1 else folding.unary("~", w) for n, w in enumerate(words)]
            term = folding.binary("&", folding.binary("&", chosen[0], chosen[1]), chosen[2])
            result = folding.binary("|", result, term)
    m.write(i.operands[0], result)


def _permute(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    m.write(i.operands[0], byte_permutation(m.t, *(m.read(operand, "uint32") for operand in i.operands[1:4])))


def _count(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    name = _words(i)[0]
    kind = TYPES[parts[0]]
    value = Intrinsic(name, kind, (m.read(i.operands[1], kind),), type=kind)
    m.write(i.operands[0], value if name == "brev" else folding.convert(value, "uint32"))


def _field(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    """``bfe``: bits from a position on, extended by the sign for signed types."""
    kind = TYPES[parts[0]]
    bits = 8 * ITEM_BYTES[kind]
    value = m.keep(m.read(i.operands[1], kind))
    start, count = (m.keep(folding.binary("&", m.read(o, "uint32"), folding.integer(255, "uint32")))
                    for o in i.operands[2:4])  # fmt: skip
    if not isinstance(start, Const) or not isinstance(count, Const):
        raise m.unsupported("position and length must be constants")
    first, length = int(start.value), int(count.value)
    if length == 0:
        m.write(i.operands[0], folding.integer(0, kind))
        return
    if first + length > bits:
        if kind.startswith("int") or first >= bits:
            raise m.unsupported("a field that leaves the word")
        length = bits - first
    up = folding.binary("<<", value, folding.integer(bits - first - length, kind))
    m.write(i.operands[0], folding.binary(">>", up, folding.integer(bits - length, kind)))


def _insert(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    """``bfi``: the low bits of a put into b."""
    kind = TYPES[parts[0]]
    bits = 8 * ITEM_BYTES[kind]
    first, length = m.known(i.operands[3]) & 255, m.known(i.operands[4]) & 255
    mask = folding.wrapped(((1 << length) - 1) << first if first < bits else 0, kind)
    inserted = m.read(i.operands[1], kind)
    moved = folding.binary("<<", inserted, folding.integer(min(first, bits - 1), kind))
    moved = folding.binary("&", moved, folding.integer(mask, kind))
    kept = folding.binary("&", m.read(i.operands[2], kind), folding.integer(~mask, kind))
    m.write(i.operands[0], folding.binary("|", moved, kept))


# ------------------------------------------------------------------------------------------ comparison, moves


def _compare(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    """``setp``: a predicate, and its negation in a second one."""
    words = _words(i)
    kind, name = TYPES[words[-1]], words[1]
    combine = next((word for word in words[2:] if word in ("and", "or", "xor")), None)
    count = len(i.operands) - 2 - (combine is not None)
    sources = i.operands[count:]
    a, b = (m.keep(_flushed(m, words, m.read(operand, kind))) for operand in sources[:2])
    unordered = kind in FLOATS and name not in COMPARISONS
    result = folding.compare(COMPARISONS[name.removesuffix("u") if unordered else name], a, b)
    if kind in FLOATS:
        ordered = folding.binary("and", folding.compare("==", a, a), folding.compare("==", b, b))
        if unordered:
            result = folding.binary("or", result, folding.not_(ordered))
        elif name == "ne":
            result = folding.binary("and", result, ordered)
    for number, target in enumerate(i.operands[:count]):
        value = m.keep(result) if number == 0 else folding.not_(m.keep(result))
        if combine:
            other = m.predicate(str(sources[2]))
            value = folding.compare("!=", value, other) if combine == "xor" else folding.binary(combine, value, other)
        m.write(target, value)


def _select(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    kind = TYPES[parts[0]]
    a, b = (m.read(operand, kind) for operand in i.operands[1:3])
    m.write(i.operands[0], folding.select(m.predicate(str(i.operands[3])), a, b))


def _move(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    target, source = i.operands
    kind = TYPES[parts[0]]
    if isinstance(source, tuple):
        m.write(target, _joined(m, source, kind))
    elif isinstance(target, tuple):
        _taken_apart(m, target, m.keep(m.read(source, f"uint{8 * ITEM_BYTES[kind]}")))
    elif isinstance(m.raw(source).type, PointerType):
        m.write(target, m.raw(source))
    else:
        m.write(target, m.read(source, kind))


def _joined(m: Machine, parts: tuple[str, ...], kind: str) -> Expr:
    """Registers after one another, the first lowest."""
    bits = 8 * ITEM_BYTES[kind]
    width, wide = bits // len(parts), f"uint{bits}"
    result: Expr = folding.integer(0, wide)
    for number, part in enumerate(parts):
        piece = folding.convert(m.read(part, f"uint{width}"), wide)
        result = folding.binary("|", result, folding.binary("<<", piece, folding.integer(number * width, wide)))
    return result


def _taken_apart(m: Machine, targets: tuple[str, ...], value: Expr) -> None:
    bits = 8 * ITEM_BYTES[str(value.type)]
    width = bits // len(targets)
    for number, target in enumerate(targets):
        shifted = folding.binary(">>", value, folding.integer(number * width, str(value.type)))
        m.write(target, folding.convert(shifted, f"uint{width}"))


_INTEGERS = "{u16,s16,u32,s32,u64,s64}"
_WORDS = "{b16,b32,b64}"
_AB, _ABC = "d, a, b", "d, a, b, c"
TABLE: tuple[Form, ...] = (
    Form("add." + _INTEGERS, _AB, _binary),
    Form("sub." + _INTEGERS, _AB, _binary),
    Form("{add,sub,mul}[.rn][.ftz][.sat].{f32,f16,f16x2}", _AB, _binary),
    Form("{add,sub,mul}[.rn].{f64,bf16,bf16x2}", _AB, _binary),
    Form("mul.{lo,hi}." + _INTEGERS.replace("u16,s16,", ""), _AB, _multiply),
    Form("mul.{wide}.{u16,s16,u32,s32}", _AB, _multiply),
    Form("mad.{lo,hi}." + _INTEGERS.replace("u16,s16,", ""), _ABC, _multiply_add),
    Form("mad.{wide}.{u16,s16,u32,s32}", _ABC, _multiply_add),
    Form("fma.rn[.ftz][.sat].{f32}", _ABC, _fused),
    Form("fma.rn[.ftz][.{sat,relu}].{f16,f16x2}", _ABC, _fused),
    Form("fma.rn[.relu].{bf16,bf16x2}", _ABC, _fused),
    Form("fma.rn.{f64}", _ABC, _fused),
    Form("div." + _INTEGERS, _AB, _binary),
    Form("div.{rn,approx,full}[.ftz].{f32}", _AB, _binary),
    Form("div.rn.{f64}", _AB, _binary),
    Form("rem." + _INTEGERS, _AB, _remainder),
    Form("{min,max}." + _INTEGERS, _AB, _extreme),
    Form("{min,max}[.ftz][.NaN].{f32,f16,f16x2,bf16,bf16x2}", _AB, _extreme),
    Form("{min,max}.{f64}", _AB, _extreme),
    Form("{neg,abs}.{s16,s32,s64}", "d, a", _unary),
    Form("{neg,abs}[.ftz].{f32,f64,f16,f16x2,bf16,bf16x2}", "d, a", _unary),
    Form("{rcp,sqrt}.{rn,approx}[.ftz].{f32}", "d, a", _unary),
    Form("{rcp,sqrt}.rn.{f64}", "d, a", _unary),
    Form("rsqrt.approx[.ftz].{f32,f64}", "d, a", _unary),
    Form("{sin,cos,lg2}.approx[.ftz].{f32}", "d, a", _unary),
    Form("ex2.approx[.ftz].{f32,f16,f16x2,bf16,bf16x2}", "d, a", _unary),
    Form("tanh.approx.{f32,f16,f16x2,bf16,bf16x2}", "d, a", _unary),
    Form("dp4a.{u32,s32}.{u32,s32}", _ABC, _dot),
    Form("{and,or,xor}.{pred,b16,b32,b64}", _AB, _binary),
    Form("not.{pred,b16,b32,b64}", "d, a", _unary),
    Form("shl." + _WORDS, _AB, _shift),
    Form("shr.{b16,b32,b64,u16,u32,u64,s16,s32,s64}", _AB, _shift),
    Form("shf.{l,r}.{clamp,wrap}.b32", "d, lo, hi, n", _funnel),
    Form("lop3.b32", "d, a, b, c, table", _lookup),
    Form("prmt.b32", "d, a, b, selector", _permute),
    Form("{popc,clz,brev}.{b32,b64}", "d, a", lambda m, i, parts: _count(m, i, parts[1:])),
    Form("bfe.{u32,s32,u64,s64}", "d, a, position, length", _field),
    Form("bfi.{b32,b64}", "d, a, b, position, length", _insert),
    Form(
        "setp.{eq,ne,lt,le,gt,ge,lo,ls,hi,hs}[.{and,or,xor}].{b16,b32,b64,u16,s16,u32,s32,u64,s64}",
        "p|q, a, b{, c}",
        _compare,
    ),
    Form(
        "setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu}[.{and,or,xor}][.ftz].{f16,bf16,f32,f64}",
        "p|q, a, b{, c}",
        _compare,
    ),
    Form("selp.{b16,b32,b64,u16,s16,u32,s32,u64,s64,f32,f64}", "d, a, b, p", _select),
    Form("mov.{pred,b16,b32,b64,u16,s16,u32,s32,u64,s64,f32,f64}", "d, a", _move),
)
