"""Error rules of sums: any order of additions, exactness on a lattice, and the standard deviation of honest orders."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from oracle.error.arithmetic import divide, square, subtract
from oracle.error.array import ErrorBounded
from oracle.error.facts import SumFacts
from oracle.error.fields import Array, Errors, plus, plus_zero, root_sum
from oracle.error.lattice import distinct_share, is_power_of_two, lowest_bit
from oracle.error.registry import UnsupportedOperationError, function_rule
from oracle.error.settle import make, settle
from oracle.error.sums import deviation, holds_exactly, no_terms, rounding_of_sum
from oracle.numerics import Numerics


def _axes(x: ErrorBounded, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(x.ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    return tuple(int(one) % x.ndim for one in axes)


def _rows(array: Array, axes: tuple[int, ...]) -> Array:
    """The reduced axes last, as one."""
    kept = [k for k in range(array.ndim) if k not in axes]
    moved = np.transpose(array, (*kept, *axes))
    return moved.reshape(*(array.shape[k] for k in kept), math.prod(array.shape[k] for k in axes))


def _prefix_squares(rows: Array, y: Array) -> Array:
    """The largest Σ(partial sum)² over natural, reversed and strided orders."""
    worst = np.zeros(rows.shape[:-1])
    length = rows.shape[-1]
    for stride in (1, 2, 32):
        if stride >= length:
            break
        ordered = rows if stride == 1 else np.concatenate([rows[..., k::stride] for k in range(stride)], axis=-1)
        prefix = np.cumsum(ordered, axis=-1)
        np.maximum(worst, np.einsum("...k,...k->...", prefix, prefix), out=worst)
        prefix -= y[..., None]
        np.maximum(worst, np.einsum("...k,...k->...", prefix, prefix), out=worst)
    return worst


@function_rule(np.sum)
def sum_(
    a: ErrorBounded,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = 0,
    where: Any = True,
) -> ErrorBounded:
    """Sum over axes: Σb + (n − 2)·u·S before the last rounding, in any order."""
    _refuse("np.sum", dtype=dtype, where=where, initial=initial)
    keepdims = keepdims is True
    numerics = a.numerics
    x = settle(a)
    value = np.asarray(np.sum(a.value, axis=axis, keepdims=keepdims))
    axes = _axes(x, axis)
    length = math.prod(x.shape[k] for k in axes)
    if x.size == 0 or not axes:
        if x.size:
            return make(value, numerics, x.bound, x.sigma, x.common)
        result = make(value, numerics)
        result.facts = no_terms(value.shape)
        return result
    facts, rows, total = _facts(x, axes)
    fresh = rounding_of_sum(numerics, facts)
    with np.errstate(all="ignore"):
        if numerics.is_float64:
            fresh = np.where(
                holds_exactly(numerics, facts), 0.0, fresh + numerics.accumulator_roundoff * facts.magnitude
            )
        sigma = _fresh_sigma(numerics, facts, rows, total, length, fresh)
    if x.sigma is not None:
        spread_rows = _rows(x.sigma, axes)
        sigma = np.sqrt(sigma**2 + np.einsum("...k,...k->...", spread_rows, spread_rows))
    common = None if x.common is None else _rows(x.common, axes).sum(axis=-1)
    infinite = ~np.isfinite(total)
    if infinite.any():
        fresh = np.where(infinite, 0.0, fresh)
        sigma = np.where(infinite, 0.0, sigma)
    bound = facts.own + fresh
    shape = value.shape
    exact = holds_exactly(numerics, facts) if numerics.is_float64 else np.zeros(1, bool)
    pending: Any = True if not exact.any() else ~exact.reshape(shape)
    result = make(
        value,
        numerics,
        bound.reshape(shape),
        sigma.reshape(shape),
        None if common is None else common.reshape(shape),
        pending,
    )
    result.facts = facts.reshaped(shape)
    return result


def _facts(x: ErrorBounded, axes: tuple[int, ...]) -> tuple[SumFacts, Array, Array]:
    numerics = x.numerics
    rows = _rows(x.value, axes)
    size = np.abs(rows)
    own = np.zeros(rows.shape[:-1])
    present: Any = size
    if x.bound is not None:
        bound = _rows(x.bound, axes)
        own = bound.sum(axis=-1)
        size = size + bound
        # what is smaller than the smallest subnormal is held as 0: no term at all
        present = np.where(size < numerics.format.min_subnormal, 0.0, size)
    terms = np.count_nonzero(present, axis=-1).astype(np.float64)
    with np.errstate(all="ignore"):
        magnitude = present.sum(axis=-1)
        squares = np.einsum("...k,...k->...", rows, rows)
    total = rows.sum(axis=-1)
    step = np.zeros(rows.shape[:-1])
    if x.bound is None or not (bound > 0).all():
        step = _step(numerics, rows, None if x.bound is None else bound, present, magnitude)
    return SumFacts(terms, magnitude, squares, step, own), rows, total


def _step(numerics: Numerics, rows: Array, bound: Errors, present: Array, magnitude: Array) -> Array:
    """The common lattice of the terms of each row, 0 where there is none that helps."""
    length = rows.shape[-1]
    limit = 2.0**-numerics.format.precision * magnitude
    if length > 256:  # a few terms tell most rows that are on no useful lattice
        probe = lowest_bit(rows[..., :: max(1, length // 16)])
        if bound is None and not (probe.min(axis=-1) >= limit).any():
            return np.zeros(rows.shape[:-1])
    if bound is not None and ((bound > 0.0) & (present > 0.0)).any(axis=-1).all():
        return np.zeros(rows.shape[:-1])
    bits = lowest_bit(rows)
    if bound is not None:
        bits = np.where(present == 0.0, np.inf, np.where(bound > 0.0, 0.0, bits))
    lowest = bits.min(axis=-1)
    return np.where(np.isinf(lowest), np.where(magnitude == 0.0, 1.0, 0.0), lowest)


def _fresh_sigma(numerics: Numerics, facts: SumFacts, rows: Array, total: Array, length: int, fresh: Array) -> Array:
    if not fresh.any():
        return np.zeros_like(fresh)
    u = numerics.accumulator_roundoff
    facts = replace(facts, repeats=distinct_share(rows, u * np.maximum(facts.magnitude, 1e-300) / 4.0))
    size = np.abs(rows)
    threshold = u * size.max(axis=-1)
    swamped = np.where(size < threshold[..., None], size, 0.0).sum(axis=-1)
    sigma = deviation(numerics, length, total, facts, _prefix_squares(rows, total), swamped)
    return np.where(fresh > 0.0, sigma, 0.0)


def _refuse(label: str, **options: Any) -> None:
    defaults: dict[str, tuple[Any, ...]] = {
        "dtype": (None,),
        "where": (True, np._NoValue),
        "initial": (0, 1, None, np._NoValue),
    }
    for name, chosen in options.items():
        if not any(
            chosen is default or (isinstance(chosen, int | float) and chosen == default) for default in defaults[name]
        ):
            raise UnsupportedOperationError(
                f"{label}(..., {name}={chosen!r}) has no error rule for ErrorBounded arrays; leave {name} out."
            )


@function_rule(np.mean)
def mean(
    a: ErrorBounded, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, where: Any = True
) -> ErrorBounded:
    """Mean: the sum, then a division by n or a product with 1/n."""
    _refuse("np.mean", dtype=dtype, where=where)
    keepdims = keepdims is True
    total = sum_(a, axis=axis, keepdims=keepdims)
    count = math.prod(a.shape[k] for k in _axes(a, axis))
    result = divide(a.numerics, total, float(count)) if count else total
    return _with_value(result, np.mean(a.value, axis=axis, keepdims=keepdims))


def _with_value(x: ErrorBounded, value: Any) -> ErrorBounded:
    """The same errors around the value of the plain run (which differs by float64 rounding at most)."""
    return make(np.asarray(value), x.numerics, x.bound, x.sigma, x.common, x.pending)


@function_rule(np.var)
def var(
    a: ErrorBounded,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    where: Any = True,
) -> ErrorBounded:
    """Variance in two passes: the mean of squared deviations from the mean."""
    _refuse("np.var", dtype=dtype, where=where)
    keepdims = keepdims is True
    deviations = subtract(a.numerics, a, mean(a, axis=axis, keepdims=True))
    total = sum_(square(a.numerics, deviations), axis=axis, keepdims=keepdims)
    count = math.prod(a.shape[k] for k in _axes(a, axis)) - ddof
    result = divide(a.numerics, total, float(count))
    return _with_value(result, np.var(a.value, axis=axis, ddof=ddof, keepdims=keepdims))


@function_rule(np.prod)
def prod(
    a: ErrorBounded,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = 1,
    where: Any = True,
) -> ErrorBounded:
    """Product: Π(|x| + b)(1 + u)^(n−1) − |Πx|, infinite where a partial product may leave the range."""
    _refuse("np.prod", dtype=dtype, where=where, initial=initial)
    keepdims = keepdims is True
    numerics, x = a.numerics, settle(a)
    value = np.asarray(np.prod(a.value, axis=axis, keepdims=keepdims))
    axes = _axes(x, axis)
    rows = _rows(np.abs(x.value), axes)
    errors = _rows(x.bound, axes) if x.bound is not None else np.zeros_like(rows)
    u, fmt, length = numerics.unit_roundoff, numerics.format, rows.shape[-1]
    top, low = np.prod(np.maximum(rows + errors, 1.0), axis=-1), np.prod(np.minimum(rows, 1.0), axis=-1)
    moved = np.prod(rows + errors, axis=-1) - np.prod(rows, axis=-1)
    fresh = np.expm1((max(length - 2, 0) + (1 if numerics.is_float64 else 0)) * math.log1p(u)) * np.prod(
        rows + errors, axis=-1
    )
    with np.errstate(all="ignore"):
        plain = is_power_of_two(rows).sum(axis=-1) >= length - 1
        safe = (top < fmt.max) & (low > fmt.min_normal)
    fresh = np.where(plain & safe & (errors.sum(axis=-1) == 0.0), 0.0, fresh)
    fresh = np.where(
        top >= fmt.max, np.inf, np.where(low > fmt.min_normal, fresh, fresh + length * fmt.min_normal * top)
    )
    fresh = np.where((rows == 0.0).any(axis=-1) & (errors.sum(axis=-1) == 0.0) & (top < fmt.max), 0.0, fresh)
    relative = np.where(rows > 0.0, errors / np.where(rows > 0.0, rows, 1.0), 0.0).sum(axis=-1)
    common = np.prod(rows, axis=-1) * relative
    shape = value.shape
    sigma = np.minimum(fresh, np.prod(rows, axis=-1) * u * math.sqrt(length) + fmt.min_subnormal)
    return make(value, numerics, (moved + fresh).reshape(shape), sigma.reshape(shape), common.reshape(shape), True)


@function_rule(np.cumsum)
def cumsum(a: ErrorBounded, axis: Any = None, dtype: Any = None, out: Any = None) -> ErrorBounded:
    """Prefix sums: element i is a sum of i + 1 terms in any order (so a blocked scan is covered too)."""
    _refuse("np.cumsum", dtype=dtype)
    numerics, x = a.numerics, settle(a)
    value = np.cumsum(a.value, axis=axis)

    def scan(field: Array) -> Array:
        return np.asarray(np.cumsum(field, axis=axis))

    own: Array = scan(x.bound) if x.bound is not None else np.zeros_like(value)
    magnitude = scan(np.abs(x.value)) + own
    terms = scan(((np.abs(x.value) + plus_zero(x.bound)) > 0.0).astype(np.float64))
    bits = lowest_bit(x.value).reshape(x.shape)
    bits = bits if x.bound is None else np.where(x.bound > 0.0, 0.0, bits)
    step = np.minimum.accumulate(bits.ravel() if axis is None else bits, axis=0 if axis is None else axis)
    step = np.where(np.isinf(step), 1.0, step)
    squares = scan(x.value * x.value)
    facts = SumFacts(terms, magnitude, squares, step, own)
    fresh = rounding_of_sum(numerics, facts)
    if numerics.is_float64:
        fresh = np.where(holds_exactly(numerics, facts), 0.0, fresh + numerics.accumulator_roundoff * magnitude)
    partial = scan(value * value)
    sigma = np.where(fresh > 0.0, deviation(numerics, terms, value, facts, partial, 0.0), 0.0)
    if x.sigma is not None:
        sigma = np.sqrt(sigma**2 + scan(x.sigma**2))
    # neighbours share most of their errors
    common = root_sum(sigma, None if x.common is None else scan(x.common))
    return make(value, numerics, plus(own, fresh), None, common, True)
