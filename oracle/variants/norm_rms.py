"""Variants of what divides by a root mean square: Gemma's and T5's, with a residual added, per head."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.arithmetic import ORDERS, Sum, quotient, root_promised, rsqrt, sequential, stored, wide
from oracle.variants.variant import control, mutant

NARROW, BROAD = ("float16", "bfloat16"), ("float32", "float64")

# norm(rows, gain, eps, like, rounding) gives rows over their root mean square times the gain, in the dtype of `like`.
Norm = Callable[[Any, Any, float, Array, str], Array]
Variation = Callable[[Norm], Callable[..., Any]]


def multiplied(rows: Any, root: Any, gain: Any, like: Array, rounding: str) -> Array:
    """Rows times the reciprocal root times the gain, with a rounding in the middle where that is demanded."""
    if rounding == "twice":
        return stored(wide(stored(rows * root, like)) * gain, like)
    return stored(rows * root * gain, like)


def _mean_square(rows: Any, total: Sum = sequential) -> Any:
    return total(rows * rows) / rows.dtype.type(rows.shape[-1])


def in_order(total: Sum) -> Norm:
    """The squares are added in a given order."""

    def norm(rows: Any, gain: Any, eps: float, like: Array, rounding: str) -> Array:
        root = rsqrt(_mean_square(rows, total) + rows.dtype.type(eps))
        return multiplied(rows, root, gain, like, rounding)

    return norm


plain = in_order(sequential)


def gain_first(rows: Any, gain: Any, eps: float, like: Array, rounding: str) -> Array:
    """Rows are multiplied by the gain before the reciprocal root, where no rounding lies between them."""
    if rounding == "twice":
        return in_order(ORDERS["tree"])(rows, gain, eps, like, rounding)
    return stored(rows * gain * rsqrt(_mean_square(rows) + rows.dtype.type(eps)), like)


def divided(rows: Any, gain: Any, eps: float, like: Array, rounding: str) -> Array:
    """Rows are divided by the root."""
    over = rows / np.sqrt(_mean_square(rows) + rows.dtype.type(eps))
    return multiplied(over, rows.dtype.type(1), gain, like, rounding)


def as_promised(rows: Any, gain: Any, eps: float, like: Array, rounding: str) -> Array:
    """Rows are divided by the root; it is off by anything up to an ulp, the quotient by up to two."""
    over = quotient(rows, root_promised(_mean_square(rows) + rows.dtype.type(eps)))
    return multiplied(over, rows.dtype.type(1), gain, like, rounding)


def eps_outside(rows: Any, gain: Any, eps: float, like: Array, rounding: str) -> Array:
    """eps is added to the root, not under it."""
    over = rows / (np.sqrt(_mean_square(rows)) + rows.dtype.type(eps))
    return multiplied(over, rows.dtype.type(1), gain, like, rounding)


def no_eps(rows: Any, gain: Any, eps: float, like: Array, rounding: str) -> Array:
    """eps is left out."""
    return multiplied(rows, rsqrt(_mean_square(rows)), gain, like, rounding)


def last_column_missed(rows: Any, gain: Any, eps: float, like: Array, rounding: str) -> Array:
    """The last column is not counted in the mean square."""
    mean = sequential(rows[..., :-1] ** 2) / rows.dtype.type(rows.shape[-1])
    return multiplied(rows, rsqrt(mean + rows.dtype.type(eps)), gain, like, rounding)


def mean_of_n_minus_one(rows: Any, gain: Any, eps: float, like: Array, rounding: str) -> Array:
    """The sum of squares is divided by n - 1."""
    mean = sequential(rows * rows) / rows.dtype.type(rows.shape[-1] - 1)
    return multiplied(rows, rsqrt(mean + rows.dtype.type(eps)), gain, like, rounding)


def rounded_otherwise(rows: Any, gain: Any, eps: float, like: Array, rounding: str) -> Array:
    """The rounding before the gain is left out, or added where there is none."""
    return plain(rows, gain, eps, like, {"once": "twice", "twice": "once"}[rounding])


def squares_narrow(rows: Any, gain: Any, eps: float, like: Array, rounding: str) -> Array:
    """The squares are rounded to bfloat16 before they are added."""
    squares = round_to(rows * rows, "bfloat16").astype(rows.dtype)
    mean = sequential(squares) / rows.dtype.type(rows.shape[-1])
    return multiplied(rows, rsqrt(mean + rows.dtype.type(eps)), gain, like, rounding)


def truncated(rows: Any, gain: Any, eps: float, like: Array, rounding: str) -> Array:
    """The result is rounded toward zero."""
    root = rsqrt(_mean_square(rows) + rows.dtype.type(eps))
    first = wide(stored(rows * root, like)) if rounding == "twice" else rows * root
    return round_to(first * gain, like.dtype.name, "toward_zero").astype(like.dtype)


def odd_rows_backwards(rows: Any, gain: Any, eps: float, like: Array, rounding: str) -> Array:
    """The squares of every second row are added from the last column to the first."""
    odd = (np.arange(len(rows)) % 2 == 1).reshape(-1, *[1] * (rows.ndim - 1))
    total = np.where(odd, sequential((rows * rows)[..., ::-1]), sequential(rows * rows))
    root = rsqrt(total / rows.dtype.type(rows.shape[-1]) + rows.dtype.type(eps))
    return multiplied(rows, root, gain, like, rounding)


def held(rows: Any, gain: Any, eps: float, like: Array, rounding: str) -> Array:
    """Results are held within ±4096."""
    out = wide(plain(rows, gain, eps, like, rounding))
    limit = out.dtype.type(4096)
    return stored(np.where(np.isfinite(out), np.clip(out, -limit, limit), out), like)


HONEST: dict[str, Norm] = {
    **{f"order_{name}": in_order(order) for name, order in ORDERS.items()},
    "gain_first": gain_first,
    "quotient": divided,
    "as_promised": as_promised,
}
MISTAKEN: dict[str, tuple[Norm, tuple[str, ...]]] = {
    "eps_outside": (eps_outside, ()),
    "no_eps": (no_eps, ()),
    "last_column_missed": (last_column_missed, ()),
    "mean_of_n_minus_one": (mean_of_n_minus_one, ()),
    "rounded_otherwise": (rounded_otherwise, NARROW),
    "squares_narrow": (squares_narrow, BROAD),
    "truncated": (truncated, NARROW),
}


def gain_of(weight: Array, gain: str) -> Any:
    """The factor that a gain stands for."""
    return wide(weight) if gain == "weight" else 1 + wide(weight)


# Each operator around a norm.


def _gemma(norm: Norm) -> Callable[..., Any]:
    def variant(x: Array, weight: Array, *, eps: float) -> Array:
        return norm(wide(x), gain_of(weight, "one_plus_weight"), eps, x, "once")

    return variant


def _whole(norm: Norm) -> Callable[..., Any]:
    def variant(x: Array, weight: Array, *, eps: float) -> Array:
        return norm(wide(x), wide(weight), eps, x, "once")

    return variant


def _t5(norm: Norm) -> Callable[..., Any]:
    def variant(x: Array, weight: Array, *, eps: float) -> Array:
        return norm(wide(x), wide(weight), eps, x, "twice")

    return variant


def _fused(norm: Norm) -> Callable[..., Any]:
    def variant(
        x: Array, residual: Array, weight: Array, *, eps: float, gain: str, normalised: str, rounding: str
    ) -> tuple[Array, Array]:
        total = wide(x) + wide(residual)
        out = stored(total, x)
        rows = wide(out) if normalised == "rounded" else total
        return out, norm(rows, gain_of(weight, gain), eps, x, rounding)

    return variant


def _heads(norm: Norm) -> Callable[..., Any]:
    def variant(
        q: Array, k: Array, q_weight: Array, k_weight: Array, *, eps: float, gain: str, rounding: str
    ) -> tuple[Array, Array]:
        return (
            norm(wide(q), gain_of(q_weight, gain), eps, q, rounding),
            norm(wide(k), gain_of(k_weight, gain), eps, k, rounding),
        )

    return variant


AROUND: dict[str, Variation] = {
    "gemma_rmsnorm": _gemma,
    "t5_rmsnorm": _t5,
    "fused_add_rmsnorm": _fused,
    "qk_norm": _heads,
}


def _register(around: Variation, norm: Norm, operator: str, name: str, register: Any, **facts: Any) -> None:
    variant = around(norm)
    variant.__doc__ = norm.__doc__ or f"The squares are added in the order {name.removeprefix('order_')}."
    register(operator, name=name, **facts)(variant)


for _operator, _around in AROUND.items():
    for _name, _norm in HONEST.items():
        _register(_around, _norm, _operator, _name, control)
    for _name, (_norm, _dtypes) in MISTAKEN.items():
        _register(_around, _norm, _operator, _name, mutant, dtypes=_dtypes)
for _operator, _around in {"rmsnorm": _whole, **AROUND}.items():
    _facts: dict[str, Any] = {"dtypes": BROAD, "relation": "rows_are_independent"}
    _register(_around, odd_rows_backwards, _operator, "odd_rows_backwards", mutant, **_facts)
    if _operator != "gemma_rmsnorm":
        _facts = {"dtypes": ("bfloat16", *BROAD), "relation": "gain_scales"}
        _register(_around, held, _operator, "held", mutant, **_facts)


@mutant("gemma_rmsnorm")
def gain_not_shifted(x: Array, weight: Array, *, eps: float) -> Array:
    """The gain is weight, not 1 + weight."""
    return plain(wide(x), wide(weight), eps, x, "once")


@mutant("gemma_rmsnorm", dtypes=NARROW)
def gain_narrow(x: Array, weight: Array, *, eps: float) -> Array:
    """1 + weight is rounded to the 16-bit dtype."""
    return plain(wide(x), wide(stored(1 + wide(weight), x)), eps, x, "once")


@mutant("t5_rmsnorm", name="gain_plus_one")
def t5_gain_plus_one(x: Array, weight: Array, *, eps: float) -> Array:
    """The gain is 1 + weight."""
    return plain(wide(x), 1 + wide(weight), eps, x, "twice")


@mutant("fused_add_rmsnorm")
def residual_not_added(
    x: Array, residual: Array, weight: Array, *, eps: float, gain: str, normalised: str, rounding: str
) -> tuple[Array, Array]:
    """residual_out is right, but what is normalised is x."""
    return stored(wide(x) + wide(residual), x), plain(wide(x), gain_of(weight, gain), eps, x, rounding)


@mutant("fused_add_rmsnorm")
def residual_is_the_result(
    x: Array, residual: Array, weight: Array, *, eps: float, gain: str, normalised: str, rounding: str
) -> tuple[Array, Array]:
    """residual_out is the normalised sum."""
    _, out = _fused(plain)(x, residual, weight, eps=eps, gain=gain, normalised=normalised, rounding=rounding)
    return out, out


@mutant("fused_add_rmsnorm", dtypes=NARROW)
def other_sum_normalised(
    x: Array, residual: Array, weight: Array, *, eps: float, gain: str, normalised: str, rounding: str
) -> tuple[Array, Array]:
    """The rounded sum is normalised in place of the unrounded one, and the other way round."""
    other = {"rounded": "unrounded", "unrounded": "rounded"}[normalised]
    result: tuple[Array, Array] = _fused(plain)(
        x, residual, weight, eps=eps, gain=gain, normalised=other, rounding=rounding
    )
    return result


@mutant("fused_add_rmsnorm")
def other_gain(
    x: Array, residual: Array, weight: Array, *, eps: float, gain: str, normalised: str, rounding: str
) -> tuple[Array, Array]:
    """The gain is 1 + weight in place of weight, and the other way round."""
    other = {"weight": "one_plus_weight", "one_plus_weight": "weight"}[gain]
    result: tuple[Array, Array] = _fused(plain)(
        x, residual, weight, eps=eps, gain=other, normalised=normalised, rounding=rounding
    )
    return result


@mutant("qk_norm")
def all_heads_together(
    q: Array, k: Array, q_weight: Array, k_weight: Array, *, eps: float, gain: str, rounding: str
) -> tuple[Array, Array]:
    """One mean square for all heads of a token."""

    def together(x: Array, weight: Array) -> Array:
        rows = wide(x)
        flat = rows.reshape(len(x), 1, -1) if x.size else rows
        root = rsqrt(_mean_square(flat) + rows.dtype.type(eps))
        return multiplied(rows, root, gain_of(weight, gain), x, rounding)

    return together(q, q_weight), together(k, k_weight)


@mutant("qk_norm")
def weights_swapped(
    q: Array, k: Array, q_weight: Array, k_weight: Array, *, eps: float, gain: str, rounding: str
) -> tuple[Array, Array]:
    """Keys have the gain of the queries, and queries that of the keys."""
    return (
        plain(wide(q), gain_of(k_weight, gain), eps, q, rounding),
        plain(wide(k), gain_of(q_weight, gain), eps, k, rounding),
    )


@mutant("qk_norm")
def keys_left(
    q: Array, k: Array, q_weight: Array, k_weight: Array, *, eps: float, gain: str, rounding: str
) -> tuple[Array, Array]:
    """Keys are not normalised."""
    return plain(wide(q), gain_of(q_weight, gain), eps, q, rounding), k
