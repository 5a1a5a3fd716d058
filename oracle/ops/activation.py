"""Gated activations: one half of a projection, through a function, gates the other half."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, DtypeOf, Floats, Output, Range
from oracle.vocabulary import chain, either, erf, round_to_format, sigmoid

Pairing = Literal["halves", "interleaved"]
Rounding = Literal["once", "twice"]
Bias = Annotated[Array, Floats("width")] | None
Limit = Annotated[float | None, Range(0.0, open=True)]


def even_width(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    """Every gate has its partner."""
    width = sizes["width"]
    return f"width = {width} must be even: as many gates as values that they gate" if width % 2 else None


def gate_and_value(x: Any, bias: Any, pairing: str) -> tuple[Any, Any]:
    """The columns that are gates and the columns that they gate, bias added."""
    biased = x if bias is None else x + bias
    half = x.shape[-1] // 2
    if pairing == "halves":
        return biased[..., :half], biased[..., half:]
    return biased[..., 0::2], biased[..., 1::2]


def silu_factors(x: Any, bias: Any, pairing: str, limit: float | None) -> tuple[Any, ...]:
    """What SwiGLU's result is the product of: gate, its sigmoid, value."""
    gate, value = gate_and_value(x, bias, pairing)
    if limit is not None:
        gate, value = np.minimum(gate, limit), np.clip(value, -limit, limit)
    return gate, sigmoid(gate), value


def gelu_factors(x: Any, bias: Any, pairing: str, approximate: str) -> tuple[Any, ...]:
    """What GEGLU's result is the product of: gate, Φ as a half and a share, value."""
    gate, value = gate_and_value(x, bias, pairing)
    if approximate == "tanh":
        inner = math.sqrt(2.0 / math.pi) * (gate + 0.044715 * gate * gate * gate)
        return gate, 0.5, either(1.0 + np.tanh(inner), 2.0 * sigmoid(2.0 * inner)), value
    return gate, 0.5, 1.0 + erf(gate * math.sqrt(0.5)), value


def relu2_factors(x: Any, bias: Any, pairing: str) -> tuple[Any, ...]:
    """What a gated squared ReLU is the product of: the positive gate twice, value."""
    gate, value = gate_and_value(x, bias, pairing)
    positive = np.maximum(gate, 0.0)
    return positive, positive, value


def swiglu_factors(x: Any, bias: Any, pairing: str, alpha: float, limit: float) -> tuple[Any, ...]:
    """What the clamped SwiGLU is the product of: gate, a sigmoid, value + 1."""
    gate, value = gate_and_value(x, bias, pairing)
    gate, value = np.minimum(gate, limit), np.clip(value, -limit, limit)
    return gate, sigmoid(alpha * gate), value + 1.0


def multiplied(factors: tuple[Any, ...], rounding: str, dtype: str) -> Array:
    """The product of all factors, the last of which waits for a rounding of the others if ``twice``."""
    *activated, value = factors
    out: Array = round_to_format(chain(*activated), dtype) * value if rounding == "twice" else chain(*factors)
    return out


@operator(family="activation", check=even_width)
def silu_and_mul(
    x: Annotated[Array, Floats("rows width")],
    bias: Bias = None,
    *,
    pairing: Pairing = "halves",
    limit: Limit = None,
    rounding: Rounding = "once",
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("out", like="x")]:
    """SwiGLU's activation: ``out = gate · sigmoid(gate) · value`` of the two halves of ``x + bias``.

    Parameters
    ----------
    x : array (rows, width)
        Gates and values, width / 2 each; float16, bfloat16, float32 or float64.
    bias : array (width,), optional
        Added to every row first; x's dtype.
    pairing : str
        ``halves``: the first half of the columns gates the second (vLLM, AITER, FlashInfer); ``interleaved``: even
        columns gate odd ones.
    limit : float, optional
        Gates are cut off above it, values at both ends, ``-limit … limit`` (AITER's ``limit``); above 0.
    rounding : str
        ``once``: only the product is rounded to x's dtype (FlashInfer, AITER); ``twice``: the activated gate is
        rounded to it before the product (vLLM's ``silu_and_mul``).

    Returns
    -------
    out : array (rows, width / 2)
        x's dtype.

    Notes
    -----
    Rounding points: the bias, the exponential, the quotient and the products, in any order, in the compute type; then
    as ``rounding`` says. A gate of minus infinity gives NaN (∞ · 0). NaN passes through ``limit``.

    Raises
    ------
    InputError
        An odd width, ``limit`` not above 0, or a bias of another width.

    Source: Shazeer, "GLU Variants Improve Transformer" (2020), SwiGLU; ``silu_and_mul`` of vLLM.

    Examples
    --------
    >>> silu_and_mul(np.array([[np.log(3.0), 0.0, 4.0, 5.0]])) / np.log(3.0)
    array([[3., 0.]])
    """
    return multiplied(silu_factors(x, bias, pairing, limit), rounding, dtype)


@operator(family="activation", check=even_width)
def gelu_and_mul(
    x: Annotated[Array, Floats("rows width")],
    bias: Bias = None,
    *,
    pairing: Pairing = "halves",
    approximate: Literal["none", "tanh"] = "none",
    rounding: Rounding = "once",
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("out", like="x")]:
    """GEGLU's activation: ``out = gate · Φ(gate) · value`` with Φ(g) = (1 + erf(g / √2)) / 2, or Φ by tanh.

    Parameters
    ----------
    x : array (rows, width)
        Gates and values, width / 2 each; float16, bfloat16, float32 or float64.
    bias : array (width,), optional
        Added to every row first; x's dtype.
    pairing : str
        ``halves``: the first half of the columns gates the second; ``interleaved``: even columns gate odd ones.
    approximate : str
        ``none``: Φ by the error function (``gelu_and_mul``); ``tanh``: Φ(g) ≈ (1 + tanh(√(2/π)(g + 0.044715 g³))) / 2
        (``gelu_tanh_and_mul``). The two differ by up to 5e-4.
    rounding : str
        ``once``: only the product is rounded to x's dtype (FlashInfer, AITER); ``twice``: the activated gate is
        rounded to it before the product (vLLM).

    Returns
    -------
    out : array (rows, width / 2)
        x's dtype.

    Notes
    -----
    Rounding points: the bias, the argument of erf or tanh, the function, 1 + it, and the products, in the compute
    type; then as ``rounding`` says. 1 + erf cancels for negative gates, so small results have an absolute error.
    1 + tanh(z) may be twice the sigmoid of 2z.

    Raises
    ------
    InputError
        An odd width, or a bias of another width.

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016); Shazeer (2020), GEGLU.

    Examples
    --------
    >>> gelu_and_mul(np.array([[0.0, 9.0, 3.0, 2.0]]))
    array([[ 0., 18.]])
    """
    return multiplied(gelu_factors(x, bias, pairing, approximate), rounding, dtype)


@operator(family="activation", check=even_width)
def relu2_and_mul(
    x: Annotated[Array, Floats("rows width")],
    bias: Bias = None,
    *,
    pairing: Pairing = "halves",
    rounding: Rounding = "once",
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("out", like="x")]:
    """Gated squared ReLU: ``out = max(gate, 0)² · value`` of the two halves of ``x + bias``.

    Parameters
    ----------
    x : array (rows, width)
        Gates and values, width / 2 each; float16, bfloat16, float32 or float64.
    bias : array (width,), optional
        Added to every row first; x's dtype.
    pairing : str
        ``halves``: the first half of the columns gates the second; ``interleaved``: even columns gate odd ones.
    rounding : str
        ``once``: only the product is rounded to x's dtype; ``twice``: the square is rounded to it before the product.

    Returns
    -------
    out : array (rows, width / 2)
        x's dtype.

    Notes
    -----
    Rounding points: the bias and the two products, in any order, in the compute type; then as ``rounding`` says.
    NaN passes through the maximum.

    Raises
    ------
    InputError
        An odd width, or a bias of another width.

    Source: So et al., "Primer: Searching for Efficient Transformers" (2021), squared ReLU, as the gate of a GLU.

    Examples
    --------
    >>> relu2_and_mul(np.array([[3.0, -3.0, 0.5, 7.0]]))
    array([[4.5, 0. ]])
    """
    return multiplied(relu2_factors(x, bias, pairing), rounding, dtype)


@operator(family="activation", check=even_width)
def swiglu_with_limit(
    x: Annotated[Array, Floats("rows width")],
    bias: Bias = None,
    *,
    pairing: Pairing = "interleaved",
    alpha: Annotated[float, Range(0.0, open=True)] = 1.702,
    limit: Annotated[float, Range(0.0, open=True)] = 7.0,
) -> Annotated[Array, Output("out", like="x")]:
    """The clamped SwiGLU of gpt-oss: ``out = g · sigmoid(alpha · g) · (v + 1)`` with g and v cut off at ``limit``.

    Parameters
    ----------
    x : array (rows, width)
        Gates and values, width / 2 each; float16, bfloat16, float32 or float64.
    bias : array (width,), optional
        Added to every row first; x's dtype.
    pairing : str
        ``interleaved``: even columns gate odd ones (the model as published); ``halves``: the first half of the
        columns gates the second (weights that were rearranged).
    alpha : float
        Steepness of the sigmoid; above 0.
    limit : float
        g = min(gate, limit), v = clip(value, -limit, limit); above 0.

    Returns
    -------
    out : array (rows, width / 2)
        x's dtype.

    Notes
    -----
    Rounding points: the bias, alpha · g, the sigmoid, v + 1 and the products, in any order, in the compute type; the
    result once to x's dtype. The gate is not cut off below. NaN passes through the limits.

    Raises
    ------
    InputError
        An odd width, ``alpha`` or ``limit`` not above 0, or a bias of another width.

    Source: ``swiglu`` of the reference implementation of gpt-oss (OpenAI, 2025).

    Examples
    --------
    >>> swiglu_with_limit(np.array([[100.0, 100.0, 0.0, 5.0]]), alpha=50.0)
    array([[56.,  0.]])
    """
    out: Array = chain(*swiglu_factors(x, bias, pairing, alpha, limit))
    return out
