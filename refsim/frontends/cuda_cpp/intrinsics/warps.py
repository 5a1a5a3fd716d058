"""Warp operations: shuffles, votes, matches and reductions, with CUDA's and HIP's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refsim.dialect import Binary, Const, Convert, Expr, Intrinsic, Select, Var, Warp, WarpBarrier
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.intrinsics.table import Call, Handler
from refsim.frontends.cuda_cpp.types import Scalar
from refsim.frontends.cuda_cpp.values import Aggregate, Value

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.declarations import Declarations

SHUFFLES = {
    "__shfl": "shfl_sync", "__shfl_up": "shfl_up_sync", "__shfl_down": "shfl_down_sync", "__shfl_xor": "shfl_xor_sync",
}  # fmt: skip
VOTES = {"__all": "all_sync", "__any": "any_sync", "__uni": "eq_sync", "__ballot": "ballot_sync"}
REDUCTIONS = {"add": "+", "and": "&", "or": "|", "xor": "^", "min": "min", "max": "max"}


def wide_mask(t: Declarations, value: Value, call: Call) -> Expr:
    """A mask of lanes as the engine takes it: int64, an unsigned mask extended with zeros."""
    mask = t.expression(value, call.node)
    kind = str(mask.type)
    if kind in ("int32", "int16", "int8"):
        mask = folding.convert(mask, "u" + kind)
    return t.temporary(folding.convert(mask, "int64"))


def active(t: Declarations, call: Call) -> Expr:
    """Mask of the lanes that are here."""
    return t.temporary(Warp("activemask", (), t.place(call.node), type="int64"))


def _shuffle(op: str, named: bool) -> Handler:
    def translate(t: Declarations, call: Call) -> Value:
        arguments = call.arguments[1:] if named else call.arguments
        mask = wide_mask(t, call.arguments[0], call) if named else active(t, call)
        amount = t.temporary(t.scalar(arguments[1], "int64", call.node))
        width = t.temporary(t.scalar(arguments[2], "int64", call.node))
        place = t.place(call.node)

        def shuffled(value: Expr) -> Expr:
            return t.temporary(Warp(op, (mask, t.temporary(value), amount, width), place, type=value.type))

        value = arguments[0]
        if isinstance(value, Aggregate):
            return Aggregate(value.type, {offset: shuffled(leaf) for offset, leaf in value.leaves.items()})
        return shuffled(t.expression(value, call.node))

    return translate


def _vote(op: str, named: bool) -> Handler:
    def translate(t: Declarations, call: Call) -> Value:
        mask = wide_mask(t, call.arguments[0], call) if named else active(t, call)
        predicate = t.expression(call.arguments[-1], call.node)
        vote = t.temporary(folding.convert(folding.convert(predicate, "bool"), "int32"))
        kind = "int64" if op == "ballot_sync" else "bool"
        result = t.temporary(Warp(op, (mask, vote), t.place(call.node), type=kind))
        return _narrow(result, call)

    return translate


def _narrow(value: Expr, call: Call) -> Expr:
    """A 64-bit mask, or a truth value, as the type that the source declares."""
    return value if value.type == call.dtype else Convert(value, type=call.dtype)


def _active(t: Declarations, call: Call) -> Value:
    return _narrow(active(t, call), call)


def _comparable(t: Declarations, value: Value, call: Call) -> Expr:
    return t.temporary(t.expression(value, call.node))


def _match_any(t: Declarations, call: Call) -> Value:
    mask = wide_mask(t, call.arguments[0], call)
    value = _comparable(t, call.arguments[1], call)
    return _narrow(t.temporary(Warp("match_any_sync", (mask, value), t.place(call.node), type="int64")), call)


def _match_all(t: Declarations, call: Call) -> Value:
    mask = wide_mask(t, call.arguments[0], call)
    value = _comparable(t, call.arguments[1], call)
    place = t.place(call.node)
    fits = t.temporary(Warp("match_all_sync.pred", (mask, value), place, type="bool"))
    same = t.temporary(Warp("match_all_sync.mask", (mask, value), place, type="int64"))
    target = t.dereference(call.arguments[2], Scalar("int", "int32"), call.node)
    t.store(target, folding.convert(fits, "int32"), call.node)
    return _narrow(same, call)


def lane_number(t: Declarations) -> Expr:
    """Number of this thread within its warp."""
    t.stable.add("laneid")
    return Var("laneid", type="int32")


def _reduce(op: str) -> Handler:
    """A reduction over the lanes that a mask names, whatever they are: each lane adds up what each other one holds."""

    def translate(t: Declarations, call: Call) -> Value:
        mask = wide_mask(t, call.arguments[0], call)
        value = t.temporary(t.expression(call.arguments[1], call.node))
        kind, place = str(value.type), t.place(call.node)
        total: Expr | None = None
        own = lane_number(t)
        for lane in range(t.device.warp_size):
            moved = Binary(">>", mask, Const(lane, type="int64"), type="int64")
            named = folding.convert(Binary("&", moved, Const(1, type="int64"), type="int64"), "bool")
            # a lane that is not named is not asked: its place is taken by this lane itself
            source = Select(named, Const(lane, type="int64"), Convert(own, type="int64"), type="int64")
            width = Const(t.device.warp_size, type="int64")
            other = t.temporary(Warp("shfl_sync", (mask, value, t.temporary(source), width), place, type=kind))
            if total is None:
                total = t.temporary(Select(named, other, _neutral(op, kind), type=kind))
            else:
                total = t.temporary(Select(named, _combine(op, total, other), total, type=kind))
        assert total is not None
        return total

    return translate


def _combine(op: str, a: Expr, b: Expr) -> Expr:
    kind = str(a.type)
    return Intrinsic(op, kind, (a, b), type=kind) if op in ("min", "max") else Binary(op, a, b, type=kind)


def _neutral(op: str, kind: str) -> Const:
    bits = 64 if "64" in kind else 32
    signed = kind.startswith("int")
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    value = {"&": -1, "min": high, "max": low}.get(op, 0)
    return folding.integer(value, kind)


def _barrier(t: Declarations, call: Call) -> Value:
    mask = wide_mask(t, call.arguments[0], call)
    t.out.append(WarpBarrier(mask, t.place(call.node)))
    return None


def _lane(t: Declarations, call: Call) -> Value:
    return folding.convert(lane_number(t), call.dtype)


TABLE: dict[str, Handler] = {
    **{f"{name}_sync": _shuffle(op, True) for name, op in SHUFFLES.items()},
    **{name: _shuffle(op, False) for name, op in SHUFFLES.items()},
    **{f"{name}_sync": _vote(op, True) for name, op in VOTES.items()},
    **{name: _vote(op, False) for name, op in VOTES.items()},
    **{f"__reduce_{name}_sync": _reduce(op) for name, op in REDUCTIONS.items()},
    "__match_any_sync": _match_any,
    "__match_all_sync": _match_all,
    "__activemask": _active,
    "__syncwarp": _barrier,
    **dict.fromkeys(("__refsim_lane", "__lane_id"), _lane),
}
