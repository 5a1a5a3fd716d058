"""Which variables are needed where: what a branch must cut, and what a join must put back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from refsim.dialect import (
    Assign,
    Block,
    Break,
    If,
    Loop,
    Program,
    Stmt,
    Var,
    walk_expressions,
    walk_statements,
)

Names = frozenset[str]
NONE: Names = frozenset()


@dataclass
class Needs:
    """Liveness around one `If`, `Loop` or `Block`.

    `lossy` says that threads may leave it to a label outside. If none can, the set after the statement is the
    one before it, and only the variables in `out` need joining: the others are what they were. `head` is what a
    loop needs at the start of a trip, `then` and `otherwise` what the sides of a branch need.
    """

    after: Names
    lossy: bool
    out: Names
    then: Names = NONE
    otherwise: Names = NONE
    head: Names = NONE


def variables(node: Any) -> Names:
    """Variables read by the expressions of a statement or by an expression's parts."""
    return frozenset(part.name for part in walk_expressions(node) if isinstance(part, Var))


def assigned_in(body: list[Stmt]) -> Names:
    """Variables assigned anywhere in a statement list."""
    return frozenset(s.name for s in walk_statements(body) if isinstance(s, Assign))


def leaves(body: list[Stmt]) -> Names:
    """Labels outside of a statement list that it may break to."""
    out = {s.label for s in walk_statements(body) if isinstance(s, Break)}
    inside = {s.label for s in walk_statements(body) if isinstance(s, (Block, Loop))}
    return frozenset(out - inside)


class Liveness:
    """Liveness of a whole program; `needs` is keyed by the identity of a statement."""

    def __init__(self, program: Program) -> None:
        self.needs: dict[int, Needs] = {}
        self.at_exit: dict[str, Names] = {program.exit_label: NONE}
        self._walk(program.body, NONE)

    def _walk(self, body: list[Stmt], after: Names) -> Names:
        """Variables live before a statement list, given those live after it."""
        live = after
        for statement in reversed(body):
            live = self._before(statement, live)
        return live

    def _before(self, statement: Stmt, after: Names) -> Names:
        if isinstance(statement, Assign):
            return (after - {statement.name}) | variables(statement)
        if isinstance(statement, Break):
            return self.at_exit[statement.label]
        if not isinstance(statement, (If, Block, Loop)):
            return after | variables(statement)
        lossy = bool(leaves([statement]))
        assigned = assigned_in([statement])
        out = after if lossy else after & assigned
        through = NONE if lossy else after - assigned
        if isinstance(statement, If):
            then = self._walk(statement.then, out)
            otherwise = self._walk(statement.otherwise, out)
            self.needs[id(statement)] = Needs(after, lossy, out, then, otherwise)
            return then | otherwise | through | _reads(statement.condition)
        self.at_exit[statement.label] = out
        if isinstance(statement, Block):
            inside = self._walk(statement.body, out)
        else:
            condition = NONE if statement.condition is None else _reads(statement.condition)
            inside = out
            while True:
                before = self._walk(statement.body, self._walk(statement.step, inside)) | condition | inside
                if before == inside:
                    break
                inside = before
        self.needs[id(statement)] = Needs(after, lossy, out, head=inside)
        return inside | through


def _reads(expression: Any) -> Names:
    own = frozenset({expression.name}) if isinstance(expression, Var) else NONE
    return own | variables(expression)
