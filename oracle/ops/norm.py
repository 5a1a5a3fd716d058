"""Normalisations by the root mean square."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, DtypeOf, Floats, Output, Range
from oracle.vocabulary import chain, round_to_format, rsqrt

Eps: TypeAlias = Annotated[float, Range(0.0, open=True)]
Gain: TypeAlias = Literal["weight", "one_plus_weight"]
Rounding: TypeAlias = Literal["once", "twice"]


def has_columns(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    return None if sizes["cols"] else "cols = 0, and the mean of no elements is undefined; give at least one column"


@operator(family="norm", check=has_columns)
def rmsnorm(
    x: Annotated[Array, Floats("rows cols")],
    weight: Annotated[Array, Floats("cols")],
    *,
    eps: Eps = 1e-6,
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


def over_rms(x: Any, weight: Any, eps: float, gain: str, rounding: str, dtype: str) -> Any:
    """x over its root mean square, times the gain; rounded to ``dtype`` in between where that is asked for."""
    root = rsqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)
    factor = weight if gain == "weight" else 1.0 + weight
    return round_to_format(chain(x, root), dtype) * factor if rounding == "twice" else chain(x, root, factor)


@operator(family="norm", check=has_columns)
def gemma_rmsnorm(
    x: Annotated[Array, Floats("rows cols")],
    weight: Annotated[Array, Floats("cols")],
    *,
    eps: Eps = 1e-6,
) -> Annotated[Array, Output("out", like="x")]:
    """Gemma's root-mean-square normalisation: ``out = x / sqrt(mean(x²) + eps) · (1 + weight)``.

    Parameters
    ----------
    x : array (rows, cols)
        float16, bfloat16, float32 or float64; at least one column.
    weight : array (cols,)
        Gain per column, less 1; x's dtype.
    eps : float
        Added to the mean square, under the root; above 0.

    Returns
    -------
    out : array (rows, cols)
        x's dtype.

    Notes
    -----
    Rounding points: as in ``rmsnorm``, and 1 + weight in the compute type, not in a 16-bit dtype.

    Raises
    ------
    InputError
        No columns, eps not above 0, or shapes and dtypes that disagree.

    Source: Gemma's reference implementation (Google, 2024); ``gemma_rmsnorm`` of FlashInfer, AITER's ``gemma_norm``.

    Examples
    --------
    >>> gemma_rmsnorm(np.array([[3.0, 4.0]]), np.array([0.0, 9.0]), eps=12.5)
    array([[0.6, 8. ]])
    """
    out: Array = over_rms(x, weight, eps, "one_plus_weight", "once", "")
    return out


@operator(family="norm", check=has_columns)
def t5_rmsnorm(
    x: Annotated[Array, Floats("rows cols")],
    weight: Annotated[Array, Floats("cols")],
    *,
    eps: Eps = 1e-6,
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("out", like="x")]:
    """Root-mean-square normalisation in T5's order: ``out = round(x / sqrt(mean(x²) + eps)) · weight``.

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
    Rounding points: the squares, their sum, the root and x over it in the compute type; that quotient to x's dtype;
    its product with the gain to x's dtype. So do T5 and Llama in Hugging Face's transformers, and AITER where
    ``use_model_sensitive_rmsnorm`` is 1; vLLM, FlashInfer and ``rmsnorm`` round once.

    Raises
    ------
    InputError
        No columns, eps not above 0, or shapes and dtypes that disagree.

    Source: ``T5LayerNorm`` of Hugging Face's transformers.

    Examples
    --------
    >>> t5_rmsnorm(np.array([[3.0, 4.0]], np.float16), np.array([1.0, 10.0], np.float16), eps=12.5)
    array([[0.60009766, 7.99804688]])
    """
    out: Array = over_rms(x, weight, eps, "weight", "twice", dtype)
    return out
