"""Reductions, the largest, and what samplers need of them, by ``jax.numpy``, ``jax.nn`` and ``jax.lax``.

Source: docs.jax.dev, the API reference of these modules (0.10).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from refsim.conformance.backends.jax.table import TABLE, in_dtype


@TABLE.serves("sum", "jax.numpy.sum")
def jax_sum(x: Any, axis: int | None) -> Any:
    """``jax.numpy.sum``, which adds up 16-bit numbers in float32."""
    return jnp.sum(x, axis=axis)


@TABLE.serves("mean", "jax.numpy.mean")
def mean(x: Any) -> Any:
    """``jax.numpy.mean``."""
    return jnp.mean(x, axis=-1)


@TABLE.serves("max", "jax.numpy.max")
def largest(x: Any) -> Any:
    """``jax.numpy.max``."""
    return jnp.max(x, axis=-1)


@TABLE.serves("argmax", "jax.numpy.argmax", only={"ties": ("lowest",)})
def argmax(x: Any) -> Any:
    """``jax.numpy.argmax``: the first of equals."""
    return jnp.argmax(x, axis=-1).astype(jnp.int32)


@TABLE.serves("greedy", "jax.numpy.argmax")
def greedy(logits: Any) -> Any:
    """``jax.numpy.argmax``."""
    return jnp.argmax(logits, axis=-1).astype(jnp.int32)


@TABLE.serves("topk", "jax.lax.top_k")
def topk(x: Any, k: int) -> Any:
    """``jax.lax.top_k``: ordered, and of equals the lowest index first; the oracle lists indices before values."""
    values, indices = jax.lax.top_k(x, k)
    return indices.astype(jnp.int32), values


@TABLE.serves("cumsum", "jax.numpy.cumulative_sum", numerics=in_dtype)
def cumsum(x: Any, exclusive: bool) -> Any:
    """``jax.numpy.cumulative_sum``, which adds up in x's dtype; with its initial 0, less the last, if exclusive."""
    total = jnp.cumulative_sum(x, axis=-1, include_initial=exclusive)
    return total[..., : x.shape[-1]]


@TABLE.serves("softmax", "jax.nn.softmax", numerics=in_dtype)
def softmax(x: Any) -> Any:
    """``jax.nn.softmax``, whose steps are arrays of x's dtype."""
    return jax.nn.softmax(x, axis=-1)


@TABLE.serves("log_softmax", "jax.nn.log_softmax", numerics=in_dtype)
def log_softmax(x: Any) -> Any:
    """``jax.nn.log_softmax``, whose steps are arrays of x's dtype."""
    return jax.nn.log_softmax(x, axis=-1)


@TABLE.serves("logsumexp", "jax.nn.logsumexp", numerics=in_dtype)
def logsumexp(x: Any) -> Any:
    """``jax.nn.logsumexp``, whose steps are arrays of x's dtype."""
    return jax.nn.logsumexp(x, axis=-1)


@TABLE.serves("temperature_softmax", "jax.nn.softmax")
def temperature_softmax(logits: Any, temperature: Any) -> Any:
    """``jax.nn.softmax`` of float32 logits over the temperature; ``jax.nn.one_hot`` of the best where that is 0."""
    wide = jnp.promote_types(logits.dtype, jnp.float32)
    greedy_row = temperature[:, None] == 0
    divisor = jnp.where(greedy_row, 1, temperature[:, None]).astype(wide)
    share = jax.nn.softmax(logits.astype(wide) / divisor, axis=-1)
    best = jax.nn.one_hot(jnp.argmax(logits, axis=-1), logits.shape[-1], dtype=wide)
    return jnp.where(greedy_row, best, share)
