"""The word of products of scaled codes: `scaled_matmul`, where scales meet the codes or the sums of their products."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from oracle.error.array import ErrorBounded
from oracle.error.fields import ROOT_THIRD, Array, plus, root_sum
from oracle.error.lattice import is_power_of_two
from oracle.error.settle import make
from oracle.error.sums import holds_exactly, truncation
from oracle.numerics import Numerics
from oracle.vocabulary.operands import arithmetic_of, value_of


def scaled_matmul(a: Any, a_scales: tuple[Any, ...], b: Any, b_scales: tuple[Any, ...]) -> Any:
    """``(a · a_scales) @ (b · b_scales)``, where scales may be multiplied to codes, to partial sums, or together first.

    Parameters
    ----------
    a, b
        Codes: arrays (..., m, k) and (..., k, n) of exact numbers.
    a_scales, b_scales
        Factors that broadcast to a and to b: per row, per column, per block along k, or one for all.

    Notes
    -----
    Dequantising first costs a rounding per factor; multiplying a block's partial sum costs one per factor and one for
    each product of two scales. Scales that are powers of two cost none. Where a product of scales, or of a partial sum
    and one scale, may leave the range of normal numbers, what it loses is charged.
    """
    numerics = arithmetic_of(a, b, *a_scales, *b_scales)
    # what the alignment of subnormal codes costs depends on codes alone: it is added below
    bare = None if numerics is None else numerics.with_changes(unit_min_normal=0.0)
    left = math.prod((_under(bare, scale) for scale in a_scales), start=_under(bare, a))
    right = math.prod((_under(bare, scale) for scale in b_scales), start=_under(bare, b))
    product = left @ right
    if numerics is None or not isinstance(product, ErrorBounded):
        return product
    product.numerics = numerics
    if product.facts is None or not product.size or not np.shape(a)[-1]:
        return product
    with np.errstate(all="ignore"):
        return _regrouped(product, value_of(a), _values(a_scales), value_of(b), _values(b_scales))


def _under(numerics: Numerics | None, x: Any) -> Any:
    """An operand under another arithmetic."""
    if numerics is None or not isinstance(x, ErrorBounded):
        return x
    same = x.map(lambda field: field)
    same.numerics = numerics
    return same


def _values(scales: tuple[Any, ...]) -> list[Array]:
    return [np.asarray(value_of(scale), np.float64) for scale in scales]


def _regrouped(product: ErrorBounded, a: Array, a_scales: list[Array], b: Array, b_scales: list[Array]) -> ErrorBounded:
    """The product, with what other groupings of its factors may add to its error."""
    numerics, facts = product.numerics, product.facts
    assert facts is not None
    factors = [*a_scales, *b_scales]
    inexact = sum(not is_power_of_two(scale[(scale != 0.0) & np.isfinite(scale)]).all() for scale in factors)
    roundings = inexact + 1.0 if inexact else 0.0
    if numerics.unit_min_normal:
        facts = replace(facts, raw=_aligned(numerics, a, a_scales) @ _aligned(numerics, b, b_scales))
    exact = holds_exactly(numerics, facts)
    extra = np.where(exact, 0.0, roundings * numerics.unit_roundoff * facts.magnitude)
    if facts.raw is not None:
        extra = extra + np.where(
            exact | (facts.raw <= facts.magnitude * (1.0 + 2.0**-40)), 0.0, truncation(numerics, facts)
        )
    fmt = numerics.format
    least = fmt.min_normal if numerics.flush_to_zero else fmt.min_subnormal
    codes = np.matmul(np.abs(a), np.abs(b))
    rest = _largest(a_scales, a.shape, -1) * _largest(b_scales, b.shape, -2)
    if math.prod(min(_least(array), 1.0) for array in (a, b, *factors)) < fmt.min_normal:
        # any group of the factors may have lost a subnormal part, which meets the largest of all others
        lost = least * len(factors) * rest * (codes + facts.terms)
        extra = extra + np.where(facts.magnitude > 0.0, lost, 0.0)
    reach = np.maximum(codes, 1.0) * rest
    extra = np.where((reach > fmt.max) & np.isfinite(product.value), np.inf, extra)
    extra = np.where(np.isfinite(product.value), extra, 0.0)
    likely = roundings * numerics.unit_roundoff * ROOT_THIRD * (np.abs(product.value) + np.sqrt(facts.squares))
    if facts.raw is not None:
        likely = likely + truncation(numerics, facts, np.maximum(facts.raw - facts.magnitude, 0.0))
    likely = np.where(extra > 0.0, np.minimum(likely, extra), 0.0)
    result = make(
        product.value,
        numerics,
        plus(product.bound, extra),
        root_sum(product.sigma, likely),
        product.common,
        product.pending,
    )
    result.facts = replace(facts, own=facts.own + extra)
    return result


def _aligned(numerics: Numerics, codes: Array, scales: list[Array]) -> Array:
    """Magnitudes of dequantised numbers as a unit aligns them: subnormal codes at the smallest normal number."""
    size = np.abs(codes)
    pinned = np.where(size > 0.0, np.maximum(size, numerics.unit_min_normal), size)
    return np.asarray(math.prod((np.abs(scale) for scale in scales), start=pinned))


def _least(x: Array) -> float:
    """The least magnitude of the finite elements other than 0; 1 where there are none."""
    size = np.abs(x)
    return float(np.min(size, where=(size > 0.0) & np.isfinite(size), initial=1.0))


def _largest(scales: list[Array], shape: tuple[int, ...], axis: int) -> Array:
    """The largest product of some of the scales on each row (axis -1) or column (axis -2) of codes."""
    largest = np.ones(shape)
    for scale in scales:
        size = np.abs(scale)
        largest = largest * np.maximum(np.where(np.isfinite(size), size, 1.0), 1.0)
    return np.asarray(largest.max(axis=axis, keepdims=True))
