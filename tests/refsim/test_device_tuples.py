"""Vectors, tuples and named tuples in kernels; expected values are Python's own."""

from collections import namedtuple

import numpy as np
import pytest
from clean_launch import launch_clean
from numba import cuda

import refsim
from refsim.errors import KernelTypeError

Pair = namedtuple("Pair", "first second")
LIMITS = ((1, 2.5), (3, 4.5))


@cuda.jit(device=True)
def swapped(vector):
    return cuda.float32x2(vector.y, vector.x)


@cuda.jit
def vectors(out):
    four = cuda.float4(1, 2, 3, 4)
    three = cuda.float32x3(cuda.float2(5, 6), four.w)
    other = cuda.float32x4(7, three)
    two = swapped(cuda.float2(0.1, 9))
    narrow = cuda.uchar2(257, 3)
    best = four if cuda.threadIdx.x == 0 else other
    for position in range(2):
        two = cuda.float2(two.x + position, two.y)
    out[0], out[1], out[2], out[3] = four.x, three.z, other.w, two.x
    out[4], out[5], out[6] = two.y, narrow.x, best.y


def test_vectors_from_numbers_and_smaller_vectors():
    out = np.zeros(7)
    launch_clean(vectors, 1, 1, out)
    np.testing.assert_array_equal(out, [1, 4, 4, 10, np.float32(0.1), 1, 2])


@cuda.jit
def too_few(out):
    out[0] = cuda.float4(1, 2, 3).x


def test_a_vector_of_too_few_elements():
    with pytest.raises(KernelTypeError, match=r"float4\(\) takes 4 elements, not 3"):
        refsim.launch(too_few, 1, 1, np.zeros(1))


@cuda.jit
def tuples(pair, nested, arrays, out):
    i = cuda.threadIdx.x
    out[i, 0] = pair.first + pair[1] + len(pair)
    out[i, 1] = nested[1][0][0] + nested[0]
    out[i, 2] = (1, i) < (1, 2)
    out[i, 3] = (pair.first, 2) == (3, 2) and (1, 2) != (1, 2, 3)
    joined = (1, 2) + (i, 4.5)  # noqa: RUF005
    out[i, 4] = joined[2] + joined[-1]
    out[i, 5] = (1, i) in ((0, 0), (1, 1))
    for k in range(2):
        out[i, 6] += arrays[k][i] * LIMITS[k][0]
    numbers = (10, 20, 30)
    out[i, 7] = numbers[i]
    for low, high in LIMITS:
        out[i, 8] += low * high
    (a, b), c = (i, 2), 3
    out[i, 9] = a + b * c


def test_tuples_as_arguments_and_values():
    pair, nested = Pair(3, 4.5), (1, ((2,), 7))
    arrays = (np.arange(3.0), np.arange(3.0) + 10)
    out = np.zeros((3, 10))
    launch_clean(tuples, 1, 3, pair, nested, arrays, out)
    for i in range(3):
        products = sum(arrays[k][i] * LIMITS[k][0] for k in range(2))
        expected = [9.5, 3, (1, i) < (1, 2), True, i + 4.5, i == 1, products, (10, 20, 30)[i], 16, i + 6]
        np.testing.assert_array_equal(out[i], expected)


@cuda.jit
def which(flag, pair, other, out):
    chosen = pair if flag else other
    out[0] = chosen.second


def test_a_named_tuple_keeps_its_names_through_a_branch():
    out = np.zeros(1)
    launch_clean(which, 1, 1, 1, Pair(1, 2), Pair(3, 4), out)
    assert out[0] == 2


@cuda.jit
def mixed(i, out):
    out[0] = (1, 2.5)[i]


def test_different_types_need_a_constant_index():
    with pytest.raises(KernelTypeError, match="constant index"):
        refsim.launch(mixed, 1, 1, 0, np.zeros(1))
