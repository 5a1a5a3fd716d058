"""Functions that lane code calls: choices, wrapping, joins of sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from refsim.engine.joins import merge, rejoin

LARGE = 2048  # elements from which writing into an array at hand saves more than asking for it costs


def select(condition: Any, then: Any, otherwise: Any) -> Any:
    """Lane-wise choice."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, then, otherwise)
    return then if condition else otherwise


def select_uint64(condition: Any, then: Any, otherwise: Any) -> Any:
    """`select` for uint64, whose Python scalars may not fit int64."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, np.asarray(then, np.uint64), np.asarray(otherwise, np.uint64))
    return then if condition else otherwise


def logical_not(value: Any) -> Any:
    """Lane-wise negation of a bool."""
    return ~value if isinstance(value, np.ndarray) else not value


def add_product(total: Any, left: Any, right: Any) -> Any:
    """``total + left * right``, two roundings; a large product's own array takes the sum."""
    product = left * right
    if type(product) is not np.ndarray or product.size < LARGE or type(total) is not np.ndarray:
        return total + product
    fits = product.shape == total.shape and product.dtype == total.dtype
    return np.add(total, product, product) if fits else total + product


def wrap_int64(value: Any) -> Any:
    """Wrap a uniform int64 that Python computed without limit; lane arrays wrapped already."""
    if type(value) is int and not -0x8000000000000000 <= value < 0x8000000000000000:
        return ((value + 0x8000000000000000) & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000
    return value


def unite(parent: Any, then: Any, then_end: Any, other: Any, other_end: Any, dtypes: Any) -> Any:
    """Set and values after a branch that threads may have left: each end is (set or None, values)."""
    if then_end[0] is None:
        return other_end
    if other_end[0] is None:
        return then_end
    if then_end[0] is then and other_end[0] is other:
        return parent, rejoin(parent, then, then_end[1], other, other_end[1], dtypes)
    return merge(parent, [then_end, other_end], dtypes)
