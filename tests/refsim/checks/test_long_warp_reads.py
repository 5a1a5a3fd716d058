"""Many reads between barriers of the block, of threads that only their warp's barriers order."""

import numpy as np
import pytest
from numba import cuda, int32

import refsim


def reads_far_more_than_the_log_holds(out):
    cells = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    first = t // 32 * 32
    cells[t] = t
    cuda.syncwarp()
    total = 0
    for k in range(96):
        total += cells[first + (t + k) % 32]
    cuda.syncwarp()
    cells[t] = total
    cuda.syncwarp()
    out[t] = cells[first + (t + 1) % 32]


@pytest.mark.parametrize("lanes", ["blocks", "warp", "thread"])
def test_a_warp_barrier_orders_what_the_whole_warp_has_read(lanes):
    out = np.zeros(64)
    assert not refsim.launch(reads_far_more_than_the_log_holds, 1, 64, out, lanes=lanes).findings
    np.testing.assert_array_equal(out[:32], np.full(32, 3 * np.arange(32).sum()))


def reads_of_the_other_warp(out):
    cells = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    cells[t] = t
    cuda.syncthreads()
    total = 0
    for k in range(96):
        total += cells[(t + k) % 64]
    cuda.syncwarp()
    cells[t] = total
    out[t] = total


@pytest.mark.parametrize("lanes", ["blocks", "warp", "thread"])
def test_but_not_what_the_other_warp_reads(lanes):
    report = refsim.launch(reads_of_the_other_warp, 1, 64, np.zeros(64), lanes=lanes)
    assert [finding.kind for finding in report.errors] == ["race"]
