"""Gradients of attention."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.attention_parts import heads_divide, seen_keys
from oracle.signature import Array, Floats, Output, Range
from oracle.vocabulary import accumulate, may_round, pivot, scaled


@operator(family="attention", check=heads_divide, separable=("batch", "kv_heads heads"))
def attention_backward(
    dout: Annotated[Array, Floats("batch heads queries v_dim")],
    q: Annotated[Array, Floats("batch heads queries head_dim")],
    k: Annotated[Array, Floats("batch kv_heads keys head_dim")],
    v: Annotated[Array, Floats("batch kv_heads keys v_dim")],
    out: Annotated[Array, Floats("batch heads queries v_dim")],
    lse: Annotated[Array, Floats("batch heads queries", dtype="float32")],
    *,
    causal: Literal["none", "top_left", "bottom_right"] = "none",
    window_left: Annotated[int, Range(-1)] = -1,
    window_right: Annotated[int, Range(-1)] = -1,
    scale: Annotated[float | None, Range(0.0, open=True)] = None,
) -> tuple[
    Annotated[Array, Output("dq", like="q")],
    Annotated[Array, Output("dk", like="k")],
    Annotated[Array, Output("dv", like="v")],
]:
    """Gradients of attention: ``dv = Pᵀ dout``, ``dq = scale · dS k``, ``dk = scale · dSᵀ q``.

    P = exp(scale · q kᵀ - lse) where the key is seen, dS = P · (dout vᵀ - Σ dout · out). Query heads that share a key
    head add up in its gradients.

    Parameters
    ----------
    dout : array (batch, heads, queries, v_dim)
        Gradient of the result; float16, bfloat16, float32 or float64.
    q : array (batch, heads, queries, head_dim)
        dout's dtype.
    k : array (batch, kv_heads, keys, head_dim)
        dout's dtype; kv_heads divides heads.
    v : array (batch, kv_heads, keys, v_dim)
        dout's dtype.
    out : array (batch, heads, queries, v_dim)
        What the forward pass gave, rounded as it was; dout's dtype.
    lse : float32 array (batch, heads, queries)
        What the forward pass gave; natural log, -inf for a row that saw no key.
    causal, window_left, window_right, scale
        As in `flash_attention`.

    Returns
    -------
    dq : array (batch, heads, queries, head_dim)
        dout's dtype; 0 for a row that sees no key.
    dk : array (batch, kv_heads, keys, head_dim)
        dout's dtype; 0 for a key that no query sees.
    dv : array (batch, kv_heads, keys, v_dim)
        dout's dtype; likewise.

    Notes
    -----
    Rounding points: scores, P, both sums of a row, dS and the three products, in the compute type; each gradient once
    to its dtype. P comes from the lse that is given, not from scores alone: what lse was rounded by counts as given.

    Raises
    ------
    InputError
        heads is no multiple of kv_heads, a parameter is out of range, or shapes and dtypes that disagree.

    Source: Dao, "FlashAttention-2" (2023), algorithm 2.

    Examples
    --------
    One query, two keys of equal weight: the gradient flows to the value by weight, and to q along k₀ - k₁.

    >>> one = np.ones((1, 1, 1, 1))
    >>> k, v = np.array([[[[1.0], [-1.0]]]]), np.array([[[[3.0], [1.0]]]])
    >>> lse = np.log(np.full((1, 1, 1), 2.0)).astype(np.float32)
    >>> dq, dk, dv = attention_backward(one, 0 * one, k, v, 2 * one, lse)
    >>> [np.round(gradient, 6).ravel().tolist() for gradient in (dq, dk, dv)]
    [[1.0], [0.0, 0.0], [0.5, 0.5]]
    """
    batch, heads, queries, head_dim = q.shape
    _, kv_heads, keys, v_dim = v.shape
    scale = 1 / math.sqrt(head_dim) if scale is None else scale
    # The rows of all query heads that share a key head stand together: (batch, kv_heads, group · queries, …).
    group = heads // max(kv_heads, 1)
    dout, out = (x.reshape(batch, kv_heads, group * queries, v_dim) for x in (dout, out))
    q = q.reshape(batch, kv_heads, group * queries, head_dim)
    lse = lse.reshape(batch, kv_heads, group * queries, 1)
    visible = np.tile(seen_keys(queries, keys, causal, window_left, window_right), (group, 1)) & (lse != -np.inf)

    score = scaled(q @ np.swapaxes(k, -1, -2), scale)
    # lse is given and exact: as a pivot it only says that a kernel may meet it in the exponent's base.
    weight = np.exp(np.where(visible, score - pivot(np.where(lse == -np.inf, 0.0, lse)), -np.inf))
    mean = np.sum(dout * out, axis=-1, keepdims=True)
    slope = weight * accumulate(dout @ np.swapaxes(v, -1, -2), -mean)
    dq = scaled(may_round(slope) @ k, scale)
    dk = scaled(np.swapaxes(may_round(slope), -1, -2) @ q, scale)
    dv = np.swapaxes(may_round(weight), -1, -2) @ dout
    return dq.reshape(batch, heads, queries, head_dim), dk, dv
