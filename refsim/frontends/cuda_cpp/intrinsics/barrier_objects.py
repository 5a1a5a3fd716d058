"""Barrier objects as C++ functions: what ``cuda/barrier`` and ``cuda_awbarrier_primitives.h`` are written with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refsim.dialect import Asynchronous, BarrierObject, Effect, Expr
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.intrinsics.table import Call, Handler
from refsim.frontends.cuda_cpp.types import Scalar
from refsim.frontends.cuda_cpp.values import Value

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.declarations import Declarations


def _object(t: Declarations, call: Call) -> Expr:
    place = t.memory(t.dereference(call.arguments[0], Scalar("", "uint64"), call.node), call.node)
    return t.temporary(t.pointer_to(place))


def _operation(op: str, argument: str | None, result: str | None) -> Handler:
    """An operation with an argument of a type, if any, and a result of a type, if any."""

    def translate(t: Declarations, call: Call) -> Value:
        pointer = _object(t, call)
        args: tuple[Expr, ...] = ()
        if argument is not None:
            args = (t.temporary(folding.convert(t.expression(call.arguments[1], call.node), argument)),)
        action = BarrierObject(op, pointer, args, t.place(call.node), type=result or "uint64")
        if result is None:
            t.out.append(Effect(action))
            return None
        return t.temporary(action)

    return translate


def _copies_arrive(t: Declarations, call: Call) -> Value:
    place = t.place(call.node)
    t.out.append(Asynchronous("commit", None, place))
    t.out.append(Asynchronous("wait", folding.integer(0, "int64"), place))
    return None


TABLE: dict[str, Handler] = {
    "__refsim_barrier_init": _operation("init", "int64", None),
    "__refsim_barrier_inval": _operation("inval", None, None),
    "__refsim_barrier_arrive": _operation("arrive", "int64", "uint64"),
    "__refsim_barrier_drop": _operation("drop", "int64", "uint64"),
    "__refsim_barrier_test": _operation("test", "uint64", "bool"),
    "__refsim_barrier_parity": _operation("parity", "uint64", "bool"),
    "__refsim_copies_arrive": _copies_arrive,
}
