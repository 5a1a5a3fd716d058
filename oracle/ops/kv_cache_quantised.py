"""The paged cache in 8 bits: tokens quantised by a given scale, or by scales of their own that lie beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.formats import format_of
from oracle.operator import operator
from oracle.ops.kv_cache import written
from oracle.signature import Array, Floats, Integers, Output, Range

SHORT_FLOATS = ("float16", "bfloat16", "float32")
CACHED = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "int8")
Kind = Literal["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "int8"]


def updated(cache: Any, new: Any, scale: Any, slots: Array, to: str) -> Any:
    """A cache (blocks, block_size, …) with the codes of new tokens in their cells."""
    ratio, target = new / scale, format_of(to)
    if not target.has_nan:
        ratio = np.where(np.isnan(ratio), 0.0, ratio)
    codes = np.clip(ratio, target.lowest, target.max)
    return written(cache.reshape(cache.shape[0] * cache.shape[1], *cache.shape[2:]), codes, slots).reshape(cache.shape)


@operator(family="kv_cache", dtypes=SHORT_FLOATS)
def reshape_and_cache_quantised(
    key: Annotated[Array, Floats("tokens heads head_dim")],
    value: Annotated[Array, Floats("tokens heads v_dim")],
    key_cache: Annotated[Array, Floats("blocks block_size heads head_dim", dtype=CACHED)],
    value_cache: Annotated[Array, Floats("blocks block_size heads v_dim", dtype=CACHED)],
    k_scale: Annotated[Array, Floats("heads", dtype="float32")],
    v_scale: Annotated[Array, Floats("heads", dtype="float32")],
    slots: Annotated[Array, Integers("tokens", below="blocks*block_size", low=-1)],
    *,
    to: Kind = "float8_e4m3fn",
) -> tuple[
    Annotated[Array, Output("new_key_cache", chosen_by="to")],
    Annotated[Array, Output("new_value_cache", chosen_by="to")],
]:
    """Write tokens into a cache in 8 bits, with given scales: ``cache[block, offset, h] = Q(token[h] / scale[h])``.

    Parameters
    ----------
    key, value : array (tokens, heads, head_dim) and (tokens, heads, v_dim)
        New tokens; float16, bfloat16 or float32.
    key_cache, value_cache : array (blocks, block_size, heads, head_dim) and (…, v_dim)
        The caches before, in the format ``to``.
    k_scale, v_scale : float32 array (heads,)
        Scales, above 0; where there is one for all heads (vLLM), all are equal.
    slots : int32 or int64 array (tokens,)
        Cell of each token; -1 for a token that is not kept. No two tokens have the same cell.
    to : dtype by name
        float8_e4m3fn, float8_e4m3fnuz, float8_e5m2 or int8.

    Returns
    -------
    new_key_cache, new_value_cache : array
        The caches after, saturated; every cell that no token has keeps its bits, NaN too. A NaN, which int8 does not
        have, becomes 0 there.

    Notes
    -----
    Rounding points: the quotient, by division or by the reciprocal of the scale, in float32; the codes once, to
    nearest, ties to even.

    Raises
    ------
    InputError
        A slot outside the cache, or shapes and dtypes that disagree.

    Source: vLLM, ``reshape_and_cache_flash`` with kv_cache_dtype="fp8".

    Examples
    --------
    >>> key, cache = np.array([[[3.0]]], np.float32), np.zeros((1, 2, 1, 1), np.int8)
    >>> half = np.array([0.5], np.float32)
    >>> reshape_and_cache_quantised(key, -key, cache, cache, half, half, np.array([1]), to="int8")[1][..., 0, 0]
    array([[ 0., -6.]])
    """
    new_key: Array = updated(key_cache, key, k_scale[:, np.newaxis], slots, to)
    new_value: Array = updated(value_cache, value, v_scale[:, np.newaxis], slots, to)
    return new_key, new_value


def _cells_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    cells = sizes["blocks"] * sizes["block_size"]
    return (
        None if sizes["cells"] == cells else f"there are scales for {sizes['cells']} cells, but the caches have {cells}"
    )


def _token_scales(scales: Any, new: Any, slots: Array, to: str, least: float) -> Any:
    """Scales (heads, cells) with those of new tokens in their cells."""
    amax = np.max(np.abs(new), axis=-1, initial=0.0)
    return np.swapaxes(written(np.swapaxes(scales, 0, 1), np.maximum(amax / format_of(to).max, least), slots), 0, 1)


@operator(family="kv_cache", check=_cells_fit, dtypes=SHORT_FLOATS)
def reshape_and_cache_per_token(
    key: Annotated[Array, Floats("tokens heads head_dim")],
    value: Annotated[Array, Floats("tokens heads v_dim")],
    key_cache: Annotated[Array, Floats("blocks block_size heads head_dim", dtype=CACHED)],
    value_cache: Annotated[Array, Floats("blocks block_size heads v_dim", dtype=CACHED)],
    k_scales: Annotated[Array, Floats("heads cells", dtype="float32")],
    v_scales: Annotated[Array, Floats("heads cells", dtype="float32")],
    slots: Annotated[Array, Integers("tokens", below="cells", low=-1)],
    *,
    to: Kind = "float8_e4m3fn",
    least: Annotated[float, Range(0.0, open=True)] = 1e-12,
) -> tuple[
    Annotated[Array, Output("new_k_scales", dtype="float32")], Annotated[Array, Output("new_v_scales", dtype="float32")]
]:
    """Write tokens into a cache in 8 bits, each head with a scale of its own: ``max(max|token[h]| / largest, least)``.

    Parameters
    ----------
    key, value : array (tokens, heads, head_dim) and (tokens, heads, v_dim)
        New tokens; float16, bfloat16 or float32; finite numbers.
    key_cache, value_cache : array (blocks, block_size, heads, head_dim) and (…, v_dim)
        The caches before, in the format ``to``.
    k_scales, v_scales : float32 array (heads, cells)
        The scales before; cells = blocks · block_size.
    slots : int32 or int64 array (tokens,)
        Cell of each token; -1 for a token that is not kept. No two tokens have the same cell.
    to : dtype by name
        float8_e4m3fn, float8_e4m3fnuz, float8_e5m2 or int8.
    least : float
        The least scale, so that a token of zeros has one: 1e-12 in AITER.

    Returns
    -------
    new_k_scales, new_v_scales : float32 array (heads, cells)
        The scales after.
    new_key_cache, new_value_cache : array
        The caches after: Q(token[h] / scale) in the cells that tokens have. Every other cell keeps its bits, NaN too.

    Notes
    -----
    Rounding points: the scale; the quotient, by division or by the reciprocal of the scale, in float32; the codes
    once, to nearest, ties to even, from the scales that were returned.

    Raises
    ------
    InputError
        A slot outside the cache, or shapes and dtypes that disagree.

    Source: AITER, ``reshape_and_cache_with_pertoken_quant`` (which lays its caches out for reading).

    Examples
    --------
    >>> key, cache = np.array([[[1.0, -4.0]]], np.float32), np.zeros((1, 1, 1, 2), np.int8)
    >>> old = np.zeros((1, 1), np.float32)
    >>> scales, _, new, _ = reshape_and_cache_per_token(key, key, cache, cache, old, old, np.array([0]), to="int8")
    >>> new[0, 0]
    array([[  32., -127.]])
    """
    new_k: Array = _token_scales(k_scales, key, slots, to, least)
    new_v: Array = _token_scales(v_scales, value, slots, to, least)
    return new_k, new_v


@reshape_and_cache_per_token.stage
def token_codes(
    key: Array,
    value: Array,
    key_cache: Array,
    value_cache: Array,
    slots: Array,
    new_k_scales: Array,
    new_v_scales: Array,
    *,
    to: Kind,
) -> tuple[
    Annotated[Array, Output("new_key_cache", chosen_by="to")],
    Annotated[Array, Output("new_value_cache", chosen_by="to")],
]:
    """The codes, from the scales that were returned; tokens that are not kept are divided by 1."""

    def of_tokens(scales: Any) -> Any:
        kept = (slots >= 0)[:, np.newaxis]
        taken = np.swapaxes(scales[:, np.maximum(slots, 0)], 0, 1) if scales.shape[1] else np.ones(kept.shape)
        return np.where(kept, taken, 1.0)[..., np.newaxis]

    new_key: Array = updated(key_cache, key, of_tokens(new_k_scales), slots, to)
    new_value: Array = updated(value_cache, value, of_tokens(new_v_scales), slots, to)
    return new_key, new_value
