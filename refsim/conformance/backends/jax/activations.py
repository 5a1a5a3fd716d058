"""Gated activations, norms, and rotations, as JAX models write them: each step an array of the inputs' dtype.

Source: docs.jax.dev, ``jax.nn`` and ``jax.lax`` (0.10).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from refsim.conformance.backends.jax.table import TABLE, in_dtype


def _gate_and_value(x: Any, bias: Any, pairing: str) -> tuple[Any, Any]:
    x = x if bias is None else x + bias
    half = x.shape[-1] // 2
    return (x[..., :half], x[..., half:]) if pairing == "halves" else (x[..., ::2], x[..., 1::2])


@TABLE.serves("silu_and_mul", "jax.nn.silu", numerics=in_dtype)
def silu_and_mul(x: Any, bias: Any, pairing: str, limit: float | None, rounding: str) -> Any:
    """``jax.nn.silu`` of the gate, times the value; with both cut off by ``jax.numpy.clip``."""
    gate, value = _gate_and_value(x, bias, pairing)
    if limit is not None:
        gate, value = jnp.clip(gate, max=limit), jnp.clip(value, -limit, limit)
    return jax.nn.silu(gate) * value


@TABLE.serves("gelu_and_mul", "jax.nn.gelu", numerics=in_dtype)
def gelu_and_mul(x: Any, bias: Any, pairing: str, approximate: str, rounding: str) -> Any:
    """``jax.nn.gelu`` of the gate, times the value."""
    gate, value = _gate_and_value(x, bias, pairing)
    return jax.nn.gelu(gate, approximate=approximate == "tanh") * value


@TABLE.serves("relu2_and_mul", "jax.nn.relu", numerics=in_dtype)
def relu2_and_mul(x: Any, bias: Any, pairing: str, rounding: str) -> Any:
    """``jax.numpy.square`` of ``jax.nn.relu`` of the gate, times the value."""
    gate, value = _gate_and_value(x, bias, pairing)
    return jnp.square(jax.nn.relu(gate)) * value


@TABLE.serves("swiglu_with_limit", "jax.nn.sigmoid", numerics=in_dtype)
def swiglu_with_limit(x: Any, bias: Any, pairing: str, alpha: float, limit: float) -> Any:
    """``jax.nn.sigmoid`` and ``jax.numpy.clip``."""
    gate, value = _gate_and_value(x, bias, pairing)
    gate, value = jnp.clip(gate, max=limit), jnp.clip(value, -limit, limit)
    return gate * jax.nn.sigmoid(alpha * gate) * (value + 1)


@TABLE.serves("layernorm", "jax.nn.standardize", numerics=in_dtype)
def layernorm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    """``jax.nn.standardize`` by its stable algorithm, then weight and bias."""
    out = jax.nn.standardize(x, axis=-1, epsilon=eps, algorithm="stable")
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


@TABLE.serves("groupnorm", "jax.nn.standardize", numerics=in_dtype)
def groupnorm(x: Any, weight: Any, bias: Any, groups: int, eps: float) -> Any:
    """``jax.nn.standardize`` of each group by its stable algorithm, then weight and bias."""
    batch, channels, positions = x.shape
    grouped = x.reshape(batch, groups, channels // groups * positions)
    out = jax.nn.standardize(grouped, axis=-1, epsilon=eps, algorithm="stable").reshape(x.shape)
    out = out if weight is None else out * weight[:, None]
    return out if bias is None else out + bias[:, None]


def over_rms(x: Any, eps: float) -> Any:
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    return wide * jax.lax.rsqrt(jnp.mean(jnp.square(wide), axis=-1, keepdims=True) + eps)


@TABLE.serves("rmsnorm", "jax.lax.rsqrt")
def rmsnorm(x: Any, weight: Any, eps: float) -> Any:
    """``jax.lax.rsqrt`` of the mean square in float32, rounded once."""
    return (over_rms(x, eps) * weight).astype(x.dtype)


@TABLE.serves("gemma_rmsnorm", "jax.lax.rsqrt")
def gemma_rmsnorm(x: Any, weight: Any, eps: float) -> Any:
    """``jax.lax.rsqrt`` of the mean square in float32, times 1 + weight, rounded once."""
    wide = over_rms(x, eps)
    return (wide * (1 + weight.astype(wide.dtype))).astype(x.dtype)


@TABLE.serves("t5_rmsnorm", "jax.lax.rsqrt")
def t5_rmsnorm(x: Any, weight: Any, eps: float) -> Any:
    """``jax.lax.rsqrt`` of the mean square in float32, rounded before the weight."""
    return over_rms(x, eps).astype(x.dtype) * weight


def turned(x: Any, cosine: Any, sine: Any, pairing: str) -> Any:
    """x (tokens, heads, head_dim) turned by angles (tokens, half) in float32 at least, and rounded once."""
    wide = jnp.promote_types(x.dtype, jnp.float32)
    cosine, sine = cosine[:, None].astype(wide), sine[:, None].astype(wide)
    half = cosine.shape[-1]
    front = x[..., : 2 * half].astype(wide)
    if pairing == "neox":
        first, second = front[..., :half], front[..., half:]
    else:
        first, second = front[..., ::2], front[..., 1::2]
    new = first * cosine - second * sine, second * cosine + first * sine
    turned = jnp.concatenate(new, axis=-1) if pairing == "neox" else jnp.stack(new, axis=-1).reshape(front.shape)
    return jnp.concatenate([turned.astype(x.dtype), x[..., 2 * half :]], axis=-1)


@TABLE.serves("rope", "jax.numpy")
def rope(x: Any, positions: Any, cos: Any, sin: Any, pairing: str) -> Any:
    """``jax.numpy`` arithmetic in float32, rounded once."""
    return turned(x, cos[positions], sin[positions], pairing)


@TABLE.serves("rope_backward", "jax.vjp")
def rope_backward(grad: Any, positions: Any, cos: Any, sin: Any, pairing: str) -> Any:
    """``jax.vjp`` of `rope`, which is linear in x."""
    _, pull = jax.vjp(lambda x: turned(x, cos[positions], sin[positions], pairing), jnp.zeros_like(grad))
    return pull(grad)[0]


@TABLE.serves("rope_qk", "jax.numpy", only={"plain_first": (False,)})
def rope_qk(q: Any, k: Any, positions: Any, cos: Any, sin: Any, offsets: Any, pairing: str) -> Any:
    """``jax.numpy`` arithmetic in float32, rounded once."""
    rows = positions if offsets is None else positions + offsets
    return turned(q, cos[rows], sin[rows], pairing), turned(k, cos[rows], sin[rows], pairing)


@TABLE.serves("rope_table", "jax.numpy.cos")
def rope_table(frequencies: Any, positions: Any, factor: float, magnitude: float) -> Any:
    """``jax.numpy.cos`` and ``jax.numpy.sin`` of ``jax.numpy.outer``."""
    angle = jnp.outer(positions.astype(frequencies.dtype), frequencies) / factor
    return jnp.cos(angle) * magnitude, jnp.sin(angle) * magnitude
