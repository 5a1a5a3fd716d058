"""Arguments of a launch: their types, and arrays as views of memories."""

from __future__ import annotations

import ctypes
import math
from enum import Enum
from typing import Any

import numpy as np

from refsim.array_arguments import require_plain_memory
from refsim.checks.global_shadow import GlobalShadow
from refsim.dialect import ITEM_BYTES, ArrayType, KnownType, NamedTupleType, PointerType, RecordType, Type, dtype_name
from refsim.engine.buffers import initialized_elements
from refsim.engine.codegen import LaneCode
from refsim.engine.memory import GlobalMemory
from refsim.engine.pointers import NULL, Pointer
from refsim.engine.run import Run
from refsim.engine.views import View


def argument_type(value: Any) -> Any:
    """Dialect type of a kernel argument: a scalar type, an `ArrayType`, None, or a tuple of types."""
    if isinstance(value, np.ndarray):
        if not value.dtype.isnative or type(value) is not np.ndarray:
            require_plain_memory(value, "array argument")
        name = dtype_name(value.dtype)
        if name not in ITEM_BYTES and not isinstance(name, RecordType):
            raise TypeError(
                f"array argument of dtype {value.dtype} is not supported; use one of {', '.join(ITEM_BYTES)}"
            )
        return ArrayType(name, value.ndim)
    if isinstance(value, np.void) and value.dtype.names is not None:
        return ArrayType(dtype_name(value.dtype), 0)
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, Enum):
        return KnownType(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise TypeError(f"integer argument {value} does not fit 64 bits")
        return "int64" if value < 2**63 else "uint64"
    if isinstance(value, (float, complex)) and not isinstance(value, np.generic):
        return "float64" if isinstance(value, float) else "complex128"
    if isinstance(value, np.generic) and value.dtype.name in ITEM_BYTES:
        return value.dtype.name
    if value is None:
        return None
    if isinstance(value, tuple):
        items = tuple(argument_type(item) for item in value)
        names = getattr(value, "_fields", None)
        return items if names is None else NamedTupleType(names, items)
    raise TypeError(
        f"kernel argument {value!r} of type {type(value).__name__}: "
        "expected a NumPy array, a number, None or a tuple of these"
    )


def flat_arguments(values: tuple[Any, ...], names: tuple[tuple[str, Type | None], ...]) -> list[tuple[str, Any]]:
    """Arguments as the program takes them: tuples spread out, None dropped."""
    flat: list[Any] = []

    def visit(value: Any) -> None:
        if isinstance(value, tuple):
            for item in value:
                visit(item)
        else:
            flat.append(value)

    for value in values:
        visit(value)
    return [(name, value) for (name, kind), value in zip(names, flat, strict=True) if kind is not None]


def lane_scalar(value: Any, kind: Type) -> Any:
    """A scalar argument as the engine carries it."""
    if isinstance(kind, PointerType):
        if value is None or (isinstance(value, int) and value == 0):
            return NULL
        raise TypeError(f"a pointer parameter takes a NumPy array or None, not {value!r}")
    name = str(kind)
    if "float" in name or "complex" in name:
        return np.dtype(name).type(value)
    return bool(value) if name == "bool" else int(value)


def views_of(
    run: Run, arguments: list[tuple[str, Any]], code: LaneCode
) -> tuple[dict[str, Any], list[tuple[Any, Any]]]:
    """A view for every array argument; arrays that overlap share one memory.

    Returns the views by parameter name, and (copy, original) pairs to write back after the launch for arrays
    whose layout the engine cannot address.
    """
    arrays: list[tuple[str, Any]] = []
    write_back: list[tuple[Any, Any]] = []
    for name, value in arguments:
        if isinstance(value, np.void):
            write_back.append((np.array(value), value))
            value = write_back[-1][0]
        if isinstance(value, np.ndarray):
            if name in code.written and not value.flags.writeable:
                raise TypeError(f"the array argument {name} is read-only, and {code.program.name}() writes to it")
            item = value.dtype.itemsize
            unaligned = value.ctypes.data % item if value.dtype.names is None else 0
            odd = any(stride % item for stride in value.strides) or not value.dtype.isnative or unaligned
            if odd:
                copy = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("="))
                write_back.append((copy, value))
                value = copy
            arrays.append((name, value))
    spans = sorted((np.lib.array_utils.byte_bounds(a) if a.size else (0, 0), i) for i, (_, a) in enumerate(arrays))
    groups: list[list[int]] = []
    end = -1
    for (low, high), position in spans:
        if low >= end or not arrays[position][1].size:
            groups.append([])
        groups[-1].append(position)
        end = max(end, high)
    views: dict[str, Any] = {}
    for group in groups:
        _add_views(run, [arrays[position] for position in group], code, views)
    return views, write_back


def _add_views(run: Run, arrays: list[tuple[str, Any]], code: LaneCode, views: dict[str, Any]) -> None:
    bounds = [np.lib.array_utils.byte_bounds(array) if array.size else (0, 0) for _, array in arrays]
    low, high = min(b[0] for b in bounds), max(b[1] for b in bounds)
    sizes = [code.words.get(name, array.dtype.itemsize) for name, array in arrays]
    items = (granule_of(array.dtype) for _, array in arrays)
    granule = math.gcd(*sizes, *items, *(b[0] - low for b in bounds))
    writeable = any(array.flags.writeable for _, array in arrays)
    raw = _bytes_of(arrays, low, high)
    raw.flags.writeable = writeable
    title = " / ".join(name for name, _ in arrays)
    if run.counting is None:
        memory = GlobalMemory(title, high - low, granule, low, raw)
    else:
        lowest = min(zip(bounds, (array for _, array in arrays), strict=True), key=lambda pair: pair[0])[1]
        constant = arrays[0][0] in code.program.constants
        memory = run.counting.global_memory(title, high - low, granule, low, raw, lowest, constant)
    run.memories.append(memory)
    writes = any(name in code.written for name, _ in arrays)
    reads = any(name in code.read for name, _ in arrays)
    known = initialized_elements(arrays, low, high, granule) if run.initcheck else None
    memory.written = writes
    races = writes and run.racecheck and any(name in code.plain for name, _ in arrays)
    if races or known is not None:
        memory.shadow = GlobalShadow(run, (high - low) // granule, known, races, reads)
    kinds = dict(code.program.parameters)
    for (name, array), (start, stop) in zip(arrays, bounds, strict=True):
        if isinstance(kinds.get(name), PointerType):
            views[name] = Pointer(memory, (array.ctypes.data if array.size else start) - low)
            continue
        item = array.dtype.itemsize
        flat = raw[start - low : stop - low].view(array.dtype)
        strides = tuple(stride // item for stride in array.strides)
        offset = sum(-stride * (n - 1) for stride, n in zip(strides, array.shape, strict=True) if stride < 0)
        views[name] = View(
            memory, flat, dtype_name(array.dtype), offset if array.size else 0, array.shape, strides,
            code.program.wraps_negative, (start - low) // granule,
        )  # fmt: skip


def granule_of(dtype: np.dtype[Any]) -> int:
    """Bytes of an element, or the largest number that divides sizes and offsets of all fields of a record."""
    if dtype.subdtype is not None:
        return granule_of(dtype.subdtype[0])
    if dtype.names is None or dtype.fields is None:
        return dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize  # the parts of a complex number
    fields = dtype.fields.values()
    return math.gcd(dtype.itemsize, *(field[1] for field in fields), *(granule_of(field[0]) for field in fields))


def _bytes_of(arrays: list[tuple[str, Any]], low: int, high: int) -> Any:
    """The bytes from one address to another, which the arrays span, as they are in memory."""
    first = arrays[0][1]
    if len(arrays) == 1 and first.flags.c_contiguous:
        return first.view(np.ndarray).reshape(-1).view(np.uint8)
    if high == low:
        return np.empty(0, np.uint8)
    return np.asarray((ctypes.c_uint8 * (high - low)).from_address(low))
