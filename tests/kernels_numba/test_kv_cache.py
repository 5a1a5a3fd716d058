"""Writing tokens into a paged cache against NumPy: any slot, layout and shape."""

import numpy as np
import pytest

from oracle.cases import Case


def _case(dtype, tokens, blocks, size, heads, head_dim, v_dim, **fields):
    dims = {"tokens": tokens, "blocks": blocks, "block_size": size, "heads": heads}
    return Case("reshape_and_cache_flash", dtype, {**dims, "head_dim": head_dim, "v_dim": v_dim}, **fields)


@pytest.mark.parametrize(
    "sizes", [(5, 3, 4, 2, 8, 8), (1, 1, 1, 1, 1, 1), (0, 2, 2, 1, 3, 3), (7, 2, 8, 3, 65, 130), (3, 4, 1, 2, 5, 0)]
)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_tokens_reach_their_cells(judge, dtype, sizes):
    judge("reshape_and_cache_flash", _case(dtype, *sizes))


@pytest.mark.parametrize("layout", ["transposed", "padded", "strided", "misaligned"])
@pytest.mark.parametrize("value_class", ["nan_before", "all_skipped", "numbered"])
def test_other_cells_keep_their_bits(judge, layout, value_class):
    judge("reshape_and_cache_flash", _case("float32", 5, 3, 4, 2, 8, 7, value_class=value_class, layout=layout))


@pytest.mark.parametrize("integer", [np.int32, np.int64])
def test_a_slot_is_block_and_offset(run, integer):
    key, cache = np.array([[[5.0]], [[6.0]]], np.float32), np.zeros((2, 3, 1, 1), np.float32)
    inputs = {"key": key, "value": -key, "key_cache": cache, "value_cache": cache, "slots": np.array([4, -1], integer)}
    keys, values = run("reshape_and_cache_flash", inputs)
    assert keys[..., 0, 0].tolist() == [[0, 0, 0], [0, 5, 0]]
    assert values[..., 0, 0].tolist() == [[0, 0, 0], [0, -5, 0]]
    assert not cache.any()
