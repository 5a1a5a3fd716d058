"""The memory spaces: global, shared and local memory serve reads, writes and atomics of lanes.

A memory informs its shadow, if it has one, of every access.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes  # noqa: F401 (makes bfloat16 and the 8-bit floats NumPy types)
import numpy as np

from refsim.checks.cells import Window
from refsim.engine.atomics import FLUSHING
from refsim.engine.lane_types import NARROW, bitcast, lane_dtype, poison, to_lane
from refsim.engine.lanes import Array, LaneSet
from refsim.engine.views import View
from refsim.errors import UnsupportedError

if TYPE_CHECKING:
    from refsim.engine.batch import Batch


class GlobalMemory:
    """One allocation of device memory, shared by all arguments that overlap in it.

    `shadow` is None where nothing can go wrong that a shadow would see: read-only and initialised, or
    unchecked. Addresses of a view are scaled to the shadow's granules.
    """

    space = "global"
    takes_windows = True

    word = None  # bytes can be read as any type

    def __init__(self, name: str, bytes_: int, granule: int, address: int = 0, raw: Any = None) -> None:
        self.name = name
        self.bytes = bytes_
        self.granule = granule
        self.address = address
        self.raw = raw
        self.written = False  # by the kernel at hand
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
            window = isinstance(address, Window)
            value = address.copy(view.data) if window else view.data.take(address, mode="wrap")
            if view.dtype in NARROW:
                value = value.astype(np.int64)
        if self.shadow is not None:
            self.shadow.read(lanes, view, address, site)
        return value

    @property
    def unwatched(self) -> bool:
        """True if nobody needs to know of reads."""
        return self.shadow is None

    def read_behind(self, view: View, start: int, address: Any) -> Any:
        """`read` at addresses that count from a start, where there is no shadow: an addition less for each lane."""
        value = view.data[start:].take(address, mode="wrap")
        return value.astype(np.int64) if view.dtype in NARROW else value

    def write(self, lanes: LaneSet, view: View, address: Any, value: Any, site: int) -> None:
        """See `Memory.write`."""
        lanes.batch.dirty = True
        window = None if self.shadow is None else self.shadow.write(lanes, view, address, value, site)
        if isinstance(address, Window):
            window = address
        if window is not None:
            window.put(view.data, value)
            return
        if isinstance(value, np.ndarray) and not _covers(address, value):
            address, value = spread(lanes, address, value)
        view.data[address] = value

    def atomic(
        self, lanes: LaneSet, view: View, address: Any, op: str, args: tuple[Any, ...], site: int, used: bool
    ) -> Any:
        """See `Memory.atomic`."""
        lanes.batch.dirty = True
        if self.shadow is not None:
            self.shadow.atomic(lanes, view, address, site)
        elif lanes.batch.run.sync is not None:
            lanes.batch.log_atomic(lanes.batch.run.operation(site), view, lanes, address)
        if view.dtype == "float32" and op in FLUSHING and self.space in lanes.batch.run.device.atomic_add_flushes:
            op = FLUSHING[op]
        return lanes.batch.apply_atomic(lanes, view.data, address, op, args, view.dtype, used)


def _covers(address: Any, value: Any) -> bool:
    """True if a lane value broadcasts to the shape of an address."""
    return isinstance(address, np.ndarray) and all(v in (1, a) for v, a in zip(value.shape, address.shape, strict=True))


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
        self.number = 0  # in shared addresses, among the arrays of its block
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
        if lanes.flat is None and type(address) is int:
            value = data[address : address + 1]
            value = value.copy() if lanes.cols is None else value.take(lanes.cols, axis=1)
        elif lanes.flat is None and address.shape[1] == 1 and lanes.shape[1] * 2 > self.columns:
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
        if isinstance(value, np.ndarray) and not _covers(address, value):
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
