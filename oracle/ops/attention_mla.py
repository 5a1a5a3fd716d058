"""Multi-head latent attention: absorbed, over a cache of latent vectors, and with keys and values written out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.attention_paged import UNUSED, cells_of
from oracle.ops.attention_parts import attended, by_head, segments
from oracle.signature import Array, Floats, Integers, Output, Range


def _latent_fits(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if sizes["page_size"] < 1:
        return "page_size = 0; a page holds at least one token"
    if params["latent_dim"] > sizes["qk_dim"]:
        return f"latent_dim = {params['latent_dim']} exceeds qk_dim = {sizes['qk_dim']}"
    if sizes["qk_dim"] == 0 and params["scale"] is None:
        return "qk_dim = 0 has no default scale; pass scale"
    return None


@operator(family="attention", check=_latent_fits)
def mla_decode(
    q: Annotated[Array, Floats("sequences queries heads qk_dim")],
    cache: Annotated[Array, Floats("pages page_size qk_dim")],
    page_table: Annotated[Array, Integers("sequences max_pages", low=UNUSED, dtype="int32")],
    lengths: Annotated[Array, Integers("sequences", dtype="int32")],
    sinks: Annotated[Array, Floats("heads", dtype="float32")] | None = None,
    *,
    latent_dim: Annotated[int, Range(0)] = 512,
    window_left: Annotated[int, Range(-1)] = -1,
    softcap: Annotated[float | None, Range(0.0, open=True)] = None,
    scale: Annotated[float | None, Range(0.0, open=True)] = None,
    sink_in_lse: bool = True,
) -> tuple[Annotated[Array, Output("out", like="q")], Annotated[Array, Output("lse", like="q", statistic=True)]]:
    """Absorbed latent attention: ``out = softmax(scale · q cᵀ + mask) c[:, :latent_dim]`` over the cached vectors c.

    A cached vector holds a token's latent vector and, behind it, its rotated key; all heads share it. q holds,
    likewise, the query times the up-projection of keys, and the rotated query. The result still is to be
    multiplied by the up-projection of values.

    Parameters
    ----------
    q : array (sequences, queries, heads, qk_dim)
        Queries of each sequence's last tokens; float16, bfloat16, float32 or float64. DeepSeek's qk_dim is 512 + 64.
    cache : array (pages, page_size, qk_dim)
        q's dtype.
    page_table, lengths : int32 array (sequences, max_pages), (sequences,)
        As in `paged_attention_decode`; the queries' own tokens are counted.
    sinks : float32 array (heads,), optional
        As in `flash_attention`.
    latent_dim : int
        How many columns are the latent vector; at most qk_dim.
    window_left : int
        How many tokens before its own a query sees; -1 for all.
    softcap, sink_in_lse
        As in `flash_attention`.
    scale : float, optional
        Factor of the scores, above 0. 1 / sqrt(qk_dim) if not given, as in AITER's test of the absorbed form; models
        take 1 / sqrt(size of the query before it was absorbed), 1 / sqrt(192) for DeepSeek.

    Returns
    -------
    out : array (sequences, queries, heads, latent_dim)
        q's dtype. Query i of n sees keys up to i + length - n; one that sees no key has 0.
    lse : array (sequences, queries, heads)
        Natural log of Σ exp(score); float32, for float64 inputs float64; -inf where no key is seen and no sink counts.

    Notes
    -----
    Rounding points: as in `flash_attention`.

    Raises
    ------
    InputError
        latent_dim above qk_dim, a sequence longer than its row of the table, a page in use that does not exist, or
        shapes and dtypes that disagree.

    Source: DeepSeek-AI, "DeepSeek-V2" (2024), section 2.1; FlashMLA and AITER's mla_decode_fwd for the absorbed form,
    both with sinks too.

    Examples
    --------
    >>> cache = np.array([[[1.0, 0.0], [3.0, 0.0]]])
    >>> table, lengths = np.array([[0]], np.int32), np.array([2], np.int32)
    >>> mla_decode(np.zeros((1, 1, 1, 2)), cache, table, lengths, latent_dim=1)
    (array([[[[2.]]]]), array([[[0.69314718]]]))
    """
    sequences, queries, heads, _ = q.shape
    options = {
        "causal": "bottom_right", "window_left": window_left, "softcap": softcap, "scale": scale,
        "sink_in_lse": sink_in_lse,
    }  # fmt: skip
    out = np.zeros_like(q, shape=(sequences, queries, heads, latent_dim))
    lse = np.zeros_like(q, shape=(sequences, queries, heads))
    for sequence in range(sequences):
        tokens = cache[cells_of(page_table, lengths, sequence, *cache.shape[:2])][:, np.newaxis]
        parts = by_head(q[sequence]), by_head(tokens), by_head(tokens[..., :latent_dim])
        mean, log_sum = attended(*parts, options, sinks=sinks)
        out[sequence], lse[sequence] = np.swapaxes(mean[0], 0, 1), np.swapaxes(log_sum[0], 0, 1)
    return out, lse


def _parts_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if sizes["boundaries"] < 1:
        return "cu_seqlens_q is empty; it holds one more number than there are sequences"
    if sizes["nope_dim"] + sizes["rope_dim"] != sizes["qk_dim"]:
        nope, rope = sizes["nope_dim"], sizes["rope_dim"]
        return f"nope_dim = {nope} and rope_dim = {rope} must add up to qk_dim = {sizes['qk_dim']}"
    if sizes["qk_dim"] == 0 and params["scale"] is None:
        return "qk_dim = 0 has no default scale; pass scale"
    return None


@operator(family="attention", check=_parts_fit)
def mla_prefill(
    q: Annotated[Array, Floats("tokens_q heads qk_dim")],
    k_nope: Annotated[Array, Floats("tokens_k heads nope_dim")],
    k_rope: Annotated[Array, Floats("tokens_k rope_dim")],
    v: Annotated[Array, Floats("tokens_k heads v_dim")],
    cu_seqlens_q: Annotated[Array, Integers("boundaries", dtype="int32")],
    cu_seqlens_k: Annotated[Array, Integers("boundaries", dtype="int32")],
    sinks: Annotated[Array, Floats("heads", dtype="float32")] | None = None,
    *,
    causal: Literal["none", "bottom_right"] = "bottom_right",
    window_left: Annotated[int, Range(-1)] = -1,
    softcap: Annotated[float | None, Range(0.0, open=True)] = None,
    scale: Annotated[float | None, Range(0.0, open=True)] = None,
    sink_in_lse: bool = True,
) -> tuple[Annotated[Array, Output("out", like="q")], Annotated[Array, Output("lse", like="q", statistic=True)]]:
    """Latent attention with keys and values written out: ``out = softmax(scale · q [k_nope, k_rope]ᵀ + mask) v``.

    Each head has its own keys and values, up-projected from the latent vector; the rotated part of the key is shared.

    Parameters
    ----------
    q : array (tokens_q, heads, qk_dim)
        The part that is not rotated first, then the rotated one; float16, bfloat16, float32 or float64. DeepSeek's
        qk_dim is 128 + 64.
    k_nope : array (tokens_k, heads, nope_dim)
        q's dtype.
    k_rope : array (tokens_k, rope_dim)
        Rotated part of the keys, for all heads; q's dtype.
    v : array (tokens_k, heads, v_dim)
        q's dtype.
    cu_seqlens_q, cu_seqlens_k : int32 array (boundaries,)
        As in `attention_varlen`.
    causal : "none" or "bottom_right"
        As in `attention`, for each sequence.
    sinks, window_left, softcap, sink_in_lse
        As in `flash_attention`, for each sequence.
    scale : float, optional
        Factor of the scores, above 0; 1 / sqrt(qk_dim) if not given.

    Returns
    -------
    out : array (tokens_q, heads, v_dim)
        q's dtype. A row that sees no key is 0.
    lse : array (heads, tokens_q)
        Natural log of Σ exp(score); float32, for float64 inputs float64; -inf where no key is seen and no sink counts.

    Notes
    -----
    Rounding points: as in `flash_attention`; the two parts of a score are one sum, in any order.

    Raises
    ------
    InputError
        nope_dim and rope_dim that do not add up to qk_dim, boundaries that do not rise from 0 to the number of tokens,
        or shapes and dtypes that disagree.

    Source: DeepSeek-AI, "DeepSeek-V2" (2024), section 2.1, equations 9 to 19; AITER's mla_prefill_ps.

    Examples
    --------
    >>> edges, zeros = np.array([0, 2], np.int32), np.zeros((2, 1, 1))
    >>> v = np.array([[[1.0]], [[3.0]]])
    >>> mla_prefill(np.zeros((2, 1, 2)), zeros, zeros[:, 0], v, edges, edges)[0][:, 0, 0]
    array([1., 2.])
    """
    options = {
        "causal": causal, "window_left": window_left, "softcap": softcap, "scale": scale, "sink_in_lse": sink_in_lse,
    }  # fmt: skip
    shared = np.broadcast_to(k_rope[:, np.newaxis], (*k_nope.shape[:2], k_rope.shape[1]))
    k = np.concatenate([k_nope, shared], axis=-1)
    out = np.zeros_like(q, shape=(*q.shape[:2], v.shape[2]))
    lse = np.zeros_like(q, shape=q.shape[1::-1])
    queries_of = segments(cu_seqlens_q, len(q), "cu_seqlens_q")
    for queries, keys in zip(queries_of, segments(cu_seqlens_k, len(k), "cu_seqlens_k"), strict=True):
        parts = by_head(q[queries]), by_head(k[keys]), by_head(v[keys])
        mean, log_sum = attended(*parts, options, sinks=sinks)
        out[queries], lse[:, queries] = np.swapaxes(mean[0], 0, 1), log_sum[0]
    return out, lse
