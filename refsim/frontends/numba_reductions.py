"""Reductions of arrays as numba computes them in a kernel: one thread, element by element, in C order.

These functions are never called: they are translated where a kernel calls ``a.sum()`` or ``np.sum(a)``. `start` is a
number whose type is that of numba's accumulator.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
# ruff: noqa: SIM110, SIM113 (kernels have no all(), any())
from __future__ import annotations

import numpy as np


def array_sum(a, start):
    c = start
    for v in a.flat:
        c += v
    return c


def array_prod(a, start):
    c = start
    for v in a.flat:
        c *= v
    return c


def array_mean(a, start):
    c = start
    for v in a.flat:
        c += v
    return c / a.size


def array_var(a, start):
    m = array_mean(a, start)
    ssd = 0
    for v in a.flat:
        val = v - m
        ssd += val * val
    return ssd / a.size


def array_std(a, start):
    return array_var(a, start) ** 0.5


def array_min(a, start):
    assert a.size > 0, "zero-size array to reduction operation minimum which has no identity"
    best = a.flat[0]
    for v in a.flat:
        if v != v:
            return v
        if v < best:
            best = v
    return best


def array_max(a, start):
    assert a.size > 0, "zero-size array to reduction operation maximum which has no identity"
    best = a.flat[0]
    for v in a.flat:
        if v != v:
            return v
        if v > best:
            best = v
    return best


def array_argmin(a, start):
    assert a.size > 0, "attempt to get argmin of an empty sequence"
    best = a.flat[0]
    where = 0
    number = 0
    for v in a.flat:
        if v != v:
            return number
        if v < best:
            best = v
            where = number
        number += 1
    return where


def array_argmax(a, start):
    assert a.size > 0, "attempt to get argmax of an empty sequence"
    best = a.flat[0]
    where = 0
    number = 0
    for v in a.flat:
        if v != v:
            return number
        if v > best:
            best = v
            where = number
        number += 1
    return where


def array_all(a, start):
    for v in a.flat:
        if not v:
            return False
    return True


def array_any(a, start):
    for v in a.flat:
        if v:
            return True
    return False


def array_count_nonzero(a, start):
    count = 0
    for v in a.flat:
        if v != 0:
            count += 1
    return count


def array_nansum(a, start):
    c = start
    for v in a.flat:
        if v == v:
            c += v
    return c


def array_nanprod(a, start):
    c = start
    for v in a.flat:
        if v == v:
            c *= v
    return c


def array_nanmean(a, start):
    c = start
    count = 0
    for v in a.flat:
        if v == v:
            c += v
            count += 1
    return c / count if count else np.nan


def array_nanvar(a, start):
    m = array_nanmean(a, start)
    ssd = 0.0
    count = 0
    for v in a.flat:
        if v == v:
            val = v - m
            ssd += val * val
            count += 1
    return ssd / count if count else np.nan


def array_nanstd(a, start):
    return array_nanvar(a, start) ** 0.5


def array_nanmin(a, start):
    assert a.size > 0, "nanmin(): empty array"
    best = a.flat[0]
    for v in a.flat:
        if not best <= v:
            best = v if v == v else best
    return best


def array_nanmax(a, start):
    assert a.size > 0, "nanmax(): empty array"
    best = a.flat[0]
    for v in a.flat:
        if not best >= v:
            best = v if v == v else best
    return best


def array_ptp(a, start):
    return array_max(a, start) - array_min(a, start)


def array_array_equal(a, b):
    if a.shape != b.shape:
        return False
    for x, y in zip(a.flat, b.flat):
        if x != y:
            return False
    return True
