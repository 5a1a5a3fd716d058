"""Index arithmetic that a loop repeats, done once before it.

Only loops that all threads leave together are changed: there a value from before the loop costs nothing to carry. An
index that is the same array in every trip is bounds-checked once (`refsim.engine.views`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from refsim.dialect import (
    ITEM_BYTES,
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
    LoadAt,
    Loop,
    PointerAdd,
    PointerType,
    Program,
    Stmt,
    Store,
    StoreAt,
    Type,
    Unary,
    Var,
    assigned_names,
    is_free,
    walk_expressions,
    walk_statements,
)
from refsim.engine.unrolling import assigned, rewritten
from refsim.engine.widths import bit_width, may_overflow, multiples

PREFIX = "h$"  # of the variables that hold what was hoisted


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


def _sum(terms: list[tuple[Expr | None, int]], size: int) -> Expr:
    """The sum of terms (index or None for 1, factor), each times a size."""
    parts: list[Expr] = []
    for index, factor in terms:
        number = Const(type="int64", value=factor * size)
        if index is None:
            parts.append(number)
        else:
            parts.append(index if factor * size == 1 else Binary(type="int64", op="*", left=index, right=number))
    return reduce(lambda left, right: Binary(type="int64", op="+", left=left, right=right), parts)


class _Hoister:
    def __init__(self, program: Program) -> None:
        self.uniform = uniform_variables(program)
        self.types: dict[str, Type] = {}
        self.names: dict[Expr, str] = {}
        self.before: list[Stmt] = []
        self.changing: frozenset[str] = frozenset()

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
        rest = [part for part in s.body if not self._moved_on(part)]
        body = [self._statement(part) for part in rest]
        return [*self.before, Loop(s.label, s.condition, body, s.step, s.place)]

    def _moved_on(self, s: Stmt) -> bool:
        """Move what came out of an inner loop out of this one too, where it can."""
        if not isinstance(s, Assign) or s.name not in self.types or not self._stays(s.value):
            return False
        self.names.setdefault(s.value, s.name)
        self.before.append(s)
        return True

    def _stays(self, e: Expr) -> bool:
        """True if an expression has variables, and the loop changes none of them."""
        names = {part.name for part in walk_expressions(e) if isinstance(part, Var)}
        return bool(names) and not names & self.changing

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
        if isinstance(s, Store):
            s = replace(s, index=tuple(self._index(i) for i in s.index))
        if isinstance(s, StoreAt):
            s = replace(s, pointer=self._pointer(s.pointer, str(s.value.type)))
        return rewritten(s, self._accesses)

    def _accesses(self, e: Expr) -> Expr:
        """An expression with the subscripts in it changed."""
        e = rewritten(e, self._accesses)
        if isinstance(e, Load):
            return replace(e, index=tuple(self._index(i) for i in e.index))
        if isinstance(e, LoadAt):
            return replace(e, pointer=self._pointer(e.pointer, str(e.type)))
        return e

    def _pointer(self, e: Expr, dtype: str) -> Expr:
        """A pointer to elements of a type with the invariant terms of its offset added up before the loop."""
        if not isinstance(e, PointerAdd):
            return e
        e = replace(e, pointer=self._pointer(e.pointer, dtype))
        size = ITEM_BYTES[dtype]
        terms = multiples(e.offset, size)
        if terms is None:
            return e
        fixed = [term for term in terms if term[0] is None or self._is_ready(term[0])]
        worth = [term for term in fixed if term[0] is not None and (term[1] != 1 or isinstance(term[0], Binary))]
        if not worth:
            return e
        moving = [term for term in terms if term not in fixed]
        return replace(e, offset=_sum([*moving, (self._variable(_sum(fixed, 1)), 1)], size))

    def _is_ready(self, e: Expr) -> bool:
        """True if an index can be computed before the loop, and has no overflow that would be reported here."""
        return is_free(e) and self._stays(e) and not may_overflow(e)

    def _variable(self, e: Expr) -> Var:
        """The variable that holds an expression before the loop."""
        if e not in self.names:
            self.names[e] = name = f"{PREFIX}{len(self.types)}"
            self.types[name] = e.type
            self.before.append(Assign(name, e))
        return Var(type=e.type, name=self.names[e], bits=bit_width(e))

    def _index(self, e: Expr) -> Expr:
        """A subscript whose largest invariant sums and products are variables from before the loop."""
        if not isinstance(e, (Binary, Convert)):
            return e
        if isinstance(e, Binary) and is_free(e) and self._stays(e):
            return self._variable(e)
        return rewritten(e, self._index)
