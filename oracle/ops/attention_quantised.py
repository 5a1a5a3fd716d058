"""Attention of queries, keys and values that are all 8-bit codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from oracle.operator import operator
from oracle.ops.attention_parts import attended, heads_divide
from oracle.signature import Array, DtypeOf, Floats, Output, Range

CODES = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2")
SCALES = {"tensor": "groups", "head": "batch kv_heads"}
"""Dimensions of scales by granularity; there is one group."""


def _fits(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if params["scales"] == "tensor" and sizes["groups"] != 1:
        return f"q_scale has {sizes['groups']} numbers; a scale per tensor is one"
    return heads_divide(sizes, params)


@operator(family="attention", check=_fits, dtypes=CODES, separable=("batch", "kv_heads heads"))
def attention_quantised(
    q: Annotated[Array, Floats("batch heads queries head_dim")],
    k: Annotated[Array, Floats("batch kv_heads keys head_dim")],
    v: Annotated[Array, Floats("batch kv_heads keys v_dim")],
    q_scale: Annotated[Array, Floats(SCALES, dtype="float32", chosen_by="scales")],
    k_scale: Annotated[Array, Floats(SCALES, dtype="float32", chosen_by="scales")],
    v_scale: Annotated[Array, Floats(SCALES, dtype="float32", chosen_by="scales")],
    sinks: Annotated[Array, Floats("heads", dtype="float32")] | None = None,
    *,
    scales: Literal["tensor", "head"] = "tensor",
    weights: Literal["compute", "codes"] = "compute",
    causal: Literal["none", "top_left", "bottom_right"] = "none",
    window_left: Annotated[int, Range(-1)] = -1,
    window_right: Annotated[int, Range(-1)] = -1,
    softcap: Annotated[float | None, Range(0.0, open=True)] = None,
    scale: Annotated[float | None, Range(0.0, open=True)] = None,
    sink_in_lse: bool = True,
    out_dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16",
    code_dtype: Annotated[str, DtypeOf("v")],
) -> tuple[Annotated[Array, Output("out", chosen_by="out_dtype")], Annotated[Array, Output("lse", dtype="float32")]]:
    """Attention of codes: ``out = softmax(scale · (q_scale · q) (k_scale · k)ᵀ + mask) (v_scale · v)``.

    Parameters
    ----------
    q : array (batch, heads, queries, head_dim)
        float8_e4m3fn, float8_e4m3fnuz or float8_e5m2.
    k : array (batch, kv_heads, keys, head_dim)
        q's dtype; kv_heads divides heads, and query head h reads head ``h // (heads / kv_heads)``.
    v : array (batch, kv_heads, keys, v_dim)
        q's dtype.
    q_scale, k_scale, v_scale : float32 array
        What codes are multiplied by: (1,) per tensor, as in AITER; (batch, kv_heads) per head, as FlashAttention-3's
        descale factors, the queries' too.
    sinks, causal, window_left, window_right, softcap, scale, sink_in_lse
        As in `flash_attention`.
    scales : "tensor" or "head"
        Granularity of the scales.
    weights : "compute" or "codes"
        Whether a weight may be rounded to v's format, at any power of two, before it meets v, as 8-bit matrix units
        want it (FlashAttention-3), or is not.
    out_dtype : "bfloat16", "float16" or "float32"
        The dtype of ``out``.

    Returns
    -------
    out : array (batch, heads, queries, v_dim)
        ``out_dtype``. A row that sees no key is 0.
    lse : float32 array (batch, heads, queries)
        Natural log of Σ exp(score); -inf where nothing is seen and no sink counts.

    Notes
    -----
    Rounding points: as in `flash_attention`, and what ``weights`` grants. Scales may be multiplied to the codes, to the
    sums of products that the codes enter, or to the weights. Weights are added up before they are rounded.

    Raises
    ------
    InputError
        heads is no multiple of kv_heads, more than one scale per tensor, a parameter is out of range, or shapes and
        dtypes that disagree.

    Source: Shah et al., "FlashAttention-3" (2024), section 3.3; AITER's flash_attn_fp8_pertensor_func.

    Examples
    --------
    >>> import ml_dtypes
    >>> codes = np.array([[[[2.0], [6.0]]]], ml_dtypes.float8_e4m3fn)
    >>> half = np.array([0.5], np.float32)
    >>> attention_quantised(0 * codes[:, :, :1], codes, codes, half, half, half)
    (array([[[[2.]]]]), array([[[0.69314718]]]))
    """
    options = {
        "causal": causal, "window_left": window_left, "window_right": window_right, "softcap": softcap, "scale": scale,
        "sink_in_lse": sink_in_lse, "weight_format": code_dtype if weights == "codes" else None,
    }  # fmt: skip
    # (batch or 1, kv_heads or 1, 1, 1)
    of_q, of_k, of_v = (
        x.reshape(*(x.shape if scales == "head" else (1, 1)), 1, 1) for x in (q_scale, k_scale, v_scale)
    )
    return attended(q, k, v, options, sinks=sinks, q_scale=of_q, k_scale=of_k, v_scale=of_v)
