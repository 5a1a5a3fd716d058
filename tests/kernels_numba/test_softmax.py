"""The two softmax kernels against NumPy: any shape and layout, and rows with infinities and NaN."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.cases import Case

SOFTMAXES = ("softmax_block", "softmax_online")
DTYPES = ("float16", "float32", "float64")
SHAPES = [(1,), (0, 5), (3, 0), (1, 1), (4, 31), (3, 128), (2, 3, 129), (2, 331)]


def _case(dtype, shape, value_class="normal", layout="contiguous"):
    dims = {f"d{place}": size for place, size in enumerate(shape[:-1])} | {"cols": shape[-1]}
    return Case("softmax", dtype, dims, value_class=value_class, layout=layout)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", SOFTMAXES)
def test_normalises_the_last_axis(judge, kernel, dtype, shape):
    judge(kernel, _case(dtype, shape))


@pytest.mark.parametrize("layout", ["transposed", "padded", "strided", "misaligned"])
@pytest.mark.parametrize("kernel", SOFTMAXES)
def test_takes_any_layout(judge, kernel, layout):
    judge(kernel, _case("float32", (5, 133), layout=layout))


@pytest.mark.parametrize("kernel", SOFTMAXES)
def test_large_logits_do_not_overflow(run, kernel):
    x = np.array([[1e4, 1e4, -1e4], [-3e38, -3e38, -3e38]], np.float32)
    np.testing.assert_allclose(run(kernel, {"x": x})[0], [[0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]], rtol=1e-6)


@pytest.mark.parametrize("kernel", SOFTMAXES)
def test_minus_infinity_has_no_share(run, kernel):
    x = np.full((2, 300), -np.inf, np.float32)
    x[0, [3, 299]] = 7.0
    x[1, 0] = -5.0
    expected = np.zeros((2, 300), np.float32)
    expected[0, [3, 299]], expected[1, 0] = 0.5, 1.0
    np.testing.assert_array_equal(run(kernel, {"x": x})[0], expected)


@pytest.mark.parametrize("spoiler", [np.nan, np.inf])
@pytest.mark.parametrize("at", [0, 130])
@pytest.mark.parametrize("kernel", SOFTMAXES)
def test_nan_and_infinity_spoil_their_row_alone(run, kernel, at, spoiler):
    x = np.zeros((3, 200), np.float32)
    x[1, at] = spoiler
    (out,) = run(kernel, {"x": x})
    assert np.isnan(out[1]).all()
    np.testing.assert_array_equal(out[[0, 2]], np.float32(1 / 200))


@pytest.mark.parametrize("kernel", SOFTMAXES)
def test_row_of_minus_infinity_is_nan(run, kernel):
    assert np.isnan(run(kernel, {"x": np.full((1, 140), -np.inf, np.float32)})[0]).all()


@settings(max_examples=20, deadline=None)
@given(
    kernel=st.sampled_from(SOFTMAXES),
    dtype=st.sampled_from(DTYPES),
    shape=st.lists(st.sampled_from((0, 1, 2, 3, 17, 130)), min_size=1, max_size=3),
)
def test_any_shape(judge, kernel, dtype, shape):
    judge(kernel, _case(dtype, shape))
