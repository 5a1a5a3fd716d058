"""Writing new tokens into a paged cache: a block per token copies its heads to the cell that its slot names.

key[tokens, heads, head_dim] → key_cache[blocks, block_size, heads, head_dim], and value alike with v_dim:

    slot = slots[token]      block = slot // block_size, offset = slot % block_size      slot -1: nothing is written

    token t   │ h0: d0 d1 … │ h1: d0 d1 … │ …        thread t owns elements t, t + 128, … of the heads end to end
                  │
                  └─► cache[block, offset, h, d]     cells of other tokens stay as they are, bit for bit
"""

from typing import Any

import numpy as np
from numba import cuda

from refsim.library import Kernel, Launcher

THREADS = 128


@cuda.jit(device=True)
def copy_token(thread, token, cell_block, cell_offset, source, cache):
    """Copy source[token] (heads, elements) to cache[cell_block, cell_offset]."""
    heads, elements = source.shape[1], source.shape[2]
    for first in range(0, heads * elements, THREADS):
        index = first + thread
        if index < heads * elements:
            head = index // elements
            element = index % elements
            cache[cell_block, cell_offset, head, element] = source[token, head, element]


@cuda.jit
def reshape_and_cache_flash(key, value, slots, key_cache, value_cache):
    """Write key and value (tokens, heads, elements) into the cells of their slots, in place; one block per token."""
    thread = cuda.threadIdx.x
    token = cuda.blockIdx.x
    slot = slots[token]
    if slot >= 0:
        block_size = key_cache.shape[1]
        cell_block = slot // block_size
        cell_offset = slot % block_size
        copy_token(thread, token, cell_block, cell_offset, key, key_cache)
        copy_token(thread, token, cell_block, cell_offset, value, value_cache)


def run_reshape_and_cache_flash(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    key, value, slots = (inputs[name] for name in ("key", "value", "slots"))
    caches = [launcher.array(np.array(inputs[name], order="C")) for name in ("key_cache", "value_cache")]
    if len(slots) > 0 and key.size + value.size > 0:
        arrays = [launcher.array(array) for array in (key, value, slots)]
        launcher.launch(reshape_and_cache_flash, len(slots), THREADS, *arrays, *caches)
    return tuple(caches)


KERNELS = [
    Kernel(
        name="reshape_and_cache_flash",
        operators=("reshape_and_cache_flash",),
        dtypes=("float16", "float32"),
        run=run_reshape_and_cache_flash,
        numerics={"float16": "float32", "float32": "float32"},
        doc="One block per token copies its keys and values to the cell that its slot names.",
    ),
]
