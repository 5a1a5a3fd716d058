"""Quantisation of weights to 4-bit integers by groups, with or without zero points."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.quant_blocks import in_blocks, over_blocks
from oracle.signature import Array, Floats, Output, Range
from oracle.vocabulary import coded, exact_value, stepped

SHORT_FLOATS = ("float16", "bfloat16", "float32")
GROUPS = Literal["1x32", "1x64", "1x128"]


def _lowest(x: Any, group: str) -> Any:
    """The least element of each group."""
    there = in_blocks(np.ones(x.shape), group) > 0.0
    return np.min(np.where(there, in_blocks(x, group), np.inf), axis=(1, 3), initial=np.inf)


def _ratio(x: Array, scale: Array, group: str) -> Any:
    return x / over_blocks(scale, group, *x.shape)


@operator(family="quant", dtypes=SHORT_FLOATS)
def quantise_int4(
    x: Annotated[Array, Floats("rows cols")],
    *,
    group: GROUPS = "1x32",
    largest: Literal[7, 8] = 7,
    least: Annotated[float, Range(0.0, open=True)] = 1e-6,
) -> Annotated[Array, Output("scale", dtype="float32")]:
    """Quantise to int4 by groups of a row: ``scale = max(max|x|, least) / largest``, ``codes = Q(x / scale)``.

    Parameters
    ----------
    x : array (rows, cols)
        Weights: float16, bfloat16 or float32; finite numbers.
    group : "1x32", "1x64" or "1x128"
        How many neighbours of a row share a scale; the last group may be smaller.
    largest : 7 or 8
        What the largest magnitude becomes: 7 (AITER, whose codes are -7 … 7) or 8 (llama.cpp: positive ones saturate
        at 7).
    least : float
        The least magnitude that a scale is made of, so that a group of zeros has one: 1e-6 in AITER.

    Returns
    -------
    scale : float32 array (rows, groups)
        One per group.
    codes : int4 array (rows, cols)
        One element each.

    Notes
    -----
    Rounding points: the scale; the quotient, by division or by the reciprocal of the scale, in float32; the codes
    once, to nearest, ties to even, from the scale that was returned.

    Source: AITER, ``per_1x32_i4_quant``.

    Examples
    --------
    >>> quantise_int4(np.array([[3.5, -1.0]], np.float32))
    (array([[0.5]]), array([[ 7., -2.]]))
    """
    amax = np.max(in_blocks(np.abs(x), group), axis=(1, 3), initial=0.0)
    scale: Array = np.maximum(amax, least) / float(largest)
    return scale


@quantise_int4.stage
def int4_codes(x: Array, scale: Array, *, group: GROUPS) -> Annotated[Array, Output("codes", dtype="int4")]:
    """The codes, from the scale that was returned."""
    codes: Array = coded(_ratio(x, scale, group), "int4")
    return codes


@operator(family="quant", dtypes=SHORT_FLOATS)
def quantise_uint4(
    x: Annotated[Array, Floats("rows cols")],
    *,
    group: GROUPS = "1x32",
    least: Annotated[float, Range(0.0, open=True)] = 1e-5,
) -> Annotated[Array, Output("scale", dtype="float32")]:
    """Quantise with zero points: ``scale = (max x - min x) / 15``, ``codes = Q(x / scale) + zero``.

    Parameters
    ----------
    x : array (rows, cols)
        Weights: float16, bfloat16 or float32; finite numbers.
    group : "1x32", "1x64" or "1x128"
        How many neighbours of a row share a scale; the last group may be smaller.
    least : float
        The least range that a scale is made of: 1e-5 in AWQ.

    Returns
    -------
    scale : float32 array (rows, groups)
        One per group: the range of its elements over 15.
    zero : uint4 array (rows, groups)
        The code of 0: -min x / scale to nearest, within 0 … 15.
    codes : uint4 array (rows, cols)
        Q(x / scale) + zero, within 0 … 15.

    Notes
    -----
    Rounding points: the range and the scale; each quotient, by division or by the reciprocal of the scale, in
    float32; zero and codes once each, to nearest, ties to even, from what was returned before them. AWQ rounds
    x / scale before it adds the zero point, as here; rounding the sum decides ties otherwise where zero is odd.

    Source: Lin et al., "AWQ" (2023), ``pseudo_quantize_tensor``.

    Examples
    --------
    >>> quantise_uint4(np.array([[-2.0, 5.5]], np.float32))
    (array([[0.5]]), array([[4.]]), array([[ 0., 15.]]))
    """
    scale: Array = np.maximum(-_lowest(-x, group) - _lowest(x, group), least) / 15.0
    return scale


@quantise_uint4.stage
def uint4_zeros(x: Array, scale: Array, *, group: GROUPS) -> Annotated[Array, Output("zero", dtype="uint4")]:
    """The zero points, from the scale that was returned."""
    zero: Array = coded(-_lowest(x, group) / scale, "uint4")
    return zero


@quantise_uint4.stage
def uint4_codes(
    x: Array, scale: Array, zero: Array, *, group: GROUPS
) -> Annotated[Array, Output("codes", dtype="uint4")]:
    """The codes, from scale and zero point that were returned."""
    shift = exact_value(over_blocks(zero, group, *x.shape))
    codes: Array = stepped(_ratio(x, scale, group), lambda ratio: np.clip(np.rint(ratio) + shift, 0.0, 15.0))
    return codes
