"""Attention with everything that changes scores, for batches and for packed sequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.attention_parts import attended, by_head, heads_divide, segments
from oracle.signature import Array, Floats, InputError, Integers, Output, Range


@operator(family="attention", check=heads_divide, separable=("batch", "kv_heads heads"))
def flash_attention(
    q: Annotated[Array, Floats("batch heads queries head_dim")],
    k: Annotated[Array, Floats("batch kv_heads keys head_dim")],
    v: Annotated[Array, Floats("batch kv_heads keys v_dim")],
    bias: Annotated[Array, Floats("batch heads queries keys")] | None = None,
    alibi_slopes: Annotated[Array, Floats("heads", dtype="float32")] | None = None,
    sinks: Annotated[Array, Floats("heads", dtype="float32")] | None = None,
    *,
    causal: Literal["none", "top_left", "bottom_right"] = "none",
    window_left: Annotated[int, Range(-1)] = -1,
    window_right: Annotated[int, Range(-1)] = -1,
    softcap: Annotated[float | None, Range(0.0, open=True)] = None,
    alibi: Literal["distance", "last_key"] = "distance",
    scale: Annotated[float | None, Range(0.0, open=True)] = None,
    sink_in_lse: bool = True,
) -> tuple[Annotated[Array, Output("out", like="q")], Annotated[Array, Output("lse", like="q", statistic=True)]]:
    """Attention with all options: ``out = softmax(softcap · tanh(scale · q kᵀ / softcap) + alibi + bias, sink) v``.

    Parameters
    ----------
    q : array (batch, heads, queries, head_dim)
        float16, bfloat16, float32 or float64.
    k : array (batch, kv_heads, keys, head_dim)
        q's dtype; kv_heads divides heads, and query head h reads head ``h // (heads / kv_heads)``.
    v : array (batch, kv_heads, keys, v_dim)
        q's dtype.
    bias : array (batch, heads, queries, keys), optional
        Added to the scores; q's dtype. Where it is -inf the key is hidden.
    alibi_slopes : float32 array (heads,), optional
        Slope of each head's linear bias.
    sinks : float32 array (heads,), optional
        Score of one more key per head, whose value is 0; -inf is no sink.
    causal : "none", "top_left" or "bottom_right"
        No key to the right of the diagonal is seen. The diagonal of query i is key i for "top_left", key
        i + keys - queries otherwise.
    window_left, window_right : int
        How many keys to the left and to the right of the diagonal are seen; -1 for all of them.
    softcap : float, optional
        Limit of the scores' magnitude, before anything is added to them.
    alibi : "distance" or "last_key"
        -slope · |i + keys - queries - j|, as FlashAttention has it; or slope · (j - (keys - 1)), as in vLLM, in AITER's
        paged kernels and in its causal reference. Under a causal mask they give the same ``out``, another ``lse``.
    scale : float, optional
        Factor of q kᵀ, above 0; 1 / sqrt(head_dim) if not given.
    sink_in_lse : bool
        Whether the sink counts in lse, as in AITER's reference and FlashAttention-3; FlashMLA leaves it out.

    Returns
    -------
    out : array (batch, heads, queries, v_dim)
        q's dtype. A row that sees no key is 0.
    lse : array (batch, heads, queries)
        Natural log of Σ exp(score); float32, for float64 inputs float64. -inf where nothing is seen and no sink
        counts.

    Notes
    -----
    Rounding points: scores after each step, exponentials, sums and the quotient, in the compute type; ``out`` and
    ``lse`` once each to their dtype. The order is scale, softcap, ALiBi, bias, masks, sink, as in AITER's reference.

    What is not finite: a NaN or a score of inf makes its row NaN, in ``out`` and ``lse``, where the key is seen; a
    hidden key changes nothing, whatever it is. A key with a score of -inf weighs nothing beside one with a finite
    score; where there is none, PyTorch's 0/0 and FlashAttention's 0 part, and nothing is asked for. An infinite value
    makes its column infinite where the key is seen; where it is hidden, weight 0 times infinity is NaN here and in
    kernels that compute it, not in those that skip the tile: nothing is asked for either.

    Raises
    ------
    InputError
        heads is no multiple of kv_heads, a parameter is out of range, or shapes and dtypes that disagree.

    Source: Dao, "FlashAttention-2" (2023); Press et al., "Train Short, Test Long" (2022) for ALiBi; Gemma 2 (2024) for
    the soft cap; gpt-oss (2025) for the sinks.

    Examples
    --------
    A window of one key, and a sink that weighs as much as that key:

    >>> q, k, v = np.zeros((1, 1, 2, 4)), np.zeros((1, 1, 2, 4)), np.array([[[[1.0], [3.0]]]])
    >>> flash_attention(q, k, v, sinks=np.zeros(1, np.float32), window_left=0, window_right=0)
    (array([[[[0.5],
             [1.5]]]]), array([[[0.69314718, 0.69314718]]]))
    """
    options = {
        "causal": causal, "window_left": window_left, "window_right": window_right,
        "softcap": softcap, "alibi": alibi, "scale": scale, "sink_in_lse": sink_in_lse,
    }  # fmt: skip
    return attended(q, k, v, options, bias=bias, alibi_slopes=alibi_slopes, sinks=sinks)


def _packed(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if sizes["boundaries"] < 1:
        return "cu_seqlens_q is empty; it holds one more number than there are sequences"
    if sizes.get("sequences", sizes["boundaries"] - 1) != sizes["boundaries"] - 1:
        return f"seqused_k has {sizes['sequences']} lengths for {sizes['boundaries'] - 1} sequences"
    return heads_divide(sizes, params)


@operator(family="attention", check=_packed)
def attention_varlen(
    q: Annotated[Array, Floats("tokens_q heads head_dim")],
    k: Annotated[Array, Floats("tokens_k kv_heads head_dim")],
    v: Annotated[Array, Floats("tokens_k kv_heads v_dim")],
    cu_seqlens_q: Annotated[Array, Integers("boundaries", dtype="int32")],
    cu_seqlens_k: Annotated[Array, Integers("boundaries", dtype="int32")],
    seqused_k: Annotated[Array, Integers("sequences", dtype="int32")] | None = None,
    bias: Annotated[Array, Floats("tokens_q max_keys")] | None = None,
    alibi_slopes: Annotated[Array, Floats("heads", dtype="float32")] | None = None,
    sinks: Annotated[Array, Floats("heads", dtype="float32")] | None = None,
    *,
    causal: Literal["none", "top_left", "bottom_right"] = "none",
    window_left: Annotated[int, Range(-1)] = -1,
    window_right: Annotated[int, Range(-1)] = -1,
    softcap: Annotated[float | None, Range(0.0, open=True)] = None,
    alibi: Literal["distance", "last_key"] = "distance",
    scale: Annotated[float | None, Range(0.0, open=True)] = None,
    sink_in_lse: bool = True,
) -> tuple[Annotated[Array, Output("out", like="q")], Annotated[Array, Output("lse", like="q", statistic=True)]]:
    """Attention of packed sequences: ``out[s] = softmax(scale · q[s] k[s]ᵀ + mask) v[s]`` for each sequence s.

    Parameters
    ----------
    q : array (tokens_q, heads, head_dim)
        The sequences' queries one after another; float16, bfloat16, float32 or float64.
    k : array (tokens_k, kv_heads, head_dim)
        q's dtype; kv_heads divides heads.
    v : array (tokens_k, kv_heads, v_dim)
        q's dtype.
    cu_seqlens_q, cu_seqlens_k : int32 array (boundaries,)
        Sequence s has tokens ``cu_seqlens[s]`` up to, not including, ``cu_seqlens[s + 1]``: both rise from 0 to the
        number of tokens.
    seqused_k : int32 array (sequences,), optional
        How many of a sequence's keys are there; what lies behind them is padding, which is not read.
    bias : array (tokens_q, max_keys), optional
        Added to the scores of every head; q's dtype. Row i belongs to query i, column j to the j-th key of its
        sequence, of which none has more than max_keys in use: Composable Kernel's form, and so AITER's. What lies
        behind a sequence's keys is not read.
    alibi_slopes, sinks, alibi, causal, window_left, window_right, softcap, scale, sink_in_lse
        As in `flash_attention`, for each sequence with its own numbers of queries and of keys in use.

    Returns
    -------
    out : array (tokens_q, heads, v_dim)
        q's dtype. A row that sees no key is 0.
    lse : array (heads, tokens_q)
        Natural log of Σ exp(score); float32, for float64 inputs float64. -inf where nothing is seen and no sink
        counts.

    Notes
    -----
    Rounding points: as in `flash_attention`.

    Raises
    ------
    InputError
        Boundaries that do not rise from 0 to the number of tokens, a length in use that exceeds its sequence, more keys
        in use than bias has columns, heads no multiple of kv_heads, or shapes and dtypes that disagree.

    Source: flash_attn_varlen_func of Dao's FlashAttention, whose arguments have these names.

    Examples
    --------
    >>> q, v = np.zeros((3, 1, 4)), np.array([[[1.0]], [[3.0]], [[7.0]]])
    >>> edges = np.array([0, 2, 3], np.int32)
    >>> out, lse = attention_varlen(q, np.zeros((3, 1, 4)), v, edges, edges)
    >>> out[:, 0, 0], lse
    (array([2., 2., 7.]), array([[0.69314718, 0.69314718, 0.        ]]))
    """
    options = {
        "causal": causal, "window_left": window_left, "window_right": window_right,
        "softcap": softcap, "alibi": alibi, "scale": scale, "sink_in_lse": sink_in_lse,
    }  # fmt: skip
    out = np.zeros_like(q, shape=(*q.shape[:2], v.shape[2]))
    lse = np.zeros_like(q, shape=q.shape[1::-1])
    queries_of = segments(cu_seqlens_q, len(q), "cu_seqlens_q")
    keys_of = segments(cu_seqlens_k, len(k), "cu_seqlens_k")
    for sequence, (queries, keys) in enumerate(zip(queries_of, keys_of, strict=True)):
        if seqused_k is not None:
            used, room = int(seqused_k[sequence]), keys.stop - keys.start
            if used > room:
                raise InputError(f"seqused_k[{sequence}] = {used} exceeds the {room} keys of its sequence")
            keys = slice(keys.start, keys.start + used)
        added = None if bias is None else _bias_of(bias, queries, keys.stop - keys.start, sequence, q.shape[1])
        parts = by_head(q[queries]), by_head(k[keys]), by_head(v[keys])
        mean, log_sum = attended(*parts, options, bias=added, alibi_slopes=alibi_slopes, sinks=sinks)
        out[queries] = np.swapaxes(mean[0], 0, 1)
        lse[:, queries] = log_sum[0]
    return out, lse


def _bias_of(bias: Array, queries: slice, keys: int, sequence: int, heads: int) -> Array:
    """A sequence's bias (1, heads, queries, keys)."""
    if keys > bias.shape[1]:
        raise InputError(f"sequence {sequence} has {keys} keys, but bias only {bias.shape[1]} columns")
    own = bias[queries, :keys]
    return np.broadcast_to(own, (1, heads, *own.shape))
