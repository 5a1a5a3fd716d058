"""Normalisation with its result quantised."""

from __future__ import annotations

from typing import Annotated, Any

from oracle.operator import operator
from oracle.ops.dynamic_quant import Least, OfZero, Quantised, RowBlock, To, dynamic_codes, dynamic_scale
from oracle.ops.norm import Eps, Gain, has_columns, over_rms
from oracle.signature import Array, DtypeOf, Floats, Output
from oracle.vocabulary import round_to_format

SHORT_FLOATS = ("float16", "bfloat16", "float32")


def _normalised(x: Any, weight: Any, eps: float, gain: str, quantised: str, dtype: str) -> Any:
    y = over_rms(x, weight, eps, gain, "once", dtype)
    return round_to_format(y, dtype) if quantised == "rounded" else y


@operator(family="norm", check=has_columns, dtypes=SHORT_FLOATS)
def rmsnorm_dynamic_quant(
    x: Annotated[Array, Floats("rows cols")],
    weight: Annotated[Array, Floats("cols")],
    *,
    eps: Eps = 1e-6,
    gain: Gain = "weight",
    to: To = "float8_e4m3fn",
    block: RowBlock = "token",
    quantised: Quantised = "unrounded",
    least: Least = 0.0,
    of_zero: OfZero = "one",
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("scale", dtype="float32")]:
    """Normalisation and quantisation of its result: ``scale = max(max|rmsnorm(x)| / largest, least)``, ``codes``.

    ``codes = Q(rmsnorm(x) / scale)``, with one scale per row or per block of columns.

    Parameters
    ----------
    x : array (rows, cols)
        float16, bfloat16 or float32; at least one column; no NaN and no infinity.
    weight : array (cols,)
        Gain per column; x's dtype.
    eps : float
        Added to the mean square, under the root; above 0.
    gain : "weight" or "one_plus_weight"
        The second is Gemma's (``gemma_norm`` of AITER's ``rmsnorm_quant``).
    to : dtype by name
        The codes': float8_e4m3fn, float8_e4m3fnuz or int8; ``largest`` is 448, 240 or 127.
    block : "token", "1x32", "1x64" or "1x128"
        What shares a scale: a row, or that many columns of it; the last block may be smaller.
    quantised : "unrounded" or "rounded"
        Whether the normalised row is quantised as it was computed (AITER), or rounded to x's dtype first, as two
        kernels one after the other have it.
    least : float
        Lower limit of the scales: 0 in AITER, 1 / (512 · largest) in vLLM.
    of_zero : "one" or "least"
        Scale of a block of zeros: 1 (AITER's reference), or ``least`` like that of any other block.

    Returns
    -------
    scale : float32 array (rows, blocks)
        One number per block.
    codes : array (rows, cols)
        ``to``; judged from the scale that was returned.

    Notes
    -----
    Rounding points: as in ``rmsnorm``, without the last one unless ``quantised`` is ``rounded``; the scale in float32;
    the quotient, by division or by the reciprocal of the scale; the codes once, to nearest, ties to even.

    Raises
    ------
    InputError
        No columns, eps not above 0, least below 0, or shapes and dtypes that disagree.

    Source: ``rmsnorm2d_fwd_with_dynamicquant`` and ``rmsnorm_quant`` of AITER;
    ``rms_norm_dynamic_per_token_quant`` of vLLM.

    Examples
    --------
    >>> x, weight = np.array([[3.0, 4.0]], np.float32), np.array([635.0, 635.0], np.float32)
    >>> scale, codes = rmsnorm_dynamic_quant(x, weight, eps=12.5, to="int8")
    >>> scale.tolist(), codes.astype(int).tolist()
    ([[4.0]], [[95, 127]])
    """
    return dynamic_scale(_normalised(x, weight, eps, gain, quantised, dtype), to, block, least, of_zero)


@rmsnorm_dynamic_quant.stage
def normalised_codes(
    x: Array,
    weight: Array,
    scale: Array,
    *,
    eps: float,
    gain: Gain,
    to: To,
    block: RowBlock,
    quantised: Quantised,
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("codes", chosen_by="to")]:
    """The codes, from the scale that was returned."""
    return dynamic_codes(_normalised(x, weight, eps, gain, quantised, dtype), scale, to, block)
