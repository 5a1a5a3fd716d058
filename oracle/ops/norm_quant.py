"""Normalisation with its result quantised."""

from __future__ import annotations

from typing import Annotated, Any

from oracle.operator import operator
from oracle.ops.dynamic_quant import Least, OfZero, Quantised, RowBlock, To, dynamic_codes, dynamic_scale
from oracle.ops.norm import Eps, Gain, Rounding, has_columns, over_rms
from oracle.ops.norm_fused import Normalised
from oracle.ops.norm_moments import standardised
from oracle.signature import Array, DtypeOf, Floats, Output
from oracle.vocabulary import round_to_format

SHORT_FLOATS = ("float16", "bfloat16", "float32")


def _normalised(x: Any, weight: Any, eps: float, gain: str, rounding: str, quantised: str, dtype: str) -> Any:
    y = over_rms(x, weight, eps, gain, rounding, dtype)
    return round_to_format(y, dtype) if quantised == "rounded" else y


@operator(family="norm", check=has_columns, dtypes=SHORT_FLOATS)
def rmsnorm_dynamic_quant(
    x: Annotated[Array, Floats("rows cols")],
    weight: Annotated[Array, Floats("cols")],
    *,
    eps: Eps = 1e-6,
    gain: Gain = "weight",
    rounding: Rounding = "once",
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
    rounding : "once" or "twice"
        Whether the normalised row is rounded to x's dtype before the gain: ``twice`` in vLLM's fused kernels, and with
        ``use_model_sensitive_rmsnorm`` in AITER.
    to : dtype by name
        The codes': float8_e4m3fn, float8_e4m3fnuz or int8; ``largest`` is 448, 240 or 127.
    block : "token", "1x32", "1x64" or "1x128"
        What shares a scale: a row, or that many columns of it; the last block may be smaller.
    quantised : "unrounded" or "rounded"
        Whether the result of the norm is quantised as it was computed (AITER), or rounded to x's dtype first, as vLLM's
        fused kernels and two kernels one after the other have it.
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
    Rounding points: as in ``rmsnorm`` or ``t5_rmsnorm``, without the last one unless ``quantised`` is ``rounded``; the
    scale in float32; the quotient, by division or by the reciprocal of the scale; the codes once, to nearest, ties to
    even.

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
    return dynamic_scale(_normalised(x, weight, eps, gain, rounding, quantised, dtype), to, block, least, of_zero)


@rmsnorm_dynamic_quant.stage
def normalised_codes(
    x: Array,
    weight: Array,
    scale: Array,
    *,
    eps: float,
    gain: Gain,
    rounding: Rounding,
    to: To,
    block: RowBlock,
    quantised: Quantised,
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("codes", chosen_by="to")]:
    """The codes, from the scale that was returned."""
    return dynamic_codes(_normalised(x, weight, eps, gain, rounding, quantised, dtype), scale, to, block)


@operator(family="norm", check=has_columns, dtypes=SHORT_FLOATS)
def fused_add_rmsnorm_dynamic_quant(
    x: Annotated[Array, Floats("rows cols")],
    residual: Annotated[Array, Floats("rows cols")],
    weight: Annotated[Array, Floats("cols")],
    *,
    eps: Eps = 1e-6,
    gain: Gain = "weight",
    normalised: Normalised = "rounded",
    rounding: Rounding = "once",
    to: To = "float8_e4m3fn",
    block: RowBlock = "token",
    quantised: Quantised = "unrounded",
    least: Least = 0.0,
    of_zero: OfZero = "one",
) -> Annotated[Array, Output("residual_out", like="x")]:
    """Residual addition, normalisation and quantisation: ``residual_out = x + residual``, ``codes = Q(y / scale)``.

    y is ``rmsnorm(residual_out)``, and ``scale = max(max|y| / largest, least)``, one per row or per block of columns.

    Parameters
    ----------
    x, residual : array (rows, cols)
        What a layer gave, and what goes around it; float16, bfloat16 or float32; at least one column; no NaN and no
        infinity.
    weight : array (cols,)
        Gain per column; x's dtype.
    eps, gain, rounding, to, block, quantised, least, of_zero
        As in `rmsnorm_dynamic_quant`.
    normalised : "rounded" or "unrounded"
        What is normalised: the sum as it was stored (AITER's torch reference), or the sum in the compute type (vLLM's
        ``rms_norm_dynamic_per_token_quant``).

    Returns
    -------
    residual_out : array (rows, cols)
        The sum, rounded to x's dtype.
    scale : float32 array (rows, blocks)
        One number per block; where ``normalised`` is ``rounded`` it is judged from the residual_out that was returned.
    codes : array (rows, cols)
        ``to``; judged from the scale that was returned, and from residual_out likewise.

    Notes
    -----
    Rounding points: the sum, once to x's dtype for residual_out; then as in `rmsnorm_dynamic_quant`.

    Raises
    ------
    InputError
        No columns, eps not above 0, least below 0, or shapes and dtypes that disagree.

    Source: ``rmsnorm2d_fwd_with_add_dynamicquant`` and ``add_rmsnorm_quant`` of AITER;
    ``rms_norm_dynamic_per_token_quant`` and ``rms_norm_per_block_quant`` of vLLM, with a residual.

    Examples
    --------
    >>> x, residual = np.array([[1.0, 3.0]], np.float32), np.array([[2.0, 1.0]], np.float32)
    >>> weight = np.array([635.0, 635.0], np.float32)
    >>> total, scale, codes = fused_add_rmsnorm_dynamic_quant(x, residual, weight, eps=12.5, to="int8")
    >>> total.tolist(), scale.tolist(), codes.astype(int).tolist()
    ([[3.0, 4.0]], [[4.0]], [[95, 127]])
    """
    total: Array = x + residual
    return total


def _summed(x: Any, residual: Any, residual_out: Any, normalised: str) -> Any:
    return residual_out if normalised == "rounded" else x + residual


@fused_add_rmsnorm_dynamic_quant.stage
def sum_scales(
    x: Array,
    residual: Array,
    residual_out: Array,
    weight: Array,
    *,
    eps: float,
    gain: Gain,
    normalised: Normalised,
    rounding: Rounding,
    to: To,
    block: RowBlock,
    quantised: Quantised,
    least: float,
    of_zero: OfZero,
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("scale", dtype="float32")]:
    """The scales, from the sum that was returned or from the unrounded one."""
    total = _summed(x, residual, residual_out, normalised)
    y = _normalised(total, weight, eps, gain, rounding, quantised, dtype)
    return dynamic_scale(y, to, block, least, of_zero)


@fused_add_rmsnorm_dynamic_quant.stage
def sum_codes(
    x: Array,
    residual: Array,
    residual_out: Array,
    weight: Array,
    scale: Array,
    *,
    eps: float,
    gain: Gain,
    normalised: Normalised,
    rounding: Rounding,
    to: To,
    block: RowBlock,
    quantised: Quantised,
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("codes", chosen_by="to")]:
    """The codes, from the scale that was returned."""
    total = _summed(x, residual, residual_out, normalised)
    y = _normalised(total, weight, eps, gain, rounding, quantised, dtype)
    return dynamic_codes(y, scale, to, block)


def _standardised(x: Any, weight: Any, bias: Any, eps: float, quantised: str, dtype: str) -> Any:
    y = standardised(x, weight, bias, eps)
    return round_to_format(y, dtype) if quantised == "rounded" else y


@operator(family="norm", check=has_columns, dtypes=SHORT_FLOATS)
def layernorm_dynamic_quant(
    x: Annotated[Array, Floats("rows cols")],
    weight: Annotated[Array, Floats("cols")],
    bias: Annotated[Array, Floats("cols")],
    *,
    eps: Eps = 1e-5,
    to: To = "float8_e4m3fn",
    block: RowBlock = "token",
    quantised: Quantised = "unrounded",
    least: Least = 0.0,
    of_zero: OfZero = "one",
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("scale", dtype="float32")]:
    """Layer normalisation with its result quantised: ``scale = max(max|layernorm(x)| / largest, least)``, ``codes``.

    ``codes = Q(layernorm(x) / scale)``, with one scale per row or per block of columns.

    Parameters
    ----------
    x : array (rows, cols)
        float16, bfloat16 or float32; at least one column; no NaN and no infinity.
    weight, bias : array (cols,)
        Gain per column, and what is added to each row; x's dtype.
    eps : float
        Added to the variance, under the root; above 0.
    to, block, least, of_zero
        As in `rmsnorm_dynamic_quant`.
    quantised : "unrounded" or "rounded"
        Whether the result of the norm is quantised as it was computed (AITER), or rounded to x's dtype first.

    Returns
    -------
    scale : float32 array (rows, blocks)
        One number per block.
    codes : array (rows, cols)
        ``to``; judged from the scale that was returned.

    Notes
    -----
    Rounding points: as in `layernorm`, without the last one unless ``quantised`` is ``rounded``; the scale, the
    quotient and the codes as in `rmsnorm_dynamic_quant`.

    Raises
    ------
    InputError
        No columns, eps not above 0, least below 0, or shapes and dtypes that disagree.

    Source: ``layernorm2d_fwd_with_dynamicquant`` of AITER.

    Examples
    --------
    >>> x, weight = np.array([[1.0, 3.0]], np.float32), np.array([254.0, 254.0], np.float32)
    >>> scale, codes = layernorm_dynamic_quant(x, weight, 0 * weight, eps=3.0, to="int8")
    >>> scale.tolist(), codes.astype(int).tolist()
    ([[1.0]], [[-127, 127]])
    """
    return dynamic_scale(_standardised(x, weight, bias, eps, quantised, dtype), to, block, least, of_zero)


@layernorm_dynamic_quant.stage
def standardised_codes(
    x: Array,
    weight: Array,
    bias: Array,
    scale: Array,
    *,
    eps: float,
    to: To,
    block: RowBlock,
    quantised: Quantised,
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("codes", chosen_by="to")]:
    """The codes, from the scale that was returned."""
    return dynamic_codes(_standardised(x, weight, bias, eps, quantised, dtype), scale, to, block)
