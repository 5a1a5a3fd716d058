"""Reductions: sum and softmax."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, Floats, Output
from oracle.vocabulary import hull, pivot, rescaled


def _axis_in_range(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    axis, rank = params["axis"], len(sizes)
    if axis is None or -rank <= axis < rank:
        return None
    return f"axis={axis} is outside an array of {rank} dimension(s); give {-rank} … {rank - 1}, or None for all axes"


@operator(family="reduce", check=_axis_in_range)
def sum(x: Annotated[Array, Floats("...")], *, axis: int | None = None) -> Annotated[Array, Output("out", like="x")]:
    """Sum over one axis, or over all of them: ``out = Σ x``.

    Parameters
    ----------
    x : array (...)
        Any rank, any size; float16, bfloat16, float32 or float64.
    axis : int, optional
        The axis that disappears, counted from the end where negative. None sums everything to a scalar.

    Returns
    -------
    out : array
        The shape of x without ``axis``; x's dtype. The sum of no elements is 0.

    Notes
    -----
    Rounding points: every addition, in the compute type, in any order; the result once to x's dtype.
    A float16 sum beyond 65,504 is an infinity.

    Raises
    ------
    InputError
        ``axis`` is outside -rank … rank - 1.

    Source: the array API standard, ``sum``, with the result kept in the input's dtype.

    Examples
    --------
    >>> sum(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    array([4., 6.])
    """
    total: Array = np.sum(x, axis=axis)
    return total


@operator(family="reduce")
def softmax(x: Annotated[Array, Floats("... cols")]) -> Annotated[Array, Output("out", like="x")]:
    """Softmax over the last axis: ``out = exp(x - max x) / Σ exp(x - max x)``.

    Parameters
    ----------
    x : array (..., cols)
        Logits; float16, bfloat16, float32 or float64. No columns give an empty result.

    Returns
    -------
    out : array (..., cols)
        Shares in 0 … 1 that sum to 1; x's dtype.

    Notes
    -----
    Rounding points: the difference, the exponential, each addition and the quotient, in the compute type; the
    result once to x's dtype. The value does not depend on the shift by the maximum, which only keeps the
    exponential from overflowing.

    Source: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018), equation 2.

    Examples
    --------
    >>> softmax(np.array([0.0, 0.0, -np.log(2.0)]))
    array([0.4, 0.4, 0.2])
    """
    largest = pivot(np.max(x, axis=-1, keepdims=True, initial=-np.inf))
    weight = rescaled(np.exp(x - largest))
    share = weight / np.sum(weight, axis=-1, keepdims=True)
    out: Array = hull(share, 0.0, 1.0, terms=x.shape[-1])
    return out
