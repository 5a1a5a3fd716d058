"""Barriers, assertions, printing, clocks, and functions recognised by the form of their name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refsim.dialect import Assert, Asynchronous, Barrier, BlockVote, Break, Const, Expr, Print
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.intrinsics.table import Call, Handler
from refsim.frontends.cuda_cpp.types import Record, Scalar
from refsim.frontends.cuda_cpp.values import Aggregate, Text, Value

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.declarations import Declarations

VECTOR = re.compile(r"make_[a-z]+\d?$")


def _barrier(t: Declarations, call: Call) -> Value:
    t.out.append(Barrier(t.place(call.node)))
    return None


def _grid_barrier(t: Declarations, call: Call) -> Value:
    t.out.append(Barrier(t.place(call.node), scope="grid"))
    return None


def _copies(action: str) -> Handler:
    def translate(t: Declarations, call: Call) -> Value:
        count = folding.convert(t.expression(call.arguments[0], call.node), "int64") if call.arguments else None
        t.out.append(Asynchronous(action, count, t.place(call.node)))
        return None

    return translate


def _vote(op: str) -> Handler:
    def translate(t: Declarations, call: Call) -> Value:
        predicate = folding.convert(t.expression(call.arguments[0], call.node), "bool")
        return t.temporary(BlockVote(op, predicate, t.place(call.node), type="int32"))

    return translate


def _assertion(t: Declarations, call: Call) -> Value:
    text = call.arguments[1]
    message = text.text if isinstance(text, Text) else "assertion"
    t.out.append(Assert(t.expression(call.arguments[0], call.node), message, t.place(call.node)))
    return None


def _trap(t: Declarations, call: Call) -> Value:
    t.out.append(Assert(Const(False, type="bool"), f"{call.name}()", t.place(call.node)))
    t.out.append(Break("kernel"))
    return None


def _print(t: Declarations, call: Call) -> Value:
    form = call.arguments[0]
    if not isinstance(form, Text):
        raise t.unsupported("printf() with a format that is not a literal is not supported", call.node)
    parts: list[Expr | str] = [form.text]
    for value in call.arguments[1:]:
        parts.append(value.text if isinstance(value, Text) else t.expression(value, call.node))
    t.out.append(Print(tuple(parts), t.place(call.node), printf=True))
    return folding.integer(len(parts) - 1, "int32")


def _nothing(t: Declarations, call: Call) -> Value:
    return None


def _clock(t: Declarations, call: Call) -> Value:
    """A clock that ticks whenever it is read: time has no other meaning here."""
    name = "clock@"
    if name not in t.types:
        t.types[name] = "int64"
    from refsim.dialect import Assign, Binary, Var

    now = Var(name, type="int64")
    t.out.append(Assign(name, Binary("+", now, Const(1, type="int64"), type="int64")))
    return t.temporary(folding.convert(now, call.dtype))


def _expect(t: Declarations, call: Call) -> Value:
    value: Value = call.arguments[0]
    return value


def _assume(t: Declarations, call: Call) -> Value:
    condition = folding.convert(t.expression(call.arguments[0], call.node), "bool")
    t.out.append(Assert(condition, f"{call.name}() does not hold", t.place(call.node)))
    return None


def _is_constant_evaluated(t: Declarations, call: Call) -> Value:
    return Const(False, type="bool")


def _vector(t: Declarations, call: Call) -> Value:
    """``make_float4`` and its like: the members in order."""
    kind = call.result
    if not isinstance(kind, Record):
        raise t.unsupported(f"{call.name}() is not supported", call.node)
    leaves = t.kinds.leaves(kind)
    if len(leaves) != len(call.arguments):
        raise t.unsupported(f"{call.name}() with {len(call.arguments)} arguments", call.node)
    values: dict[int, Expr] = {}
    for leaf, value in zip(leaves, call.arguments):
        assert isinstance(leaf.type, Scalar)
        values[leaf.offset] = t.scalar(value, leaf.type.dtype, call.node)
    return Aggregate(kind, values)


def by_pattern(name: str) -> Handler | None:
    """Functions that are recognised by the form of their name."""
    return _vector if VECTOR.match(name) else None


TABLE: dict[str, Handler] = {
    "__syncthreads": _barrier,
    "__refsim_grid_sync": _grid_barrier,
    "__refsim_copy_begin": _copies("begin"),
    "__refsim_copy_end": _copies("end"),
    "__refsim_copy_commit": _copies("commit"),
    "__refsim_copy_wait": _copies("wait"),
    "__syncthreads_count": _vote("count"),
    "__syncthreads_and": _vote("and"),
    "__syncthreads_or": _vote("or"),
    "__refsim_assert": _assertion,
    **dict.fromkeys(("__trap", "__builtin_trap", "abort", "__builtin_unreachable"), _trap),
    "printf": _print,
    **dict.fromkeys(("__nanosleep", "__brkpt", "__builtin_prefetch"), _nothing),
    **dict.fromkeys(("clock", "clock64", "wall_clock64", "__globaltimer"), _clock),
    **dict.fromkeys(("__builtin_expect", "__builtin_assume_aligned"), _expect),
    **dict.fromkeys(("__builtin_assume",), _assume),
    "__builtin_is_constant_evaluated": _is_constant_evaluated,
}
