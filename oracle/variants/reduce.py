"""Variants of the sums."""

from __future__ import annotations

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.arithmetic import ORDERS, Sum, in_blocks, sequential, stored, wide
from oracle.variants.variant import control, mutant

SPLITS = 4


def summed_last(x: Array, axis: int | None) -> Array:
    """The array with the axis that is summed last; over all axes, one row of everything."""
    return x.reshape(-1) if axis is None else np.moveaxis(x, axis, -1)


def _whole(total: Array, x: Array) -> Array:
    """A sum that kept its axis with length 1, in the dtype of the input."""
    return stored(total[..., 0], x)


def _sum_in_order(total: Sum) -> Array:
    def sum(x: Array, *, axis: int | None) -> Array:
        return _whole(total(summed_last(wide(x), axis)), x)

    return sum  # type: ignore[return-value]


for _name, _order in ORDERS.items():
    _variant = _sum_in_order(_order)
    _variant.__doc__ = f"The terms are added in the order {_name}."
    control("sum", name=f"order_{_name}")(_variant)  # type: ignore[arg-type]


@control("sum")
def split(x: Array, *, axis: int | None) -> Array:
    """Every fourth term goes to the same partial sum; the last partial sum is added first."""
    rows = summed_last(wide(x), axis)
    parts = np.concatenate([sequential(rows[..., start::SPLITS]) for start in range(SPLITS)], axis=-1)
    return _whole(sequential(parts[..., ::-1]), x)


@control("sum")
def largest_last(x: Array, *, axis: int | None) -> Array:
    """The terms are sorted by magnitude and added from the smallest to the largest."""
    rows = summed_last(wide(x), axis)
    order = np.argsort(np.abs(rows), axis=-1, kind="stable")
    return _whole(sequential(np.take_along_axis(rows, order, axis=-1)), x)


@mutant("sum")
def last_missed(x: Array, *, axis: int | None) -> Array:
    """The last term is not added."""
    return _whole(sequential(summed_last(wide(x), axis)[..., :-1]), x)


@mutant("sum")
def first_twice(x: Array, *, axis: int | None) -> Array:
    """The first term is added twice."""
    rows = summed_last(wide(x), axis)
    return _whole(sequential(np.concatenate([rows[..., :1], rows], axis=-1)), x)


@mutant("sum")
def tail_missed(x: Array, *, axis: int | None) -> Array:
    """Terms beyond the last whole tile of 16 are not added."""
    rows = summed_last(wide(x), axis)
    return _whole(in_blocks(16)(rows[..., : rows.shape[-1] // 16 * 16]), x)


@mutant("sum")
def partial_sums_narrow(x: Array, *, axis: int | None) -> Array:
    """Partial sums of 16 terms are stored in bfloat16."""
    rows = summed_last(wide(x), axis)
    tail = -rows.shape[-1] % 16
    rows = np.concatenate([rows, np.zeros((*rows.shape[:-1], tail), rows.dtype)], axis=-1)
    parts = sequential(rows.reshape(*rows.shape[:-1], rows.shape[-1] // 16, 16))[..., 0]
    return _whole(sequential(round_to(parts, "bfloat16").astype(parts.dtype)), x)


@mutant("sum")
def nan_skipped(x: Array, *, axis: int | None) -> Array:
    """What is not a number counts as 0."""
    rows = summed_last(wide(x), axis)
    return _whole(sequential(np.where(np.isnan(rows), rows.dtype.type(0), rows)), x)


@mutant("sum", dtypes=("float16", "bfloat16"))
def truncated(x: Array, *, axis: int | None) -> Array:
    """The result is rounded toward zero to the 16-bit dtype."""
    total = sequential(summed_last(wide(x), axis))[..., 0]
    return round_to(total, x.dtype.name, "toward_zero").astype(x.dtype)


@mutant("sum")
def infinity_saturated(x: Array, *, axis: int | None) -> Array:
    """An infinite sum is stored as the largest finite number."""
    total = sequential(summed_last(wide(x), axis))[..., 0]
    return round_to(total, x.dtype.name, saturate=True).astype(x.dtype)


@mutant("sum", relation="sum_scales", dtypes=("bfloat16", "float32", "float64"))
def fixed_point(x: Array, *, axis: int | None) -> Array:
    """Sums are held within ±2^40, as the accumulator of a reproducible sum in fixed point would."""
    total = sequential(summed_last(wide(x), axis))
    limit = total.dtype.type(2.0**40)
    return _whole(np.where(np.isfinite(total), np.clip(total, -limit, limit), total), x)


@mutant("sum", relation="sum_of_opposites", dtypes=("float32",))
def partial_sums_down(x: Array, *, axis: int | None) -> Array:
    """Partial sums of 32 terms are rounded down."""
    rows = summed_last(x, axis)
    if rows.shape[-1] <= 64:
        return _whole(sequential(rows), x)
    tail = -rows.shape[-1] % 32
    rows = np.concatenate([rows, np.zeros((*rows.shape[:-1], tail), rows.dtype)], axis=-1).astype(np.float64)
    parts = np.sum(rows.reshape(*rows.shape[:-1], rows.shape[-1] // 32, 32), axis=-1)
    return _whole(sequential(round_to(parts, "float32", "down").astype(np.float32)), x)
