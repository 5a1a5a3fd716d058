"""Caches by PyTorch's indexing.

Source: docs.pytorch.org, ``torch.Tensor.index_copy`` and ``torch.Tensor.index_put`` (2.14).
"""

from __future__ import annotations

from typing import Any

import torch

from refsim.conformance.backends.torch.table import TABLE


def _written(cells: Any, new: Any, slots: Any) -> Any:
    """``index_copy`` of what has a slot."""
    kept = slots >= 0
    return cells.index_copy(0, slots[kept].long(), new[kept])


@TABLE.serves("reshape_and_cache_flash", "torch.Tensor.index_copy", compiles=False)
def reshape_and_cache_flash(key: Any, value: Any, key_cache: Any, value_cache: Any, slots: Any) -> Any:
    """``index_copy`` into the cells."""

    def updated(cache: Any, new: Any) -> Any:
        cells = cache.reshape(cache.shape[0] * cache.shape[1], *cache.shape[2:])
        return _written(cells, new, slots).reshape(cache.shape)

    return updated(key_cache, key), updated(value_cache, value)


@TABLE.serves("concat_and_cache_mla", "torch.Tensor.index_copy", compiles=False)
def concat_and_cache_mla(latents: Any, rotated: Any, cache: Any, slots: Any) -> Any:
    """``index_copy`` of ``torch.cat``."""
    cells = cache.reshape(cache.shape[0] * cache.shape[1], cache.shape[2])
    return _written(cells, torch.cat((latents, rotated), dim=-1), slots).reshape(cache.shape)


def _places(slots: Any, block_size: int) -> tuple[Any, Any, Any]:
    """Which tokens are kept, and block and offset of each of them."""
    kept = slots >= 0
    places = slots[kept].long()
    return kept, places // block_size, places % block_size


@TABLE.serves("reshape_and_cache", "torch.Tensor.index_put", compiles=False)
def reshape_and_cache(key: Any, value: Any, key_cache: Any, value_cache: Any, slots: Any) -> Any:
    """``index_put`` at block and offset."""
    kept, block, offset = _places(slots, key_cache.shape[3])
    new_keys, new_values = key_cache.clone(), value_cache.clone()
    new_keys[block, :, :, offset] = key[kept].reshape(-1, *key_cache.shape[1:3], key_cache.shape[4])
    new_values[block, :, :, offset] = value[kept]
    return new_keys, new_values


@TABLE.serves("reshape_and_cache_asm", "torch.Tensor.index_put", compiles=False)
def reshape_and_cache_asm(key: Any, value: Any, key_cache: Any, value_cache: Any, slots: Any) -> Any:
    """``index_put`` at block and offset, and for values at both parts of the offset."""
    kept, block, offset = _places(slots, key_cache.shape[3])
    x = value_cache.shape[4]
    new_keys, new_values = key_cache.clone(), value_cache.clone()
    new_keys[block, :, :, offset] = key[kept].reshape(-1, *key_cache.shape[1:3], key_cache.shape[4])
    new_values[block, :, offset // x, :, offset % x] = value[kept]
    return new_keys, new_values


@TABLE.serves("gather_cache", "torch.index_select", compiles=False)
def gather_cache(cache: Any, block_table: Any, lengths: Any, out: Any) -> Any:
    """``torch.index_select`` of the cells of each sequence."""
    size, result, start = cache.shape[1], out.clone(), 0
    cells = cache.reshape(cache.shape[0] * size, cache.shape[2])
    for sequence, length in enumerate(lengths.tolist()):
        token = torch.arange(length, device=cache.device)
        cell = block_table[sequence].long()[token // max(size, 1)] * size + token % max(size, 1)
        result[start : start + length] = torch.index_select(cells, 0, cell)
        start += length
    return result


@TABLE.serves("copy_blocks", "torch.Tensor.index_copy")
def copy_blocks(key_cache: Any, value_cache: Any, pairs: Any) -> Any:
    """``index_copy`` of ``torch.index_select``."""
    return tuple(swap_blocks(cache, cache, pairs[:, 0], pairs[:, 1]) for cache in (key_cache, value_cache))


@TABLE.serves("swap_blocks", "torch.Tensor.index_copy")
def swap_blocks(source: Any, target: Any, from_blocks: Any, to_blocks: Any) -> Any:
    """``index_copy`` of ``torch.index_select``."""
    return target.index_copy(0, to_blocks.long(), torch.index_select(source, 0, from_blocks.long()))
