"""Names that kernels give to thread and block indices, put back where they are used.

``i = threadIdx.x`` makes a variable of unknown size out of a number that is known to be small; with the index itself
in its place, sums of it need no check for overflow.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from refsim.dialect import (
    INDICES,
    INTEGERS,
    Assign,
    Block,
    Convert,
    Expr,
    If,
    Loop,
    Program,
    Stmt,
    Var,
    assigned_names,
    walk_statements,
)
from refsim.engine.unrolling import rewritten


def with_indices(program: Program) -> Program:
    """The program with variables that are only ever one index replaced by it."""
    statements = list(walk_statements(program.body))
    times = Counter(name for s in statements for name in assigned_names(s))
    parameters = {name for name, _ in program.parameters}
    names = {
        s.name: s.value
        for s in statements
        if isinstance(s, Assign) and times[s.name] == 1 and s.name not in parameters and _is_index(s.value)
    }
    if not names:
        return program

    def change(e: Expr) -> Expr:
        return names.get(e.name, e) if isinstance(e, Var) else rewritten(e, change)

    def body(statements: list[Stmt]) -> list[Stmt]:
        out: list[Stmt] = []
        for s in statements:
            if isinstance(s, If):
                out.append(If(change(s.condition), body(s.then), body(s.otherwise)))
            elif isinstance(s, Block):
                out.append(Block(s.label, body(s.body)))
            elif isinstance(s, Loop):
                condition = None if s.condition is None else change(s.condition)
                out.append(Loop(s.label, condition, body(s.body), body(s.step), s.place))
            elif not (isinstance(s, Assign) and s.name in names):
                out.append(rewritten(s, change))
        return out

    return replace(program, body=body(program.body))


def _is_index(e: Expr) -> bool:
    """True for an index of a thread or block, converted or not."""
    while isinstance(e, Convert) and e.type in INTEGERS:
        e = e.value
    return isinstance(e, Var) and e.name in INDICES
