"""Barriers of the whole grid: every block waits for every other, and all their accesses are ordered."""

import numpy as np
import pytest
from numba import cuda

import refsim


def neighbours_block(x, out):
    i = cuda.grid(1)
    x[i] = i
    grid = cuda.cg.this_grid()
    grid.sync()
    out[i] = x[(i + cuda.blockDim.x) % x.size]
    grid.sync()
    x[i] = -1


def test_what_was_written_before_is_seen_after():
    x, out = np.zeros(256), np.zeros(256)
    assert not refsim.launch(neighbours_block, 8, 32, x, out).findings
    np.testing.assert_array_equal(out, (np.arange(256) + 32) % 256)
    assert (x == -1).all()


def neighbours_block_too_early(x, out):
    i = cuda.grid(1)
    x[i] = i
    cuda.syncthreads()
    out[i] = x[(i + cuda.blockDim.x) % x.size]


def test_a_barrier_of_the_block_is_not_enough():
    report = refsim.launch(neighbours_block_too_early, 8, 32, np.zeros(256), np.zeros(256))
    assert [finding.kind for finding in report.errors] == ["race"]


def only_some_blocks(x):
    if cuda.blockIdx.x < 3:
        cuda.cg.this_grid().sync()
    x[cuda.grid(1)] = 1


def test_a_block_that_stays_away_is_a_finding():
    report = refsim.launch(only_some_blocks, 4, 32, np.zeros(128))
    assert report.errors[0].kind == "barrier_divergence"
    assert "block (3, 0, 0)" in report.errors[0].message


def spin_and_sync(flag, x, out):
    i = cuda.grid(1)
    if i == 5:
        x[0] = 7
        cuda.threadfence()
        cuda.atomic.exch(flag, 0, 1)
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
    cuda.cg.this_grid().sync()
    out[i] = x[0]


def test_threads_that_run_one_at_a_time_meet_as_well():
    out = np.zeros(64)
    assert not refsim.launch(spin_and_sync, 2, 32, np.zeros(1, np.int32), np.zeros(1), out).findings
    assert (out == 7).all()


def test_more_threads_than_can_be_told_apart_are_refused():
    with pytest.raises(refsim.UnsupportedError, match="launch a smaller grid"):
        refsim.launch(neighbours_block, 65536, 512, np.zeros(1), np.zeros(1))
