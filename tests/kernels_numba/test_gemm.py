"""The two matrix products against NumPy: every transpose, with and without bias, any shape and layout."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.cases import Case

MATMULS = ("matmul_tiled", "matmul_register")
DTYPES = ("float16", "float32", "float64")

SHAPES = [
    (1, 1, 1),
    (16, 16, 16),
    (64, 64, 32),
    (3, 5, 7),
    (17, 33, 19),
    (67, 37, 71),
    (2, 130, 66),
    (0, 3, 4),
    (3, 4, 0),
]


def _case(dtype, m, k, n, bias=True, **fields):
    return Case("matmul", dtype, {"m": m, "k": k, "n": n}, absent=() if bias else ("bias",), **fields)


@pytest.mark.parametrize(("m", "k", "n"), SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", MATMULS)
def test_multiplies_any_shape(judge, kernel, dtype, m, k, n):
    judge(kernel, _case(dtype, m, k, n))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("kernel", MATMULS)
def test_takes_every_transpose(judge, kernel, transpose_a, transpose_b, bias):
    params = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    judge(kernel, _case("float32", 19, 35, 67, bias, params=params))


@pytest.mark.parametrize("layout", ["transposed", "padded", "strided", "misaligned"])
@pytest.mark.parametrize("kernel", MATMULS)
def test_layout_changes_no_bit(run, kernel, layout):
    contiguous, other = (_case("float32", 21, 40, 70, layout=name).inputs() for name in ("contiguous", layout))
    np.testing.assert_array_equal(run(kernel, contiguous)[0], run(kernel, other)[0])


@pytest.mark.parametrize("kernel", MATMULS)
def test_product_over_nothing_is_the_bias(run, kernel):
    a, b, bias = np.empty((3, 0), np.float16), np.empty((0, 5), np.float16), np.arange(5, dtype=np.float16)
    (with_bias,) = run(kernel, {"a": a, "b": b, "bias": bias})
    (without,) = run(kernel, {"a": a, "b": b, "bias": None})
    np.testing.assert_array_equal(with_bias, np.broadcast_to(bias, (3, 5)))
    np.testing.assert_array_equal(without, np.zeros((3, 5), np.float16), strict=True)


@pytest.mark.parametrize("kernel", MATMULS)
def test_permutation_moves_rows_exactly(run, kernel):
    rng = np.random.default_rng(0)
    rows = rng.permutation(70)
    b = rng.standard_normal((70, 21)).astype(np.float32)
    (out,) = run(kernel, {"a": np.eye(70, dtype=np.float32)[rows], "b": b, "bias": None})
    np.testing.assert_array_equal(out, b[rows])


@pytest.mark.parametrize("kernel", MATMULS)
def test_refuses_more_columns_than_a_grid_covers(kernel):
    from kernels_numba import KERNELS

    record = next(record for record in KERNELS if record.name == kernel)
    wide = np.broadcast_to(np.float32(0), (1, 2**23))
    inputs = {"a": np.zeros((1, 1), np.float32), "b": wide, "bias": None}
    assert "8388608 columns" in record.accepts(inputs, {"transpose_a": False, "transpose_b": False})


@settings(max_examples=20, deadline=None)
@given(
    kernel=st.sampled_from(MATMULS),
    dtype=st.sampled_from(DTYPES),
    m=st.integers(0, 70),
    k=st.integers(0, 40),
    n=st.integers(0, 70),
    bias=st.booleans(),
)
def test_any_shape(judge, kernel, dtype, m, k, n, bias):
    judge(kernel, _case(dtype, m, k, n, bias))
