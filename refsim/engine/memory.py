"""Memory spaces and array views: where a subscript becomes an address, is bounds-checked and served.

A `View` is what a kernel calls an array: a memory, an offset, extents and strides in elements. It turns
subscripts into addresses and hands those to its memory (`GlobalMemory`, `SharedMemory`, `LocalMemory`),
which reads, writes and informs its shadow, if it has one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import ml_dtypes  # noqa: F401 (makes bfloat16 and the 8-bit floats NumPy types)
import numpy as np

from refsim.dialect import INTEGERS
from refsim.engine.joins import rejoin_one
from refsim.engine.lanes import Array, LaneSet
from refsim.errors import UnsupportedError

if TYPE_CHECKING:
    from refsim.engine.batch import Batch

U64 = np.dtype(np.uint64)
NARROW = frozenset(INTEGERS - {"int64", "uint64"})


def lane_dtype(name: str) -> np.dtype[Any]:
    """NumPy type that carries a scalar type in lanes: narrow integers travel as int64."""
    return np.dtype(np.int64) if name in NARROW else np.dtype(name)


def poison(dtype: str) -> Any:
    """What an access that must not happen reads: NaN, or a conspicuous integer."""
    if dtype == "bool":
        return False
    if dtype.startswith("float"):
        return np.dtype(dtype).type(np.nan)
    bits = np.iinfo(dtype)
    return int(0x5A5A5A5A5A5A5A5A % (int(bits.max) + 1))


def to_lane(raw: Any, dtype: str) -> Any:
    """An element or an array of elements as the engine carries it."""
    if isinstance(raw, np.ndarray):
        return raw.astype(np.int64) if dtype in NARROW else raw
    return raw if dtype.startswith("float") else raw.item()


@cache
def bitcast(source: str, target: str) -> Callable[[Any], Any]:
    """Function of a lane value that reads its bits as another scalar type of the same size."""
    from_dtype, to_dtype = np.dtype(source), np.dtype(target)

    def cast(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            raw = value.astype(from_dtype) if source in NARROW else value
            return to_lane(np.ascontiguousarray(raw).view(to_dtype), target)
        return to_lane(np.array([value]).astype(from_dtype).view(to_dtype)[0], target)

    return cast


class Memory(Protocol):
    """A memory space as a view uses it; addresses are in elements of the view's type."""

    name: str
    space: str

    def read(self, lanes: LaneSet, view: View, address: Any, site: int) -> Any:
        """Values at the addresses, of the broadcast shape of the addresses."""

    def write(self, lanes: LaneSet, view: View, address: Any, value: Any, site: int) -> None:
        """Store one value per lane."""

    def atomic(
        self, lanes: LaneSet, view: View, address: Any, op: str, args: tuple[Any, ...], site: int, used: bool
    ) -> Any:
        """Read-modify-write per lane in lane order; the old values if they are used."""


class View:
    """An array as a kernel sees it.

    `offset`, `shape` and `strides` count elements; offset and shape may be lane values (a slice whose start
    depends on the thread), strides never are. `data` begins `base` granules into its memory.
    """

    __slots__ = ("base", "checked", "data", "dtype", "memory", "offset", "shape", "strides", "varies", "wraps")

    def __init__(
        self,
        memory: Any,
        data: Array,
        dtype: str,
        offset: Any,
        shape: tuple[Any, ...],
        strides: tuple[int, ...],
        wraps: bool,
        base: int = 0,
    ) -> None:
        self.memory = memory
        self.base = base
        self.data = data
        self.dtype = dtype
        self.offset = offset
        self.shape = shape
        self.strides = strides
        self.wraps = wraps
        self.varies = isinstance(offset, np.ndarray) or any(isinstance(n, np.ndarray) for n in shape)
        self.checked: list[Any] = [None] * len(shape)

    # --------------------------------------------------------------------------------- lane structure

    def parts(self) -> tuple[Any, ...]:
        """The parts that may vary between lanes: offset and extents."""
        return (self.offset, *self.shape)

    def with_parts(self, parts: tuple[Any, ...]) -> View:
        """The same view with other offset and extents."""
        return View(self.memory, self.data, self.dtype, parts[0], tuple(parts[1:]), self.strides, self.wraps, self.base)

    def cut_to(self, lanes: LaneSet) -> View:
        """Cut to a subset of lanes."""
        return self.with_parts(tuple(lanes.cut(part) for part in self.parts())) if self.varies else self

    def alike(self, views: list[View]) -> list[View]:
        """The views, which can be joined only if they differ in offset and extents alone."""
        for other in views:
            if other.memory is not self.memory or other.strides != self.strides:
                names = f"{self.memory.name!r} in some threads and {other.memory.name!r} in others"
                raise UnsupportedError(f"an array variable stands for {names}")
        return views

    # -------------------------------------------------------------------------------------- addresses

    def _outside(self, axis: int, i: Any) -> bool:
        """True if an index needs attention: negative or past the end in some lane."""
        n = self.shape[axis]
        if type(i) is int and type(n) is int:
            return not 0 <= i < n
        if type(n) is int and isinstance(i, np.ndarray):
            if i is self.checked[axis]:
                return False
            if int(i.view(U64).max()) >= n:
                return True
            self.checked[axis] = i
            return False
        return bool(np.any((i < 0) | (i >= n)))

    def load(self, lanes: LaneSet, site: int, *index: Any) -> Any:
        """Read one element per lane."""
        address = self.offset
        for axis, i in enumerate(index):
            if self._outside(axis, i):
                return self._load_checked(lanes, site, index)
            address = address + i * self.strides[axis]
        return self.memory.read(lanes, self, address, site)

    def load1(self, lanes: LaneSet, site: int, i: Any) -> Any:
        """`load` for one dimension."""
        if self._outside(0, i):
            return self._load_checked(lanes, site, (i,))
        stride = self.strides[0]
        if stride != 1:
            i = i * stride
        offset = self.offset
        return self.memory.read(lanes, self, i if type(offset) is int and offset == 0 else i + offset, site)

    def load2(self, lanes: LaneSet, site: int, i: Any, j: Any) -> Any:
        """`load` for two dimensions."""
        if self._outside(0, i) or self._outside(1, j):
            return self._load_checked(lanes, site, (i, j))
        return self.memory.read(lanes, self, self._address2(i, j), site)

    def _address2(self, i: Any, j: Any) -> Any:
        si, sj = self.strides
        address = i * si + (j if sj == 1 else j * sj)
        offset = self.offset
        return address if type(offset) is int and offset == 0 else address + offset

    def store(self, lanes: LaneSet, site: int, value: Any, *index: Any) -> None:
        """Write one element per lane."""
        address = self.offset
        for axis, i in enumerate(index):
            if self._outside(axis, i):
                self._store_checked(lanes, site, value, index)
                return
            address = address + i * self.strides[axis]
        self.memory.write(lanes, self, address, value, site)

    def store1(self, lanes: LaneSet, site: int, value: Any, i: Any) -> None:
        """`store` for one dimension."""
        if self._outside(0, i):
            self._store_checked(lanes, site, value, (i,))
        else:
            self.memory.write(lanes, self, i * self.strides[0] + self.offset, value, site)

    def store2(self, lanes: LaneSet, site: int, value: Any, i: Any, j: Any) -> None:
        """`store` for two dimensions."""
        if self._outside(0, i) or self._outside(1, j):
            self._store_checked(lanes, site, value, (i, j))
        else:
            self.memory.write(lanes, self, self._address2(i, j), value, site)

    def atomic(self, lanes: LaneSet, site: int, op: str, used: bool, args: tuple[Any, ...], *index: Any) -> Any:
        """Atomic read-modify-write of one element per lane; the old values if used."""
        inside, fixed, good = self._inside(lanes, site, index)
        if good is None:
            return poison(self.dtype)
        address = self.offset
        if good is not lanes and self.varies:
            address = good.cut(address)
        for axis, i in enumerate(fixed):
            address = address + i * self.strides[axis]
        if good is lanes:
            return self.memory.atomic(lanes, self, address, op, args, site, used)
        old = self.memory.atomic(good, self, address, op, tuple(good.cut(a) for a in args), site, used)
        assert inside is not None
        return rejoin_one(lanes, good, old, inside, poison(self.dtype), lane_dtype(self.dtype)) if used else None

    # ------------------------------------------------------------------------- accesses that leave the array

    def _inside(
        self, lanes: LaneSet, site: int, index: tuple[Any, ...]
    ) -> tuple[LaneSet | None, tuple[Any, ...], LaneSet | None]:
        """Wrap negative indices where the language does, report lanes outside.

        Returns the lanes outside, the index cut to the lanes inside, and the lanes inside.
        """
        fixed: list[Any] = []
        outside: Any = False
        for axis, i in enumerate(index):
            n = self.shape[axis]
            if self.wraps and np.any(np.less(i, 0)):
                lanes.batch.note_wrapped(lanes, self, index, i < 0, site)
                i = np.where(i < 0, i + n, i) if isinstance(i, np.ndarray) or isinstance(n, np.ndarray) else i + n
            fixed.append(i)
            bad = (i < 0) | (i >= n) if isinstance(i, np.ndarray) or isinstance(n, np.ndarray) else not 0 <= i < n
            outside = outside | bad
        if not np.any(outside):
            return None, tuple(fixed), lanes
        bad_lanes, good = lanes.split(outside)
        assert bad_lanes is not None
        lanes.batch.report_outside(lanes, self, index, outside, site)
        if good is None:
            return bad_lanes, (), None
        return bad_lanes, tuple(good.cut(i) for i in fixed), good

    def _load_checked(self, lanes: LaneSet, site: int, index: tuple[Any, ...]) -> Any:
        outside, fixed, good = self._inside(lanes, site, index)
        if good is None:
            return poison(self.dtype)
        view = self if good is lanes else self.cut_to(good)
        address = view.offset
        for i, stride in zip(fixed, self.strides, strict=True):
            address = address + i * stride
        value = self.memory.read(good, view, address, site)
        if good is lanes:
            return value
        assert outside is not None
        return rejoin_one(lanes, good, value, outside, poison(self.dtype), lane_dtype(self.dtype))

    def _store_checked(self, lanes: LaneSet, site: int, value: Any, index: tuple[Any, ...]) -> None:
        _, fixed, good = self._inside(lanes, site, index)
        if good is None:
            return
        view = self if good is lanes else self.cut_to(good)
        address = view.offset
        for i, stride in zip(fixed, self.strides, strict=True):
            address = address + i * stride
        self.memory.write(good, view, address, value if good is lanes else good.cut(value), site)

    # ----------------------------------------------------------------------------------------- slices

    def slice(self, lanes: LaneSet, site: int, items: tuple[Any, ...]) -> View:
        """A view of part of the array. An item is an index, or (start, stop, step) with None for absent parts."""
        offset: Any = self.offset
        shape: list[Any] = []
        strides: list[int] = []
        for axis, item in enumerate(items):
            n, stride = self.shape[axis], self.strides[axis]
            if not isinstance(item, tuple):
                if self._outside(axis, item):
                    wrapped = (
                        np.where(item < 0, item + n, item) if isinstance(item, np.ndarray) else item + n * (item < 0)
                    )
                    outside = (wrapped < 0) | (wrapped >= n)
                    if np.any(outside):
                        lanes.batch.report_outside(lanes, self, items, outside, site)
                        wrapped = np.where(outside, 0, wrapped) if isinstance(wrapped, np.ndarray) else 0
                    item = wrapped
                offset = offset + item * stride
                continue
            start, stop, step = item
            step = 1 if step is None else step
            if type(step) is not int or step == 0:
                raise UnsupportedError("a slice step must be the same non-zero number in every thread")
            begin, extent = _slice_bounds(start, stop, step, n)
            offset = offset + begin * stride
            shape.append(extent)
            strides.append(stride * step)
        for axis in range(len(items), len(self.shape)):
            shape.append(self.shape[axis])
            strides.append(self.strides[axis])
        return View(self.memory, self.data, self.dtype, offset, tuple(shape), tuple(strides), self.wraps, self.base)

    def index_of(self, address: int, lane_part: Any = None) -> tuple[int, ...]:
        """Subscript of the element at an address, for messages."""
        rest = int(address) - int(np.asarray(self.offset).reshape(-1)[0])
        order = sorted(range(len(self.shape)), key=lambda axis: -abs(self.strides[axis]))
        index = [0] * len(self.shape)
        for axis in order:
            stride = self.strides[axis]
            if stride < 0:
                last = int(np.max(self.shape[axis])) - 1
                rest += -stride * last
                index[axis] = last - rest // -stride
                rest %= -stride
            elif stride > 0:
                index[axis] = rest // stride
                rest %= stride
        return tuple(index)


def _slice_bounds(start: Any, stop: Any, step: int, n: Any) -> tuple[Any, Any]:
    """First element and number of elements of a slice, by Python's rules, for scalars or lane arrays."""
    scalar = all(x is None or type(x) is int for x in (start, stop)) and type(n) is int
    if scalar:
        spread = range(*slice(start, stop, step).indices(n))
        return (spread.start if len(spread) else 0), len(spread)
    low, high = (0, n) if step > 0 else (-1, n - 1)

    def clip(x: Any, absent: Any) -> Any:
        if x is None:
            return absent
        return np.clip(np.where(np.asarray(x) < 0, x + n, x), low, high)

    begin = clip(start, low if step > 0 else high)
    end = clip(stop, high if step > 0 else low)
    extent = np.maximum(0, (end - begin + (step - 1 if step > 0 else step + 1)) // step)
    return np.where(extent > 0, begin, 0), extent


class GlobalMemory:
    """One allocation of device memory, shared by all arguments that overlap in it.

    `shadow` is None where nothing can go wrong that a shadow would see: read-only and initialised, or
    unchecked. Addresses of a view are scaled to the shadow's granules.
    """

    space = "global"

    word = None  # bytes can be read as any type

    def __init__(self, name: str, bytes_: int, granule: int, address: int = 0, raw: Any = None) -> None:
        self.name = name
        self.bytes = bytes_
        self.granule = granule
        self.address = address
        self.raw = raw
        self.shadow: Any = None
        self._windows: dict[str, View] = {}

    def window(self, dtype: str) -> View:
        """The whole allocation as a one-dimensional array of a type, for accesses through pointers."""
        if dtype not in self._windows:
            item = np.dtype(dtype)
            count = self.bytes // item.itemsize
            data = self.raw[: count * item.itemsize].view(item)
            self._windows[dtype] = View(self, data, dtype, 0, (count,), (1,), False)
        return self._windows[dtype]

    def read(self, lanes: LaneSet, view: View, address: Any, site: int) -> Any:
        """See `Memory.read`."""
        if type(address) is int:
            value = to_lane(view.data[address], view.dtype)
        else:
            value = view.data.take(address, mode="wrap")
            if view.dtype in NARROW:
                value = value.astype(np.int64)
        if self.shadow is not None:
            self.shadow.read(lanes, view, address, site)
        return value

    def write(self, lanes: LaneSet, view: View, address: Any, value: Any, site: int) -> None:
        """See `Memory.write`."""
        lanes.batch.dirty = True
        if self.shadow is not None:
            self.shadow.write(lanes, view, address, value, site)
        if isinstance(value, np.ndarray) and (type(address) is int or address.size < value.size):
            address, value = spread(lanes, address, value)
        view.data[address] = value

    def atomic(
        self, lanes: LaneSet, view: View, address: Any, op: str, args: tuple[Any, ...], site: int, used: bool
    ) -> Any:
        """See `Memory.atomic`."""
        lanes.batch.dirty = True
        if self.shadow is not None:
            self.shadow.atomic(lanes, view, address, site)
        return lanes.batch.apply_atomic(lanes, view.data, address, op, args, view.dtype, used)


def spread(lanes: LaneSet, address: Any, value: Any) -> tuple[Any, Any]:
    """Write address and value out per lane, thread after thread, so that the last thread wins."""
    return (
        np.broadcast_to(np.asarray(address), lanes.shape).reshape(-1),
        np.broadcast_to(value, lanes.shape).reshape(-1),
    )


class SharedMemory:
    """A shared array of every block of the batch: ``data[element, column]``."""

    space = "shared"

    address = 0

    def __init__(self, name: str, batch: Batch, size: int, data: Array) -> None:
        self.name = name
        self.batch = batch
        self.columns = batch.columns
        self.size = size
        self.data = data
        self.word = data.dtype.itemsize
        self.bytes = size * self.word
        self.shadow: Any = None
        self._windows: dict[str, View] = {}

    def window(self, dtype: str) -> View:
        """The array as elements of another type of the same size, for accesses through pointers."""
        if dtype not in self._windows:
            self._windows[dtype] = View(self, self.data.view(np.dtype(dtype)), dtype, 0, (self.size,), (1,), False)
        return self._windows[dtype]

    def _flat_address(self, lanes: LaneSet, address: Any) -> Any:
        return address * self.columns + lanes.b

    def read(self, lanes: LaneSet, view: View, address: Any, site: int) -> Any:
        """See `Memory.read`."""
        data = view.data
        if self.shadow is not None:
            self.shadow.read(lanes, view, address, site)
        if lanes.flat is None and (
            type(address) is int or (address.shape[1] == 1 and lanes.shape[1] * 2 > self.columns)
        ):
            if type(address) is int:
                value = data[address : address + 1]
                value = value.copy() if lanes.cols is None else value.take(lanes.cols, axis=1)
            else:
                value = data.take(address.reshape(-1), axis=0, mode="wrap")
                if lanes.cols is not None:
                    value = value.take(lanes.cols, axis=1)
        else:
            value = data.reshape(-1).take(self._flat_address(lanes, address), mode="wrap")
        return value.astype(np.int64) if view.dtype in NARROW else value

    def write(self, lanes: LaneSet, view: View, address: Any, value: Any, site: int) -> None:
        """See `Memory.write`."""
        data = view.data
        if self.shadow is not None:
            self.shadow.write(lanes, view, address, value, site)
        if lanes.whole_columns and (type(address) is int or address.shape[1] == 1):
            if type(address) is int:
                data[address] = value[-1] if isinstance(value, np.ndarray) else value
            elif address.shape[0] == 1:
                data[int(address[0, 0])] = value[-1] if isinstance(value, np.ndarray) else value
            else:
                data[address.reshape(-1)] = value
            return
        address = self._flat_address(lanes, address)
        if isinstance(value, np.ndarray) and address.size < value.size:
            address, value = spread(lanes, address, value)
        data.reshape(-1)[address] = value

    def atomic(
        self, lanes: LaneSet, view: View, address: Any, op: str, args: tuple[Any, ...], site: int, used: bool
    ) -> Any:
        """See `Memory.atomic`."""
        if self.shadow is not None:
            self.shadow.atomic(lanes, view, address, site)
        flat = self._flat_address(lanes, address)
        return self.batch.apply_atomic(lanes, view.data.reshape(-1), flat, op, args, view.dtype, used)


class LocalMemory:
    """A local array of every thread.

    While it is indexed with the same number in every lane it is a list of lane values (registers, as a
    compiler would have it); the first index that varies turns it into ``dense[element, thread, column]``.
    A cell is (the set that wrote it, its value) or, once sets of different lanes touched it,
    (None, values over threads × columns, which of them are defined).
    """

    space = "local"
    address = 0

    def __init__(self, name: str, batch: Batch, size: int, dtype: str) -> None:
        self.name = name
        self.batch = batch
        self.size = size
        self.dtype = dtype
        self.word = np.dtype(dtype).itemsize
        self.bytes = size * self.word
        self.lane_dtype = lane_dtype(dtype)
        self.poison = poison(dtype)
        self._windows: dict[str, View] = {}
        self.cells: list[tuple[Any, ...] | None] = [None] * size
        self.dense: Array | None = None
        self.defined: Array | None = None

    def window(self, dtype: str) -> View:
        """The array as elements of another type of the same size, for accesses through pointers."""
        if dtype not in self._windows:
            self._windows[dtype] = View(self, np.empty(0), dtype, 0, (self.size,), (1,), False)
        return self._windows[dtype]

    def _spread_cell(self, element: int) -> tuple[Array, Array]:
        """A cell's values over threads × columns, and which lanes are defined."""
        cell = self.cells[element]
        if cell is not None and cell[0] is None:
            return cell[1], cell[2]
        shape = (self.batch.threads, self.batch.columns)
        values, defined = np.full(shape, self.poison, self.lane_dtype), np.zeros(shape, bool)
        if cell is not None:
            cell[0].put(values, cell[1])
            cell[0].put(defined, True)
            self.cells[element] = (None, values, defined)
        return values, defined

    def _densify(self) -> tuple[Array, Array]:
        if self.dense is None or self.defined is None:
            spread_cells = [self._spread_cell(element) for element in range(self.size)]
            self.dense = np.stack([values for values, _ in spread_cells])
            self.defined = np.stack([defined for _, defined in spread_cells])
            self.cells = []
        return self.dense, self.defined

    def _flat_address(self, lanes: LaneSet, address: Any) -> Any:
        return address * (self.batch.threads * self.batch.columns) + lanes.lane

    def read(self, lanes: LaneSet, view: View, address: Any, site: int) -> Any:
        """See `Memory.read`."""
        if self.dense is None and type(address) is int:
            cell = self.cells[address]
            if cell is not None and cell[0] is lanes:
                return self._as(cell[1], self.dtype, view.dtype)
            values, defined = self._spread_cell(address)
            values, known = lanes.take(values), lanes.take(defined)
        else:
            dense, dense_defined = self._densify()
            flat = self._flat_address(lanes, address)
            values, known = dense.reshape(-1).take(flat), dense_defined.reshape(-1).take(flat)
        if not known.all():
            lanes.batch.report_uninitialized(lanes, view, address, ~known, site)
        return self._as(values, self.dtype, view.dtype)

    @staticmethod
    def _as(value: Any, source: str, target: str) -> Any:
        """A lane value's bits as another type of the same size."""
        return value if source == target else bitcast(source, target)(value)

    def write(self, lanes: LaneSet, view: View, address: Any, value: Any, site: int) -> None:
        """See `Memory.write`."""
        value = self._as(value, view.dtype, self.dtype)
        if self.dense is None and type(address) is int:
            cell = self.cells[address]
            if (cell is not None and cell[0] is lanes) or self.batch.covers_alive(lanes):
                self.cells[address] = (lanes, value)
                return
            values, defined = (array.copy() for array in self._spread_cell(address))
            lanes.put(values, value)
            lanes.put(defined, True)
            self.cells[address] = (None, values, defined)
            return
        dense, dense_defined = self._densify()
        flat = self._flat_address(lanes, address)
        dense.reshape(-1)[flat] = value
        dense_defined.reshape(-1)[flat] = True

    def atomic(
        self, lanes: LaneSet, view: View, address: Any, op: str, args: tuple[Any, ...], site: int, used: bool
    ) -> Any:
        """See `Memory.atomic`."""
        raise UnsupportedError(f"atomic operation on local array {self.name!r}; atomics need shared or global memory")
