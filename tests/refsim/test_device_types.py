"""Numba's types on the device: integer division, shifts, wrap-around, casts, and what mixes to what."""

import numpy as np
import pytest
from clean_launch import launch_clean, mapped
from numba import cuda, float32, float64, int8, int16, int32, int64, uint8, uint32


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
