"""Barriers of a block: the whole block's, named ones, and barrier objects in shared memory."""

from __future__ import annotations

from refsim.dialect import (
    Allocation,
    Assign,
    Asynchronous,
    Barrier,
    BarrierObject,
    Const,
    Effect,
    Expr,
    Loop,
    PointerType,
    Var,
)
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.assembly.forms import Form
from refsim.frontends.cuda_cpp.assembly.machine import Machine
from refsim.frontends.cuda_cpp.assembly.parsing import Instruction, Operand
from refsim.frontends.cuda_cpp.assembly.special import block_threads

NAMED = "named barriers"
NAMED_COUNT = 16
OBJECT = PointerType("uint64")


def _object(m: Machine, operand: Operand) -> Expr:
    return m.keep(m.pointer(operand, "shared", "uint64"))


def _operation(m: Machine, op: str, pointer: Expr, *args: Expr, kind: str) -> Expr:
    """The operation, done here: its result in a variable."""
    result = m.t.variable("t@", kind)
    m.t.stable.add(result.name)
    m.emit(Assign(result.name, BarrierObject(op, pointer, args, m.where, type=kind)))
    return result


# ------------------------------------------------------------------------------------- barriers with a number


def _barrier(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    """Without a number of threads, barrier 0 is that of ``__syncthreads``."""
    number = m.raw(i.operands[0])
    if len(i.operands) == 1 and isinstance(number, Const) and number.value == 0:
        m.emit(Barrier(m.where))
        return
    pointer, phase = _come(m, i)
    waiting = folding.not_(BarrierObject("test", pointer, (phase,), m.where, type="bool"))
    m.emit(Loop(m.t.fresh("barrier@"), waiting, [], [], m.where))


def _arrive(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    _come(m, i)


def _come(m: Machine, i: Instruction) -> tuple[Expr, Expr]:
    """Arrive at a named barrier: where it is, and the phase of the arrival."""
    if NAMED not in m.t.allocations:
        m.t.fresh(NAMED)  # so that no variable is called like it
        m.t.allocations[NAMED] = Allocation(NAMED, "barriers", "uint64", (NAMED_COUNT,), raw=True)
        m.t.stable.add(NAMED)
    number = folding.convert(m.read(i.operands[0], "uint32"), "int64")
    pointer = m.keep(folding.advance(Var(NAMED, type=OBJECT), folding.binary("*", number, folding.integer(8, "int64"))))
    threads = m.read(i.operands[1], "uint32") if len(i.operands) > 1 else block_threads(m.t)
    count = m.keep(folding.convert(threads, "int64"))
    return pointer, _operation(m, "named", pointer, count, kind="uint64")


# ------------------------------------------------------------------------------------------- barrier objects


def _initialise(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    count = m.keep(folding.convert(m.read(i.operands[1], "uint32"), "int64"))
    m.emit(Effect(BarrierObject("init", _object(m, i.operands[0]), (count,), m.where, type="uint64")))


def _end(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    m.emit(Effect(BarrierObject("inval", _object(m, i.operands[0]), (), m.where, type="uint64")))


def _arrive_at(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    drop = i.name.startswith("mbarrier.arrive_drop")
    operands = i.operands if isinstance(i.operands[0], str) else ("_", *i.operands)
    count: Expr = folding.integer(1, "int64")
    if len(operands) > 2:
        if drop:
            raise m.unsupported("a number of arrivals")
        count = folding.convert(m.read(operands[2], "uint32"), "int64")
    pointer = _object(m, operands[1])
    m.write(operands[0], _operation(m, "drop" if drop else "arrive", pointer, m.keep(count), kind="uint64"))


def _test(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    parity = ".parity." in i.name
    wanted = m.keep(folding.convert(m.read(i.operands[2], "uint32" if parity else "uint64"), "uint64"))
    pointer = _object(m, i.operands[1])
    m.write(i.operands[0], _operation(m, "parity" if parity else "test", pointer, wanted, kind="bool"))


def _copies_arrive(m: Machine, i: Instruction, parts: tuple[str, ...]) -> None:
    """The thread's copies so far count as arrived for those who wait for the barrier object."""
    m.emit(Asynchronous("commit", None, m.where))
    m.emit(Asynchronous("wait", folding.integer(0, "int64"), m.where))
    if ".noinc." in i.name:
        one = folding.integer(1, "int64")
        m.emit(Effect(BarrierObject("arrive", _object(m, i.operands[0]), (one,), m.where, type="uint64")))


_SPACE = "shared[::cta].b64"
TABLE: tuple[Form, ...] = (
    Form("bar.sync", "number{, threads}", _barrier),
    Form("bar.arrive", "number, threads", _arrive),
    Form("barrier[.cta].sync[.aligned]", "number{, threads}", _barrier),
    Form("barrier[.cta].arrive[.aligned]", "number, threads", _arrive),
    Form(f"mbarrier.init.{_SPACE}", "[a], count", _initialise, 80),
    Form(f"mbarrier.inval.{_SPACE}", "[a]", _end, 80),
    Form(f"mbarrier.arrive[.release.cta].{_SPACE}", "state, [a]{, count}", _arrive_at, 80),
    Form(f"mbarrier.arrive_drop[.release.cta].{_SPACE}", "state, [a]", _arrive_at, 80),
    Form("mbarrier.{test_wait,try_wait}[.parity][.acquire.cta]." + _SPACE, "p, [a], state", _test, 80),
    Form("mbarrier.{test_wait,try_wait}.acquire.cta.parity." + _SPACE, "p, [a], state", _test, 80),
    Form(f"cp.async.mbarrier.arrive[.noinc].{_SPACE}", "[a]", _copies_arrive, 80),
)
