"""Where the lanes of an access are in an array: evenly spaced, or anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.checks.tags import SHIFT

if TYPE_CHECKING:
    from refsim.engine.lanes import LaneSet

MOST_AXES = 3  # that threads, or blocks, are made of
COLLIDING = 1024  # bytes from row to row, and multiples of it: columns of an array fall on few places of a cache,
FEW_ROWS = 16  # which hold so many
LINE = 64


class Window:
    """Cells with constant strides along the axes of threads and blocks: reached as a view, and distinct.

    Attributes
    ----------
    start
        The first cell.
    shape
        Shape of the set of lanes, threads × blocks.
    extents, strides
        Of the axes that threads and blocks are made of, such as ``threadIdx.y``, ``threadIdx.x``, ``blockIdx.x``.
    down
        How many of them are those of threads.
    """

    distinct = True

    def __init__(self, start: int, shape: tuple[int, ...], extents: list[int], strides: list[int], down: int) -> None:
        self.start, self.shape, self.extents, self.strides, self.down = start, shape, extents, strides, down

    def _of(self, array: Any) -> Any:
        item = array.strides[0]
        return np.lib.stride_tricks.as_strided(array[self.start :], self.extents, [s * item for s in self.strides])

    def get(self, array: Any) -> Any:
        """Their values, of the set's shape."""
        return self._of(array).reshape(self.shape)

    def copy(self, array: Any) -> Any:
        """Their values as an array of its own, read in the order in which they lie there."""
        rows, columns = self.shape
        if self.along_threads:
            values = np.empty((columns, rows + LINE // array.itemsize), array.dtype)[:, :rows].T
        else:
            values = np.empty(self.shape, array.dtype)
        values.reshape(self.extents)[...] = self._of(array)
        return np.ascontiguousarray(values)

    def put(self, array: Any, values: Any) -> None:
        """Set them to a lane value."""
        if isinstance(values, np.ndarray):
            if values.shape == self.shape and self.along_threads:
                values = _spaced(values)
            values = np.broadcast_to(values, self.shape).reshape(self.extents)
        self._of(array)[...] = values

    def put_tags(self, array: Any, serial: int, lanes: LaneSet) -> None:
        """Set them to the tags of an access, in the order in which they lie there."""
        threads = lanes.t * lanes.batch.columns + ((serial << SHIFT) + 1)
        alone = [1] * len(self.extents)
        down = threads.reshape(self.extents[: self.down] + alone[self.down :])
        np.add(down, lanes.b.reshape(alone[: self.down] + self.extents[self.down :]), out=self._of(array))

    def most(self, array: Any) -> int:
        """The greatest of their values."""
        return int(self._of(array).max())

    @property
    def along_threads(self) -> bool:
        """True if a cell's nearest neighbour is another thread's of the same block."""
        steps = [step if extent > 1 else np.inf for extent, step in zip(self.extents, self.strides, strict=True)]
        return min(steps[: self.down]) < min(steps[self.down :])

    def moved(self, distance: int) -> Window:
        """The same cells a number of elements further."""
        return Window(self.start + distance, self.shape, self.extents, self.strides, self.down)

    def scaled(self, step: int) -> Window:
        """The same cells in an array of which an element is one of several parts."""
        return Window(self.start * step, self.shape, self.extents, [step * s for s in self.strides], self.down)

    @property
    def index(self) -> Any:
        """Position of each lane's cell."""
        index = np.full((1,) * len(self.extents), self.start)
        for axis, (extent, stride) in enumerate(zip(self.extents, self.strides, strict=True)):
            shape = [1] * len(self.extents)
            shape[axis] = extent
            index = index + (np.arange(extent) * stride).reshape(shape)
        return index.reshape(self.shape)


class Scattered:
    """Cells at any positions, perhaps several lanes at one."""

    distinct = False

    def __init__(self, index: Any) -> None:
        self.index = index

    def get(self, array: Any) -> Any:
        """Their values, of the set's shape."""
        return array.take(self.index)

    def put(self, array: Any, values: Any) -> None:
        """Set them to a lane value; the last lane of a cell wins."""
        array[self.index] = values

    def put_tags(self, array: Any, serial: int, lanes: LaneSet) -> None:
        """Set them to the tags of an access; the last lane of a cell wins."""
        array[self.index] = (serial << SHIFT) | lanes.numbers


Cells = Window | Scattered


def _spaced(values: Any) -> Any:
    """Values of threads × blocks, so that a cache keeps their rows while they are read block by block."""
    rows, columns = values.shape
    apart = values.strides[0]
    if rows <= FEW_ROWS or apart == 0 or apart % COLLIDING:
        return values
    spaced = np.empty((rows, columns + LINE // values.itemsize), values.dtype)[:, :columns]
    spaced[...] = values
    return spaced


def each(address: Any) -> Any:
    """A lane value of addresses, which may be given as a window."""
    return address.index if isinstance(address, Window) else address


def located(lanes: LaneSet, address: Any) -> Cells:
    """The cells at a lane value of addresses."""
    if not isinstance(address, np.ndarray) or address.shape != lanes.shape:
        return Scattered(np.broadcast_to(np.asarray(address), lanes.shape))
    if address.ndim == 2:
        column, row = address[:, :1], address[:1] - address[0, 0]
        window = window_of_sums(column[:, 0], row[0])
        if window is not None and bool((address == column + row).all()):
            return window
    return Scattered(address)


def window_of_sums(down: Any, across: Any) -> Window | None:
    """The cells at the sums of a number for each thread and one for each block, if they are a window."""
    axes_down, axes_across = _axes(down), _axes(across)
    if not axes_down or not axes_across:
        return None
    axes = [*axes_down, *axes_across]
    if not _are_distinct(axes):
        return None
    start, shape = int(down[0] + across[0]), (len(down), len(across))
    return Window(start, shape, [n for n, _ in axes], [step for _, step in axes], len(axes_down))


def _axes(values: Any) -> list[tuple[int, int]] | None:
    """Numbers as the sums of a nest of even steps: (extent, step) from the outermost in; None for others."""
    if len(values) == 1:
        return [(1, 0)]
    axes: list[tuple[int, int]] = []
    while len(axes) < MOST_AXES:
        steps = values[1:] - values[:-1]
        step = int(steps[0])
        if step < 0:
            return None
        uneven = steps != step
        extent = int(uneven.argmax()) + 1 if uneven.any() else len(values)
        axes.insert(0, (extent, step))
        if extent == len(values):
            return axes
        if len(values) % extent:
            return None
        parts = values.reshape(-1, extent)
        if (parts != parts[:, :1] + np.arange(extent) * step).any():
            return None
        values = parts[:, 0]
    return None


def _are_distinct(axes: list[tuple[int, int]]) -> bool:
    """True if no two lanes are at one cell: each step goes past all that the smaller ones reach."""
    reach = 0
    for step, extent in sorted((step, extent) for extent, step in axes if extent > 1):
        if step <= reach:
            return False
        reach += step * (extent - 1)
    return True
