"""Variants of softmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.arithmetic import (
    ORDERS,
    Sum,
    exp,
    exp_by_exp2,
    exp_promised,
    pairwise,
    quotient,
    sequential,
    stored,
    wide,
)
from oracle.variants.variant import control, mutant

TILE = 16


def largest(x: Array) -> Array:
    """The maximum of each row, minus infinity where it is empty."""
    top: Array = np.max(x, axis=-1, keepdims=True, initial=-np.inf)
    return top.astype(x.dtype)


def shares(weight: Array, total: Array) -> Array:
    """Weights over their sum."""
    with np.errstate(all="ignore"):
        share: Array = weight / total
    return share


def _plain(x: Array, total: Sum = sequential, power: Any = exp) -> Array:
    rows = wide(x)
    with np.errstate(all="ignore"):
        weight = power(rows - largest(rows))
    return stored(shares(weight, total(weight)), x)


def _in_order(name: str, order: Sum) -> None:
    @control("softmax", name=f"order_{name}")
    def softmax(x: Array) -> Array:
        """The weights are added in an order of its own."""
        return _plain(x, order)


for _name, _order in ORDERS.items():
    _in_order(_name, _order)


@control("softmax")
def by_exp2(x: Array) -> Array:
    """exp(d) is exp2(d·log2 e)."""
    return _plain(x, pairwise, exp_by_exp2)


@control("softmax")
def as_promised(x: Array) -> Array:
    """The exponential and the quotient are off by anything up to two ulps."""
    rows = wide(x)
    with np.errstate(all="ignore"):
        weight = exp_promised(rows - largest(rows))
    return stored(quotient(weight, sequential(weight)), x)


@control("softmax")
def reciprocal(x: Array) -> Array:
    """The weights are multiplied by the reciprocal of their sum."""
    rows = wide(x)
    with np.errstate(all="ignore"):
        weight = exp(rows - largest(rows))
        return stored(weight * (rows.dtype.type(1) / sequential(weight)), x)


def online(rows: Array, tile: int = TILE, rescale: bool = True, start: float = -np.inf) -> tuple[Array, Array]:
    """Maximum and sum of the weights in one pass over tiles of columns."""
    top = np.full((*rows.shape[:-1], 1), start, rows.dtype)
    total = np.zeros_like(top)
    with np.errstate(all="ignore"):
        for first in range(0, rows.shape[-1], tile):
            part = rows[..., first : first + tile]
            new = np.maximum(top, largest(part))
            # while nothing but minus infinity was seen there is nothing to rescale
            shift = np.where(np.isneginf(new), rows.dtype.type(0), new)
            factor = exp(top - shift) if rescale else np.ones_like(top)
            total = total * factor + sequential(exp(part - shift))
            top = new
    return top, total


@control("softmax", name="online")
def softmax_online(x: Array) -> Array:
    """Maximum and sum in one pass over tiles of 16 columns, the sum rescaled to each new maximum."""
    rows = wide(x)
    top, total = online(rows)
    with np.errstate(all="ignore"):
        return stored(shares(exp(rows - top), total), x)


@mutant("softmax")
def not_rescaled(x: Array) -> Array:
    """The running sum is not rescaled when the maximum of a later tile is larger."""
    rows = wide(x)
    top, total = online(rows, rescale=False)
    with np.errstate(all="ignore"):
        return stored(shares(exp(rows - top), total), x)


@mutant("softmax")
def maximum_from_zero(x: Array) -> Array:
    """The running maximum starts at 0."""
    rows = wide(x)
    with np.errstate(all="ignore"):
        weight = exp(rows - np.maximum(largest(rows), rows.dtype.type(0)))
        return stored(shares(weight, sequential(weight)), x)


@mutant("softmax")
def maximum_from_minus_fifty_thousand(x: Array) -> Array:
    """The running maximum starts at -50,000, as a number "below all others"."""
    rows = wide(x)
    with np.errstate(all="ignore"):
        weight = exp(rows - np.maximum(largest(rows), rows.dtype.type(-5e4)))
        return stored(shares(weight, sequential(weight)), x)


@mutant("softmax")
def no_maximum(x: Array) -> Array:
    """The maximum is not subtracted."""
    with np.errstate(all="ignore"):
        weight = exp(wide(x))
        return stored(shares(weight, sequential(weight)), x)


@mutant("softmax")
def last_missed_in_maximum(x: Array) -> Array:
    """The maximum is taken without the last column."""
    rows = wide(x)
    with np.errstate(all="ignore"):
        weight = exp(rows - largest(rows[..., :-1]))
        return stored(shares(weight, sequential(weight)), x)


@mutant("softmax")
def last_missed_in_sum(x: Array) -> Array:
    """The sum of weights misses the last column."""
    rows = wide(x)
    with np.errstate(all="ignore"):
        weight = exp(rows - largest(rows))
        return stored(shares(weight, sequential(weight[..., :-1])), x)


@mutant("softmax")
def padding_counts(x: Array) -> Array:
    """The columns that fill up the last tile of 16 count as logits of 0."""
    rows = wide(x)
    padded = np.concatenate([rows, np.zeros((*rows.shape[:-1], -rows.shape[-1] % TILE), rows.dtype)], axis=-1)
    with np.errstate(all="ignore"):
        weight = exp(padded - largest(padded))
        return stored(shares(weight, sequential(weight))[..., : rows.shape[-1]], x)


@mutant("softmax")
def weights_narrow(x: Array) -> Array:
    """The weights are stored in bfloat16 before they are added and divided."""
    rows = wide(x)
    with np.errstate(all="ignore"):
        weight = round_to(exp(rows - largest(rows)), "bfloat16").astype(rows.dtype)
        return stored(shares(weight, sequential(weight)), x)


@mutant("softmax", relation="rows_are_independent", dtypes=("float32", "float64"))
def odd_rows_backwards(x: Array) -> Array:
    """Every second row is added from the last column to the first."""
    rows = wide(x)
    with np.errstate(all="ignore"):
        weight = exp(rows - largest(rows))
        odd = (np.arange(rows.shape[0]) % 2 == 1).reshape(-1, *[1] * (rows.ndim - 1))
        total = np.where(odd, sequential(weight[..., ::-1]), sequential(weight))
        return stored(shares(weight, total), x)
