"""Active sets of lanes, and how lane values are cut to a subset and put back.

A lane is one thread of one block of the batch that runs in lockstep. A lane value is a Python or NumPy
scalar (the same in every lane), or an array that broadcasts against the set it belongs to:

- grid set of R threads × C blocks: ``(R, 1)`` depends on the thread only, ``(1, C)`` on the block only,
  ``(R, C)`` on both;
- flat set of N lanes: ``(N,)``, or ``(1,)`` where one lane stands for all.

Lane arrays are never changed in place, so they may be shared and compared by identity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


class Irregular(Exception):
    """A branch split threads of several blocks unevenly; the batch may be cut into more uniform ones."""


class LaneSet:
    """An active set: a grid of threads × blocks, or a flat list of lanes.

    `rows` and `cols` are ascending thread and block-column numbers, None standing for all; a flat set has
    ascending lane numbers ``thread * columns + column`` in `flat` instead.
    """

    __slots__ = (
        "_agents", "_b", "_lane", "_numbers", "_t", "batch", "cols", "cut_how", "cut_index", "flat", "interval",
        "parent_cols", "rows", "shape", "size",
    )  # fmt: skip

    def __init__(self, batch: Any, rows: Ints | None, cols: Ints | None, flat: Ints | None = None) -> None:
        self.batch = batch
        self.rows = rows
        self.cols = cols
        self.flat = flat
        if flat is None:
            r = batch.threads if rows is None else len(rows)
            c = batch.columns if cols is None else len(cols)
            self.shape: tuple[int, ...] = (r, c)
            self.size = r * c
        else:
            self.size = len(flat)
            self.shape = (self.size,)
        self.cut_how = ""
        self.cut_index: Ints | None = None
        self.parent_cols = 0
        self.interval: tuple[Any, int] | None = None
        self._agents: Ints | None = None
        self._numbers: Ints | None = None
        self._t: Ints | None = None
        self._b: Ints | None = None
        self._lane: Ints | None = None

    # ------------------------------------------------------------------------------------ coordinates

    @property
    def t(self) -> Ints:
        """Linear thread number within the block, of the set's shape or ``(R, 1)``."""
        if self._t is None:
            if self.flat is not None:
                self._t = self.flat // self.batch.columns
            elif self.rows is None:
                self._t = self.batch.all_threads
            else:
                self._t = self.rows.reshape(-1, 1)
        assert self._t is not None
        return self._t

    @property
    def b(self) -> Ints:
        """Column of the block within the batch, of the set's shape or ``(1, C)``."""
        if self._b is None:
            if self.flat is not None:
                self._b = self.flat % self.batch.columns
            elif self.cols is None:
                self._b = self.batch.all_columns
            else:
                self._b = self.cols.reshape(1, -1)
        assert self._b is not None
        return self._b

    @property
    def lane(self) -> Ints:
        """Lane number of every lane, of the set's shape."""
        if self._lane is None:
            self._lane = self.flat if self.flat is not None else self.t * self.batch.columns + self.b
        return self._lane

    @property
    def agents(self) -> Ints:
        """Number of the thread within its block, from 1, of every lane, of the set's shape."""
        if self._agents is None:
            self._agents = np.ascontiguousarray(np.broadcast_to(self.t + 1, self.shape))
        return self._agents

    @property
    def numbers(self) -> Ints:
        """Number of every lane, from 1, of the set's shape."""
        if self._numbers is None:
            self._numbers = self.lane + 1
        return self._numbers

    @property
    def whole_columns(self) -> bool:
        """True for a grid set that spans every block of the batch."""
        return self.flat is None and self.cols is None

    def pick(self, value: Any) -> Any:
        """A value of all lanes of the batch cut to this set; a number where the set is one lane."""
        if not isinstance(value, np.ndarray):
            return value
        if self.size == 1:
            row = 0 if value.shape[0] == 1 else int(self.t.reshape(-1)[0])
            return value[row, 0 if value.shape[1] == 1 else int(self.b.reshape(-1)[0])].item()
        if self.flat is not None:
            return value[self.t if value.shape[0] > 1 else 0, self.b if value.shape[1] > 1 else 0]
        rows = value if self.rows is None or value.shape[0] == 1 else value.take(self.rows, axis=0)
        return rows if self.cols is None or value.shape[1] == 1 else rows.take(self.cols, axis=1)

    def contains(self, thread: int, column: int) -> bool:
        """True if a thread of a block column is in the set."""
        if self.flat is not None:
            return _in_sorted(self.flat, thread * self.batch.columns + column)
        return (self.rows is None or _in_sorted(self.rows, thread)) and (
            self.cols is None or _in_sorted(self.cols, column)
        )

    def full(self, value: Any, dtype: Any) -> Array:
        """The value written out for every lane."""
        out = np.empty(self.shape, dtype)
        out[...] = value
        return out

    # ------------------------------------------------------------------------------------------ split

    def split(self, condition: Any) -> tuple[LaneSet | None, LaneSet | None]:
        """Lanes for which the condition holds, and the others; None stands for no lane.

        A returned set that is a proper subset knows how to cut values of this set (`cut`).
        """
        if condition is True:
            return self, None
        if condition is False:
            return None, self
        if not isinstance(condition, np.ndarray):
            return (self, None) if condition else (None, self)
        true = np.count_nonzero(condition)
        if true == condition.size:
            return self, None
        if true == 0:
            return None, self
        if self.flat is not None:
            yes = np.flatnonzero(condition)
            no = np.flatnonzero(~condition)
            return self._child_flat("lanes", yes, self.flat[yes]), self._child_flat("lanes", no, self.flat[no])
        r, c = condition.shape
        if c == 1 and r > 1:
            return self._child_rows(np.flatnonzero(condition[:, 0])), self._child_rows(np.flatnonzero(~condition[:, 0]))
        if r == 1:
            return self._child_cols(np.flatnonzero(condition[0])), self._child_cols(np.flatnonzero(~condition[0]))
        column = condition[:1]
        if np.array_equal(np.broadcast_to(column, condition.shape), condition):
            return self.split(column.copy())
        row = condition[:, :1]
        if np.array_equal(np.broadcast_to(row, condition.shape), condition):
            return self.split(row.copy())
        self.batch.met_irregular_branch()
        flat = condition.reshape(-1)
        yes, no = np.flatnonzero(flat), np.flatnonzero(~flat)
        lane = self.lane.reshape(-1)
        return self._child_flat("grid", yes, lane[yes]), self._child_flat("grid", no, lane[no])

    def _child_rows(self, index: Ints) -> LaneSet:
        child = LaneSet(self.batch, index if self.rows is None else self.rows[index], self.cols)
        child.cut_how, child.cut_index = "rows", index
        return child

    def _child_cols(self, index: Ints) -> LaneSet:
        child = LaneSet(self.batch, self.rows, index if self.cols is None else self.cols[index])
        child.cut_how, child.cut_index = "cols", index
        return child

    def _child_flat(self, how: str, index: Ints, flat: Ints) -> LaneSet:
        child = LaneSet(self.batch, None, None, flat)
        child.cut_how, child.cut_index = how, index
        child.parent_cols = self.shape[1] if how == "grid" else 0
        return child

    # -------------------------------------------------------------------------------------------- cut

    def cut(self, value: Any) -> Any:
        """Cut a value of the set that this one was split from down to this set."""
        if isinstance(value, np.ndarray):
            how, index = self.cut_how, self.cut_index
            assert index is not None
            if how == "rows":
                return value if value.shape[0] == 1 else value.take(index, axis=0)
            if how == "cols":
                return value if value.shape[1] == 1 else value.take(index, axis=1)
            if how == "lanes":
                return value if value.shape[0] == 1 else value.take(index)
            r, c = value.shape
            if c == 1:
                return value.reshape(1) if r == 1 else value[:, 0].take(index // self.parent_cols)
            if r == 1:
                return value[0].take(index % self.parent_cols)
            return value.reshape(-1).take(index)
        cut = getattr(value, "cut_to", None)
        return value if cut is None else cut(self)

    # ----------------------------------------------------------------------------------- absolute form

    def expand(self, value: Any, dtype: Any, fill: Any = 0) -> Array:
        """A value of this set as an array over all threads × blocks of the batch; other lanes get `fill`."""
        out = np.full((self.batch.threads, self.batch.columns), fill, dtype)
        self.put(out, value)
        return out

    def put(self, out: Array, value: Any) -> None:
        """Write a value of this set into an array over all threads × blocks of the batch."""
        if self.flat is not None:
            out.reshape(-1)[self.flat] = value
        elif self.rows is None and self.cols is None:
            out[...] = value
        elif self.cols is None:
            out[self.rows] = value
        elif self.rows is None:
            out[:, self.cols] = value
        else:
            out[np.ix_(self.rows, self.cols)] = value

    def take(self, dense: Array) -> Array:
        """Values of this set out of an array over all threads × blocks of the batch."""
        if self.flat is not None:
            return dense.reshape(-1).take(self.flat)
        if self.rows is not None:
            dense = dense.take(self.rows, axis=0)
        if self.cols is not None:
            dense = dense.take(self.cols, axis=1)
        return dense


def _in_sorted(values: Ints, value: int) -> bool:
    at = int(np.searchsorted(values, value))
    return at < len(values) and int(values[at]) == value
