"""The cache of latent attention in 8 bits: with one scale that is given, or with a scale per tile of each token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from oracle.formats import format_of, round_to
from oracle.operator import operator
from oracle.ops.kv_cache import written
from oracle.ops.kv_cache_quantised import CACHED, SHORT_FLOATS, Kind, updated
from oracle.ops.quant_blocks import in_blocks, over_blocks, scale_shape
from oracle.signature import Array, Floats, Integers, Output, Range
from oracle.vocabulary import stepped

Tile = Literal["1x128", "1x64", "1x32", "token"]


def _entry_fits(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if sizes["one"] != 1:
        return f"a cache has one scale, not {sizes['one']}"
    wanted = sizes["latent"] + sizes["rope"]
    if sizes["entry"] == wanted:
        return None
    return f"cells have entry = {sizes['entry']} elements, but latent + rope = {wanted}"


@operator(family="kv_cache", check=_entry_fits, dtypes=SHORT_FLOATS)
def concat_and_cache_mla_quantised(
    latents: Annotated[Array, Floats("tokens latent")],
    rotated: Annotated[Array, Floats("tokens rope")],
    cache: Annotated[Array, Floats("blocks block_size entry", dtype=CACHED)],
    scale: Annotated[Array, Floats("one", dtype="float32")],
    slots: Annotated[Array, Integers("tokens", below="blocks*block_size", low=-1)],
    *,
    to: Kind = "float8_e4m3fn",
) -> Annotated[Array, Output("new_cache", chosen_by="to")]:
    """Write latents and rotated keys in 8 bits: ``cache[block, offset] = Q([latents[t], rotated[t]] / scale)``.

    Parameters
    ----------
    latents : array (tokens, latent)
        Compressed keys and values, 512 elements in DeepSeek's models; float16, bfloat16 or float32.
    rotated : array (tokens, rope)
        The keys' rotated part, 64 elements there; latents' dtype.
    cache : array (blocks, block_size, entry)
        The cache before, in the format ``to``; entry = latent + rope.
    scale : float32 array (1,)
        What a code is multiplied by when it is read; above 0.
    slots : int32 or int64 array (tokens,)
        Cell of each token; -1 for a token that is not kept. No two tokens have the same cell.
    to : dtype by name
        float8_e4m3fn, float8_e4m3fnuz, float8_e5m2 or int8.

    Returns
    -------
    new_cache : array (blocks, block_size, entry)
        The cache after, saturated; every cell that no token has keeps its bits, NaN too. A NaN, which int8 does not
        have, becomes 0 there.

    Notes
    -----
    Rounding points: the quotient, by division or by the reciprocal of the scale, in float32; the codes once, to
    nearest, ties to even.

    Raises
    ------
    InputError
        A slot outside the cache, a cell of another size, more than one scale, or shapes and dtypes that disagree.

    Source: vLLM and AITER, ``concat_and_cache_mla`` with kv_cache_dtype="fp8".

    Examples
    --------
    >>> one, cache = np.ones((1, 1), np.float32), np.zeros((1, 2, 2), np.int8)
    >>> concat_and_cache_mla_quantised(one, -one, cache, np.array([0.25], np.float32), np.array([1]), to="int8")
    array([[[ 0.,  0.],
            [ 4., -4.]]])
    """
    new_cache: Array = updated(cache, np.concatenate([latents, rotated], axis=-1), scale, slots, to)
    return new_cache


def _tiles_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    needed = scale_shape(params["tile"], sizes["tokens"], sizes["latent"])[1]
    if sizes["tiles"] == needed:
        return None
    return f"latent = {sizes['latent']} has {needed} tiles of {params['tile']}, but cells have {sizes['tiles']} scales"


def _power(scale: Array) -> Array:
    """The least power of two that is not below a scale, as a float32 number."""
    with np.errstate(all="ignore"):
        exponent = np.ceil(np.log2(scale))
        exponent = np.where(np.exp2(exponent - 1) >= scale, exponent - 1, exponent)
        return round_to(np.exp2(exponent), "float32")


@operator(family="kv_cache", check=_tiles_fit, dtypes=SHORT_FLOATS)
def concat_and_cache_mla_per_tile(
    latents: Annotated[Array, Floats("tokens latent")],
    rotated: Annotated[Array, Floats("tokens rope")],
    code_cache: Annotated[Array, Floats("blocks block_size latent", dtype=CACHED)],
    scale_cache: Annotated[Array, Floats("blocks block_size tiles", dtype="float32")],
    rope_cache: Annotated[Array, Floats("blocks block_size rope")],
    slots: Annotated[Array, Integers("tokens", below="blocks*block_size", low=-1)],
    *,
    to: Kind = "float8_e4m3fn",
    tile: Tile = "1x128",
    scales: Literal["any", "power_of_two"] = "any",
    least: Annotated[float, Range(0.0, open=True)] = 2.0**-126,
) -> tuple[
    Annotated[Array, Output("new_scale_cache", dtype="float32")],
    Annotated[Array, Output("new_rope_cache", like="rope_cache")],
]:
    """Write latents in 8 bits with a scale per tile, and rotated keys as they are: ``max(max|tile| / largest, least)``.

    Parameters
    ----------
    latents : array (tokens, latent)
        Compressed keys and values, 512 elements in DeepSeek's models; float16, bfloat16 or float32; finite numbers.
    rotated : array (tokens, rope)
        The keys' rotated part, 64 elements there; latents' dtype.
    code_cache : array (blocks, block_size, latent)
        Codes before, in the format ``to``.
    scale_cache : float32 array (blocks, block_size, tiles)
        Scales before, those of a token side by side.
    rope_cache : array (blocks, block_size, rope)
        Rotated parts before; latents' dtype.
    slots : int32 or int64 array (tokens,)
        Cell of each token; -1 for a token that is not kept. No two tokens have the same cell.
    to : dtype by name
        float8_e4m3fn, float8_e4m3fnuz, float8_e5m2 or int8.
    tile : "1x128", "1x64", "1x32" or "token"
        What shares a scale: that many elements of a token, 128 in vLLM and FlashMLA, or all of its latent; the last
        tile may be smaller.
    scales : "any" or "power_of_two"
        Whether a scale is as it is (vLLM's fp8_ds_mla), or the next power of two (use_ue8m0).
    least : float
        Lower limit of the scales before they become powers of two: the least normal float32 number in vLLM's
        fp8_ds_mla, 1e-4 / 448 in its indexer's cache.

    Returns
    -------
    new_scale_cache : float32 array (blocks, block_size, tiles)
        The scales after.
    new_rope_cache : array (blocks, block_size, rope)
        The rotated parts after, copied.
    new_code_cache : array (blocks, block_size, latent)
        Q(tile / scale) in the cells that tokens have, from the scales that were returned. Every other cell of all
        three keeps its bits, NaN too.

    Notes
    -----
    Rounding points: the scale; the quotient, by division or by the reciprocal of the scale, in float32; the codes
    once, to nearest, ties to even.

    The three caches may be views of one: vLLM and FlashMLA pack a cell of 656 bytes, 512 codes, 4 scales and 64
    rotated elements of 16 bits; vLLM's indexer the codes of a whole block and then its scales (rope = 0).

    Raises
    ------
    InputError
        A slot outside the cache, another number of scales than of tiles, or shapes and dtypes that disagree.

    Source: vLLM, ``concat_and_cache_mla`` with kv_cache_dtype="fp8_ds_mla" and ``indexer_k_quant_and_cache``;
    FlashMLA, FP8 KV cache format.

    Examples
    --------
    >>> latents, codes = np.array([[1.0, -4.0]], np.float32), np.zeros((1, 1, 2), np.int8)
    >>> empty, rotated = np.zeros((1, 1, 1), np.float32), np.array([[3.0]], np.float32)
    >>> given = latents, rotated, codes, empty, empty, np.array([0])
    >>> scale, rope, code = concat_and_cache_mla_per_tile(*given, to="int8", scales="power_of_two")
    >>> scale.tolist(), rope.tolist(), code.tolist()
    ([[[0.0625]]], [[[3.0]]], [[[16.0, -64.0]]])
    """
    amax = np.max(in_blocks(np.abs(latents), tile), axis=(1, 3), initial=0.0)
    new = np.maximum(amax / format_of(to).max, least)
    new_scales: Array = _written(scale_cache, new, slots)
    if scales == "power_of_two":
        fresh = _written(np.zeros(scale_cache.shape, bool), np.ones(new.shape, bool), slots)
        new_scales = stepped(new_scales, lambda scale: np.where(fresh, _power(scale), scale))
    new_rope: Array = _written(rope_cache, rotated, slots)
    return new_scales, new_rope


def _written(cache: Any, new: Any, slots: Array) -> Any:
    blocks, size, columns = cache.shape
    return written(cache.reshape(blocks * size, columns), new, slots).reshape(cache.shape)


@concat_and_cache_mla_per_tile.stage
def tile_codes(
    latents: Array, code_cache: Array, slots: Array, new_scale_cache: Array, *, to: Kind, tile: Tile
) -> Annotated[Array, Output("new_code_cache", chosen_by="to")]:
    """The codes, from the scales that were returned; tokens that are not kept are divided by 1."""
    blocks, size, tiles = new_scale_cache.shape
    cells = new_scale_cache.reshape(blocks * size, tiles)
    taken = cells[np.maximum(slots, 0)] if len(cells) else np.ones((len(slots), tiles))
    scale = np.where((slots >= 0)[:, np.newaxis], taken, 1.0)
    new_codes: Array = updated(code_cache, latents, over_blocks(scale, tile, *latents.shape), slots, to)
    return new_codes
