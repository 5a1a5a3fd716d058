"""Normalisations fused with what is before them: a residual that is added, the projections of q and k."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from oracle.operator import operator
from oracle.ops.norm import Eps, Gain, Rounding, has_columns, over_rms
from oracle.ops.norm_moments import standardised
from oracle.signature import Array, DtypeOf, Floats, Output

Normalised: TypeAlias = Literal["rounded", "unrounded"]


@operator(family="norm", check=has_columns)
def fused_add_rmsnorm(
    x: Annotated[Array, Floats("rows cols")],
    residual: Annotated[Array, Floats("rows cols")],
    weight: Annotated[Array, Floats("cols")],
    *,
    eps: Eps = 1e-6,
    gain: Gain = "weight",
    normalised: Normalised = "rounded",
    rounding: Rounding = "once",
) -> Annotated[Array, Output("residual_out", like="x")]:
    """Residual addition and its normalisation: ``residual_out = x + residual``, ``out = rmsnorm(residual_out)``.

    Parameters
    ----------
    x, residual : array (rows, cols)
        What a layer gave, and what goes around it; float16, bfloat16, float32 or float64; at least one column.
    weight : array (cols,)
        Gain per column; x's dtype.
    eps : float
        Added to the mean square, under the root; above 0.
    gain : str
        ``weight``, or ``one_plus_weight`` (``gemma_fused_add_rmsnorm`` of FlashInfer).
    normalised : str
        ``rounded``: the sum as it was stored (AITER's torch reference, vLLM); ``unrounded``: the sum in the compute
        type (FlashInfer).
    rounding : str
        ``once``: only the product with the gain is rounded to x's dtype; ``twice``: the normalised sum is rounded to it
        before the gain (``use_model_sensitive_rmsnorm`` of AITER, Hugging Face's order).

    Returns
    -------
    residual_out : array (rows, cols)
        The sum, rounded to x's dtype.
    out : array (rows, cols)
        x's dtype; where ``normalised`` is ``rounded`` it is judged from the residual_out that was returned.

    Notes
    -----
    Rounding points: the sum, once to x's dtype for residual_out; then as in ``rmsnorm`` or ``t5_rmsnorm``.

    Raises
    ------
    InputError
        No columns, eps not above 0, or shapes and dtypes that disagree.

    Source: ``fused_add_rms_norm`` of vLLM, ``fused_add_rmsnorm`` of FlashInfer, ``rmsnorm2d_fwd_with_add`` of AITER.

    Examples
    --------
    >>> fused_add_rmsnorm(np.array([[1.0, 3.0]]), np.array([[2.0, 1.0]]), np.array([1.0, 10.0]), eps=12.5)
    (array([[3., 4.]]), array([[0.6, 8. ]]))
    """
    total: Array = x + residual
    return total


@fused_add_rmsnorm.stage
def normalised_sum(
    x: Array,
    residual: Array,
    residual_out: Array,
    weight: Array,
    *,
    eps: float,
    gain: Gain,
    normalised: Normalised,
    rounding: Rounding,
    dtype: Annotated[str, DtypeOf("x")],
) -> Annotated[Array, Output("out", like="x")]:
    """The sum that was returned, or the unrounded one, over its root mean square."""
    total: Any = residual_out if normalised == "rounded" else x + residual
    out: Array = over_rms(total, weight, eps, gain, rounding, dtype)
    return out


@operator(family="norm", check=has_columns)
def fused_add_layernorm(
    x: Annotated[Array, Floats("rows cols")],
    residual: Annotated[Array, Floats("rows cols")],
    weight: Annotated[Array, Floats("cols")] | None = None,
    bias: Annotated[Array, Floats("cols")] | None = None,
    *,
    eps: Eps = 1e-5,
    normalised: Normalised = "rounded",
) -> Annotated[Array, Output("residual_out", like="x")]:
    """Residual addition and its normalisation: ``residual_out = x + residual``, ``out = layernorm(residual_out)``.

    Parameters
    ----------
    x, residual : array (rows, cols)
        What a layer gave, and what goes around it; float16, bfloat16, float32 or float64; at least one column.
    weight : array (cols,), optional
        Gain per column, 1 without it; x's dtype.
    bias : array (cols,), optional
        Added to each row, 0 without it; x's dtype.
    eps : float
        Added to the variance, under the root; above 0.
    normalised : str
        ``rounded``: the sum as it was stored (AITER's torch reference); ``unrounded``: the sum in the compute type.

    Returns
    -------
    residual_out : array (rows, cols)
        The sum, rounded to x's dtype.
    out : array (rows, cols)
        x's dtype; where ``normalised`` is ``rounded`` it is judged from the residual_out that was returned.

    Notes
    -----
    Rounding points: the sum, once to x's dtype for residual_out; then as in ``layernorm``.

    Raises
    ------
    InputError
        No columns, eps not above 0, or shapes and dtypes that disagree.

    Source: ``layernorm2d_fwd_with_add`` of AITER.

    Examples
    --------
    >>> fused_add_layernorm(np.array([[1.0, 1.0]]), np.array([[0.0, 2.0]]), eps=3.0)
    (array([[1., 3.]]), array([[-0.5,  0.5]]))
    """
    total: Array = x + residual
    return total


@fused_add_layernorm.stage
def standardised_sum(
    x: Array,
    residual: Array,
    residual_out: Array,
    weight: Array | None,
    bias: Array | None,
    *,
    eps: float,
    normalised: Normalised,
) -> Annotated[Array, Output("out", like="x")]:
    """The sum that was returned, or the unrounded one, less its mean, over its standard deviation."""
    total: Any = residual_out if normalised == "rounded" else x + residual
    out: Array = standardised(total, weight, bias, eps)
    return out


def _has_elements(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    return None if sizes["head_dim"] else "head_dim = 0, and the mean of no elements is undefined; give at least one"


@operator(family="norm", check=_has_elements)
def qk_norm(
    q: Annotated[Array, Floats("tokens heads head_dim")],
    k: Annotated[Array, Floats("tokens kv_heads head_dim")],
    q_weight: Annotated[Array, Floats("head_dim")],
    k_weight: Annotated[Array, Floats("head_dim")],
    *,
    eps: Eps = 1e-6,
    gain: Gain = "weight",
    rounding: Rounding = "once",
    dtype: Annotated[str, DtypeOf("q")],
) -> tuple[Annotated[Array, Output("q_out", like="q")], Annotated[Array, Output("k_out", like="k")]]:
    """Normalisation of each head of q and k: ``q_out = q / sqrt(mean(q²) + eps) · q_weight``, and likewise k_out.

    Parameters
    ----------
    q : array (tokens, heads, head_dim)
        Queries; float16, bfloat16, float32 or float64.
    k : array (tokens, kv_heads, head_dim)
        Keys; q's dtype.
    q_weight, k_weight : array (head_dim,)
        Gain per element of a head, the same for all heads; q's dtype.
    eps : float
        Added to the mean square, under the root; above 0.
    gain : str
        ``weight`` (Qwen3), or ``one_plus_weight`` (Gemma 3).
    rounding : str
        ``once``, or ``twice``: the normalised head is rounded to q's dtype before the gain (Hugging Face's order).

    Returns
    -------
    q_out : array (tokens, heads, head_dim)
        q's dtype.
    k_out : array (tokens, kv_heads, head_dim)
        q's dtype.

    Notes
    -----
    Rounding points: as in ``rmsnorm`` or ``t5_rmsnorm``, with one mean square per head.

    Raises
    ------
    InputError
        head_dim 0, eps not above 0, or shapes and dtypes that disagree.

    Source: Henry et al., "Query-Key Normalization for Transformers" (2020), with root mean squares as in Qwen3.

    Examples
    --------
    >>> q_out, k_out = qk_norm(np.array([[[3.0, 4.0]]]), np.array([[[0.0, 5.0]]]), np.ones(2), np.ones(2), eps=12.5)
    >>> q_out, k_out
    (array([[[0.6, 0.8]]]), array([[[0., 1.]]]))
    """
    return over_rms(q, q_weight, eps, gain, rounding, dtype), over_rms(k, k_weight, eps, gain, rounding, dtype)
