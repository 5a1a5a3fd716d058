"""RoPE against NumPy: both pairings, partial rotation, any positions and layout."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.cases import Case

DTYPES = ("float16", "float32", "float64")
PAIRINGS = ("neox", "gptj")


def _case(dtype, tokens, heads, head_dim, half, pairing="neox", layout="contiguous"):
    dims = {"tokens": tokens, "heads": heads, "head_dim": head_dim, "max_position": 11, "half": half}
    return Case("rope", dtype, dims, {"pairing": pairing}, layout=layout)


@pytest.mark.parametrize(
    ("tokens", "heads", "head_dim", "half"),
    [(3, 2, 8, 4), (5, 3, 13, 4), (2, 4, 128, 64), (1, 1, 2, 1), (2, 3, 5, 0), (0, 2, 8, 4), (2, 0, 8, 4)],
)
@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rotates_pairs(judge, dtype, pairing, tokens, heads, head_dim, half):
    judge("rope", _case(dtype, tokens, heads, head_dim, half, pairing))


@pytest.mark.parametrize("layout", ["transposed", "padded", "strided", "misaligned"])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_takes_any_layout(judge, pairing, layout):
    judge("rope", _case("float32", 4, 3, 19, 8, pairing, layout))


@pytest.mark.parametrize("positions", [np.int32, np.int64])
def test_positions_choose_the_angles(run, positions):
    x = np.tile(np.array([1.0, 2.0, 9.0], np.float32), (4, 1, 1))
    cos = np.array([[1.0], [0.0], [-1.0], [0.0]], np.float32)
    sin = np.array([[0.0], [1.0], [0.0], [-1.0]], np.float32)
    inputs = {"x": x, "positions": np.array([3, 0, 2, 1], positions), "cos": cos, "sin": sin}
    expected = [[[2.0, -1.0, 9.0]], [[1.0, 2.0, 9.0]], [[-1.0, -2.0, 9.0]], [[-2.0, 1.0, 9.0]]]
    np.testing.assert_array_equal(run("rope", inputs)[0], expected)


def test_tail_is_copied_bit_for_bit(run):
    x = np.full((2, 2, 9), np.nan, np.float16)
    x[..., :4] = 1.0
    x[..., 6:] = [np.inf, -0.0, 2.0**-24]
    table = np.ones((1, 2), np.float16)
    (out,) = run("rope", {"x": x, "positions": np.zeros(2, np.int32), "cos": table, "sin": table})
    np.testing.assert_array_equal(out[..., 4:].view(np.uint16), x[..., 4:].view(np.uint16))


@settings(max_examples=15, deadline=None)
@given(
    dtype=st.sampled_from(DTYPES),
    pairing=st.sampled_from(PAIRINGS),
    tokens=st.integers(0, 5),
    heads=st.integers(0, 5),
    half=st.integers(0, 33),
    tail=st.integers(0, 5),
)
def test_any_shape(judge, dtype, pairing, tokens, heads, half, tail):
    judge("rope", _case(dtype, tokens, heads, 2 * half + tail, half, pairing))
