"""Running a plan: whether it pays, what the checks need to know of it, and the call."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.checks.shared_shadow import LoopReads, SharedShadow
from refsim.dialect import ITEM_BYTES
from refsim.engine.memory import GlobalMemory, SharedMemory
from refsim.engine.native.calls import Call, loop_of
from refsim.engine.native.layouts import CARRIERS, KINDS, Group, Layout, functions_called, pitch_of, states_of
from refsim.engine.native.plans import Plan
from refsim.engine.native.subscripts import LIMITS, Course, Subscripts, Unready, is_number, line, view_of
from refsim.engine.pointers import Pointer
from refsim.engine.views import View

if TYPE_CHECKING:
    from refsim.engine.batch import Batch
    from refsim.engine.lanes import LaneSet
    from refsim.engine.native.machine_code import Compiled

CALL = 2048  # lanes for which an operation takes NumPy as long as being called does
COMPILING = 0.03, 5e-4, 4e-3, 16e-3  # about how many seconds: in any case, for an operation, a state and a call
ENOUGH = 3  # runs of machine code after which it is compared with lane code
LINE = 64  # bytes that memory hands over at a time
FEW_OPERATIONS = 16  # for each reading
MOST_VARIANTS = 16  # that are compiled of one loop
MOST_REFUSALS = 8  # runs in a row that lane code had to make, after which a loop is left to it
MOST_PREPARED = 16  # sets of subscripts that a batch remembers of one loop


@dataclass
class Prepared:
    """A loop's readings for one set of subscripts: where they begin, and what the shadows are told.

    `addresses` has for each group the address of its data and that of its cells, `numbers` the readings of shared
    memory in order; `kept` is what must stay alive.
    """

    groups: tuple[Group, ...]
    addresses: list[tuple[int, int]]
    numbers: list[int]
    reads: dict[SharedMemory, list[tuple[int, View, Any, int]]]
    kept: tuple[Any, ...]


@dataclass
class Costs:
    """What the runs of a loop for one number of blocks have taken: seconds, and operations of lanes."""

    lane_seconds: float = 0.0
    lane_work: float = 0.0
    native_seconds: float = 0.0
    native_work: float = 0.0
    native_runs: int = 0
    refusals: int = 0
    left: bool = False  # to lane code, for good

    def compare(self) -> None:
        """Leave the loop to lane code if machine code takes longer."""
        if self.native_runs >= ENOUGH and self.lane_work:
            self.left = self.native_seconds * self.lane_work > self.lane_seconds * self.native_work


@dataclass
class Family:
    """Readings that make a group: the first one's cell, and how far from it the others' are."""

    view: View
    dtype: str
    begin: Any
    stride: int
    distances: list[tuple[int, int]]

    def takes(self, number: int, view: View, dtype: str, begin: Any, stride: int) -> bool:
        """Take a reading in, if it lies at a fixed distance."""
        if view.data is not self.view.data or (dtype, stride) != (self.dtype, self.stride):
            return False
        if np.shape(begin) != np.shape(self.begin):
            return False
        distance = np.asarray(begin - self.begin)
        if (distance != distance.flat[0]).any():
            return False
        self.distances.append((number, int(distance.flat[0])))
        return True


class NativeLoop:
    """A plan with what is remembered of its runs."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.sites: list[int] = []
        named = {dtype: states_of(plan, dtype) for dtype in CARRIERS}
        self.states = {dtype: names for dtype, names in named.items() if names}
        self.functions = functions_called(plan)
        self.needs_counter = any(o.kind == "counter" for o in plan.operations)
        self.variants: dict[Layout, Compiled] = {}
        self.costs: dict[int, Costs] = {}  # by number of blocks
        calls = sum(o.kind == "call" for o in plan.operations)
        counts = 1, len(plan.operations), len(plan.states), calls
        self.compiling = sum(n * seconds for n, seconds in zip(counts, COMPILING, strict=True))
        self.wanted: set[Layout] = set()  # variants that a worker could not compile

    def __call__(
        self,
        batch: Batch,
        lanes: LaneSet,
        first: Any,
        bound: Any,
        step: Any,
        arrays: tuple[Any, ...],
        indices: tuple[Any, ...],
        invariants: tuple[Any, ...],
        states: tuple[Any, ...],
    ) -> tuple[Any, ...] | None:
        """Values of the plan's states and integers after the trips that all lanes make; None if none was made."""
        mode = batch.run.native
        if mode == "never" or lanes.flat is not None:
            return None
        trips = _trips(self.plan.relation, first, bound, step)
        if trips == 0:
            return None
        given = batch, lanes, Course(first, step, trips), arrays, indices, invariants, states
        if mode == "always":
            try:
                return self._run(*given)
            except Unready:
                return None
        costs = self.costs.setdefault(lanes.shape[1], Costs())
        return None if costs.left else self._weighed(costs, (lanes.size + CALL) * trips, *given)

    def _weighed(self, costs: Costs, work: float, batch: Batch, *given: Any) -> tuple[Any, ...] | None:
        """The values, where lane code has cost what compiling does, and machine code is not slower."""
        if costs.lane_seconds >= self.compiling:
            started, variants = time.perf_counter(), len(self.variants)
            try:
                values = self._run(batch, *given)
            except (Unready, ImportError, OSError, MemoryError):  # the last ones where LLVM cannot be had
                costs.refusals += 1
                costs.left = costs.refusals >= MOST_REFUSALS
            else:
                costs.refusals = 0
                if len(self.variants) == variants:
                    costs.native_seconds += time.perf_counter() - started
                    costs.native_work += work
                    costs.native_runs += 1
                    costs.compare()
                return values
        batch.native.setdefault(id(self), {})["started"] = time.perf_counter(), costs, work
        return None

    def ended(self, batch: Batch) -> None:
        """Lane code has run the loop: note what that took."""
        started = batch.native.get(id(self), {}).pop("started", None)
        if started is not None:
            begin, costs, work = started
            costs.lane_seconds += time.perf_counter() - begin
            costs.lane_work += work

    def known(self) -> tuple[tuple[Layout, ...], dict[int, Costs]]:
        """What a process has learned of the loop: the variants that it wants, and what the loop has cost."""
        return (*self.variants, *self.wanted), self.costs

    def learn(self, layouts: tuple[Layout, ...], costs: dict[int, Costs]) -> None:
        """Take over what a worker has learned, and compile what it could not."""
        for columns, found in costs.items():
            mine = self.costs.setdefault(columns, found)
            if found.lane_seconds > mine.lane_seconds:
                self.costs[columns] = found
        for layout in layouts:
            with contextlib.suppress(Unready, ImportError, OSError, MemoryError):
                self._variant(layout, True)

    # -------------------------------------------------------------------------------------------- the run

    def _run(
        self,
        batch: Batch,
        lanes: LaneSet,
        course: Course,
        arrays: Any,
        indices: Any,
        invariants: Any,
        states: Any,
    ) -> tuple[Any, ...]:
        for array in arrays:
            _check_memory(lanes, array)
        if self.plan.guards:
            subscripts = self._subscripts(course, indices)
            course = replace(course, trips=min(subscripts.trips_while(guard) for guard in self.plan.guards))
            if course.trips == 0:
                raise Unready
        memory = batch.native.setdefault(id(self), {})
        prepared = self._prepared(memory, lanes, course, arrays, indices)
        if batch.run.native == "auto" and self._is_in_vain(prepared):
            self.costs[lanes.shape[1]].left = True
            raise Unready
        inputs, kinds = self._invariants(memory, lanes, invariants)
        if not arrays and "full" not in (*kinds, *map(_kind, states)):
            raise Unready  # the same in many lanes: lane code computes it once
        code = self._variant(Layout(lanes.shape[1], kinds, prepared.groups), batch.run.may_compile)
        integers = self._integers(course, indices)
        call = self._call(memory, code, prepared, inputs, course)
        for name, block in self._blocks(memory, lanes, states).items():
            call.point(name, block)
        call.run(lanes.shape[0], course.trips, lanes.size * len(self.plan.operations), batch.run.cores, prepared)
        self._tell_shadows(batch, lanes, course.trips, prepared)
        results = {
            name: view
            for dtype, names in self.states.items()
            for name, view in zip(names, memory["views", dtype], strict=True)
        }
        return (*(results[name] for name, _ in self.plan.states), *integers)

    def _call(self, memory: Any, code: Compiled, prepared: Prepared, inputs: dict[str, Any], course: Course) -> Call:
        """A call with all its parameters but the states; the last one, if only they have changed."""
        known = memory.get("call")
        if known is not None and known[0] is code and known[1] is prepared and known[2] is inputs:
            return known[3]  # type: ignore[no-any-return]
        call = Call(code)
        for name, block in inputs.items():
            call.point(name, block)
        for number, (data, cells) in enumerate(prepared.addresses):
            call.set(f"data {number}", data)
            call.set(f"cells {number}", cells)
        for name in self.functions:
            loop, data = loop_of(name)
            call.set(f"loop {name}", loop)
            call.set(f"loop data {name}", data)
        if self.needs_counter:
            if type(course.first) is not int:
                raise Unready
            call.set("counter", course.first)
            call.set("step", course.step)
        memory["call"] = code, prepared, inputs, call
        return call

    def _is_in_vain(self, prepared: Prepared) -> bool:
        """True for a loop that waits for memory: every trip of every lane is in another line of global memory.

        Lane code reads such cells trip by trip in the order in which they lie, which is as fast.
        """
        far = all(
            not group.shared and group.varies == "full" and abs(group.stride) * ITEM_BYTES[group.dtype] >= LINE
            for group in prepared.groups
        )
        return far and len(self.plan.operations) < FEW_OPERATIONS * len(self.plan.readings)

    def _variant(self, layout: Layout, may_compile: bool) -> Compiled:
        if layout not in self.variants:
            if len(self.variants) >= MOST_VARIANTS:
                raise Unready
            if not may_compile:
                self.wanted.add(layout)
                raise Unready
            from refsim.engine.native.machine_code import compiled  # LLVM, which few launches need

            self.variants[layout] = compiled(self.plan, layout)
        return self.variants[layout]

    def _blocks(self, memory: Any, lanes: LaneSet, states: Any) -> dict[str, Any]:
        """Arrays of (rows, states, columns): the states before the loop, and room for those after it."""
        rows, columns = lanes.shape
        given = {name: value for (name, _), value in zip(self.plan.states, states, strict=True)}
        blocks = {}
        for dtype, names in self.states.items():
            known, views = memory.get(("block", dtype)), memory.get(("views", dtype), ())
            shape = rows, len(names), pitch_of(columns)
            if known is None or any(given[name] is not view for name, view in zip(names, views, strict=True)):
                known = np.empty(shape, dtype)
                for i, name in enumerate(names):
                    if name in self.plan.carried:
                        known[:, i, :columns] = given[name]
            out = np.empty(shape, dtype)
            blocks[f"in {dtype}"], blocks[f"out {dtype}"] = known, out
            memory["block", dtype] = out
            memory["views", dtype] = tuple(out[:, i, :columns] for i in range(len(names)))
        return blocks

    def _invariants(self, memory: Any, lanes: LaneSet, values: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Blocks of the variables that the loop does not change, and how each varies."""
        known = memory.get("invariants")
        if known is not None and known[0] is lanes and all(a is b for a, b in zip(known[1], values, strict=True)):
            return known[2], known[3]
        plan = self.plan
        kinds = tuple(_kind(value) for value in values)
        layout = Layout(lanes.shape[1], kinds, ())
        given = dict(zip(plan.invariants, values, strict=True))
        blocks = {}
        for kind in KINDS:
            for dtype in CARRIERS:
                names = layout.members(plan, kind, dtype)
                if names:
                    rows = lanes.shape[0] if kind in ("full", "row") else 1
                    columns = lanes.shape[1] if kind in ("full", "column") else 1
                    pitch = 1 if columns == 1 and kind not in ("full", "column") else pitch_of(columns)
                    block = np.empty((rows, len(names), pitch), dtype)
                    for i, name in enumerate(names):
                        block[:, i, :columns] = given[name]
                    blocks[f"{kind} {dtype}"] = block
        memory["invariants"] = lanes, values, blocks, kinds
        return blocks, kinds

    def _integers(self, course: Course, indices: Any) -> tuple[Any, ...]:
        """What the integer variables hold after the trips."""
        plan = self.plan
        last = course.counter_after(course.trips - 1)
        known = {name: line(value, 0, 1) for name, value in zip(plan.indices, indices, strict=True)}
        subscripts = Subscripts(known | {plan.counter: line(last, 0, 1)}, plan.copies, 1)
        values = [subscripts.line(plan.copies[name]).begin for name in plan.integers if name in plan.copies]
        return (*values, course.counter_after(course.trips))

    # --------------------------------------------------------------------------------------- subscripts

    def _prepared(self, memory: Any, lanes: LaneSet, course: Course, arrays: Any, indices: Any) -> Prepared:
        key = (
            id(lanes), course.trips, course.step, *map(_key, (course.first, *indices)),
            *((id(a.memory), _key(a.offset)) if type(a) is Pointer else id(a) for a in arrays),
        )  # fmt: skip
        known: dict[Any, Prepared] = memory.setdefault("prepared", {})
        if key not in known:
            if len(known) >= MOST_PREPARED:
                known.clear()
            known[key] = self._prepare(lanes, course, arrays, indices)
        return known[key]

    def _subscripts(self, course: Course, indices: Any) -> Subscripts:
        plan = self.plan
        known = {plan.counter: line(course.first, course.step, course.trips + 1)}
        low, high = LIMITS[plan.counter_type]
        if known[plan.counter].low < low or known[plan.counter].high > high:
            raise Unready
        for name, value in zip(plan.indices, indices, strict=True):
            known[name] = line(value, 0, course.trips)
        return Subscripts(known, plan.copies, course.trips)

    def _prepare(self, lanes: LaneSet, course: Course, arrays: Any, indices: Any) -> Prepared:
        subscripts = self._subscripts(course, indices)
        families: list[Family] = []
        reads: dict[SharedMemory, list[tuple[int, View, Any, int]]] = {}
        numbers: list[int] = []
        for number, reading in enumerate(self.plan.readings):
            array = arrays[reading.array]
            view = view_of(reading, array)
            begin, stride = subscripts.cells(reading, array, view)
            if isinstance(view.memory, SharedMemory):
                reads.setdefault(view.memory, []).append((len(numbers), view, begin, stride))
                numbers.append(number)
            if not any(family.takes(number, view, reading.dtype, begin, stride) for family in families):
                families.append(Family(view, reading.dtype, begin, stride, [(number, 0)]))
        kept: list[Any] = [lanes, course, arrays, indices]
        groups, addresses = [], []
        for family in families:
            data, shared = family.view.data, isinstance(family.view.memory, SharedMemory)
            varies = _kind(family.begin)
            if shared and varies not in ("one", "row"):
                raise Unready
            start, cells = 0, np.zeros(1, np.int64)
            if varies == "one":
                start = int(np.asarray(family.begin).flat[0]) * data.strides[0]
            else:
                rows, columns = lanes.shape
                shape = {"row": (rows, 1), "column": (1, columns), "full": (rows, columns)}[varies]
                cells = np.ascontiguousarray(np.broadcast_to(family.begin, shape))
            groups.append(Group(family.dtype, shared, varies, family.stride, tuple(family.distances)))
            addresses.append((data.ctypes.data + start, cells.ctypes.data))
            kept += [cells, data]
        return Prepared(tuple(groups), addresses, numbers, reads, tuple(kept))

    def _tell_shadows(self, batch: Batch, lanes: LaneSet, trips: int, prepared: Prepared) -> None:
        run = batch.run
        sites = [self.sites[number] for number in prepared.numbers]
        start = len(run.operations)
        told = [memory.shadow for memory in prepared.reads if memory.shadow is not None]
        if told:
            run.operations.extend(sites * trips)
        if run.racecheck:
            for shadow, entries in zip(told, prepared.reads.values(), strict=True):
                shadow.read_in_loop(lanes, LoopReads(start, len(sites), trips, tuple(entries)))


def _trips(relation: str, first: Any, bound: Any, step: Any) -> int:
    """Trips that all lanes make."""
    if type(step) is not int or step == 0:
        return 0
    upwards = step > 0 if relation == "range" else relation in ("<", "<=")
    if upwards != (step > 0) or not (is_number(first) and is_number(bound)):
        return 0
    length = bound - first if upwards else first - bound
    length = length + (relation in ("<=", ">="))
    trips = -(-length // abs(step))
    return max(0, int(trips.min()) if isinstance(trips, np.ndarray) else trips)


def _key(value: Any) -> Any:
    """What a number, or an array that is kept, is known by."""
    return value if type(value) is int else (id(value),)


def _check_memory(lanes: LaneSet, array: Any) -> None:
    """Refuse what a check may have something to say of.

    Nothing can be found in a shared array whose cells are all initialised and not written since the last barrier, and
    in a global one that is not watched, because it is only read or because nobody asked.
    """
    memory: Any = getattr(array, "memory", None)
    if type(array) not in (View, Pointer) or type(memory) not in (SharedMemory, GlobalMemory):
        raise Unready
    shadow = memory.shadow
    if type(memory) is SharedMemory:
        settled = shadow is None or (type(shadow) is SharedShadow and shadow.settled(lanes))
        if not settled or not lanes.whole_columns:
            raise Unready
    elif shadow is not None:
        raise Unready


def _kind(value: Any) -> str:
    """How a lane value varies."""
    if not isinstance(value, np.ndarray):
        return "one"
    by_row, by_column = value.shape[0] > 1, value.shape[1] > 1
    return "full" if by_row and by_column else "row" if by_row else "column" if by_column else "one"
