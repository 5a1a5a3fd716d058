"""Dynamic shared memory split by hand, as numba-cuda's documentation has it: every declaration begins at its start."""

import numpy as np
import pytest
from clean_launch import launch_clean
from numba import cuda

import refsim
from refsim.errors import KernelTypeError


@cuda.jit
def one_type_in_parts(x, out):
    i = cuda.threadIdx.x
    whole = cuda.shared.array(0, np.float32)
    n = cuda.blockDim.x
    left, right = whole[:n], whole[n : 2 * n]
    left[i] = x[i]
    right[i] = -x[i]
    cuda.syncthreads()
    out[i] = left[n - 1 - i] * 10 + right[i]


def test_slices_of_one_array():
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    launch_clean(one_type_in_parts, 1, 8, x, out, shared_bytes=64)
    np.testing.assert_array_equal(out, x[::-1] * 10 - x)


@cuda.jit
def several_types(x, counts, out):
    i = cuda.threadIdx.x
    n = cuda.blockDim.x
    doubles = cuda.shared.array(0, np.float64)[:n]
    numbers = cuda.shared.array(0, np.int32)[2 * n : 3 * n]
    flags = cuda.shared.array(0, np.uint8)[12 * n : 13 * n]
    doubles[i] = x[i]
    numbers[i] = i * i
    flags[i] = i % 2
    cuda.syncthreads()
    j = n - 1 - i
    cuda.atomic.add(doubles, j, 0.5)
    cuda.atomic.add(numbers, 0, 1)
    cuda.syncthreads()
    out[i] = doubles[j] + numbers[j] * 100 + flags[j]
    if i == 0:
        counts[cuda.blockIdx.x] = numbers[0]


@pytest.mark.parametrize("blocks", [1, 3])
def test_arrays_of_several_types_lie_in_one_memory(blocks):
    n = 8
    x, counts, out = np.linspace(0, 1, n), np.zeros(blocks), np.zeros(n)
    if blocks > 1:
        refsim.launch(several_types, blocks, n, x, counts, out, shared_bytes=13 * n, checks=["memcheck", "initcheck"])
    else:
        launch_clean(several_types, 1, n, x, counts, out, shared_bytes=13 * n)
    j = np.arange(n)[::-1]
    np.testing.assert_array_equal(out, x[j] + 0.5 + np.where(j == 0, n, j * j) * 100 + j % 2)
    np.testing.assert_array_equal(counts, [n] * blocks)


@cuda.jit
def bits(out):
    floats = cuda.shared.array(0, np.float64)
    words = cuda.shared.array(0, np.uint32)
    floats[0] = -2.5
    out[0] = words[0]
    out[1] = words[1]


def test_the_types_share_bytes():
    out = np.zeros(2, np.uint32)
    launch_clean(bits, 1, 1, out, shared_bytes=8)
    np.testing.assert_array_equal(out, np.array([-2.5]).view(np.uint32))


@cuda.jit
def overlapping(out):
    i = cuda.threadIdx.x
    doubles = cuda.shared.array(0, np.float64)
    words = cuda.shared.array(0, np.int32)
    doubles[i] = i
    out[i] = words[i]


def test_a_race_between_two_types():
    report = refsim.launch(overlapping, 1, 8, np.zeros(8), shared_bytes=64)
    assert {f.kind for f in report.findings if f.severity == "error"} == {"race"}


@cuda.jit
def aligned_to_three(out):
    cells = cuda.shared.array(4, np.int16, 3)
    out[0] = cells.size


@cuda.jit
def aligned_to_sixteen(out):
    cells = cuda.shared.array(shape=(2, 2), dtype=np.int16, alignment=16)
    out[0] = cells.size


def test_alignments():
    with pytest.raises(KernelTypeError, match="alignment 3: numba-cuda demands a power of 2"):
        refsim.launch(aligned_to_three, 1, 1, np.zeros(1))
    out = np.zeros(1)
    launch_clean(aligned_to_sixteen, 1, 1, out)
    assert out[0] == 4


@cuda.jit
def outside(out):
    doubles = cuda.shared.array(0, np.float64)
    words = cuda.shared.array(0, np.int32)
    words[0] = 1
    doubles[4] = words[0]


def test_each_type_has_its_own_extent():
    report = refsim.launch(outside, 1, 1, np.zeros(1), shared_bytes=36)
    assert [f.kind for f in report.findings] == ["out_of_bounds"]
    assert "shape (4,)" in str(report)
