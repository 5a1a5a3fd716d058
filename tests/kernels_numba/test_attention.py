"""Both attentions against NumPy: masks, grouped heads, ragged and empty extents, rows that see nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.cases import Case

ATTENTIONS = ("attention_five", "attention_fused")
DTYPES = ("float16", "float32", "float64")
MASKS = ("none", "top_left", "bottom_right")


def _case(dtype, batch, heads, kv_heads, queries, keys, head_dim, v_dim, layout="contiguous", value="normal", **params):
    dims = {
        "batch": batch,
        "heads": heads,
        "kv_heads": kv_heads,
        "queries": queries,
        "keys": keys,
        "head_dim": head_dim,
        "v_dim": v_dim,
    }
    return Case("attention", dtype, dims, params, value, layout)


@pytest.mark.parametrize("causal", MASKS)
@pytest.mark.parametrize(
    "shape",
    [(1, 1, 1, 1, 1, 1, 1), (2, 4, 2, 17, 35, 20, 18), (1, 3, 1, 33, 16, 16, 70), (1, 2, 2, 5, 47, 33, 16)],
    ids=str,
)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", ATTENTIONS)
def test_attends(judge, kernel, dtype, shape, causal):
    judge(kernel, _case(dtype, *shape, causal=causal))


@pytest.mark.parametrize(
    "shape", [(0, 1, 1, 3, 4, 5, 6), (1, 2, 1, 0, 4, 5, 6), (1, 2, 1, 3, 0, 5, 6), (1, 2, 1, 3, 4, 5, 0)], ids=str
)
@pytest.mark.parametrize("kernel", ATTENTIONS)
def test_takes_empty_extents(judge, kernel, shape):
    judge(kernel, _case("float16", *shape))


@pytest.mark.parametrize("layout", ["transposed", "padded", "strided", "misaligned"])
@pytest.mark.parametrize("kernel", ATTENTIONS)
def test_layout_changes_no_bit(run, kernel, layout):
    contiguous, other = (_case("float32", 1, 2, 1, 9, 21, 18, 20, name).inputs() for name in ("contiguous", layout))
    for first, second in zip(run(kernel, contiguous), run(kernel, other)):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("value", ["all_below", "huge_exact", "climbing", "sinking", "last_key", "uniform_weights"])
@pytest.mark.parametrize("kernel", ATTENTIONS)
def test_rescales_and_masks_exactly(judge, kernel, value):
    judge(kernel, _case("float32", 1, 2, 1, 9, 65, 16, 8, value=value))


@pytest.mark.parametrize("kernel", ATTENTIONS)
def test_heads_without_elements_weigh_all_keys_alike(judge, kernel):
    judge(kernel, _case("float32", 1, 2, 1, 3, 40, 0, 70, scale=1.0))


@pytest.mark.parametrize("kernel", ATTENTIONS)
def test_scale_is_a_parameter(judge, kernel):
    judge(kernel, _case("float32", 1, 2, 2, 7, 19, 8, 8, scale=0.3))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("kernel", ATTENTIONS)
def test_rows_that_see_nothing_are_zero(run, kernel, dtype):
    inputs = _case(np.dtype(dtype).name, 1, 2, 1, 37, 5, 8, 6).inputs()
    out, lse = run(kernel, inputs, causal="bottom_right")
    np.testing.assert_array_equal(out[:, :, :32], np.zeros((1, 2, 32, 6)))
    np.testing.assert_array_equal(lse[:, :, :32], np.full((1, 2, 32), -np.inf))
    assert np.isfinite(lse[:, :, 32:]).all()
    np.testing.assert_array_equal(out[:, :, 32], inputs["v"][:, [0, 0], 0])  # the first row that sees sees one key


@pytest.mark.parametrize("kernel", ATTENTIONS)
def test_no_keys_give_zero(run, kernel):
    q, k, v = np.ones((1, 2, 3, 4), np.float32), np.ones((1, 1, 0, 4), np.float32), np.ones((1, 1, 0, 5), np.float32)
    out, lse = run(kernel, {"q": q, "k": k, "v": v})
    np.testing.assert_array_equal(out, np.zeros((1, 2, 3, 5), np.float32), strict=True)
    np.testing.assert_array_equal(lse, np.full((1, 2, 3), -np.inf, np.float32), strict=True)


@pytest.mark.parametrize("kernel", ATTENTIONS)
def test_hidden_keys_change_no_bit(run, kernel):
    inputs = _case("float32", 1, 1, 1, 20, 40, 8, 8).inputs()
    before = run(kernel, inputs, causal="top_left")
    inputs["k"][:, :, 20:], inputs["v"][:, :, 20:] = 100.0, -1e30
    for first, second in zip(before, run(kernel, inputs, causal="top_left")):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("kernel", ATTENTIONS)
def test_grouped_heads_are_replicated_heads(run, kernel):
    inputs = _case("float32", 2, 6, 2, 9, 18, 8, 8).inputs()
    replicated = {name: np.repeat(inputs[name], 1 if name == "q" else 3, axis=1) for name in ("q", "k", "v")}
    for first, second in zip(run(kernel, inputs), run(kernel, replicated)):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("kernel", ATTENTIONS)
def test_nan_spoils_its_row_alone(run, kernel):
    inputs = _case("float32", 1, 1, 1, 20, 18, 8, 8).inputs()
    inputs["q"][0, 0, 17, 3] = np.nan
    out, lse = run(kernel, inputs)
    spoiled = np.arange(20) == 17
    np.testing.assert_array_equal(np.isnan(lse[0, 0]), spoiled)
    np.testing.assert_array_equal(np.isnan(out[0, 0]).all(axis=-1), spoiled)
    assert np.isfinite(out[0, 0, ~spoiled]).all()


@settings(max_examples=20, deadline=None)
@given(
    kernel=st.sampled_from(ATTENTIONS),
    dtype=st.sampled_from(DTYPES),
    kv_heads=st.integers(1, 2),
    group=st.integers(1, 2),
    queries=st.integers(0, 35),
    keys=st.integers(0, 35),
    head_dim=st.integers(1, 20),
    v_dim=st.integers(0, 70),
    causal=st.sampled_from(MASKS),
)
def test_any_shape(judge, kernel, dtype, kv_heads, group, queries, keys, head_dim, v_dim, causal):
    judge(kernel, _case(dtype, 1, kv_heads * group, kv_heads, queries, keys, head_dim, v_dim, causal=causal))
