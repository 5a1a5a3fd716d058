"""Variants of the normalisations."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.arithmetic import ORDERS, Sum, rsqrt, sequential, stored, wide
from oracle.variants.variant import control, mutant


def _mean_square(x: Array, total: Sum = sequential) -> Array:
    mean: Array = total(x * x) / x.dtype.type(x.shape[-1])
    return mean


def _ordered(order: str) -> None:
    @control("rmsnorm", name=f"order_{order}")
    def rmsnorm(x: Array, weight: Array, *, eps: float) -> Array:
        """The squares are summed in an order of its own."""
        wide_x, gain = wide(x), wide(weight)
        scale = rsqrt(_mean_square(wide_x, ORDERS[order]) + wide_x.dtype.type(eps))
        return stored(wide_x * scale * gain, x)


for _order in ORDERS:
    _ordered(_order)


@control("rmsnorm")
def gain_first(x: Array, weight: Array, *, eps: float) -> Array:
    """x is multiplied by the gain before the reciprocal root."""
    wide_x = wide(x)
    return stored((wide_x * wide(weight)) * rsqrt(_mean_square(wide_x) + wide_x.dtype.type(eps)), x)


@control("rmsnorm")
def quotient(x: Array, weight: Array, *, eps: float) -> Array:
    """x is divided by the root."""
    wide_x = wide(x)
    return stored(wide_x / np.sqrt(_mean_square(wide_x) + wide_x.dtype.type(eps)) * wide(weight), x)


@mutant("rmsnorm")
def eps_outside(x: Array, weight: Array, *, eps: float) -> Array:
    """eps is added to the root, not under it."""
    wide_x = wide(x)
    return stored(wide_x / (np.sqrt(_mean_square(wide_x)) + wide_x.dtype.type(eps)) * wide(weight), x)


@mutant("rmsnorm")
def no_eps(x: Array, weight: Array, *, eps: float) -> Array:
    """eps is left out."""
    wide_x = wide(x)
    return stored(wide_x * rsqrt(_mean_square(wide_x)) * wide(weight), x)


@mutant("rmsnorm")
def last_column_missed(x: Array, weight: Array, *, eps: float) -> Array:
    """The last column is not counted in the mean square."""
    wide_x = wide(x)
    total = sequential(wide_x[..., :-1] ** 2) / wide_x.dtype.type(x.shape[-1])
    return stored(wide_x * rsqrt(total + wide_x.dtype.type(eps)) * wide(weight), x)


@mutant("rmsnorm")
def mean_of_n_minus_one(x: Array, weight: Array, *, eps: float) -> Array:
    """The sum of squares is divided by n - 1."""
    wide_x = wide(x)
    with np.errstate(all="ignore"):
        mean = sequential(wide_x * wide_x) / wide_x.dtype.type(x.shape[-1] - 1)
    return stored(wide_x * rsqrt(mean + wide_x.dtype.type(eps)) * wide(weight), x)


@mutant("rmsnorm")
def gain_plus_one(x: Array, weight: Array, *, eps: float) -> Array:
    """The gain is 1 + weight, as one model has it."""
    wide_x = wide(x)
    return stored(wide_x * rsqrt(_mean_square(wide_x) + wide_x.dtype.type(eps)) * (1 + wide(weight)), x)


@mutant("rmsnorm", dtypes=("float16", "bfloat16"))
def rounded_before_gain(x: Array, weight: Array, *, eps: float) -> Array:
    """x / rms is rounded to the 16-bit dtype before the gain."""
    wide_x = wide(x)
    middle: Any = wide_x * rsqrt(_mean_square(wide_x) + wide_x.dtype.type(eps))
    return stored(round_to(middle, x.dtype.name).astype(np.float32) * wide(weight), x)


@mutant("rmsnorm", dtypes=("float32",))
def squares_in_bfloat16(x: Array, weight: Array, *, eps: float) -> Array:
    """The squares are rounded to bfloat16 before they are added."""
    squares = round_to(x * x, "bfloat16").astype(np.float32)
    return stored(x * rsqrt(sequential(squares) / np.float32(x.shape[-1]) + np.float32(eps)) * weight, x)
