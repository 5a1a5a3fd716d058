"""Caches, exchanges between ranks, and quantisation, by ``jax.numpy`` indexing, ``jax.lax`` collectives and casts.

Source: docs.jax.dev, ``jax.numpy.ndarray.at``, ``jax.lax.psum`` and its neighbours (0.10).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes

from refsim.conformance.backends.jax.table import TABLE, in_dtype


def _written(cells: Any, new: Any, slots: Any) -> Any:
    """Cells with those at ``slots`` replaced; ``at[…].set`` drops what lies outside, so -1 is moved there."""
    outside = jnp.where(slots < 0, len(cells), slots)
    return cells.at[outside].set(new, mode="drop")


@TABLE.serves("reshape_and_cache_flash", "jax.numpy.ndarray.at")
def reshape_and_cache_flash(key: Any, value: Any, key_cache: Any, value_cache: Any, slots: Any) -> Any:
    """``cache.at[slots].set(tokens, mode="drop")``."""

    def updated(cache: Any, new: Any) -> Any:
        return _written(cache.reshape(cache.shape[0] * cache.shape[1], *cache.shape[2:]), new, slots).reshape(
            cache.shape
        )

    return updated(key_cache, key), updated(value_cache, value)


@TABLE.serves("concat_and_cache_mla", "jax.numpy.ndarray.at")
def concat_and_cache_mla(latents: Any, rotated: Any, cache: Any, slots: Any) -> Any:
    """``cache.at[slots].set(tokens, mode="drop")``."""
    cells = cache.reshape(cache.shape[0] * cache.shape[1], cache.shape[2])
    return _written(cells, jnp.concatenate([latents, rotated], axis=-1), slots).reshape(cache.shape)


@TABLE.serves("copy_blocks", "jax.numpy.ndarray.at")
def copy_blocks(key_cache: Any, value_cache: Any, pairs: Any) -> Any:
    """``cache.at[to].set(cache[from])``."""
    source, target = pairs[:, 0], pairs[:, 1]
    return tuple(cache.at[target].set(cache[source]) for cache in (key_cache, value_cache))


@TABLE.serves("swap_blocks", "jax.numpy.ndarray.at")
def swap_blocks(source: Any, target: Any, from_blocks: Any, to_blocks: Any) -> Any:
    """``target.at[to_blocks].set(source[from_blocks])``."""
    return target.at[to_blocks].set(source[from_blocks])


@TABLE.serves("all_reduce", "jax.lax.psum", only={"order": ("any",)}, numerics=in_dtype)
def all_reduce(x: Any) -> Any:
    """``jax.lax.psum`` over the axis of ``jax.vmap``."""
    return jax.vmap(lambda mine: jax.lax.psum(mine, "rank"), axis_name="rank", axis_size=x.shape[0])(x)


@TABLE.serves("reduce_scatter", "jax.lax.psum_scatter", only={"order": ("any",)}, numerics=in_dtype)
def reduce_scatter(x: Any) -> Any:
    """``jax.lax.psum_scatter`` over the axis of ``jax.vmap``."""
    return jax.vmap(lambda mine: jax.lax.psum_scatter(mine, "rank", tiled=True), axis_name="rank")(x)


@TABLE.serves("all_gather", "jax.lax.all_gather")
def all_gather(x: Any) -> Any:
    """``jax.lax.all_gather`` over the axis of ``jax.vmap``."""
    return jax.vmap(lambda mine: jax.lax.all_gather(mine, "rank", axis=1, tiled=True), axis_name="rank")(x)


@TABLE.serves("all_to_all", "jax.lax.all_to_all")
def all_to_all(x: Any, counts: Any) -> Any:
    """``jax.lax.all_to_all`` over the axis of ``jax.vmap``, of what ``jax.numpy.where`` keeps."""
    sent = jnp.arange(x.shape[2]) < counts[:, :, None]
    kept = jnp.where(sent[..., None], x, 0)
    return jax.vmap(lambda mine: jax.lax.all_to_all(mine, "rank", 0, 0), axis_name="rank")(kept)


def _spread(scale: Any, block: str, rows: int, cols: int) -> Any:
    """The scale of each element, by ``jax.numpy.repeat``."""
    if "x" in block:
        high, wide = map(int, block.split("x"))
        return jnp.repeat(jnp.repeat(scale, high, axis=0), wide, axis=1)[:rows, :cols]
    return scale


@TABLE.serves("quantise_static", "jax.numpy.ndarray.astype", only={"rounding": ("nearest",)})
def quantise_static(x: Any, scale: Any, to: str, block: str) -> Any:
    """``jax.numpy.clip`` of the quotient and ``astype``; ``jax.numpy.rint`` before that for int8."""
    return _codes(x.astype(jnp.float32), _spread(scale, block, *x.shape), to)


def _codes(x: Any, scale: Any, to: str) -> Any:
    ratio = x / scale
    if to == "int8":
        return jnp.clip(jnp.rint(jnp.nan_to_num(ratio, nan=0.0, posinf=jnp.inf, neginf=-jnp.inf)), -128, 127).astype(
            jnp.int8
        )
    largest = float(ml_dtypes.finfo(to).max)
    return jnp.clip(ratio, -largest, largest).astype(to)


@TABLE.serves(
    "quantise",
    "jax.numpy.ndarray.astype",
    only={
        "rounding": ("nearest",),
        "nans": ("propagate",),
        "block": ("tensor", "token", "channel"),
    },
)
def quantise(x: Any, smooth: Any, *, to: str, block: str, largest: float | None, least: float, of_zero: str) -> Any:
    """``jax.numpy.max`` of the magnitudes, ``jax.numpy.clip`` and ``astype``."""
    wide = x.astype(jnp.float32) * (1 if smooth is None else smooth)
    axes = {"tensor": (0, 1), "token": (1,), "channel": (0,)}[block]
    amax = jnp.max(jnp.abs(wide), axis=axes, keepdims=True, initial=0)
    most = 127.0 if to == "int8" else float(ml_dtypes.finfo(to).max)
    scale = jnp.maximum(amax / (most if largest is None else largest), least)
    scale = jnp.where(amax == 0, 1, scale) if of_zero == "one" else scale
    return scale, _codes(wide, scale, to)


@TABLE.serves(
    "dequantise",
    "jax.numpy.ndarray.astype",
    dtypes=(
        "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "int8", "float4_e2m1fn", "int4", "uint4",
    ),
)  # fmt: skip
def dequantise(codes: Any, scale: Any, zero: Any, tensor_scale: Any, block: str, to: str) -> Any:
    """``astype`` of the codes to float32, then products, rounded once."""
    wide = codes.astype(jnp.float32)
    if zero is not None:
        wide = wide - _spread(zero.astype(jnp.float32), block, *codes.shape)
    out = wide * _spread(scale.astype(jnp.float32), block, *codes.shape)
    return (out if tensor_scale is None else out * tensor_scale).astype(to)
