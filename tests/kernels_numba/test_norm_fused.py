"""LayerNorm and the fused RMSNorm against NumPy: any shape, layout and rounding point."""

import itertools

import numpy as np
import pytest

from oracle.cases import Case

DTYPES = ("float16", "float32", "float64")
SHAPES = [(1, 2), (0, 4), (3, 7), (5, 128), (2, 331)]


@pytest.mark.parametrize(("rows", "cols"), SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_layernorm(judge, dtype, rows, cols):
    absent = (("weight", "bias"), ("bias",), ("weight",), (), ())[SHAPES.index((rows, cols))]
    judge("layernorm", Case("layernorm", dtype, {"rows": rows, "cols": cols}, absent=absent))


def test_layernorm_far_from_zero(judge):
    judge("layernorm", Case("layernorm", "float32", {"rows": 3, "cols": 200}, value_class="offset"))


WAYS = list(itertools.product(("weight", "one_plus_weight"), ("rounded", "unrounded"), ("once", "twice")))


@pytest.mark.parametrize(("gain", "normalised", "rounding"), WAYS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_fused_add_rmsnorm(judge, dtype, gain, normalised, rounding):
    params = {"gain": gain, "normalised": normalised, "rounding": rounding}
    rows, cols = SHAPES[WAYS.index((gain, normalised, rounding)) % 5]
    judge("fused_add_rmsnorm", Case("fused_add_rmsnorm", dtype, {"rows": rows, "cols": cols}, params))


@pytest.mark.parametrize("kernel", ["layernorm", "fused_add_rmsnorm"])
@pytest.mark.parametrize("layout", ["transposed", "padded", "strided", "misaligned"])
def test_any_layout(judge, kernel, layout):
    judge(kernel, Case(kernel, "float32", {"rows": 4, "cols": 133}, layout=layout))


def test_the_sum_is_rounded_before_it_is_normalised(run):
    x, residual = np.array([[2048.0, 1.0]], np.float16), np.array([[1.0, 1.0]], np.float16)
    inputs = {"x": x, "residual": residual, "weight": np.ones(2, np.float16)}
    stored, out = run("fused_add_rmsnorm", inputs, eps=1e-6)
    assert stored.tolist() == [[2048.0, 2.0]]  # 2049 lies between two float16 numbers
    np.testing.assert_allclose(out, [[2048 / 1448.155, 2 / 1448.155]], rtol=1e-3)
