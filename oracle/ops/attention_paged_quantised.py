"""Attention over pages of quantised keys and values: one query per sequence (decode), or several (prefill)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.attention_paged import (
    KEY_CELLS,
    UNUSED,
    VALUE_CELLS,
    cells_of,
    plain_keys,
    plain_values,
    prefill_fits,
)
from oracle.ops.attention_paged import cells_fit as _cells_fit
from oracle.ops.attention_parts import attended, by_head, segments
from oracle.signature import Array, Floats, Integers, Output, Range
from oracle.vocabulary import round_to_format

CODES = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "int8")
SCALES = {"tensor": "groups", "head": "kv_heads", "token": "pages page_size kv_heads"}
"""Dimensions of scales by granularity; there is one group."""


def _one_per_tensor(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if params["scales"] == "tensor" and sizes["groups"] != 1:
        return f"k_scale has {sizes['groups']} numbers; a scale per tensor is one"
    return None


def _decode_fits(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    return _one_per_tensor(sizes, params) or _cells_fit(sizes, params)


def _prefill_fits(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    return _one_per_tensor(sizes, params) or prefill_fits(sizes, params)


def _attended(
    q: Array, rows: tuple[Array, Array], factors: tuple[Array, Array], scales: str, options: Mapping[str, Any],
    sinks: Array | None,
) -> tuple[Array, Array]:  # fmt: skip
    """Attention of queries (queries, heads, head_dim) over a sequence's codes (tokens, kv_heads, …).

    ``factors`` are (tokens, kv_heads) per token; what else ``scales`` says is one for all tokens.
    """
    # (kv_heads or 1, tokens or 1, 1)
    k_scale, v_scale = ((x.swapaxes(0, 1) if scales == "token" else x[:, np.newaxis])[..., np.newaxis] for x in factors)
    k, v = (by_head(codes) for codes in rows)
    if options["dequantised"] == "compute":
        return attended(by_head(q), k, v, options, sinks=sinks, k_scale=k_scale, v_scale=v_scale)
    k, v = (round_to_format(x * factor, options["dequantised"]) for x, factor in ((k, k_scale), (v, v_scale)))
    return attended(by_head(q), k, v, options, sinks=sinks)


@operator(family="attention", check=_decode_fits)
def paged_attention_decode_quantised(
    q: Annotated[Array, Floats("sequences heads head_dim")],
    key_cache: Annotated[Array, Floats(KEY_CELLS, dtype=CODES, chosen_by="layout")],
    value_cache: Annotated[Array, Floats(VALUE_CELLS, dtype=CODES, chosen_by="layout")],
    k_scale: Annotated[Array, Floats(SCALES, dtype="float32", chosen_by="scales")],
    v_scale: Annotated[Array, Floats(SCALES, dtype="float32", chosen_by="scales")],
    page_table: Annotated[Array, Integers("sequences max_pages", low=UNUSED, dtype="int32")],
    lengths: Annotated[Array, Integers("sequences", dtype="int32")],
    sinks: Annotated[Array, Floats("heads", dtype="float32")] | None = None,
    *,
    layout: Literal["plain", "heads_first", "vllm", "aiter_asm"] = "plain",
    scales: Literal["tensor", "head", "token"] = "tensor",
    dequantised: Literal["compute", "bfloat16", "float16"] = "compute",
    window_left: Annotated[int, Range(-1)] = -1,
    softcap: Annotated[float | None, Range(0.0, open=True)] = None,
    scale: Annotated[float | None, Range(0.0, open=True)] = None,
    sink_in_lse: bool = True,
) -> tuple[Annotated[Array, Output("out", like="q")], Annotated[Array, Output("lse", like="q", statistic=True)]]:
    """Paged attention over codes: ``out[s] = softmax(scale · q[s] (k_scale · k[s])ᵀ) (v_scale · v[s])``.

    Parameters
    ----------
    q : array (sequences, heads, head_dim)
        float16, bfloat16, float32 or float64; it is not quantised.
    key_cache, value_cache : array of float8_e4m3fn, float8_e4m3fnuz, float8_e5m2 or int8
        Codes, laid out as ``layout`` says, as in `paged_attention_decode`.
    k_scale, v_scale : float32 array
        What a code is multiplied by. (1,) per tensor, as in vLLM; (kv_heads,) per head, as in FlashAttention-3;
        (pages, page_size, kv_heads) per token, as in AITER's caches quantised per token (which store it by head first).
    page_table, lengths, layout, window_left, scale
        As in `paged_attention_decode`. Scales of cells that are not read are not read.
    scales : "tensor", "head" or "token"
        Granularity of the scales.
    dequantised : "compute", "bfloat16" or "float16"
        What a code times its scale is rounded to before it meets q or a weight: nothing narrower than the compute type,
        where scales are applied to sums (FlashInfer, FlashAttention-3); or a 16-bit type (vLLM's paged kernels).
    sinks, softcap, sink_in_lse
        As in `flash_attention`.

    Returns
    -------
    out : array (sequences, heads, v_dim)
        q's dtype. A sequence without tokens has 0.
    lse : array (sequences, heads)
        Natural log of Σ exp(score); float32, for float64 inputs float64; -inf without tokens and sink.

    Notes
    -----
    Rounding points: as in `flash_attention`, and what ``dequantised`` says. For "compute", scales may be multiplied to
    the codes, to the sums of products that the codes enter, or to the weights; weights are not quantised.

    Raises
    ------
    InputError
        As in `paged_attention_decode`, and for more than one scale per tensor.

    Source: as for `paged_attention_decode`; quantised caches of vLLM (kv_cache_dtype fp8) and AITER.

    Examples
    --------
    >>> codes = np.array([1, 3, 100], np.int8).reshape(1, 3, 1, 1)
    >>> scales, table = np.array([0.5], np.float32), np.zeros((1, 1), np.int32)
    >>> q, lengths = np.zeros((1, 1, 1)), np.array([2], np.int32)
    >>> paged_attention_decode_quantised(q, codes, codes, scales, scales, table, lengths)
    (array([[[1.]]]), array([[0.69314718]]))
    """
    keys, values = plain_keys(key_cache, layout), plain_values(value_cache, layout)
    options = {
        "dequantised": dequantised, "window_left": window_left, "softcap": softcap, "scale": scale,
        "sink_in_lse": sink_in_lse,
    }  # fmt: skip
    out = np.zeros_like(q, shape=(*q.shape[:2], values.shape[3]))
    lse = np.zeros_like(q, shape=q.shape[:2])
    for sequence in range(len(q)):
        cells = cells_of(page_table, lengths, sequence, *keys.shape[:2])
        factors = (k_scale[cells], v_scale[cells]) if scales == "token" else (k_scale, v_scale)
        query, rows = q[sequence : sequence + 1], (keys[cells], values[cells])
        mean, log_sum = _attended(query, rows, factors, scales, options, sinks)
        out[sequence], lse[sequence] = mean[0, :, 0], log_sum[0, :, 0]
    return out, lse


@operator(family="attention", check=_prefill_fits)
def paged_attention_prefill_quantised(
    q: Annotated[Array, Floats("tokens heads head_dim")],
    key_cache: Annotated[Array, Floats(KEY_CELLS, dtype=CODES, chosen_by="layout")],
    value_cache: Annotated[Array, Floats(VALUE_CELLS, dtype=CODES, chosen_by="layout")],
    k_scale: Annotated[Array, Floats(SCALES, dtype="float32", chosen_by="scales")],
    v_scale: Annotated[Array, Floats(SCALES, dtype="float32", chosen_by="scales")],
    cu_seqlens_q: Annotated[Array, Integers("boundaries", dtype="int32")],
    page_table: Annotated[Array, Integers("sequences max_pages", low=UNUSED, dtype="int32")],
    lengths: Annotated[Array, Integers("sequences", dtype="int32")],
    sinks: Annotated[Array, Floats("heads", dtype="float32")] | None = None,
    *,
    layout: Literal["plain", "heads_first", "vllm", "aiter_asm"] = "plain",
    scales: Literal["tensor", "head", "token"] = "tensor",
    dequantised: Literal["compute", "bfloat16", "float16"] = "compute",
    causal: Literal["none", "bottom_right"] = "bottom_right",
    window_left: Annotated[int, Range(-1)] = -1,
    softcap: Annotated[float | None, Range(0.0, open=True)] = None,
    scale: Annotated[float | None, Range(0.0, open=True)] = None,
    sink_in_lse: bool = True,
) -> tuple[Annotated[Array, Output("out", like="q")], Annotated[Array, Output("lse", like="q", statistic=True)]]:
    """Packed queries over pages of codes: ``out[s] = softmax(scale · q[s] (k_scale · k[s])ᵀ + mask) (v_scale · v[s])``.

    Parameters
    ----------
    q : array (tokens, heads, head_dim)
        The sequences' queries one after another; float16, bfloat16, float32 or float64; they are not quantised.
    key_cache, value_cache, k_scale, v_scale, scales, dequantised
        As in `paged_attention_decode_quantised`.
    cu_seqlens_q, page_table, lengths, layout, causal, window_left, scale
        As in `paged_attention_prefill`.
    sinks, softcap, sink_in_lse
        As in `flash_attention`.

    Returns
    -------
    out : array (tokens, heads, v_dim)
        q's dtype. A row that sees no key is 0.
    lse : array (heads, tokens)
        Natural log of Σ exp(score); float32, for float64 inputs float64; -inf where no key is seen and no sink counts.

    Notes
    -----
    Rounding points: as in `paged_attention_decode_quantised`.

    Raises
    ------
    InputError
        As in `paged_attention_prefill`, and for more than one scale per tensor.

    Source: as for `paged_attention_prefill`; quantised caches of vLLM (kv_cache_dtype fp8), FlashInfer and AITER's
    mha_batch_prefill.

    Examples
    --------
    >>> codes = np.array([1, 3, 100], np.int8).reshape(1, 3, 1, 1)
    >>> scales, table = np.array([0.5], np.float32), np.zeros((1, 1), np.int32)
    >>> q, edges, lengths = np.zeros((2, 1, 1)), np.array([0, 2], np.int32), np.array([2], np.int32)
    >>> paged_attention_prefill_quantised(q, codes, codes, scales, scales, edges, table, lengths)[0][:, 0, 0]
    array([0.5, 1. ])
    """
    keys, values = plain_keys(key_cache, layout), plain_values(value_cache, layout)
    options = {
        "dequantised": dequantised, "causal": causal, "window_left": window_left, "softcap": softcap, "scale": scale,
        "sink_in_lse": sink_in_lse,
    }  # fmt: skip
    out = np.zeros_like(q, shape=(*q.shape[:2], values.shape[3]))
    lse = np.zeros_like(q, shape=q.shape[1::-1])
    for sequence, queries in enumerate(segments(cu_seqlens_q, len(q), "cu_seqlens_q")):
        cells = cells_of(page_table, lengths, sequence, *keys.shape[:2])
        factors = (k_scale[cells], v_scale[cells]) if scales == "token" else (k_scale, v_scale)
        mean, log_sum = _attended(q[queries], (keys[cells], values[cells]), factors, scales, options, sinks)
        out[queries], lse[:, queries] = np.swapaxes(mean[0], 0, 1), log_sum[0]
    return out, lse
