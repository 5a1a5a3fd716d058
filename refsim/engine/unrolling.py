"""Constants carried forward, and loops over the elements of a local array written out.

A loop of a known, small number of trips whose counter indexes a local array is replaced by its trips, so that every
index is a number and the array can become variables (`refsim.engine.registers`), as a compiler would have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, TypeVar, cast

import numpy as np

from refsim.dialect import (
    INTEGERS,
    Assign,
    Barrier,
    Binary,
    Block,
    BlockVote,
    Break,
    Compare,
    Const,
    Convert,
    Expr,
    If,
    Load,
    Loop,
    PointerAdd,
    Program,
    SliceItem,
    Stmt,
    Store,
    Var,
    assigned_names,
    walk_expressions,
    walk_statements,
)

MOST_TRIPS = 64
MOST_COPIES = 512  # statements that one loop may become
MOST_STATEMENTS = 4096  # that all loops together may become

Known = dict[str, Expr]
Node = TypeVar("Node")

ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": int.__add__,
    "-": int.__sub__,
    "*": int.__mul__,
}
RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


# ---------------------------------------------------------------------------------------------- expressions


_field_names: dict[type, tuple[str, ...]] = {}


def rewritten(node: Node, change: Callable[[Expr], Expr]) -> Node:
    """A statement or expression with `change` applied to each expression directly below it; itself if none changed."""
    new: dict[str, Any] = {}
    kind: Any = type(node)
    if kind not in _field_names:
        _field_names[kind] = tuple(f.name for f in fields(kind))
    for name in _field_names[kind]:
        value = getattr(node, name)
        if isinstance(value, Expr):
            changed: Any = change(value)
        elif isinstance(value, tuple) and value and not isinstance(value[0], str):
            changed = tuple(_item(item, change) for item in value)
            if all(a is b for a, b in zip(changed, value)):
                continue
        else:
            continue
        if changed is not value:
            new[name] = changed
    return cast(Node, replace(cast(Any, node), **new)) if new else node


def _item(item: Any, change: Callable[[Expr], Expr]) -> Any:
    if isinstance(item, Expr):
        return change(item)
    return rewritten(item, change) if isinstance(item, SliceItem) else item


def folded(e: Expr, known: Known) -> Expr:
    """An expression with known variables put in and integer arithmetic on constants done, where nothing overflows."""
    if isinstance(e, Var):
        return known.get(e.name, e)
    e = rewritten(e, lambda part: folded(part, known))
    if isinstance(e, Convert) and isinstance(e.value, Const) and e.type in INTEGERS and e.value.type in INTEGERS:
        return _integer(e, int(e.value.value))
    if isinstance(e, (Binary, Compare)) and isinstance(e.left, Const) and isinstance(e.right, Const):
        left, right = e.left.value, e.right.value
        if isinstance(e, Compare) and e.left.type in INTEGERS:
            return Const(type="bool", value=RELATIONS[e.op](int(left), int(right)))
        if isinstance(e, Binary) and e.type in INTEGERS and e.op in ARITHMETIC:
            return _integer(e, ARITHMETIC[e.op](int(left), int(right)))
    if isinstance(e, Binary) and e.type in INTEGERS and isinstance(e.right, Const):
        idle = {"+": 0, "-": 0, "*": 1}.get(e.op)
        if idle is not None and e.right.value == idle:
            return e.left
    if isinstance(e, PointerAdd) and isinstance(e.offset, Const):
        if e.offset.value == 0:
            return e.pointer
        inner = e.pointer
        if isinstance(inner, PointerAdd) and isinstance(inner.offset, Const):
            total = Const(type="int64", value=int(inner.offset.value) + int(e.offset.value))
            return PointerAdd(type=e.type, pointer=inner.pointer, offset=total)
    return e


def _integer(e: Expr, value: int) -> Expr:
    limits = np.iinfo(str(e.type))
    return Const(type=e.type, value=value) if limits.min <= value <= limits.max else e


# ----------------------------------------------------------------------------------------------- statements


def assigned(body: list[Stmt]) -> set[str]:
    """Variables that a statement list assigns."""
    return {name for s in walk_statements(body) for name in assigned_names(s)}


def index_variables(program: Program, arrays: frozenset[str]) -> set[str]:
    """Variables that go into an index of one of these local arrays, directly or through other variables."""
    found: set[str] = set()
    sources: dict[str, set[str]] = {}
    for s in walk_statements(program.body):
        if isinstance(s, Assign):
            sources.setdefault(s.name, set()).update(_names(s.value))
        for index in _indices(s, arrays):
            found |= set(_names(index))
    todo = list(found)
    while todo:
        for name in sources.get(todo.pop(), ()):
            if name not in found:
                found.add(name)
                todo.append(name)
    return found


def _indices(s: Stmt, arrays: frozenset[str]) -> Iterator[Expr]:
    """Subscripts and byte offsets by which a statement reaches the arrays."""
    if isinstance(s, Store) and isinstance(s.array, Var) and s.array.name in arrays:
        yield from s.index
    for part in walk_expressions(s):
        if isinstance(part, Load) and isinstance(part.array, Var) and part.array.name in arrays:
            yield from part.index
        elif isinstance(part, PointerAdd) and arrays.intersection(_names(part.pointer)):
            yield part.offset


def _names(e: Expr) -> Iterator[str]:
    if isinstance(e, Var):
        yield e.name
    for part in walk_expressions(e):
        if isinstance(part, Var):
            yield part.name


class Unroller:
    """Rewrites one program whose local arrays are `arrays`."""

    def __init__(self, program: Program, arrays: frozenset[str]) -> None:
        self.arrays = arrays
        self.counters = index_variables(program, arrays)
        self.written = 0
        self.labels = 0

    def body(self, statements: list[Stmt], known: Known, labels: dict[str, str]) -> list[Stmt]:
        """A statement list rewritten; `known` holds what variables are on the way in, and then on the way out."""
        out: list[Stmt] = []
        for s in statements:
            self._statement(s, known, labels, out)
            if out and isinstance(out[-1], Break):
                break
        self.written += len(out)
        return out

    def _statement(self, s: Stmt, known: Known, labels: dict[str, str], out: list[Stmt]) -> None:
        if isinstance(s, Assign):
            value = folded(s.value, known)
            if isinstance(value, Const) or self._fixed_pointer(value):
                known[s.name] = value
            else:
                known.pop(s.name, None)
            out.append(replace(s, value=value))
        elif isinstance(s, If):
            condition = folded(s.condition, known)
            if isinstance(condition, Const):
                out += self.body(s.then if condition.value else s.otherwise, known, labels)
                return
            then = self.body(s.then, dict(known), labels)
            otherwise = self.body(s.otherwise, dict(known), labels)
            _forget(known, assigned(s.then) | assigned(s.otherwise))
            out.append(If(condition, then, otherwise))
        elif isinstance(s, Block):
            inside = labels | {s.label: self._label(s.label)}
            out.append(Block(inside[s.label], self.body(s.body, dict(known), inside)))
            _forget(known, assigned(s.body))
        elif isinstance(s, Loop):
            self._loop(s, known, labels, out)
        elif isinstance(s, Break):
            out.append(Break(labels.get(s.label, s.label)))
        else:
            out.append(rewritten(s, lambda e: folded(e, known)))
            _forget(known, set(assigned_names(s)))

    def _fixed_pointer(self, e: Expr) -> bool:
        """True for a pointer to a known byte of a local array."""
        if isinstance(e, PointerAdd) and isinstance(e.offset, Const):
            e = e.pointer
        return isinstance(e, Var) and e.name in self.arrays

    def _label(self, label: str) -> str:
        self.labels += 1
        return f"{label}#{self.labels}"

    def _loop(self, s: Loop, known: Known, labels: dict[str, str], out: list[Stmt]) -> None:
        trips = self._trips(s, known)
        if trips is not None:
            for value in trips:
                known.update(value)
                out += self.body(s.body, known, labels)
                out += self.body(s.step, known, labels)
            return
        _forget(known, assigned([s]))
        inside = labels | {s.label: self._label(s.label)}
        condition = None if s.condition is None else folded(s.condition, known)
        body = self.body(s.body, dict(known), inside)
        step = self.body(s.step, dict(known), inside)
        out.append(Loop(inside[s.label], condition, body, step, s.place))

    def _trips(self, s: Loop, known: Known) -> list[Known] | None:
        """The counter's value in each trip of a loop to be written out; None for a loop to be kept."""
        if not isinstance(s.condition, Compare) or len(s.step) != 1 or not isinstance(s.step[0], Assign):
            return None
        step = s.step[0]
        start = known.get(step.name)
        if step.name not in self.counters or not isinstance(start, Const) or step.name in assigned(s.body):
            return None
        nested = list(walk_statements(s.body))
        if any(isinstance(part, Barrier) or (isinstance(part, Break) and part.label == s.label) for part in nested):
            return None
        if any(isinstance(e, BlockVote) for part in nested for e in walk_expressions(part)):
            return None
        trips: list[Known] = []
        value: Expr = start
        around = {name: e for name, e in known.items() if name not in assigned(s.body)}
        while len(trips) <= MOST_TRIPS:
            going = folded(s.condition, around | {step.name: value})
            if not isinstance(going, Const):
                return None
            if not going.value:
                fits = len(trips) * len(nested) <= MOST_COPIES and self.written <= MOST_STATEMENTS
                return trips if fits else None
            trips.append({step.name: value})
            value = folded(step.value, around | {step.name: value})
            if not isinstance(value, Const):
                return None
        return None


def _forget(known: Known, names: set[str]) -> None:
    for name in names:
        known.pop(name, None)


def unrolled(program: Program, arrays: frozenset[str]) -> Program:
    """The program with constants carried forward and loops over these local arrays written out."""
    return replace(program, body=Unroller(program, arrays).body(program.body, {}, {}))
