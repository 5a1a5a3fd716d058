"""Words of products: `chain` in any order, `scaled` and `accumulate` inside or after a sum of products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oracle.error.arithmetic import multiply, scale_exactly
from oracle.error.array import ErrorBounded, lift, spread
from oracle.error.facts import SumFacts
from oracle.error.fields import ROOT_THIRD, Errors, plus, plus_zero, root_sum, times
from oracle.error.lattice import is_power_of_two, lowest_bit
from oracle.error.registry import UnsupportedOperationError
from oracle.error.settle import make, settle
from oracle.error.sums import deviation, holds_exactly, lifted_sum_facts, rounding_of_sum
from oracle.numerics import underflow_error
from oracle.vocabulary.operands import arithmetic_of, value_of


def chain(first: Any, *factors: Any) -> Any:
    """A product whose factors may be multiplied in any order: ``chain(x, r, w)`` is ``x * r * w``.

    Parameters
    ----------
    first, factors
        Arrays that broadcast. A reciprocal root among them (`rsqrt`) also stands for a division by the root.

    Notes
    -----
    A product of some of the factors may underflow or overflow where the whole does not; that is charged.
    """
    numerics = arithmetic_of(first, *factors)
    if numerics is None:
        return math.prod(factors, start=first)
    with np.errstate(all="ignore"):
        value = math.prod((value_of(factor) for factor in factors), start=value_of(first))
    inputs = [settle(lift(x, numerics)) for x in (first, *factors)]
    with np.errstate(all="ignore"):
        result: Any = inputs[0]
        for factor in inputs[1:]:
            result = multiply(numerics, settle(result), factor)
        if len(inputs) == 2:
            return make(value, numerics, result.bound, result.sigma, result.common, result.pending)
        sizes = [np.abs(x.value) + plus_zero(x.bound) for x in inputs]
        fmt = numerics.format
        least = fmt.min_normal if numerics.flush_to_zero else underflow_error(fmt)
        whole = np.abs(value)
        extra: Any = 0.0
        for chosen in range(3, 2 ** len(inputs)):
            picked = [size for k, size in enumerate(sizes) if chosen >> k & 1]
            if not 2 <= len(picked) < len(inputs):
                continue
            partial, rest = math.prod(picked), math.prod(size for k, size in enumerate(sizes) if not chosen >> k & 1)
            # a float64 product may have become 0 here as well as in the kernel
            there = math.prod((size > 0.0 for size in picked), start=np.True_)
            small = np.asarray((partial < fmt.min_normal) & there)
            if small.any():
                extra = extra + np.where(small, rest * np.minimum(least, partial + least), 0.0)
            extra = np.where(np.asarray(partial > fmt.max) & np.isfinite(whole), np.inf, extra)
        # the plain product may be exact in one order and not in another
        roundings = (len(inputs) - 2) * numerics.unit_roundoff * whole
        inexact = (
            sum(
                (np.asarray(~is_power_of_two(x.value)) | (np.asarray(plus_zero(x.bound)) > 0.0)).astype(int)
                for x in inputs
            )
            > 1
        )
        roundings = np.where(np.isfinite(whole) & inexact, roundings, 0.0)
        own = plus_zero(_product_bound(inputs)) + roundings
        bound = np.maximum(plus_zero(result.bound), own * (1.0 + len(inputs) * numerics.unit_roundoff)) + extra
        # what the first product rounds is known for one order only
        others = np.sqrt(len(inputs) - 2.0) * numerics.unit_roundoff * whole * ROOT_THIRD
        others = np.where(np.isfinite(whole) & inexact, others, 0.0)
        typical = np.maximum(plus_zero(result.sigma), others)
        sigma = root_sum(typical, np.minimum(extra, whole) + np.zeros_like(bound))
    return make(value, numerics, np.broadcast_to(bound, value.shape), sigma, result.common, True)


def _product_bound(inputs: list[ErrorBounded]) -> Errors:
    total: Any = np.zeros(())
    size: Any = np.ones(())
    for x in inputs:
        total = plus_zero(times(np.abs(x.value) + plus_zero(x.bound), total)) + plus_zero(times(size, x.bound))
        size = size * np.abs(x.value)
    return np.asarray(total)


def scaled(product: Any, scale: float) -> Any:
    """A sum of products times a number that a kernel may fold into one operand: ``(q @ k) * s``.

    Parameters
    ----------
    product
        The direct result of a matrix product or sum.
    scale
        A plain number. Powers of two change no rounding; others cost 2u·S where `Numerics.folded_scalar` is granted,
        and make an exact sum inexact.
    """
    if not isinstance(product, ErrorBounded):
        return product * scale
    if isinstance(scale, ErrorBounded):
        raise UnsupportedOperationError(
            "scaled() takes a plain number as scale; multiply by an ErrorBounded array with *."
        )
    numerics = product.numerics
    array, facts = lifted_sum_facts(product, numerics)
    size = abs(float(scale))
    with np.errstate(all="ignore"):
        value = product.value * scale
        if bool(is_power_of_two(scale).all()):
            result = scale_exactly(array, float(scale))
            bound, low = result.bound, numerics.format.min_normal / numerics.unit_roundoff**2 / min(1.0, size)
            if not np.min(facts.magnitude, initial=np.inf) >= low:
                underflow = facts.terms * numerics.format.min_subnormal * max(1.0, size)
                coarse = np.minimum(facts.step, facts.step * size) < numerics.format.min_subnormal
                touched = (facts.magnitude < low) & (facts.magnitude > 0.0) & coarse
                bound = plus(bound, np.where(touched, underflow, 0.0)) if touched.any() else bound
            return make(value, numerics, bound, result.sigma, result.common, result.pending)
        result = multiply(numerics, array, scale)
        if not numerics.folded_scalar:
            return make(value, numerics, result.bound, result.sigma, result.common, True)
        u = numerics.unit_roundoff
        folded = np.where(facts.magnitude > 0.0, 2.0 * u * size * facts.magnitude, 0.0)
        likely = u * size * np.sqrt(2.0 * facts.squares + np.square(array.value)) * ROOT_THIRD
        exact = holds_exactly(numerics, facts) & (facts.magnitude > 0.0)
        if exact.any():  # of scaled factors it rounds
            folded = folded + np.where(exact, size * facts.terms * numerics.accumulator_roundoff * facts.magnitude, 0.0)
            again = size * deviation(numerics, facts.terms, array.value, facts, 0.0, 0.0)
            likely = np.where(exact, np.hypot(likely, again), likely)
        bound, common = plus(result.bound, folded), root_sum(result.common, likely)
        ends = ~np.isfinite(array.value)
        if bound is not None and common is not None and ends.any():  # an infinity stays one
            known = ends & (np.asarray(plus_zero(array.bound)) == 0.0)
            bound, common = np.where(known, 0.0, bound), np.where(ends, 0.0, common)
        return make(value, numerics, bound, result.sigma, common, True)


def accumulate(total: Any, addend: Any) -> Any:
    """A sum of products plus one more term, which may enter the accumulator at any point: ``a @ b + bias``.

    Parameters
    ----------
    total
        The direct result of a matrix product or sum.
    addend
        Array that broadcasts to it.
    """
    numerics = arithmetic_of(total, addend)
    if numerics is None:
        return total + addend
    array, facts = lifted_sum_facts(total, numerics)
    with np.errstate(all="ignore"):
        value = np.asarray(array.value + value_of(addend))
    if value.shape != array.shape:
        raise ValueError(
            f"accumulate(): the addend of shape {np.shape(addend)} does not broadcast to the sum's shape {array.shape}."
        )
    more = spread(settle(lift(addend, numerics)), value.shape)
    with np.errstate(all="ignore"):
        size = np.abs(more.value) + plus_zero(more.bound)
        bits = lowest_bit(more.value).reshape(more.shape)
        joined = SumFacts(
            facts.terms + (size > 0.0),
            facts.magnitude + size,
            facts.squares + np.square(more.value),
            np.minimum(facts.step, np.where(np.asarray(plus_zero(more.bound)) > 0.0, 0.0, bits)),
            facts.own + plus_zero(more.bound),
            products=facts.products,
            repeats=facts.repeats,
            largest=facts.largest,
            length=facts.length + 1.0,
            raw=None if facts.raw is None else facts.raw + size,
        )
        fresh = rounding_of_sum(numerics, joined, extra_roundings=1.0)
        if numerics.is_float64:
            fresh = fresh + 2.0 * numerics.accumulator_roundoff * joined.magnitude
        if numerics.accumulator.precision > numerics.format.precision:
            fresh = fresh + numerics.unit_roundoff * (np.abs(array.value) + size)
        fresh = np.where(np.isfinite(value), fresh, 0.0)
        started = joined.terms * np.square(more.value)  # every partial sum holds it
        lost = np.where(size * numerics.accumulator_roundoff * facts.terms > facts.magnitude, np.abs(array.value), 0.0)
        likely = deviation(numerics, joined.terms, value, joined, 2.0 * started + np.square(array.value), lost)
        sigma = root_sum(array.sigma, np.where(fresh > 0.0, likely, 0.0))
        sigma = root_sum(sigma, more.sigma)
    result = make(value, numerics, joined.own + fresh, sigma, plus(array.common, more.common), True)
    result.facts = joined
    return result
