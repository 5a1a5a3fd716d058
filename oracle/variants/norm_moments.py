"""Variants of what takes off a mean and divides by a standard deviation: layers, groups, with a residual added."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.arithmetic import ORDERS, Sum, rsqrt, sequential, stored, wide
from oracle.variants.variant import control, mutant

NARROW, BROAD = ("float16", "bfloat16"), ("float32", "float64")
TILE = 16

# norm(rows, weight, bias, eps) gives standardised rows in the compute type; weight and bias broadcast, or are absent.
Norm = Callable[[Any, Any, Any, float], Any]
Variation = Callable[[Norm], Callable[..., Any]]


def finished(deviation: Any, variance: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Deviations over the standard deviation, times weight, plus bias."""
    out = deviation * rsqrt(variance + deviation.dtype.type(eps))
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def mean_of(rows: Any, total: Sum = sequential) -> Any:
    """The mean of each row."""
    return total(rows) / rows.dtype.type(rows.shape[-1])


def in_order(total: Sum) -> Norm:
    """Both sums are taken in a given order."""

    def norm(rows: Any, weight: Any, bias: Any, eps: float) -> Any:
        deviation = rows - mean_of(rows, total)
        return finished(deviation, mean_of(deviation * deviation, total), weight, bias, eps)

    return norm


plain = in_order(sequential)


def gain_first(rows: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Deviations are multiplied by the weight before the reciprocal root."""
    deviation = rows - mean_of(rows)
    root = rsqrt(mean_of(deviation * deviation) + rows.dtype.type(eps))
    out = (deviation if weight is None else deviation * weight) * root
    return out if bias is None else out + bias


def quotient(rows: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Deviations are divided by the root."""
    deviation = rows - mean_of(rows)
    over = deviation / np.sqrt(mean_of(deviation * deviation) + rows.dtype.type(eps))
    over = over if weight is None else over * weight
    return over if bias is None else over + bias


def welford(rows: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Mean and variance are updated with every element."""
    real = rows.dtype.type
    mean, squares = np.zeros_like(rows[..., :1]), np.zeros_like(rows[..., :1])
    for column in range(rows.shape[-1]):
        step = rows[..., column : column + 1] - mean
        mean = mean + step / real(column + 1)
        squares = squares + step * (rows[..., column : column + 1] - mean)
    return finished(rows - mean, squares / real(rows.shape[-1]), weight, bias, eps)


def welford_of_tiles(rows: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Mean and variance of tiles of 16 columns, merged one after the other."""
    real = rows.dtype.type
    mean, squares, seen = np.zeros_like(rows[..., :1]), np.zeros_like(rows[..., :1]), 0
    for first in range(0, rows.shape[-1], TILE):
        tile = rows[..., first : first + TILE]
        size, own = tile.shape[-1], mean_of(tile)
        step = own - mean
        mean = mean + step * (real(size) / real(seen + size))
        squares = squares + sequential((tile - own) ** 2) + step * step * (real(seen) * real(size) / real(seen + size))
        seen += size
    return finished(rows - mean, squares / real(seen), weight, bias, eps)


def one_pass(rows: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The variance is mean(x²) - mean(x)²."""
    mean = mean_of(rows)
    return finished(rows - mean, mean_of(rows * rows) - mean * mean, weight, bias, eps)


def of_n_minus_one(rows: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The variance is that of a sample, over n - 1."""
    deviation = rows - mean_of(rows)
    variance = sequential(deviation * deviation) / rows.dtype.type(rows.shape[-1] - 1)
    return finished(deviation, variance, weight, bias, eps)


def eps_outside(rows: Any, weight: Any, bias: Any, eps: float) -> Any:
    """eps is added to the standard deviation, not to the variance."""
    deviation = rows - mean_of(rows)
    over = deviation / (np.sqrt(mean_of(deviation * deviation)) + rows.dtype.type(eps))
    over = over if weight is None else over * weight
    return over if bias is None else over + bias


def no_eps(rows: Any, weight: Any, bias: Any, eps: float) -> Any:
    """eps is left out."""
    return plain(rows, weight, bias, 0.0)


def mean_kept(rows: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The mean is not taken off the elements, though the variance is right."""
    deviation = rows - mean_of(rows)
    return finished(rows, mean_of(deviation * deviation), weight, bias, eps)


def last_missed(rows: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The last element is not counted in the mean."""
    mean = sequential(rows[..., :-1]) / rows.dtype.type(rows.shape[-1])
    deviation = rows - mean
    return finished(deviation, mean_of(deviation * deviation), weight, bias, eps)


def bias_before_gain(rows: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The bias is multiplied by the weight, too."""
    out = plain(rows, None, bias, eps)
    return out if weight is None else out * weight


def no_bias(rows: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The bias is left out."""
    return plain(rows, weight, None, eps)


def deviations_narrow(rows: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The deviations are rounded to bfloat16 before they are squared and added."""
    deviation = rows - mean_of(rows)
    narrow = round_to(deviation, "bfloat16").astype(rows.dtype)
    return finished(deviation, mean_of(narrow * narrow), weight, bias, eps)


def odd_rows_backwards(rows: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Every second row is added from the last element to the first."""
    odd = np.arange(len(rows))[:, np.newaxis] % 2 == 1
    mean = np.where(odd, mean_of(rows[..., ::-1]), mean_of(rows))
    squares = (rows - mean) ** 2
    return finished(rows - mean, np.where(odd, mean_of(squares[..., ::-1]), mean_of(squares)), weight, bias, eps)


def held(rows: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Results are held within ±4096."""
    out = plain(rows, weight, bias, eps)
    limit = out.dtype.type(4096)
    return np.where(np.isfinite(out), np.clip(out, -limit, limit), out)


HONEST: dict[str, Norm] = {
    **{f"order_{name}": in_order(order) for name, order in ORDERS.items()},
    "gain_first": gain_first,
    "quotient": quotient,
}
WELFORD: dict[str, Norm] = {"welford": welford, "welford_of_tiles": welford_of_tiles}
MISTAKEN: dict[str, tuple[Norm, tuple[str, ...]]] = {
    "one_pass": (one_pass, ()),
    "of_n_minus_one": (of_n_minus_one, ()),
    "eps_outside": (eps_outside, ()),
    "no_eps": (no_eps, ()),
    "mean_kept": (mean_kept, ()),
    "last_missed": (last_missed, ()),
    "bias_before_gain": (bias_before_gain, ()),
    "no_bias": (no_bias, ()),
    "deviations_narrow": (deviations_narrow, BROAD),
}


def _maybe(x: Array | None) -> Any:
    return None if x is None else wide(x)


def _layer(norm: Norm) -> Callable[..., Any]:
    def variant(x: Array, weight: Array | None, bias: Array | None, *, eps: float) -> Array:
        return stored(norm(wide(x), _maybe(weight), _maybe(bias), eps), x)

    return variant


def _fused(norm: Norm) -> Callable[..., Any]:
    def variant(
        x: Array, residual: Array, weight: Array | None, bias: Array | None, *, eps: float, normalised: str
    ) -> tuple[Array, Array]:
        total = wide(x) + wide(residual)
        out = stored(total, x)
        rows = wide(out) if normalised == "rounded" else total
        return out, stored(norm(rows, _maybe(weight), _maybe(bias), eps), x)

    return variant


def _spread(vector: Array | None, x: Array, groups: int) -> Any:
    """One number per channel, for each element of each group."""
    if vector is None:
        return None
    each = np.repeat(wide(vector).reshape(groups, -1), x.shape[2], axis=1)
    return np.tile(each, (x.shape[0], 1))


def _groups(norm: Norm) -> Callable[..., Any]:
    def variant(x: Array, weight: Array | None, bias: Array | None, *, groups: int, eps: float) -> Array:
        rows = wide(x).reshape(x.shape[0] * groups, x.shape[1] // groups * x.shape[2])
        out = norm(rows, _spread(weight, x, groups), _spread(bias, x, groups), eps)
        return stored(out.reshape(x.shape), x)

    return variant


AROUND: dict[str, Variation] = {"layernorm": _layer, "fused_add_layernorm": _fused, "groupnorm": _groups}


def _register(around: Variation, norm: Norm, operator: str, name: str, register: Any, **facts: Any) -> None:
    variant = around(norm)
    variant.__doc__ = norm.__doc__ or f"Both sums are taken in the order {name.removeprefix('order_')}."
    register(operator, name=name, **facts)(variant)


for _operator, _around in AROUND.items():
    for _name, _norm in HONEST.items():
        _register(_around, _norm, _operator, _name, control)
    for _name, _norm in WELFORD.items():
        _register(_around, _norm, _operator, _name, control, numerics="float32_welford", dtypes=(*NARROW, "float32"))
    for _name, (_norm, _dtypes) in MISTAKEN.items():
        _register(_around, _norm, _operator, _name, mutant, dtypes=_dtypes)
    _register(
        _around, odd_rows_backwards, _operator, "odd_rows_backwards", mutant,
        dtypes=BROAD, relation="rows_are_independent",
    )  # fmt: skip
    _register(_around, held, _operator, "held", mutant, dtypes=("bfloat16", *BROAD), relation="gain_scales")


@mutant("fused_add_layernorm", name="residual_not_added")
def residual_not_added(
    x: Array, residual: Array, weight: Array | None, bias: Array | None, *, eps: float, normalised: str
) -> tuple[Array, Array]:
    """residual_out is right, but what is normalised is x."""
    out = stored(plain(wide(x), _maybe(weight), _maybe(bias), eps), x)
    return stored(wide(x) + wide(residual), x), out


@mutant("fused_add_layernorm", dtypes=NARROW)
def other_sum_normalised(
    x: Array, residual: Array, weight: Array | None, bias: Array | None, *, eps: float, normalised: str
) -> tuple[Array, Array]:
    """The rounded sum is normalised in place of the unrounded one, and the other way round."""
    other = {"rounded": "unrounded", "unrounded": "rounded"}[normalised]
    result: tuple[Array, Array] = _fused(plain)(x, residual, weight, bias, eps=eps, normalised=other)
    return result


@mutant("groupnorm")
def groups_interleaved(x: Array, weight: Array | None, bias: Array | None, *, groups: int, eps: float) -> Array:
    """A group is every groups-th channel, not adjacent ones."""
    turned = np.arange(x.shape[1]).reshape(-1, groups).T.reshape(-1)
    parts = [None if vector is None else vector[turned] for vector in (weight, bias)]
    out = np.empty_like(x)
    out[:, turned] = _groups(plain)(x[:, turned], *parts, groups=groups, eps=eps)
    return out


@mutant("groupnorm")
def channels_alone(x: Array, weight: Array | None, bias: Array | None, *, groups: int, eps: float) -> Array:
    """Every channel has its own mean and variance."""
    result: Array = _groups(plain)(x, weight, bias, groups=x.shape[1], eps=eps)
    return result


@mutant("groupnorm")
def first_of_group(x: Array, weight: Array | None, bias: Array | None, *, groups: int, eps: float) -> Array:
    """Weight and bias are those of the first channel of a group."""
    size = x.shape[1] // groups
    parts = [None if vector is None else np.repeat(vector[::size], size) for vector in (weight, bias)]
    result: Array = _groups(plain)(x, *parts, groups=groups, eps=eps)
    return result
