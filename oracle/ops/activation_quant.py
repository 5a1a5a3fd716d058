"""Gated activations with their result quantised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.activation import (
    Bias,
    Limit,
    Pairing,
    Rounding,
    even_width,
    gelu_factors,
    multiplied,
    relu2_factors,
    silu_factors,
    swiglu_factors,
)
from oracle.ops.dynamic_quant import Least, OfZero, Quantised, RowBlock, To, dynamic_codes, dynamic_scale
from oracle.signature import Array, DtypeOf, Floats, Output, Range
from oracle.vocabulary import chain, round_to_format

SHORT_FLOATS = ("float16", "bfloat16", "float32")


def _activated(factors: tuple[Any, ...], quantised: str, dtype: str) -> Any:
    """The product of the factors, rounded to x's dtype where two kernels one after the other do so."""
    y = chain(*factors)
    return round_to_format(y, dtype) if quantised == "rounded" else y


@operator(family="activation", check=even_width, dtypes=SHORT_FLOATS)
def silu_and_mul_dynamic_quant(
    x: Annotated[Array, Floats("rows width")],
    bias: Bias = None,
    *,
    pairing: Pairing = "halves",
    limit: Limit = None,
    to: To = "float8_e4m3fn",
    block: RowBlock = "token",
    quantised: Quantised = "unrounded",
    least: Least = 0.0,
    of_zero: OfZero = "one",
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("scale", dtype="float32")]:
    """SwiGLU's activation, quantised: ``scale = max(max|y| / largest, least)``, ``codes = Q(y / scale)``.

    y is ``silu_and_mul(x, bias)``, with one scale per row or per block of columns.

    Parameters
    ----------
    x : array (rows, width)
        Gates and values, width / 2 each; float16, bfloat16 or float32; no NaN and no infinity.
    bias : array (width,), optional
        Added to every row first; x's dtype.
    pairing : str
        ``halves``: the first half of the columns gates the second; ``interleaved``: even columns gate odd ones.
    limit : float, optional
        Gates are cut off above it, values at both ends; above 0.
    to : dtype by name
        The codes': float8_e4m3fn, float8_e4m3fnuz or int8; ``largest`` is 448, 240 or 127.
    block : "token", "1x32", "1x64" or "1x128"
        What shares a scale: a row, or that many columns of the result; the last block may be smaller.
    quantised : "unrounded" or "rounded"
        Whether y is quantised as it was computed (AITER's ``silu_and_mul_quant``), or rounded to x's dtype first, as
        two kernels one after the other have it.
    least : float
        Lower limit of the scales: 0 in AITER, 1 / (512 · largest) in vLLM.
    of_zero : "one" or "least"
        Scale of a block of zeros: 1 (AITER's reference), or ``least`` like that of any other block.

    Returns
    -------
    scale : float32 array (rows, blocks)
        One number per block.
    codes : array (rows, width / 2)
        ``to``; judged from the scale that was returned.

    Notes
    -----
    Rounding points: as in ``silu_and_mul``, without the last one unless ``quantised`` is ``rounded``; the scale in
    float32; the quotient, by division or by the reciprocal of the scale; the codes once, to nearest, ties to even.

    Raises
    ------
    InputError
        An odd width, a bias of another width, ``limit`` not above 0, or least below 0.

    Source: ``silu_and_mul_quant`` of AITER; ``silu_and_mul_per_block_quant`` of vLLM.

    Examples
    --------
    >>> x = np.array([[1000.0, 500.0, 127.0, -127.0]], np.float32)
    >>> scale, codes = silu_and_mul_dynamic_quant(x, to="int8")
    >>> scale.tolist(), codes.astype(int).tolist()
    ([[1000.0]], [[127, -64]])
    """
    y = _activated(silu_factors(x, bias, pairing, limit), quantised, dtype)
    return dynamic_scale(y, to, block, least, of_zero)


@silu_and_mul_dynamic_quant.stage
def silu_codes(
    x: Array,
    bias: Array | None,
    scale: Array,
    *,
    pairing: Pairing,
    limit: float | None,
    to: To,
    block: RowBlock,
    quantised: Quantised,
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("codes", chosen_by="to")]:
    """The codes, from the scale that was returned."""
    return dynamic_codes(_activated(silu_factors(x, bias, pairing, limit), quantised, dtype), scale, to, block)


@operator(family="activation", check=even_width, dtypes=SHORT_FLOATS)
def gelu_and_mul_dynamic_quant(
    x: Annotated[Array, Floats("rows width")],
    bias: Bias = None,
    *,
    pairing: Pairing = "halves",
    approximate: Literal["none", "tanh"] = "none",
    to: To = "float8_e4m3fn",
    block: RowBlock = "token",
    quantised: Quantised = "unrounded",
    least: Least = 0.0,
    of_zero: OfZero = "one",
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("scale", dtype="float32")]:
    """GEGLU's activation, quantised: ``scale = max(max|y| / largest, least)``, ``codes = Q(y / scale)``.

    y is ``gelu_and_mul(x, bias)``, with one scale per row or per block of columns.

    Parameters
    ----------
    x, bias, pairing, to, block, least, of_zero
        As in `silu_and_mul_dynamic_quant`.
    approximate : str
        ``none``: Φ by the error function; ``tanh``: by tanh, as in `gelu_and_mul`.
    quantised : "unrounded" or "rounded"
        Whether y is quantised as it was computed, as fused experts do it, or rounded to x's dtype first, as two kernels
        one after the other have it (vLLM).

    Returns
    -------
    scale : float32 array (rows, blocks)
        One number per block.
    codes : array (rows, width / 2)
        ``to``; judged from the scale that was returned.

    Notes
    -----
    Rounding points: as in `gelu_and_mul`, without the last one unless ``quantised`` is ``rounded``; the scale, the
    quotient and the codes as in `silu_and_mul_dynamic_quant`.

    Raises
    ------
    InputError
        An odd width, a bias of another width, or least below 0.

    Source: Shazeer (2020), GEGLU; ``gelu_and_mul`` and ``gelu_tanh_and_mul`` of vLLM and AITER, followed by their
    ``dynamic_per_token_scaled_fp8_quant`` and ``dynamic_per_token_scaled_quant``.

    Examples
    --------
    >>> x = np.array([[1000.0, 500.0, 127.0, -127.0]], np.float32)
    >>> scale, codes = gelu_and_mul_dynamic_quant(x, to="int8")
    >>> scale.tolist(), codes.astype(int).tolist()
    ([[1000.0]], [[127, -64]])
    """
    y = _activated(gelu_factors(x, bias, pairing, approximate), quantised, dtype)
    return dynamic_scale(y, to, block, least, of_zero)


@gelu_and_mul_dynamic_quant.stage
def gelu_codes(
    x: Array,
    bias: Array | None,
    scale: Array,
    *,
    pairing: Pairing,
    approximate: Literal["none", "tanh"],
    to: To,
    block: RowBlock,
    quantised: Quantised,
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("codes", chosen_by="to")]:
    """The codes, from the scale that was returned."""
    y = _activated(gelu_factors(x, bias, pairing, approximate), quantised, dtype)
    return dynamic_codes(y, scale, to, block)


@operator(family="activation", check=even_width, dtypes=SHORT_FLOATS)
def relu2_and_mul_dynamic_quant(
    x: Annotated[Array, Floats("rows width")],
    bias: Bias = None,
    *,
    pairing: Pairing = "halves",
    to: To = "float8_e4m3fn",
    block: RowBlock = "token",
    quantised: Quantised = "unrounded",
    least: Least = 0.0,
    of_zero: OfZero = "one",
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("scale", dtype="float32")]:
    """Gated squared ReLU, quantised: ``scale = max(max|y| / largest, least)``, ``codes = Q(y / scale)``.

    y is ``relu2_and_mul(x, bias)``, with one scale per row or per block of columns.

    Parameters
    ----------
    x, bias, pairing, to, block, least, of_zero
        As in `silu_and_mul_dynamic_quant`. Squares above 65,504 are no infinity unless y is rounded to float16.
    quantised : "unrounded" or "rounded"
        Whether y is quantised as it was computed, or rounded to x's dtype first.

    Returns
    -------
    scale : float32 array (rows, blocks)
        One number per block.
    codes : array (rows, width / 2)
        ``to``; judged from the scale that was returned.

    Notes
    -----
    Rounding points: as in `relu2_and_mul`, without the last one unless ``quantised`` is ``rounded``; the scale, the
    quotient and the codes as in `silu_and_mul_dynamic_quant`.

    Raises
    ------
    InputError
        An odd width, a bias of another width, or least below 0.

    Source: So et al., "Primer: Searching for Efficient Transformers" (2021), squared ReLU, as the gate of a GLU.

    Examples
    --------
    >>> scale, codes = relu2_and_mul_dynamic_quant(np.array([[2.0, 1.0, 127.0, -127.0]], np.float32), to="int8")
    >>> scale.tolist(), codes.astype(int).tolist()
    ([[4.0]], [[127, -32]])
    """
    return dynamic_scale(_activated(relu2_factors(x, bias, pairing), quantised, dtype), to, block, least, of_zero)


@relu2_and_mul_dynamic_quant.stage
def relu2_codes(
    x: Array,
    bias: Array | None,
    scale: Array,
    *,
    pairing: Pairing,
    to: To,
    block: RowBlock,
    quantised: Quantised,
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("codes", chosen_by="to")]:
    """The codes, from the scale that was returned."""
    return dynamic_codes(_activated(relu2_factors(x, bias, pairing), quantised, dtype), scale, to, block)


@operator(family="activation", check=even_width, dtypes=SHORT_FLOATS)
def swiglu_with_limit_dynamic_quant(
    x: Annotated[Array, Floats("rows width")],
    bias: Bias = None,
    *,
    pairing: Pairing = "interleaved",
    alpha: Annotated[float, Range(0.0, open=True)] = 1.702,
    limit: Annotated[float, Range(0.0, open=True)] = 7.0,
    to: To = "float8_e4m3fn",
    block: RowBlock = "token",
    quantised: Quantised = "unrounded",
    least: Least = 0.0,
    of_zero: OfZero = "one",
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("scale", dtype="float32")]:
    """The clamped SwiGLU of gpt-oss, quantised: ``scale = max(max|y| / largest, least)``, ``codes = Q(y / scale)``.

    y is ``swiglu_with_limit(x, bias)``, with one scale per row or per block of columns.

    Parameters
    ----------
    x, bias, to, block, least, of_zero
        As in `silu_and_mul_dynamic_quant`.
    pairing, alpha, limit
        As in `swiglu_with_limit`.
    quantised : "unrounded" or "rounded"
        Whether y is quantised as it was computed, as fused experts do it, or rounded to x's dtype first.

    Returns
    -------
    scale : float32 array (rows, blocks)
        One number per block.
    codes : array (rows, width / 2)
        ``to``; judged from the scale that was returned.

    Notes
    -----
    Rounding points: as in `swiglu_with_limit`, without the last one unless ``quantised`` is ``rounded``; the scale,
    the quotient and the codes as in `silu_and_mul_dynamic_quant`.

    Raises
    ------
    InputError
        An odd width, a bias of another width, ``alpha`` or ``limit`` not above 0, or least below 0.

    Source: ``swiglu`` of the reference implementation of gpt-oss (OpenAI, 2025); between the two products of experts
    with 8-bit activations, AITER and vLLM.

    Examples
    --------
    >>> x = np.array([[100.0, 100.0, 100.0, -3.0]], np.float32)
    >>> scale, codes = swiglu_with_limit_dynamic_quant(x, alpha=50.0, to="int8", least=1.0)
    >>> scale.tolist(), codes.astype(int).tolist()
    ([[1.0]], [[56, -14]])
    """
    y = _activated(swiglu_factors(x, bias, pairing, alpha, limit), quantised, dtype)
    return dynamic_scale(y, to, block, least, of_zero)


@swiglu_with_limit_dynamic_quant.stage
def swiglu_codes(
    x: Array,
    bias: Array | None,
    scale: Array,
    *,
    pairing: Pairing,
    alpha: float,
    limit: float,
    to: To,
    block: RowBlock,
    quantised: Quantised,
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("codes", chosen_by="to")]:
    """The codes, from the scale that was returned."""
    y = _activated(swiglu_factors(x, bias, pairing, alpha, limit), quantised, dtype)
    return dynamic_codes(y, scale, to, block)


def _one_scale(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if sizes["one"] != 1:
        return f"there is one scale for all, not {sizes['one']}"
    return even_width(sizes, params)


@operator(family="activation", check=_one_scale, dtypes=SHORT_FLOATS)
def act_and_mul_static_quant(
    x: Annotated[Array, Floats("rows width")],
    scale: Annotated[Array, Floats("one", dtype="float32")],
    bias: Bias = None,
    *,
    activation: Literal["silu", "gelu", "gelu_tanh", "relu2"] = "silu",
    pairing: Pairing = "halves",
    rounding: Rounding = "once",
    to: To = "float8_e4m3fn",
    quantised: Quantised = "unrounded",
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("codes", chosen_by="to")]:
    """A gated activation, quantised with a given scale: ``codes = Q(act(gate) · value / scale)``, saturated.

    Parameters
    ----------
    x : array (rows, width)
        Gates and values, width / 2 each; float16, bfloat16 or float32; no NaN and no infinity.
    scale : float32 array (1,)
        What a code is multiplied by to dequantise it; above 0.
    bias : array (width,), optional
        Added to every row of x first; x's dtype.
    activation : "silu", "gelu", "gelu_tanh" or "relu2"
        As in `silu_and_mul`, `gelu_and_mul` (by erf, or by tanh) and `relu2_and_mul`.
    pairing : str
        ``halves``: the first half of the columns gates the second; ``interleaved``: even columns gate odd ones.
    rounding : "once" or "twice"
        Whether the activated gate is rounded to x's dtype before the product (vLLM).
    to : dtype by name
        float8_e4m3fn, float8_e4m3fnuz or int8.
    quantised : "unrounded" or "rounded"
        Whether the product is quantised as it was computed (AITER's ``scaled_silu_and_mul``), or rounded to x's dtype
        first (vLLM's ``silu_and_mul_quant``).

    Returns
    -------
    codes : array (rows, width / 2)
        ``to``; beyond its range the largest.

    Notes
    -----
    Rounding points: as in the activation's own operator; ``rounding`` and ``quantised`` as they say; the quotient, by
    division or by the reciprocal of the scale, in float32; the codes once, to nearest, ties to even.

    Raises
    ------
    InputError
        An odd width, more than one scale, or a bias of another width.

    Source: ``silu_and_mul_quant`` of vLLM; ``scaled_silu_and_mul`` of AITER.

    Examples
    --------
    >>> x, scale = np.array([[1000.0, 500.0, 0.25, -1.0]], np.float32), np.array([4.0], np.float32)
    >>> act_and_mul_static_quant(x, scale, to="int8")
    array([[  62., -125.]])
    """
    if activation == "silu":
        factors = silu_factors(x, bias, pairing, None)
    elif activation == "relu2":
        factors = relu2_factors(x, bias, pairing)
    else:
        factors = gelu_factors(x, bias, pairing, "none" if activation == "gelu" else "tanh")
    y: Any = multiplied(factors, rounding, dtype)
    if quantised == "rounded":
        y = round_to_format(y, dtype)
    return dynamic_codes(y, scale[np.newaxis], to, "tensor")
