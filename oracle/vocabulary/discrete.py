"""Results of a few values that depend on inexact numbers: `chosen`, `located`, `stepped`, `coded`; `exact_value`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oracle.choices import Interval, Selection, Span
from oracle.error.array import ErrorBounded
from oracle.error.fields import Array, plus_zero
from oracle.error.registry import UndecidableError
from oracle.error.settle import settle
from oracle.formats import Rounding, format_of, round_to


def _ends(x: Any) -> tuple[Array, Array, Array]:
    """Value, and the least and the greatest that an honest implementation may hold."""
    if not isinstance(x, ErrorBounded):
        value = np.asarray(x, dtype=np.float64)
        return value, value, value
    settled = settle(x)
    bound = plus_zero(settled.bound)
    with np.errstate(all="ignore"):
        exact = (bound == 0) | ~np.isfinite(x.value)
        low = np.where(exact, x.value, np.nextafter(x.value - bound, -np.inf))
        high = np.where(exact, x.value, np.nextafter(x.value + bound, np.inf))
    return x.value, low, high


def chosen(scores: Any, count: int, *, ordered: bool = True, lowest_first: bool = True) -> Any:
    """Indices of the `count` largest scores of each row: an array (..., count), as a choice under the analysis.

    Parameters
    ----------
    scores
        Array (..., candidates); the last axis is searched. NaN is not allowed for.
    count
        How many; at most the number of candidates.
    ordered
        Whether they come in order of falling score.
    lowest_first
        Whether of equal scores the lower index goes first; otherwise any may.
    """
    value, low, high = _ends(scores)
    ids = np.argsort(-value, axis=-1, kind="stable")[..., :count]
    return Selection(ids, low, high, ordered, lowest_first)


def located(cdf: Any, at: Any, weight: Any = None) -> Any:
    """Index of the first element of each row of a rising array that is greater than `at`: (...) for (..., n).

    That is inverse-transform sampling: `cdf` a cumulative distribution, `at` a uniform number times its total. Where
    no element is greater, the last one is meant: of all, or of those whose `weight` is above 0.

    Parameters
    ----------
    cdf
        Array (..., n), rising along the last axis.
    at
        Array (...).
    weight
        Array (..., n), what `cdf` is the running sum of. An element whose weight is surely 0 is never meant.
    """
    value, low, high = _ends(cdf)
    target, target_low, target_high = _ends(at)

    def first(rising: Array, limit: Array, last: Array) -> Array:
        count: Array = np.sum(rising <= limit[..., np.newaxis], axis=-1)
        return np.asarray(np.minimum(count, last))

    end = np.asarray(value.shape[-1] - 1)
    if weight is None:
        return Interval(first(value, target, end), first(high, target_low, end), first(low, target_high, end))
    share, _, most = _ends(weight)

    def last_of(there: Any) -> Array:
        last: Array = np.max(np.where(there, np.arange(there.shape[-1]), 0), axis=-1)
        return last

    lowest = first(high, target_low, last_of(share > 0))
    highest = first(low, target_high, last_of(most > 0))
    return Interval(first(value, target, last_of(share > 0)), lowest, highest, most > 0)


def stepped(x: Any, step: Callable[[Array], Array], free: Array | None = None) -> Any:
    """A rising function with steps of each number: what it gives within the errors on either side may be returned.

    Parameters
    ----------
    x
        Array of any shape.
    step
        The function, of float64 arrays; it never falls. NaN may become anything.
    free
        Where anything may be returned.
    """
    value, low, high = (step(end) for end in _ends(x))
    return Span(value, low, high, free)


def coded(x: Any, fmt: str, rounding: Rounding = "nearest_even", free: Array | None = None) -> Any:
    """Numbers as those of a format, rounded in a given direction and saturated; see `stepped`.

    Parameters
    ----------
    x
        Array of any shape. A NaN becomes 0 where the format has none.
    fmt
        Name of the format (``int8``).
    rounding
        Rounding mode, see `oracle.formats`.
    free
        Where anything may be returned.
    """
    target = format_of(fmt)

    def step(end: Array) -> Array:
        known = end if target.has_nan else np.where(np.isnan(end), 0.0, end)
        return round_to(known, target, rounding, saturate=True)

    return stepped(x, step, free)


def exact_value(x: Any, *, unflushed: bool = False) -> Array:
    """The plain float64 array behind an exact one, for work on bits and for decisions.

    Parameters
    ----------
    x
        Array of any shape.
    unflushed
        Whether subnormal inputs count as they are given, although a kernel's arithmetic may flush them: for what only
        compares and copies.

    Raises
    ------
    UndecidableError
        The array is not exact: an honest implementation may hold another value.
    """
    if not isinstance(x, ErrorBounded):
        return np.asarray(x, dtype=np.float64)
    if x.bound is not None or x.pending is not False:
        settled = settle(x)
        kept = unflushed and settled.bound is not None and bool(_only_flushed(settled).all())
        if settled.bound is not None and not kept:
            raise UndecidableError("exact_value() got an array that carries errors; make it an output of a stage first")
    return x.value


def _only_flushed(x: ErrorBounded) -> Array:
    """Where an error is none, or that of a subnormal number which becomes 0."""
    size, bound = np.abs(x.value), np.asarray(plus_zero(x.bound))
    smallest = x.numerics.format.min_normal if x.numerics.flush_to_zero else 0.0
    only: Array = (bound == 0) | ((bound == size) & (size < smallest))
    return only
