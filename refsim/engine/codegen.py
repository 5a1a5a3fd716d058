"""Dialect to lane code: one Python function that runs a program for all lanes of a set.

In the generated function ``S`` is the active set and ``B`` the batch; a program's variables become Python
variables holding lane values. A branch splits ``S``, cuts the variables it needs to each side, runs each side
unmasked and joins the results; a break sets its lanes and values aside until the labelled statement ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from refsim.dialect import (
    FLOATS,
    INTEGERS,
    ITEM_BYTES,
    Align,
    ArrayType,
    Assert,
    Assign,
    Atomic,
    AtomicAt,
    Barrier,
    Binary,
    Bitcast,
    Block,
    BlockVote,
    Break,
    Compare,
    Const,
    ConstArray,
    Convert,
    Dim,
    Effect,
    Expr,
    Fence,
    If,
    Intrinsic,
    Load,
    LoadAt,
    Loop,
    NullPointer,
    Place,
    PointerAdd,
    PointerCompare,
    PointerDifference,
    PointerType,
    Print,
    Program,
    Select,
    Slice,
    SliceItem,
    Stmt,
    Store,
    StoreAt,
    Type,
    Unary,
    Var,
    Warp,
    WarpBarrier,
    walk_expressions,
    walk_statements,
)
from refsim.engine import intrinsics, pointers
from refsim.engine.joins import merge, rejoin
from refsim.engine.liveness import Liveness, Names, Needs, variables
from refsim.engine.memory import bitcast, lane_dtype
from refsim.errors import UnsupportedError


@dataclass(frozen=True)
class Site:
    """One access or synchronisation in the source: what findings and shadows refer to by number."""

    place: Place
    action: str
    noun: str
    array: str | None = None
    atomic: bool = False
    dtype: str | None = None


@dataclass
class LaneCode:
    """A compiled program: the function, its source, and the sites it refers to by number."""

    program: Program
    source: str
    function: Callable[..., None]
    sites: list[Site]
    written: frozenset[str]
    read: frozenset[str]
    words: dict[str, int]
    has_fence: bool
    irregular: set[tuple[Any, ...]] = field(default_factory=set)


def select(condition: Any, then: Any, otherwise: Any) -> Any:
    """Lane-wise choice."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, then, otherwise)
    return then if condition else otherwise


def select_uint64(condition: Any, then: Any, otherwise: Any) -> Any:
    """`select` for uint64, whose Python scalars may not fit int64."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, np.asarray(then, np.uint64), np.asarray(otherwise, np.uint64))
    return then if condition else otherwise


def logical_not(value: Any) -> Any:
    """Lane-wise negation of a bool."""
    return ~value if isinstance(value, np.ndarray) else not value


def wrap_int64(value: Any) -> Any:
    """Wrap a uniform int64 that Python computed without limit; lane arrays wrapped already."""
    if type(value) is int and not -0x8000000000000000 <= value < 0x8000000000000000:
        return ((value + 0x8000000000000000) & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000
    return value


def implementation(name: str, operand: str, place: Place | None) -> Callable[..., Any]:
    """Lane implementation of a function by the front end's name; an error with its place if there is none."""
    try:
        return intrinsics.function(name, operand)
    except KeyError as error:
        raise UnsupportedError(f"{name} on {operand} is not supported yet", place) from error


def unite(parent: Any, then: Any, then_end: Any, other: Any, other_end: Any, dtypes: Any) -> Any:
    """Set and values after a branch that threads may have left: each end is (set or None, values)."""
    if then_end[0] is None:
        return other_end
    if other_end[0] is None:
        return then_end
    if then_end[0] is then and other_end[0] is other:
        return parent, rejoin(parent, then, then_end[1], other, other_end[1], dtypes)
    return merge(parent, [then_end, other_end], dtypes)


def array_name(expression: Expr) -> str:
    """How the source calls an array."""
    if isinstance(expression, (Var, ConstArray)):
        return expression.name.split("@")[0]
    if isinstance(expression, Slice):
        return array_name(expression.array) + "[…]"
    if isinstance(expression, PointerAdd):
        return array_name(expression.pointer)
    return "array"


class CodeGenerator:
    """Writes the lane code of one program."""

    def __init__(self, program: Program, types: dict[str, Type]) -> None:
        self.program = program
        self.types = types
        self.liveness = Liveness(program)
        self.lines: list[str] = []
        self.depth = 1
        self.counter = 0
        self.sites: list[Site] = []
        self.exits: dict[str, str] = {}
        self.place: Place | None = None
        self.names: dict[str, str] = {}
        self.taken: set[str] = set()
        self.constants: dict[Any, str] = {}
        self.namespace: dict[str, Any] = {
            "select": select,
            "select_uint64": select_uint64,
            "logical_not": logical_not,
            "wrap_int64": wrap_int64,
            "rejoin": rejoin,
            "unite": unite,
            "load_at": pointers.load,
            "store_at": pointers.store,
            "atomic_at": pointers.atomic,
            "align_at": pointers.align,
            "pointer_difference": pointers.difference,
            "pointer_compare": pointers.compare,
            "null_pointer": pointers.NULL,
        }
        assigned = {s.name for s in walk_statements(program.body) if isinstance(s, Assign)}
        self.fixed = {name for name, _ in program.parameters if name not in assigned}
        self.fixed |= {allocation.name for allocation in program.allocations}

    # ------------------------------------------------------------------------------------------ output

    def generate(self) -> LaneCode:
        """Produce the function."""
        program = self.program
        parameters = ", ".join(self.name(name) for name, kind in program.parameters if kind is not None)
        for name in sorted(self._indices_used()):
            self.emit(f"{self.name(name)} = B.index_values({name!r})")
        uses = Uses(program)
        for allocation in program.allocations:
            held = self.constant(allocation)
            word = uses.words.get(allocation.name, ITEM_BYTES[allocation.dtype])
            if allocation.dynamic and allocation.raw:
                word = min(uses.words.get(a.name, word) for a in program.allocations if a.dynamic)
            self.emit(f"{self.name(allocation.name)} = B.allocate({held}, {word})")
        for name, kind in self.types.items():
            if name not in self.fixed and name not in dict(program.parameters):
                self.emit(f"{self.name(name)} = {self._zero(kind)}")
        self.block(program.body)
        if not self.lines:
            self.emit("pass")
        source = f"def lane_code(B, S, {parameters}):\n" + "\n".join(self.lines) + "\n"
        exec(compile(source, f"<lane code of {program.name}>", "exec"), self.namespace)
        has_fence = any(isinstance(s, Fence) and s.scope != "block" for s in walk_statements(program.body))
        function = self.namespace["lane_code"]
        return LaneCode(program, source, function, self.sites, uses.written, uses.read, uses.words, has_fence)

    def _indices_used(self) -> set[str]:
        used = {
            part.name
            for s in walk_statements(self.program.body)
            for part in walk_expressions(s)
            if isinstance(part, Var)
        }
        return {
            name
            for name in used
            if "." in name and name.split(".")[0] in ("threadIdx", "blockIdx", "blockDim", "gridDim")
        } | (used & {"laneid"})

    def _zero(self, kind: Type) -> str:
        if isinstance(kind, (ArrayType, PointerType)):
            return "None"
        if kind == "bool":
            return "False"
        return self.constant(np.dtype(kind).type(0)) if kind in FLOATS else "0"

    def emit(self, line: str) -> None:
        """Append one line at the current depth."""
        self.lines.append(" " * self.depth + line)

    def fresh(self, prefix: str = "t") -> str:
        """A new temporary name."""
        self.counter += 1
        return f"{prefix}{self.counter}"

    def name(self, variable: str) -> str:
        """Python name of a program's variable."""
        if variable not in self.names:
            base = "v_" + re.sub(r"\W", "_", variable)
            self.names[variable] = base if base not in self.taken else f"{base}_{len(self.taken)}"
            self.taken.add(self.names[variable])
        return self.names[variable]

    def constant(self, value: Any) -> str:
        """Name of a constant in the function's globals."""
        key = (type(value), value.tobytes() if isinstance(value, np.generic) else value)
        if key not in self.constants:
            self.constants[key] = f"c_{len(self.constants)}"
            self.namespace[self.constants[key]] = value
        return self.constants[key]

    def site(self, place: Place, action: str, noun: str, array: Expr | None = None, atomic: bool = False) -> int:
        """Number of a new site."""
        kind: str | None = None
        if array is not None and isinstance(array.type, ArrayType):
            kind = array.type.dtype
        elif array is not None and isinstance(array.type, PointerType):
            kind = array.type.pointee
        self.sites.append(Site(place, action, noun, array_name(array) if array is not None else None, atomic, kind))
        return len(self.sites) - 1

    def lanes(self, names: Names) -> list[str]:
        """The variables among `names` whose values belong to a set and must be cut and joined."""
        return sorted(name for name in names if name not in self.fixed and not self._is_uniform(name))

    @staticmethod
    def _is_uniform(name: str) -> bool:
        return name.startswith(("blockDim.", "gridDim."))

    def tuple_of(self, names: list[str]) -> str:
        """Source of a tuple of variables."""
        return "(" + "".join(f"{self.name(n)}, " for n in names) + ")"

    def dtypes_of(self, names: list[str]) -> str:
        """Constant tuple with the lane type of each variable; None for array views."""
        kinds = [self._type(n) for n in names]
        return self.constant(tuple(None if isinstance(k, (ArrayType, PointerType)) else lane_dtype(k) for k in kinds))

    def _type(self, name: str) -> Type:
        if name in self.types:
            return self.types[name]
        parameters = dict(self.program.parameters)
        return parameters.get(name) or "int64"

    # -------------------------------------------------------------------------------------- statements

    def block(self, body: list[Stmt]) -> None:
        """Statements in order; after one that all threads may leave, the rest is guarded."""
        depth = self.depth
        for number, statement in enumerate(body):
            self.statement(statement)
            if isinstance(statement, Break):
                break
            needs = self.liveness.needs.get(id(statement))
            if needs is not None and needs.lossy and number + 1 < len(body):
                self.emit("if S is not None:")
                self.depth += 1
        self.depth = depth

    def suite(self, body: list[Stmt]) -> None:
        """Statements of a nested block, one level deeper."""
        self.depth += 1
        start = len(self.lines)
        self.block(body)
        if len(self.lines) == start:
            self.emit("pass")
        self.depth -= 1

    def statement(self, statement: Stmt) -> None:
        """Emit one statement."""
        self.place = getattr(statement, "place", self.place)
        getattr(self, "_" + type(statement).__name__.lower())(statement)

    def _assign(self, s: Assign) -> None:
        self.emit(f"{self.name(s.name)} = {self.expression(s.value)}")

    def _store(self, s: Store) -> None:
        array = self.expression(s.array)
        index = [self.expression(i) for i in s.index]
        value = self.expression(s.value)
        method = f"store{len(index)}" if len(index) in (1, 2) else "store"
        site = self.site(s.place, "write of", "write", s.array)
        self.emit(f"{array}.{method}(S, {site}, {value}, {', '.join(index)})")

    def _storeat(self, s: StoreAt) -> None:
        pointer = self.expression(s.pointer)
        value = self.expression(s.value)
        site = self.site(s.place, "write of", "write", s.pointer)
        self.emit(f"store_at(S, {site}, {pointer}, {str(s.value.type)!r}, {value})")

    def _align(self, s: Align) -> None:
        site = self.site(s.place, "access to", "access", s.pointer)
        self.emit(f"align_at(S, {site}, {self.expression(s.pointer)}, {s.bytes})")

    def _effect(self, s: Effect) -> None:
        if isinstance(s.value, Atomic):
            self._atomic_call(s.value, used=False)
        elif isinstance(s.value, AtomicAt):
            self._atomic_at_call(s.value, used=False)
        else:
            self.expression(s.value)

    def _barrier(self, s: Barrier) -> None:
        self.emit(f"B.barrier(S, {self.site(s.place, 'barrier', 'barrier')})")

    def _warpbarrier(self, s: WarpBarrier) -> None:
        mask = self.expression(s.mask)
        self.emit(f"B.warp_barrier(S, {self.site(s.place, 'warp barrier', 'warp barrier')}, {mask})")

    def _fence(self, s: Fence) -> None:
        self.emit(f"B.fence(S, {self.site(s.place, 'fence', 'fence')}, {s.scope!r})")

    def _print(self, s: Print) -> None:
        parts = "".join((repr(p) if isinstance(p, str) else self.expression(p)) + ", " for p in s.parts)
        self.emit(f"B.print(S, ({parts}), {s.printf})")

    def _assert(self, s: Assert) -> None:
        condition = self.expression(s.condition)
        site = self.site(s.place, "assertion", "assertion")
        self.emit(f"B.check_assertion(S, {site}, {condition}, {s.message!r})")

    def _break(self, s: Break) -> None:
        if s.label == self.program.exit_label:
            self.emit("B.exit(S)")
        else:
            live = self.lanes(self.liveness.at_exit[s.label])
            self.emit(f"{self.exits[s.label]}.append((S, {self.tuple_of(live)}))")
        self.emit("S = None")

    def _if(self, s: If) -> None:
        needs = self.liveness.needs[id(s)]
        condition = self.expression(s.condition)
        yes, no, parent, kept, end = (self.fresh(p) for p in ("y", "n", "p", "k", "r"))
        cut_then, cut_other = self.lanes(needs.then), self.lanes(needs.otherwise)
        merged = self.lanes(needs.out)
        saved = sorted(set(cut_then) | set(cut_other) | set(merged))
        # a loop inside a side that all threads take cuts variables too
        nested = not needs.lossy and any(isinstance(part, (If, Loop, Block)) for part in (*s.then, *s.otherwise))
        self.emit(f"{parent} = S")
        if nested:
            self.emit(f"{kept} = {self.tuple_of(saved)}")
        self.emit(f"{yes}, {no} = S.split({condition})")
        self.emit(f"if {yes} is not None:")
        self.depth += 1
        self.emit(f"if {no} is not None:")
        self.depth += 1
        if not nested:
            self.emit(f"{kept} = {self.tuple_of(saved)}")
        self._cut(yes, cut_then)
        self.depth -= 1
        self.depth -= 1
        self.suite(s.then)
        self.depth += 1
        self.emit(f"if {no} is not None:")
        self.emit(f" {end} = (S, {self.tuple_of(merged)})")
        self.depth -= 1
        self.emit(f"if {no} is not None:")
        self.depth += 1
        self.emit(f"if {yes} is not None:")
        self.depth += 1
        if saved:
            self.emit(f"{self.tuple_of(saved)} = {kept}")
        self._cut(no, cut_other)
        self.depth -= 1
        self.depth -= 1
        self.suite(s.otherwise)
        self.depth += 1
        self.emit(f"if {yes} is not None:")
        self.depth += 1
        dtypes, values = self.dtypes_of(merged), self.tuple_of(merged)
        if needs.lossy:
            joined = f"unite({parent}, {yes}, {end}, {no}, (S, {values}), {dtypes})"
            self.emit(f"S, {values if merged else '_'} = {joined}")
        else:
            if merged:
                self.emit(f"{values} = rejoin({parent}, {yes}, {end}[1], {no}, {values}, {dtypes})")
            if nested:
                if not merged:
                    self.emit("pass")
                self.depth -= 2
            for position, name in enumerate(saved):
                if name not in merged:
                    self.emit(f"{self.name(name)} = {kept}[{position}]")
            self.emit(f"S = {parent}")
            if nested:
                return
        self.depth -= 2

    def _cut(self, lanes: str, names: list[str]) -> None:
        for name in names:
            self.emit(f"{self.name(name)} = {lanes}.cut({self.name(name)})")
        self.emit(f"S = {lanes}")

    def _block(self, s: Block) -> None:
        needs = self.liveness.needs[id(s)]
        exits, parent = self.fresh("b"), self.fresh("p")
        self.exits[s.label] = exits
        through = self._save_through(needs, needs.head)
        self.emit(f"{exits} = []")
        self.emit(f"{parent} = S")
        depth = self.depth
        self.block(s.body)
        self.depth = depth
        self._join_exits(exits, parent, needs, through)

    def _save_through(self, needs: Needs, inside: Names) -> tuple[str, list[str]]:
        """Keep variables that a statement may cut but does not change; returns where, and which."""
        names = [] if needs.lossy else self.lanes((needs.after - needs.out) & inside)
        kept = self.fresh("k")
        if names:
            self.emit(f"{kept} = {self.tuple_of(names)}")
        return kept, names

    def _join_exits(self, exits: str, parent: str, needs: Needs, through: tuple[str, list[str]]) -> None:
        live = self.lanes(needs.out)
        values = self.tuple_of(live)
        self.emit(f"if {exits}:")
        self.emit(f" if S is not None: {exits}.append((S, {values}))")
        self.emit(f" S, {values if live else '_'} = B.leave({parent}, {exits}, {self.dtypes_of(live)})")
        kept, names = through
        if names:
            self.emit(f"{self.tuple_of(names)} = {kept}")

    def _loop(self, s: Loop) -> None:
        needs = self.liveness.needs[id(s)]
        exits, parent = self.fresh("b"), self.fresh("p")
        self.exits[s.label] = exits
        live = self.lanes(needs.out)
        head = self.lanes(needs.head)
        through = self._save_through(needs, needs.head)
        watched = self._watched(s)
        self.emit(f"{exits} = []")
        self.emit(f"{parent} = S")
        if watched is not None:
            trips, before = self.fresh("trips"), self.fresh("before")
            self.emit(f"{trips} = 0")
        self.emit("while True:")
        self.depth += 1
        if s.condition is not None:
            test, yes, no = self.fresh(), self.fresh("y"), self.fresh("n")
            self.emit(f"{test} = {self.expression(s.condition)}")
            self.emit(f"if {test} is not True:")
            self.depth += 1
            self.emit(f"if {test} is False: break")
            self.emit(f"{yes}, {no} = S.split({test})")
            self.emit(f"if {yes} is None: break")
            self.emit(f"if {no} is not None:")
            self.depth += 1
            cut = "".join(f"{no}.cut({self.name(n)}), " for n in live)
            self.emit(f"{exits}.append(({no}, ({cut})))")
            self._cut(yes, head)
            self.depth -= 2
        self.block(s.body)
        if leaves_body(s.body):
            self.emit("if S is None: break")
        self.block(s.step)
        if watched is not None:
            site = self.site(s.place, "loop", "loop")
            now = self.tuple_of(watched)
            self.emit(f"{trips} += 1")
            self.emit(f"if not {trips} & 1023: {before} = (S, B.run.fingerprint(B), {now})")
            self.emit(f"elif {trips} & 1023 == 1 and {trips} > 1: B.looped(S, {before}, {now}, {site})")
        self.depth -= 1
        self._join_exits(exits, parent, needs, through)

    def _watched(self, s: Loop) -> list[str] | None:
        """Variables on which a ``while`` loop's course depends; None for counted loops, which end."""
        if s.step:
            return None
        relevant: set[str] = set() if s.condition is None else set(_own_variables(s.condition))
        pure: list[Assign] = []
        for statement in walk_statements(s.body):
            if isinstance(statement, Assign):
                pure.append(statement)
                for part in walk_expressions(statement):
                    if isinstance(part, (Atomic, Load, Warp, BlockVote)):
                        relevant |= variables(part)
            else:
                relevant |= variables(statement)
        size = -1
        while size != len(relevant):
            size = len(relevant)
            for statement in pure:
                if statement.name in relevant:
                    relevant |= variables(statement)
        changed = {statement.name for statement in pure}
        return sorted(relevant & changed)

    # ------------------------------------------------------------------------------------- expressions

    def expression(self, e: Expr) -> str:
        """Source of an expression; accesses and effects are emitted before it, in order."""
        return str(getattr(self, "_e_" + type(e).__name__.lower())(e))

    def _e_const(self, e: Const) -> str:
        if e.type == "bool":
            return str(bool(e.value))
        if e.type in INTEGERS:
            return f"({int(e.value)})" if int(e.value) < 0 else str(int(e.value))
        return self.constant(np.dtype(str(e.type)).type(e.value))

    def _e_var(self, e: Var) -> str:
        return self.name(e.name)

    def _e_convert(self, e: Convert) -> str:
        source, target = str(e.value.type), str(e.type)
        inner = self.expression(e.value)
        if source == target or (source in INTEGERS and target in INTEGERS and _fits(source, target)):
            return inner
        name = f"from_{source}_to_{target}"
        self.namespace[name] = intrinsics.converter(source, target)
        return f"{name}({inner})"

    def _e_unary(self, e: Unary) -> str:
        inner = self.expression(e.value)
        if e.op == "not":
            return f"logical_not({inner})"
        if e.op == "-" and e.type in INTEGERS:
            return self._wrapped(f"-{inner}", str(e.type), 64)
        return (
            f"({e.op}{inner})"
            if e.type in FLOATS or e.op == "+"
            else self._wrapped(f"~{inner}", str(e.type), 64 if e.type == "uint64" else 1)
        )

    def _wrapped(self, source: str, kind: str, bits: int) -> str:
        """Wrap an integer result to its type where it may have left it."""
        if bits < WRAP_FREE.get(kind, 0):
            return f"({source})"
        if kind == "int64":
            return f"wrap_int64({source})"
        name = f"wrap_{kind}"
        self.namespace[name] = intrinsics.wrapper(kind)
        return f"{name}({source})"

    def _e_binary(self, e: Binary) -> str:
        left, right = self.expression(e.left), self.expression(e.right)
        kind = str(e.type)
        if e.op in ("and", "or"):
            return f"({left} {'&' if e.op == 'and' else '|'} {right})"
        if kind in FLOATS and e.op in ("+", "-", "*", "/"):
            return f"({left} {e.op} {right})"
        if kind == "bool" or e.op in ("&", "|", "^"):
            return f"({left} {e.op} {right})"
        if e.op in ("+", "-", "*"):
            return self._wrapped(f"{left} {e.op} {right}", kind, bit_width(e))
        if (
            e.op in ("//", "%")
            and kind in INTEGERS
            and isinstance(e.right, Const)
            and e.right.value > 0
            and kind != "uint64"
        ):
            power = int(e.right.value)
            if power & (power - 1) == 0:
                return f"({left} >> {power.bit_length() - 1})" if e.op == "//" else f"({left} & {power - 1})"
            return f"({left} {e.op} {power})"
        name = f"{BINARY_NAMES[e.op]}_{kind}"
        self.namespace[name] = intrinsics.binary(e.op, kind)
        return f"{name}({left}, {right})"

    def _e_compare(self, e: Compare) -> str:
        return f"({self.expression(e.left)} {e.op} {self.expression(e.right)})"

    def _e_select(self, e: Select) -> str:
        parts = ", ".join(self.expression(part) for part in (e.condition, e.then, e.otherwise))
        return f"{'select_uint64' if e.type == 'uint64' else 'select'}({parts})"

    def _e_intrinsic(self, e: Intrinsic) -> str:
        name = f"{e.name.replace('.', '_')}_{e.operand}"
        self.namespace[name] = implementation(e.name, e.operand, self.place)
        return f"{name}({', '.join(self.expression(a) for a in e.args)})"

    def _e_load(self, e: Load) -> str:
        array = self.expression(e.array)
        index = [self.expression(i) for i in e.index]
        method = f"load{len(index)}" if len(index) in (1, 2) else "load"
        result = self.fresh()
        site = self.site(e.place, "read of", "read", e.array)
        self.emit(f"{result} = {array}.{method}(S, {site}, {', '.join(index)})")
        return result

    def _e_slice(self, e: Slice) -> str:
        array = self.expression(e.array)
        items = []
        for item in e.items:
            if isinstance(item, SliceItem):
                parts = ("None" if p is None else self.expression(p) for p in (item.start, item.stop, item.step))
                items.append(f"({', '.join(parts)})")
            else:
                items.append(self.expression(item))
        result = self.fresh()
        site = self.site(e.place, "slice of", "slice", e.array)
        self.emit(f"{result} = {array}.slice(S, {site}, ({', '.join(items)},))")
        return result

    def _e_dim(self, e: Dim) -> str:
        return f"{self.expression(e.array)}.shape[{e.axis}]"

    def _e_constarray(self, e: ConstArray) -> str:
        return f"B.run.constants[{e.name!r}]"

    def _e_atomic(self, e: Atomic) -> str:
        return self._atomic_call(e, used=True)

    def _atomic_call(self, e: Atomic, used: bool) -> str:
        array = self.expression(e.array)
        index = ", ".join(self.expression(i) for i in e.index)
        args = "".join(self.expression(a) + ", " for a in e.args)
        result = self.fresh()
        site = self.site(e.place, f"atomic {e.op} on", f"atomic {e.op}", e.array, atomic=True)
        self.emit(f"{result} = {array}.atomic(S, {site}, {e.op!r}, {used}, ({args}), {index})")
        return result

    def _e_pointeradd(self, e: PointerAdd) -> str:
        return f"{self.expression(e.pointer)}.add({self.expression(e.offset)})"

    def _e_pointerdifference(self, e: PointerDifference) -> str:
        return f"pointer_difference({self.expression(e.left)}, {self.expression(e.right)})"

    def _e_pointercompare(self, e: PointerCompare) -> str:
        return f"pointer_compare({e.op!r}, {self.expression(e.left)}, {self.expression(e.right)})"

    def _e_nullpointer(self, e: NullPointer) -> str:
        return "null_pointer"

    def _e_loadat(self, e: LoadAt) -> str:
        pointer = self.expression(e.pointer)
        result = self.fresh()
        site = self.site(e.place, "read of", "read", e.pointer)
        self.emit(f"{result} = load_at(S, {site}, {pointer}, {str(e.type)!r})")
        return result

    def _e_bitcast(self, e: Bitcast) -> str:
        source, target = str(e.value.type), str(e.type)
        name = f"bits_of_{source}_as_{target}"
        self.namespace[name] = bitcast(source, target)
        return f"{name}({self.expression(e.value)})"

    def _e_atomicat(self, e: AtomicAt) -> str:
        return self._atomic_at_call(e, used=True)

    def _atomic_at_call(self, e: AtomicAt, used: bool) -> str:
        pointer = self.expression(e.pointer)
        args = "".join(self.expression(a) + ", " for a in e.args)
        result = self.fresh()
        site = self.site(e.place, f"atomic {e.op} on", f"atomic {e.op}", e.pointer, atomic=True)
        self.emit(f"{result} = atomic_at(S, {site}, {pointer}, {str(e.type)!r}, {e.op!r}, ({args}), {used})")
        return result

    def _e_warp(self, e: Warp) -> str:
        args = "".join(self.expression(a) + ", " for a in e.args)
        kind = str(e.args[1].type) if len(e.args) > 1 else "int64"
        result = self.fresh()
        site = self.site(e.place, e.op, e.op)
        self.emit(f"{result} = B.warp(S, {site}, {e.op!r}, ({args}), {kind!r})")
        return self._wrapped(result, "int32", 32) if e.type == "int32" and not e.op.startswith("shfl") else result

    def _e_blockvote(self, e: BlockVote) -> str:
        predicate = self.expression(e.predicate)
        result = self.fresh()
        site = self.site(e.place, "barrier", "barrier")
        self.emit(f"{result} = B.block_vote(S, {site}, {e.op!r}, {predicate})")
        return result


# results of fewer magnitude bits than this need no wrapping
WRAP_FREE = {"int64": 63, "int32": 31, "int16": 15}

BINARY_NAMES = {
    "//": "floor_divide", "%": "modulo", "div": "divide_truncating", "rem": "remainder_truncating",
    "**": "power", "<<": "shift_left", ">>": "shift_right", "/": "divide",
}  # fmt: skip


def leaves_body(body: list[Stmt]) -> bool:
    """True if all threads may have left at the end of a loop's body."""
    return any(isinstance(s, Break) for s in walk_statements(body))


def _own_variables(expression: Expr) -> Names:
    own = frozenset({expression.name}) if isinstance(expression, Var) else frozenset()
    return own | variables(expression)


class Uses:
    """Which arrays and pointers a program may read and write, and the smallest access to each, in bytes.

    Variables that hold a view or pointer count as all that were ever assigned to them.
    """

    def __init__(self, program: Program) -> None:
        self._origins: dict[str, set[str]] = {}
        self.words: dict[str, int] = {}
        statements = list(walk_statements(program.body))
        for s in statements:
            if isinstance(s, Assign) and isinstance(s.value.type, (ArrayType, PointerType)):
                self._origins.setdefault(s.name, set()).update(_roots(s.value))
        written: set[str] = set()
        read: set[str] = set()
        for s in statements:
            if isinstance(s, Store):
                written |= self._resolve(s.array)
            elif isinstance(s, StoreAt):
                written |= self._resolve(s.pointer, s.value.type)
            for part in walk_expressions(s):
                if isinstance(part, Load):
                    read |= self._resolve(part.array)
                elif isinstance(part, LoadAt):
                    read |= self._resolve(part.pointer, part.type)
                elif isinstance(part, (Atomic, AtomicAt)):
                    target = part.array if isinstance(part, Atomic) else part.pointer
                    touched = self._resolve(target, None if isinstance(part, Atomic) else part.type)
                    written |= touched
                    read |= touched
        self.written, self.read = frozenset(written), frozenset(read)

    def _resolve(self, expression: Expr, access: Type | None = None) -> set[str]:
        seen: set[str] = set()
        todo = list(_roots(expression))
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


def _roots(expression: Expr) -> set[str]:
    if isinstance(expression, Slice):
        return _roots(expression.array)
    if isinstance(expression, PointerAdd):
        return _roots(expression.pointer)
    if isinstance(expression, Select):
        return _roots(expression.then) | _roots(expression.otherwise)
    return {expression.name} if isinstance(expression, (Var, ConstArray)) else set()


def _fits(source: str, target: str) -> bool:
    """True if every value of one integer type is carried unchanged as the other."""
    a, b = np.iinfo(source), np.iinfo(target)
    return bool(b.min <= a.min and a.max <= b.max) and (target == "uint64") == (source == "uint64")


def bit_width(e: Expr) -> int:
    """An upper bound of the bits that an integer expression's magnitude takes; 63 where unknown."""
    if isinstance(e, Const):
        return int(e.value).bit_length()
    if isinstance(e, Var):
        if e.name.startswith(("threadIdx.", "blockDim.")) or e.name == "laneid":
            return 11
        return (
            31
            if e.type in ("int32", "uint32") or e.name.startswith(("blockIdx.", "gridDim."))
            else 16
            if e.type in ("int16", "uint16")
            else 63
        )
    if isinstance(e, Convert):
        return min(bit_width(e.value), 63) if e.value.type in INTEGERS else 63
    if isinstance(e, Load):
        return {"int8": 8, "uint8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32}.get(str(e.type), 63)
    if isinstance(e, Dim):
        return 40
    if isinstance(e, Binary):
        left, right = bit_width(e.left), bit_width(e.right)
        if e.op in ("+", "-"):
            return max(left, right) + 1
        if e.op == "*":
            return left + right
        if e.op in ("//", ">>"):
            return left
        if e.op in ("%", "&"):
            return max(left, right) if e.op == "&" else right
    return 63


def generate(program: Program, types: dict[str, Type]) -> LaneCode:
    """Compile a program to lane code; `types` gives the type of every assigned variable."""
    return CodeGenerator(program, types).generate()
