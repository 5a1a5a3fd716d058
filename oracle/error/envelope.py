"""The end of an analysis: value, bound and sigma before the output cast."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oracle.error.array import ErrorBounded
from oracle.error.fields import Array, plus_zero
from oracle.error.registry import UnsupportedOperationError
from oracle.error.settle import flushed, settle
from oracle.formats import Format, format_of


@dataclass(frozen=True)
class Envelope:
    """What a result must lie in: ``Q(value - bound) <= got <= Q(value + bound)`` with Q the cast to the output format.

    Attributes
    ----------
    value : float64 array
        The plain float64 run.
    bound : float64 array
        Guaranteed, 0 where one value only passes; infinite where nothing can be promised.
    sigma : float64 array
        Standard deviation of honest results, before the output cast.
    """

    value: Array
    bound: Array
    sigma: Array


def envelope(x: ErrorBounded, output_format: str | Format) -> Envelope:
    """Settle what is pending against the format the kernel stores.

    Parameters
    ----------
    x
        The result of an operator.
    output_format
        Format (or its name) of the output. Equal to the compute format: the last rounding is left to the output cast.
        Otherwise the result is rounded to the compute format first, then cast. In float64 the oracle's own last
        rounding is kept.

    Returns
    -------
    Envelope
        Arrays of the shape of `x`.
    """
    if not isinstance(x, ErrorBounded):
        raise UnsupportedOperationError(
            f"envelope() got {type(x).__name__}; the operator's result must be an ErrorBounded array."
        )
    target = output_format if isinstance(output_format, Format) else format_of(output_format)
    settled = x if target == x.numerics.format and not x.numerics.is_float64 else settle(x)
    zero = np.zeros(x.shape)
    bound = zero + plus_zero(settled.bound)
    with np.errstate(all="ignore"):
        sigma = np.sqrt(zero + np.square(plus_zero(settled.sigma)) + np.square(plus_zero(settled.common)))
        if settled.pending is not False and settled.numerics.flush_to_zero:  # the cast to the output does not flush
            lost = np.where(settled.pending, flushed(settled), 0.0)
            bound, sigma = np.maximum(bound, lost), np.maximum(sigma, lost)
        tiny = (sigma < 1e-150) & (bound > 0.0)
    return Envelope(x.value, bound, np.where(tiny, bound, np.minimum(sigma, bound)))
