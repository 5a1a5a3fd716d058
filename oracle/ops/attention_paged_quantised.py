"""Attention of one query per sequence over pages of quantised keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.attention_paged import KEY_CELLS, UNUSED, VALUE_CELLS, cells_fit, cells_of, plain_keys, plain_values
from oracle.ops.attention_parts import attended, by_head
from oracle.signature import Array, Floats, Integers, Output, Range

CODES = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "int8")
SCALES = {"tensor": "groups", "head": "kv_heads", "token": "pages page_size kv_heads"}
"""Dimensions of scales by granularity; there is one group."""


def _scales_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if params["scales"] == "tensor" and sizes["groups"] != 1:
        return f"k_scale has {sizes['groups']} numbers; a scale per tensor is one"
    return cells_fit(sizes, params)


@operator(family="attention", check=_scales_fit)
def paged_attention_decode_quantised(
    q: Annotated[Array, Floats("sequences heads head_dim")],
    key_cache: Annotated[Array, Floats(KEY_CELLS, dtype=CODES, chosen_by="layout")],
    value_cache: Annotated[Array, Floats(VALUE_CELLS, dtype=CODES, chosen_by="layout")],
    k_scale: Annotated[Array, Floats(SCALES, dtype="float32", chosen_by="scales")],
    v_scale: Annotated[Array, Floats(SCALES, dtype="float32", chosen_by="scales")],
    page_table: Annotated[Array, Integers("sequences max_pages", low=UNUSED, dtype="int32")],
    lengths: Annotated[Array, Integers("sequences", dtype="int32")],
    *,
    layout: Literal["plain", "heads_first", "vllm", "aiter_asm"] = "plain",
    scales: Literal["tensor", "head", "token"] = "tensor",
    scale: Annotated[float | None, Range(0.0, open=True)] = None,
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
    page_table, lengths, layout, scale
        As in `paged_attention_decode`. Scales of cells that are not read are not read.
    scales : "tensor", "head" or "token"
        Granularity of the scales.

    Returns
    -------
    out : array (sequences, heads, v_dim)
        q's dtype. A sequence without tokens has 0.
    lse : array (sequences, heads)
        Natural log of Σ exp(score); float32, for float64 inputs float64; -inf without tokens.

    Notes
    -----
    Rounding points: as in `flash_attention`. Scales may be multiplied to the codes, to the sums of products that the
    codes enter, or to the weights; weights are not quantised.

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
    out = np.zeros_like(q, shape=(*q.shape[:2], values.shape[3]))
    lse = np.zeros_like(q, shape=q.shape[:2])
    for sequence in range(len(q)):
        cells = cells_of(page_table, lengths, sequence, *keys.shape[:2])
        # (kv_heads or 1, tokens or 1)
        by_token = [x[cells].swapaxes(0, 1) if scales == "token" else x[:, np.newaxis] for x in (k_scale, v_scale)]
        query, k, v = by_head(q[sequence : sequence + 1]), by_head(keys[cells]), by_head(values[cells])
        mean, log_sum = attended(query, k, v, {"scale": scale}, k_scale=by_token[0], v_scale=by_token[1])
        out[sequence], lse[sequence] = mean[0, :, 0], log_sum[0, :, 0]
    return out, lse
