"""Index arithmetic that a loop repeats, done once before it.

Only loops that all threads leave together are changed: there a value from before the loop costs nothing to carry. An
index that is the same array in every trip is bounds-checked once (`refsim.engine.views`).
"""

from __future__ import annotations

from dataclasses import replace

from refsim.dialect import (
    Assign,
    Binary,
    Block,
    Break,
    Const,
    Convert,
    Dim,
    Expr,
    If,
    Load,
    Loop,
    Place,
    PointerType,
    Program,
    Stmt,
    Store,
    Type,
    Unary,
    Var,
    assigned_names,
    is_free,
    walk_expressions,
    walk_statements,
)
from refsim.engine.unrolling import assigned, rewritten


def hoisted(program: Program, types: dict[str, Type]) -> tuple[Program, dict[str, Type]]:
    """The program with invariant index arithmetic before its loops, and the types of its variables."""
    if not any(isinstance(s, Loop) for s in walk_statements(program.body)):
        return program, types
    hoister = _Hoister(program)
    body = hoister.body(program.body)
    return replace(program, body=body), types | hoister.types


def uniform_variables(program: Program) -> frozenset[str]:
    """Variables that hold the same number in every thread, wherever they are assigned."""
    fixed = {name for name, kind in program.parameters if not isinstance(kind, PointerType)}
    sources: dict[str, list[Expr]] = {}
    divergent: set[str] = set()
    _assignments(program.body, sources, divergent, False)
    uniform = (fixed | set(sources)) - divergent
    changed = True
    while changed:
        changed = False
        for name, values in sources.items():
            if name in uniform and not all(_is_uniform(value, uniform) for value in values):
                uniform.discard(name)
                changed = True
    return frozenset(uniform)


def _assignments(body: list[Stmt], sources: dict[str, list[Expr]], divergent: set[str], inside: bool) -> None:
    """What is assigned to each variable; those assigned inside a branch may differ between threads."""
    for s in body:
        if isinstance(s, Assign):
            sources.setdefault(s.name, []).append(s.value)
            if inside:
                divergent.add(s.name)
        elif isinstance(s, If):
            _assignments(s.then, sources, divergent, True)
            _assignments(s.otherwise, sources, divergent, True)
        elif isinstance(s, Block):
            _assignments(s.body, sources, divergent, inside or _leaves(s.body))
        elif isinstance(s, Loop):
            uneven = inside or _leaves(s.body)
            _assignments(s.body, sources, divergent, uneven)
            _assignments(s.step, sources, divergent, uneven)
        else:
            divergent.update(assigned_names(s))


def _leaves(body: list[Stmt]) -> bool:
    return any(isinstance(s, Break) for s in walk_statements(body))


def _is_uniform(e: Expr, uniform: set[str] | frozenset[str]) -> bool:
    if isinstance(e, Var):
        return e.name in uniform or e.name.startswith(("blockDim.", "gridDim."))
    if isinstance(e, Dim):
        return isinstance(e.array, Var) and e.array.name in uniform
    if isinstance(e, Const):
        return True
    return (
        isinstance(e, (Convert, Binary, Unary))
        and is_free(e)
        and all(_is_uniform(part, uniform) for part in walk_expressions(e) if isinstance(part, (Var, Dim)))
    )


class _Hoister:
    def __init__(self, program: Program) -> None:
        self.uniform = uniform_variables(program)
        self.types: dict[str, Type] = {}
        self.names: dict[Expr, str] = {}
        self.before: list[Stmt] = []
        self.changing: frozenset[str] = frozenset()
        self.place: Place | None = None

    def body(self, statements: list[Stmt]) -> list[Stmt]:
        """A statement list with what its loops repeat moved in front of them, inner loops first."""
        out: list[Stmt] = []
        for s in statements:
            if isinstance(s, If):
                out.append(If(s.condition, self.body(s.then), self.body(s.otherwise)))
            elif isinstance(s, Block):
                out.append(Block(s.label, self.body(s.body)))
            elif isinstance(s, Loop):
                out += self._loop(Loop(s.label, s.condition, self.body(s.body), s.step, s.place))
            else:
                out.append(s)
        return out

    def _loop(self, s: Loop) -> list[Stmt]:
        if s.condition is None or _leaves(s.body) or not self._even(s.condition):
            return [s]
        self.changing = frozenset(assigned([s]))
        self.before, self.names = [], {}
        body = [self._statement(part) for part in s.body]
        return [*self.before, Loop(s.label, s.condition, body, s.step, s.place)]

    def _even(self, condition: Expr) -> bool:
        """True if all threads leave a loop with this condition together."""
        return all(
            isinstance(part, (Const, Convert, Binary, Unary)) or _is_uniform(part, self.uniform)
            for part in walk_expressions(condition)
        )

    def _statement(self, s: Stmt) -> Stmt:
        """A statement of the loop's own level; those of nested branches and loops stay as they are."""
        if isinstance(s, (If, Block, Loop)):
            return s
        self.place = getattr(s, "place", None)
        if isinstance(s, Store):
            s = replace(s, index=tuple(self._index(i) for i in s.index))
        return rewritten(s, self._accesses)

    def _accesses(self, e: Expr) -> Expr:
        """An expression with the subscripts in it changed."""
        e = rewritten(e, self._accesses)
        if isinstance(e, Load):
            return replace(e, index=tuple(self._index(i) for i in e.index))
        return e

    def _index(self, e: Expr) -> Expr:
        """A subscript whose largest invariant sums and products are variables from before the loop."""
        if not isinstance(e, (Binary, Convert)):
            return e
        names = {part.name for part in walk_expressions(e) if isinstance(part, Var)}
        if isinstance(e, Binary) and is_free(e) and names and not names & self.changing:
            if e not in self.names:
                self.names[e] = name = f"h${len(self.types)}"
                self.types[name] = e.type
                self.before.append(Assign(name, e))
            return Var(type=e.type, name=self.names[e])
        return rewritten(e, self._index)
