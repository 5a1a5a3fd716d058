"""Variants of the k largest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.variant import control, mutant


def _at(x: Array, indices: Array) -> tuple[Array, Array]:
    """Indices and the elements there."""
    return indices.astype(np.int32), np.take_along_axis(x, indices, axis=-1)


def _falling(x: Array, k: int) -> Array:
    """By a stable sort of the numbers in falling order."""
    return np.argsort(-x.astype(np.float64), axis=-1, kind="stable")[:, :k]


def _one_by_one(x: Array, k: int) -> Array:
    """The largest, then the largest of the rest, k times."""
    left, found = x.astype(np.float64), np.zeros((len(x), k), np.int64)
    taken = np.zeros(x.shape, bool)
    for slot in range(k):
        # minus infinity may be a number of the row, so what was taken is marked apart
        best = np.max(np.where(taken, -np.inf, left), axis=1, keepdims=True, initial=-np.inf)
        found[:, slot] = np.argmax(~taken & (left == best), axis=1)
        np.put_along_axis(taken, found[:, slot : slot + 1], True, axis=1)
    return found


def _by_keys(x: Array, k: int) -> Array:
    """By a sort of pairs of number and column."""
    found = np.zeros((len(x), k), np.int64)
    for row, values in enumerate(x.astype(np.float64)):
        found[row] = sorted(range(len(values)), key=lambda at: (-values[at], at))[:k]
    return found


def _of_tiles(x: Array, k: int) -> Array:
    """The k largest of tiles of 16 columns, then the k largest of those."""
    found = np.zeros((len(x), k), np.int64)
    for row, values in enumerate(x.astype(np.float64)):
        best: list[int] = []
        for first in range(0, len(values), 16):
            tile = [*best, *range(first, min(first + 16, len(values)))]
            best = sorted(tile, key=lambda at: (-values[at], at))[:k]
        found[row] = best
    return found


def _by_threshold(x: Array, k: int) -> Array:
    """What is larger than the k-th number, then as many equal to it as fit, sorted at the end."""
    found = np.zeros((len(x), k), np.int64)
    for row, values in enumerate(x.astype(np.float64)):
        limit = np.sort(values)[len(values) - k]
        above, equal = np.flatnonzero(values > limit), np.flatnonzero(values == limit)
        kept = np.concatenate([above, equal[: k - len(above)]])
        found[row] = kept[np.argsort(-values[kept], kind="stable")]
    return found


def _from_the_end(x: Array, k: int) -> Array:
    """By a sort of the columns in rising order, read from its end."""
    cols = x.shape[1]
    turned = np.argsort(x[:, ::-1].astype(np.float64), axis=-1, kind="stable")[:, ::-1]
    found: Array = cols - 1 - turned[:, :k]
    return found


SORTS: dict[str, Callable[[Array, int], Array]] = {
    "falling": _falling,
    "one_by_one": _one_by_one,
    "by_keys": _by_keys,
    "of_tiles": _of_tiles,
    "by_threshold": _by_threshold,
    "from_the_end": _from_the_end,
}


def _register(name: str, sort: Callable[[Array, int], Array]) -> None:
    def variant(x: Array, *, k: int, ordered: bool, ties: str) -> tuple[Array, Array]:
        return _at(x, sort(x, k))

    variant.__doc__ = sort.__doc__
    control("topk", name=name)(variant)


for _name, _sort in SORTS.items():
    _register(_name, _sort)


@mutant("topk")
def smallest(x: Array, *, k: int, **params: Any) -> tuple[Array, Array]:
    """The k smallest."""
    return _at(x, _falling(-x, k))


@mutant("topk")
def last_column_missed(x: Array, *, k: int, **params: Any) -> tuple[Array, Array]:
    """The last column is not looked at, unless all are wanted."""
    return _at(x, _falling(x[:, :-1] if k < x.shape[1] else x, k))


@mutant("topk")
def highest_of_ties(x: Array, *, k: int, **params: Any) -> tuple[Array, Array]:
    """Of equal numbers the one with the highest index goes first."""
    return _at(x, x.shape[1] - 1 - _falling(x[:, ::-1], k))


@mutant("topk")
def twice(x: Array, *, k: int, **params: Any) -> tuple[Array, Array]:
    """An index is written again where the next number is equal to it."""
    indices, values = _at(x, _falling(x, k))
    same = values[:, 1:] == values[:, :-1]
    indices[:, 1:] = np.where(same, indices[:, :-1], indices[:, 1:])
    return indices, values


@mutant("topk")
def by_magnitude(x: Array, *, k: int, **params: Any) -> tuple[Array, Array]:
    """The k largest magnitudes."""
    return _at(x, _falling(np.abs(x), k))


@mutant("topk")
def narrow_keys(x: Array, *, k: int, **params: Any) -> tuple[Array, Array]:
    """Numbers are compared after rounding to 8 bits, as the first pass of a radix selection sees them."""
    return _at(x, _falling(round_to(x.astype(np.float64), "float8_e5m2"), k))


@mutant("topk")
def rising_order(x: Array, *, k: int, **params: Any) -> tuple[Array, Array]:
    """The right ones, from the smallest to the largest."""
    return _at(x, _falling(x, k)[:, ::-1])


@mutant("topk")
def values_not_moved(x: Array, *, k: int, **params: Any) -> tuple[Array, Array]:
    """The values are the first k of the row."""
    return _falling(x, k).astype(np.int32), x[:, :k].copy()


@mutant("topk")
def start_at_zero(x: Array, *, k: int, **params: Any) -> tuple[Array, Array]:
    """Numbers below 0 never replace the index 0 that the search starts with."""
    indices, values = _at(x, _falling(x, k))
    return np.where(values < 0, np.int32(0), indices), values


# max and argmax: `index(rows)` finds a column per row of float64 numbers.


def _first(rows: Array) -> Array:
    """From the first column to the last."""
    return np.asarray(np.argmax(rows, axis=-1))


def _column_by_column(rows: Array) -> Array:
    """One column after the other, kept if it is larger, or the first NaN."""
    best, index = rows[..., 0].copy(), np.zeros(rows.shape[:-1], np.int64)
    for column in range(1, rows.shape[-1]):
        larger = (rows[..., column] > best) | (np.isnan(rows[..., column]) & ~np.isnan(best))
        best, index = np.where(larger, rows[..., column], best), np.where(larger, column, index)
    return index


def _from_the_last(rows: Array) -> Array:
    """One column after the other from the last, kept unless it is smaller, or a NaN."""
    index = np.full(rows.shape[:-1], rows.shape[-1] - 1)
    best = rows[..., -1].copy()
    for column in reversed(range(rows.shape[-1] - 1)):
        kept = (rows[..., column] >= best) & ~np.isnan(best) | np.isnan(rows[..., column])
        best, index = np.where(kept, rows[..., column], best), np.where(kept, column, index)
    return index


def _in_tiles(size: int) -> Callable[[Array], Array]:
    def index(rows: Array) -> Array:
        starts = range(0, rows.shape[-1], size)
        found = np.stack([start + _first(rows[..., start : start + size]) for start in starts], axis=-1)
        winner = _first(np.take_along_axis(rows, found, axis=-1))
        return np.asarray(np.take_along_axis(found, winner[..., np.newaxis], axis=-1)[..., 0])

    return index


def _by_lanes(lanes: int) -> Callable[[Array], Array]:
    def index(rows: Array) -> Array:
        starts = range(min(lanes, rows.shape[-1]))
        found = np.stack([start + lanes * _first(rows[..., start::lanes]) for start in starts], axis=-1)
        found = np.sort(found, axis=-1)
        winner = _first(np.take_along_axis(rows, found, axis=-1))
        return np.asarray(np.take_along_axis(found, winner[..., np.newaxis], axis=-1)[..., 0])

    return index


def _by_equality(rows: Array) -> Array:
    """The maximum first, then the first column that is equal to it."""
    top = np.max(rows, axis=-1, keepdims=True)
    return np.asarray(np.argmax((rows == top) | np.isnan(rows), axis=-1))


INDEXES: dict[str, tuple[Callable[[Array], Array], str]] = {
    "first": (_first, "From the first column to the last."),
    "column_by_column": (_column_by_column, "One column after the other, kept if it is larger."),
    "from_the_last": (_from_the_last, "One column after the other from the last, kept unless it is smaller."),
    "tiles": (_in_tiles(16), "The largest of tiles of 16 columns, then of those."),
    "lanes": (_by_lanes(32), "32 lanes that each look at every 32nd column, then over the lanes."),
    "by_equality": (_by_equality, "The maximum, then the first column that is equal to it."),
}
WRONG_INDEXES: dict[str, tuple[Callable[[Array], Array], str]] = {
    "smallest": (lambda rows: _first(-rows), "The smallest."),
    "last_missed": (lambda rows: _first(rows[..., : max(rows.shape[-1] - 1, 1)]), "The last column is not looked at."),
    "by_magnitude": (lambda rows: _first(np.abs(rows)), "The largest magnitude."),
    "nan_dropped": (
        lambda rows: _first(np.where(np.isnan(rows), -np.inf, rows)), "What is not a number is passed over.",
    ),
    "narrow": (
        lambda rows: _first(round_to(rows, "float8_e5m2")), "Numbers are compared after rounding to 8 bits.",
    ),
    "tail_missed": (
        lambda rows: _first(rows[..., : max(rows.shape[-1] // 16 * 16, 1)]), "Columns after the last tile are missed.",
    ),
}  # fmt: skip


def _extremes(register: Any, name: str, index: Callable[[Array], Array], doc: str) -> None:
    def largest(x: Array) -> Array:
        found = index(x.astype(np.float64))
        return np.asarray(np.take_along_axis(x, found[..., np.newaxis], axis=-1)[..., 0])

    def where(x: Array, *, ties: str) -> Array:
        rows = x.astype(np.float64)
        found = index(rows) if ties == "lowest" else x.shape[-1] - 1 - index(rows[..., ::-1])
        return np.asarray(found, np.int32)

    for operator, function in (("max", largest), ("argmax", where)):
        function.__doc__ = doc
        register(operator, name=name)(function)


for _name, (_index, _doc) in INDEXES.items():
    _extremes(control, _name, _index, _doc)
for _name, (_index, _doc) in WRONG_INDEXES.items():
    _extremes(mutant, _name, _index, _doc)


@mutant("max")
def from_zero(x: Array) -> Array:
    """The running maximum starts at 0."""
    return np.asarray(np.maximum(np.max(x, axis=-1), x.dtype.type(0)))


@mutant("argmax")
def other_of_ties(x: Array, *, ties: str) -> Array:
    """Of equal numbers the last in place of the first, and the other way round."""
    turned = x.shape[-1] - 1 - _first(x[..., ::-1].astype(np.float64))
    return np.asarray(turned if ties == "lowest" else _first(x.astype(np.float64)), np.int32)
