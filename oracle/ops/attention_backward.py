"""Gradients of attention: of queries, keys and values, and of what is added to scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.operator import operator
from oracle.ops.attention_parts import alibi as added_by_alibi
from oracle.ops.attention_parts import heads_divide, seen_keys
from oracle.signature import Array, Floats, Output, Range
from oracle.vocabulary import accumulate, may_round, pivot, scaled


def _slopes(
    dout: Array,
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    lse: Array,
    bias: Array | None,
    alibi_slopes: Array | None,
    params: Mapping[str, Any],
) -> tuple[Array, Array, Array | None]:
    """P, P · (dout vᵀ - Σ dout · out), and the slope of the soft cap: (batch, kv_heads, group · queries, keys)."""
    batch, heads, queries, head_dim = q.shape
    _, kv_heads, keys, v_dim = v.shape
    group = heads // max(kv_heads, 1)
    # The rows of all query heads that share a key head stand together.
    dout, out = (x.reshape(batch, kv_heads, group * queries, v_dim) for x in (dout, out))
    q = q.reshape(batch, kv_heads, group * queries, head_dim)
    lse = lse.reshape(batch, kv_heads, group * queries, 1)
    visible = seen_keys(queries, keys, params["causal"], params["window_left"], params["window_right"])
    visible = np.tile(visible, (group, 1)) & (lse != -np.inf)

    score, slope_of_cap = scaled(q @ np.swapaxes(k, -1, -2), params["scale"]), None
    if params["softcap"] is not None:
        bent = np.tanh(score / params["softcap"])
        score, slope_of_cap = bent * params["softcap"], 1.0 - bent * bent
    if alibi_slopes is not None:
        added = added_by_alibi(alibi_slopes, queries, keys, params["alibi"])
        score = score + added.reshape(kv_heads, group * queries, keys)
    if bias is not None:
        bias = bias.reshape(batch, kv_heads, group * queries, keys)
        score, visible = score + bias, visible & (bias > -np.inf)
    if slope_of_cap is not None:
        slope_of_cap = np.where(visible, slope_of_cap, 0.0)  # the slope of a NaN that is not seen is none
    # lse is given and exact: as a pivot it only says that a kernel may meet it in the exponent's base.
    weight = np.exp(np.where(visible, score - pivot(np.where(lse == -np.inf, 0.0, lse)), -np.inf))
    mean = np.sum(dout * out, axis=-1, keepdims=True)
    return weight, weight * accumulate(dout @ np.swapaxes(v, -1, -2), -mean), slope_of_cap


@operator(family="attention", check=heads_divide, separable=("batch", "kv_heads heads"))
def attention_backward(
    dout: Annotated[Array, Floats("batch heads queries v_dim")],
    q: Annotated[Array, Floats("batch heads queries head_dim")],
    k: Annotated[Array, Floats("batch kv_heads keys head_dim")],
    v: Annotated[Array, Floats("batch kv_heads keys v_dim")],
    out: Annotated[Array, Floats("batch heads queries v_dim")],
    lse: Annotated[Array, Floats("batch heads queries", dtype="float32")],
    bias: Annotated[Array, Floats("batch heads queries keys")] | None = None,
    alibi_slopes: Annotated[Array, Floats("heads", dtype="float32")] | None = None,
    *,
    causal: Literal["none", "top_left", "bottom_right"] = "none",
    window_left: Annotated[int, Range(-1)] = -1,
    window_right: Annotated[int, Range(-1)] = -1,
    softcap: Annotated[float | None, Range(0.0, open=True)] = None,
    alibi: Literal["distance", "last_key"] = "distance",
    scale: Annotated[float | None, Range(0.0, open=True)] = None,
) -> tuple[
    Annotated[Array, Output("dq", like="q")],
    Annotated[Array, Output("dk", like="k")],
    Annotated[Array, Output("dv", like="v")],
]:
    """Gradients of attention: ``dv = Pᵀ dout``, ``dq = scale · dS k``, ``dk = scale · dSᵀ q``.

    P = exp(score - lse) where the key is seen, with the scores of `flash_attention`; dS = P · (dout vᵀ - Σ dout · out),
    under a soft cap times its slope 1 - tanh²(scale · q kᵀ / softcap). Query heads that share a key head add up in its
    gradients.

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
        What the forward pass gave; natural log, -inf for a row that saw no key. With sinks, their weight counts in it:
        nothing else here depends on them.
    bias, alibi_slopes, causal, window_left, window_right, softcap, alibi, scale
        As in `flash_attention`. The gradient of a bias is `attention_bias_backward`, that of sinks
        `attention_sinks_backward`.

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
    Rounding points: scores after each step, P, both sums of a row, dS and the three products, in the compute type; each
    gradient once to its dtype. P comes from the lse that is given, not from scores alone: what lse was rounded by
    counts as given.

    Raises
    ------
    InputError
        heads is no multiple of kv_heads, a parameter is out of range, or shapes and dtypes that disagree.

    Source: Dao, "FlashAttention-2" (2023), algorithm 2; FlashAttention for the soft cap and ALiBi, AITER's mha_bwd for
    a bias and sinks.

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
    scale = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    params = {
        "causal": causal, "window_left": window_left, "window_right": window_right,
        "softcap": softcap, "alibi": alibi, "scale": scale,
    }  # fmt: skip
    weight, slope, slope_of_cap = _slopes(dout, q, k, v, out, lse, bias, alibi_slopes, params)
    if slope_of_cap is not None:
        slope = slope * slope_of_cap
    rows = weight.shape[:3]
    dq = scaled(may_round(slope) @ k, scale)
    dk = scaled(np.swapaxes(may_round(slope), -1, -2) @ q.reshape(*rows, q.shape[3]), scale)
    dv = np.swapaxes(may_round(weight), -1, -2) @ dout.reshape(*rows, v.shape[3])
    return dq.reshape(q.shape), dk, dv


@operator(family="attention", check=heads_divide, separable=("batch", "kv_heads heads"))
def attention_bias_backward(
    dout: Annotated[Array, Floats("batch heads queries v_dim")],
    q: Annotated[Array, Floats("batch heads queries head_dim")],
    k: Annotated[Array, Floats("batch kv_heads keys head_dim")],
    v: Annotated[Array, Floats("batch kv_heads keys v_dim")],
    out: Annotated[Array, Floats("batch heads queries v_dim")],
    lse: Annotated[Array, Floats("batch heads queries", dtype="float32")],
    bias: Annotated[Array, Floats("batch heads queries keys")],
    alibi_slopes: Annotated[Array, Floats("heads", dtype="float32")] | None = None,
    *,
    causal: Literal["none", "top_left", "bottom_right"] = "none",
    window_left: Annotated[int, Range(-1)] = -1,
    window_right: Annotated[int, Range(-1)] = -1,
    softcap: Annotated[float | None, Range(0.0, open=True)] = None,
    alibi: Literal["distance", "last_key"] = "distance",
    scale: Annotated[float | None, Range(0.0, open=True)] = None,
) -> Annotated[Array, Output("dbias", like="bias")]:
    """Gradient of attention's bias: ``dbias = P · (dout vᵀ - Σ dout · out)``, P = exp(score - lse).

    Parameters
    ----------
    dout, q, k, v, out, lse, alibi_slopes, causal, window_left, window_right, softcap, alibi, scale
        As in `attention_backward`.
    bias : array (batch, heads, queries, keys)
        As in `flash_attention`.

    Returns
    -------
    dbias : array (batch, heads, queries, keys)
        dout's dtype; 0 where the key is not seen. The soft cap comes before the bias, so its slope is no part of it.

    Notes
    -----
    Rounding points: as in `attention_backward`, up to dS; the gradient once to its dtype.

    Raises
    ------
    InputError
        As in `attention_backward`.

    Source: as for `attention_backward`; dbias of AITER's mha_bwd.

    Examples
    --------
    >>> one, k = np.ones((1, 1, 1, 1)), np.zeros((1, 1, 2, 1))
    >>> v, lse = np.array([[[[3.0], [1.0]]]]), np.log(np.full((1, 1, 1), 2.0)).astype(np.float32)
    >>> np.round(attention_bias_backward(one, one, k, v, 2 * one, lse, np.zeros((1, 1, 1, 2))), 6)
    array([[[[ 0.5, -0.5]]]])
    """
    scale = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    params = {
        "causal": causal, "window_left": window_left, "window_right": window_right,
        "softcap": softcap, "alibi": alibi, "scale": scale,
    }  # fmt: skip
    return _slopes(dout, q, k, v, out, lse, bias, alibi_slopes, params)[1].reshape(bias.shape)


@operator(family="attention")
def attention_sinks_backward(
    dout: Annotated[Array, Floats("batch heads queries v_dim")],
    out: Annotated[Array, Floats("batch heads queries v_dim")],
    lse: Annotated[Array, Floats("batch heads queries", dtype="float32")],
    sinks: Annotated[Array, Floats("heads", dtype="float32")],
) -> Annotated[Array, Output("dsinks", dtype="float32")]:
    """Gradient of attention's sinks: ``dsinks[h] = -Σ exp(sinks[h] - lse) · (dout · out)`` over batch and queries.

    Parameters
    ----------
    dout, out : array (batch, heads, queries, v_dim)
        Gradient of the result, and the result; float16, bfloat16, float32 or float64.
    lse : float32 array (batch, heads, queries)
        What the forward pass gave, the sink's weight counted; -inf for a row that saw nothing.
    sinks : float32 array (heads,)
        As in `flash_attention`.

    Returns
    -------
    dsinks : float32 array (heads,)
        0 for a sink of -inf.

    Notes
    -----
    Rounding points: the exponential, the sum of a row, their product and the sum of rows, in the compute type.

    Raises
    ------
    InputError
        Shapes and dtypes that disagree.

    Source: the derivative of the softmax with one more score; d_sink of AITER's mha_bwd.

    Examples
    --------
    A sink that has half of the weight:

    >>> dout, lse = np.full((1, 1, 1, 1), 4.0), np.log(np.full((1, 1, 1), 2.0)).astype(np.float32)
    >>> np.round(attention_sinks_backward(dout, dout, lse, np.zeros(1, np.float32)), 6)
    array([-8.])
    """
    seen = lse != -np.inf
    score = np.where(seen, sinks[:, np.newaxis], -np.inf)
    weight = np.exp(score - pivot(np.where(seen, lse, 0.0)))
    mean = np.sum(dout * out, axis=-1)
    gradient: Array = -np.sum(weight * mean, axis=(0, 2))
    return gradient
