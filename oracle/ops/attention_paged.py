"""Attention over keys and values in pages: one query per sequence (decode), or several (prefill, speculation)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.attention_parts import attended, by_head, heads_divide, segments
from oracle.signature import Array, Floats, InputError, Integers, Output, Range

KEY_CELLS = {
    "plain": "pages page_size kv_heads head_dim",
    "heads_first": "pages kv_heads page_size head_dim",
    "vllm": "pages kv_heads head_parts page_size pack",
    "aiter_asm": "pages kv_heads head_parts page_size pack",
}
"""Dimensions of a cache of keys by layout; ``head_parts`` × ``pack`` is ``head_dim``."""

VALUE_CELLS = {
    "plain": "pages page_size kv_heads v_dim",
    "heads_first": "pages kv_heads page_size v_dim",
    "vllm": "pages kv_heads v_dim page_size",
    "aiter_asm": "pages kv_heads page_parts v_dim pack",
}
"""Dimensions of a cache of values by layout; ``page_parts`` × ``pack`` is ``page_size``."""

UNUSED = -(2**31)  # an entry of a page table that is not in use may be anything


def cells_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    """Whether the dimensions of packed layouts belong together: a check for operators."""
    if sizes["page_size"] < 1:
        return "page_size = 0; a page holds at least one token"
    if params["layout"] in ("vllm", "aiter_asm") and sizes["head_parts"] * sizes["pack"] != sizes["head_dim"]:
        parts, pack = sizes["head_parts"], sizes["pack"]
        return f"head_parts = {parts} times pack = {pack} must be head_dim = {sizes['head_dim']}"
    if params["layout"] == "aiter_asm" and sizes["page_parts"] * sizes["pack"] != sizes["page_size"]:
        parts, pack = sizes["page_parts"], sizes["pack"]
        return f"page_parts = {parts} times pack = {pack} must be page_size = {sizes['page_size']}"
    return heads_divide(sizes, params)


def plain_keys(cache: Array, layout: str) -> Array:
    """A cache of keys as (pages, page_size, kv_heads, head_dim)."""
    if layout == "plain":
        return cache
    if layout == "heads_first":
        return np.swapaxes(cache, 1, 2)
    pages, kv_heads, parts, page_size, pack = cache.shape
    return np.transpose(cache, (0, 3, 1, 2, 4)).reshape(pages, page_size, kv_heads, parts * pack)


def plain_values(cache: Array, layout: str) -> Array:
    """A cache of values as (pages, page_size, kv_heads, v_dim)."""
    if layout == "plain":
        return cache
    if layout == "heads_first":
        return np.swapaxes(cache, 1, 2)
    if layout == "vllm":
        return np.transpose(cache, (0, 3, 1, 2))
    pages, kv_heads, parts, v_dim, pack = cache.shape
    return np.transpose(cache, (0, 2, 4, 1, 3)).reshape(pages, parts * pack, kv_heads, v_dim)


def cells_of(page_table: Array, lengths: Array, sequence: int, pages: int, page_size: int) -> tuple[Array, Array]:
    """Page and place in the page of each token of a sequence.

    Raises
    ------
    InputError
        The sequence is longer than its row of the table, or a page in use does not exist.
    """
    length, room = int(lengths[sequence]), page_table.shape[1] * page_size
    if length > room:
        raise InputError(f"lengths[{sequence}] = {length} exceeds the {room} tokens of its row of the page table")
    token = np.arange(length)
    page = page_table[sequence, token // page_size]
    for wrong in page[(page < 0) | (page >= pages)][:1]:
        raise InputError(f"page_table[{sequence}] uses page {wrong}; there are {pages}")
    return page, token % page_size


@operator(family="attention", check=cells_fit)
def paged_attention_decode(
    q: Annotated[Array, Floats("sequences heads head_dim")],
    key_cache: Annotated[Array, Floats(KEY_CELLS, chosen_by="layout")],
    value_cache: Annotated[Array, Floats(VALUE_CELLS, chosen_by="layout")],
    page_table: Annotated[Array, Integers("sequences max_pages", low=UNUSED, dtype="int32")],
    lengths: Annotated[Array, Integers("sequences", dtype="int32")],
    alibi_slopes: Annotated[Array, Floats("heads", dtype="float32")] | None = None,
    sinks: Annotated[Array, Floats("heads", dtype="float32")] | None = None,
    *,
    layout: Literal["plain", "heads_first", "vllm", "aiter_asm"] = "plain",
    window_left: Annotated[int, Range(-1)] = -1,
    softcap: Annotated[float | None, Range(0.0, open=True)] = None,
    scale: Annotated[float | None, Range(0.0, open=True)] = None,
    sink_in_lse: bool = True,
) -> tuple[Annotated[Array, Output("out", like="q")], Annotated[Array, Output("lse", like="q", statistic=True)]]:
    """Attention of one query per sequence over its pages: ``out[s] = softmax(scale · q[s] k[s]ᵀ) v[s]``.

    Token t of sequence s lies in page ``page_table[s, t // page_size]`` at place ``t % page_size``.

    Parameters
    ----------
    q : array (sequences, heads, head_dim)
        The query of each sequence's last token; float16, bfloat16, float32 or float64.
    key_cache, value_cache : array
        q's dtype; kv_heads divides heads. Their dimensions are given by ``layout``.
    page_table : int32 array (sequences, max_pages)
        Physical pages of each sequence. Entries behind its last page are not read, and may be anything.
    lengths : int32 array (sequences,)
        How many tokens each sequence has. Cells behind them, and pages that no sequence has, are not read.
    alibi_slopes : float32 array (heads,), optional
        Adds slope · (j - (length - 1)) to the score of key j.
    sinks : float32 array (heads,), optional
        As in `flash_attention`.
    layout : "plain", "heads_first", "vllm" or "aiter_asm"
        plain: keys (pages, page_size, kv_heads, head_dim), values alike: FlashAttention, FlashInfer's NHD.
        heads_first: (pages, kv_heads, page_size, head_dim): FlashInfer's HND.
        vllm: keys (pages, kv_heads, head_dim / pack, page_size, pack), values (pages, kv_heads, v_dim, page_size): vLLM
        and AITER; pack is 16 / itemsize there.
        aiter_asm: keys as vllm, values (pages, kv_heads, page_size / pack, v_dim, pack): AITER's assembly kernels.
    window_left : int
        How many tokens before the last one are seen; -1 for all.
    softcap, scale, sink_in_lse
        As in `flash_attention`.

    Returns
    -------
    out : array (sequences, heads, v_dim)
        q's dtype. A sequence without tokens has 0.
    lse : array (sequences, heads)
        Natural log of Σ exp(score); float32, for float64 inputs float64. -inf without tokens and sink.

    Notes
    -----
    Rounding points: as in `flash_attention`. Splits of the keys are merged by their maxima and sums: merging rounded
    log-sum-exps costs accuracy in proportion to them.

    Raises
    ------
    InputError
        A sequence longer than its row of the table, a page in use that does not exist, dimensions of packed layouts
        that do not multiply up, heads no multiple of kv_heads, or shapes and dtypes that disagree.

    Source: Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention" (2023).

    Examples
    --------
    Two tokens in pages of one token, the second token in page 0:

    >>> keys, values = np.zeros((3, 1, 1, 4)), np.array([3.0, np.nan, 1.0]).reshape(3, 1, 1, 1)
    >>> table, lengths = np.array([[2, 0, 77]], np.int32), np.array([2], np.int32)
    >>> paged_attention_decode(np.zeros((1, 1, 4)), keys, values, table, lengths)
    (array([[[2.]]]), array([[0.69314718]]))
    """
    keys, values = plain_keys(key_cache, layout), plain_values(value_cache, layout)
    options = {"window_left": window_left, "softcap": softcap, "scale": scale, "sink_in_lse": sink_in_lse}
    out = np.zeros_like(q, shape=(*q.shape[:2], values.shape[3]))
    lse = np.zeros_like(q, shape=q.shape[:2])
    for sequence in range(len(q)):
        cells = cells_of(page_table, lengths, sequence, *keys.shape[:2])
        query, k, v = by_head(q[sequence : sequence + 1]), by_head(keys[cells]), by_head(values[cells])
        mean, log_sum = attended(query, k, v, options, alibi_slopes=alibi_slopes, sinks=sinks)
        out[sequence], lse[sequence] = mean[0, :, 0], log_sum[0, :, 0]
    return out, lse


def prefill_fits(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    """As `cells_fit`, and whether each sequence has queries: a check for operators."""
    if sizes["boundaries"] != sizes["sequences"] + 1:
        return f"cu_seqlens_q has {sizes['boundaries']} boundaries for {sizes['sequences']} sequences; one more is due"
    return cells_fit(sizes, params)


@operator(family="attention", check=prefill_fits)
def paged_attention_prefill(
    q: Annotated[Array, Floats("tokens heads head_dim")],
    key_cache: Annotated[Array, Floats(KEY_CELLS, chosen_by="layout")],
    value_cache: Annotated[Array, Floats(VALUE_CELLS, chosen_by="layout")],
    cu_seqlens_q: Annotated[Array, Integers("boundaries", dtype="int32")],
    page_table: Annotated[Array, Integers("sequences max_pages", low=UNUSED, dtype="int32")],
    lengths: Annotated[Array, Integers("sequences", dtype="int32")],
    alibi_slopes: Annotated[Array, Floats("heads", dtype="float32")] | None = None,
    sinks: Annotated[Array, Floats("heads", dtype="float32")] | None = None,
    *,
    layout: Literal["plain", "heads_first", "vllm", "aiter_asm"] = "plain",
    causal: Literal["none", "bottom_right"] = "bottom_right",
    window_left: Annotated[int, Range(-1)] = -1,
    softcap: Annotated[float | None, Range(0.0, open=True)] = None,
    alibi: Literal["distance", "last_key"] = "distance",
    scale: Annotated[float | None, Range(0.0, open=True)] = None,
    sink_in_lse: bool = True,
) -> tuple[Annotated[Array, Output("out", like="q")], Annotated[Array, Output("lse", like="q", statistic=True)]]:
    """Attention of packed queries over pages: ``out[s] = softmax(scale · q[s] k[s]ᵀ + mask) v[s]``.

    The queries of a sequence are those of its last tokens: all of them in a first prefill, a chunk in a later one, a
    few in speculative decoding.

    Parameters
    ----------
    q : array (tokens, heads, head_dim)
        The sequences' queries one after another; float16, bfloat16, float32 or float64.
    key_cache, value_cache, page_table, layout, window_left
        As in `paged_attention_decode`.
    cu_seqlens_q : int32 array (boundaries,)
        Sequence s has queries ``cu_seqlens_q[s]`` up to, not including, ``cu_seqlens_q[s + 1]``.
    lengths : int32 array (sequences,)
        How many tokens each sequence has in the cache, those of the queries included.
    causal : "none" or "bottom_right"
        Whether query i of n sees only keys up to i + length - n.
    alibi_slopes, sinks, softcap, alibi, scale, sink_in_lse
        As in `flash_attention`.

    Returns
    -------
    out : array (tokens, heads, v_dim)
        q's dtype. A row that sees no key is 0.
    lse : array (heads, tokens)
        Natural log of Σ exp(score); float32, for float64 inputs float64; -inf where no key is seen and no sink counts.

    Notes
    -----
    Rounding points: as in `flash_attention`.

    Raises
    ------
    InputError
        As in `paged_attention_decode`, and for boundaries that do not rise from 0 to the number of tokens.

    Source: Kwon et al. (2023), as for `paged_attention_decode`; FlashInfer's BatchPrefillWithPagedKVCache and AITER's
    mha_batch_prefill.

    Examples
    --------
    >>> keys, values = np.zeros((2, 2, 1, 4)), np.array([[1.0, 3.0], [8.0, np.nan]]).reshape(2, 2, 1, 1)
    >>> edges, table, lengths = np.array([0, 2], np.int32), np.array([[0, 1]], np.int32), np.array([3], np.int32)
    >>> paged_attention_prefill(np.zeros((2, 1, 4)), keys, values, edges, table, lengths)[0][:, 0, 0]
    array([2., 4.])
    """
    keys, values = plain_keys(key_cache, layout), plain_values(value_cache, layout)
    options = {
        "causal": causal, "window_left": window_left, "softcap": softcap, "alibi": alibi, "scale": scale,
        "sink_in_lse": sink_in_lse,
    }  # fmt: skip
    out = np.zeros_like(q, shape=(*q.shape[:2], values.shape[3]))
    lse = np.zeros_like(q, shape=q.shape[1::-1])
    for sequence, queries in enumerate(segments(cu_seqlens_q, len(q), "cu_seqlens_q")):
        cells = cells_of(page_table, lengths, sequence, *keys.shape[:2])
        parts = by_head(q[queries]), by_head(keys[cells]), by_head(values[cells])
        mean, log_sum = attended(*parts, options, alibi_slopes=alibi_slopes, sinks=sinks)
        out[queries] = np.swapaxes(mean[0], 0, 1)
        lse[:, queries] = log_sum[0]
    return out, lse
