"""The math module and min, max, abs, round and pow in kernels."""

import math

import numpy as np
import pytest
from clean_launch import launch_clean, mapped
from numba import cuda

POSITIVE = np.array([0.01, 0.3, 0.5, 0.9, 1.0, 1.5, 2.0, 3.7, 10.0])
UNIT = np.array([-0.99, -0.5, -0.1, 0.0, 0.2, 0.7, 0.99])
MATH_ANY = ("exp", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "atan", "asinh", "erf", "erfc", "fabs")
ANY = np.concatenate([-POSITIVE[::-1], POSITIVE])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "points"),
    [
        *((name, ANY) for name in MATH_ANY),
        *((name, POSITIVE) for name in ("log", "log2", "log10", "log1p", "sqrt", "lgamma", "gamma")),
        *((name, UNIT) for name in ("asin", "acos", "atanh")),
        ("acosh", POSITIVE[POSITIVE >= 1]),
    ],
)
def test_math_function(name, points, dtype):
    function = getattr(math, name)

    def apply(x, out):
        i = cuda.grid(1)
        out[i] = function(x[i])

    x = points.astype(dtype)
    exact = np.array([function(float(v)) for v in x])
    got = mapped(apply, x, dtype).astype(np.float64)
    ulp = np.spacing(np.maximum(np.abs(exact), np.finfo(dtype).tiny).astype(dtype)).astype(np.float64)
    limit = 16 if name in ("lgamma", "gamma", "erfc", "tan") else 4
    assert (np.abs(got - exact) <= limit * ulp).all(), (got, exact)


def test_math_functions_of_two_arguments():
    def apply(x, y, out):
        i = cuda.grid(1)
        out[i, 0] = math.pow(x[i], y[i])
        out[i, 1] = math.atan2(x[i], y[i])
        out[i, 2] = math.hypot(x[i], y[i])
        out[i, 3] = math.copysign(x[i], y[i])
        out[i, 4] = math.fmod(x[i], y[i])

    x, y = POSITIVE, np.roll(ANY, 4)[: POSITIVE.size].copy()
    out = np.zeros((x.size, 5))
    launch_clean(apply, 1, x.size, x, y, out)
    expected = [np.power(x, y), np.arctan2(x, y), np.hypot(x, y), np.copysign(x, y), np.fmod(x, y)]
    np.testing.assert_allclose(out, np.stack(expected, axis=1), rtol=1e-15)


def test_classification_and_rounding_of_floats():
    def apply(x, out):
        i = cuda.grid(1)
        out[i, 0] = 1 if math.isnan(x[i]) else 0
        out[i, 1] = 1 if math.isinf(x[i]) else 0
        out[i, 2] = 1 if math.isfinite(x[i]) else 0
        if math.isfinite(x[i]):
            out[i, 3] = math.floor(x[i])
            out[i, 4] = math.ceil(x[i])
            out[i, 5] = math.trunc(x[i])
            out[i, 6] = round(x[i])
            out[i, 7] = int(x[i])

    x = np.array([1.5, -1.5, 2.5, -0.5, 3.0, np.nan, np.inf, -np.inf])
    out = np.zeros((8, 8), np.int64)
    launch_clean(apply, 1, 8, x, out)
    finite = [float(v) for v in x[:5]]
    assert out[5:, :3].tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 0]]
    expected = [[0, 0, 1, math.floor(v), math.ceil(v), math.trunc(v), round(v), int(v)] for v in finite]
    assert out[:5].tolist() == expected


def test_round_to_digits():
    def apply(x, out):
        i = cuda.grid(1)
        out[i] = round(x[i], 1)

    x = np.array([0.26, -1.34, 2.0, 3.149])
    np.testing.assert_allclose(mapped(apply, x, np.float64), [0.3, -1.3, 2.0, 3.1], rtol=1e-15)


def test_min_max_abs_pow():
    def apply(x, y, out):
        i = cuda.grid(1)
        out[i, 0] = min(x[i], y[i])
        out[i, 1] = max(x[i], y[i], 0)
        out[i, 2] = abs(x[i])
        out[i, 3] = x[i] ** 2
        out[i, 4] = pow(x[i], 3)

    x, y = np.arange(-4, 5), np.arange(4, -5, -1) * 3
    out = np.zeros((9, 5), np.int64)
    launch_clean(apply, 1, 9, x, y, out)
    expected = [np.minimum(x, y), np.maximum(np.maximum(x, y), 0), np.abs(x), x**2, x**3]
    np.testing.assert_array_equal(out, np.stack(expected, axis=1))
