"""Exactness: where all terms of a sum are multiples of one power of two, and small enough, every order is exact.

If every term is a multiple of g and S = Σ|terms| ≤ 2^p · g, then every partial sum in any order is a multiple of g of
at most p bits: it is held exactly and nothing is ever rounded.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_MANTISSA = np.int64((1 << 52) - 1)


def lowest_bit(value: Array) -> Array:
    """The lowest set bit of each element as a power of two; infinity for zeros, 0 for what is not finite."""
    bits = np.ascontiguousarray(value).view(np.int64)
    fraction = bits & _MANTISSA
    cleared = (bits & ~_MANTISSA) | (fraction & (fraction - 1))
    size = np.abs(value)
    with np.errstate(all="ignore"):
        lowest = np.where(fraction == 0, size, np.abs(value - cleared.view(np.float64)))
    lowest = np.where(size == 0.0, np.inf, lowest)
    # a subnormal has no hidden bit, so clearing its only bit gives zero: |value - 0| is the bit itself
    return np.where(np.isfinite(value), lowest, 0.0)


def is_power_of_two(value: Any) -> NDArray[np.bool_]:
    """Where an element is ±2^k."""
    array = np.asarray(value, dtype=np.float64)
    bits = np.ascontiguousarray(array).view(np.int64).reshape(array.shape)
    return np.asarray(((bits & _MANTISSA) == 0) & np.isfinite(array) & (np.abs(array) >= 2.0**-1022))


def distinct_share(terms: Array, grain: Array, wanted: int = 128) -> Array:
    """Terms per distinct value along the last axis, from a sample: 1 = all differ, n = all equal.

    Rounding errors of repeated terms repeat too, so the variance of their sum grows by this factor. `grain` (one per
    row): values closer than this count as one.
    """
    length = terms.shape[-1]
    if length < 2 or terms.size == 0:
        return np.ones(terms.shape[:-1])
    sample = terms[..., spread_picks(length, wanted)] if length > wanted else terms
    count = sample.shape[-1]
    with np.errstate(all="ignore"):
        sample = np.asarray(sample / grain[..., None])
    sample = np.rint(sample, out=sample)
    sample.sort(axis=-1)
    steps = np.count_nonzero(sample[..., 1:] != sample[..., :-1], axis=-1) + 1
    # what happens once among k draws is taken as new each time: only repeats count
    share = np.asarray(count / steps)
    return np.where(share <= 1.25, 1.0, np.where(steps == count, 1.0, length / steps))


@cache
def spread_picks(length: int, wanted: int) -> NDArray[np.int64]:
    """Places spread over an axis, at an irregular stride: periodic data are not to be mistaken for constant data."""
    return np.unique(np.linspace(0, length - 1, min(length, wanted)).astype(np.int64))
