"""Putting lane values together again where sets of lanes meet: after a branch, a loop, a block."""

from __future__ import annotations

from typing import Any

import numpy as np

from refsim.engine.lanes import Ints, LaneSet

Exit = tuple[LaneSet, tuple[Any, ...]]


def rejoin(
    parent: LaneSet,
    then: LaneSet,
    then_values: tuple[Any, ...],
    other: LaneSet,
    other_values: tuple[Any, ...],
    dtypes: Any,
) -> tuple[Any, ...]:
    """Values over `parent` from those over the two sets it was split into."""
    return tuple(
        rejoin_one(parent, then, a, other, b, dtype)
        for a, b, dtype in zip(then_values, other_values, dtypes, strict=True)
    )


def rejoin_one(parent: LaneSet, then: LaneSet, a: Any, other: LaneSet, b: Any, dtype: Any) -> Any:
    if a is b:
        return a
    if dtype is None:
        return _rejoin_views(a, b, lambda x, y: rejoin_one(parent, then, x, other, y, np.int64))
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
    """Join two array views or pointers by joining the parts in which they vary between lanes."""
    if a is None or b is None:
        return b if a is None else a
    a, b = a.alike([a, b])
    return a.with_parts(tuple(join(x, y) for x, y in zip(a.parts(), b.parts(), strict=True)))


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
        views = model.alike([model if value is None else value for value in values])
        columns = zip(*(view.parts() for view in views), strict=True)
        return views[0].with_parts(
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
