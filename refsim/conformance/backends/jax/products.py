"""Matrix products, attention, convolutions and experts, by ``jax.numpy``, ``jax.nn`` and ``jax.lax``.

Source: docs.jax.dev, ``jax.numpy.matmul``, ``jax.lax.ragged_dot``, ``jax.nn.dot_product_attention`` (0.10).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from oracle.numerics import Numerics
from refsim.conformance.backends import library
from refsim.conformance.backends.jax.table import TABLE, in_dtype, usual
from refsim.conformance.backends.library import Inputs


@TABLE.serves("matmul", "jax.numpy.matmul", numerics=in_dtype)
def matmul(a: Any, b: Any, bias: Any, transpose_a: bool, transpose_b: bool) -> Any:
    """``jax.numpy.matmul``; the bias is added to its rounded result."""
    product = jnp.matmul(a.T if transpose_a else a, b.T if transpose_b else b)
    return product if bias is None else product + bias


@TABLE.serves("batched_matmul", "jax.numpy.matmul", numerics=in_dtype)
def batched_matmul(a: Any, b: Any, bias: Any) -> Any:
    """``jax.numpy.matmul``; the bias is added to its rounded result."""
    product = jnp.matmul(a, b)
    return product if bias is None else product + bias[:, None]


@TABLE.serves("grouped_matmul", "jax.lax.ragged_dot", numerics=in_dtype)
def grouped_matmul(a: Any, b: Any, ends: Any) -> Any:
    """``jax.lax.ragged_dot``; rows behind the last group are 0."""
    return jax.lax.ragged_dot(a, b, jnp.diff(ends, prepend=0).astype(jnp.int32))


ACTIVATIONS = {
    "none": lambda x: x,
    "relu": jax.nn.relu,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "gelu_tanh": lambda x: jax.nn.gelu(x, approximate=True),
    "silu": jax.nn.silu,
}


@TABLE.serves("gemm_epilogue", "jax.numpy.matmul")
def gemm_epilogue(
    a: Any,
    b: Any,
    c: Any,
    bias: Any,
    alpha: float,
    beta: float,
    activation: str,
    transpose_a: bool,
    transpose_b: bool,
) -> Any:
    """``jax.numpy.matmul`` with a float32 result, the epilogue in float32, rounded once."""
    wide = jnp.promote_types(a.dtype, jnp.float32)
    left, right = a.T if transpose_a else a, b.T if transpose_b else b
    total = alpha * jnp.matmul(left, right, preferred_element_type=wide)
    total = total if c is None or not beta else total + beta * c.astype(wide)
    total = total if bias is None else total + bias.astype(wide)
    return ACTIVATIONS[activation](total).astype(a.dtype)


@TABLE.serves("matmul_a8w8", "jax.lax.dot_general")
def matmul_a8w8(a: Any, b: Any, a_scale: Any, b_scale: Any, bias: Any, out_dtype: str) -> Any:
    """``jax.lax.dot_general`` of codes with an int32 or float32 result, then scales and bias in float32."""
    kind = jnp.int32 if a.dtype == jnp.int8 else jnp.float32
    product = jax.lax.dot_general(a, b, (((1,), (1,)), ((), ())), preferred_element_type=kind).astype(jnp.float32)
    product = product * a_scale[:, None] * b_scale
    product = product if bias is None else product + bias
    return product.astype(out_dtype)


def weights_in_dtype(dtype: str) -> Numerics:
    """float32 inside, and softmax weights of 16-bit inputs rounded to their dtype before they meet v."""
    return library.weights_in_dtype(dtype, usual)


def _one_width(inputs: Inputs, params: Any) -> str | None:
    q, v = inputs["q"], inputs["v"]
    assert q is not None
    assert v is not None
    if q.shape[-1] == v.shape[-1]:
        return None
    return f"jax.nn.dot_product_attention has one head_dim for q, k and v, not {q.shape[-1]} and {v.shape[-1]}"


def _seen(queries: int, keys: int, causal: str, left: int = -1, right: int = -1) -> Any:
    """The mask (queries, keys) that bottom-right alignment and windows need."""
    shift = 0 if causal == "top_left" else keys - queries
    distance = jnp.arange(keys) - jnp.arange(queries)[:, None] - shift
    right = right if causal == "none" else 0
    seen = jnp.ones((queries, keys), bool)
    seen = seen if right < 0 else seen & (distance <= right)
    return seen if left < 0 else seen & (distance >= -left)


def _log_sum(q: Any, k: Any, seen: Any, scale: float | None, bias: Any) -> Any:
    """The log-sum-exp, whose residual JAX has in q's dtype, by ``jax.nn.logsumexp`` of float32 scores."""
    wide = jnp.promote_types(q.dtype, jnp.float32)
    k = jnp.repeat(k, q.shape[1] // max(k.shape[1], 1), axis=1)
    score = jnp.einsum("bhqd,bhkd->bhqk", q.astype(wide), k.astype(wide)) * (scale or q.shape[-1] ** -0.5)
    score = score if bias is None else score + bias.astype(wide)
    return jax.nn.logsumexp(jnp.where(seen, score, -jnp.inf), axis=-1)


@TABLE.serves("attention", "jax.nn.dot_product_attention", numerics=weights_in_dtype, refuses=_one_width)
def attention(q: Any, k: Any, v: Any, causal: str, scale: float | None) -> Any:
    """``jax.nn.dot_product_attention``; ``is_causal`` is the top-left mask, the bottom-right one is given."""
    seen = _seen(q.shape[2], k.shape[2], causal)
    mask = seen[None, None] if causal == "bottom_right" else None
    by_token = (jnp.swapaxes(x, 1, 2) for x in (q, k, v))
    out = jax.nn.dot_product_attention(*by_token, mask=mask, scale=scale, is_causal=causal == "top_left")
    return jnp.swapaxes(out, 1, 2), _log_sum(q, k, seen, scale, None)


@TABLE.serves(
    "flash_attention",
    "jax.nn.dot_product_attention",
    only={"softcap": (None,), "alibi": ("distance", "last_key")},
    numerics=weights_in_dtype,
    refuses=_one_width,
)
def flash_attention(
    q: Any, k: Any, v: Any, bias: Any, *, causal: str, window_left: int, window_right: int, scale: float | None
) -> Any:
    """``jax.nn.dot_product_attention`` with bias and mask."""
    seen = _seen(q.shape[2], k.shape[2], causal, window_left, window_right)
    by_token = (jnp.swapaxes(x, 1, 2) for x in (q, k, v))
    out = jax.nn.dot_product_attention(*by_token, bias=bias, mask=seen[None, None], scale=scale)
    return jnp.swapaxes(out, 1, 2), _log_sum(q, k, seen, scale, bias)


@TABLE.serves("causal_conv1d", "jax.lax.conv_general_dilated", numerics=in_dtype)
def causal_conv1d(x: Any, weight: Any, state: Any, bias: Any, fresh: Any, activation: str) -> Any:
    """``jax.lax.conv_general_dilated``, a group per channel, of the state and x."""
    state = state if fresh is None else jnp.where(fresh[:, None, None] == 1, 0, state)
    known = jnp.concatenate([state, x], axis=-1)
    out = jax.lax.conv_general_dilated(known, weight[:, None], (1,), "VALID", feature_group_count=x.shape[1])
    out = out if bias is None else out + bias[:, None]
    return jax.nn.silu(out) if activation == "silu" else out, known[..., x.shape[-1] :]


@TABLE.serves("moe_sum", "jax.numpy.sum", numerics=in_dtype)
def moe_sum(x: Any, topk_ids: Any, topk_weights: Any) -> Any:
    """``jax.numpy.sum`` in float32 of what ``jax.numpy.where`` keeps."""
    terms = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    kept = None if topk_ids is None else (topk_ids >= 0)[..., None]
    terms = terms if kept is None else jnp.where(kept, terms, 0)
    if topk_weights is not None:
        weights = topk_weights[..., None]
        terms = terms * (weights if kept is None else jnp.where(kept, weights, 0))
    return jnp.sum(terms, axis=1).astype(x.dtype)


@TABLE.serves(
    "moe_gate",
    "jax.lax.top_k",
    only={"groups": (1,), "scoring": ("softmax", "sigmoid"), "masked": ("excluded", "zero")},
)
def moe_gate(logits: Any, bias: Any, *, top_k: int, scoring: str, renormalise: bool, scaling: float) -> Any:
    """``jax.lax.top_k`` of ``jax.nn.softmax`` or ``jax.nn.sigmoid`` in float32."""
    wide = logits.astype(jnp.promote_types(logits.dtype, jnp.float32))
    scores = jax.nn.softmax(wide, axis=-1) if scoring == "softmax" else jax.nn.sigmoid(wide)
    _, ids = jax.lax.top_k(scores if bias is None else scores + bias, top_k)
    weights = jnp.take_along_axis(scores, ids, axis=-1)
    weights = weights / jnp.sum(weights, axis=-1, keepdims=True) if renormalise else weights
    return ids.astype(jnp.int32), weights * scaling
