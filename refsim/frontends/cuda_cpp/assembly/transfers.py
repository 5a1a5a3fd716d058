"""Memory instructions: loads, stores, asynchronous copies, atomics, fences, addresses."""

from __future__ import annotations

from refsim.dialect import (
    ITEM_BYTES,
    Align,
    Assign,
    Asynchronous,
    AtomicAt,
    Bitcast,
    Effect,
    Expr,
    Fence,
    If,
    LoadAt,
    PointerType,
    SharedAddress,
    SharedPointer,
    StoreAt,
    Var,
)
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.assembly.forms import Form
from refsim.frontends.cuda_cpp.assembly.machine import TYPES, Machine
from refsim.frontends.cuda_cpp.assembly.matrices import half_of, pack
from refsim.frontends.cuda_cpp.assembly.parsing import Instruction, Operand

SCOPES = {"cta": "block", "cluster": "device", "gl": "device", "gpu": "device", "sys": "system"}
VECTORS = {"v2": 2, "v4": 4}
STRONG = frozenset({"relaxed", "acquire", "release", "acq_rel"})
RELEASING = frozenset({"release", "acq_rel"})
PACKED = {"f16x2": "float16", "bf16x2": "bfloat16"}


def _space(words: list[str]) -> str:
    return "shared" if any(word.startswith("shared") for word in words) else "global"


def _scope(words: list[str]) -> str:
    return next((SCOPES[word] for word in words if word in SCOPES), "device")


def _access(
    m: Machine, i: Instruction, address: Operand, data: Operand
) -> tuple[Expr, str, tuple[str, ...], list[str]]:
    """Pointer to the first element, element type, registers, and the words of the name."""
    words = i.name.split(".")
    kind = TYPES[words[-1]]
    count = next((VECTORS[word] for word in words if word in VECTORS), 1)
    names = data if isinstance(data, tuple) else (data,)
    if len(names) != count or not all(isinstance(name, str) for name in names):
        raise m.unsupported(f"operand {data!r}: {count} registers are expected")
    pointer = m.keep(m.pointer(address, _space(words), kind))
    if count > 1:
        m.emit(Align(pointer, count * ITEM_BYTES[kind], m.where))
    return pointer, kind, names, words  # type: ignore[return-value]


def _load(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    pointer, kind, names, words = _access(m, i, i.operands[1], i.operands[0])
    values: list[Expr] = []
    for number in range(len(names)):
        there = folding.advance(pointer, number * ITEM_BYTES[kind])
        value: Expr
        if STRONG & set(words):
            nothing = (folding.integer(0, kind),)
            value = AtomicAt("add", there, nothing, _scope(words), m.where, type=kind)
        else:
            value = LoadAt(there, m.where, volatile="volatile" in words, type=kind)
        values.append(m.keep(value))
    for name, value in zip(names, values):
        m.write(name, _extended(m, name, value))


def _extended(m: Machine, name: str, value: Expr) -> Expr:
    """A loaded integer as wide as its register."""
    if name == "_":
        return value
    kind = m.register(name).type
    if "int" in str(value.type) and ITEM_BYTES[str(value.type)] < ITEM_BYTES[kind]:
        return folding.convert(value, kind)
    return value


def _store(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    pointer, kind, names, words = _access(m, i, i.operands[0], i.operands[1])
    values = [m.keep(_narrowed(m, name, kind)) for name in names]
    if RELEASING & set(words):
        m.emit(Fence(_scope(words), m.where))
    for number, value in enumerate(values):
        there = folding.advance(pointer, number * ITEM_BYTES[kind])
        if STRONG & set(words):
            m.emit(Effect(AtomicAt("exch", there, (value,), _scope(words), m.where, type=kind)))
        else:
            m.emit(StoreAt(there, value, m.where, "volatile" in words))


def _narrowed(m: Machine, name: str, kind: str) -> Expr:
    value = m.raw(name)
    source = str(value.type)
    if "int" in kind and "int" in source and ITEM_BYTES[source] > ITEM_BYTES[kind]:
        return folding.convert(value, kind)
    return m.read(name, kind)


# ------------------------------------------------------------------------------------------------- copies


def _copy(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    size = m.known(i.operands[2])
    if size not in ((16,) if ".cg." in i.name else (4, 8, 16)):
        raise m.unsupported(f"a copy of {size} bytes")
    target = m.keep(m.pointer(i.operands[0], "shared", "uint32"))
    source = m.keep(m.pointer(i.operands[1], "global", "uint32"))
    present: Expr | None = None
    if len(i.operands) > 3 and not _is_hint(i):
        present = m.keep(m.read(i.operands[3], "uint32"))
    m.emit(Asynchronous("begin", None, m.where))
    m.emit(Align(target, size, m.where))
    copied = [m.t.variable("copied@", "uint32") for _ in range(size // 4)]
    loads = _source_words(m, source, size, copied)
    if present is None:
        m.t.out.extend(loads)
    else:
        _partial(m, source, size, copied, present)
    for number, word in enumerate(copied):
        m.emit(StoreAt(folding.advance(target, 4 * number), word, m.where))
    m.emit(Asynchronous("end", None, m.where))


def _is_hint(i: Instruction) -> bool:
    return "cache_hint" in i.name and len(i.operands) == 4


def _source_words(m: Machine, source: Expr, size: int, copied: list[Var]) -> list[Align | Assign]:
    loads: list[Align | Assign] = [Align(source, size, m.where)]
    for number, word in enumerate(copied):
        there = folding.advance(source, 4 * number)
        loads.append(Assign(word.name, LoadAt(there, m.where, type="uint32")))
    return loads


def _partial(m: Machine, source: Expr, size: int, copied: list[Var], present: Expr) -> None:
    """Words of which only the first `present` bytes come from the source; the others are zero."""
    for number, word in enumerate(copied):
        m.emit(Assign(word.name, folding.integer(0, "uint32")))
        there = folding.advance(source, 4 * number)
        first = folding.integer(4 * number, "uint32")
        load = LoadAt(there, m.where, type="uint32")
        missing = folding.binary("-", folding.integer(4 * number + 4, "uint32"), present)
        bits = folding.binary("*", missing, folding.integer(8, "uint32"))
        some = folding.binary(">>", folding.integer(0xFFFFFFFF, "uint32"), bits)
        whole = folding.compare(">=", present, folding.integer(4 * number + 4, "uint32"))
        kept = folding.select(whole, folding.integer(0xFFFFFFFF, "uint32"), some)
        body = [Assign(word.name, load), Assign(word.name, folding.binary("&", word, kept))]
        aligned: list[Align | Assign] = [Align(source, size, m.where)] if number == 0 else []
        m.emit(If(folding.compare(">", present, first), [*aligned, *body], []))


def _commit(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    m.emit(Asynchronous("commit", None, m.where))


def _wait(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    if i.name.endswith("wait_all"):
        m.emit(Asynchronous("commit", None, m.where))
    count = m.known(i.operands[0]) if i.operands else 0
    m.emit(Asynchronous("wait", folding.integer(count, "int64"), m.where))


# ------------------------------------------------------------------------------------------------ addresses


def _to_shared(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    value = m.raw(i.operands[1])
    if not isinstance(value.type, PointerType):
        raise m.unsupported(f"operand {i.operands[1]} must be a pointer")
    m.write(i.operands[0], folding.convert(SharedAddress(value, type="uint32"), TYPES[parts[0]]))


def _from_shared(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    address = folding.convert(m.read(i.operands[1], TYPES[parts[1]]), "uint32")
    m.write(i.operands[0], SharedPointer(address, type=PointerType("uint8")))


def _same_address(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    m.write(i.operands[0], m.raw(i.operands[1]))


# -------------------------------------------------------------------------------------------------- atomics


def _atomic(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    words = i.name.split(".")
    returns = words[0] == "atom"
    operands = i.operands[1:] if returns else i.operands
    op = next(word for word in words if word in OPERATIONS)
    if RELEASING & set(words):
        m.emit(Fence(_scope(words), m.where))
    packed = PACKED.get(words[-1])
    kind = packed or TYPES[words[-1]]
    pointer = m.keep(m.pointer(operands[0], _space(words), kind))
    if packed:
        register = m.keep(m.read(operands[1], "uint32"))
        m.emit(Align(pointer, 4, m.where))
        before = []
        for half in (0, 1):
            value = Bitcast(half_of(register, half), type=kind)
            action = AtomicAt(op, folding.advance(pointer, 2 * half), (value,), _scope(words), m.where, type=kind)
            before.append(m.keep(action))
        if returns:
            m.write(i.operands[0], pack(*(Bitcast(value, type="uint16") for value in before)))
        return
    args = tuple(m.keep(m.read(operand, kind)) for operand in operands[1:])
    action = AtomicAt(op, pointer, args, _scope(words), m.where, type=kind)
    if returns:
        m.write(i.operands[0], m.keep(action))
    else:
        m.emit(Effect(action))


def _fence(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    m.emit(Fence(SCOPES[parts[-1]], m.where))


OPERATIONS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
_DATA = "{b8,u8,s8,b16,u16,s16,b32,u32,s32,b64,u64,s64,f32,f64}"
_HINTS = "[.{L1::evict_normal,L1::evict_first,L1::evict_last,L1::evict_unchanged,L1::no_allocate}]"
_SEMANTICS = "[.{relaxed,acquire,release,acq_rel}][.{cta,cluster,gpu,sys}][.{global,shared,shared::cta}]"
TABLE: tuple[Form, ...] = (
    Form(
        "ld[.{global,shared,shared::cta}][.nc][.{ca,cg,cs,lu,cv}]" + _HINTS + "[.{L2::64B,L2::128B,L2::256B}]"
        "[.{v2,v4}]." + _DATA,
        "d, [a]",
        _load,
    ),
    Form("ld.{volatile}[.{global,shared,shared::cta}][.{v2,v4}]." + _DATA, "d, [a]", _load),
    Form("ld.{relaxed,acquire}.{cta,gpu,sys}[.{global,shared,shared::cta}].{b32,u32,s32,b64,u64,s64}", "d, [a]", _load),
    Form(
        "st[.{global,shared,shared::cta}][.{wb,cg,cs,wt}]" + _HINTS + "[.{v2,v4}]." + _DATA,
        "[a], b",
        _store,
    ),
    Form("st.{volatile}[.{global,shared,shared::cta}][.{v2,v4}]." + _DATA, "[a], b", _store),
    Form(
        "st.{relaxed,release}.{cta,gpu,sys}[.{global,shared,shared::cta}].{b32,u32,s32,b64,u64,s64}", "[a], b", _store
    ),
    Form(
        "cp.async.{ca,cg}.shared[::cta].global[.L2::cache_hint][.{L2::64B,L2::128B,L2::256B}]",
        "[dst], [src], size{, src-size}",
        _copy,
    ),
    Form("cp.async.commit_group", "", _commit),
    Form("cp.async.wait_group", "n", _wait),
    Form("cp.async.wait_all", "", _wait),
    Form("cvta.to.shared.{u32,u64}", "d, a", _to_shared),
    Form("cvta.shared.{u64}", "d, a", lambda m, i, parts: _from_shared(m, i, (*parts, "u64"))),
    Form("cvta[.to].global.u64", "d, a", _same_address),
    Form("atom" + _SEMANTICS + ".{add,min,max}.{u32,s32,u64,s64}", "d, [a], b", _atomic),
    Form("atom" + _SEMANTICS + ".{add}.{f32,f64}", "d, [a], b", _atomic),
    Form("atom" + _SEMANTICS + ".{add}.noftz.{f16,bf16,f16x2,bf16x2}", "d, [a], b", _atomic),
    Form("atom" + _SEMANTICS + ".{and,or,xor,exch,cas}.{b32,b64}", "d, [a], b{, c}", _atomic),
    Form("atom" + _SEMANTICS + ".{inc,dec}.{u32}", "d, [a], b", _atomic),
    Form("red" + _SEMANTICS + ".{add,min,max}.{u32,s32,u64,s64}", "[a], b", _atomic),
    Form("red" + _SEMANTICS + ".{add}.{f32,f64}", "[a], b", _atomic),
    Form("red" + _SEMANTICS + ".{add}.noftz.{f16,bf16,f16x2,bf16x2}", "[a], b", _atomic),
    Form("red" + _SEMANTICS + ".{and,or,xor}.{b32,b64}", "[a], b", _atomic),
    Form("red" + _SEMANTICS + ".{inc,dec}.{u32}", "[a], b", _atomic),
    Form("membar.{cta,gl,sys}", "", _fence),
    Form("fence[.{sc,acq_rel}].{cta,cluster,gpu,sys}", "", _fence),
)
