"""Matrix fragments of ``nvcuda::wmma``: their loads and stores lane by lane, and their products."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refsim.dialect import ITEM_BYTES, Align, Expr, Fragment, LoadAt, MatrixMultiply, PointerType, StoreAt
from refsim.engine.fragments import positions
from refsim.engine.matrix_units import UNITS
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.intrinsics.memory import pointee
from refsim.frontends.cuda_cpp.intrinsics.table import Call, Handler, known
from refsim.frontends.cuda_cpp.intrinsics.warps import lane_number
from refsim.frontends.cuda_cpp.tree import Node
from refsim.frontends.cuda_cpp.types import Scalar
from refsim.frontends.cuda_cpp.values import Value

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.declarations import Declarations

# CUDA C++ Programming Guide, "Warp Matrix Functions": the matrix is aligned to 256 bits, its rows to 128
MATRIX_BYTES, ROW_BYTES = 32, 16
CAPABILITY = {"float16": 70, "int8": 75, "uint8": 75, "bfloat16": 80, "float32": 80, "float64": 80}
ELEMENT = {"float32": "tfloat32"}  # of a and b


def _extents(role: str, m: int, n: int, k: int) -> tuple[int, int]:
    return {"a": (m, k), "b": (k, n), "c": (m, n)}[role]


def _check_unit(t: Declarations, call: Call, dtype: str) -> None:
    name = t.device.name
    unit = UNITS.get(name)
    if unit is None:
        raise t.unsupported(f"nvcuda::wmma: device {name} has no matrix unit that refsim models", call.node)
    if unit.capability < CAPABILITY[dtype]:
        what = f"nvcuda::wmma on {dtype} needs compute capability {CAPABILITY[dtype]} or later"
        raise t.unsupported(f"{what}; {name} has {unit.capability}", call.node)


def _dtype(t: Declarations, node: Node) -> str:
    kind = pointee(t, node)
    assert isinstance(kind, Scalar)
    return kind.dtype


def _places(t: Declarations, call: Call, dtype: str) -> tuple[list[tuple[Expr, Expr]], int, bool]:
    """Row and column of each different element of this lane, how many it holds, and whether rows are contiguous."""
    role = chr(known(t, call.arguments[3], "the role", call))
    m, n, k, count = (known(t, argument, "the shape", call) for argument in call.arguments[4:8])
    by_rows = bool(known(t, call.arguments[8], "the layout", call))
    rows, columns = _extents(role, m, n, k)
    where = positions(Fragment(role, ELEMENT.get(dtype, dtype) if role != "c" else dtype, rows, columns, 1))
    lane = folding.convert(lane_number(t), "int64")
    group = t.temporary(folding.binary(">>", lane, folding.integer(2, "int64")))
    thread = t.temporary(folding.binary("&", lane, folding.integer(3, "int64")))

    def spelled(lanes: list[int]) -> Expr:
        """A coordinate, which is linear in the lane's group and its place in the group."""
        value: Expr = folding.integer(lanes[0], "int64")
        for part, step in ((group, lanes[4] - lanes[0]), (thread, lanes[1] - lanes[0])):
            if step:
                value = folding.binary("+", folding.binary("*", part, folding.integer(step, "int64")), value)
        return value

    pairs = [(spelled(row.tolist()), spelled(column.tolist())) for row, column in zip(where.row, where.column)]
    return pairs, count, by_rows


def _addresses(t: Declarations, call: Call, dtype: str) -> tuple[list[Expr], int]:
    """Pointers to the different elements of this lane, and how many elements it holds."""
    size = ITEM_BYTES[dtype]
    matrix = t.temporary(t.expression(call.arguments[1], call.node))
    step = t.temporary(folding.convert(t.expression(call.arguments[2], call.node), "int64"))
    pairs, count, by_rows = _places(t, call, dtype)
    place = t.place(call.node)
    t.out.append(Align(matrix, MATRIX_BYTES, place))
    row = folding.advance(matrix, folding.binary("*", step, folding.integer(size, "int64")))
    t.out.append(Align(row, ROW_BYTES, place))
    pointers = []
    for row_number, column in pairs:
        outer, inner = (row_number, column) if by_rows else (column, row_number)
        index = t.temporary(folding.binary("+", folding.binary("*", outer, step), inner))
        pointers.append(folding.advance(matrix, folding.binary("*", index, folding.integer(size, "int64"))))
    return pointers, count


def _element(t: Declarations, base: Expr, number: int, dtype: str) -> Expr:
    """Pointer to an element of the fragment's array."""
    return folding.advance(base, number * ITEM_BYTES[dtype], PointerType(dtype))


def _array(t: Declarations, value: Value, call: Call) -> Expr:
    return t.temporary(t.expression(value, call.node))


def _load(t: Declarations, call: Call) -> Value:
    dtype = _dtype(t, call.nodes[0])
    held = _array(t, call.arguments[0], call)
    pointers, count = _addresses(t, call, dtype)
    place = t.place(call.node)
    values = [t.temporary(LoadAt(pointer, place, type=dtype)) for pointer in pointers]
    for number in range(count):
        t.out.append(StoreAt(_element(t, held, number, dtype), values[number % len(values)], place))
    return None


def _store(t: Declarations, call: Call) -> Value:
    dtype = _dtype(t, call.nodes[0])
    held = _array(t, call.arguments[0], call)
    pointers, _ = _addresses(t, call, dtype)
    place = t.place(call.node)
    for number, pointer in enumerate(pointers):
        value = t.temporary(LoadAt(_element(t, held, number, dtype), place, type=dtype))
        t.out.append(StoreAt(pointer, value, place))
    return None


def _multiply(t: Declarations, call: Call) -> Value:
    m, n, k = (known(t, argument, "the shape", call) for argument in call.arguments[4:7])
    saturate = bool(known(t, call.arguments[7], "satf", call))
    d_type, a_type, b_type, c_type = (_dtype(t, node) for node in call.nodes[:4])
    _check_unit(t, call, a_type)
    if c_type != d_type:
        raise t.unsupported(f"mma_sync() of a {d_type} result from a {c_type} accumulator is not supported", call.node)
    target, *sources = (_array(t, value, call) for value in call.arguments[:4])
    kinds = (ELEMENT.get(a_type, a_type), ELEMENT.get(b_type, b_type), c_type, d_type)
    of = [Fragment(role, kind, *_extents(role, m, n, k), 1) for role, kind in zip("abcc", kinds)]
    place = t.place(call.node)
    registers = []
    for base, fragment, dtype in zip(sources, of, (a_type, b_type, c_type)):
        slots = range(len(positions(fragment).row))
        loads = [LoadAt(_element(t, base, slot, dtype), place, type=dtype) for slot in slots]
        registers.append(tuple(t.temporary(load) for load in loads))
    results = [t.variable("d@", d_type) for _ in positions(of[3]).row]
    t.stable.update(result.name for result in results)
    a, b, c = registers
    names = tuple(result.name for result in results)
    t.out.append(MatrixMultiply("mma_sync", names, (of[0], of[1], of[2], of[3]), a, b, c, saturate, place))
    for number, result in enumerate(results):
        t.out.append(StoreAt(_element(t, target, number, d_type), result, place))
    return None


TABLE: dict[str, Handler] = {
    "__refsim_wmma_load": _load,
    "__refsim_wmma_store": _store,
    "__refsim_wmma_mma": _multiply,
}
