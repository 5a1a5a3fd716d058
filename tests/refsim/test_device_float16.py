"""float16 on the device: cuda.fp16 and the operators."""

import numpy as np
from clean_launch import launch_clean
from numba import cuda

HALVES = np.array([0.0, 1.0, -1.5, 2.25, 0.333, -7.0, 100.0, 1e-3, 6e-5, 2048.0, -0.1, 3.14], np.float16)


def test_fp16_arithmetic_rounds_once():
    def arithmetic(x, y, out):
        i = cuda.grid(1)
        out[i, 0] = cuda.fp16.hadd(x[i], y[i])
        out[i, 1] = cuda.fp16.hsub(x[i], y[i])
        out[i, 2] = cuda.fp16.hmul(x[i], y[i])
        out[i, 3] = cuda.fp16.hdiv(x[i], y[i])
        out[i, 4] = cuda.fp16.hfma(x[i], y[i], x[0])
        out[i, 5] = cuda.fp16.hneg(x[i])
        out[i, 6] = cuda.fp16.habs(x[i])
        out[i, 7] = cuda.fp16.hmax(x[i], y[i])
        out[i, 8] = cuda.fp16.hmin(x[i], y[i])

    x, y = HALVES, np.roll(HALVES, 5)
    y[y == 0] = 3
    out = np.zeros((x.size, 9), np.float16)
    launch_clean(arithmetic, 1, x.size, x, y, out)
    wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
    fused = (wide_x * wide_y + wide_x[0]).astype(np.float16)
    expected = [x + y, x - y, x * y, x / y, fused, -x, np.abs(x), np.maximum(x, y), np.minimum(x, y)]
    np.testing.assert_array_equal(out, np.stack(expected, axis=1))


def test_fp16_comparisons():
    def compare(x, y, out):
        i = cuda.grid(1)
        out[i, 0] = cuda.fp16.heq(x[i], y[i])
        out[i, 1] = cuda.fp16.hne(x[i], y[i])
        out[i, 2] = cuda.fp16.hlt(x[i], y[i])
        out[i, 3] = cuda.fp16.hle(x[i], y[i])
        out[i, 4] = cuda.fp16.hgt(x[i], y[i])
        out[i, 5] = cuda.fp16.hge(x[i], y[i])

    x = np.array([1, 2, 3, np.nan, -0.0], np.float16)
    y = np.array([1, 3, 2, 1, 0.0], np.float16)
    out = np.zeros((5, 6), np.bool_)
    launch_clean(compare, 1, 5, x, y, out)
    different = (x != y) & ~np.isnan(x)  # CUDA's __hne is false for a NaN, like every ordered comparison
    np.testing.assert_array_equal(out, np.stack([x == y, different, x < y, x <= y, x > y, x >= y], axis=1))


def test_fp16_rounding_functions():
    def functions(x, out):
        i = cuda.grid(1)
        out[i, 0] = cuda.fp16.hfloor(x[i])
        out[i, 1] = cuda.fp16.hceil(x[i])
        out[i, 2] = cuda.fp16.htrunc(x[i])
        out[i, 3] = cuda.fp16.hrint(x[i])

    x = np.array([1.5, -1.5, 2.5, 0.4, -0.6, 7, 1000.5, -0.0], np.float16)
    out = np.zeros((x.size, 4), np.float16)
    launch_clean(functions, 1, x.size, x, out)
    np.testing.assert_array_equal(out, np.stack([np.floor(x), np.ceil(x), np.trunc(x), np.rint(x)], axis=1))


def test_fp16_functions_are_within_two_ulps():
    def apply(x, out):
        i = cuda.grid(1)
        out[i, 0] = cuda.fp16.hsqrt(x[i])
        out[i, 1] = cuda.fp16.hrsqrt(x[i])
        out[i, 2] = cuda.fp16.hrcp(x[i])
        out[i, 3] = cuda.fp16.hexp(x[i])
        out[i, 4] = cuda.fp16.hexp2(x[i])
        out[i, 5] = cuda.fp16.hexp10(x[i])
        out[i, 6] = cuda.fp16.hlog(x[i])
        out[i, 7] = cuda.fp16.hlog2(x[i])
        out[i, 8] = cuda.fp16.hlog10(x[i])
        out[i, 9] = cuda.fp16.hsin(x[i])
        out[i, 10] = cuda.fp16.hcos(x[i])

    x = np.array([0.1, 0.5, 1.0, 1.7, 2.0, 3.14, 4.5], np.float16)
    wide = x.astype(np.float64)
    exact = [np.sqrt(wide), 1 / np.sqrt(wide), 1 / wide, np.exp(wide), np.exp2(wide), 10**wide]
    exact = np.stack([*exact, np.log(wide), np.log2(wide), np.log10(wide), np.sin(wide), np.cos(wide)], axis=1)
    out = np.zeros(exact.shape, np.float16)
    launch_clean(apply, 1, x.size, x, out)
    ulp = np.spacing(np.abs(exact).astype(np.float16)).astype(np.float64)
    assert (np.abs(out.astype(np.float64) - exact) <= 2 * ulp).all()


def test_float16_operators_round_to_float16():
    def operators(x, y, out):
        i = cuda.grid(1)
        out[i, 0] = x[i] + y[i]
        out[i, 1] = x[i] * y[i]
        out[i, 2] = x[i] - y[i]
        out[i, 3] = -x[i]

    x, y = HALVES, HALVES[::-1].copy()
    out = np.zeros((x.size, 4), np.float32)
    launch_clean(operators, 1, x.size, x, y, out)
    np.testing.assert_array_equal(out, np.stack([x + y, x * y, x - y, -x], axis=1).astype(np.float32))
