"""Reductions along rows: mean, prefix sums, and the logarithms of sums of exponentials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, Floats, Output
from oracle.vocabulary import pivot, rescaled


def _has_columns(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    return None if sizes["cols"] else "cols = 0, and the mean of no elements is undefined; give at least one column"


@operator(family="reduce", check=_has_columns)
def mean(x: Annotated[Array, Floats("... cols")]) -> Annotated[Array, Output("out", like="x")]:
    """Mean over the last axis: ``out = Σ x / cols``.

    Parameters
    ----------
    x : array (..., cols)
        float16, bfloat16, float32 or float64; at least one column.

    Returns
    -------
    out : array (...)
        x's dtype.

    Notes
    -----
    Rounding points: every addition, in any order, and the quotient, in the compute type; the result once to x's
    dtype. A float16 sum beyond 65,504 is no infinity, since it is not stored.

    Raises
    ------
    InputError
        No columns.

    Source: the array API standard, ``mean``, over the last axis.

    Examples
    --------
    >>> mean(np.array([[1.0, 2.0], [3.0, 5.0]]))
    array([1.5, 4. ])
    """
    average: Array = np.mean(x, axis=-1)
    return average


@operator(family="reduce")
def cumsum(
    x: Annotated[Array, Floats("... cols")], *, exclusive: bool = False
) -> Annotated[Array, Output("out", like="x")]:
    """Prefix sums along the last axis: ``out[i] = Σ x[0 … i]``, or without x[i] if ``exclusive``.

    Parameters
    ----------
    x : array (..., cols)
        float16, bfloat16, float32 or float64.
    exclusive : bool
        Whether an element's own term is left out, so that the first sum is 0 (the array API: no).

    Returns
    -------
    out : array (..., cols)
        x's dtype.

    Notes
    -----
    Rounding points: every addition, in the compute type, each prefix in any order (so a scan of blocks is covered);
    each result once to x's dtype.

    Source: the array API standard, ``cumulative_sum``; Blelloch, "Prefix Sums and Their Applications" (1990).

    Examples
    --------
    >>> cumsum(np.array([1.0, 2.0, 4.0])), cumsum(np.array([1.0, 2.0, 4.0]), exclusive=True)
    (array([1., 3., 7.]), array([0., 1., 3.]))
    """
    total: Array = np.cumsum(x, axis=-1)
    if exclusive:
        return np.concatenate([np.zeros_like(x[..., :1]), total[..., :-1]], axis=-1)
    return total


@operator(family="reduce")
def logsumexp(x: Annotated[Array, Floats("... cols")]) -> Annotated[Array, Output("out", like="x")]:
    """Logarithm of a sum of exponentials over the last axis: ``out = m + log Σ exp(x - m)``.

    Parameters
    ----------
    x : array (..., cols)
        float16, bfloat16, float32 or float64.

    Returns
    -------
    out : array (...)
        x's dtype. Minus infinity for rows of minus infinity, and for no columns.

    Notes
    -----
    m is the row's maximum; the value does not depend on it, it only keeps the exponential from overflowing.
    Rounding points: the difference, the exponential, each addition, the logarithm and the last addition, in the compute
    type; the result once to x's dtype.

    Source: Blanchard, Higham and Higham, "Accurately computing the log-sum-exp and softmax functions" (2021).

    Examples
    --------
    >>> logsumexp(np.array([[1000.0, -np.inf], [-np.inf, -np.inf]]))
    array([1000.,  -inf])
    """
    largest = np.max(x, axis=-1, keepdims=True, initial=-np.inf)
    shift = pivot(np.where(np.isinf(largest), 0.0, largest))
    total = np.sum(rescaled(np.exp(x - shift)), axis=-1, keepdims=True)
    out: Array = (shift + np.log(total))[..., 0]
    return out


@operator(family="reduce")
def log_softmax(x: Annotated[Array, Floats("... cols")]) -> Annotated[Array, Output("out", like="x")]:
    """Logarithm of softmax over the last axis: ``out = (x - m) - log Σ exp(x - m)``.

    Parameters
    ----------
    x : array (..., cols)
        Logits; float16, bfloat16, float32 or float64. No columns give an empty result.

    Returns
    -------
    out : array (..., cols)
        At most 0; x's dtype. NaN for a row of minus infinity or with infinity.

    Notes
    -----
    m is the row's maximum. Rounding points: the difference, the exponential, each addition, the logarithm and the last
    difference, in the compute type; the result once to x's dtype. x - (m + log Σ exp(x - m)) is not among the freedoms:
    it loses the digits of x - m where m is large.

    Source: PyTorch's ``log_softmax``.

    Examples
    --------
    >>> np.exp(log_softmax(np.array([1e7, 1e7, 1e7 - np.inf])))
    array([0.5, 0.5, 0. ])
    """
    distance = x - pivot(np.max(x, axis=-1, keepdims=True, initial=-np.inf))
    total = np.sum(rescaled(np.exp(distance)), axis=-1, keepdims=True)
    out: Array = distance - np.log(total)
    return out
