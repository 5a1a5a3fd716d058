"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.attention_parts import heads_divide, seen_keys, softmax_mean
from oracle.signature import Array, Floats, Output, Range
from oracle.vocabulary import scaled


@operator(family="attention", check=heads_divide, separable=("batch", "kv_heads heads"))
def attention(
    q: Annotated[Array, Floats("batch heads queries head_dim")],
    k: Annotated[Array, Floats("batch kv_heads keys head_dim")],
    v: Annotated[Array, Floats("batch kv_heads keys v_dim")],
    *,
    causal: Literal["none", "top_left", "bottom_right"] = "none",
    scale: Annotated[float | None, Range(0.0, open=True)] = None,
) -> tuple[Annotated[Array, Output("out", like="q")], Annotated[Array, Output("lse", like="q", statistic=True)]]:
    """Attention: ``out = softmax(scale · q kᵀ + mask) v``, and the log of each row's sum of exponentials.

    Query head h reads key and value head ``h // (heads / kv_heads)``: multi-head where the two counts agree,
    multi-query where kv_heads is 1, grouped-query between.

    Parameters
    ----------
    q : array (batch, heads, queries, head_dim)
        float16, bfloat16, float32 or float64.
    k : array (batch, kv_heads, keys, head_dim)
        q's dtype; kv_heads divides heads.
    v : array (batch, kv_heads, keys, v_dim)
        q's dtype.
    causal : "none", "top_left" or "bottom_right"
        Which keys query i sees: all; those with j <= i; those with j <= i + keys - queries.
    scale : float, optional
        Factor of the scores, above 0; 1 / sqrt(head_dim) if not given.

    Returns
    -------
    out : array (batch, heads, queries, v_dim)
        q's dtype. A row that sees no key is 0.
    lse : array (batch, heads, queries)
        Natural log of Σ exp(score); float32, for float64 inputs float64. A row that sees no key has -inf.

    Notes
    -----
    Rounding points: scores, exponentials, sums and the quotient, in the compute type; ``out`` and ``lse`` once
    each to their dtype. The scale may be applied to q or to the scores, the maximum may be a running one, and the
    weights may be divided by their sum before or after they meet v. What is not finite: see `flash_attention`.

    Raises
    ------
    InputError
        heads is no multiple of kv_heads, scale is not above 0, or shapes and dtypes that disagree.

    Source: Vaswani et al., "Attention Is All You Need" (2017), equation 1; Dao, "FlashAttention-2" (2023), for
    the log-sum-exp and the bottom-right mask.

    Examples
    --------
    >>> out, lse = attention(np.zeros((1, 1, 1, 4)), np.zeros((1, 1, 2, 4)), np.array([[[[1.0], [3.0]]]]))
    >>> out, lse
    (array([[[[2.]]]]), array([[[0.69314718]]]))
    """
    batch, heads, queries, head_dim = q.shape
    _, kv_heads, keys, v_dim = v.shape
    scale = 1 / math.sqrt(head_dim) if scale is None else scale
    # Query heads that share a key head stand together: (batch, kv_heads, group, queries, head_dim).
    q = q.reshape(batch, kv_heads, heads // max(kv_heads, 1), queries, head_dim)
    k, v = k[:, :, np.newaxis], v[:, :, np.newaxis]

    score = scaled(q @ np.swapaxes(k, -1, -2), scale)
    out, lse = softmax_mean(score, seen_keys(queries, keys, causal), v)
    return out.reshape(batch, heads, queries, v_dim), lse.reshape(batch, heads, queries)
