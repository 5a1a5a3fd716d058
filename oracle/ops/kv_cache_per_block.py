"""The paged cache in 8 bits with one scale per block and head, which grows as tokens are added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from oracle.formats import format_of
from oracle.operator import operator
from oracle.ops.kv_cache_quantised import CACHED, SHORT_FLOATS, Kind, updated
from oracle.signature import Array, Floats, Integers, Output, Range
from oracle.vocabulary import either


def _sizes_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    return None if sizes["block_size"] else "block_size = 0, and a block without cells has no scale"


def first_offsets(slots: Array, blocks: int, size: int) -> Array:
    """The first cell of each block that a token is written to; the block's size where none is."""
    first = np.full(blocks, size)
    kept = slots[slots >= 0]
    np.minimum.at(first, kept // size, kept % size)
    return first


def _scales(scales: Any, new: Any, slots: Array, first: Array, size: int, largest: float, least: float) -> Any:
    """Scales (heads, blocks) after tokens (tokens, heads, elements) were added."""
    after = scales.copy()
    for block in np.flatnonzero(first < size):
        tokens = new[np.flatnonzero((slots >= 0) & (slots // size == block))]
        own = np.maximum(np.max(np.abs(tokens), axis=(0, 2), initial=0.0), least) / largest
        after[:, block] = own if first[block] == 0 else np.maximum(scales[:, block], own)
    return after


@operator(family="kv_cache", check=_sizes_fit, dtypes=SHORT_FLOATS)
def reshape_and_cache_per_block(
    key: Annotated[Array, Floats("tokens heads head_dim")],
    value: Annotated[Array, Floats("tokens heads v_dim")],
    key_cache: Annotated[Array, Floats("blocks block_size heads head_dim", dtype=CACHED)],
    value_cache: Annotated[Array, Floats("blocks block_size heads v_dim", dtype=CACHED)],
    k_scales: Annotated[Array, Floats("heads blocks", dtype="float32")],
    v_scales: Annotated[Array, Floats("heads blocks", dtype="float32")],
    slots: Annotated[Array, Integers("tokens", below="blocks*block_size", low=-1)],
    *,
    to: Kind = "float8_e4m3fn",
    least: Annotated[float, Range(0.0, open=True)] = 1e-6,
) -> tuple[
    Annotated[Array, Output("new_k_scales", dtype="float32")], Annotated[Array, Output("new_v_scales", dtype="float32")]
]:
    """Write tokens into a cache in 8 bits, with a scale per block and head: ``max(scale, max|tokens| / largest)``.

    Where a block's scale grows, the codes of the tokens it held before are quantised anew: Q(code · old / scale).

    Parameters
    ----------
    key, value : array (tokens, heads, head_dim) and (tokens, heads, v_dim)
        New tokens; float16, bfloat16 or float32; finite numbers.
    key_cache, value_cache : array (blocks, block_size, heads, head_dim) and (…, v_dim)
        The caches before, in the format ``to``.
    k_scales, v_scales : float32 array (heads, blocks)
        The scales before; of a block whose first cell is written they are not read.
    slots : int32 or int64 array (tokens,)
        Cell of each token; -1 for a token that is not kept. No two tokens have the same cell, and tokens fill a block
        in order: the cells before the first that is written are those of tokens it holds already.
    to : dtype by name
        float8_e4m3fn, float8_e4m3fnuz, float8_e5m2 or int8.
    least : float
        The least magnitude that a scale is made for: 1e-6 in AITER.

    Returns
    -------
    new_k_scales, new_v_scales : float32 array (heads, blocks)
        The scales after: those of new tokens alone where a block's first cell is written. Blocks without new tokens
        keep theirs, NaN too.
    new_key_cache, new_value_cache : array
        The caches after, from the scales that were returned: Q(token / scale) in the cells that tokens have, and in
        those before them, where the scale grew, Q(code · old / scale). Every other cell keeps its bits, NaN too.

    Notes
    -----
    Rounding points: the scale; code · old / scale in float32, in either order; the quotient, by division or by the
    reciprocal of the scale, in float32; the codes once, to nearest, ties to even, saturated.

    Raises
    ------
    InputError
        A slot outside the cache, blocks without cells, or shapes and dtypes that disagree.

    Source: AITER, ``reshape_and_cache_with_block_quant`` (which lays its caches out for reading).

    Examples
    --------
    >>> cache, old = np.array([100, 0], np.int8).reshape(1, 2, 1, 1), np.ones((1, 1), np.float32)
    >>> key = np.array([[[254.0]]], np.float32)
    >>> scales, _, new, _ = reshape_and_cache_per_block(key, key, cache, cache, old, old, np.array([1]), to="int8")
    >>> scales, new[0, :, 0, 0]
    (array([[2.]]), array([ 50., 127.]))
    """
    blocks, size = key_cache.shape[:2]
    first = first_offsets(slots, blocks, size)
    largest = format_of(to).max
    new_k: Array = _scales(k_scales, key, slots, first, size, largest, least)
    new_v: Array = _scales(v_scales, value, slots, first, size, largest, least)
    return new_k, new_v


@reshape_and_cache_per_block.stage
def block_codes(
    key: Array,
    value: Array,
    key_cache: Array,
    value_cache: Array,
    k_scales: Array,
    v_scales: Array,
    slots: Array,
    new_k_scales: Array,
    new_v_scales: Array,
    *,
    to: Kind,
) -> tuple[
    Annotated[Array, Output("new_key_cache", chosen_by="to")],
    Annotated[Array, Output("new_value_cache", chosen_by="to")],
]:
    """The codes, new and old, from the scales that were returned."""
    new_key: Array = _codes(key_cache, key, k_scales, new_k_scales, slots, to)
    new_value: Array = _codes(value_cache, value, v_scales, new_v_scales, slots, to)
    return new_key, new_value


def _codes(cache: Any, new: Any, old: Any, scales: Any, slots: Array, to: str) -> Any:
    blocks, size = cache.shape[:2]
    first, target = first_offsets(slots, blocks, size), format_of(to)
    cache = cache.copy()
    for block in np.flatnonzero((first > 0) & (first < size)):
        before, after = old[:, block, np.newaxis], scales[:, block, np.newaxis]
        codes = cache[block, : first[block]]
        again = either(codes * before / after, codes * (before / after))
        cache[block, : first[block]] = np.where(after > before, np.clip(again, target.lowest, target.max), codes)
    kept = (slots >= 0)[:, np.newaxis]
    taken = np.swapaxes(scales[:, np.maximum(slots, 0) // size], 0, 1) if blocks else np.ones(kept.shape)
    return updated(cache, new, np.where(kept, taken, 1.0)[..., np.newaxis], slots, to)
