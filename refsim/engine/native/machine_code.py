"""A plan as machine code, through LLVM.

The function takes one array of int64, `Layout` says what is where, and runs all trips for the lanes of some threads
(rows) and all blocks (columns, contiguous). Arithmetic is written for 16 lanes at once and, for the columns that are
left over, for one. Nothing lets the compiler change a result: no contraction, no reassociation, IEEE divisions.

A plan without calls keeps its states in registers through all trips. One with calls works on a few columns at a time,
in stages: what a function needs is laid down for all of them, NumPy's own loop is called on it, and the next stage goes
on. So a function gives the same bits here as in lane code.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from llvmlite import binding, ir

from refsim.dialect import ITEM_BYTES
from refsim.engine.native.layouts import (
    VECTOR,
    WIDEST,
    Layout,
    carrier,
    parameters,
    pitch_of,
    states_of,
)
from refsim.engine.native.plans import Operation, Plan
from refsim.engine.native.vectors import FLOAT_TYPES, I1, I8, I32, I64, TYPES, VectorCode

REGISTERS = 16  # vectors of states that are kept in registers
MOST_VECTORS = 8  # that are worked on side by side, so that one need not wait for its last sum
MOST_CODE = 64  # operations of vectors in a trip: more are compiled long for little
NEAR = 16 << 10  # bytes that a plan with calls works on at a time
ALIGNMENT = {ir.IntType(8 * size): size for size in (1, 2, 4, 8)}
ALIGNMENT |= {kind: ITEM_BYTES[name] for name, kind in FLOAT_TYPES.items()}
AT_HAND = frozenset({"constant", "invariant", "state"})  # what every stage can get for itself


# ------------------------------------------------------------------------------------------------- compiling


_compiling = threading.Lock()
if hasattr(os, "register_at_fork"):  # a fork waits until nobody compiles: the child could not have LLVM's lock back
    os.register_at_fork(
        before=_compiling.acquire, after_in_parent=_compiling.release, after_in_child=_compiling.release
    )


@dataclass(frozen=True)
class Compiled:
    """The function of one variant, which takes the address of its parameters; it lives as long as `engine`."""

    run: Callable[[int], None]
    positions: dict[str, int]
    engine: Any


@cache
def _target() -> tuple[Any, str, str]:
    """What is compiled for, the processor's name and its features."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = binding.get_host_cpu_features().flatten()
    return binding.Target.from_default_triple(), binding.get_host_cpu_name(), features


def _machine() -> Any:
    """A compiler of its own for each engine, which frees it when it ends."""
    target, name, features = _target()
    return target.create_target_machine(cpu=name, features=features, opt=3)


def compiled(plan: Plan, layout: Layout) -> Compiled:
    """Machine code for one variant of a plan."""
    with _compiling:
        return _compiled(plan, layout)


def _compiled(plan: Plan, layout: Layout) -> Compiled:
    machine = _machine()
    module = ir.Module("loop")
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    _Writer(plan, layout, module).write()
    parsed = binding.parse_assembly(str(module))
    parsed.verify()
    tuning = binding.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_vectorization = tuning.slp_vectorization = False
    builder = binding.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(parsed, builder)
    engine = binding.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64)(engine.get_function_address("run"))
    return Compiled(run, parameters(plan, layout), engine)


# --------------------------------------------------------------------------------------------------- writing


class _Writer(VectorCode):
    """Writes one function; `width` lanes at a time."""

    def __init__(self, plan: Plan, layout: Layout, module: Any) -> None:
        self.plan = plan
        self.layout = layout
        self.module = module
        self.positions = parameters(plan, layout)
        self.width = 1
        self.places = {
            number: (position, distance, group)
            for position, group in enumerate(layout.groups)
            for number, distance in group.distances
        }
        self.levels = self._levels()
        self.scratch: dict[int, Any] = {}

    def _levels(self) -> list[int]:
        """How many calls must come before each operation."""
        levels: list[int] = []
        for o in self.plan.operations:
            below = [levels[n] + (self.plan.operations[n].kind == "call") for n in o.operands]
            levels.append(max(below, default=0))
        for n, o in enumerate(self.plan.operations):
            if o.kind == "load":  # as late as its first use
                users = [levels[m] for m, user in enumerate(self.plan.operations) if n in user.operands]
                levels[n] = min(users, default=levels[n])
        return levels

    # ---------------------------------------------------------------------------------------- frame

    def write(self) -> None:
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [I64]), "run")
        self.function = function
        b = self.b = ir.IRBuilder(function.append_basic_block("entry"))
        table = b.inttoptr(function.args[0], I64.as_pointer())
        self.parameter = {
            name: b.load(b.gep(table, [ir.Constant(I64, position)])) for name, position in self.positions.items()
        }
        calls = any(o.kind == "call" for o in self.plan.operations)
        if calls:
            self._reserve()
            self._in_stages()
        else:
            vectors = min(MOST_VECTORS, REGISTERS // len(self.plan.states), MOST_CODE // len(self.plan.operations))
            vectors = max(1, vectors)
            self._over_columns(ir.Constant(I64, 0), self.layout.columns, vectors * VECTOR, self._rows_of_column)
        b.ret_void()

    def _loop(self, name: str, first: Any, last: Any, step: int, body: Callable[[Any], None]) -> None:
        """``for i in range(first, last, step)``."""
        b = self.b
        before = b.block
        head = self.function.append_basic_block(f"{name}_head")
        inside = self.function.append_basic_block(name)
        after = self.function.append_basic_block(f"{name}_end")
        b.branch(head)
        b.position_at_end(head)
        i = b.phi(I64, name)
        i.add_incoming(first, before)
        b.cbranch(b.icmp_signed("<", i, last), inside, after)
        b.position_at_end(inside)
        body(i)
        i.add_incoming(b.add(i, ir.Constant(I64, step)), b.block)
        b.branch(head)
        b.position_at_end(after)

    def _over_rows(self, body: Callable[[], None]) -> None:
        """All threads, within a few columns: what several of them read stays near."""

        def begun(row: Any) -> None:
            self._start_row(row)
            body()

        self._loop("row", self.parameter["first row"], self.parameter["end row"], 1, begun)

    def _over_columns(self, first: Any, count: int, widest: int, body: Callable[[Any], None]) -> None:
        """A number of columns from `first`: as many at once as fit, then vectors, then one by one."""
        b, done = self.b, 0
        for width in sorted({widest, VECTOR, 1}, reverse=True):
            end = done + (count - done) // width * width
            self.width = width
            if end > done:
                begin, stop = (b.add(first, ir.Constant(I64, n)) for n in (done, end))
                self._loop("columns", begin, stop, width, self._from_here(body))
            done = end

    def _from_here(self, body: Callable[[Any], None]) -> Callable[[Any], None]:
        def begun(column: Any) -> None:
            self.column = column
            self.starts: dict[int, Any] = {}
            body(column)

        return begun

    # -------------------------------------------------------------------------------------- without calls

    def _rows_of_column(self, column: Any) -> None:
        self._over_rows(partial(self._all_trips, column))

    def _all_trips(self, column: Any) -> None:
        b, plan = self.b, self.plan
        before: dict[int, Any] = {
            n: self._operation(n, {}) for n, o in enumerate(plan.operations) if o.kind in ("constant", "invariant")
        }
        start = {
            name: self._state(name, "in") if name in plan.carried else self.constant(0, plan.types[name])
            for name, _ in plan.states
        }
        entry = b.block
        head, inside, after = (self.function.append_basic_block(f"trip{part}") for part in ("_head", "", "_end"))
        b.branch(head)
        b.position_at_end(head)
        trip = b.phi(I64, "trip")
        trip.add_incoming(self.parameter["first trip"], entry)
        held = {}
        for name, value in start.items():
            held[name] = b.phi(value.type)
            held[name].add_incoming(value, entry)
        b.cbranch(b.icmp_signed("<", trip, self.parameter["end trip"]), inside, after)
        b.position_at_end(inside)
        self.trip = trip
        values = dict(before)
        for n, o in enumerate(plan.operations):
            if n not in values:
                values[n] = held[o.detail] if o.kind == "state" else self._operation(n, values)
        for name, n in plan.states:
            held[name].add_incoming(values[n], b.block)
        trip.add_incoming(b.add(trip, ir.Constant(I64, 1)), b.block)
        b.branch(head)
        b.position_at_end(after)
        for name, _ in plan.states:
            self._keep(name, held[name])

    # ----------------------------------------------------------------------------------------- with calls

    def _reserve(self) -> None:
        """Room for what crosses from one stage to a later one, and for the arguments of NumPy's loops."""
        b = self.b
        crossing = {
            n for m, o in enumerate(self.plan.operations) for n in o.operands if self.levels[n] < self.levels[m]
        }
        crossing |= {n for m, o in enumerate(self.plan.operations) if o.kind == "call" for n in (m, *o.operands)}
        crossing |= {n for _, n in self.plan.states if self.levels[n] < self._last_level()}
        crossing = {n for n in crossing if self.plan.operations[n].kind not in AT_HAND}
        together = 8 * (len(crossing) + len(self.plan.states) + self.layout.kinds.count("full"))
        self.chunk = max(1, NEAR // together // WIDEST) * WIDEST
        for n in sorted(crossing):
            o = self.plan.operations[n]
            self.scratch[n] = b.alloca(I8 if o.type == "bool" else TYPES[o.type], self.chunk)
        pointer = I8.as_pointer()
        self.arrays = b.alloca(pointer, 2)
        self.extent = b.alloca(I64, 1)
        self.steps = b.alloca(I64, 2)
        for position in (0, 1):
            b.store(ir.Constant(I64, 8), b.gep(self.steps, [ir.Constant(I64, position)]))

    def _last_level(self) -> int:
        return max(level + (o.kind == "call") for level, o in zip(self.levels, self.plan.operations, strict=True))

    def _in_stages(self) -> None:
        columns = self.layout.columns
        whole = columns // self.chunk * self.chunk
        for first, last, width in ((0, whole, self.chunk), (whole, columns, columns - whole)):
            if last > first:
                ends = ir.Constant(I64, first), ir.Constant(I64, last)
                self._loop("chunk", *ends, width, partial(self._rows_of_chunk, width))

    def _rows_of_chunk(self, width: int, first: Any) -> None:
        self.first = first
        self._over_rows(partial(self._trips_in_stages, width))

    def _trips_in_stages(self, width: int) -> None:
        self._over_columns(self.first, width, WIDEST, self._begin)
        ends = self.parameter["first trip"], self.parameter["end trip"]
        self._loop("trip", *ends, 1, partial(self._stages, width))

    def _begin(self, column: Any) -> None:
        """The states before the first trip."""
        for name, _ in self.plan.states:
            value = self._state(name, "in") if name in self.plan.carried else self.constant(0, self.plan.types[name])
            self._keep(name, value)

    def _stages(self, width: int, trip: Any) -> None:
        self.trip = trip
        for level in range(self._last_level() + 1):
            self._over_columns(self.first, width, WIDEST, partial(self._stage, level))
            for n, o in enumerate(self.plan.operations):
                if o.kind == "call" and self.levels[n] == level:
                    self._call(n, o, width)

    def _stage(self, level: int, column: Any) -> None:
        """The operations between two rounds of calls; a state is replaced as soon as nobody needs the old one."""
        plan = self.plan
        values: dict[int, Any] = {}
        last = level == self._last_level()
        elsewhere = {*AT_HAND, "call"}
        mine = [n for n, o in enumerate(plan.operations) if self.levels[n] == level and o.kind not in elsewhere]
        waiting = dict(plan.states) if last else {}
        uses = {name: max((m for m in mine if self._reads_state(m, name)), default=-1) for name in waiting}
        for n in waiting.values():
            if plan.operations[n].kind == "state":  # what one state held becomes another's value
                self._get(n, values)
        for n in mine:
            values[n] = self._operation(n, values)
            if n in self.scratch:
                self._write(values[n], self._scratch_pointer(n))
            for name in [
                s for s, v in waiting.items() if v <= n and uses[s] <= n and (v in values or v in self.scratch)
            ]:
                self._keep(name, self._get(waiting.pop(name), values))
        for name, n in waiting.items():
            self._keep(name, self._get(n, values))

    def _reads_state(self, n: int, name: str) -> bool:
        operands = (self.plan.operations[m] for m in self.plan.operations[n].operands)
        return any(o.kind == "state" and o.detail == name for o in operands)

    def _call(self, n: int, o: Operation, width: int) -> None:
        """NumPy's loop over the columns at hand."""
        b = self.b
        pointer = I8.as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer.as_pointer(), I64.as_pointer(), I64.as_pointer(), pointer])
        for position, buffer in enumerate((self.scratch[o.operands[0]], self.scratch[n])):
            b.store(b.bitcast(buffer, pointer), b.gep(self.arrays, [ir.Constant(I64, position)]))
        b.store(ir.Constant(I64, width), self.extent)
        loop = b.inttoptr(self.parameter[f"loop {o.detail}"], kind.as_pointer())
        data = b.inttoptr(self.parameter[f"loop data {o.detail}"], pointer)
        b.call(loop, [self.arrays, self.extent, self.steps, data])

    # ------------------------------------------------------------------------------------------- memory

    def _start_row(self, row: Any) -> None:
        b, columns = self.b, self.layout.columns
        self.row = row
        self.bases = []
        self.cells = []
        for number, group in enumerate(self.layout.groups):
            address = self.parameter[f"data {number}"]
            cells = b.inttoptr(self.parameter[f"cells {number}"], I64.as_pointer())
            if group.varies == "row":
                size = ITEM_BYTES[group.dtype] * (columns if group.shared else 1)
                address = b.add(address, b.mul(b.load(b.gep(cells, [row])), ir.Constant(I64, size)))
            elif group.varies == "full":
                cells = b.gep(cells, [b.mul(row, ir.Constant(I64, columns))])
            self.bases.append(b.inttoptr(address, TYPES[group.dtype].as_pointer()))
            self.cells.append(cells)

    def _at(self, address: Any, index: Any, dtype: str) -> Any:
        """Pointer to an element, by its index, from an address."""
        b = self.b
        return b.gep(b.inttoptr(address, TYPES[dtype].as_pointer()), [index])

    def _read(self, pointer: Any, dtype: str) -> Any:
        b = self.b
        vector = self.of(TYPES[dtype])
        return b.load(b.bitcast(pointer, vector.as_pointer()), align=ITEM_BYTES[dtype])

    def _write(self, value: Any, pointer: Any) -> None:
        b = self.b
        scalar = value.type.element if isinstance(value.type, ir.VectorType) else value.type
        if scalar == I1:
            scalar, value = I8, b.zext(value, self.of(I8))
        b.store(value, b.bitcast(pointer, value.type.as_pointer()), align=ALIGNMENT[scalar])

    def _state_pointer(self, name: str, which: str) -> Any:
        dtype = carrier(self.plan.types[name])
        members = states_of(self.plan, dtype)
        return self._in_block(f"{which} {dtype}", dtype, len(members), members.index(name))

    def _state(self, name: str, which: str) -> Any:
        kind = self.plan.types[name]
        return self.from_carrier(self._read(self._state_pointer(name, which), carrier(kind)), kind)

    def _keep(self, name: str, value: Any) -> None:
        """Write a state to where it is after the loop."""
        self._write(self.carried(value, self.plan.types[name]), self._state_pointer(name, "out"))

    def _in_block(self, block: str, dtype: str, count: int, position: int) -> Any:
        """Pointer into a block of (rows, variables, columns)."""
        b, columns = self.b, self.layout.columns
        pitch = pitch_of(columns)
        start = b.mul(self.row, ir.Constant(I64, count * pitch))
        index = b.add(b.add(start, self.column), ir.Constant(I64, position * pitch))
        return self._at(self.parameter[block], index, dtype)

    def _scratch_pointer(self, n: int) -> Any:
        return self.b.gep(self.scratch[n], [self.b.sub(self.column, self.first)])

    def _get(self, n: int, values: dict[int, Any]) -> Any:
        """The value of an operation: at hand, from the room between stages, or anew."""
        if n not in values:
            o = self.plan.operations[n]
            if n in self.scratch:
                values[n] = self._from_scratch(n, o)
            elif o.kind == "state":
                values[n] = self._state(o.detail, "out")
            else:
                values[n] = self._operation(n, values)
        return values[n]

    def _from_scratch(self, n: int, o: Operation) -> Any:
        if o.type != "bool":
            return self._read(self._scratch_pointer(n), o.type)
        b = self.b
        kind = self.of(I8)
        return b.trunc(b.load(b.bitcast(self._scratch_pointer(n), kind.as_pointer()), align=1), self.of(I1))

    # --------------------------------------------------------------------------------------- operations

    def _invariant(self, name: str, dtype: str) -> Any:
        b, columns = self.b, self.layout.columns
        kind = self.layout.kinds[self.plan.invariants.index(name)]
        members = self.layout.members(self.plan, kind, dtype)
        position, block = members.index(name), f"{kind} {dtype}"
        if kind == "full":
            return self._read(self._in_block(block, dtype, len(members), position), dtype)
        if kind == "column":
            index = b.add(self.column, ir.Constant(I64, position * pitch_of(columns)))
            return self._read(self._at(self.parameter[block], index, dtype), dtype)
        index = ir.Constant(I64, position)
        if kind == "row":
            index = b.add(index, b.mul(self.row, ir.Constant(I64, len(members))))
        return self.splat(b.load(self._at(self.parameter[block], index, dtype)))

    def _load(self, o: Operation) -> Any:
        b = self.b
        position, distance, group = self.places[o.detail]
        size = self.layout.columns if group.shared else 1
        if position not in self.starts:
            index = b.mul(self.trip, ir.Constant(I64, group.stride * size))
            if group.shared:
                index = b.add(index, self.column)
            self.starts[position] = b.gep(self.bases[position], [index])
        pointer = b.gep(self.starts[position], [ir.Constant(I64, distance * size)])
        if group.shared:
            return self._read(pointer, group.dtype)
        if group.varies in ("one", "row"):
            return self.splat(b.load(pointer))
        return self._gathered(pointer, self.cells[position])

    def _counter(self, kind: str) -> Any:
        b = self.b
        value = b.add(self.parameter["counter"], b.mul(self.trip, self.parameter["step"]))
        return self.from_carrier(self.splat(value), kind)

    def _gathered(self, pointer: Any, cells: Any) -> Any:
        """One value for each column, each at its own cell."""
        b = self.b
        first = b.gep(cells, [self.column])
        if self.width == 1:
            return b.load(b.gep(pointer, [b.load(first)]))
        values = ir.Constant(self.of(pointer.type.pointee), ir.Undefined)
        for lane in range(self.width):
            cell = b.load(b.gep(first, [ir.Constant(I64, lane)]))
            values = b.insert_element(values, b.load(b.gep(pointer, [cell])), ir.Constant(I32, lane))
        return values

    def _operation(self, n: int, values: dict[int, Any]) -> Any:
        o = self.plan.operations[n]
        kind = o.kind
        if kind == "constant":
            return self.constant(np.frombuffer(o.detail, o.type)[0].item(), o.type)
        if kind == "invariant":
            return self.from_carrier(self._invariant(o.detail, carrier(o.type)), o.type)
        if kind == "load":
            return self._load(o)
        if kind == "counter":
            return self._counter(o.type)
        sources = [self.plan.operations[m].type for m in o.operands]
        return self.applied(o, sources, *(self._get(m, values) for m in o.operands))
