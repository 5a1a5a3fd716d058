"""Races against reads that are long past: more reads in one interval than are remembered one by one."""

import numpy as np
import pytest
from numba import cuda, float32, int32

import refsim

CELLS = 200


def all_read_then_one_writes(x, out):
    cells = cuda.shared.array(CELLS, float32)
    t = cuda.threadIdx.x
    for i in range(t, CELLS, cuda.blockDim.x):
        cells[i] = x[i]
    cuda.syncthreads()
    total = float32(0.0)
    for i in range(CELLS):
        total += cells[i]
    if t == 0:
        cells[3] = total  # others may still be reading cell 3
    out[t] = total


def all_read_then_one_writes_after_a_barrier(x, out):
    cells = cuda.shared.array(CELLS, float32)
    t = cuda.threadIdx.x
    for i in range(t, CELLS, cuda.blockDim.x):
        cells[i] = x[i]
    cuda.syncthreads()
    total = float32(0.0)
    for i in range(CELLS):
        total += cells[i]
    cuda.syncthreads()
    if t == 0:
        cells[3] = total
    out[t] = total


def each_reads_its_own_then_one_writes(x, out):
    cells = cuda.shared.array(CELLS, float32)
    t = cuda.threadIdx.x
    for i in range(t, CELLS, cuda.blockDim.x):
        cells[i] = x[i]
    cuda.syncthreads()
    total = float32(0.0)
    for _ in range(CELLS):
        total += cells[t] + cells[t + 64]
    if t == 5:
        cells[t + 65] = total  # thread 6 may still be reading it
    out[t] = total


def each_reads_its_own_then_writes_it(x, out):
    cells = cuda.shared.array(CELLS, float32)
    t = cuda.threadIdx.x
    for i in range(t, CELLS, cuda.blockDim.x):
        cells[i] = x[i]
    cuda.syncthreads()
    total = float32(0.0)
    for _ in range(CELLS):
        total += cells[t] + cells[t + 64]
    cells[t + 64] = total
    out[t] = total


def plain_write_then_atomics(x, out):
    bins = cuda.shared.array(4, int32)
    t = cuda.threadIdx.x
    bins[t % 4] = 0
    cuda.atomic.add(bins, (t + 1) % 4, 1)  # no barrier after the zeros
    cuda.syncthreads()
    out[t] = bins[t % 4]


def zeros_then_many_atomics(x, out):
    bins = cuda.shared.array(4, int32)
    t = cuda.threadIdx.x
    if t < 4:
        bins[t] = 0
    cuda.syncthreads()
    for i in range(CELLS):
        cuda.atomic.add(bins, (t + i) % 4, 1)
    cuda.syncthreads()
    out[t] = bins[t % 4]


@pytest.mark.parametrize(
    ("kernel", "line"),
    [
        (all_read_then_one_writes, 10),
        (all_read_then_one_writes_after_a_barrier, None),
        (each_reads_its_own_then_one_writes, 10),
        (each_reads_its_own_then_writes_it, None),
        (plain_write_then_atomics, 4),
        (zeros_then_many_atomics, None),
    ],
)
def test_races_against_long_histories(kernel, line):
    x, out = np.ones(CELLS, np.float32), np.zeros(64, np.float32)
    report = refsim.launch(kernel, 1, 64, x, out)
    races = {f.line - kernel.__code__.co_firstlineno for f in report.findings if f.kind == "race"}
    other = {f.other.line - kernel.__code__.co_firstlineno for f in report.findings if f.other is not None}
    if line is None:
        assert not report.findings
    else:
        assert line in races | other


def each_looks_up_its_own(x, out):
    cells = cuda.shared.array(64, int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    cells[t] = 3 * t
    cuda.syncthreads()
    total = 0
    for k in range(300):
        total += cells[(x[i] + k) % 64]
    if i == 70:
        cells[5] = 0  # others may still be reading it
    out[i] = total


def test_many_reads_that_differ_between_blocks():
    x, out = np.random.default_rng(0).integers(0, 64, 256), np.zeros(256, np.int64)
    report = refsim.launch(each_looks_up_its_own, 4, 64, x, out)
    assert [(f.kind, f.block, f.thread) for f in report.findings] == [("race", (1, 0, 0), (6, 0, 0))]
    np.testing.assert_array_equal(out, (3 * ((x[:, None] + np.arange(300)) % 64)).sum(axis=1))
