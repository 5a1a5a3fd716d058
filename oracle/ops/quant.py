"""Quantisation to 8 bits with one scale per block, by scales worked out or given; and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.formats import format_of
from oracle.operator import operator
from oracle.ops.quant_blocks import Block, in_blocks, over_blocks, scales_fit
from oracle.signature import Array, Floats, Output, Range
from oracle.vocabulary import coded

SHORT_FLOATS = ("float16", "bfloat16", "float32")
EIGHT_BITS = Literal["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "int8"]


def _stored(ratio: Any, to: str, rounding: str) -> Any:
    """Ratios as codes: saturated, and a NaN is 0 where the format has none."""
    target = format_of(to)
    if target.is_integer:
        return coded(ratio, to, "toward_zero" if rounding == "toward_zero" else "nearest_even")
    return np.clip(ratio, -target.max, target.max)


def _integers_truncate(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if params["rounding"] == "toward_zero" and params["to"] != "int8":
        return f"rounding='toward_zero' is for to='int8', not {params['to']!r}"
    return None


@operator(family="quant", check=_integers_truncate, dtypes=SHORT_FLOATS)
def quantise(
    x: Annotated[Array, Floats("rows cols")],
    smooth: Annotated[Array, Floats("cols", dtype="float32")] | None = None,
    *,
    to: EIGHT_BITS = "float8_e4m3fn",
    block: Block = "token",
    largest: Annotated[float | None, Range(0.0, open=True)] = None,
    least: Annotated[float, Range(0.0)] = 0.0,
    of_zero: Literal["one", "least"] = "one",
    nans: Literal["propagate", "ignore"] = "propagate",
    rounding: Literal["nearest", "toward_zero"] = "nearest",
) -> Annotated[Array, Output("scale", dtype="float32")]:
    """Quantise a matrix by blocks: ``scale = max(max|x| / largest, least)`` of each block, ``codes = Q(x / scale)``.

    Parameters
    ----------
    x : array (rows, cols)
        float16, bfloat16 or float32.
    smooth : float32 array (cols,), optional
        Factor of each column, before everything else (smooth quantisation): x · smooth stands for x.
    to : dtype by name
        The codes': one of the four 8-bit floats, or int8.
    block : "tensor", "token", "channel", "1x16", "1x32", "1x64", "1x128" or "128x128"
        What shares a scale: everything, a row, a column, or a tile; tiles at the ends may be smaller.
    largest : float, optional
        What the largest magnitude becomes; the largest code of ``to`` if not given. vLLM takes 224 for
        float8_e4m3fnuz, AITER's MXFP8 reference 256 for float8_e4m3fn.
    least : float
        Lower limit of the scales: 0 in AITER's reference, 1e-12 in its kernels for caches, 1 / (512 · largest) in
        vLLM.
    of_zero : "one" or "least"
        Scale of a block without a nonzero element: 1 (AITER per token and tile), or ``least`` like that of any other
        block. With least = 0 that is 0, and its codes are those of 0 / 0 (AITER per tensor).
    nans : "propagate" or "ignore"
        Whether a NaN makes the scale of its block NaN (torch.amax), or does not count in the maximum (fmaxf in C++).
    rounding : "nearest" or "toward_zero"
        How int8 codes are rounded: to nearest, ties to even (the kernels), or towards 0 (AITER's torch reference).

    Returns
    -------
    scale : float32 array (block rows, block columns)
        One number per block: (1, 1) for a tensor, (rows, 1) for tokens, (1, cols) for channels.
    codes : array (rows, cols)
        ``to``; beyond its range the largest. NaN, which int8 does not have, becomes 0 there.

    Notes
    -----
    Rounding points: x · smooth and the scale, in float32; the quotient, by division or by the reciprocal of the scale;
    the codes once. The codes are judged from the scale that was returned.

    Raises
    ------
    InputError
        rounding="toward_zero" for a float, largest or least out of range, or shapes and dtypes that disagree.

    Source: AITER, ``aiter/ops/quant.py``; Micikevicius et al., "FP8 Formats for Deep Learning" (2022); for tiles
    DeepSeek-V3 (2024), section 3.3.

    Examples
    --------
    >>> quantise(np.array([[1.0, -2.0], [0.0, 0.0]], np.float32), to="int8", largest=4.0)
    (array([[0.5],
           [1. ]]), array([[ 2., -4.],
           [ 0.,  0.]]))
    """
    x = x if smooth is None else x * smooth
    size = np.abs(x)
    if nans == "ignore":
        size = np.where(np.isnan(size), 0.0, size)
    amax = np.max(in_blocks(size, block), axis=(1, 3), initial=0.0)
    scale = np.maximum(amax / (format_of(to).max if largest is None else largest), least)
    out: Array = np.where(amax == 0.0, 1.0, scale) if of_zero == "one" else scale
    return out


@quantise.stage
def codes(
    x: Array,
    smooth: Array | None,
    scale: Array,
    *,
    to: EIGHT_BITS,
    block: Block,
    rounding: Literal["nearest", "toward_zero"],
) -> Annotated[Array, Output("codes", chosen_by="to")]:
    """The codes, from the scale that was returned."""
    x = x if smooth is None else x * smooth
    result: Array = _stored(x / over_blocks(scale, block, *x.shape), to, rounding)
    return result


def _static_fits(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    return scales_fit(dict(sizes), params["block"]) or _integers_truncate(sizes, params)


@operator(family="quant", check=_static_fits, dtypes=SHORT_FLOATS)
def quantise_static(
    x: Annotated[Array, Floats("rows cols")],
    scale: Annotated[Array, Floats("scale_rows scale_cols", dtype="float32")],
    *,
    to: EIGHT_BITS = "float8_e4m3fn",
    block: Block = "tensor",
    rounding: Literal["nearest", "toward_zero"] = "nearest",
) -> Annotated[Array, Output("codes", chosen_by="to")]:
    """Quantise a matrix with given scales: ``codes = Q(x / scale)``, saturated.

    Parameters
    ----------
    x : array (rows, cols)
        float16, bfloat16 or float32.
    scale : float32 array (block rows, block columns)
        One number per block, above 0.
    to : dtype by name
        The codes': one of the four 8-bit floats, or int8.
    block : "tensor", "token", "channel", "1x16", "1x32", "1x64", "1x128" or "128x128"
        What shares a scale, as for `quantise`.
    rounding : "nearest" or "toward_zero"
        How int8 codes are rounded, as for `quantise`.

    Returns
    -------
    codes : array (rows, cols)
        ``to``; beyond its range the largest, an infinity too. NaN, which int8 does not have, becomes 0 there.

    Notes
    -----
    Rounding points: the quotient, by division or by the reciprocal of the scale, in float32; the codes once.

    Raises
    ------
    InputError
        The scales' shape is not that of the blocks, rounding="toward_zero" for a float, or dtypes that disagree.

    Source: AITER, ``static_per_tensor_quant``; vLLM, ``scaled_fp8_quant``.

    Examples
    --------
    >>> quantise_static(np.array([[1.0, -300.0]], np.float32), np.array([[0.5]], np.float32), to="int8")
    array([[   2., -128.]])
    """
    result: Array = _stored(x / over_blocks(scale, block, *x.shape), to, rounding)
    return result
