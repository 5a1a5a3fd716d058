"""The block reductions, used one after the other on the same shared cells."""

import numpy as np
from numba import cuda, float64

import refsim
from kernels_numba.block_tree import THREADS, block_max, block_sum


@cuda.jit
def three_in_a_row(x, sums, maxima):
    cells = cuda.shared.array(THREADS, float64)
    thread = cuda.threadIdx.x
    sums[0, thread] = block_sum(cells, thread, x[thread])
    maxima[thread] = block_max(cells, thread, x[thread])
    sums[1, thread] = block_sum(cells, thread, x[thread] * x[thread])


def test_every_thread_gets_every_result():
    x = np.random.default_rng(0).integers(-50, 50, THREADS).astype(np.float64)
    sums, maxima = np.zeros((2, THREADS)), np.zeros(THREADS)
    report = refsim.launch(three_in_a_row, 1, THREADS, x, sums, maxima)
    assert report.findings == []
    np.testing.assert_array_equal(sums[0], x.sum())
    np.testing.assert_array_equal(maxima, x.max())
    np.testing.assert_array_equal(sums[1], (x * x).sum())
