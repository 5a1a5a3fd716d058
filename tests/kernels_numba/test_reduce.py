"""The three sums against NumPy: any axis, ragged and empty extents, strided inputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels_numba.reduce import CHUNK
from oracle.cases import Case

SUMS = ("sum_atomic", "sum_tree", "sum_shuffle")
DTYPES = ("float16", "float32", "float64")

SHAPES = [
    ((), None),
    ((1,), 0),
    ((0,), None),
    ((5, 0), 1),
    ((5, 0), 0),
    ((7, 13), 0),
    ((7, 13), -1),
    ((3, 127, 5), 1),
    ((3, 5, 129), None),
    ((2, 3, 4, 5), -2),
    ((CHUNK + 1,), 0),
    ((2 * CHUNK + 31, 3), 0),
]


def _case(dtype, shape, axis, layout="contiguous", **fields):
    dims = {f"d{place}": size for place, size in enumerate(shape)}
    return Case("sum", dtype, dims, {} if axis is None else {"axis": axis}, layout=layout, **fields)


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", SUMS)
def test_sums_any_axis(judge, kernel, dtype, shape, axis):
    judge(kernel, _case(dtype, shape, axis))


@pytest.mark.parametrize("layout", ["transposed", "padded", "strided", "misaligned"])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
@pytest.mark.parametrize("kernel", SUMS)
def test_takes_any_layout(judge, kernel, axis, layout):
    judge(kernel, _case("float32", (3, 131, 6), axis, layout))


@pytest.mark.parametrize("kernel", SUMS)
def test_takes_negative_strides(run, kernel):
    x = np.arange(391.0).reshape(17, 23)[::-1, ::-2]
    np.testing.assert_array_equal(run(kernel, {"x": x}, axis=1)[0], x.sum(axis=1))


@pytest.mark.parametrize("kernel", SUMS)
def test_sum_of_nothing_is_zero(run, kernel):
    (out,) = run(kernel, {"x": np.empty((4, 0), np.float16)}, axis=1)
    np.testing.assert_array_equal(out, np.zeros(4, np.float16), strict=True)


@pytest.mark.parametrize("kernel", SUMS)
def test_float16_accumulates_in_float32(run, kernel):
    """A float16 running sum of ones stands still at 2048."""
    (out,) = run(kernel, {"x": np.ones(4096, np.float16)}, axis=0)
    np.testing.assert_array_equal(out, np.float16(4096), strict=True)


@pytest.mark.parametrize("kernel", SUMS)
def test_nan_and_infinity_reach_the_sum(run, kernel):
    x = np.ones((3, 200), np.float32)
    x[0, 199], x[1, 7] = np.nan, np.inf
    np.testing.assert_array_equal(run(kernel, {"x": x}, axis=1)[0], [np.nan, np.inf, 200.0])


@settings(max_examples=25, deadline=None)
@given(
    kernel=st.sampled_from(SUMS),
    dtype=st.sampled_from(DTYPES),
    shape=st.lists(st.sampled_from((0, 1, 2, 3, 5, 33, 66)), min_size=1, max_size=3),
    data=st.data(),
)
def test_any_shape(judge, kernel, dtype, shape, data):
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1), "axis")
    judge(kernel, _case(dtype, shape, axis, value_class="uniform"))
