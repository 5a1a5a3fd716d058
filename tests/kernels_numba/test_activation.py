"""SwiGLU's activation against NumPy: both pairings, bias, limit, any shape and layout."""

import numpy as np
import pytest

from kernels_numba.activation import accept_rows
from oracle.cases import Case

SHAPES = [(3, 2), (0, 8), (2, 0), (4, 256), (3, 514), (1, 6)]


@pytest.mark.parametrize(("rows", "width"), SHAPES)
@pytest.mark.parametrize("pairing", ["halves", "interleaved"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_activates_each_pair(judge, dtype, pairing, rows, width):
    params = {"pairing": pairing, "rounding": ("once", "twice")[rows % 2]}
    case = Case("silu_and_mul", dtype, {"rows": rows, "width": width}, params, absent=("bias",) if rows > 2 else ())
    judge("silu_and_mul", case)


@pytest.mark.parametrize("layout", ["transposed", "padded", "strided", "misaligned"])
@pytest.mark.parametrize("value_class", ["at_the_limit", "not_a_number", "infinities"])
def test_limits_in_any_layout(judge, layout, value_class):
    dims = {"rows": 6, "width": 34}
    judge("silu_and_mul", Case("silu_and_mul", "float32", dims, {"limit": 2.0}, value_class, layout))


def test_the_first_half_gates_the_second(run):
    x = np.log(np.array([[3.0, 1.0, np.e**4, 7.0]]))
    (out,) = run("silu_and_mul", {"x": x, "bias": None})
    np.testing.assert_allclose(out, [[np.log(3.0) * 0.75 * 4.0, 0.0]])


def test_too_many_rows_are_refused():
    assert "65536 rows" in accept_rows({"x": np.empty((65536, 2))}, {})
    assert accept_rows({"x": np.empty((65535, 2))}, {}) is None
