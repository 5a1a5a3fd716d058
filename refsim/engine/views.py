"""Array views: where a subscript becomes an address and is bounds-checked.

A `View` is what a kernel calls an array: a memory, an offset, extents and strides in elements. It turns
subscripts into addresses and hands those to its memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import ml_dtypes  # noqa: F401 (makes bfloat16 and the 8-bit floats NumPy types)
import numpy as np

from refsim.checks.cells import Window, window_of_sums
from refsim.engine.joins import rejoin_one
from refsim.engine.lane_types import lane_dtype, poison
from refsim.engine.lanes import Array, LaneSet
from refsim.errors import UnsupportedError

if TYPE_CHECKING:
    pass


U64 = np.dtype(np.uint64)
MOST_TERMS = 16  # indices of one dimension that are remembered as inside
LONGEST_TERM = 4096  # longer ones are remembered one at a time
MOST_SUMS = 128  # addresses of two indices that are remembered
MANY_LANES = 8192  # so many are worth the question how they are spaced
MOST_SPANS = 8  # long arrays of addresses that are remembered with their least and greatest


class Memory(Protocol):
    """A memory space as a view uses it; addresses are in elements of the view's type.

    A memory that `takes_windows` is given a `Window` for the addresses of many lanes that are evenly spaced.
    """

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

    __slots__ = (
        "base", "data", "dtype", "fields", "memory", "offset", "shape", "spans", "strides", "sums", "terms", "varies",
        "wraps",
    )  # fmt: skip

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
        self.terms: tuple[dict[int, tuple[Any, Any]], ...] = tuple({} for _ in shape)
        self.sums: dict[tuple[int, int, int], tuple[Any, Any]] = {}
        self.spans: dict[tuple[int, ...], tuple[Any, ...]] = {}
        self.fields: dict[str, View] | None = None  # of records, as they were asked for

    @property
    def pointed_to(self) -> Any:
        """The memory, if this is a window for accesses through pointers; None for an array of the source."""
        return None if self.wraps else self.memory

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

    def outside(self, axis: int, i: Any) -> bool:
        """True if an index needs attention: negative or past the end in some lane."""
        n = self.shape[axis]
        if type(i) is int and type(n) is int:
            return not 0 <= i < n
        if type(n) is int and isinstance(i, np.ndarray):
            terms = self.terms[axis]
            known = terms.get(id(i))
            if known is not None and known[0] is i:
                return False
            if int(i.view(U64).max()) >= n:
                return True
            if len(terms) >= MOST_TERMS or i.size > LONGEST_TERM:
                terms.clear()
            terms[id(i)] = (i, None)
            return False
        return bool(np.any((i < 0) | (i >= n)))

    def load(self, lanes: LaneSet, site: int, *index: Any) -> Any:
        """Read one element per lane."""
        if any(self.outside(axis, i) for axis, i in enumerate(index)):
            return self._load_checked(lanes, site, index)
        return self.memory.read(lanes, self, self._address(self.offset, index), site)

    def _address(self, offset: Any, index: tuple[Any, ...]) -> Any:
        """The address of an index that is inside, from the view's offset."""
        for i, stride in zip(index, self.strides, strict=True):
            term = i if stride == 1 else i * stride
            offset = term if type(offset) is int and offset == 0 else offset + term
        return offset

    def load1(self, lanes: LaneSet, site: int, i: Any) -> Any:
        """`load` for one dimension."""
        if self.outside(0, i):
            return self._load_checked(lanes, site, (i,))
        stride = self.strides[0]
        if stride != 1:
            i = i * stride
        offset = self.offset
        return self.memory.read(lanes, self, i if type(offset) is int and offset == 0 else i + offset, site)

    def load2(self, lanes: LaneSet, site: int, i: Any, j: Any) -> Any:
        """`load` for two dimensions."""
        if type(i) is int and type(j) is int:
            n, m = self.shape
            if type(n) is not int or type(m) is not int or not (0 <= i < n and 0 <= j < m):
                return self._load_checked(lanes, site, (i, j))
            return self.memory.read(lanes, self, i * self.strides[0] + j * self.strides[1] + self.offset, site)
        if type(j) is int:
            fixed, key = i, (id(i), 0, j)
        elif type(i) is int:
            fixed, key = j, (id(j), 1, i)
        else:
            fixed = key = None
        known = self.sums.get(key) if key is not None else None
        if known is not None and known[0] is fixed:
            return self.memory.read(lanes, self, known[1], site)
        if self.outside(0, i) or self.outside(1, j):
            return self._load_checked(lanes, site, (i, j))
        address = self._address2(lanes, i, j)
        if key is not None:
            self.remember(key, fixed, address)
        return self.memory.read(lanes, self, address, site)

    def load_moving(self, lanes: LaneSet, site: int, i: Any, di: Any, j: Any, dj: Any) -> Any:
        """`load2` at ``i + di, j + dj``, where i and j are the same arrays time after time."""
        long = isinstance(i, np.ndarray) and isinstance(j, np.ndarray) and type(di) is int and type(dj) is int
        if long and not self.varies and getattr(self.memory, "unwatched", False):
            address, least_i, most_i, least_j, most_j = self._span2(i, j)
            n, m = self.shape
            start = di * self.strides[0] + dj * self.strides[1]
            if least_i + di >= 0 and most_i + di < n and least_j + dj >= 0 and most_j + dj < m and start >= 0:
                return self.memory.read_behind(self, start, address)
        return self.load2(lanes, site, i + di, j + dj)

    def _span2(self, i: Any, j: Any) -> tuple[Any, int, int, int, int]:
        """The addresses of two index arrays, and the ends of each."""
        known = self.spans.get((id(i), id(j)))
        if known is None:
            address = i * self.strides[0] + j * self.strides[1] + self.offset
            known = i, j, (address, int(i.min()), int(i.max()), int(j.min()), int(j.max()))
            self._keep_span((id(i), id(j)), known)
        return known[2]  # type: ignore[no-any-return]

    def span(self, i: Any) -> tuple[int, int]:
        """The least and the greatest of an index array that is the same time after time."""
        known = self.spans.get((id(i),))
        if known is None:
            known = i, (int(i.min()), int(i.max()))
            self._keep_span((id(i),), known)
        return known[1]  # type: ignore[no-any-return]

    def _keep_span(self, key: tuple[int, ...], known: tuple[Any, ...]) -> None:
        if len(self.spans) >= MOST_SPANS:
            self.spans.clear()
        self.spans[key] = known

    def remember(self, key: tuple[int, int, int], fixed: Any, address: Any) -> None:
        """Remember the address that an index array gives together with a number, if it is short."""
        if isinstance(address, np.ndarray) and address.size <= LONGEST_TERM:
            if len(self.sums) >= MOST_SUMS:
                self.sums.clear()
            self.sums[key] = (fixed, address)

    def _address2(self, lanes: LaneSet, i: Any, j: Any) -> Any:
        if lanes.size >= MANY_LANES and getattr(self.memory, "takes_windows", False):
            window = self._window2(lanes, i, j)
            if window is not None:
                return window
        si, sj = self.strides
        known = self.terms[0].get(id(i))
        if known is None or known[0] is not i:
            address = i * si
        elif known[1] is None:
            address = i * si
            self.terms[0][id(i)] = (i, address)
        else:
            address = known[1]
        address = address + (j if sj == 1 else j * sj)
        offset = self.offset
        return address if type(offset) is int and offset == 0 else address + offset

    def _window2(self, lanes: LaneSet, i: Any, j: Any) -> Window | None:
        """The cells of two index arrays, one of the threads and one of the blocks, if they are evenly spaced."""
        if self.varies or not isinstance(i, np.ndarray) or not isinstance(j, np.ndarray):
            return None
        by_thread, by_block = (lanes.shape[0], 1), (1, lanes.shape[-1])
        if {i.shape, j.shape} != {by_thread, by_block}:
            return None
        down, across = i.reshape(-1) * self.strides[0], j.reshape(-1) * self.strides[1]
        if i.shape == by_block:
            down, across = across, down
        return window_of_sums(down + self.offset, across)

    def store(self, lanes: LaneSet, site: int, value: Any, *index: Any) -> None:
        """Write one element per lane."""
        if any(self.outside(axis, i) for axis, i in enumerate(index)):
            self._store_checked(lanes, site, value, index)
        else:
            self.memory.write(lanes, self, self._address(self.offset, index), value, site)

    def store1(self, lanes: LaneSet, site: int, value: Any, i: Any) -> None:
        """`store` for one dimension."""
        if self.outside(0, i):
            self._store_checked(lanes, site, value, (i,))
        else:
            self.memory.write(lanes, self, i * self.strides[0] + self.offset, value, site)

    def store2(self, lanes: LaneSet, site: int, value: Any, i: Any, j: Any) -> None:
        """`store` for two dimensions."""
        if self.outside(0, i) or self.outside(1, j):
            self._store_checked(lanes, site, value, (i, j))
        else:
            self.memory.write(lanes, self, self._address2(lanes, i, j), value, site)

    def atomic(self, lanes: LaneSet, site: int, op: str, used: bool, args: tuple[Any, ...], *index: Any) -> Any:
        """Atomic read-modify-write of one element per lane; the old values if used."""
        outside: LaneSet | None = None
        good: LaneSet | None = lanes
        if any(self.outside(axis, i) for axis, i in enumerate(index)):
            outside, index, good = self._inside(lanes, site, index)
        if good is None:
            return poison(self.dtype)
        offset = good.cut(self.offset) if good is not lanes and self.varies else self.offset
        address = self._address(offset, index)
        if good is lanes:
            return self.memory.atomic(lanes, self, address, op, args, site, used)
        old = self.memory.atomic(good, self, address, op, tuple(good.cut(a) for a in args), site, used)
        assert outside is not None
        return rejoin_one(lanes, good, old, outside, poison(self.dtype), lane_dtype(self.dtype)) if used else None

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
        value = self.memory.read(good, view, self._address(view.offset, fixed), site)
        if good is lanes:
            return value
        assert outside is not None
        return rejoin_one(lanes, good, value, outside, poison(self.dtype), lane_dtype(self.dtype))

    def _store_checked(self, lanes: LaneSet, site: int, value: Any, index: tuple[Any, ...]) -> None:
        _, fixed, good = self._inside(lanes, site, index)
        if good is None:
            return
        view = self if good is lanes else self.cut_to(good)
        address = self._address(view.offset, fixed)
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
                if self.outside(axis, item):
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

    def index_of(self, address: int) -> tuple[int, ...]:
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
