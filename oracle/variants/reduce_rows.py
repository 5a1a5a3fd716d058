"""Variants of the reductions along rows."""

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
    log,
    pairwise,
    sequential,
    stored,
    wide,
)
from oracle.variants.softmax import largest, online
from oracle.variants.variant import control, mutant

NARROW, BROAD = ("float16", "bfloat16"), ("float32", "float64")
TILE = 16


def _odd_rows_backwards(rows: Any, total: Sum) -> Any:
    """Sums of rows, those with an odd first index from the end."""
    if rows.ndim < 2:
        return total(rows)
    odd = (np.arange(len(rows)) % 2 == 1).reshape(-1, *[1] * (rows.ndim - 1))
    return np.where(odd, total(rows[..., ::-1]), total(rows))


def _padded(rows: Any, fill: float) -> Any:
    tail = np.full((*rows.shape[:-1], -rows.shape[-1] % TILE), fill, rows.dtype)
    return np.concatenate([rows, tail], axis=-1)


# mean


def _average(x: Array, total: Any, count: float) -> Array:
    with np.errstate(all="ignore"):
        return stored((total / total.dtype.type(count))[..., 0], x)


def _mean_in(order: str) -> None:
    @control("mean", name=f"order_{order}")
    def mean(x: Array) -> Array:
        """The terms are added in an order of its own."""
        return _average(x, ORDERS[order](wide(x)), x.shape[-1])


for _order in ORDERS:
    _mean_in(_order)


@control("mean", name="reciprocal")
def mean_reciprocal(x: Array) -> Array:
    """The sum is multiplied by 1 / n."""
    rows = wide(x)
    return stored((pairwise(rows) * (rows.dtype.type(1) / rows.dtype.type(x.shape[-1])))[..., 0], x)


@mutant("mean", name="of_n_minus_one")
def mean_of_n_minus_one(x: Array) -> Array:
    """The sum is divided by n - 1."""
    return _average(x, sequential(wide(x)), x.shape[-1] - 1)


@mutant("mean", name="of_padded")
def mean_of_padded(x: Array) -> Array:
    """The sum is divided by n rounded up to a multiple of 16."""
    return _average(x, sequential(wide(x)), x.shape[-1] + -x.shape[-1] % TILE)


@mutant("mean", name="last_missed")
def mean_last_missed(x: Array) -> Array:
    """The last term is not added."""
    return _average(x, sequential(wide(x)[..., :-1]), x.shape[-1])


@mutant("mean", name="not_divided")
def mean_not_divided(x: Array) -> Array:
    """The sum is not divided."""
    return _average(x, sequential(wide(x)), 1)


@mutant("mean", name="sum_stored", dtypes=NARROW)
def mean_sum_stored(x: Array) -> Array:
    """The sum is rounded to 16 bits before it is divided."""
    return _average(x, wide(stored(sequential(wide(x)), x)), x.shape[-1])


@mutant("mean", name="terms_narrow", dtypes=BROAD)
def mean_terms_narrow(x: Array) -> Array:
    """The terms are rounded to bfloat16 before they are added."""
    return _average(x, sequential(round_to(x, "bfloat16").astype(x.dtype)), x.shape[-1])


@mutant("mean", name="nan_skipped")
def mean_nan_skipped(x: Array) -> Array:
    """What is not a number counts as 0."""
    return _average(x, sequential(np.nan_to_num(wide(x), nan=0.0, posinf=np.inf, neginf=-np.inf)), x.shape[-1])


@mutant("mean", name="odd_rows_backwards", dtypes=BROAD, relation="rows_are_independent")
def mean_odd_rows_backwards(x: Array) -> Array:
    """Every second row is added from the last column to the first."""
    return _average(x, _odd_rows_backwards(wide(x), sequential), x.shape[-1])


# cumsum


def scanned(rows: Any, tile: int | None = None, carry: bool = True) -> Any:
    """Prefix sums; tiles are scanned on their own, then the sum of those before is added."""
    if tile is None or not rows.shape[-1]:
        return np.cumsum(rows, axis=-1, dtype=rows.dtype)
    length = rows.shape[-1]
    grouped = _padded(rows, 0.0) if tile == TILE else rows
    grouped = grouped.reshape(*rows.shape[:-1], grouped.shape[-1] // tile, tile)
    inner = np.cumsum(grouped, axis=-1, dtype=rows.dtype)
    if carry:
        ends = np.cumsum(inner[..., -1], axis=-1, dtype=rows.dtype)
        before = np.concatenate([np.zeros_like(ends[..., :1]), ends[..., :-1]], axis=-1)
        inner = inner + before[..., np.newaxis]
    return inner.reshape((*grouped.shape[:-2], grouped.shape[-2] * tile))[..., :length]


def doubling(rows: Any) -> Any:
    """In log₂ n steps, each adding what lies 1, 2, 4, … places before."""
    out, step = rows.copy(), 1
    while step < rows.shape[-1]:
        out = np.concatenate([out[..., :step], out[..., step:] + out[..., :-step]], axis=-1)
        step *= 2
    return out


def each_backwards(rows: Any) -> Any:
    """Every prefix summed on its own, from its end."""
    parts = [sequential(rows[..., : at + 1][..., ::-1]) for at in range(rows.shape[-1])]
    return np.concatenate(parts, axis=-1) if parts else rows


def each_by_tree(rows: Any) -> Any:
    """Every prefix summed on its own, by a tree."""
    parts = [pairwise(rows[..., : at + 1]) for at in range(rows.shape[-1])]
    return np.concatenate(parts, axis=-1) if parts else rows


def _shifted(total: Any, exclusive: bool) -> Any:
    return np.concatenate([np.zeros_like(total[..., :1]), total[..., :-1]], axis=-1) if exclusive else total


SCANS: dict[str, tuple[Any, str]] = {
    "sequential": (scanned, "One term after the other."),
    "tiles": (lambda rows: scanned(rows, TILE), "Tiles of 16, then what is before each."),
    "doubling": (doubling, "Hillis and Steele's scan."),
    "short_tiles": (lambda rows: scanned(rows, 1), "Tiles of one term."),
    "each_backwards": (lambda rows: each_backwards(rows), "Every prefix on its own, backwards."),
    "each_by_tree": (lambda rows: each_by_tree(rows), "Every prefix on its own, by a tree."),
}
WRONG_SCANS: dict[str, tuple[Any, str]] = {
    "no_carry": (lambda rows: scanned(rows, TILE, carry=False), "Nothing is carried from tile to tile."),
    "narrow": (
        lambda rows: scanned(round_to(rows, "float8_e5m2").astype(rows.dtype)),
        "Terms are rounded to 8 bits before they are added.",
    ),
    "backwards": (lambda rows: scanned(rows[..., ::-1])[..., ::-1], "The sums run from the end."),
    "first_missed": (lambda rows: scanned(rows) - rows[..., :1], "The first term is not added."),
    "copied": (lambda rows: rows, "Nothing is added."),
}


def _scan(register: Any, name: str, scan: Any, doc: str) -> None:
    def variant(x: Array, *, exclusive: bool) -> Array:
        with np.errstate(all="ignore"):
            return stored(_shifted(scan(wide(x)), exclusive), x)

    variant.__doc__ = doc
    register("cumsum", name=name)(variant)


for _name, (_function, _doc) in SCANS.items():
    _scan(control, _name, _function, _doc)
for _name, (_function, _doc) in WRONG_SCANS.items():
    _scan(mutant, _name, _function, _doc)


@mutant("cumsum")
def otherwise_exclusive(x: Array, *, exclusive: bool) -> Array:
    """Exclusive sums in place of inclusive ones, and the other way round."""
    with np.errstate(all="ignore"):
        return stored(_shifted(scanned(wide(x)), not exclusive), x)


# logsumexp and log_softmax


def _exponentials(rows: Any, power: Any = exp, start: float = -np.inf) -> tuple[Any, Any]:
    """Maximum (0 in place of an infinite one) and exponentials."""
    top = np.maximum(largest(rows), rows.dtype.type(start))
    shift = np.where(np.isinf(top), rows.dtype.type(0), top)
    return shift, power(rows - shift)


def _lse(x: Array, total: Sum = sequential, power: Any = exp, start: float = -np.inf) -> Array:
    rows = wide(x)
    with np.errstate(all="ignore"):
        shift, weight = _exponentials(rows, power, start)
        return stored((shift + log(total(weight)))[..., 0], x)


def _log_shares(x: Array, total: Sum = sequential, power: Any = exp, start: float = -np.inf) -> Array:
    rows = wide(x)
    with np.errstate(all="ignore"):
        distance = rows - np.maximum(largest(rows), rows.dtype.type(start))
        return stored(distance - log(total(power(distance))), x)


def _logarithms(operator: str, function: Any) -> None:
    def one(register: Any, name: str, doc: str, *arguments: Any, **facts: Any) -> None:
        def variant(x: Array) -> Array:
            return function(x, *arguments)  # type: ignore[no-any-return]

        variant.__doc__ = doc
        register(operator, name=name, **facts)(variant)

    for order, total in ORDERS.items():
        one(control, f"order_{order}", f"The exponentials are added in the order {order}.", total)
    one(control, "by_exp2", "exp(d) is exp2(d·log2 e).", pairwise, exp_by_exp2)
    one(control, "as_promised", "exp is off by anything up to two ulps.", sequential, exp_promised)
    one(mutant, "maximum_from_zero", "The running maximum starts at 0.", sequential, exp, 0.0)
    one(mutant, "maximum_from_minus_fifty_thousand", "The running maximum starts at -50,000.", sequential, exp, -5e4)
    one(mutant, "last_missed", "The sum misses the last column.", lambda weight: sequential(weight[..., :-1]))
    one(mutant, "first_twice", "The first column is added twice.", lambda weight: sequential(weight) + weight[..., :1])
    one(
        mutant, "weights_narrow", "The exponentials are rounded to 8 bits.", sequential,
        lambda d: round_to(exp(d), "float8_e5m2").astype(d.dtype),
    )  # fmt: skip
    one(mutant, "base_two", "Powers of 2 are added, not of e.", sequential, lambda d: np.exp2(d))
    one(
        mutant, "odd_rows_backwards", "Every second row is added from the last column to the first.",
        lambda weight: _odd_rows_backwards(weight, sequential), dtypes=BROAD, relation="rows_are_independent",
    )  # fmt: skip


_logarithms("logsumexp", _lse)
_logarithms("log_softmax", _log_shares)


@control("logsumexp", name="online")
def logsumexp_online(x: Array) -> Array:
    """Maximum and sum in one pass over tiles of 16 columns."""
    with np.errstate(all="ignore"):
        top, total = online(wide(x))
        shift = np.where(np.isneginf(top), top.dtype.type(0), top)
        return stored((shift + log(total))[..., 0], x)


@mutant("logsumexp", name="no_maximum")
def logsumexp_no_maximum(x: Array) -> Array:
    """The maximum is not subtracted."""
    with np.errstate(all="ignore"):
        return stored(log(sequential(exp(wide(x))))[..., 0], x)


@mutant("log_softmax", name="digits_of_the_maximum")
def log_softmax_digits_of_the_maximum(x: Array) -> Array:
    """x - (m + log Σ), which loses digits where m is large."""
    rows = wide(x)
    with np.errstate(all="ignore"):
        distance = rows - largest(rows)
        return stored(rows - (largest(rows) + log(sequential(exp(distance)))), x)


@mutant("log_softmax", name="log_of_share")
def log_softmax_log_of_share(x: Array) -> Array:
    """The logarithm of the softmax, minus infinity where the share vanishes."""
    rows = wide(x)
    with np.errstate(all="ignore"):
        weight = exp(rows - largest(rows))
        return stored(log(weight / sequential(weight)), x)


@mutant("cumsum", name="odd_rows_doubling", dtypes=BROAD, relation="rows_are_independent")
def cumsum_odd_rows_doubling(x: Array, *, exclusive: bool) -> Array:
    """Every second row is scanned in log₂ n steps."""
    rows = wide(x)
    with np.errstate(all="ignore"):
        total = np.array(scanned(rows))
        if total.ndim > 1:
            total[1::2] = doubling(rows)[1::2]
        return stored(_shifted(total, exclusive), x)
