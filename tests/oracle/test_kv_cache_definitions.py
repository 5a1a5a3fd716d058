"""The paged cache against loops over single elements, and what it refuses."""

import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.operator import InputError, find_operator


def flash(key, value, key_cache, value_cache, slots):
    size = key_cache.shape[1]
    for token, slot in enumerate(slots.tolist()):
        for head in range(key.shape[1]):
            for new, cache in ((key, key_cache), (value, value_cache)):
                for element in range(new.shape[2]):
                    if slot != -1:
                        cache[slot // size, slot % size, head, element] = new[token, head, element]
    return key_cache, value_cache


def reading(key, value, key_cache, value_cache, slots):
    size, x = key_cache.shape[3:]
    for token, slot in enumerate(slots.tolist()):
        if slot == -1:
            continue
        for head in range(key.shape[1]):
            for element in range(key.shape[2]):
                key_cache[slot // size, head, element // x, slot % size, element % x] = key[token, head, element]
            for element in range(value.shape[2]):
                if value_cache.ndim == 4:
                    value_cache[slot // size, head, element, slot % size] = value[token, head, element]
                else:
                    offset = slot % size
                    value_cache[slot // size, head, offset // x, element, offset % x] = value[token, head, element]
    return key_cache, value_cache


def mla(latents, rotated, cache, slots):
    for token, slot in enumerate(slots.tolist()):
        if slot >= 0:
            cell = cache[slot // cache.shape[1]][slot % cache.shape[1]]
            for element in range(cell.size):
                of_latents = element < latents.shape[1]
                cell[element] = latents[token, element] if of_latents else rotated[token, element - latents.shape[1]]
    return (cache,)


def gather(cache, table, lengths, out):
    row = 0
    for sequence, length in enumerate(lengths.tolist()):
        for place in range(length):
            out[row] = cache[table[sequence, place // cache.shape[1]]][place % cache.shape[1]]
            row += 1
    return (out,)


def copied(key_cache, value_cache, pairs):
    for source, target in pairs.tolist():
        key_cache[target], value_cache[target] = key_cache[source], value_cache[source]
    return key_cache, value_cache


def swapped(source, target, from_blocks, to_blocks):
    for one, other in zip(from_blocks.tolist(), to_blocks.tolist(), strict=True):
        target[other] = source[one]
    return (target,)


LOOPS = {
    "reshape_and_cache_flash": flash,
    "reshape_and_cache": reading,
    "reshape_and_cache_asm": reading,
    "concat_and_cache_mla": mla,
    "gather_cache": gather,
    "copy_blocks": copied,
    "swap_blocks": swapped,
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_over_elements_give_the_same(name):
    for case in make_cases(name, "float32", 30, seed=4):
        inputs = case.inputs()
        if sum(array.size for array in inputs.values()) > 20_000:
            continue
        values = find_operator(name).value(inputs, {})
        copies = [array.astype(np.float64) if array.dtype.kind == "f" else array for array in inputs.values()]
        for value, other in zip(values, LOOPS[name](*copies), strict=True):
            np.testing.assert_array_equal(value, other, err_msg=str(case))


def test_refusals():
    cache, key = np.zeros((2, 4, 1, 8), np.float32), np.zeros((1, 1, 8), np.float32)
    with pytest.raises(InputError, match=r"slots\[0\] = 8 must be at least -1 and below blocks\*block_size = 8"):
        find_operator("reshape_and_cache_flash")(key, key, cache, cache, np.array([8]))
    caches = np.zeros((2, 1, 3, 4, 4), np.float32), np.zeros((2, 1, 8, 4), np.float32)
    with pytest.raises(InputError, match="key_cache holds 3 groups of x = 4 elements, which must make up head_dim = 8"):
        find_operator("reshape_and_cache")(key, key, *caches, np.array([0]))
    caches = np.zeros((2, 1, 2, 4, 4), np.float32), np.zeros((2, 1, 2, 8, 4), np.float32)
    with pytest.raises(InputError, match="value_cache holds 2 groups of x = 4 cells, not block_size = 4"):
        find_operator("reshape_and_cache_asm")(key, key, *caches, np.array([0]))
    rows = np.zeros((1, 3), np.float32)
    with pytest.raises(InputError, match="a cell holds 5 elements, but latent = 3 and rope = 3 come in"):
        find_operator("concat_and_cache_mla")(rows, rows, np.zeros((1, 2, 5), np.float32), np.array([0]))
    pages = np.zeros((2, 4, 3), np.float32)
    with pytest.raises(InputError, match="a sequence of 9 tokens has only 8 cells in block_table"):
        find_operator("gather_cache")(pages, np.array([[0, 1]]), np.array([9]), np.zeros((9, 3), np.float32))
    with pytest.raises(InputError, match="the sequences have 7 tokens, but out has 6 rows"):
        find_operator("gather_cache")(pages, np.array([[0, 1]]), np.array([7]), np.zeros((6, 3), np.float32))
    with pytest.raises(InputError, match="pairs has 3 columns"):
        find_operator("copy_blocks")(rows, rows, np.zeros((1, 3), np.int64))
