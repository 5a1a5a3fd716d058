"""Which loops can run as machine code, and what one trip of them computes, as a list of operations."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from refsim.dialect import (
    INTEGERS,
    ITEM_BYTES,
    Assign,
    Binary,
    Compare,
    Const,
    ConstArray,
    Convert,
    Dim,
    Expr,
    If,
    Intrinsic,
    Load,
    LoadAt,
    Loop,
    PointerAdd,
    Select,
    Stmt,
    Unary,
    Var,
    assigned_names,
    is_free,
    walk_expressions,
    walk_statements,
)
from refsim.engine.intrinsics import elementary, intrinsic_name
from refsim.engine.liveness import Needs
from refsim.engine.range_tests import range_test

FLOATS = frozenset({"float32", "float64"})
NUMBERS = FLOATS | INTEGERS
HALVES = frozenset({"float16", "bfloat16"})  # only read, and converted
MOST_OPERATIONS, MOST_CALLS = 1500, 60  # more would be compiled for seconds
ORDERS = frozenset({"<", "<=", ">", ">="})
COMPARISONS = ORDERS | {"==", "!="}
EXACT = frozenset({"sqrt", "fabs", "abs"})
CHOICES = frozenset({"fmax", "fmin", "max", "min"})
BITWISE = frozenset({"&", "|", "^"})
CALLED = frozenset({"exp", "exp2", "log", "log2", "log10", "log1p", "expm1"})


@dataclass(frozen=True)
class Operation:
    """One step of a trip: its operands are numbers of earlier ones.

    `kind` is ``constant``, ``counter`` (the loop's variable), ``invariant`` (a variable that the loop does not change),
    ``state`` (what a variable held when the trip began), ``load``, ``call`` (a function of NumPy), or what to do;
    `detail` says which.
    """

    kind: str
    type: str
    operands: tuple[int, ...] = ()
    detail: Any = None


@dataclass(frozen=True)
class Reading:
    """One read of a trip: the number of an array, or a pointer, and its subscripts, linear in the loop's variable."""

    array: int
    index: tuple[Expr, ...]
    dtype: str
    through_pointer: bool


@dataclass
class Plan:
    """A loop that machine code can run.

    Attributes
    ----------
    counter, bound, step, relation
        The loop's variable, and ``counter relation bound`` as its condition, or ``range``, which goes up or down as the
        step does; `step` is added after each trip.
    copies
        Integer variables that hold an expression of the counter, in order; those that are needed after the loop are in
        `integers`.
    operations, readings
        What a trip computes and reads, in order.
    arrays
        What it reads from: arrays and pointers.
    invariants
        Variables that the loop computes with and does not change.
    indices
        Integer variables that subscripts need, and the loop does not change.
    states
        Variables that hold something from trip to trip or after the loop, with the operation that is their value
        at the end of a trip; `carried` are those that a trip needs the old value of.
    guards
        Comparisons of integers that must hold in every lane for a trip to be made.
    types
        Type of every invariant and state.
    """

    counter: str
    counter_type: str
    bound: Expr
    step: Expr
    relation: str
    copies: dict[str, Expr]
    integers: tuple[str, ...]
    operations: tuple[Operation, ...]
    readings: tuple[Reading, ...]
    arrays: tuple[Expr, ...]
    invariants: tuple[str, ...]
    indices: tuple[str, ...]
    states: tuple[tuple[str, int], ...]
    carried: frozenset[str]
    guards: tuple[Compare, ...]
    types: dict[str, str]


def plan_of(loop: Loop, needs: Needs, types: dict[str, Any], indices: Collection[str]) -> Plan | None:
    """How to run a loop as machine code, or None.

    `indices` are the variables that index memory somewhere: an overflow of such a number is reported.
    """
    try:
        return _Planner(loop, needs, types, indices).plan()
    except _Unfit:
        return None


class _Unfit(Exception):
    """The loop does something that machine code does not."""


class _Planner:
    def __init__(self, loop: Loop, needs: Needs, types: dict[str, Any], indices: Collection[str]) -> None:
        self.indexing = indices
        self.loop = loop
        self.needed = needs.out
        self.head = needs.head
        self.types = types
        self.changed = {name for s in walk_statements([loop]) for name in assigned_names(s)}
        self.branches = 0  # around the statement at hand
        self.operations: list[Operation] = []
        self.numbers: dict[Operation, int] = {}
        self.readings: list[Reading] = []
        self.arrays: dict[Expr, int] = {}
        self.values: dict[str, int] = {}
        self.copies: dict[str, Expr] = {}
        self.invariants: dict[str, None] = {}
        self.indices: dict[str, None] = {}
        self.carried: set[str] = set()
        self.guards: list[Compare] = []

    def plan(self) -> Plan:
        loop, condition = self.loop, self.loop.condition
        steps = [s for s in loop.step if isinstance(s, Assign)]
        if len(loop.step) != 1 or len(steps) != 1:
            raise _Unfit
        in_range = range_test(condition) if condition is not None else None
        course = in_range[0] if in_range is not None else condition
        if not isinstance(course, Compare) or course.op not in ORDERS:
            raise _Unfit
        counter = _number_kept(course.left)
        step = steps[0]
        if not isinstance(counter, Var) or step.name != counter.name or counter.name in _assigned(loop.body):
            raise _Unfit
        self.counter = counter.name
        if not self._is_unchanged_number(course.right):
            raise _Unfit
        for s in loop.body:
            self._statement(s)
        states = tuple((n, v) for n, v in self.values.items() if n in self.carried or n in self.needed)
        if not states or any(self.types[n] not in NUMBERS for n, _ in states):
            raise _Unfit
        if any(name not in self.values for name in self.carried):
            raise _Unfit
        if len(self.operations) > MOST_OPERATIONS or sum(o.kind == "call" for o in self.operations) > MOST_CALLS:
            raise _Unfit
        return Plan(
            counter=self.counter,
            counter_type=str(self.types[self.counter]),
            bound=course.right,
            step=self._step(step.value),
            relation="range" if in_range is not None else course.op,
            copies=self.copies,
            integers=tuple(n for n in (*self.copies, self.counter) if n in self.needed or n == self.counter),
            operations=tuple(self.operations),
            readings=tuple(self.readings),
            arrays=tuple(self.arrays),
            invariants=tuple(self.invariants),
            indices=tuple(self.indices),
            states=states,
            carried=frozenset(self.carried),
            guards=tuple(self.guards),
            types={n: str(self.types[n]) for n, _ in states}
            | {str(o.detail): o.type for o in self.operations if o.kind == "invariant"},
        )

    def _step(self, e: Expr) -> Expr:
        e = _number_kept(e)
        if isinstance(e, Binary) and e.op in ("+", "-"):
            left, right = _number_kept(e.left), _number_kept(e.right)
            if isinstance(left, Var) and left.name == self.counter and self._is_unchanged_number(right):
                return right if e.op == "+" else Unary(type=right.type, op="-", value=right)
        raise _Unfit

    def _is_unchanged_number(self, e: Expr) -> bool:
        return is_free(e) and all(
            isinstance(part, (Const, Binary, Convert, Dim)) or (isinstance(part, Var) and part.name not in self.changed)
            for part in walk_expressions(e)
        )

    def _statement(self, s: Stmt) -> None:
        if isinstance(s, If):
            self._branch(s)
            return
        if not isinstance(s, Assign) or s.name in self.copies:
            raise _Unfit
        kind = self.types.get(s.name)
        fresh = s.name not in self.values and s.name not in self.carried and not self.branches
        if kind in INTEGERS and fresh and self._is_linear(s.value):
            self.copies[s.name] = s.value
        elif kind in FLOATS or kind in HALVES or kind == "bool" or (kind in INTEGERS and s.name not in self.indexing):
            self.values[s.name] = self._value(s.value)
        else:
            raise _Unfit

    def _branch(self, s: If) -> None:
        """Both sides for all lanes, and of each variable the value of the side that a lane takes.

        A branch that reads memory is taken by all lanes or not at all: machine code makes the trips before the first in
        which one does not take it.
        """
        if _reads(s.then) or _reads(s.otherwise):
            if self.branches or _reads(s.otherwise):
                raise _Unfit
            self._guard(s.condition)
            for inner in s.then:
                self._statement(inner)
            return
        condition = self._value(s.condition)
        names = [n for n in dict.fromkeys((*_assigned(s.then), *_assigned(s.otherwise))) if n in self.types]
        before = {name: self._held(name) for name in names}
        start = self.values
        sides = []
        self.branches += 1
        for side in (s.then, s.otherwise):
            self.values = dict(start)
            for inner in side:
                self._statement(inner)
            sides.append(self.values)
        self.branches -= 1
        self.values = start
        for name in names:
            known = [v for v in (side.get(name, before[name]) for side in sides) if v is not None]
            if len(set(known)) == 1:
                self.values[name] = known[0]
            else:
                self.values[name] = self._add("select", str(self.types[name]), (condition, *known))

    def _guard(self, e: Expr) -> None:
        if isinstance(e, Binary) and e.op == "and":
            self._guard(e.left)
            self._guard(e.right)
        elif isinstance(e, Compare) and e.op in ORDERS and e.left.type in INTEGERS:
            self._subscript(e.left)
            self._subscript(e.right)
            self.guards.append(e)
        else:
            raise _Unfit

    def _held(self, name: str) -> int | None:
        """What a variable holds here; None if nobody asks for it."""
        if name in self.values or name in self.head:
            return self._variable(name, str(self.types[name]))
        return None

    def _is_linear(self, e: Expr) -> bool:
        known = dict(self.indices)
        try:
            self._subscript(e)
        except _Unfit:
            self.indices = known
            return False
        return True

    # ---------------------------------------------------------------------------------------- subscripts

    def _subscript(self, e: Expr) -> bool:
        """Check that an integer is linear in the counter; True if it depends on it."""
        if isinstance(e, Const):
            return False
        if isinstance(e, Var):
            if e.name == self.counter:
                return True
            if e.name in self.copies:
                return self._subscript(self.copies[e.name])
            if e.name in self.changed:
                raise _Unfit
            self.indices[e.name] = None
            return False
        if isinstance(e, Convert) and e.type in INTEGERS and e.value.type in INTEGERS:
            return self._subscript(e.value)
        if isinstance(e, Binary) and e.op in ("+", "-", "*") and e.type in INTEGERS:
            left, right = self._subscript(e.left), self._subscript(e.right)
            if e.op == "*" and left and right:
                raise _Unfit
            return left or right
        raise _Unfit

    def _reading(self, e: Load | LoadAt) -> int:
        dtype = str(e.type)
        if self.branches or (dtype not in NUMBERS and dtype not in HALVES):
            raise _Unfit  # in a branch, other lanes' subscripts may lie anywhere
        if isinstance(e, Load):
            array, index, through = e.array, e.index, False
        else:
            if e.volatile:
                raise _Unfit
            array, index, through = self._pointer(e.pointer, dtype)
        if not isinstance(array, (Var, ConstArray)) or array.name in self.changed:
            raise _Unfit
        for i in index:
            self._subscript(i)
        number = self.arrays.setdefault(array, len(self.arrays))
        self.readings.append(Reading(number, tuple(index), dtype, through))
        return self._add("load", dtype, (), len(self.readings) - 1)

    def _pointer(self, e: Expr, dtype: str) -> tuple[Expr, tuple[Expr, ...], bool]:
        """A pointer as a variable and an index in elements."""
        total: Expr = Const(type="int64", value=0)
        while isinstance(e, PointerAdd):
            index = _in_elements(e.offset, ITEM_BYTES[dtype])
            total = Binary(type="int64", op="+", left=total, right=index)
            e = e.pointer
        return e, (total,), True

    # -------------------------------------------------------------------------------------------- values

    def _add(self, kind: str, type_: str, operands: tuple[int, ...] = (), detail: Any = None) -> int:
        operation = Operation(kind, type_, operands, detail)
        if operation not in self.numbers:
            self.numbers[operation] = len(self.operations)
            self.operations.append(operation)
        return self.numbers[operation]

    def _value(self, e: Expr) -> int:
        kind = str(e.type)
        if isinstance(e, Const) and kind in NUMBERS:
            return self._add("constant", kind, (), _bits(e.value, kind))
        if isinstance(e, Var):
            return self._variable(e.name, kind)
        if isinstance(e, (Load, LoadAt)):
            return self._reading(e)
        if isinstance(e, Binary) and self._is_arithmetic(e, kind):
            return self._add(e.op, kind, (self._value(e.left), self._value(e.right)))
        if isinstance(e, Binary) and kind == "bool" and e.op in ("and", "or"):
            return self._add(e.op, kind, (self._value(e.left), self._value(e.right)))
        if isinstance(e, Unary) and kind in {"-": NUMBERS, "~": INTEGERS, "not": {"bool"}}.get(e.op, ()):
            return self._add("negate" if e.op == "-" else "not", kind, (self._value(e.value),))
        if isinstance(e, Compare) and e.op in COMPARISONS and e.left.type in NUMBERS:
            return self._add("compare", "bool", (self._value(e.left), self._value(e.right)), e.op)
        if isinstance(e, Select) and kind in NUMBERS:
            parts = (self._value(part) for part in (e.condition, e.then, e.otherwise))
            return self._add("select", kind, tuple(parts))
        if isinstance(e, Convert) and kind in FLOATS and e.value.type in HALVES:
            wide = self._add("widen", "float32", (self._value(e.value),), str(e.value.type))
            return wide if kind == "float32" else self._add("convert", kind, (wide,))
        if isinstance(e, Convert) and kind in FLOATS and e.value.type in FLOATS:
            inner = self._value(e.value)
            return inner if e.value.type == kind else self._add("convert", kind, (inner,))
        if isinstance(e, Convert) and kind in NUMBERS and e.value.type in INTEGERS | {"bool"}:
            inner = self._value(e.value)
            return inner if e.value.type == kind else self._add("convert", kind, (inner,))
        if isinstance(e, Intrinsic) and kind in FLOATS and e.operand == kind:
            return self._intrinsic(e, kind)
        if isinstance(e, Intrinsic) and kind in INTEGERS and e.operand == kind and len(e.args) == 2:
            return self._integer_choice(e, kind)
        raise _Unfit

    @staticmethod
    def _is_arithmetic(e: Binary, kind: str) -> bool:
        if e.op in ("+", "-", "*"):
            return kind in NUMBERS
        if e.op in ("<<", ">>"):
            amount = _number_kept(e.right)
            return kind in INTEGERS and isinstance(amount, Const) and 0 <= amount.value < 8 * ITEM_BYTES[kind]
        return kind in FLOATS if e.op == "/" else kind in INTEGERS and e.op in BITWISE

    def _variable(self, name: str, kind: str) -> int:
        if name in self.values:
            return self.values[name]
        if name == self.counter:
            return self._add("counter", kind)
        if name in self.copies:
            return self._value(self.copies[name])
        if kind not in NUMBERS:
            raise _Unfit
        if name in self.changed:
            self.carried.add(name)
            return self._add("state", kind, (), name)
        self.invariants[name] = None
        return self._add("invariant", kind, (), name)

    def _integer_choice(self, e: Intrinsic, kind: str) -> int:
        if e.name not in ("min", "max"):
            raise _Unfit
        return self._add(e.name, kind, tuple(self._value(a) for a in e.args))

    def _intrinsic(self, e: Intrinsic, kind: str) -> int:
        base, _, last = e.name.rpartition(".")
        name = f"f{base}" if last == "skips_nan" else intrinsic_name(e.name)
        if name in EXACT and len(e.args) == 1:
            return self._add("sqrt" if name == "sqrt" else "fabs", kind, (self._value(e.args[0]),))
        if name in CHOICES and len(e.args) == 2:
            return self._add(name, kind, tuple(self._value(a) for a in e.args))
        if name == "fma" and len(e.args) == 3:
            return self._add("fma", kind, tuple(self._value(a) for a in e.args))
        if name in CALLED and len(e.args) == 1 and name not in elementary.NATIVE_FLOAT32:
            inner = self._value(e.args[0])
            wide = self._add("copy" if kind == "float64" else "convert", "float64", (inner,))
            result = self._add("call", "float64", (wide,), name)
            return result if kind == "float64" else self._add("convert", kind, (result,))
        raise _Unfit


def _reads(body: list[Stmt]) -> bool:
    """True if statements read memory."""
    return any(isinstance(part, (Load, LoadAt)) for s in walk_statements(body) for part in walk_expressions(s))


def _assigned(body: list[Stmt]) -> list[str]:
    return [name for s in walk_statements(body) for name in assigned_names(s)]


def _in_elements(offset: Expr, size: int) -> Expr:
    """A byte offset in elements, equal where no part of it overflows."""
    if isinstance(offset, Const) and offset.value % size == 0:
        return Const(type="int64", value=offset.value // size)
    if isinstance(offset, Binary) and offset.type == "int64":
        if offset.op in ("+", "-"):
            left, right = _in_elements(offset.left, size), _in_elements(offset.right, size)
            return Binary(type="int64", op=offset.op, left=left, right=right)
        for index, factor in ((offset.left, offset.right), (offset.right, offset.left)):
            if offset.op == "*" and isinstance(factor, Const) and factor.value % size == 0:
                number = Const(type="int64", value=factor.value // size)
                return Binary(type="int64", op="*", left=index, right=number)
    raise _Unfit


def _number_kept(e: Expr) -> Expr:
    while isinstance(e, Convert) and e.type in INTEGERS and e.value.type in INTEGERS:
        e = e.value
    return e


def _bits(value: Any, kind: str) -> bytes:
    """A constant told apart by its bits: -0.0 is not 0.0."""
    return bytes(np.dtype(kind).type(value).tobytes())
