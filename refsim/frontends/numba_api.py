"""``numba.cuda`` inside kernels: indices, allocations, barriers, atomics and warp operations."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.dialect import (
    INDICES,
    Allocation,
    ArrayType,
    Atomic,
    Barrier,
    Binary,
    BlockVote,
    Const,
    Convert,
    Expr,
    Fence,
    Intrinsic,
    Load,
    Print,
    Select,
    Stmt,
    Store,
    Var,
    Warp,
    WarpBarrier,
)
from refsim.frontends import numba_fp8, numba_libdevice, numba_scalars, numba_types
from refsim.frontends.numba_names import CudaName, scalar_type
from refsim.frontends.numba_records import record_type
from refsim.frontends.numba_tuples import VECTORS
from refsim.frontends.numba_values import Static, TupleValue, Value, as_tuple, to_expression

if TYPE_CHECKING:
    from refsim.frontends.numba_expressions import Expressions

ATOMICS = {
    "add": "add", "sub": "sub", "max": "max", "min": "min", "nanmax": "nanmax", "nanmin": "nanmin", "and_": "and",
    "or_": "or", "xor": "xor", "inc": "inc", "dec": "dec", "exch": "exch",
}  # fmt: skip
CACHE_HINTS = ("ldca", "ldcg", "ldcs", "ldlu", "ldcv", "stcg", "stcs", "stwb", "stwt")
FENCES = {"cuda.threadfence_block": "block", "cuda.threadfence": "device", "cuda.threadfence_system": "system"}
POINTER_BYTES = 8
DIM3 = ("threadIdx", "blockIdx", "blockDim", "gridDim")
WARP_VALUES = ("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync")
ARGUMENTS = {
    "shared.array": ("shape", "dtype", "alignment"), "local.array": ("shape", "dtype", "alignment"),
    "grid": ("ndim",), "gridsize": ("ndim",), "syncwarp": ("mask",),
}  # fmt: skip


def register(t: Expressions, path: CudaName) -> Value:
    """Value of a dotted path below ``numba.cuda``: an index register, a constant, or the path itself."""
    name = path.removeprefix("cuda.")
    if name in INDICES:
        return Var(name, type=str(t.typed(numba_types.special, str(path))))
    kind = scalar_type(name.rpartition(".")[2].removeprefix("__"))
    if kind is not None:
        return Static(np.dtype(kind))
    if name == "warpsize":
        return Const(t.device.warp_size, type="int32")
    register_name, _, member = name.partition(".")
    if register_name in DIM3:
        if member:
            raise t.wrong(f"cuda.{register_name} has x, y and z, not {member!r}")
        return Static(path)
    return Static(path)


def call(t: Expressions, path: CudaName, node: ast.Call, hint: str | None) -> Value:
    """Translate a call below ``numba.cuda``."""
    name = path.removeprefix("cuda.")
    arguments = _arguments(t, name, node)
    if name.startswith("libdevice."):
        return numba_libdevice.call(t, name.removeprefix("libdevice."), arguments)
    if name in VECTORS:
        return t.vector(name, arguments)
    if name.startswith(("fp16.", "bf16.")):
        module, _, function = name.partition(".")
        return numba_scalars.half_call(t, module, function, arguments)
    if name.startswith("fp8."):
        return numba_fp8.call(t, name.removeprefix("fp8."), arguments)
    if name in CACHE_HINTS:
        return _hinted(t, name, arguments, node)
    if name == "nanosleep":
        t.typed(numba_types.call, str(path), tuple(str(t.scalar(value).type) for value in arguments))
        return Static(None)
    if name in ("grid", "gridsize"):
        return _grid(t, name, t.known_integer(arguments[0], f"the argument of cuda.{name}()"))
    if name in ("shared.array", "local.array"):
        return _allocate(t, name.split(".")[0], arguments, node, hint)
    if name == "const.array_like":
        held = arguments[0].value if isinstance(arguments[0], Static) else None
        if not isinstance(held, np.ndarray):
            raise t.wrong("cuda.const.array_like() takes a NumPy array that the kernel captures")
        return t.constant_array(held, ast.unparse(node.args[0]))
    if name == "cg.this_grid":
        return Static(CudaName("cuda.cg.grid_group"))
    if name == "cg.grid_group.sync":
        t.out.append(Barrier(t.place(), scope="grid"))
        return Static(None)
    if name == "syncthreads":
        t.out.append(Barrier(t.place()))
        return Static(None)
    if name in ("syncthreads_count", "syncthreads_and", "syncthreads_or"):
        predicate = t.scalar(arguments[0])
        t.typed(numba_types.call, str(path), (str(predicate.type),))
        vote = BlockVote(name.split("_")[1], t.convert(predicate, "bool"), t.place(), type="int32")
        return t.temporary(vote)
    if str(path) in FENCES:
        t.out.append(Fence(FENCES[str(path)], t.place()))
        return Static(None)
    if name == "syncwarp":
        mask = t.scalar(arguments[0]) if arguments else Const(t.device.full_mask, type="int64")
        t.out.append(WarpBarrier(t.convert(mask, "int64"), t.place()))
        return Static(None)
    if name.startswith("atomic."):
        return _atomic(t, name.removeprefix("atomic."), arguments, node)
    if name in ("activemask", "lanemask_lt"):
        return t.temporary(Warp(name, (), t.place(), type="int64" if t.device.warp_size > 32 else "int32"))
    if name.endswith("_sync"):
        return _warp(t, name, arguments)
    if name == "selp":
        condition, a, b = (t.scalar(value) for value in arguments)
        signature = t.typed(numba_types.call, "cuda.selp", tuple(str(e.type) for e in (condition, a, b)))
        kind = signature.result
        return Select(t.convert(condition, "bool"), t.convert(a, kind), t.convert(b, kind), type=kind)
    if numba_types.is_known_call(str(path)):
        return t.intrinsic(str(path), [t.scalar(value) for value in arguments])
    raise t.unsupported(f"{path}() is not supported yet")


def _arguments(t: Expressions, name: str, node: ast.Call) -> list[Value]:
    values = [t.value(arg) for arg in node.args]
    if node.keywords:
        order = ARGUMENTS.get(name)
        if order is None:
            raise t.unsupported(f"keyword arguments of cuda.{name}()")
        named = {str(keyword.arg): t.value(keyword.value) for keyword in node.keywords}
        for position in range(len(values), len(order)):
            if order[position] in named:
                values.append(named.pop(order[position]))
        if named:
            raise t.wrong(f"cuda.{name}() has no argument {next(iter(named))!r}")
    return values


def _grid(t: Expressions, name: str, count: int) -> Value:
    if count not in (1, 2, 3):
        raise t.wrong(f"cuda.{name}() takes 1, 2 or 3, not {count}")

    def wide(register_name: str) -> Expr:
        return Convert(Var(register_name, type="int32"), type="int64")

    items: list[Value] = []
    for axis in "xyz"[:count]:
        blocks = wide(f"blockIdx.{axis}" if name == "grid" else f"gridDim.{axis}")
        total: Expr = Binary("*", blocks, wide(f"blockDim.{axis}"), type="int64")
        if name == "grid":
            total = Binary("+", total, wide(f"threadIdx.{axis}"), type="int64")
        items.append(total)
    return items[0] if count == 1 else TupleValue(tuple(items))


def _allocate(t: Expressions, space: str, arguments: list[Value], node: ast.Call, hint: str | None) -> Value:
    if len(arguments) < 2:
        raise t.wrong(f"cuda.{space}.array() takes a shape and a dtype")
    if len(arguments) > 2 and not (isinstance(arguments[2], Static) and arguments[2].value is None):
        alignment = t.known_integer(arguments[2], f"the alignment of cuda.{space}.array()")
        if alignment <= 0 or alignment & (alignment - 1) or alignment % POINTER_BYTES:
            raise t.wrong(f"alignment {alignment}: numba-cuda demands a power of 2 and a multiple of {POINTER_BYTES}")
    shape_value = arguments[0]
    if isinstance(shape_value, Static) and isinstance(shape_value.value, (tuple, list)):
        shape_value = TupleValue(tuple(Static(item) for item in shape_value.value))
    items = shape_value.items if isinstance(shape_value, TupleValue) else (shape_value,)
    shape = tuple(t.known_integer(item, f"an extent of cuda.{space}.array()") for item in items)
    given = arguments[1].value if isinstance(arguments[1], Static) else None
    dtype = scalar_type(given) or record_type(given)
    if dtype is None:
        raise t.unsupported(f"cuda.{space}.array() of dtype {ast.unparse(node)}")
    dynamic = space == "shared" and shape == (0,)
    if any(extent < 0 for extent in shape) or (0 in shape and not dynamic):
        raise t.wrong(f"cuda.{space}.array() of shape {shape}")
    place = t.place()
    key = (place.file, place.line, node.col_offset, shape, dtype)
    if key not in t.allocations:
        name = f"{hint or space}@{len(t.allocations)}"
        t.allocations[key] = Allocation(name, space, dtype, shape, dynamic)
    allocation = t.allocations[key]
    return Var(allocation.name, type=ArrayType(dtype, len(shape)))


def _target(t: Expressions, arguments: list[Value], node: ast.Call) -> tuple[Expr, tuple[Expr, ...]]:
    array = arguments[0]
    if not isinstance(array, Expr) or not isinstance(array.type, ArrayType):
        raise t.wrong(f"{ast.unparse(node)}: the first argument must be an array")
    items = arguments[1].items if isinstance(arguments[1], TupleValue) else (arguments[1],)
    if len(items) != array.type.ndim:
        raise t.wrong(f"{ast.unparse(node)}: {len(items)} subscripts for an array of {array.type.ndim} dimensions")
    return array, tuple(t.index(item) for item in items)


def _hinted(t: Expressions, name: str, arguments: list[Value], node: ast.Call) -> Value:
    """A load or a store with a cache hint: where the value stays in a cache is not simulated."""
    store = name.startswith("st")
    if len(arguments) != 2 + store:
        raise t.wrong(f"{ast.unparse(node)}: cuda.{name}() takes {2 + store} arguments")
    array, index = _target(t, arguments, node)
    assert isinstance(array.type, ArrayType)
    dtype = array.type.dtype
    if "int" not in dtype and dtype not in ("float16", "float32", "float64"):
        raise t.wrong(f"cuda.{name}() takes arrays of integers or floats, not of {dtype}")
    if not store:
        return Load(array, index, t.place(), type=dtype)
    value = t.scalar(arguments[2])
    t.typed(numba_types.setitem, dtype, str(value.type))
    t.out.append(Store(array, index, t.convert(value, dtype), t.place()))
    return Static(None)


def _atomic(t: Expressions, op: str, arguments: list[Value], node: ast.Call) -> Value:
    if op == "compare_and_swap":
        arguments = [arguments[0], Static(0), *arguments[1:]]
    if op not in ATOMICS and op not in ("cas", "compare_and_swap"):
        raise t.unsupported(f"cuda.atomic.{op}() is not supported yet")
    needed = 4 if op in ("cas", "compare_and_swap") else 3
    if len(arguments) != needed:
        raise t.wrong(f"{ast.unparse(node)}: wrong number of arguments")
    array, index = _target(t, arguments, node)
    assert isinstance(array.type, ArrayType)
    signature = t.typed(numba_types.atomic, op, array.type.dtype)
    values = tuple(t.convert(t.scalar(value), kind) for value, kind in zip(arguments[2:], signature.args, strict=True))
    operation = Atomic(ATOMICS.get(op, "cas"), array, index, values, t.place(), type=signature.result)
    if t.statement_value is node:
        return operation
    return t.temporary(operation)


def _warp(t: Expressions, name: str, arguments: list[Value]) -> Value:
    args = [t.scalar(value) for value in arguments]
    signature = t.typed(numba_types.call, f"cuda.{name}", tuple(str(arg.type) for arg in args))
    converted = tuple(t.convert(arg, kind) for arg, kind in zip(args, signature.args, strict=True))
    mask: Expr = t.convert(converted[0], "int64")
    held = tuple(t.temporary(arg) for arg in (mask, *converted[1:]))
    results = signature.results
    if name == "match_all_sync":
        return TupleValue(
            tuple(
                t.temporary(Warp(f"{name}.{part}", held, t.place(), type=kind))
                for part, kind in zip(("mask", "pred"), results, strict=True)
            )
        )
    if name in WARP_VALUES:
        results = (str(held[1].type),)
    return t.temporary(Warp(name, held, t.place(), type=results[0]))


def print_statement(t: Expressions, node: ast.Call) -> Stmt:
    """``print(...)`` of a kernel."""
    values = [_printable(t, t.value(arg)) for arg in node.args]
    if not any(isinstance(value, TupleValue) for value in values):
        return Print(tuple(_part(t, value, arg) for value, arg in zip(values, node.args, strict=True)), t.place())
    numbers: list[Expr | str] = []
    texts = [_format(t, value, arg, numbers) for value, arg in zip(values, node.args, strict=True)]
    return Print((" ".join(texts) + "\n", *numbers), t.place(), printf=True)


def _printable(t: Expressions, value: Value) -> Value:
    """A value as it is printed: ``cuda.threadIdx`` is a tuple."""
    if isinstance(value, Static) and isinstance(value.value, CudaName) and value.value.removeprefix("cuda.") in DIM3:
        return TupleValue(tuple(register(t, CudaName(f"{value.value}.{axis}")) for axis in "xyz"))
    return as_tuple(value) or value


def _part(t: Expressions, value: Value, node: ast.expr) -> Expr | str:
    if isinstance(value, Static) and isinstance(value.value, str) and not isinstance(value.value, CudaName):
        return value.value
    expression = to_expression(value)
    if expression is None or isinstance(expression.type, ArrayType):
        raise t.unsupported(f"print() of {ast.unparse(node)}: numbers, strings and tuples of them are printed")
    return expression


def _format(t: Expressions, value: Value, node: ast.expr, numbers: list[Expr | str]) -> str:
    """Text of a value with ``%s`` for every number in it."""
    if isinstance(value, TupleValue):
        parts = [_format(t, item, node, numbers) for item in value.items]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    part = _part(t, value, node)
    if isinstance(part, str):
        return part.replace("%", "%%")
    numbers.append(part)
    return "%s"


__all__: list[Any] = ["Intrinsic", "call", "print_statement", "register"]
