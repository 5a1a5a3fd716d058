"""Inline PTX: a table of instructions, and what each becomes in the dialect."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from refsim.dialect import Assign, Block, Break, Const, If, Loop, Stmt, Var
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.assembly import parsing
from refsim.frontends.cuda_cpp.assembly.machine import TYPES, Machine, Register
from refsim.frontends.cuda_cpp.assembly.parsing import Instruction, Label, Registers, Statement
from refsim.frontends.cuda_cpp.assembly.table import INSTRUCTIONS
from refsim.frontends.cuda_cpp.options import is_hip
from refsim.frontends.cuda_cpp.tree import Node

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.declarations import Declarations


@dataclass(frozen=True)
class Jump:
    """What a branch does: say which part is next, by its label, and leave the present one."""

    whose: Var
    parts: dict[str, int]
    end: str


BRANCHES = ("bra", "bra.uni")
LEAVES = ("ret", "exit")


def translate(t: Declarations, node: Node) -> None:
    """One ``asm`` statement."""
    text = t.tree.source.between(node.offset or 0, node.end or 0)
    sections = parsing.sections(text[text.index("(") + 1 :])
    template = parsing.template(sections[0])
    if not template.strip():
        return  # only tells the compiler something
    if is_hip(t.device):
        raise t.unsupported(f"inline assembly for AMD devices is not supported: {template.split(';')[0].strip()}", node)
    machine = Machine(t, node)
    outputs = parsing.constraints(sections[1]) if len(sections) > 1 else []
    inputs = parsing.constraints(sections[2]) if len(sections) > 2 else []
    if len(outputs) + len(inputs) != len(node.inner):
        raise t.unsupported("the operands of this asm statement are not understood", node)
    for number, (constraint, operand) in enumerate(zip((*outputs, *inputs), node.inner)):
        machine.bind(number, constraint, operand, output=number < len(outputs))
    try:
        statements = parsing.statements(template)
    except ValueError as error:
        raise t.unsupported(f"PTX: {error} is not understood", node) from error
    body(machine, statements)
    machine.store_outputs()


def body(m: Machine, statements: list[Statement]) -> None:
    """Statements in order; branches become loops and blocks."""
    labels = {s.name: position for position, s in enumerate(statements) if isinstance(s, Label)}
    jumps = [
        (position, labels.get(str(s.operands[0])))
        for position, s in enumerate(statements)
        if isinstance(s, Instruction) and s.name in BRANCHES
    ]
    if not jumps:
        _all(m, statements, None)
        return
    _all(m, [s for s in statements if isinstance(s, Registers)], None)
    if any(target is None for _, target in jumps):
        raise m.unsupported("a branch to a label outside of the asm statement is not supported")
    written = {str(name) for s in statements if isinstance(s, Instruction) for name in _written(s)}
    m.settle(written)
    m.conditional = True
    _dispatch(m, [s for s in statements if not isinstance(s, Registers)])
    m.conditional = False


def _all(m: Machine, statements: list[Statement], jump: Jump | None) -> None:
    for statement in statements:
        _statement(m, statement, jump)


def _dispatch(m: Machine, statements: list[Statement]) -> None:
    """Parts between labels, in a loop that runs the part whose turn it is; each part says which one is next."""
    parts: list[tuple[str, list[Statement]]] = [("", [])]
    for s in statements:
        if isinstance(s, Label):
            parts.append((s.name, []))
        else:
            parts[-1][1].append(s)
    number = {name: position for position, (name, _) in enumerate(parts)}
    whose = m.t.variable("part@", "int32")
    m.t.assign(whose, Const(0, type="int32"))
    loop = m.t.fresh("asm@")
    turns: list[Stmt] = []
    for position, (_, inside) in enumerate(parts):
        exit_label = m.t.fresh("part@end")
        jump = Jump(whose, number, exit_label)
        collected, _ = m.t.aside(partial(_all, m, inside, jump))
        following: list[Stmt] = [Break(loop)]
        if position + 1 < len(parts):
            following = [Assign(whose.name, Const(position + 1, type="int32"))]
        here = folding.compare("==", whose, Const(position, type="int32"))
        turns.append(If(here, [Block(exit_label, [*collected, *following])], []))
    m.emit(Loop(loop, None, turns, [], m.where))


def _written(i: Instruction) -> list[str]:
    """Registers that an instruction may write: its first operand, or both of ``d|p``."""
    names: list[str] = []
    for operand in i.operands[:2]:
        if isinstance(operand, tuple):
            names += operand
        elif isinstance(operand, str):
            names.append(operand)
    return names


def _statement(m: Machine, s: Statement, jump: Jump | None) -> None:
    if isinstance(s, Label):
        return
    if isinstance(s, Registers):
        if s.type not in TYPES:
            raise m.unsupported(f"registers of type .{s.type} are not supported")
        m.registers.update({name: Register(TYPES[s.type]) for name in s.names})
        return
    m.name = s.name
    if s.guard is None:
        _instruction(m, s, jump)
        return
    condition = m.predicate(("!" if s.negated else "") + s.guard)
    condition = m.keep(condition)
    if not m.conditional:
        m.settle(set(_written(s)))
    before, m.conditional = m.conditional, True
    collected, _ = m.t.aside(lambda: _instruction(m, s, jump))
    m.conditional = before
    m.name = s.name
    m.emit(If(condition, collected, []))


def _instruction(m: Machine, i: Instruction, jump: Jump | None) -> None:
    if i.name in BRANCHES:
        assert jump is not None
        m.emit(Assign(jump.whose.name, Const(jump.parts[str(i.operands[0])], type="int32")))
        m.emit(Break(jump.end))
        return
    if i.name in LEAVES:
        m.emit(Break("kernel"))
        return
    for form in INSTRUCTIONS:
        parts = form.match(i.name)
        if parts is not None:
            form.handler(m, i, parts)
            return
    raise m.t.unsupported(f"PTX instruction {i.name} is not supported", m.node)
