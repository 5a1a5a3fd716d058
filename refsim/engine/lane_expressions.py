"""Dialect expressions to Python source over lane values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from refsim.dialect import (
    COMPLEX,
    FLOATS,
    INDICES,
    INTEGERS,
    ITEM_BYTES,
    ArrayType,
    Atomic,
    AtomicAt,
    BarrierObject,
    Binary,
    Bitcast,
    BlockVote,
    Call,
    Compare,
    Const,
    ConstArray,
    Convert,
    Dim,
    Expr,
    Field,
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
    Program,
    Rearranged,
    Select,
    SharedAddress,
    SharedPointer,
    Slice,
    SliceItem,
    Stride,
    Type,
    Unary,
    Var,
    Warp,
    assigned_names,
    is_free,
    walk_expressions,
    walk_statements,
)
from refsim.engine import intrinsics, pointer_bits, pointers, rearranged, shared_addresses
from refsim.engine.hoisting import PREFIX
from refsim.engine.joins import rejoin
from refsim.engine.lane_functions import add_product, logical_not, select, select_uint64, unite, wrap_int64
from refsim.engine.lane_types import bitcast
from refsim.engine.liveness import Liveness
from refsim.engine.range_tests import in_range, range_test
from refsim.engine.widths import MAGNITUDE_BITS, bit_width, combined_bits, keeps_number, multiples
from refsim.errors import UnsupportedError


@dataclass(frozen=True)
class Site:
    """One access or synchronisation in the source: what findings and shadows refer to by number.

    `scope` is how far an atomic operation is one; `flag` is True for a volatile access, and `awaited` for a volatile
    read on which a loop waits.
    """

    place: Place
    action: str
    noun: str
    array: str | None = None
    atomic: bool = False
    dtype: str | None = None
    scope: str = "device"
    flag: bool = False
    awaited: bool = False


def implementation(name: str, operand: str, place: Place | None) -> Callable[..., Any]:
    """Lane implementation of a function by the front end's name; an error with its place if there is none."""
    if name in pointer_bits.FUNCTIONS:
        return pointer_bits.FUNCTIONS[name]
    try:
        return intrinsics.function(name, operand)
    except KeyError as error:
        raise UnsupportedError(f"{name} on {operand} is not supported yet", place) from error


def array_name(expression: Expr) -> str:
    """How the source calls an array."""
    if isinstance(expression, (Var, ConstArray)):
        return expression.name.split("@")[0]
    if isinstance(expression, Slice):
        return array_name(expression.array) + "[…]"
    if isinstance(expression, Field):
        return f"{array_name(expression.array)}.{expression.name}"
    if isinstance(expression, Rearranged):
        return f"{array_name(expression.array)}.{expression.how}"
    if isinstance(expression, PointerAdd):
        return array_name(expression.pointer)
    return "array"


BARRIER_NOUNS = {
    "init": "initialisation", "arrive": "arrival at", "drop": "arrival at", "named": "arrival at", "test": "wait for",
    "parity": "wait for", "inval": "end",
}  # fmt: skip

QUOTIENTS = frozenset({"//", "%", "div", "rem"})

# results of fewer magnitude bits than this need no wrapping
WRAP_FREE = {"int64": 63, "int32": 31, "int16": 15}


BINARY_NAMES = {
    "//": "floor_divide", "%": "modulo", "div": "divide_truncating", "rem": "remainder_truncating",
    "**": "power", "<<": "shift_left", ">>": "shift_right", "/": "divide",
    "*": "multiply",
}  # fmt: skip


def _set_once(program: Program) -> set[str]:
    """Variables that are assigned in one place, which no loop repeats."""
    places = Counter(name for s in walk_statements(program.body) for name in assigned_names(s))
    loops = [s for s in walk_statements(program.body) if isinstance(s, Loop)]
    repeated = {name for loop in loops for s in walk_statements([loop]) for name in assigned_names(s)}
    return {name for name, count in places.items() if count == 1} - repeated


class LaneExpressions:
    """Writes the expressions of one program; accesses and effects go to `lines` before they are used."""

    def __init__(
        self, program: Program, types: dict[str, Type], stepwise: bool = False, at_accesses: bool = False
    ) -> None:
        self.stepwise = stepwise
        self.at_accesses = at_accesses
        self.program = program
        self.types = types
        self.liveness = Liveness(program)
        self.lines: list[str] = []
        self.depth = 1
        self.counter = 0
        self.sites: list[Site] = []
        self.exits: dict[str, str] = {}
        self.place: Place | None = None
        self.awaited: set[int] = set()  # the volatile reads on which loops wait, by identity
        self.in_index = False
        self.indexed: Expr | None = None  # what the offset that is written is an offset in
        self.copying = False
        self.remembered: dict[Expr, str] = {}  # quotients in this run of statements, and what holds them
        self.names: dict[str, str] = {}
        self.taken: set[str] = set()
        self.constants: dict[Any, str] = {}
        self.namespace: dict[str, Any] = {
            "add_product": add_product,
            "in_range": in_range,
            "select": select,
            "select_uint64": select_uint64,
            "logical_not": logical_not,
            "wrap_int64": wrap_int64,
            "rejoin": rejoin,
            "unite": unite,
            "load_at": pointers.load,
            "load_element": pointers.load_element,
            "load_sum": pointers.load_sum,
            "store_at": pointers.store,
            "store_element": pointers.store_element,
            "atomic_at": pointers.atomic,
            "flag_at": pointers.flag,
            "align_at": pointers.align,
            "field": rearranged.field,
            "rearranged": rearranged.rearranged,
            "stride_bytes": rearranged.stride_bytes,
            "pointer_difference": pointers.difference,
            "pointer_compare": pointers.compare,
            "null_pointer": pointers.NULL,
            "shared_address": shared_addresses.encode,
        }
        assigned = {name for s in walk_statements(program.body) for name in assigned_names(s)}
        self.fixed = {name for name, _ in program.parameters if name not in assigned}
        self.fixed |= {allocation.name for allocation in program.allocations}
        self.set_once = _set_once(program)
        self.local = {allocation.name for allocation in program.allocations if allocation.space == "local"}

    def synchronised(self, kind: str, site: int, payload: str) -> str:
        """Source of an operation for which threads may have to wait for each other."""
        if self.stepwise:
            return f"yield ({kind!r}, S, {site}, ({payload},))"
        return f"B.{kind}(S, {site}{'' if payload == 'None' else ', ' + payload})"

    def access_point(self, site: int, array: Expr) -> None:
        """A stop before an access to memory that other threads may touch too, where the schedule asks for one."""
        while isinstance(array, (PointerAdd, Slice)):
            array = array.pointer if isinstance(array, PointerAdd) else array.array
        is_local = isinstance(array, Var) and array.name in self.local
        if self.at_accesses and not self.copying and not is_local:
            self.emit(f"yield ('access', S, {site}, None)")

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

    def site(
        self, place: Place, action: str, noun: str, array: Expr | None = None, atomic: bool = False, **more: Any
    ) -> int:
        """Number of a new site."""
        kind: str | None = None
        if array is not None and isinstance(array.type, ArrayType):
            kind = array.type.dtype
        elif array is not None and isinstance(array.type, PointerType):
            kind = array.type.pointee
        name = array_name(array) if array is not None else None
        self.sites.append(Site(place, action, noun, name, atomic, kind, **more))
        return len(self.sites) - 1

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
        if self.in_index and source == "int32" and isinstance(e.value, Binary) and e.value.op in ("+", "-", "*"):
            inner = self.index_value(e.value, self.place, self.indexed)
        else:
            inner = self.expression(e.value)
        if source == target or keeps_number(e):
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
            if e.type in FLOATS or e.type in COMPLEX or e.op == "+"
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

    def exact(self, e: Expr) -> tuple[str, int]:
        """An integer sum or product before it is wrapped, so that a whole tree is wrapped once; and its bits."""
        kind = str(e.type)
        if not (isinstance(e, Binary) and e.op in ("+", "-", "*") and kind in INTEGERS):
            return self.expression(e), bit_width(e)
        (left, left_bits), (right, right_bits) = self.exact(e.left), self.exact(e.right)
        limit = MAGNITUDE_BITS.get(kind, 63)
        if combined_bits(e.op, left_bits, right_bits) > 62:
            if left_bits > limit:
                left, left_bits = self._wrapped(left, kind, left_bits), limit
            if right_bits > limit:
                right, right_bits = self._wrapped(right, kind, right_bits), limit
        return f"({left} {e.op} {right})", combined_bits(e.op, left_bits, right_bits)

    def index_value(self, e: Expr, place: Place | None, array: Expr | None) -> str:
        """An int32 sum or product that indexes memory, an array where one is known; its overflow is reported."""
        source, bits = self.exact(e)
        if bits < WRAP_FREE["int32"] or place is None:
            return self._wrapped(source, "int32", bits)
        site = self.site(place, "32-bit index", "index", array)
        return f"B.index32(S, {site}, {source})"

    def _e_binary(self, e: Binary) -> str:
        kind = str(e.type)
        if e.op in ("+", "-", "*") and kind in INTEGERS:
            source, bits = self.exact(e)
            return self._wrapped(source, kind, bits)
        if e.op == "+" and kind in ("float32", "float64") and isinstance(e.right, Binary) and e.right.op == "*":
            parts = (self.expression(part) for part in (e.left, e.right.left, e.right.right))
            return f"add_product({', '.join(parts)})"
        test = range_test(e)
        if test is not None:
            parts = (self.expression(part) for part in (test[0].left, test[0].right, test[1]))
            return f"in_range({', '.join(parts)})"
        if e.op in QUOTIENTS and kind in INTEGERS and is_free(e):
            return self._quotient(e, kind)
        left, right = self.expression(e.left), self.expression(e.right)
        if e.op in ("and", "or"):
            return f"({left} {'&' if e.op == 'and' else '|'} {right})"
        if (kind in FLOATS and e.op in ("+", "-", "*", "/")) or (kind in COMPLEX and e.op in ("+", "-")):
            return f"({left} {e.op} {right})"
        if kind == "bool" or e.op in ("&", "|", "^"):
            return f"({left} {e.op} {right})"
        return self._called(e, kind, left, right)

    def _called(self, e: Binary, kind: str, left: str, right: str) -> str:
        name = f"{BINARY_NAMES[e.op]}_{kind}"
        self.namespace[name] = intrinsics.binary(e.op, kind)
        return f"{name}({left}, {right})"

    def _quotient(self, e: Binary, kind: str) -> str:
        """An integer quotient or remainder, worked out once for a run of statements that do not change its operands.

        So subscripts that are written alike are one array, which is bounds-checked once.
        """
        if e not in self.remembered:
            left, right = self.expression(e.left), self.expression(e.right)
            power = int(e.right.value) if isinstance(e.right, Const) and kind != "uint64" else 0
            if e.op not in ("//", "%") or power <= 0:
                source = self._called(e, kind, left, right)
            elif power & (power - 1):
                source = f"{left} {e.op} {power}"
            else:
                source = f"{left} >> {power.bit_length() - 1}" if e.op == "//" else f"{left} & {power - 1}"
            result = self.fresh()
            self.emit(f"{result} = {source}")
            self.remembered[e] = result
        return self.remembered[e]

    def forget(self, changed: Iterable[str]) -> None:
        """Variables have been assigned: what was worked out of them no longer holds."""
        names = set(changed)
        stale = [e for e in self.remembered if any(isinstance(p, Var) and p.name in names for p in walk_expressions(e))]
        for e in stale:
            del self.remembered[e]

    def _e_compare(self, e: Compare) -> str:
        return f"({self.expression(e.left)} {e.op} {self.expression(e.right)})"

    def _e_select(self, e: Select) -> str:
        parts = ", ".join(self.expression(part) for part in (e.condition, e.then, e.otherwise))
        return f"{'select_uint64' if e.type == 'uint64' else 'select'}({parts})"

    def _e_intrinsic(self, e: Intrinsic) -> str:
        name = f"{e.name.replace('.', '_')}_{e.operand}"
        self.namespace[name] = implementation(e.name, e.operand, self.place)
        return f"{name}({', '.join(self.expression(a) for a in e.args)})"

    def _e_call(self, e: Call) -> str:
        args = "".join(f"{self.expression(a)}, " for a in e.args)
        result = self.fresh()
        self.emit(f"{result} = B.call(S, function_{e.function}, ({args}))")
        return result

    def lasts(self, e: Expr) -> bool:
        """True for an index of a thread, or a variable from before the loops: the same array time after time."""
        while isinstance(e, Convert) and keeps_number(e):
            e = e.value
        return isinstance(e, Var) and (e.name in INDICES or e.name.startswith(PREFIX) or e.name in self.set_once)

    def _lasting_and_moving(self, e: Expr) -> tuple[Expr | None, Expr | None]:
        """An index as what is the same array time after time, and what is added to it; None for a part it lacks."""
        if self.lasts(e):
            return e, None
        if isinstance(e, Binary) and e.op == "+" and e.type == "int64":
            for one, other in ((e.left, e.right), (e.right, e.left)):
                if self.lasts(one) and isinstance(other, Var) and not self.lasts(other):
                    return one, other
        return None, None

    def _e_load(self, e: Load) -> str:
        array = self.expression(e.array)
        moving = [self._lasting_and_moving(i) for i in e.index]
        if len(moving) == 2 and all(lasts is not None for lasts, _ in moving) and any(moves for _, moves in moving):
            parts = [self.expression(part) if part is not None else "0" for pair in moving for part in pair]
            result = self.fresh()
            site = self.site(e.place, "read of", "read", e.array)
            self.access_point(site, e.array)
            self.emit(f"{result} = {array}.load_moving(S, {site}, {', '.join(parts)})")
            return result
        index = [self.expression(i) for i in e.index]
        method = f"load{len(index)}" if len(index) in (1, 2) else "load"
        result = self.fresh()
        site = self.site(e.place, "read of", "read", e.array)
        self.access_point(site, e.array)
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

    def _e_stride(self, e: Stride) -> str:
        return f"stride_bytes({self.expression(e.array)}, {e.axis})"

    def _e_field(self, e: Field) -> str:
        return f"field({self.expression(e.array)}, {e.name!r})"

    def _e_rearranged(self, e: Rearranged) -> str:
        array = self.expression(e.array)
        extents = "".join(f"{self.expression(part)}, " for part in e.extents)
        assert isinstance(e.type, ArrayType)
        result = self.fresh()
        site = self.site(e.place, f"{e.how} of", e.how, e.array)
        self.emit(f"{result} = rearranged({array}, S, {site}, {e.how!r}, {self.constant(e.type.dtype)}, ({extents}))")
        return result

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
        self.access_point(site, e.array)
        self.emit(f"{result} = {array}.atomic(S, {site}, {e.op!r}, {used}, ({args}), {index})")
        return result

    def offset(self, e: Expr, pointer: Expr) -> str:
        """Source of an offset from a pointer, in which an int32 overflow is reported."""
        outer = self.in_index, self.indexed
        self.in_index, self.indexed = True, pointer
        source = self.expression(e)
        self.in_index, self.indexed = outer
        return source

    def _e_pointeradd(self, e: PointerAdd) -> str:
        return f"{self.expression(e.pointer)}.add({self.offset(e.offset, e.pointer)})"

    def _e_pointerdifference(self, e: PointerDifference) -> str:
        return f"pointer_difference({self.expression(e.left)}, {self.expression(e.right)})"

    def _e_pointercompare(self, e: PointerCompare) -> str:
        return f"pointer_compare({e.op!r}, {self.expression(e.left)}, {self.expression(e.right)})"

    def _e_nullpointer(self, e: NullPointer) -> str:
        return "null_pointer"

    def _e_sharedaddress(self, e: SharedAddress) -> str:
        return f"shared_address({self.expression(e.pointer)})"

    def _e_sharedpointer(self, e: SharedPointer) -> str:
        return f"B.shared_pointer({self.expression(e.address)})"

    def _e_loadat(self, e: LoadAt) -> str:
        awaited = id(e) in self.awaited
        site = self.site(e.place, "read of", "read", e.pointer, flag=e.volatile, awaited=awaited)
        self.place = e.place
        if awaited:
            pointer, result = self.fresh(), self.fresh()
            self.emit(f"{pointer} = {self.expression(e.pointer)}")
            self.access_point(site, e.pointer)
            self.emit(f"{result} = load_at(S, {site}, {pointer}, {str(e.type)!r})")
            self.emit(f"flag_at(S, {site}, {pointer}, {str(e.type)!r})")
            return result
        element = self.element(e.pointer, str(e.type))
        if element is None:
            call = f"load_at(S, {site}, {self.expression(e.pointer)}, {str(e.type)!r})"
        else:
            base, fixed, moving = element
            if fixed and moving:
                call = f"load_sum(S, {site}, {base}, {fixed}, {moving}, {str(e.type)!r})"
            else:
                call = f"load_element(S, {site}, {base}, {fixed or moving}, {str(e.type)!r})"
        result = self.fresh()
        self.access_point(site, e.pointer)
        self.emit(f"{result} = {call}")
        return result

    def element(self, pointer: Expr, dtype: str) -> tuple[str, str, str] | None:
        """A pointer as a base and an index in elements, where every offset is written as a multiple of the size.

        The index is the sum of two: a variable that stays the same array for many accesses, and the rest. Either may
        be empty.
        """
        fixed = ""
        indices: list[str] = []
        while isinstance(pointer, PointerAdd):
            parts = multiples(pointer.offset, ITEM_BYTES[dtype])
            if parts is None:
                return None
            for index, factor in parts:
                if index is None:
                    indices.append(str(factor))
                    continue
                source = self.offset(index, pointer.pointer)
                if factor == 1 and not fixed and self.lasts(index):
                    fixed = source
                else:
                    indices.append(source if factor == 1 else f"{source} * {factor}")
            pointer = pointer.pointer
        return (self.expression(pointer), fixed, " + ".join(indices)) if fixed or indices else None

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
        kind = f"atomic {e.op}" if e.scope != "block" else f"block-scoped atomic {e.op}"
        site = self.site(e.place, f"{kind} on", kind, e.pointer, atomic=True, scope=e.scope)
        self.access_point(site, e.pointer)
        self.emit(f"{result} = atomic_at(S, {site}, {pointer}, {str(e.type)!r}, {e.op!r}, ({args}), {used})")
        return result

    def _e_barrierobject(self, e: BarrierObject) -> str:
        pointer = self.expression(e.pointer)
        args = "".join(self.expression(a) + ", " for a in e.args)
        noun = BARRIER_NOUNS[e.op]
        result = self.fresh()
        site = self.site(e.place, f"{noun} of", noun, e.pointer, atomic=e.op != "init")
        self.emit(f"{result} = B.barrier_objects.run(S, {site}, {e.op!r}, {pointer}, ({args}))")
        return result

    def _e_warp(self, e: Warp) -> str:
        args = "".join(self.expression(a) + ", " for a in e.args)
        kind = str(e.args[1].type) if len(e.args) > 1 else "int64"
        result = self.fresh()
        site = self.site(e.place, e.op, e.op)
        self.emit(f"{result} = {self.synchronised('warp', site, f'{e.op!r}, ({args}), {kind!r}')}")
        return self._wrapped(result, "int32", 32) if e.type == "int32" and not e.op.startswith("shfl") else result

    def _e_blockvote(self, e: BlockVote) -> str:
        predicate = self.expression(e.predicate)
        result = self.fresh()
        site = self.site(e.place, "barrier", "barrier")
        self.emit(f"{result} = {self.synchronised('block_vote', site, f'{e.op!r}, {predicate}')}")
        return result
