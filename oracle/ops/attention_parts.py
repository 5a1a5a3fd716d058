"""What the attentions share: which keys a query sees, what is added to its scores, and the mean that follows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from oracle.signature import Array, InputError
from oracle.vocabulary import hull, may_round, pivot, rescaled, scaled
from oracle.vocabulary.quantised import scaled_matmul


def heads_divide(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    """Whether query heads can share key heads, and the scores have a scale: a check for operators."""
    heads, kv_heads = sizes["heads"], sizes["kv_heads"]
    if sizes["head_dim"] == 0 and params["scale"] is None:
        return "head_dim = 0 has no default scale; pass scale"
    if kv_heads == 0 and heads == 0:
        return None
    if kv_heads == 0 or heads % kv_heads:
        return f"heads = {heads} must be a multiple of kv_heads = {kv_heads}"
    return None


def seen_keys(queries: int, keys: int, causal: str, left: int = -1, right: int = -1) -> Array:
    """Which keys each query sees, (queries, keys).

    The diagonal of query i is key i under "top_left", key i + keys - queries otherwise; a window reaches ``left`` keys
    to the left of it and ``right`` to the right, -1 for any number.
    """
    row, column = np.arange(queries)[:, np.newaxis], np.arange(keys)
    from_diagonal = column - (row if causal == "top_left" else row + keys - queries)
    if causal != "none":
        right = 0
    seen: Array = np.ones((queries, keys), bool)
    if right >= 0:
        seen &= from_diagonal <= right
    if left >= 0:
        seen &= from_diagonal >= -left
    return seen


def alibi(slopes: Array, queries: int, keys: int, convention: str) -> Array:
    """What ALiBi adds to scores, (heads, queries, keys), of slopes (heads,)."""
    row, column = np.arange(queries)[:, np.newaxis], np.arange(keys)
    if convention == "distance":
        distance = -np.abs(row + keys - queries - column)
    else:
        distance = column - (keys - 1) + 0 * row
    added: Array = slopes[:, np.newaxis, np.newaxis] * distance.astype(np.float64)
    return added


def _weights(score: Array, visible: Array) -> tuple[Array, Array, Array]:
    """exp(score) of what is visible over a common factor, their sum, and log Σ exp(score): -inf for no keys."""
    seen = np.any(visible, axis=-1, keepdims=True)
    score = np.where(visible, score, -np.inf)
    largest = pivot(np.where(seen, np.max(score, axis=-1, keepdims=True, initial=-np.inf), 0.0))
    weight = rescaled(np.exp(score - largest))
    total = np.where(seen, np.sum(weight, axis=-1, keepdims=True), 1.0)
    return weight, total, np.where(seen, largest + np.log(total), -np.inf)[..., 0]


def softmax_mean(
    score: Array,
    visible: Array,
    v: Array,
    sink: Array | None = None,
    v_scale: Array | None = None,
    sink_in_lse: bool = True,
    weight_format: str | None = None,
) -> tuple[Array, Array]:
    """Σ exp(score) v / Σ exp(score) over the keys that are visible, and log Σ exp(score).

    Parameters
    ----------
    score, visible : array (..., queries, keys)
        ``visible`` is bool and broadcasts to the scores.
    v : array (..., keys, v_dim)
    sink : array (..., 1 or queries, 1), optional
        A score of one more key whose value is 0.
    v_scale : array (..., keys or 1, v_dim or 1), optional
        Factor of the values, where v holds codes.
    sink_in_lse : bool
        Whether the sink counts in lse.
    weight_format : str, optional
        Format to which weights may be rounded; that of the kernel's numerics if not given.

    Returns
    -------
    mean : array (..., queries, v_dim)
        0 where nothing is visible.
    lse : array (..., queries)
        -inf where nothing is visible.
    """
    lse = None
    if sink is not None:
        if not sink_in_lse:
            lse = _weights(score, visible)[2]
        sink = np.broadcast_to(sink, (*score.shape[:-1], 1))
        score = np.concatenate([score, sink], axis=-1)
        visible = np.concatenate([np.broadcast_to(visible, (*score.shape[:-1], visible.shape[-1])), sink > -np.inf], -1)
        v = np.concatenate([v, np.zeros((*v.shape[:-2], 1, v.shape[-1]))], axis=-2)
        if v_scale is not None and v_scale.shape[-2] != 1:
            of_sink = np.ones_like(v_scale, shape=(*v_scale.shape[:-2], 1, v_scale.shape[-1]))
            v_scale = np.concatenate([v_scale, of_sink], axis=-2)
    keys = v.shape[-2]
    weight, total, whole_lse = _weights(score, visible)
    weight = may_round(weight / total, weight_format)
    if v_scale is None:
        mean = weight @ v
    else:
        mean, v = scaled_matmul(weight, (), v, (v_scale,)), v * v_scale
    if keys:
        mean = hull(mean, np.min(v, axis=-2, keepdims=True), np.max(v, axis=-2, keepdims=True), terms=keys)
    return mean, whole_lse if lse is None else lse


def attended(
    q: Array,
    k: Array,
    v: Array,
    params: Mapping[str, Any],
    *,
    bias: Array | None = None,
    alibi_slopes: Array | None = None,
    sinks: Array | None = None,
    q_scale: Array | None = None,
    k_scale: Array | None = None,
    v_scale: Array | None = None,
) -> tuple[Array, Array]:
    """Attention with all that may change its scores: mean and log-sum-exp of (batch, heads, queries, head_dim).

    ``params`` holds some of ``causal``, ``window_left``, ``window_right``, ``softcap``, ``alibi``, ``scale``,
    ``sink_in_lse``, whose meaning is that of `flash_attention`, and ``weight_format``. ``k_scale`` and ``v_scale`` are
    factors of keys and values that are codes: arrays ([batch or 1,] kv_heads or 1, keys or 1, head_dim or v_dim or 1);
    ``q_scale`` likewise, with one number per key head.
    """
    batch, heads, queries, head_dim = q.shape
    _, kv_heads, keys, v_dim = v.shape
    group = heads // max(kv_heads, 1)
    scale = 1 / math.sqrt(head_dim) if params["scale"] is None else params["scale"]
    # Query heads that share a key head stand together: (batch, kv_heads, group, queries, head_dim).
    q = q.reshape(batch, kv_heads, group, queries, head_dim)
    k, v = k[:, :, np.newaxis], v[:, :, np.newaxis]
    visible = seen_keys(
        queries, keys, params.get("causal", "none"), params.get("window_left", -1), params.get("window_right", -1)
    )

    across = np.swapaxes(k, -1, -2)
    if k_scale is None:
        score = scaled(q @ across, scale)
    else:
        by_query = () if q_scale is None else (q_scale[..., np.newaxis, :, :],)
        by_key = np.swapaxes(k_scale, -1, -2)[..., np.newaxis, :, :]
        score = scaled(scaled_matmul(q, by_query, across, (by_key,)), scale)
    softcap = params.get("softcap")
    if softcap is not None:
        score = np.tanh(score / softcap) * softcap
    if alibi_slopes is not None:
        added = alibi(alibi_slopes, queries, keys, params.get("alibi", "distance"))
        score = score + added.reshape(kv_heads, group, queries, keys)
    if bias is not None:
        bias = bias.reshape(batch, kv_heads, group, queries, keys)
        score, visible = score + bias, visible & (bias > -np.inf)
    sink = None if sinks is None else sinks.reshape(kv_heads, group, 1, 1)
    by_value = None if v_scale is None else v_scale[..., np.newaxis, :, :]
    mean, lse = softmax_mean(
        score, visible, v, sink, by_value, params.get("sink_in_lse", True), params.get("weight_format")
    )
    return mean.reshape(batch, heads, queries, v_dim), lse.reshape(batch, heads, queries)


def by_head(x: Array) -> Array:
    """Tokens (tokens, heads, size) as one sequence (1, heads, tokens, size)."""
    return np.swapaxes(x, 0, 1)[np.newaxis]


def segments(boundaries: Array, tokens: int, name: str) -> list[slice]:
    """The stretches of tokens between boundaries.

    Raises
    ------
    InputError
        The boundaries do not rise from 0 to ``tokens``.
    """
    edges = [int(edge) for edge in boundaries]
    if edges[0] != 0 or edges[-1] != tokens or any(first > last for first, last in pairwise(edges)):
        raise InputError(f"{name} = {edges} must rise from 0 to the number of tokens, {tokens}")
    return [slice(first, last) for first, last in pairwise(edges)]
