"""popc, clz, ffs, brev, selp and fma."""

from fractions import Fraction

import numpy as np
import pytest
from clean_launch import launch_clean, mapped
from numba import cuda

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
