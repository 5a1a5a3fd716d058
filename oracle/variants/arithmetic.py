"""Honest float32 arithmetic for variants: sums in several orders, functions with an error of up to an ulp."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from oracle.formats import cast
from oracle.signature import Array

F = np.float32
LOG2E = F(np.log2(np.e))

Sum = Callable[[Array], Array]


def wide(x: Array) -> Array:
    """An array in the compute type: float32, and float64 for float64 inputs."""
    return x if x.dtype == np.float64 else x.astype(F)


def stored(x: Array, like: Array) -> Array:
    """Results rounded once to another array's dtype."""
    return x.astype(like.dtype) if like.dtype == x.dtype else cast(x.astype(np.float64), like.dtype.name)


def _spread(exact: Array, ulps: float) -> Array:
    """float32 results anywhere within some ulps of the exact ones; 1, tiny and infinite ones rounded only.

    How far off depends on the significand alone, so that it looks random, but signs and powers of two change nothing.
    """
    y = exact.astype(F)
    movable = (np.abs(y) > 1e-37) & (y != 1) & np.isfinite(y)
    exact = np.where(movable, exact, 1.0)
    bits = np.frexp(np.abs(exact))[0].astype(F).view(np.uint32)
    mixed = (bits ^ (bits >> np.uint32(15))) * np.uint32(2246822519)
    share = (mixed ^ (mixed >> np.uint32(13))).astype(np.float64) / 2.0**31 - 1.0
    moved = exact + (ulps - 0.5) * share * np.spacing(exact.astype(F)).astype(np.float64)
    return np.where(movable, moved.astype(F), y)


def within(function: Callable[[Array], Array], ulps: float) -> Callable[[Array], Array]:
    """A float32 function that is off by anything up to some ulps: one that keeps what is promised, and no more."""

    def evaluate(x: Array) -> Array:
        with np.errstate(all="ignore"):
            return function(x) if x.dtype == np.float64 else _spread(function(x.astype(np.float64)), ulps)

    return evaluate


def quotient(x: Any, y: Any) -> Array:
    """x / y, anywhere within the two ulps that float32 kernels promise; by a power of two exactly."""
    with np.errstate(all="ignore"):
        plain = np.asarray(x / y)
        if plain.dtype != F:
            return plain
        exact = x.astype(np.float64) / y
        shift: Array = np.abs(np.frexp(y)[0]) == 0.5
        return np.where(shift, exact.astype(F), _spread(exact, 2.0))


def _imperfect(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A float32 function that is off by up to an ulp, in a way that depends on the argument alone, as real ones are."""

    def evaluate(x: Array) -> Array:
        with np.errstate(all="ignore"):
            if x.dtype == np.float64:
                return function(x)
            y = function(x.astype(np.float64)).astype(F)
        bits = np.ascontiguousarray(x, F).view(np.uint32).reshape(x.shape)
        step = ((bits * np.uint32(2654435761)) >> np.uint32(29)).astype(np.int64)
        movable = (y > 1e-37) & (y != 1) & np.isfinite(y)
        y = np.where((step == 0) & movable, np.nextafter(y, F(np.inf)), y)
        result: Array = np.where((step == 1) & movable, np.nextafter(y, F(0)), y)
        return result

    return evaluate


exp = _imperfect(np.exp)
exp2 = _imperfect(np.exp2)
log = _imperfect(np.log)
tanh = _imperfect(np.tanh)
erf = _imperfect(np.vectorize(math.erf, otypes=[np.float64]))
rsqrt = _imperfect(lambda x: x**-0.5)
exp_promised = within(np.exp, 2.0)
root_promised = within(np.sqrt, 1.0)


def exp_by_exp2(x: Array) -> Array:
    """exp(x) as exp2(x·log2 e)."""
    return exp2(x * LOG2E if x.dtype == F else x * np.log2(np.e))


# Sums over the last axis, keeping it with length 1. Each is one order that a kernel may take.


def sequential(x: Array) -> Array:
    """From the first to the last."""
    if not x.shape[-1]:
        return np.zeros((*x.shape[:-1], 1), x.dtype)
    total: Array = np.cumsum(x, axis=-1, dtype=x.dtype)[..., -1:]
    return total


def backwards(x: Array) -> Array:
    """From the last to the first."""
    return sequential(x[..., ::-1])


def pairwise(x: Array) -> Array:
    """A binary tree."""
    while x.shape[-1] > 1:
        if x.shape[-1] % 2:
            x = np.concatenate([x, np.zeros((*x.shape[:-1], 1), x.dtype)], axis=-1)
        x = x[..., 0::2] + x[..., 1::2]
    return x if x.shape[-1] else np.zeros((*x.shape[:-1], 1), x.dtype)


def strided(lanes: int) -> Sum:
    """Each of `lanes` lanes adds every lanes-th element, then a tree over the lanes: a warp or a block."""

    def total(x: Array) -> Array:
        tail = -x.shape[-1] % lanes
        x = np.concatenate([x, np.zeros((*x.shape[:-1], tail), x.dtype)], axis=-1)
        grouped = x.reshape(*x.shape[:-1], x.shape[-1] // lanes, lanes)
        return pairwise(np.swapaxes(sequential(np.swapaxes(grouped, -1, -2)), -1, -2)[..., 0, :])

    return total


def in_blocks(size: int) -> Sum:
    """Sequential within blocks of `size`, then over the blocks: tiles of k, split-K."""

    def total(x: Array) -> Array:
        tail = -x.shape[-1] % size
        x = np.concatenate([x, np.zeros((*x.shape[:-1], tail), x.dtype)], axis=-1)
        return sequential(sequential(x.reshape(*x.shape[:-1], x.shape[-1] // size, size))[..., 0])

    return total


ORDERS: dict[str, Sum] = {
    "sequential": sequential,
    "backwards": backwards,
    "tree": pairwise,
    "warp": strided(32),
    "block": strided(128),
    "tiles": in_blocks(16),
}
"""Orders of summation by name."""


def product(a: Array, b: Array, total: Sum = sequential) -> Array:
    """Matrix product ``a @ b`` with each element summed in a given order; every product and sum rounded."""
    terms = a[..., :, np.newaxis, :] * np.swapaxes(b, -1, -2)[..., np.newaxis, :, :]
    return total(terms)[..., 0]
