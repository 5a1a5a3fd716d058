"""A program of the dialect as text: what ``refsim translate`` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from refsim.dialect import (
    Align,
    Allocation,
    Assert,
    Assign,
    Asynchronous,
    Atomic,
    AtomicAt,
    Barrier,
    BarrierObject,
    Binary,
    Bitcast,
    Block,
    BlockVote,
    Break,
    Call,
    Compare,
    Const,
    ConstArray,
    Convert,
    Dim,
    Effect,
    Expr,
    Fence,
    Field,
    If,
    Intrinsic,
    Load,
    LoadAt,
    Loop,
    MatrixMultiply,
    NullPointer,
    PointerAdd,
    PointerCompare,
    PointerDifference,
    Print,
    Program,
    Rearranged,
    Select,
    SharedAddress,
    SharedPointer,
    Slice,
    SliceItem,
    Stmt,
    Store,
    StoreAt,
    Stride,
    Type,
    Unary,
    Var,
    Warp,
    WarpBarrier,
)

INDENT = "    "


def text(program: Program, types: dict[str, Type]) -> str:
    """The program as text: parameters, allocations and variables with their types, then the statements.

    Parameters
    ----------
    program
        What a front end made.
    types
        Types of the program's variables.
    """
    parameters = ", ".join(f"{name}: {kind}" for name, kind in program.parameters)
    lines = [f"kernel {program.name}({parameters}):"]
    lines += [f"{INDENT}{_allocation(allocation)}" for allocation in program.allocations]
    by_type: dict[str, list[str]] = {}
    for name, kind in types.items():
        by_type.setdefault(str(kind), []).append(name)
    lines += [f"{INDENT}var {', '.join(names)}: {kind}" for kind, names in sorted(by_type.items())]
    lines += [INDENT + line for statement in program.body for line in statement_lines(statement)]
    return "\n".join(lines) + "\n"


def _allocation(allocation: Allocation) -> str:
    shape = "dynamic" if allocation.dynamic else ", ".join(map(str, allocation.shape))
    return f"{allocation.space} {allocation.name}: {allocation.dtype}[{shape}]"


# ------------------------------------------------------------------------------------------------ statements


def statement_lines(statement: Stmt) -> Iterator[str]:
    """Lines of one statement, nested ones indented."""
    if isinstance(statement, If):
        yield f"if {expression(statement.condition)}:"
        yield from _nested(statement.then)
        if statement.otherwise:
            yield "else:"
            yield from _nested(statement.otherwise)
    elif isinstance(statement, Block):
        yield f"block {statement.label}:"
        yield from _nested(statement.body)
    elif isinstance(statement, Loop):
        head = "" if statement.condition is None else f" while {expression(statement.condition)}"
        yield f"loop {statement.label}{head}:"
        yield from _nested(statement.body)
        if statement.step:
            yield "step:"
            yield from _nested(statement.step)
    else:
        yield SIMPLE[type(statement)](statement)


def _nested(body: list[Stmt]) -> Iterator[str]:
    for statement in body:
        for line in statement_lines(statement):
            yield INDENT + line
    if not body:
        yield f"{INDENT}pass"


def _list(parts: tuple[Expr | str, ...]) -> str:
    return ", ".join(repr(part) if isinstance(part, str) else expression(part) for part in parts)


SIMPLE: dict[type, Callable[[Any], str]] = {
    Assign: lambda s: f"{s.name} = {expression(s.value)}",
    Store: lambda s: f"{expression(s.array)}[{_list(s.index)}] = {expression(s.value)}",
    StoreAt: lambda s: (
        f"store {'volatile ' * s.volatile}{s.value.type} {expression(s.pointer)} = {expression(s.value)}"
    ),
    Align: lambda s: f"align {expression(s.pointer)} to {s.bytes}",
    MatrixMultiply: lambda s: f"{', '.join(s.targets)} = {s.name}({_list(s.a)}; {_list(s.b)}; {_list(s.c)})",
    Effect: lambda s: expression(s.value),
    Break: lambda s: f"break {s.label}",
    Barrier: lambda s: f"barrier {s.scope}",
    WarpBarrier: lambda s: f"warp barrier {expression(s.mask)}",
    Fence: lambda s: f"fence {s.scope}",
    Asynchronous: lambda s: f"copies {s.action}{'' if s.count is None else ' ' + expression(s.count)}",
    Print: lambda s: f"{'printf' if s.printf else 'print'} {_list(s.parts)}",
    Assert: lambda s: f"assert {expression(s.condition)}, {s.message!r}",
}

# ----------------------------------------------------------------------------------------------- expressions


def expression(e: Expr) -> str:
    """One expression; operators in parentheses, with the type where it is not that of the operands."""
    return EXPRESSIONS[type(e)](e)


def _item(item: Expr | SliceItem) -> str:
    if isinstance(item, SliceItem):
        return ":".join("" if part is None else expression(part) for part in (item.start, item.stop, item.step))
    return expression(item)


def _constant(e: Const) -> str:
    return str(e.value) if e.type in ("bool", "int32", "int64") else f"{e.type}({e.value})"


def _binary(e: Any) -> str:
    return f"({expression(e.left)} {e.op} {expression(e.right)})"


def _unary(e: Unary) -> str:
    return f"{e.op}{' ' if e.op.isalpha() else ''}{expression(e.value)}"


EXPRESSIONS: dict[type, Callable[[Any], str]] = {
    Const: _constant,
    Var: lambda e: str(e.name),
    Convert: lambda e: f"{e.type}({expression(e.value)})",
    Bitcast: lambda e: f"bits {e.type}({expression(e.value)})",
    Unary: _unary,
    Binary: _binary,
    Compare: _binary,
    Select: lambda e: f"({expression(e.then)} if {expression(e.condition)} else {expression(e.otherwise)})",
    Call: lambda e: f"{e.function}({_list(e.args)})",
    Intrinsic: lambda e: f"{e.name}.{e.operand}({_list(e.args)})",
    Load: lambda e: f"{expression(e.array)}[{_list(e.index)}]",
    Slice: lambda e: f"{expression(e.array)}[{', '.join(map(_item, e.items))}]",
    Dim: lambda e: f"{expression(e.array)}.shape[{e.axis}]",
    Stride: lambda e: f"{expression(e.array)}.strides[{e.axis}]",
    Field: lambda e: f"{expression(e.array)}.{e.name}",
    Rearranged: lambda e: f"{expression(e.array)}.{e.how}({', '.join(map(expression, e.extents))})",
    ConstArray: lambda e: f"constant {e.name}",
    Atomic: lambda e: f"atomic {e.op} {expression(e.array)}[{_list(e.index)}] ({_list(e.args)})",
    PointerAdd: lambda e: f"({expression(e.pointer)} + {expression(e.offset)} bytes)",
    PointerDifference: lambda e: f"({expression(e.left)} - {expression(e.right)} bytes)",
    PointerCompare: _binary,
    NullPointer: lambda e: "null",
    SharedAddress: lambda e: f"shared address {expression(e.pointer)}",
    SharedPointer: lambda e: f"shared pointer {expression(e.address)}",
    LoadAt: lambda e: f"load {'volatile ' * e.volatile}{e.type} {expression(e.pointer)}",
    AtomicAt: lambda e: f"atomic {e.op} {e.type} {expression(e.pointer)} ({_list(e.args)}) scope {e.scope}",
    BarrierObject: lambda e: f"barrier object {e.op} {expression(e.pointer)} ({_list(e.args)})",
    Warp: lambda e: f"warp {e.op}({_list(e.args)})",
    BlockVote: lambda e: f"vote {e.op}({expression(e.predicate)})",
}
