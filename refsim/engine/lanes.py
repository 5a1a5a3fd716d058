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
        "_b", "_lane", "_t", "batch", "cols", "cut_how", "cut_index", "flat", "interval", "parent_cols", "rows", "shape",
        "size",
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
    def whole_columns(self) -> bool:
        """True for a grid set that spans every block of the batch."""
        return self.flat is None and self.cols is None

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


Exit = tuple[LaneSet, tuple[Any, ...]]


def rejoin(
    parent: LaneSet, then: LaneSet, then_values: tuple[Any, ...], other: LaneSet, other_values: tuple[Any, ...], dtypes: Any
) -> tuple[Any, ...]:
    """Values over `parent` from those over the two sets it was split into."""
    return tuple(
        _rejoin_one(parent, then, a, other, b, dtype)
        for a, b, dtype in zip(then_values, other_values, dtypes, strict=True)
    )


def _rejoin_one(parent: LaneSet, then: LaneSet, a: Any, other: LaneSet, b: Any, dtype: Any) -> Any:
    if a is b:
        return a
    if dtype is None:
        return _rejoin_views(a, b, lambda x, y: _rejoin_one(parent, then, x, other, y, np.int64))
    a_scalar, b_scalar = not isinstance(a, np.ndarray), not isinstance(b, np.ndarray)
    if a_scalar and b_scalar and a == b and _same_sign(a, b):
        return a
    how = then.cut_how
    shape: tuple[int, ...]
    if how == "rows":
        wide = (not a_scalar and a.shape[1] > 1) or (not b_scalar and b.shape[1] > 1)
        shape = (parent.shape[0], parent.shape[1] if wide else 1)
        out = np.empty(shape, dtype)
        out[then.cut_index] = a
        out[other.cut_index] = b
    elif how == "cols":
        wide = (not a_scalar and a.shape[0] > 1) or (not b_scalar and b.shape[0] > 1)
        shape = (parent.shape[0] if wide else 1, parent.shape[1])
        out = np.empty(shape, dtype)
        out[:, then.cut_index] = a
        out[:, other.cut_index] = b
    else:
        out = np.empty(parent.shape, dtype)
        flat = out.reshape(-1)
        flat[then.cut_index] = a
        flat[other.cut_index] = b
    return out


def _same_sign(a: Any, b: Any) -> bool:
    return a != 0 or bool(np.signbit(a) == np.signbit(b))


def _rejoin_views(a: Any, b: Any, join: Any) -> Any:
    """Join two array views by joining the parts in which they vary between lanes."""
    if a is None or b is None:
        return b if a is None else a
    a.require_same_memory(b)
    return a.with_parts(tuple(join(x, y) for x, y in zip(a.parts(), b.parts(), strict=True)))


def _in_sorted(values: Ints, value: int) -> bool:
    at = int(np.searchsorted(values, value))
    return at < len(values) and int(values[at]) == value


Exit = tuple[LaneSet, tuple[Any, ...]]


def rejoin(
    parent: LaneSet, then: LaneSet, then_values: tuple[Any, ...], other: LaneSet, other_values: tuple[Any, ...], dtypes: Any
) -> tuple[Any, ...]:
    """Values over `parent` from those over the two sets it was split into."""
    return tuple(
        _rejoin_one(parent, then, a, other, b, dtype)
        for a, b, dtype in zip(then_values, other_values, dtypes, strict=True)
    )


def _rejoin_one(parent: LaneSet, then: LaneSet, a: Any, other: LaneSet, b: Any, dtype: Any) -> Any:
    if a is b:
        return a
    if dtype is None:
        return _rejoin_views(a, b, lambda x, y: _rejoin_one(parent, then, x, other, y, np.int64))
    a_scalar, b_scalar = not isinstance(a, np.ndarray), not isinstance(b, np.ndarray)
    if a_scalar and b_scalar and a == b and _same_sign(a, b):
        return a
    how = then.cut_how
    shape: tuple[int, ...]
    if how == "rows":
        wide = (not a_scalar and a.shape[1] > 1) or (not b_scalar and b.shape[1] > 1)
        shape = (parent.shape[0], parent.shape[1] if wide else 1)
        out = np.empty(shape, dtype)
        out[then.cut_index] = a
        out[other.cut_index] = b
    elif how == "cols":
        wide = (not a_scalar and a.shape[0] > 1) or (not b_scalar and b.shape[0] > 1)
        shape = (parent.shape[0] if wide else 1, parent.shape[1])
        out = np.empty(shape, dtype)
        out[:, then.cut_index] = a
        out[:, other.cut_index] = b
    else:
        out = np.empty(parent.shape, dtype)
        flat = out.reshape(-1)
        flat[then.cut_index] = a
        flat[other.cut_index] = b
    return out


def _same_sign(a: Any, b: Any) -> bool:
    return a != 0 or bool(np.signbit(a) == np.signbit(b))


def _same_view(a: Any, b: Any, join: Any) -> Any:
    if a is None:
        return b
    if b is None:
        return a
    return a.join_with(b, join)


def merge(parent: LaneSet, exits: list[Exit], dtypes: Any) -> tuple[LaneSet, tuple[Any, ...]]:
    """Union of disjoint subsets of `parent`, each with its values: the set after a loop or block."""
    if len(exits) == 1:
        return exits[0]
    size = sum(lanes.size for lanes, _ in exits)
    target = parent if size == parent.size else _union(parent, [lanes for lanes, _ in exits])
    positions = [_positions(target, lanes) for lanes, _ in exits]
    columns = zip(*(values for _, values in exits), strict=True)
    return target, tuple(
        _merge_one(target, exits, positions, list(column), dtype) for column, dtype in zip(columns, dtypes, strict=True)
    )


def _union(parent: LaneSet, sets: list[LaneSet]) -> LaneSet:
    batch = parent.batch
    if all(s.flat is None for s in sets):
        if all(s.cols is sets[0].cols for s in sets) and all(s.rows is not None for s in sets):
            return LaneSet(batch, np.sort(np.concatenate([s.rows for s in sets if s.rows is not None])), sets[0].cols)
        if all(s.rows is sets[0].rows for s in sets) and all(s.cols is not None for s in sets):
            return LaneSet(batch, sets[0].rows, np.sort(np.concatenate([s.cols for s in sets if s.cols is not None])))
    return LaneSet(batch, None, None, np.sort(np.concatenate([s.lane.reshape(-1) for s in sets])))


def _positions(target: LaneSet, lanes: LaneSet) -> Any:
    """Index into an array of the target's shape that selects the lanes of a subset."""
    if target.flat is not None:
        return np.searchsorted(target.flat, lanes.lane.reshape(-1))
    if lanes.flat is None:
        rows = _relative(target.rows, lanes.rows)
        cols = _relative(target.cols, lanes.cols)
        return rows, cols
    t, b = lanes.t, lanes.b
    r = t if target.rows is None else np.searchsorted(target.rows, t)
    c = b if target.cols is None else np.searchsorted(target.cols, b)
    return r * target.shape[1] + c


def _relative(outer: Ints | None, inner: Ints | None) -> Ints | None:
    """Positions of `inner` within `outer`; None means all of them."""
    if inner is None or inner is outer:
        return None
    if outer is None:
        return inner
    if len(outer) == len(inner):
        return None
    return np.searchsorted(outer, inner)


def _merge_one(target: LaneSet, exits: list[Exit], positions: list[Any], values: list[Any], dtype: Any) -> Any:
    first = values[0]
    if all(value is first for value in values[1:]) and not isinstance(first, np.ndarray) and dtype is not None:
        return first
    if dtype is None:
        if all(value is first for value in values):
            return first
        model = next(value for value in values if value is not None)
        views = [model if value is None else value for value in values]
        for view in views:
            model.require_same_memory(view)
        columns = zip(*(view.parts() for view in views), strict=True)
        return model.with_parts(
            tuple(_merge_one(target, exits, positions, list(column), np.int64) for column in columns)
        )
    if target.flat is None and all(lanes.flat is None for lanes, _ in exits):
        arrays = [v for v in values if isinstance(v, np.ndarray)]
        by_row = any(p[0] is not None for p in positions) or any(v.shape[0] > 1 for v in arrays)
        by_col = any(p[1] is not None for p in positions) or any(v.shape[1] > 1 for v in arrays)
        out = np.empty((target.shape[0] if by_row else 1, target.shape[1] if by_col else 1), dtype)
        for (rows, cols), value in zip(positions, values, strict=True):
            if rows is None and cols is None:
                out[...] = value
            elif cols is None:
                out[rows] = value
            elif rows is None:
                out[:, cols] = value
            else:
                out[np.ix_(rows, cols)] = value
        return out
    out = np.empty(target.shape, dtype)
    flat = out.reshape(-1)
    for (lanes, _), position, value in zip(exits, positions, values, strict=True):
        if target.flat is None and lanes.flat is None:
            rows, cols = position
            out[
                np.ix_(
                    np.arange(target.shape[0]) if rows is None else rows,
                    np.arange(target.shape[1]) if cols is None else cols,
                )
            ] = value
        elif lanes.flat is None and isinstance(value, np.ndarray):
            flat[position] = np.broadcast_to(value, lanes.shape).reshape(-1)
        else:
            flat[position] = value
    return out
