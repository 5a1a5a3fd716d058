"""Dialect to lane code: one Python function that runs a program for all lanes of a set.

In the generated function ``S`` is the active set and ``B`` the batch; a program's variables become Python
variables holding lane values. A branch splits ``S``, cuts the variables it needs to each side, runs each side
unmasked and joins the results; a break sets its lanes and values aside until the labelled statement ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from refsim.dialect import (
    COMPLEX,
    FLOATS,
    Align,
    ArrayType,
    Assert,
    Assign,
    Asynchronous,
    Atomic,
    AtomicAt,
    Barrier,
    BarrierObject,
    Binary,
    Block,
    BlockVote,
    Break,
    Effect,
    Expr,
    Fence,
    Function,
    If,
    Load,
    LoadAt,
    Loop,
    MatrixMultiply,
    PointerType,
    Print,
    Program,
    Stmt,
    Store,
    StoreAt,
    Type,
    Var,
    Warp,
    WarpBarrier,
    assigned_names,
    item_bytes,
    walk_expressions,
    walk_statements,
)
from refsim.engine.hoisting import hoisted
from refsim.engine.indices import with_indices
from refsim.engine.lane_expressions import LaneExpressions, Site
from refsim.engine.lane_types import lane_dtype
from refsim.engine.liveness import Names, Needs, variables
from refsim.engine.native.plans import plan_of
from refsim.engine.native.running import NativeLoop
from refsim.engine.registers import with_registers
from refsim.engine.uses import Uses


def _compiled_function(caller: CodeGenerator, function: Function) -> Callable[..., Any]:
    """A function of a program as a Python function of the batch, the set of lanes and its arguments."""
    program = Program(function.name, function.place, function.parameters, function.body)
    names = {s.name for s in walk_statements(function.body) if isinstance(s, Assign)}
    writer = CodeGenerator(program, {name: kind for name, kind in caller.types.items() if name in names})
    writer.sites = caller.sites
    writer.result = function.result
    compiled = writer.generate().function
    writer.namespace[f"function_{function.name}"] = compiled
    for other in caller.program.functions:
        known = caller.namespace.get(f"function_{other.name}")
        if known is not None:
            writer.namespace[f"function_{other.name}"] = known
    return compiled


@dataclass
class LaneCode:
    """A compiled program: the function, its source, and the sites it refers to by number."""

    program: Program
    source: str
    function: Callable[..., None]
    sites: list[Site]
    written: frozenset[str]
    read: frozenset[str]
    plain: frozenset[str]
    words: dict[str, int]
    hands_on: bool
    may_wait: bool
    whole_grid: bool
    barrier_objects: bool
    types: dict[str, Type]
    native_loops: list[NativeLoop]
    original: tuple[Program, dict[str, Type]] | None = None
    counting: LaneCode | None = None
    tables: Any = None
    irregular: set[tuple[Any, ...]] = field(default_factory=set)
    uneven: set[tuple[Any, ...]] = field(default_factory=set)

    @cached_property
    def stepwise(self) -> LaneCode:
        """The same program as a generator, which stops wherever a thread may have to wait for others."""
        return CodeGenerator(self.program, self.types, stepwise=True).generate()

    @cached_property
    def at_accesses(self) -> LaneCode:
        """The stepwise program that also stops before every access to shared and global memory."""
        return CodeGenerator(self.program, self.types, stepwise=True, at_accesses=True).generate()


class CodeGenerator(LaneExpressions):
    """Writes the lane code of one program, or of one function, whose value is `result`."""

    result: Var | None = None
    counting = False

    def generate(self) -> LaneCode:
        """Produce the function."""
        program = self.program
        self.native_loops: list[NativeLoop] = []
        parameters = ", ".join(self.name(name) for name, kind in program.parameters if kind is not None)
        for name in sorted(self._indices_used()):
            value = f"B.index_values({name!r})"
            self.emit(f"{self.name(name)} = {f'S.pick({value})' if self.stepwise or self.result else value}")
        uses = self.uses = Uses(program)
        self.awaited = {
            id(part)
            for s in walk_statements(program.body)
            if isinstance(s, Loop) and not s.step
            for part in _deciding(s)
            if isinstance(part, LoadAt) and part.volatile
        }
        for allocation in program.allocations:
            held = self.constant(allocation)
            word = uses.words.get(allocation.name, item_bytes(allocation.dtype))
            if allocation.dynamic and allocation.raw:
                word = min(uses.words.get(a.name, word) for a in program.allocations if a.dynamic)
            self.emit(f"{self.name(allocation.name)} = B.allocate({held}, {word})")
        for name, kind in self.types.items():
            if name not in self.fixed and name not in dict(program.parameters):
                self.emit(f"{self.name(name)} = {self._zero(kind)}")
        for function in program.functions:
            self.namespace[f"function_{function.name}"] = _compiled_function(self, function)
        self.block(program.body)
        if self.result is not None:
            self.emit(f"return {self.expression(self.result)}")
        self.emit("if False: yield" if self.stepwise else "pass")
        source = f"def lane_code(B, S, {parameters}):\n" + "\n".join(self.lines) + "\n"
        exec(compile(source, f"<lane code of {program.name}>", "exec"), self.namespace)
        hands_on = (
            uses.atomic_results
            or bool(self.awaited)
            or any(isinstance(s, Fence) and s.scope != "block" for s in walk_statements(program.body))
        )
        function = self.namespace["lane_code"]
        may_wait = any(isinstance(s, Loop) and not s.step and bool(_deciding(s)) for s in walk_statements(program.body))
        return LaneCode(
            program=program,
            source=source,
            function=function,
            sites=self.sites,
            written=uses.written,
            read=uses.read,
            plain=uses.plain,
            words=uses.words,
            hands_on=hands_on,
            may_wait=may_wait,
            whole_grid=any(isinstance(s, Barrier) and s.scope == "grid" for s in walk_statements(program.body)),
            barrier_objects=any(
                isinstance(e, BarrierObject) for s in walk_statements(program.body) for e in walk_expressions(s)
            ),
            types=self.types,
            native_loops=self.native_loops,
        )

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
        return self.constant(np.dtype(kind).type(0)) if kind in FLOATS or kind in COMPLEX else "0"

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

    def block(self, body: list[Stmt]) -> None:
        """Statements in order; after one that all threads may leave, the rest is guarded."""
        depth = self.depth
        self.remembered.clear()
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
        if isinstance(statement, (If, Loop, Block)):
            self.remembered.clear()
        elif self.remembered:
            self.forget(assigned_names(statement))

    def _assign(self, s: Assign) -> None:
        value = s.value
        indexes = s.place is not None and value.type == "int32" and s.name in self.uses.indices
        if indexes and isinstance(value, Binary) and value.op in ("+", "-", "*"):
            self.emit(f"{self.name(s.name)} = {self.index_value(value, s.place, self.uses.indexed(s.name))}")
        else:
            self.emit(f"{self.name(s.name)} = {self.expression(value)}")

    def _store(self, s: Store) -> None:
        array = self.expression(s.array)
        index = [self.expression(i) for i in s.index]
        value = self.expression(s.value)
        method = f"store{len(index)}" if len(index) in (1, 2) else "store"
        site = self.site(s.place, "write of", "write", s.array)
        self.access_point(site, s.array)
        self.emit(f"{array}.{method}(S, {site}, {value}, {', '.join(index)})")

    def _storeat(self, s: StoreAt) -> None:
        action, noun = ("asynchronous copy to", "asynchronous copy") if self.copying else ("write of", "write")
        site = self.site(s.place, action, noun, s.pointer, flag=s.volatile)
        dtype = str(s.value.type)
        if s.volatile and self.awaited:
            pointer = self.fresh()
            self.emit(f"{pointer} = {self.expression(s.pointer)}")
            value = self.expression(s.value)
            self.access_point(site, s.pointer)
            self.emit(f"store_at(S, {site}, {pointer}, {dtype!r}, {value})")
            self.emit(f"flag_at(S, {site}, {pointer}, {dtype!r})")
            return
        element = self.element(s.pointer, dtype)
        pointer = self.expression(s.pointer) if element is None else ""
        value = self.expression(s.value)
        self.access_point(site, s.pointer)
        if element is None:
            self.emit(f"store_at(S, {site}, {pointer}, {dtype!r}, {value})")
        else:
            base, *index = element
            self.emit(f"store_element(S, {site}, {base}, {' + '.join(filter(None, index))}, {dtype!r}, {value})")

    def _align(self, s: Align) -> None:
        site = self.site(s.place, "access to", "access", s.pointer)
        self.emit(f"align_at(S, {site}, {self.expression(s.pointer)}, {s.bytes})")

    def _matrixmultiply(self, s: MatrixMultiply) -> None:
        site = self.site(s.place, s.name, s.name)
        spec = self.constant((s.name, s.fragments, s.saturate))
        args = "".join(self.expression(e) + ", " for e in (*s.a, *s.b, *s.c))
        targets = "".join(self.name(target) + ", " for target in s.targets)
        self.emit(f"{targets}= {self.synchronised('matrix', site, f'{spec}, ({args})')}")

    def _effect(self, s: Effect) -> None:
        if isinstance(s.value, Atomic):
            self._atomic_call(s.value, used=False)
        elif isinstance(s.value, AtomicAt):
            self._atomic_at_call(s.value, used=False)
        else:
            self.expression(s.value)

    def _barrier(self, s: Barrier) -> None:
        kind = "barrier" if s.scope == "block" else "grid_barrier"
        self.emit(self.synchronised(kind, self.site(s.place, "barrier", "barrier"), "None"))

    def _warpbarrier(self, s: WarpBarrier) -> None:
        mask = self.expression(s.mask)
        self.emit(self.synchronised("warp_barrier", self.site(s.place, "warp barrier", "warp barrier"), mask))

    def _fence(self, s: Fence) -> None:
        self.emit(f"B.fence(S, {self.site(s.place, 'fence', 'fence')}, {s.scope!r})")

    def _asynchronous(self, s: Asynchronous) -> None:
        self.copying = s.action == "begin"
        count = "0" if s.count is None else self.expression(s.count)
        self.emit(f"B.asynchronous(S, {s.action!r}, {count})")

    def _print(self, s: Print) -> None:
        parts = "".join((repr(p) if isinstance(p, str) else self.expression(p)) + ", " for p in s.parts)
        self.emit(f"B.print(S, ({parts}), {s.printf})")

    def _assert(self, s: Assert) -> None:
        condition = self.expression(s.condition)
        site = self.site(s.place, "assertion", "assertion")
        exception = ""
        if s.exception is not None:
            name = self.fresh("raised")
            self.namespace[name] = s.exception
            exception = f", {name}"
        self.emit(f"B.check_assertion(S, {site}, {condition}, {s.message!r}{exception})")

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
        self.decided(yes)
        self.emit(f"if {yes} is not None:")
        self.depth += 1
        self.emit(f"if {no} is not None:")
        self.depth += 1
        self.split(yes, no)
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

    def split(self, yes: str, no: str) -> None:
        """Called where a branch has divided the set `S`: nothing, unless the code counts."""

    def decided(self, yes: str) -> None:
        """Called where an ``if`` has split the set `S`, also into one part: nothing, unless the code counts."""

    def entered(self) -> None:
        """Called where a loop's test has let `S` in: nothing, unless the code counts."""

    def trip(self, loop: Loop) -> None:
        """Called where a loop's trip begins: nothing, unless the code counts."""

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
        watched = self._watched(s)
        first_site = len(self.sites)
        native = self._native(s, needs)
        through = self._save_through(needs, needs.head)
        self.emit(f"{exits} = []")
        self.emit(f"{parent} = S")
        if watched is not None:
            trips, before = self.fresh("trips"), self.fresh("before")
            if not self.stepwise:
                self.emit(f"{trips}, {before} = 0, None")
        self.emit("while True:")
        self.depth += 1
        self.remembered.clear()
        self.trip(s)
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
            self.split(yes, no)
            cut = "".join(f"{no}.cut({self.name(n)}), " for n in live)
            self.emit(f"{exits}.append(({no}, ({cut})))")
            self._cut(yes, head)
            self.depth -= 2
            self.entered()
        self.block(s.body)
        if leaves_body(s.body):
            self.emit("if S is None: break")
        self.block(s.step)
        if watched is not None:
            site = self.site(s.place, "loop", "loop")
            now = self.tuple_of(watched)
            if self.stepwise:
                self.emit(self.synchronised("loop", site, now))
            else:
                self.emit(f"{trips} += 1")
                self.emit(f"if {before} is not None: {before} = B.looped(S, {before}, {now}, {site})")
                self.emit(f"if {trips} > 16 and not {trips} & ({trips} - 1):")
                self.emit(f" {before} = (S, B.run.fingerprint(B), {now})")
        self.depth -= 1
        self._join_exits(exits, parent, needs, through)
        if native is not None:
            loop, ended = native
            self.emit(ended)
            loop.sites = [n for n in range(first_site, len(self.sites)) if self.sites[n].noun == "read"]

    def _native(self, s: Loop, needs: Needs) -> tuple[NativeLoop, str] | None:
        """Have machine code run a loop as far as it can; what is emitted next runs what is left.

        Returns the loop, and the statement that says when lane code had to run all of it.
        """
        if self.stepwise or self.counting:
            return None
        plan = plan_of(s, needs, self.types, self.uses.indices)
        if plan is None:
            return None
        loop, done = self.fresh("native"), self.fresh("done")
        self.namespace[loop] = native = NativeLoop(plan)
        self.native_loops.append(native)
        given = [
            "".join(f"{part}, " for part in parts)
            for parts in (
                map(self.expression, plan.arrays),
                map(self.name, plan.indices),
                map(self.name, plan.invariants),
                (self.name(name) for name, _ in plan.states),
            )
        ]
        course = ", ".join((self.name(plan.counter), self.expression(plan.bound), self.expression(plan.step)))
        self.emit(f"{done} = {loop}(B, S, {course}, {', '.join(f'({part})' for part in given)})")
        changed = [*(name for name, _ in plan.states), *plan.integers]
        self.emit(f"if {done} is not None: {self.tuple_of(changed)} = {done}")
        return native, f"if {done} is None: {loop}.ended(B)"

    def _watched(self, s: Loop) -> list[str] | None:
        """Variables on which a ``while`` loop's course depends; None for counted loops, which end."""
        if s.step:
            return None
        relevant: set[str] = set() if s.condition is None else set(_own_variables(s.condition))
        pure: list[Assign] = []
        written: set[str] = set()
        for statement in walk_statements(s.body):
            if isinstance(statement, Assign):
                pure.append(statement)
                for part in walk_expressions(statement):
                    if isinstance(part, (Atomic, BarrierObject, Load, Warp, BlockVote)):
                        relevant |= variables(part)
            else:
                written |= set(assigned_names(statement))
                relevant |= variables(statement)
        size = -1
        while size != len(relevant):
            size = len(relevant)
            for statement in pure:
                if statement.name in relevant:
                    relevant |= variables(statement)
        changed = {statement.name for statement in pure} | written
        return sorted(relevant & changed)


def _deciding(loop: Loop) -> list[Expr]:
    """What a loop reads from memory and decides by whether it goes on, as one that waits for another thread does."""
    deciding: list[Expr] = [] if loop.condition is None else [loop.condition]
    assigned: list[Assign] = []
    for s in walk_statements(loop.body):
        if isinstance(s, If) and any(isinstance(inner, Break) for inner in walk_statements([s])):
            deciding.append(s.condition)
        elif isinstance(s, Assign):
            assigned.append(s)
    found: list[Expr] = []
    names: set[str] = set()
    position = 0
    while position < len(deciding):
        for part in (deciding[position], *walk_expressions(deciding[position])):
            if isinstance(part, (Load, LoadAt, Atomic, AtomicAt, BarrierObject)):
                found.append(part)
            if isinstance(part, Var) and part.name not in names:
                names.add(part.name)
                deciding.extend(s.value for s in assigned if s.name == part.name)
        position += 1
    return found


def leaves_body(body: list[Stmt]) -> bool:
    """True if all threads may have left at the end of a loop's body."""
    return any(isinstance(s, Break) for s in walk_statements(body))


def _own_variables(expression: Expr) -> Names:
    own = frozenset({expression.name}) if isinstance(expression, Var) else frozenset()
    return own | variables(expression)


def generate(program: Program, types: dict[str, Type]) -> LaneCode:
    """Compile a program to lane code; `types` gives the type of every assigned variable."""
    code = CodeGenerator(*hoisted(*with_registers(with_indices(program), types))).generate()
    code.original = program, types
    return code
