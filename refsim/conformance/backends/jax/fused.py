"""Norms with what stands around them, rotations of several positions, and caches in parts, as JAX models write them.

Source: docs.jax.dev, ``jax.numpy`` and ``jax.lax`` (0.10).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from refsim.conformance.backends.jax.activations import over_rms, turned
from refsim.conformance.backends.jax.table import TABLE, in_dtype


def _normed(x: Any, weight: Any, eps: float, gain: str, rounding: str) -> Any:
    wide = over_rms(x, eps)
    factor = weight.astype(wide.dtype) + (gain == "one_plus_weight")
    return ((wide if rounding == "once" else wide.astype(x.dtype).astype(wide.dtype)) * factor).astype(x.dtype)


@TABLE.serves("fused_add_rmsnorm", "jax.lax.rsqrt", only={"normalised": ("rounded",)})
def fused_add_rmsnorm(x: Any, residual: Any, weight: Any, eps: float, gain: str, rounding: str) -> Any:
    """``jax.lax.rsqrt`` of the mean square of the sum, in float32."""
    total = x + residual
    return total, _normed(total, weight, eps, gain, rounding)


@TABLE.serves("fused_add_layernorm", "jax.nn.standardize", only={"normalised": ("rounded",)}, numerics=in_dtype)
def fused_add_layernorm(x: Any, residual: Any, weight: Any, bias: Any, eps: float) -> Any:
    """``jax.nn.standardize`` of the sum by its stable algorithm, then weight and bias."""
    total = x + residual
    out = jax.nn.standardize(total, axis=-1, epsilon=eps, algorithm="stable")
    out = out if weight is None else out * weight
    return total, out if bias is None else out + bias


@TABLE.serves("qk_norm", "jax.lax.rsqrt")
def qk_norm(q: Any, k: Any, q_weight: Any, k_weight: Any, eps: float, gain: str, rounding: str) -> Any:
    """``jax.lax.rsqrt`` of the mean square of each head, in float32."""
    return _normed(q, q_weight, eps, gain, rounding), _normed(k, k_weight, eps, gain, rounding)


@TABLE.serves("rope_2d", "jax.numpy")
def rope_2d(
    x: Any, rows: Any, columns: Any, cos_rows: Any, sin_rows: Any, cos_columns: Any, sin_columns: Any, pairing: str
) -> Any:
    """``jax.numpy`` arithmetic in float32, rounded once."""
    first, second = jnp.split(x, 2, axis=-1)
    by_row = turned(first, cos_rows[rows], sin_rows[rows], pairing)
    return jnp.concatenate([by_row, turned(second, cos_columns[columns], sin_columns[columns], pairing)], axis=-1)


@TABLE.serves("mrope", "jax.numpy", only={"interleaved": (False,)})
def mrope(x: Any, positions: Any, cos: Any, sin: Any, temporal: int, height: int, width: int, pairing: str) -> Any:
    """``jax.numpy`` arithmetic in float32, the angles of each section by its own positions."""

    def angles(table: Any) -> Any:
        parts = jnp.split(table[positions], [temporal, temporal + height], axis=-1)
        return jnp.concatenate([part[kind] for kind, part in enumerate(parts)], axis=-1)

    return turned(x, angles(cos), angles(sin), pairing)


def _placed(cache: Any, new: Any, slots: Any, order: tuple[int, ...]) -> Any:
    """A cache whose axes in this order are blocks, (parts of) cells, and the rest, with tokens at their slots."""
    ordered = jnp.transpose(cache, order)
    size = cache.size // max(cache.shape[0] * new[0:1].size, 1) if len(new) else 0
    if not size:
        return cache
    cells = ordered.reshape(cache.shape[0] * size, *new.shape[1:])
    cells = cells.at[jnp.where(slots < 0, len(cells), slots)].set(new, mode="drop")
    back = tuple(sorted(range(len(order)), key=order.__getitem__))
    return jnp.transpose(cells.reshape(ordered.shape), back)


@TABLE.serves("reshape_and_cache", "jax.numpy.ndarray.at")
def reshape_and_cache(key: Any, value: Any, key_cache: Any, value_cache: Any, slots: Any) -> Any:
    """``cells.at[slots].set(tokens, mode="drop")`` in the order of cells, and ``jax.numpy.transpose`` back."""
    return _placed(key_cache, key, slots, (0, 3, 1, 2, 4)), _placed(value_cache, value, slots, (0, 3, 1, 2))


@TABLE.serves("reshape_and_cache_asm", "jax.numpy.ndarray.at")
def reshape_and_cache_asm(key: Any, value: Any, key_cache: Any, value_cache: Any, slots: Any) -> Any:
    """``cells.at[slots].set(tokens, mode="drop")`` in the order of cells, and ``jax.numpy.transpose`` back."""
    return _placed(key_cache, key, slots, (0, 3, 1, 2, 4)), _placed(value_cache, value, slots, (0, 2, 4, 1, 3))


@TABLE.serves("causal_conv1d_update", "jax.lax.conv_general_dilated", numerics=in_dtype)
def causal_conv1d_update(x: Any, weight: Any, state: Any, slots: Any, bias: Any, activation: str) -> Any:
    """``jax.lax.conv_general_dilated`` of the states at their slots and x, and ``at[…].set`` of the states after."""
    here = slots >= 0
    known = jnp.concatenate([state[jnp.where(here, slots, 0)], x], axis=-1)
    out = jax.lax.conv_general_dilated(known, weight[:, None], (1,), "VALID", feature_group_count=x.shape[1])
    out = out if bias is None else out + bias[:, None]
    out = jax.nn.silu(out) if activation == "silu" else out
    after = state.at[jnp.where(here, slots, len(state))].set(known[..., x.shape[-1] :], mode="drop")
    return jnp.where(here[:, None, None], out, 0), after
