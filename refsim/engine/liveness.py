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
    MatrixMultiply,
    Program,
    Stmt,
    Var,
    assigned_names,
    walk_expressions,
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


class Liveness:
    """Liveness of a whole program; `needs` is keyed by the identity of a statement."""

    def __init__(self, program: Program) -> None:
        self.needs: dict[int, Needs] = {}
        self.at_exit: dict[str, Names] = {program.exit_label: NONE}
        self._reads: dict[int, Names] = {}
        self._effects: dict[int, tuple[Names, Names]] = {}
        self._walk(program.body, NONE)

    def _reads_of(self, statement: Stmt) -> Names:
        """Variables that a statement's own expressions read; loops ask again and again."""
        if id(statement) not in self._reads:
            self._reads[id(statement)] = variables(statement)
        return self._reads[id(statement)]

    def _effects_of(self, statement: Stmt) -> tuple[Names, Names]:
        """Variables that a statement assigns, nested ones too, and the labels outside of it that it may break to."""
        known = self._effects.get(id(statement))
        if known is not None:
            return known
        if isinstance(statement, (Assign, MatrixMultiply)):
            found = frozenset(assigned_names(statement)), NONE
        elif isinstance(statement, Break):
            found = NONE, frozenset({statement.label})
        else:
            inner = [self._effects_of(s) for body in _bodies(statement) for s in body]
            assigned = NONE.union(*(part[0] for part in inner))
            labels = NONE.union(*(part[1] for part in inner))
            found = assigned, labels - {statement.label} if isinstance(statement, (Block, Loop)) else labels
        self._effects[id(statement)] = found
        return found

    def _walk(self, body: list[Stmt], after: Names) -> Names:
        """Variables live before a statement list, given those live after it."""
        live = after
        for statement in reversed(body):
            live = self._before(statement, live)
        return live

    def _before(self, statement: Stmt, after: Names) -> Names:
        if isinstance(statement, Assign):
            return (after - {statement.name}) | self._reads_of(statement)
        if isinstance(statement, MatrixMultiply):
            return (after - set(statement.targets)) | self._reads_of(statement)
        if isinstance(statement, Break):
            return self.at_exit[statement.label]
        if not isinstance(statement, (If, Block, Loop)):
            return after | self._reads_of(statement)
        assigned, labels = self._effects_of(statement)
        lossy = bool(labels)
        out = after if lossy else after & assigned
        through = NONE if lossy else after - assigned
        if isinstance(statement, If):
            then = self._walk(statement.then, out)
            otherwise = self._walk(statement.otherwise, out)
            self.needs[id(statement)] = Needs(after, lossy, out, then, otherwise)
            return then | otherwise | through | self._reads_of(statement)
        self.at_exit[statement.label] = out
        if isinstance(statement, Block):
            inside = self._walk(statement.body, out)
        else:
            condition = self._reads_of(statement)
            inside = out
            while True:
                before = self._walk(statement.body, self._walk(statement.step, inside)) | condition | inside
                if before == inside:
                    break
                inside = before
        self.needs[id(statement)] = Needs(after, lossy, out, head=inside)
        return inside | through


def _bodies(statement: Stmt) -> tuple[list[Stmt], ...]:
    """Statement lists nested directly in a statement."""
    if isinstance(statement, If):
        return statement.then, statement.otherwise
    if isinstance(statement, Loop):
        return statement.body, statement.step
    return (statement.body,) if isinstance(statement, Block) else ()
