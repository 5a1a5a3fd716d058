"""Variants of sampling where each row has filters of its own: those of `oracle.variants.sampling`, row by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from oracle.signature import Array
from oracle.variants.arithmetic import pairwise
from oracle.variants.sampling import (
    CONTROLS,
    FILTERED,
    MUTANTS,
    OF_BOTH,
    OF_MIN_P,
    PLAIN,
    WITH_TIES,
    WITH_TOP_K,
    WITH_TOP_P,
    Sampler,
    draw,
    scan_doubling,
)
from oracle.variants.variant import control, mutant

Row = Callable[[dict[str, Any], int], dict[str, Any]]
"""Changes what one row's filters are, given the row's number."""


def rows_drawn(given: tuple[Any, ...], params: dict[str, Any], style: Sampler, change: Row | None = None) -> Array:
    """One row after the other."""
    probs, uniform, top_k, top_p, min_p = given
    tokens = np.zeros(len(probs), np.int32)
    for row in range(len(probs)):
        own = dict(params)
        if top_k is not None:
            own["top_k"] = int(top_k[row]) or probs.shape[-1]
        if top_p is not None:
            own["top_p"] = max(float(top_p[row]), 1e-30)
        if min_p is not None:
            own["min_p"] = float(min_p[row])
        if change:
            own = change(own, row)
        if own.get("top_p", 1.0) >= 1:
            own.pop("top_p", None)
        one = slice(row, row + 1)
        tokens[one] = draw(probs[one], uniform[one], own, style)
    return tokens


def _register(register: Any, name: str, style: Sampler, flaw: str) -> None:
    def sample_by_row(*given: Any, **params: Any) -> Array:
        return rows_drawn(given, params, style)

    sample_by_row.__doc__ = flaw
    register("sample_by_row", name=name)(sample_by_row)


for _name, (_style, _flaw) in CONTROLS.items():
    _register(control, _name, _style, _flaw)
for _name, (_style, _flaw) in (MUTANTS | FILTERED | WITH_TOP_K | WITH_TIES | WITH_TOP_P | OF_BOTH | OF_MIN_P).items():
    _register(mutant, _name, _style, _flaw)


@mutant("sample_by_row")
def first_row_for_all(probs: Array, uniform: Array, top_k: Any, top_p: Any, min_p: Any, **params: Any) -> Array:
    """Every row has the first row's filters."""
    filters = (None if one is None else np.broadcast_to(one[:1], one.shape) for one in (top_k, top_p, min_p))
    return rows_drawn((probs, uniform, *filters), params, PLAIN)


@mutant("sample_by_row")
def row_before(probs: Array, uniform: Array, top_k: Any, top_p: Any, min_p: Any, **params: Any) -> Array:
    """Every row has the filters of the row before."""
    filters = (None if one is None else np.roll(one, 1) for one in (top_k, top_p, min_p))
    return rows_drawn((probs, uniform, *filters), params, PLAIN)


@mutant("sample_by_row")
def zero_keeps_one(probs: Array, uniform: Array, top_k: Any, top_p: Any, min_p: Any, **params: Any) -> Array:
    """A top_k of 0 keeps one token."""
    return rows_drawn((probs, uniform, None if top_k is None else np.maximum(top_k, 1), top_p, min_p), params, PLAIN)


@mutant("sample_by_row")
def top_k_missed(probs: Array, uniform: Array, top_k: Any, top_p: Any, min_p: Any, **params: Any) -> Array:
    """top_k is not looked at where there is a top_p."""
    return rows_drawn((probs, uniform, top_k if top_p is None else None, top_p, min_p), params, PLAIN)


@mutant("sample_by_row")
def min_p_missed(probs: Array, uniform: Array, top_k: Any, top_p: Any, min_p: Any, **params: Any) -> Array:
    """min_p is not looked at."""
    return rows_drawn((probs, uniform, top_k, top_p, None), params, PLAIN)


@mutant("sample_by_row", name="order_by_row", dtypes=("float32",), relation="entries_in_any_place")
def _order_by_row(*given: Any, **params: Any) -> Array:
    """Rows in odd places are summed in another order."""
    tokens = rows_drawn(given, params, PLAIN)
    other = replace(PLAIN, form="shares", scan=scan_doubling, total=pairwise)
    tokens[1::2] = rows_drawn(given, params, other)[1::2]
    return tokens
