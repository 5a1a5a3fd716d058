"""Words of softmax and of its weighted means: `pivot`, `rescaled` and `hull`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oracle.error.array import ErrorBounded, lift
from oracle.error.fields import ROOT_THIRD, Array, plus, plus_zero, root_sum
from oracle.error.functions import exp_log_constant
from oracle.error.settle import make, settle
from oracle.formats import format_of
from oracle.numerics import underflow_error
from oracle.vocabulary.operands import Operand


def pivot(m: Operand) -> Operand:
    """A shift that cancels from the operator's result: a kernel may use its own, whatever its error.

    Only for a shift whose every value gives the same result in exact arithmetic: the row maximum of a softmax, of a
    log-sum-exp ``m + log(sum(exp(x - m)))``. The claim can be tested: add a constant to the pivot and the float64
    result must not move.
    """
    if not isinstance(m, ErrorBounded):
        return m
    settled = settle(m)
    result = ErrorBounded(m.value, m.numerics)
    result.is_pivot, result.dropped = True, settled.bound
    return result  # type: ignore[return-value]


def rescaled(weight: Operand, axis: int = -1) -> Operand:
    """Softmax weights exp(x - m) that an online kernel may first compute against a smaller running maximum.

    Parameters
    ----------
    weight
        exp(x - m) with m the maximum along `axis`.
    axis
        The axis the tiles run along.

    Notes
    -----
    Each of the T = ceil(n / tile) rescalings costs an exp and a product, and the argument's rounding adds up over them;
    weights that are exactly 1 or 0 have no error. Nothing is granted where `Numerics.online_tile` is None.
    """
    if not isinstance(weight, ErrorBounded):
        return weight
    x, numerics = settle(weight), weight.numerics
    if numerics.online_tile is None or x.size == 0:
        return weight
    u, fmt = numerics.unit_roundoff, numerics.format
    tiles = -(-x.shape[axis] // numerics.online_tile)
    if tiles <= 1:
        return x  # type: ignore[return-value]
    value, own = x.value, plus_zero(x.bound)
    with np.errstate(all="ignore"):
        argument = np.where(value > 0.0, -np.log(np.minimum(value, 1.0)), 0.0)
        each = max(numerics.relative_error("exp"), numerics.relative_error("exp2")) + 2.0 * u
        along = (1.0 + exp_log_constant(numerics) + 2.0 * numerics.exp_argument_ulps) * u * argument
        touched = ~((value == 1.0) & (own == 0.0)) & (value + own >= fmt.min_subnormal)
        touched &= value > 0.0
        least = fmt.min_normal if numerics.flush_to_zero else fmt.min_subnormal
        fresh = np.where(touched, (value + own) * np.expm1(tiles * each + along) + tiles * least, 0.0)
        relative = (np.sqrt(_rescalings(value, axis, tiles)) * each + along) * ROOT_THIRD
        typical = np.where(touched, value * relative + least, 0.0)
    result = make(value, numerics, plus(x.bound, fresh), x.sigma, plus(x.common, typical))
    result.may_overflow = x.may_overflow
    return result  # type: ignore[return-value]


def _rescalings(weight: Array, axis: int, tiles: int) -> Array:
    """How often a running maximum changes in honest orders: in natural and reversed order, or as in random data."""
    ordered = np.ascontiguousarray(np.moveaxis(weight, axis, 0))  # many rows at once are quicker than one after another
    counts: Array = np.full(ordered.shape[1:], 1.0 + math.log2(len(ordered)))
    for direction in (ordered, ordered[::-1]):
        running = np.maximum.accumulate(direction, axis=0)
        np.maximum(counts, np.count_nonzero(running[1:] != running[:-1], axis=0), out=counts)
    return np.expand_dims(np.minimum(counts, tiles), axis)


def hull(x: Any, low: Any, high: Any, terms: int) -> Any:
    """A weighted mean with weights ≥ 0: a kernel's result lies in [low, high] but for the roundings of the mean itself.

    Parameters
    ----------
    x
        The mean, ``(weight @ v) / total``.
    low, high
        Ends of the hull of what is averaged; they broadcast to the shape of `x`.
    terms
        Number of elements averaged.

    Notes
    -----
    Nothing is promised where an honest kernel may meet an infinity: where a score has overflowed, and where the sum
    of elements under weights that are not divided yet (each at most 1) may.
    """
    if not isinstance(x, ErrorBounded) or x.bound is None:
        return x
    numerics = x.numerics
    low_end, high_end = lift(low, numerics), lift(high, numerics)
    below, above = low_end.value - plus_zero(low_end.bound), high_end.value + plus_zero(high_end.bound)
    tiles = 0 if numerics.online_tile is None else -(-terms // numerics.online_tile)
    each = max(numerics.relative_error("exp"), numerics.relative_error("exp2")) + 2.0 * numerics.unit_roundoff
    slack = 2.0 * (terms + 4.0) * max(numerics.unit_roundoff, numerics.accumulator_roundoff) + 2.0 * tiles * each
    slack += numerics.relative_error("division")
    if numerics.probability_format is not None:
        slack += 2.0 * format_of(numerics.probability_format).unit_roundoff
    if numerics.unit_group:
        slack += math.ceil(terms / numerics.unit_group) * (
            (numerics.unit_group + 1) * 2.0**-numerics.unit_fraction_bits + 2.0**-numerics.unit_result_bits
        )
    least = numerics.format.min_normal if numerics.flush_to_zero else numerics.format.min_subnormal
    with np.errstate(all="ignore"):
        reach = np.maximum(np.abs(below), np.abs(above))
        limit = np.maximum(above - x.value, x.value - below) + (slack * 1.1 * reach + (terms + 1) * least)
        inside = (x.value >= low_end.value) & (x.value <= high_end.value) & np.isfinite(limit) & (slack < 1.0)
        if x.may_overflow:  # a score that overflows makes NaN of its row
            inside &= np.isfinite(x.bound)
        bound = np.where(inside, np.minimum(x.bound, limit), x.bound)
        if x.facts is not None:  # before the division the weights add up to anything from 1 to `terms`
            spills = terms * np.minimum(x.facts.magnitude, reach) > numerics.accumulator.max
            bound = np.where(spills & np.isfinite(x.value), np.inf, bound)
            # a lone product that is divided afterwards has been rounded below the normal numbers before
            lone = (x.facts.terms == 1.0) & (x.facts.own > 0.0) & (x.facts.magnitude < numerics.format.min_normal)
            if lone.any():
                twice = np.where(lone, underflow_error(numerics.format), 0.0)
                return make(x.value, numerics, bound + twice, root_sum(x.sigma, twice), x.common, x.pending)
    return make(x.value, numerics, bound, x.sigma, x.common, x.pending)
