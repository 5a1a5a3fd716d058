"""What a sum may be off by: guaranteed over every order, exact on a lattice, and typical of honest orders."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.error.array import ErrorBounded, lift
from oracle.error.facts import SumFacts
from oracle.error.fields import Array
from oracle.error.registry import UnsupportedOperationError
from oracle.formats import format_of
from oracle.numerics import Numerics, underflow_error


def rounding_of_sum(numerics: Numerics, facts: SumFacts, extra_roundings: float = 0.0) -> Array:
    """Guaranteed error of a sum in any order before its last rounding; `extra_roundings`: roundings of each term."""
    fmt = numerics.accumulator
    terms = facts.terms_of_all
    additions = np.maximum(terms - 1.0, 0.0)
    if numerics.tree_height is not None:
        additions = np.minimum(additions, float(numerics.tree_height + numerics.splits - 1))
    last = 0.0 if numerics.accumulator.precision > numerics.format.precision else 1.0
    roundings = np.maximum(additions - last, 0.0) + np.where(terms > 1, extra_roundings, 0.0)
    rounding: Array = roundings * numerics.accumulator_roundoff * facts.magnitude
    largest = fmt.max
    if numerics.split_format is not None and numerics.splits > 1:
        stored = format_of(numerics.split_format)
        largest = min(largest, stored.max)
        each = stored.unit_roundoff * facts.magnitude + numerics.splits * underflow_error(stored)
        rounding = rounding + np.where(terms > 0, each, 0.0)
    if numerics.unit_group and extra_roundings:
        rounding = np.maximum(rounding, truncation(numerics, facts))
    least = fmt.min_normal if numerics.flush_to_zero else (fmt.min_subnormal if extra_roundings else 0.0)
    rounding = rounding + np.where(terms > 1, terms, 0.0) * least
    exact = holds_exactly(numerics, facts)
    if exact.any():
        rounding = np.where(exact, 0.0, rounding)
    if facts.magnitude.size and facts.magnitude.max() <= largest:
        return rounding
    return np.where(facts.magnitude > largest, np.where(exact & (facts.magnitude == np.inf), 0.0, np.inf), rounding)


def truncation(numerics: Numerics, facts: SumFacts, reach: Any = None) -> Any:
    """What a matrix unit cuts off: in every group that holds a term, below its largest exponent, of at most `reach`."""
    reach = (facts.magnitude if facts.raw is None else facts.raw) if reach is None else reach
    groups = np.minimum(facts.terms, np.ceil(facts.length / numerics.unit_group))
    per_group = (numerics.unit_group + 1) * 2.0**-numerics.unit_fraction_bits + 2.0**-numerics.unit_result_bits
    return groups * per_group * reach


def holds_exactly(numerics: Numerics, facts: SumFacts) -> Any:
    """Where every partial sum in every order is held exactly: on a lattice, or of one term only."""
    fmt = numerics.format
    least = fmt.min_normal if numerics.flush_to_zero else fmt.min_subnormal
    bits = fmt.precision
    if numerics.unit_group:
        bits = min(bits, numerics.unit_fraction_bits)
    if numerics.split_format is not None and numerics.splits > 1:
        bits = min(bits, format_of(numerics.split_format).precision)
    if facts.magnitude.size and 2.0**bits * facts.step.max() < facts.magnitude.min():
        return np.broadcast_to(np.False_, facts.magnitude.shape)  # no element can be: a look at the ends tells
    lattice = (facts.magnitude <= 2.0**bits * facts.step) & (facts.step >= least)
    if numerics.unit_group and facts.raw is not None:
        lattice &= facts.raw <= 2.0**numerics.unit_fraction_bits * facts.step
    return lattice | (facts.magnitude == 0.0)


def deviation(numerics: Numerics, terms: Any, y: Array, facts: SumFacts, worst_prefix: Any, swamped: Any) -> Array:
    """Standard deviation of a sum over honest orders (u²/3 times the expected squares of its partial sums)."""
    u = numerics.accumulator_roundoff
    # the mean over random orders is n(y²/3 + q/6) + q; one order shared by a whole output strays to several times q/6
    random_order = terms / 3.0 * (y * y + facts.squares) + facts.squares
    variance = (u * u / 3.0 * facts.repeats) * (np.maximum(random_order, worst_prefix) + facts.squares * facts.products)
    if numerics.split_format is not None and numerics.splits > 1:  # each partial sum as large as the prefixes are
        stored = format_of(numerics.split_format)
        partial = worst_prefix / np.maximum(terms, 1.0) + y * y + facts.squares
        each = stored.unit_roundoff**2 * partial + underflow_error(stored) ** 2
        variance = variance + np.where(facts.terms > 0, numerics.splits * each / 3.0, 0.0)
    systematic = swamped + _underflow(numerics, facts)
    if numerics.unit_group and facts.products:  # what is cut off has a direction
        raw = 0.0 if facts.raw is None else (facts.raw - facts.magnitude)
        reach = np.sqrt(worst_prefix / np.maximum(terms, 1.0)) + np.abs(y) + np.sqrt(facts.squares) + raw
        systematic = systematic + truncation(numerics, facts, reach)
    if np.ndim(systematic) or systematic:
        variance = variance + systematic * systematic
    return np.asarray(np.sqrt(variance))


def _underflow(numerics: Numerics, facts: SumFacts) -> Any:
    """What terms lose below the normal range: products of subnormals in any case, sums where they are flushed."""
    fmt = numerics.accumulator
    if not (numerics.flush_to_zero or facts.products):
        return 0.0
    step = fmt.min_normal if numerics.flush_to_zero else underflow_error(fmt)
    terms = facts.terms_of_all
    least = np.min(facts.magnitude, initial=np.inf) / max(np.max(terms, initial=1.0), 1.0)
    if not numerics.flush_to_zero and least >= 4.0 * fmt.min_normal:
        return 0.0
    each = facts.magnitude / np.maximum(terms, 1.0)
    all_one_way = np.minimum(facts.magnitude, terms * step)
    if numerics.flush_to_zero:  # a few large terms say nothing of the others, and flushing has a direction
        return all_one_way
    return np.where(
        each < 8.0 * step, all_one_way, np.where(each < 4.0 * fmt.min_normal, np.sqrt(terms / 3.0) * step, 0.0)
    )


def no_terms(shape: tuple[int, ...], products: bool = False) -> SumFacts:
    """The facts of a sum of nothing."""
    zero = np.zeros(shape)
    return SumFacts(zero, zero, zero, np.ones(shape), zero, products=products)


def lifted_sum_facts(x: Any, numerics: Numerics) -> tuple[ErrorBounded, SumFacts]:
    """A direct result of a sum or matrix product, and what is known of it."""
    array = lift(x, numerics)
    if array.facts is None:
        raise UnsupportedOperationError(
            "accumulate() and scaled() need the direct result of np.sum or of a matrix product as first argument."
        )
    return array, array.facts
