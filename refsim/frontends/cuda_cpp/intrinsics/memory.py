"""Memory: atomics, cached loads and stores, fences, memcpy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refsim.dialect import AtomicAt, Effect, Expr, Fence, PointerType, SharedAddress, SharedPointer
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.intrinsics.table import Call, Handler, known
from refsim.frontends.cuda_cpp.tree import Node
from refsim.frontends.cuda_cpp.types import CType, Pointer, Scalar, describe
from refsim.frontends.cuda_cpp.values import Aggregate, InMemory, Value

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.declarations import Declarations

ATOMICS = {
    "atomicAdd": "add", "atomicSub": "sub", "atomicExch": "exch", "atomicMin": "min", "atomicMax": "max",
    "atomicInc": "inc", "atomicDec": "dec", "atomicAnd": "and", "atomicOr": "or", "atomicXor": "xor",
    "atomicCAS": "cas", "unsafeAtomicAdd": "add",
}  # fmt: skip
SCOPES = {"": "device", "_block": "block", "_system": "system"}
FENCES = {"__threadfence_block": "block", "__threadfence": "device", "__threadfence_system": "system"}
LOADS = ("__ldg", "__ldca", "__ldcg", "__ldcs", "__ldlu", "__ldcv", "__builtin_nontemporal_load")
STORES = ("__stwb", "__stcg", "__stcs", "__stwt")


def pointee(t: Declarations, node: Node) -> CType:
    """Type that a pointer argument points to."""
    kind = t.type_of(node)
    if not isinstance(kind, Pointer):
        raise t.unsupported(f"a pointer is needed here, not {describe(kind)}", node)
    return kind.pointee


def _atomic(op: str, scope: str) -> Handler:
    def translate(t: Declarations, call: Call) -> Value:
        kind = pointee(t, call.nodes[0])
        if not isinstance(kind, Scalar):
            return _atomic_record(t, call, op, scope, kind)
        place = t.memory(t.dereference(call.arguments[0], kind, call.node), call.node)
        args = tuple(t.scalar(value, kind.dtype, call.node) for value in call.arguments[1:])
        action = AtomicAt(op, t.pointer_to(place), args, scope, t.place(call.node), type=kind.dtype)
        if t.unused is call.node:
            t.out.append(Effect(action))
            return None
        return t.temporary(action)

    return translate


def _atomic_record(t: Declarations, call: Call, op: str, scope: str, kind: CType) -> Value:
    """An atomic on a vector type is one on each of its members."""
    value = call.arguments[1]
    if op not in ("add", "exch") or not isinstance(value, Aggregate):
        raise t.unsupported(f"{call.name} on {describe(kind)} is not supported", call.node)
    place = t.memory(t.dereference(call.arguments[0], kind, call.node), call.node)
    pointer = t.temporary(t.pointer_to(place))
    result: dict[int, Expr] = {}
    for offset, leaf in value.leaves.items():
        action = AtomicAt(op, folding.advance(pointer, offset), (leaf,), scope, t.place(call.node), type=leaf.type)
        result[offset] = t.temporary(action)
    return Aggregate(kind, result)


def _load(t: Declarations, call: Call) -> Value:
    return t.load(t.dereference(call.arguments[0], pointee(t, call.nodes[0]), call.node), call.node)


def _store(t: Declarations, call: Call) -> Value:
    kind = pointee(t, call.nodes[0])
    value = call.arguments[1]
    if isinstance(kind, Scalar):
        value = t.scalar(value, kind.dtype, call.node)
    t.store(t.dereference(call.arguments[0], kind, call.node), value, call.node)
    return None


def _fence(scope: str) -> Handler:
    def translate(t: Declarations, call: Call) -> Value:
        t.out.append(Fence(scope, t.place(call.node)))
        return None

    return translate


def _shared_address(t: Declarations, call: Call) -> Value:
    pointer = t.expression(call.arguments[0], call.node)
    return folding.convert(SharedAddress(pointer, type="uint32"), call.dtype)


def _shared_pointer(t: Declarations, call: Call) -> Value:
    address = folding.convert(t.expression(call.arguments[0], call.node), "uint32")
    return SharedPointer(address, type=PointerType("uint8"))


def _address(t: Declarations, call: Call) -> Value:
    return folding.convert(t.integer_address(call.arguments[0], call.node), call.dtype)


def _original(t: Declarations, node: Node) -> tuple[Node, CType]:
    """A ``void*`` argument before its conversion, and what it points to."""
    while node.kind in ("ImplicitCastExpr", "ParenExpr", "CStyleCastExpr") and isinstance(
        t.type_of(node.inner[0]), Pointer
    ):
        node = node.inner[0]
    return node, pointee(t, node)


def _copy(t: Declarations, call: Call) -> Value:
    """``memcpy`` of a known number of bytes, in the widest words that both sides allow."""
    size = known(t, call.arguments[2], "the number of bytes", call)
    kinds = [_original(t, node)[1] for node in call.nodes[:2]]
    word = min(_word(t, kind) for kind in kinds)
    while size % word:
        word //= 2
    if size // word > 4096:
        raise t.unsupported(f"{call.name} of {size} bytes is not supported", call.node)
    unit = Scalar("", {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}[word])
    places = [t.memory(t.dereference(a, k, call.node), call.node) for a, k in zip(call.arguments, kinds)]
    pointers = [t.temporary(t.pointer_to(place)) for place in places]
    values = [
        t.temporary(t.expression(t.load(InMemory(pointers[1], offset, unit), call.node), call.node))
        for offset in range(0, size, word)
    ]
    for number, value in enumerate(values):
        t.store(InMemory(pointers[0], number * word, unit), value, call.node)
    return pointers[0]


def _word(t: Declarations, kind: CType) -> int:
    return min(8, int(t.ask(t.kinds.align, kind, node=None)))


def _set(t: Declarations, call: Call) -> Value:
    size = known(t, call.arguments[2], "the number of bytes", call)
    kind = _original(t, call.nodes[0])[1]
    byte = known(t, call.arguments[1], "the byte", call) & 0xFF
    word = _word(t, kind)
    while size % word:
        word //= 2
    dtype = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}[word]
    place = t.memory(t.dereference(call.arguments[0], kind, call.node), call.node)
    pointer = t.temporary(t.pointer_to(place))
    value = folding.integer(int.from_bytes(bytes([byte]) * word, "little"), dtype)
    for offset in range(0, size, word):
        t.store(InMemory(pointer, offset, Scalar("", dtype)), value, call.node)
    return pointer


TABLE: dict[str, Handler] = {
    **{f"{name}{suffix}": _atomic(op, scope) for name, op in ATOMICS.items() for suffix, scope in SCOPES.items()},
    "__cvta_generic_to_shared": _shared_address,
    "__cvta_shared_to_generic": _shared_pointer,
    "__cvta_generic_to_global": _address,
    **dict.fromkeys(LOADS, _load),
    **dict.fromkeys(STORES, _store),
    **{name: _fence(scope) for name, scope in FENCES.items()},
    **dict.fromkeys(("memcpy", "__builtin_memcpy", "memmove"), _copy),
    **dict.fromkeys(("memset", "__builtin_memset"), _set),
}
