"""Local arrays as variables.

A local array that is indexed by numbers only, once loops over it are written out, needs no memory: each element
becomes a variable, as a compiler keeps it in registers. Arrays that may be read before they are written stay, and so
do those that are indexed out of bounds: their memory reports it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from refsim.dialect import (
    ITEM_BYTES,
    Align,
    Allocation,
    Assign,
    Block,
    Break,
    Const,
    Expr,
    If,
    Load,
    LoadAt,
    Loop,
    PointerAdd,
    Program,
    Stmt,
    Store,
    StoreAt,
    Type,
    Var,
    assigned_names,
    child_expressions,
    is_free,
    walk_expressions,
    walk_statements,
)
from refsim.engine.unrolling import rewritten, unrolled


@dataclass
class Elements:
    """What a program does with one local array: the scalar type found at each byte offset."""

    allocation: Allocation
    slots: dict[int, str] = field(default_factory=dict)
    kept: bool = False

    def variable(self, offset: int) -> str:
        """Name of the variable that an element becomes."""
        return f"{self.allocation.name}[{offset}]"

    def add(self, offset: int | None, dtype: str) -> None:
        """An access; one that no variable can stand for keeps the array in memory."""
        size = ITEM_BYTES[dtype]
        total = self.allocation.size * ITEM_BYTES[self.allocation.dtype]
        inside = offset is not None and offset % size == 0 and 0 <= offset <= total - size
        if not inside or self.slots.setdefault(offset or 0, dtype) != dtype:
            self.kept = True

    def overlap(self) -> bool:
        """True if some elements share bytes."""
        end = 0
        for offset in sorted(self.slots):
            if offset < end:
                return True
            end = offset + ITEM_BYTES[self.slots[offset]]
        return False


def with_registers(program: Program, types: dict[str, Type]) -> tuple[Program, dict[str, Type]]:
    """The program with local arrays as variables where that is possible, and the types of its variables."""
    arrays = frozenset(a.name for a in program.allocations if a.space == "local" and not a.dynamic)
    if not arrays:
        return program, types
    return _Registers(unrolled(program, arrays), arrays).applied(program, types)


class _Registers:
    """Decides which arrays of a program become variables, and writes the program anew."""

    def __init__(self, program: Program, arrays: frozenset[str]) -> None:
        self.program = replace(program, body=_without_dead_values(program.body))
        self.elements = {a.name: Elements(a) for a in program.allocations if a.name in arrays}
        for s in walk_statements(self.program.body):
            self._collect(s)
        for found in self.elements.values():
            found.kept |= found.overlap()
        assigned = Assigned(self)
        assigned.walk(self.program.body, set())
        for name in assigned.unknown:
            self.elements[name].kept = True

    def applied(self, before: Program, types: dict[str, Type]) -> tuple[Program, dict[str, Type]]:
        """The new program and its types, or those given if every array stays in memory."""
        chosen = {name: found for name, found in self.elements.items() if not found.kept}
        if not chosen:
            return before, types
        self.elements = chosen
        new = {found.variable(o): kind for found in chosen.values() for o, kind in found.slots.items()}
        program = replace(
            self.program,
            body=self._body(self.program.body),
            allocations=tuple(a for a in before.allocations if a.name not in chosen),
        )
        live = {name for s in walk_statements(program.body) for name in assigned_names(s)}
        kept = {name: kind for name, kind in types.items() if name in live}
        return program, kept | new

    # ------------------------------------------------------------------------------------ accesses

    def element(self, node: Any) -> tuple[str, int | None, str] | None:
        """Array, byte offset (None if it is no number) and type of an access to one of the arrays."""
        if isinstance(node, (Load, Store)):
            if not isinstance(node.array, Var) or node.array.name not in self.elements:
                return None
            allocation = self.elements[node.array.name].allocation
            return node.array.name, _offset(allocation, node.index), allocation.dtype
        if isinstance(node, (LoadAt, StoreAt)):
            pointer, offset = _pointed(node.pointer)
            if isinstance(pointer, Var) and pointer.name in self.elements:
                return pointer.name, offset, str(node.type if isinstance(node, LoadAt) else node.value.type)
        return None

    def _collect(self, node: Any) -> None:
        """Note all accesses below a statement; an array that is used in any other way stays in memory."""
        access = self.element(node)
        if access is not None:
            name, offset, dtype = access
            self.elements[name].add(offset, dtype)
        if isinstance(node, Align) and self._aligned(node):
            return
        for child in child_expressions(node):
            if access is not None and child is _base(node):
                continue
            if isinstance(child, Var) and child.name in self.elements:
                self.elements[child.name].kept = True
            self._collect(child)

    def _aligned(self, s: Align) -> bool:
        """True if a pointer into one of the arrays is a multiple of what it must be: nothing to check later."""
        pointer, offset = _pointed(s.pointer)
        return isinstance(pointer, Var) and pointer.name in self.elements and offset % s.bytes == 0

    # ------------------------------------------------------------------------------------ rewriting

    def _body(self, statements: list[Stmt]) -> list[Stmt]:
        return [new for s in statements for new in self._statement(s)]

    def _statement(self, s: Stmt) -> Iterator[Stmt]:
        if isinstance(s, If):
            yield If(self._expression(s.condition), self._body(s.then), self._body(s.otherwise))
        elif isinstance(s, Block):
            yield Block(s.label, self._body(s.body))
        elif isinstance(s, Loop):
            condition = None if s.condition is None else self._expression(s.condition)
            yield Loop(s.label, condition, self._body(s.body), self._body(s.step), s.place)
        elif isinstance(s, (Store, StoreAt)) and (access := self.element(s)) is not None:
            name, offset, _ = access
            assert offset is not None
            yield Assign(self.elements[name].variable(offset), self._expression(s.value))
        elif not (isinstance(s, Align) and self._aligned(s)):
            yield rewritten(s, self._expression)

    def _expression(self, e: Expr) -> Expr:
        access = self.element(e)
        if access is None:
            return rewritten(e, self._expression)
        name, offset, _ = access
        assert offset is not None
        return Var(type=e.type, name=self.elements[name].variable(offset))


def _pointed(pointer: Expr) -> tuple[Expr, int]:
    """A pointer as what it starts from and a known number of bytes."""
    if isinstance(pointer, PointerAdd) and isinstance(pointer.offset, Const):
        return pointer.pointer, int(pointer.offset.value)
    return pointer, 0


def _base(node: Any) -> Any:
    """The array or pointer of an access."""
    return node.array if isinstance(node, (Load, Store)) else node.pointer


def _offset(allocation: Allocation, index: tuple[Expr, ...]) -> int | None:
    """Byte offset of an element by its subscripts; None if one is no number, or is outside."""
    if len(index) != len(allocation.shape):
        return None
    position = 0
    for i, extent in zip(index, allocation.shape):
        if not isinstance(i, Const) or not 0 <= int(i.value) < extent:
            return None
        position = position * extent + int(i.value)
    return position * ITEM_BYTES[allocation.dtype]


def _without_dead_values(body: list[Stmt]) -> list[Stmt]:
    """The statements without assignments that nothing reads any more: pointers into the arrays, and loop counters."""
    reads = Counter(p.name for s in walk_statements(body) for p in walk_expressions(s) if isinstance(p, Var))

    def clean(statements: list[Stmt]) -> list[Stmt]:
        out: list[Stmt] = []
        for s in statements:
            if isinstance(s, Assign) and not reads[s.name] and is_free(s.value):
                continue
            if isinstance(s, If):
                s = If(s.condition, clean(s.then), clean(s.otherwise))
            elif isinstance(s, Block):
                s = Block(s.label, clean(s.body))
            elif isinstance(s, Loop):
                s = Loop(s.label, s.condition, clean(s.body), clean(s.step), s.place)
            out.append(s)
        return out

    return clean(body)


class Assigned:
    """Which elements are surely written before they are read; arrays for which that is unsure are in `unknown`."""

    def __init__(self, registers: _Registers) -> None:
        self.registers = registers
        self.unknown: set[str] = set()
        self.exits: dict[str, list[set[str]]] = {}

    def walk(self, body: list[Stmt], known: set[str]) -> set[str] | None:
        """Elements written after a statement list; None if its end is never reached."""
        state: set[str] | None = set(known)
        for s in body:
            if state is None:
                return None
            state = self._statement(s, state)
        return state

    def _read(self, node: Any, known: set[str]) -> None:
        for part in walk_expressions(node):
            access = self.registers.element(part)
            if access is not None:
                name, offset, _ = access
                if offset is None or self.registers.elements[name].variable(offset) not in known:
                    self.unknown.add(name)

    def _statement(self, s: Stmt, known: set[str]) -> set[str] | None:
        self._read(s, known)
        if isinstance(s, (Store, StoreAt)):
            access = self.registers.element(s)
            if access is not None and access[1] is not None:
                known = known | {self.registers.elements[access[0]].variable(access[1])}
            return known
        if isinstance(s, Break):
            self.exits.setdefault(s.label, []).append(known)
            return None
        if isinstance(s, If):
            return _both(self.walk(s.then, known), self.walk(s.otherwise, known))
        if isinstance(s, Block):
            return self._leave(s.label, self.walk(s.body, known))
        if isinstance(s, Loop):
            after = self.walk(s.body, known)
            if after is not None:
                self.walk(s.step, after)
            return self._leave(s.label, known if s.condition is not None else None)
        return known

    def _leave(self, label: str, state: set[str] | None) -> set[str] | None:
        for known in self.exits.pop(label, []):
            state = _both(state, known)
        return state


def _both(a: set[str] | None, b: set[str] | None) -> set[str] | None:
    if a is None or b is None:
        return b if a is None else a
    return a & b
