"""Writing into the paged cache of keys and values, and reading from it: copies, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from oracle.operator import operator
from oracle.signature import Array, Floats, InputError, Integers, Output

SHORT_FLOATS = ("float16", "bfloat16", "float32")


def written(cells: Any, new: Any, slots: Array) -> Any:
    """Cells of a cache (cells, …), those at `slots` replaced by new ones (tokens, …); slot -1 is skipped."""
    source = np.arange(len(cells))
    kept = slots >= 0
    source[slots[kept]] = len(cells) + np.flatnonzero(kept)
    return np.concatenate([cells, new])[source]


@operator(family="kv_cache", dtypes=SHORT_FLOATS)
def reshape_and_cache_flash(
    key: Annotated[Array, Floats("tokens heads head_dim")],
    value: Annotated[Array, Floats("tokens heads v_dim")],
    key_cache: Annotated[Array, Floats("blocks block_size heads head_dim")],
    value_cache: Annotated[Array, Floats("blocks block_size heads v_dim")],
    slots: Annotated[Array, Integers("tokens", below="blocks*block_size", low=-1)],
) -> tuple[
    Annotated[Array, Output("new_key_cache", like="key_cache")],
    Annotated[Array, Output("new_value_cache", like="value_cache")],
]:
    """Write tokens into a paged cache: ``cache[slot // block_size, slot % block_size] = token``.

    Parameters
    ----------
    key, value : array (tokens, heads, head_dim) and (tokens, heads, v_dim)
        New tokens; float16, bfloat16 or float32.
    key_cache, value_cache : array (blocks, block_size, heads, head_dim) and (…, v_dim)
        The caches before; key's dtype.
    slots : int32 or int64 array (tokens,)
        Cell of each token; -1 for a token that is not kept. No two tokens have the same cell.

    Returns
    -------
    new_key_cache, new_value_cache : array
        The caches after; every cell that no token has keeps its bits, NaN too.

    Notes
    -----
    Rounding points: none.

    Raises
    ------
    InputError
        A slot outside the cache, or shapes and dtypes that disagree.

    Source: vLLM, ``reshape_and_cache_flash``.

    Examples
    --------
    >>> cache = np.zeros((1, 2, 1, 1))
    >>> key = np.array([[[5.0]], [[6.0]]], np.float32)
    >>> new, _ = reshape_and_cache_flash(key, -key, *[cache.astype(np.float32)] * 2, np.array([1, -1]))
    >>> new[..., 0, 0]
    array([[0., 5.]])
    """

    def updated(cache: Array, new: Array) -> Array:
        cells: Array = written(cache.reshape(cache.shape[0] * cache.shape[1], *cache.shape[2:]), new, slots)
        return cells.reshape(cache.shape)

    return updated(key_cache, key), updated(value_cache, value)


def _paged(cache: Any, new: Any, slots: Array, axes: tuple[int, ...]) -> Any:
    """A cache whose axes in the order `axes` are blocks, (parts of) cells of a block, heads, parts of a head."""
    ordered = np.transpose(cache, axes)
    blocks, size = ordered.shape[0], int(np.prod(cache.shape)) // max(int(np.prod(new.shape[1:])) * cache.shape[0], 1)
    cells = written(ordered.reshape(blocks * size, *new.shape[1:]), new, slots)
    back = tuple(int(axis) for axis in np.argsort(axes))
    return np.transpose(cells.reshape(ordered.shape), back)


def _groups_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    groups, x = sizes["groups"], sizes["x"]
    if groups * x == sizes["head_dim"] and x and sizes["heads"] and sizes["v_dim"]:
        return None
    return f"key_cache holds {groups} groups of x = {x} elements, which must make up head_dim = {sizes['head_dim']}"


@operator(family="kv_cache", check=_groups_fit, dtypes=SHORT_FLOATS)
def reshape_and_cache(
    key: Annotated[Array, Floats("tokens heads head_dim")],
    value: Annotated[Array, Floats("tokens heads v_dim")],
    key_cache: Annotated[Array, Floats("blocks heads groups block_size x")],
    value_cache: Annotated[Array, Floats("blocks heads v_dim block_size")],
    slots: Annotated[Array, Integers("tokens", below="blocks*block_size", low=-1)],
) -> tuple[
    Annotated[Array, Output("new_key_cache", like="key_cache")],
    Annotated[Array, Output("new_value_cache", like="value_cache")],
]:
    """Write tokens into a cache laid out for reading: ``key_cache[block, h, d // x, offset, d % x] = key[t, h, d]``.

    Parameters
    ----------
    key, value : array (tokens, heads, head_dim) and (tokens, heads, v_dim)
        New tokens; float16, bfloat16 or float32; at least one head.
    key_cache : array (blocks, heads, groups, block_size, x)
        The keys before; groups · x = head_dim, with x = 16 bytes of elements in vLLM and AITER.
    value_cache : array (blocks, heads, v_dim, block_size)
        The values before, a cell's offset last.
    slots : int32 or int64 array (tokens,)
        Cell of each token, block · block_size + offset; -1 for a token that is not kept. No two have the same cell.

    Returns
    -------
    new_key_cache, new_value_cache : array
        The caches after; every cell that no token has keeps its bits, NaN too.

    Notes
    -----
    Rounding points: none.

    Raises
    ------
    InputError
        A slot outside the cache, groups that do not make up the head, or shapes and dtypes that disagree.

    Source: vLLM, ``reshape_and_cache``; AITER, ``reshape_and_cache`` with asm_layout=False.

    Examples
    --------
    >>> key = np.array([[[1.0, 2.0, 3.0, 4.0]]], np.float32)
    >>> caches = np.zeros((1, 1, 2, 1, 2), np.float32), np.zeros((1, 1, 4, 1), np.float32)
    >>> reshape_and_cache(key, -key, *caches, np.array([0]))[0][0, 0]
    array([[[1., 2.]],
    <BLANKLINE>
           [[3., 4.]]])
    """
    new_key: Array = _paged(key_cache, key, slots, (0, 3, 1, 2, 4))
    new_value: Array = _paged(value_cache, value, slots, (0, 3, 1, 2))
    return new_key, new_value


def _both_fit(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    whole, x = sizes["offset_groups"] * sizes["x"], sizes["x"]
    if whole != sizes["block_size"]:
        groups, size = sizes["offset_groups"], sizes["block_size"]
        return f"value_cache holds {groups} groups of x = {x} cells, not block_size = {size}"
    return _groups_fit(sizes, params)


@operator(family="kv_cache", check=_both_fit, dtypes=SHORT_FLOATS)
def reshape_and_cache_asm(
    key: Annotated[Array, Floats("tokens heads head_dim")],
    value: Annotated[Array, Floats("tokens heads v_dim")],
    key_cache: Annotated[Array, Floats("blocks heads groups block_size x")],
    value_cache: Annotated[Array, Floats("blocks heads offset_groups v_dim x")],
    slots: Annotated[Array, Integers("tokens", below="blocks*block_size", low=-1)],
) -> tuple[
    Annotated[Array, Output("new_key_cache", like="key_cache")],
    Annotated[Array, Output("new_value_cache", like="value_cache")],
]:
    """As `reshape_and_cache`, but ``value_cache[block, h, offset // x, d, offset % x] = value[t, h, d]``.

    Parameters
    ----------
    key, value : array (tokens, heads, head_dim) and (tokens, heads, v_dim)
        New tokens; float16, bfloat16 or float32; at least one head.
    key_cache : array (blocks, heads, groups, block_size, x)
        The keys before; groups · x = head_dim.
    value_cache : array (blocks, heads, offset_groups, v_dim, x)
        The values before; offset_groups · x = block_size.
    slots : int32 or int64 array (tokens,)
        Cell of each token, block · block_size + offset; -1 for a token that is not kept. No two have the same cell.

    Returns
    -------
    new_key_cache, new_value_cache : array
        The caches after; every cell that no token has keeps its bits, NaN too.

    Notes
    -----
    Rounding points: none.

    Raises
    ------
    InputError
        A slot outside the cache, groups that do not fit, or shapes and dtypes that disagree.

    Source: AITER, ``reshape_and_cache`` with asm_layout=True.

    Examples
    --------
    >>> key = np.array([[[1.0, 2.0]]], np.float32)
    >>> caches = np.zeros((1, 1, 1, 2, 2), np.float32), np.zeros((1, 1, 1, 2, 2), np.float32)
    >>> reshape_and_cache_asm(key, key, *caches, np.array([1]))[1][0, 0, 0]
    array([[0., 1.],
           [0., 2.]])
    """
    new_key: Array = _paged(key_cache, key, slots, (0, 3, 1, 2, 4))
    new_value: Array = _paged(value_cache, value, slots, (0, 2, 4, 1, 3))
    return new_key, new_value


def _entry_fits(sizes: Mapping[str, int], params: Mapping[str, Any]) -> str | None:
    if sizes["latent"] + sizes["rope"] == sizes["entry"]:
        return None
    return f"a cell holds {sizes['entry']} elements, but latent = {sizes['latent']} and rope = {sizes['rope']} come in"


@operator(family="kv_cache", check=_entry_fits, dtypes=SHORT_FLOATS)
def concat_and_cache_mla(
    latents: Annotated[Array, Floats("tokens latent")],
    rotated: Annotated[Array, Floats("tokens rope")],
    cache: Annotated[Array, Floats("blocks block_size entry")],
    slots: Annotated[Array, Integers("tokens", below="blocks*block_size", low=-1)],
) -> Annotated[Array, Output("new_cache", like="cache")]:
    """Write latents and rotated keys of MLA side by side: ``cache[block, offset] = [latents[t], rotated[t]]``.

    Parameters
    ----------
    latents : array (tokens, latent)
        Compressed keys and values, 512 elements in DeepSeek's models; float16, bfloat16 or float32.
    rotated : array (tokens, rope)
        The keys' rotated part, 64 elements there.
    cache : array (blocks, block_size, entry)
        The cache before; entry = latent + rope.
    slots : int32 or int64 array (tokens,)
        Cell of each token; -1 for a token that is not kept. No two tokens have the same cell.

    Returns
    -------
    new_cache : array (blocks, block_size, entry)
        The cache after; every cell that no token has keeps its bits, NaN too.

    Notes
    -----
    Rounding points: none.

    Raises
    ------
    InputError
        A slot outside the cache, a cell of another size, or shapes and dtypes that disagree.

    Source: vLLM, ``concat_and_cache_mla`` with kv_cache_dtype="auto".

    Examples
    --------
    >>> one = np.ones((1, 1), np.float32)
    >>> concat_and_cache_mla(one, 2 * one, np.zeros((1, 2, 2), np.float32), np.array([1]))
    array([[[0., 0.],
            [1., 2.]]])
    """
    blocks, size, entry = cache.shape
    new = np.concatenate([latents, rotated], axis=-1)
    cells: Array = written(cache.reshape(blocks * size, entry), new, slots)
    return cells.reshape(cache.shape)


@operator(family="kv_cache", dtypes=SHORT_FLOATS)
def gather_cache(
    cache: Annotated[Array, Floats("blocks block_size entry")],
    block_table: Annotated[Array, Integers("sequences most", below="blocks")],
    lengths: Annotated[Array, Integers("sequences")],
    out: Annotated[Array, Floats("tokens entry")],
) -> Annotated[Array, Output("gathered", like="out")]:
    """Read sequences from a paged cache, end to end: ``gathered = [cache[block_table[s, i // size], i % size]]``.

    Parameters
    ----------
    cache : array (blocks, block_size, entry)
        float16, bfloat16 or float32.
    block_table : int32 or int64 array (sequences, most)
        The blocks of each sequence in order; those past its end are not looked at.
    lengths : int32 or int64 array (sequences,)
        Tokens of each sequence.
    out : array (tokens, entry)
        What the result holds before; cache's dtype.

    Returns
    -------
    gathered : array (tokens, entry)
        The sequences' tokens; rows past the last one keep their bits.

    Notes
    -----
    Rounding points: none.

    Raises
    ------
    InputError
        A sequence is longer than its row of the table, or all together than the result.

    Source: vLLM, ``cp_gather_cache``.

    Examples
    --------
    >>> cache = np.arange(4, dtype=np.float32).reshape(2, 2, 1)
    >>> gather_cache(cache, np.array([[1, 0]]), np.array([3]), np.zeros((4, 1), np.float32))[:, 0]
    array([2., 3., 0., 0.])
    """
    blocks, size, entry = cache.shape
    most, total = block_table.shape[1] * size, int(lengths.sum())
    if (lengths > most).any():
        raise InputError(f"gather_cache: a sequence of {lengths.max()} tokens has only {most} cells in block_table")
    if total > len(out):
        raise InputError(f"gather_cache: the sequences have {total} tokens, but out has {len(out)} rows")
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    cell = block_table[sequence, place // max(size, 1)] * size + place % max(size, 1)
    gathered: Array = np.concatenate([cache.reshape(blocks * size, entry)[cell.astype(np.int64)], out[total:]])
    return gathered


@operator(family="kv_cache", dtypes=SHORT_FLOATS)
def copy_blocks(
    key_cache: Annotated[Array, Floats("blocks cells")],
    value_cache: Annotated[Array, Floats("blocks v_cells")],
    pairs: Annotated[Array, Integers("copies two", below="blocks")],
) -> tuple[
    Annotated[Array, Output("new_key_cache", like="key_cache")],
    Annotated[Array, Output("new_value_cache", like="value_cache")],
]:
    """Copy whole blocks of both caches: ``cache[to] = cache[from]`` for each pair (from, to).

    Parameters
    ----------
    key_cache, value_cache : array (blocks, cells) and (blocks, v_cells)
        The caches, each block flat; float16, bfloat16 or float32.
    pairs : int32 or int64 array (copies, 2)
        From which block to which; no block is written twice, and none is written that is read.

    Returns
    -------
    new_key_cache, new_value_cache : array
        The caches after; every other block keeps its bits.

    Notes
    -----
    Rounding points: none.

    Raises
    ------
    InputError
        pairs does not hold pairs, or a block outside the cache.

    Source: vLLM, ``copy_blocks``.

    Examples
    --------
    >>> cache = np.array([[1.0], [2.0]], np.float32)
    >>> copy_blocks(cache, cache, np.array([[0, 1]]))[0]
    array([[1.],
           [1.]])
    """
    if pairs.shape[1] != 2:
        raise InputError(f"copy_blocks: pairs has {pairs.shape[1]} columns; give (from, to)")
    source = np.arange(len(key_cache))
    source[pairs[:, 1]] = pairs[:, 0]
    return key_cache[source], value_cache[source]


@operator(family="kv_cache", dtypes=SHORT_FLOATS)
def swap_blocks(
    source: Annotated[Array, Floats("source_blocks cells")],
    target: Annotated[Array, Floats("target_blocks cells")],
    from_blocks: Annotated[Array, Integers("copies", below="source_blocks")],
    to_blocks: Annotated[Array, Integers("copies", below="target_blocks")],
) -> Annotated[Array, Output("new_target", like="target")]:
    """Copy blocks from one cache into another: ``target[to_blocks] = source[from_blocks]``.

    Parameters
    ----------
    source : array (source_blocks, cells)
        The cache that is read, each block flat; float16, bfloat16 or float32.
    target : array (target_blocks, cells)
        The cache that is written; source's dtype.
    from_blocks, to_blocks : int32 or int64 array (copies,)
        Which block of source goes to which of target; none of target is written twice.

    Returns
    -------
    new_target : array (target_blocks, cells)
        target after; every other block keeps its bits.

    Notes
    -----
    Rounding points: none.

    Raises
    ------
    InputError
        A block outside its cache, or shapes and dtypes that disagree.

    Source: vLLM, ``swap_blocks``.

    Examples
    --------
    >>> zeros, ones = np.zeros((2, 1), np.float32), np.ones((1, 1), np.float32)
    >>> swap_blocks(ones, zeros, np.array([0]), np.array([1]))
    array([[0.],
           [1.]])
    """
    row = np.arange(len(target))
    row[to_blocks] = len(target) + from_blocks
    new: Array = np.concatenate([target, source])[row]
    return new
