"""Arithmetic on the device: bits, selp, fma, float16, math functions, integer division, shifts, casts."""

import math
from fractions import Fraction

import numpy as np
import pytest
from clean_launch import launch_clean, mapped
from numba import cuda, float32, float64, int8, int16, int32, int64, uint8, uint32

INTEGERS = ["int32", "uint32", "int64", "uint64"]


def bits(dtype):
    """Integers of every length, and their negatives where the dtype has them."""
    width = 8 * np.dtype(dtype).itemsize
    powers = [1 << k for k in range(width - 1)]
    numbers = [0, *powers, *(p + 1 for p in powers[2:]), 0b1011000, (1 << (width - 1)) - 1]
    if dtype.startswith("int"):
        numbers += [-n for n in numbers] + [-(1 << (width - 1))]
    else:
        numbers.append((1 << width) - 1)
    return np.array(numbers, dtype)


def unsigned(x):
    width = 8 * x.dtype.itemsize
    return [int(v) % (1 << width) for v in x], width


# ---- bits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", INTEGERS)
def test_popc_clz_ffs(dtype):
    def count(x, out):
        i = cuda.grid(1)
        out[i, 0] = cuda.popc(x[i])
        out[i, 1] = cuda.clz(x[i])
        out[i, 2] = cuda.ffs(x[i])

    x = bits(dtype)
    out = np.zeros((x.size, 3), np.int64)
    launch_clean(count, 1, x.size, x, out)
    codes, width = unsigned(x)
    expected = [[c.bit_count(), width - c.bit_length(), (c & -c).bit_length()] for c in codes]
    assert out.tolist() == expected


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_brev(dtype):
    def reverse(x, out):
        i = cuda.grid(1)
        out[i] = cuda.brev(x[i])

    x = bits(dtype)
    codes, width = unsigned(x)
    assert mapped(reverse, x, dtype).tolist() == [int(f"{c:0{width}b}"[::-1], 2) for c in codes]


@pytest.mark.parametrize("dtype", ["int16", "uint16", *INTEGERS, "float32", "float64"])
def test_selp(dtype):
    def select(x, out):
        i = cuda.grid(1)
        out[i] = cuda.selp(i % 3 == 0, x[i], x[0])

    x = np.arange(1, 9).astype(dtype)
    np.testing.assert_array_equal(mapped(select, x, dtype), np.where(np.arange(8) % 3 == 0, x, x[0]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fma_is_exact_before_its_one_rounding(dtype):
    def fma(x, y, z, out):
        i = cuda.grid(1)
        out[i] = cuda.fma(x[i], y[i], z[i])

    rng = np.random.default_rng(3)
    x, y = (rng.normal(size=200).astype(dtype) for _ in range(2))
    z = (-x * y).astype(dtype)  # cancellation leaves the rounding error of the product
    z[100:] = (rng.normal(size=100) * 2.0 ** rng.integers(-60, 60, 100)).astype(dtype)
    out = np.zeros(200, dtype)
    launch_clean(fma, 1, 200, x, y, z, out)
    exact = [Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)) for a, b, c in zip(x, y, z)]
    spacing = np.spacing(np.abs(out)).astype(float)
    for value, truth, gap in zip(out, exact, spacing):
        assert abs(Fraction(float(value)) - truth) <= Fraction(gap) / 2


# ---- float16 ------------------------------------------------------------------------------------------------------

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


# ---- math ---------------------------------------------------------------------------------------------------------

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


# ---- integers and types -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_division_and_remainder_are_pythons(dtype):
    def apply(x, y, out):
        i = cuda.grid(1)
        out[i, 0] = x[i] // y[i]
        out[i, 1] = x[i] % y[i]

    x, y = (a.ravel().astype(dtype) for a in np.meshgrid([-7, -6, -1, 0, 1, 6, 7], [-3, -2, 2, 3]))
    out = np.zeros((x.size, 2), np.int64)
    launch_clean(apply, 1, x.size, x, y, out)
    assert out.tolist() == [[int(a) // int(b), int(a) % int(b)] for a, b in zip(x, y)]


def test_float_division_and_remainder_are_pythons():
    def apply(x, y, out):
        i = cuda.grid(1)
        out[i, 0] = x[i] / y[i]
        out[i, 1] = x[i] // y[i]
        out[i, 2] = x[i] % y[i]

    x, y = (a.ravel() for a in np.meshgrid([-7.5, -6.0, 0.5, 6.0], [-2.5, 2.0, 0.3]))
    out = np.zeros((x.size, 3))
    launch_clean(apply, 1, x.size, x, y, out)
    assert out.tolist() == [[a / b, a // b, a % b] for a, b in zip(x.tolist(), y.tolist())]


def test_division_of_integers_is_float64():
    def apply(x, out):
        i = cuda.grid(1)
        out[i] = x[i] / 3

    x = np.array([1, 2, -5], np.int32)
    np.testing.assert_array_equal(mapped(apply, x, np.float64), x / 3)


def test_shifts_and_bit_operators():
    def apply(x, out):
        i = cuda.grid(1)
        out[i, 0] = x[i] << 3
        out[i, 1] = x[i] >> 2
        out[i, 2] = x[i] & 0b1100
        out[i, 3] = x[i] | 1
        out[i, 4] = x[i] ^ -1
        out[i, 5] = ~x[i]

    x = np.array([0, 1, -1, 13, -13, 2**31 - 1, -(2**31)], np.int32)
    out = np.zeros((x.size, 6), np.int64)
    launch_clean(apply, 1, x.size, x, out)
    expected = [[v << 3, v >> 2, v & 12, v | 1, v ^ -1, ~v] for v in x.tolist()]
    assert out.tolist() == expected


def test_int64_wraps():
    def apply(x, out):
        i = cuda.grid(1)
        out[i] = x[i] * 6364136223846793005 + 1442695040888963407

    x = np.array([1, 2**40, -(2**62)], np.int64)
    with np.errstate(over="ignore"):
        expected = x * np.int64(6364136223846793005) + np.int64(1442695040888963407)
    np.testing.assert_array_equal(mapped(apply, x, np.int64), expected)


def test_scalar_casts():
    def apply(x, out):
        i = cuda.grid(1)
        out[i, 0] = int8(x[i])
        out[i, 1] = uint8(x[i])
        out[i, 2] = int16(x[i])
        out[i, 3] = int32(x[i])
        out[i, 4] = uint32(x[i])
        out[i, 5] = int64(x[i])

    x = np.array([0, 127, 128, 255, 256, -1, 70000, 2**31, -(2**31) - 1], np.int64)
    out = np.zeros((x.size, 6), np.int64)
    launch_clean(apply, 1, x.size, x, out)
    casts = [x.astype(t).astype(np.int64) for t in ("int8", "uint8", "int16", "int32", "uint32", "int64")]
    np.testing.assert_array_equal(out, np.stack(casts, axis=1))


def test_casts_of_floats():
    def apply(x, out):
        i = cuda.grid(1)
        out[i, 0] = float32(x[i])
        out[i, 1] = float64(float32(x[i]) * float32(3))
        out[i, 2] = int32(x[i])
        out[i, 3] = float32(x[i]) * 3.0

    x = np.array([0.1, -2.7, 1e6 + 0.3])
    narrow = x.astype(np.float32)
    expected = [narrow, narrow * np.float32(3), np.trunc(x), narrow.astype(np.float64) * 3.0]
    out = np.zeros((3, 4))
    launch_clean(apply, 1, 3, x, out)
    np.testing.assert_array_equal(out, np.stack([np.asarray(e, np.float64) for e in expected], axis=1))


def test_sums_of_float32_stay_float32():
    def apply(x, out):
        i = cuda.grid(1)
        total = float32(0)
        for k in range(x.shape[0]):
            total += x[(i + k) % x.shape[0]]
        out[i] = total

    x = (np.random.default_rng(8).normal(size=50)).astype(np.float32)
    expected = np.zeros(50)
    for i in range(50):
        total = np.float32(0)
        for k in range(50):
            total = np.float32(total + x[(i + k) % 50])
        expected[i] = total
    np.testing.assert_array_equal(mapped(apply, x, np.float64), expected)


def test_int32_plus_float32_is_float64():
    def apply(x, out):
        i = cuda.grid(1)
        out[i] = x[i] + int32(16777217)

    x = np.array([0.5], np.float32)
    assert mapped(apply, x, np.float64)[0] == 16777217.5


def test_unsigned_arithmetic():
    def apply(x, y, out):
        i = cuda.grid(1)
        out[i] = x[i] - y[i]

    x, y = np.array([3, 5], np.uint32), np.array([5, 3], np.uint32)
    out = np.zeros(2, np.uint64)
    launch_clean(apply, 1, 2, x, y, out)
    assert out.tolist() == [2**64 - 2, 2]


def test_stores_round_and_wrap_to_the_arrays_dtype():
    def store(x, narrow, small):
        i = cuda.grid(1)
        narrow[i] = x[i]
        small[i] = int64(x[i])

    x = np.array([1 / 3, 300.7, -1.0, 65504.0])
    narrow, small = np.zeros(4, np.float16), np.zeros(4, np.uint8)
    launch_clean(store, 1, 4, x, narrow, small)
    np.testing.assert_array_equal(narrow, x.astype(np.float16))
    assert small.tolist() == [0, 44, 255, 224]
