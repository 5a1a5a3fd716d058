"""What Numba's own simulator (NUMBA_ENABLE_CUDASIM=1) gets wrong, or lets pass in silence, comes out right here.

Each test is one row of a list of wrong answers measured on numba-cuda 0.30.4.
"""

import inspect

import numpy as np
import pytest
from clean_launch import launch_clean, mapped
from numba import cuda, float32, int32

import refsim

THREADS = 64


def only_kind(report):
    kinds = {finding.kind for finding in report.findings if finding.severity == "error"}
    assert len(kinds) == 1, kinds
    return kinds.pop()


def line_of(kernel, text):
    """The line of a kernel's source that contains a text."""
    source, first = inspect.getsourcelines(kernel)
    return first + next(i for i, line in enumerate(source) if text in line)


def test_fp16_floor_is_not_ceil():
    def floor(x, out):
        i = cuda.grid(1)
        out[i] = cuda.fp16.hfloor(x[i])

    x = np.array([1.5, -1.5, 2.0, -0.25, 0.75], np.float16)
    np.testing.assert_array_equal(mapped(floor, x, np.float16), np.floor(x))


def test_index_minus_one_wraps_as_on_hardware():
    def left(x, out):
        i = cuda.grid(1)
        out[i] = x[i - 1]

    np.testing.assert_array_equal(mapped(left, np.float32([1, 2, 3]), np.float32), [3, 1, 2])


def test_index_past_the_end_names_thread_and_index():
    def right(x, out):
        i = cuda.grid(1)
        out[i] = x[i + 1]

    report = refsim.launch(right, 2, 4, np.ones(8, np.float32), np.zeros(8, np.float32))
    assert only_kind(report) == "out_of_bounds"
    finding = report.findings[0]
    assert (finding.array, finding.line) == ("x", line_of(right, "x[i + 1]"))
    assert (finding.index, finding.block, finding.thread) == ((8,), (1, 0, 0), (3, 0, 0))
    assert finding.dtype == "float32"
    assert finding.source.strip() == "out[i] = x[i + 1]"


def test_uninitialised_shared_memory_is_reported():
    def read(out):
        cells = cuda.shared.array(THREADS, float32)
        out[cuda.threadIdx.x] = cells[cuda.threadIdx.x]

    report = refsim.launch(read, 1, THREADS, np.zeros(THREADS, np.float32))
    assert only_kind(report) == "uninitialized_read"
    assert report.findings[0].line == line_of(read, "= cells[")


def test_missing_barrier_is_reported():
    def rotate(x, out):
        cells = cuda.shared.array(THREADS, float32)
        i = cuda.threadIdx.x
        cells[i] = x[i]
        out[i] = cells[(i + 1) % 64]

    report = refsim.launch(rotate, 1, THREADS, np.ones(THREADS, np.float32), np.zeros(THREADS, np.float32))
    assert only_kind(report) == "race"
    finding = report.findings[0]
    lines = {finding.line, finding.other.line}
    assert lines == {line_of(rotate, "cells[i] ="), line_of(rotate, "% 64")}


def test_barrier_that_two_threads_reach_is_reported():
    def few(out):
        i = cuda.threadIdx.x
        if i < 2:
            cuda.syncthreads()
        out[i] = i

    report = refsim.launch(few, 1, THREADS, np.zeros(THREADS, np.float32))
    assert only_kind(report) == "barrier_divergence"
    assert report.findings[0].line == line_of(few, "syncthreads")


def test_two_barriers_in_two_branches_do_not_match():
    def two(out):
        i = cuda.threadIdx.x
        if i < 32:
            cuda.syncthreads()
            out[i] = 1
        else:
            cuda.syncthreads()
            out[i] = 2

    assert only_kind(refsim.launch(two, 1, THREADS, np.zeros(THREADS, np.float32))) == "barrier_divergence"


def test_fma_rounds_once():
    def fma(x, out):
        i = cuda.grid(1)
        out[i] = cuda.fma(x[0], x[1], x[2])

    x = np.array([1 + 2.0**-30, 1 + 2.0**-30, -(1 + 2.0**-29)])
    np.testing.assert_array_equal(mapped(fma, x, np.float64), np.full(3, 2.0**-60))


def test_fma_rounds_once_in_float32():
    def fma(x, out):
        i = cuda.grid(1)
        out[i] = cuda.fma(x[0], x[1], x[2])

    x = np.array([1 + 2.0**-14, 1 + 2.0**-14, -(1 + 2.0**-13)], np.float32)
    np.testing.assert_array_equal(mapped(fma, x, np.float32), np.full(3, 2.0**-28, np.float32))


def test_cube_root_of_a_negative_number():
    def cbrt(x, out):
        i = cuda.grid(1)
        out[i] = cuda.cbrt(x[i])

    np.testing.assert_allclose(mapped(cbrt, np.array([-8.0, 27.0]), np.float64), [-2, 3], rtol=1e-15)


def test_clz_counts_in_the_width_of_its_argument():
    def clz(x, out):
        i = cuda.grid(1)
        out[i] = cuda.clz(x[i])

    assert mapped(clz, np.array([1, 2**40, 0, -1], np.int64), np.int64).tolist() == [63, 23, 64, 0]
    assert mapped(clz, np.array([1, 2**20, 0, -1], np.int32), np.int64).tolist() == [31, 11, 32, 0]


def test_popc_of_a_negative_number():
    def popc(x, out):
        i = cuda.grid(1)
        out[i] = cuda.popc(x[i])

    assert mapped(popc, np.array([-1, 1, 0, -2], np.int32), np.int64).tolist() == [32, 1, 0, 31]
    assert mapped(popc, np.array([-1], np.int64), np.int64).tolist() == [64]


def test_two_shared_arrays_on_one_line_are_two_arrays():
    def swap(x, out):
        a, b = cuda.shared.array(THREADS, float32), cuda.shared.array(THREADS, float32)
        i = cuda.threadIdx.x
        a[i] = x[i]
        b[i] = -x[i]
        cuda.syncthreads()
        out[i] = a[THREADS - 1 - i] * 1000 + b[THREADS - 1 - i]

    x = np.arange(THREADS, dtype=np.float32)
    np.testing.assert_array_equal(mapped(swap, x, np.float32), x[::-1] * 999)


def test_product_of_int32_is_int64():
    def square(x, out):
        i = cuda.grid(1)
        out[i] = x[i] * x[i]

    assert mapped(square, np.array([70000, -70000], np.int32), np.int64).tolist() == [4_900_000_000] * 2


def test_float_literal_is_float64():
    def scale(x, out):
        i = cuda.grid(1)
        out[i] = x[i] * 0.1 + x[i]

    x = np.array([1.1], np.float32)
    wide = x.astype(np.float64)
    result = mapped(scale, x, np.float64)
    np.testing.assert_array_equal(result, wide * 0.1 + wide)
    assert f"{result[0]:.10f}" == "1.2100000262"


def test_integer_division_by_zero_leaves_the_other_lanes_alone():
    def divide(x, out):
        i = cuda.grid(1)
        out[i] = 7 // x[i]

    result = mapped(divide, np.array([2, 0, -2, 3], np.int64), np.int64)
    assert result[[0, 2, 3]].tolist() == [3, -4, 2]


def test_2048_threads_are_refused():
    def one(out):
        out[cuda.threadIdx.x] = 1

    assert only_kind(refsim.launch(one, 1, 2048, np.zeros(2048, np.float32))) == "launch_limit"


def test_800_kilobytes_of_shared_memory_are_refused():
    def pool(out):
        cells = cuda.shared.array(200_000, float32)
        cells[cuda.threadIdx.x] = 1
        out[cuda.threadIdx.x] = cells[cuda.threadIdx.x]

    assert only_kind(refsim.launch(pool, 1, 32, np.zeros(32, np.float32))) == "launch_limit"


def test_64_kibibytes_of_static_shared_memory_are_accepted():
    def pool(out):
        cells = cuda.shared.array(16384, float32)
        cells[cuda.threadIdx.x * 100] = 1
        out[cuda.threadIdx.x] = cells[cuda.threadIdx.x * 100]

    out = np.zeros(32, np.float32)
    launch_clean(pool, 1, 32, out)
    assert out.tolist() == [1.0] * 32


def test_shared_size_of_an_argument_is_refused():
    def pool(x, out):
        cells = cuda.shared.array(x.size, float32)
        cells[cuda.threadIdx.x] = 1
        out[cuda.threadIdx.x] = cells[cuda.threadIdx.x]

    with pytest.raises(refsim.UnsupportedError, match=r"test_wrong_answers\.py") as caught:
        refsim.launch(pool, 1, 32, np.zeros(32, np.float32), np.zeros(32, np.float32))
    assert f":{line_of(pool, 'shared.array')}:" in str(caught.value)


def test_shared_size_that_numba_cannot_fold_is_refused():
    def pool(out):
        cells = cuda.shared.array(THREADS + 1, float32)
        cells[cuda.threadIdx.x] = 1
        out[cuda.threadIdx.x] = cells[cuda.threadIdx.x]

    with pytest.raises(refsim.UnsupportedError, match="shared") as caught:
        refsim.launch(pool, 1, 32, np.zeros(32, np.float32))
    assert f":{line_of(pool, 'shared.array')}:" in str(caught.value)


def test_vote_of_a_boolean_is_refused_where_numba_refuses_it():
    def vote(out):
        out[cuda.threadIdx.x] = cuda.syncthreads_count(cuda.threadIdx.x > 3)

    with pytest.raises(refsim.UnsupportedError, match="syncthreads_count") as caught:
        refsim.launch(vote, 1, 32, np.zeros(32, np.float32))
    assert f":{line_of(vote, 'syncthreads_count')}:" in str(caught.value)


def test_shuffle_works():
    def rotate(x, out):
        i = cuda.threadIdx.x
        out[i] = cuda.shfl_sync(0xFFFFFFFF, x[i], (i + 1) % 32)

    x = np.arange(32, dtype=np.float32)
    np.testing.assert_array_equal(mapped(rotate, x, np.float32), np.roll(x, -1))


def test_syncwarp_works():
    def rotate(x, out):
        cells = cuda.shared.array(32, int32)
        i = cuda.threadIdx.x
        cells[i] = x[i]
        cuda.syncwarp()
        out[i] = cells[(i + 1) % 32]

    x = np.arange(32, dtype=np.int32)
    np.testing.assert_array_equal(mapped(rotate, x, np.int32), np.roll(x, -1))


def test_atomics_of_two_kinds_on_one_cell_are_mutually_atomic():
    def both(out):
        cuda.atomic.add(out, 0, 1)
        cuda.atomic.max(out, 0, 5)

    out = np.zeros(1, np.int32)
    launch_clean(both, 1, 32, out)
    assert 32 <= out[0] <= 37  # every order of the operations ends in this range


def test_two_configurations_of_one_kernel_are_independent():
    def count(out):
        cuda.atomic.add(out, 0, 1)

    simulated = refsim.simulate(count)
    small, large = simulated[1, 32], simulated[2, 64]
    first, second = np.zeros(1, np.int32), np.zeros(1, np.int32)
    small(first)
    large(second)
    assert (first[0], second[0]) == (32, 128)
