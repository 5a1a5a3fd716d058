"""A gated activation with its result quantised."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from oracle.operator import operator
from oracle.ops.activation import Limit, Pairing, even_width, gate_and_value
from oracle.ops.dynamic_quant import Least, OfZero, Quantised, RowBlock, To, dynamic_codes, dynamic_scale
from oracle.signature import Array, DtypeOf, Floats, Output
from oracle.vocabulary import chain, round_to_format, sigmoid

SHORT_FLOATS = ("float16", "bfloat16", "float32")


def _activated(x: Any, pairing: str, limit: float | None, quantised: str, dtype: str) -> Any:
    gate, value = gate_and_value(x, None, pairing)
    if limit is not None:
        gate, value = np.minimum(gate, limit), np.clip(value, -limit, limit)
    y = chain(gate, sigmoid(gate), value)
    return round_to_format(y, dtype) if quantised == "rounded" else y


@operator(family="activation", check=even_width, dtypes=SHORT_FLOATS)
def silu_and_mul_dynamic_quant(
    x: Annotated[Array, Floats("rows width")],
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

    y is ``silu_and_mul(x)``, with one scale per row or per block of columns.

    Parameters
    ----------
    x : array (rows, width)
        Gates and values, width / 2 each; float16, bfloat16 or float32; no NaN and no infinity.
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
        An odd width, ``limit`` not above 0, or least below 0.

    Source: ``silu_and_mul_quant`` of AITER; ``silu_and_mul_per_block_quant`` of vLLM.

    Examples
    --------
    >>> x = np.array([[1000.0, 500.0, 127.0, -127.0]], np.float32)
    >>> scale, codes = silu_and_mul_dynamic_quant(x, to="int8")
    >>> scale.tolist(), codes.astype(int).tolist()
    ([[1000.0]], [[127, -64]])
    """
    return dynamic_scale(_activated(x, pairing, limit, quantised, dtype), to, block, least, of_zero)


@silu_and_mul_dynamic_quant.stage
def activated_codes(
    x: Array,
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
    return dynamic_codes(_activated(x, pairing, limit, quantised, dtype), scale, to, block)
