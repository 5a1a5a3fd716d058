"""Atomic operations whose order does not matter: what processes did to an array apart, put together.

An array of integers that a kernel touches by one such operation alone, whose old values nobody wants, ends the same
whatever the order; so each process may work on its own copy, and the copies are combined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from refsim.dialect import (
    INTEGERS,
    ArrayType,
    Atomic,
    AtomicAt,
    Dim,
    Effect,
    PointerAdd,
    Program,
    Var,
    walk_expressions,
    walk_statements,
)

Words = Any

_SUM: Callable[[Words, list[Words]], Words] = lambda before, after: before + sum(one - before for one in after)  # noqa: E731
_WAYS: dict[str, Callable[[Words, list[Words]], Words]] = {
    "add": _SUM,
    "sub": _SUM,
    "xor": lambda before, after: reduce(np.bitwise_xor, [one ^ before for one in after], before),
    "and": lambda before, after: reduce(np.bitwise_and, after),
    "or": lambda before, after: reduce(np.bitwise_or, after),
    "max": lambda before, after: reduce(np.maximum, after),
    "min": lambda before, after: reduce(np.minimum, after),
}
_KIN = {"sub": "add"}  # operations that may be mixed


class Combined(NamedTuple):
    """How an array is combined: by an operation, as numbers of a dtype."""

    op: str
    dtype: str

    def together(self, before: Any, after: list[Any]) -> Any:
        """The bytes that all processes together make of those before, from what each made of them on its own."""
        words = [raw.view(self.dtype) for raw in (before, *after)]
        return _WAYS[self.op](words[0], words[1:]).astype(self.dtype, copy=False).view(np.uint8)


def combinable(program: Program) -> dict[str, Combined]:
    """The array parameters that are touched by operations of one kind alone whose order does not matter."""
    uses: Counter[str] = Counter()
    atomics: dict[str, set[Combined]] = {}
    for statement in walk_statements(program.body):
        parts = walk_expressions(statement)
        uses.update(part.name for part in parts if isinstance(part, Var))
        uses.subtract(part.array.name for part in parts if isinstance(part, Dim) and isinstance(part.array, Var))
        for part in parts:
            if not isinstance(part, (Atomic, AtomicAt)):
                continue
            name, dtype = _target(part)
            uses[name] -= 1
            unused = isinstance(statement, Effect) and statement.value is part
            scoped = isinstance(part, AtomicAt) and part.scope == "block"
            fits = unused and not scoped and dtype in INTEGERS and part.op in _WAYS
            way = Combined(_KIN.get(part.op, part.op), dtype) if fits else Combined("", "")
            atomics.setdefault(name, set()).add(way)
    parameters = {name for name, _ in program.parameters}
    found = {}
    for name, ways in atomics.items():
        if name in parameters and not uses[name] and len(ways) == 1:
            (way,) = ways
            if way.op:
                found[name] = way
    return found


def _target(atomic: Atomic | AtomicAt) -> tuple[str, str]:
    """The parameter or variable whose element it changes, if it names one, and the element's dtype."""
    target = atomic.array if isinstance(atomic, Atomic) else atomic.pointer
    while isinstance(target, PointerAdd):
        target = target.pointer
    kind = target.type
    dtype = kind.dtype if isinstance(atomic, Atomic) and isinstance(kind, ArrayType) else str(atomic.type)
    return (target.name if isinstance(target, Var) else ""), str(dtype)
