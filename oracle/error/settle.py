"""Lazy rounding: results are made with their last rounding pending, and settled when they become operands."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from oracle.error.array import ErrorBounded
from oracle.error.fields import ROOT_THIRD, Array, Errors, Pending, root_sum, round_exactly
from oracle.numerics import Numerics, underflow_error


def settle(x: ErrorBounded) -> ErrorBounded:
    """The array after its pending rounding to the compute format."""
    if x.pending is False:
        return x
    if x._settled is None:
        x._settled = _settle(x)
    return x._settled


def _settle(x: ErrorBounded) -> ErrorBounded:
    numerics = x.numerics
    value, bound = x.value, x.bound
    with np.errstate(all="ignore"):
        size = np.abs(value)
        if numerics.is_float64:
            whole = size if bound is None else size + bound
            noise = numerics.unit_roundoff * whole
            small = (whole > 0.0) & (whole < 2.0 * numerics.format.min_normal)
            if small.any():  # the noise itself has underflowed, and so have the products its bound was made of
                noise = np.where(small, noise + 2.0 * underflow_error(numerics.format), noise)
            new_bound = noise if bound is None else bound + noise
        elif bound is None:
            noise = np.asarray(round_exactly(value, numerics) - value)
            new_bound = noise = np.abs(noise, out=noise)
        else:
            # fl is monotone, so a rounded result lies between fl(value - reach) and fl(value + reach); what FMA does
            # not round stays within the bound. An error far below float64's resolution moves no representable value.
            reach = np.where(bound > 0, bound + size * 2.0**-51, 0.0)
            above = round_exactly(value + reach, numerics) - value
            rounded = np.maximum(above, value - round_exactly(value - reach, numerics))
            new_bound = np.where(bound <= size * 2.0**-60, rounded, np.maximum(rounded, bound))
            noise = np.minimum(numerics.unit_roundoff * size + underflow_error(numerics.format), new_bound)
        if numerics.flush_to_zero:
            lost = flushed(x)
            new_bound, noise = np.maximum(new_bound, lost), np.maximum(noise, lost)
        if not np.max(size, initial=0.0) < np.inf:
            ends = ~np.isfinite(value)
            new_bound = np.where(ends, 0.0 if bound is None else bound, new_bound)
            noise = np.where(ends, 0.0, noise)
        new_sigma = root_sum(x.sigma, noise * ROOT_THIRD)
    if isinstance(x.pending, np.ndarray) and not x.pending.all():
        new_bound = np.where(x.pending, new_bound, 0.0 if bound is None else bound)
        new_sigma = np.where(x.pending, cast(Array, new_sigma), 0.0 if x.sigma is None else x.sigma)
    result = make(value, numerics, new_bound, new_sigma, x.common)
    result.reach, result.dropped, result.is_pivot, result.facts = x.reach, x.dropped, x.is_pivot, x.facts
    result.may_overflow = x.may_overflow
    return result


def flushed(x: ErrorBounded) -> Array:
    """What is lost where a result may be subnormal and become zero."""
    size, own = np.abs(x.value), 0.0 if x.bound is None else x.bound
    least = x.numerics.format.min_normal
    return np.where(size - own < least, np.minimum(size, least + own), 0.0)


def make(
    value: Any,
    numerics: Numerics,
    bound: Errors = None,
    sigma: Errors = None,
    common: Errors = None,
    pending: Pending = False,
) -> ErrorBounded:
    """An array with clean fields: a NaN bound becomes infinity, fields that are 0 everywhere become None."""
    value = np.asarray(value)
    if bound is not None:
        if bound.size and np.isnan(bound.min()):
            bound = np.where(np.isnan(bound), np.inf, bound)
        if not np.max(bound, initial=0.0) > 0.0:
            bound = sigma = common = None
    return ErrorBounded(value, numerics, bound=bound, sigma=_finite(sigma), common=_finite(common), pending=pending)


def _finite(errors: Errors) -> Errors:
    if errors is None or not errors.size:
        return None
    top = errors.max()
    if top == 0.0:
        return None
    if not np.isfinite(top):
        return np.where(np.isnan(errors), np.inf, errors)
    return errors
