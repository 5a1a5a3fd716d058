"""Roundings that a specification demands or that a kernel may do: `round_to_format` and `may_round`."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.error.array import ErrorBounded
from oracle.error.fields import ROOT_THIRD, Array, plus, plus_zero, root_sum
from oracle.error.settle import make, settle
from oracle.formats import Rounding, format_of, round_to, spacing
from oracle.numerics import underflow_error
from oracle.vocabulary.operands import Operand


def round_to_format(x: Any, fmt: str, rounding: Rounding = "nearest_even") -> Any:
    """A rounding that the specification demands: `x` cast to `fmt` (and back to float64).

    Parameters
    ----------
    x
        Array of any shape.
    fmt
        Name of the format (``bfloat16``).
    rounding
        Rounding mode, see `oracle.formats`.

    Notes
    -----
    Only elements whose error straddles a rounding boundary may come out one step off.
    """
    target = format_of(fmt)
    if not isinstance(x, ErrorBounded):
        return round_to(np.asarray(x, dtype=np.float64), target, rounding)
    settled = settle(x)
    value = round_to(x.value, target, rounding)
    own_format = target == x.numerics.format and rounding == "nearest_even"
    if own_format and x.bound is None and x.pending is True and not x.numerics.flush_to_zero:
        # one operation on exact operands, rounded as IEEE arithmetic rounds it: the plain run has done it too
        return make(value, x.numerics)
    if settled.bound is None:
        return make(value, x.numerics)
    with np.errstate(all="ignore"):

        def steps(reach: Array) -> Array:
            reach = np.where(reach > 0.0, reach + np.abs(x.value) * 2.0**-51, 0.0)
            above: Array = round_to(x.value + reach, target, rounding) - value
            return np.maximum(above, value - round_to(x.value - reach, target, rounding))

        bound = steps(settled.bound)
        deviation = plus_zero(root_sum(settled.sigma, settled.common))
        straddling = steps(np.minimum(6.0 * deviation, settled.bound) + np.zeros_like(bound))
        step = spacing(np.where(np.isfinite(value), np.abs(value), 0.0), target)
        sigma = np.minimum(straddling, np.hypot(deviation, step * ROOT_THIRD))  # Q(v + e) - Q(v): e and two roundings
    return make(value, x.numerics, np.where(np.isfinite(value), bound, settled.bound), sigma)


def may_round(x: Operand, fmt: str | None = None) -> Operand:
    """A rounding that a kernel may do or leave out, at any power-of-two scale; the value stays.

    Parameters
    ----------
    x
        Array of any shape, for attention the softmax weights before they meet V.
    fmt
        Name of the format; None = `Numerics.probability_format` (and nothing is granted where that is None).
    """
    if not isinstance(x, ErrorBounded):
        return x
    name = x.numerics.probability_format if fmt is None else fmt
    if name is None:
        return x
    settled, target = settle(x), format_of(name)
    size = np.abs(x.value)
    with np.errstate(all="ignore"):
        step = target.unit_roundoff * (size + plus_zero(settled.bound)) + np.where(
            size > 0.0, underflow_error(target), 0.0
        )
        step = np.where(np.isfinite(size), step, 0.0)
        sigma = root_sum(settled.sigma, step * ROOT_THIRD)
    result = make(x.value, x.numerics, plus(settled.bound, step), sigma, settled.common)
    result.may_overflow = x.may_overflow
    return result  # type: ignore[return-value]
