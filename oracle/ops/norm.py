"""Normalisations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, Floats, Output, Range
from oracle.vocabulary import chain, rsqrt


def _has_columns(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    return None if sizes["cols"] else "cols = 0, and the mean of no elements is undefined; give at least one column"


@operator(family="norm", check=_has_columns)
def rmsnorm(
    x: Annotated[Array, Floats("rows cols")],
    weight: Annotated[Array, Floats("cols")],
    *,
    eps: Annotated[float, Range(0.0, open=True)] = 1e-6,
) -> Annotated[Array, Output("out", like="x")]:
    """Root-mean-square normalisation over the last axis: ``out = x / sqrt(mean(x²) + eps) · weight``.

    Parameters
    ----------
    x : array (rows, cols)
        float16, bfloat16, float32 or float64; at least one column.
    weight : array (cols,)
        Gain per column; x's dtype.
    eps : float
        Added to the mean square, under the root; above 0.

    Returns
    -------
    out : array (rows, cols)
        x's dtype.

    Notes
    -----
    Rounding points: the squares, their sum, the root and the product of the three factors, in any order, in the
    compute type; the result once to x's dtype. In particular x / rms is *not* rounded to a 16-bit dtype before
    the gain (some models do; that is another operator).

    Raises
    ------
    InputError
        No columns, eps not above 0, or shapes and dtypes that disagree.

    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019), equation 4, with eps.

    Examples
    --------
    >>> rmsnorm(np.array([[3.0, 4.0]]), np.array([1.0, 10.0]), eps=12.5)
    array([[0.6, 8. ]])
    """
    mean_square = np.mean(x * x, axis=-1, keepdims=True)
    out: Array = chain(x, rsqrt(mean_square + eps), weight)
    return out
