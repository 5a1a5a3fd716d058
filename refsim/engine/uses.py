"""Which memory a program touches, and in which sizes."""

from __future__ import annotations

from refsim.dialect import (
    ITEM_BYTES,
    ArrayType,
    Assign,
    Atomic,
    AtomicAt,
    ConstArray,
    Effect,
    Expr,
    Field,
    Load,
    LoadAt,
    PointerAdd,
    PointerType,
    Program,
    Rearranged,
    Select,
    SharedAddress,
    SharedPointer,
    Slice,
    Stmt,
    Store,
    StoreAt,
    Type,
    Var,
    walk_expressions,
    walk_statements,
)

ADDRESSED = "<shared address>"  # stands for every array whose address within shared memory was taken


class Uses:
    """Which arrays and pointers a program may read and write, and the smallest access to each, in bytes.

    Variables that hold a view or pointer count as all that were ever assigned to them. `plain` is what other than
    atomic operations touch, `atomic_results` says that what an atomic operation returns is used, `indices` are the
    variables that go into pointer offsets.
    """

    def __init__(self, program: Program) -> None:
        self._origins: dict[str, set[str]] = {}
        self.words: dict[str, int] = {}
        statements = list(walk_statements(program.body))
        for s in statements:
            if isinstance(s, Assign) and isinstance(s.value.type, (ArrayType, PointerType)):
                self._origins.setdefault(s.name, set()).update(roots(s.value))
            for part in walk_expressions(s):
                if isinstance(part, SharedAddress):
                    self._origins.setdefault(ADDRESSED, set()).update(roots(part.pointer))
        dropped = {id(s.value) for s in statements if isinstance(s, Effect)}
        self.atomic_results = False
        written: set[str] = set()
        read: set[str] = set()
        plain: set[str] = set()
        loaded: set[str] = set()
        for s in statements:
            if isinstance(s, Store):
                plain |= self._resolve(s.array)
                written |= self._resolve(s.array)
            elif isinstance(s, StoreAt):
                plain |= self._resolve(s.pointer)
                written |= self._resolve(s.pointer, s.value.type)
            for part in walk_expressions(s):
                if isinstance(part, Load):
                    loaded |= self._resolve(part.array)
                elif isinstance(part, LoadAt):
                    loaded |= self._resolve(part.pointer, part.type)
                elif isinstance(part, (Atomic, AtomicAt)):
                    self.atomic_results |= id(part) not in dropped
                    target = part.array if isinstance(part, Atomic) else part.pointer
                    touched = self._resolve(target, None if isinstance(part, Atomic) else part.type)
                    if isinstance(part, AtomicAt) and part.scope == "block":
                        plain |= touched  # may race with another block's
                    written |= touched
                    read |= touched
        self.written, self.read = frozenset(written), frozenset(read | loaded)
        self.plain = frozenset(plain | loaded)
        self.indices = _index_variables(statements)

    def indexed(self, variable: str) -> Expr | None:
        """The one array that a variable's value is an index of; None if there are several."""
        arrays = {name for pointer in self.indices[variable] for name in self._ends(pointer)}
        return Var(next(iter(arrays)), type="int64") if len(arrays) == 1 else None

    def _ends(self, pointer: str) -> set[str]:
        """The arrays that a pointer variable may point into."""
        seen: set[str] = set()
        todo = [pointer]
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo.extend(self._origins.get(name, ()))
        return {name for name in seen if name not in self._origins}

    def _resolve(self, expression: Expr, access: Type | None = None) -> set[str]:
        seen: set[str] = set()
        todo = list(roots(expression))
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo.extend(self._origins.get(name, ()))
        if access is not None:
            size = ITEM_BYTES[str(access)]
            for name in seen:
                self.words[name] = min(size, self.words.get(name, size))
        return seen


def _index_variables(statements: list[Stmt]) -> dict[str, set[str]]:
    """Variables whose value goes into the offset of a pointer, directly or through others; and those pointers."""
    found: dict[str, set[str]] = {}
    for s in statements:
        for part in walk_expressions(s):
            if isinstance(part, PointerAdd):
                for p in (part.offset, *walk_expressions(part.offset)):
                    if isinstance(p, Var):
                        found.setdefault(p.name, set()).update(roots(part.pointer))
    size = -1
    while size != (size := sum(len(pointers) + 1 for pointers in found.values())):
        for s in statements:
            if isinstance(s, Assign) and s.name in found:
                for part in walk_expressions(s):
                    if isinstance(part, Var):
                        found.setdefault(part.name, set()).update(found[s.name])
    return found


def roots(expression: Expr) -> set[str]:
    """Names of the arrays and pointers that an expression may come from."""
    if isinstance(expression, (Slice, Field, Rearranged)):
        return roots(expression.array)
    if isinstance(expression, PointerAdd):
        return roots(expression.pointer)
    if isinstance(expression, Select):
        return roots(expression.then) | roots(expression.otherwise)
    if isinstance(expression, SharedPointer):
        return {ADDRESSED}
    return {expression.name} if isinstance(expression, (Var, ConstArray)) else set()
