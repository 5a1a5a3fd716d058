"""Accesses that a later one of the own thread or block would hide from a shadow that keeps only the last."""

import numpy as np
import pytest
from numba import cuda

import refsim

SCHEDULES = pytest.mark.parametrize("lanes_per_batch", [1, 65536])


def last_block_sums(partial, counter, out):
    ticket = cuda.shared.array(1, np.int32)
    thread, block = cuda.threadIdx.x, cuda.blockIdx.x
    if thread == 0:
        partial[block] = block + 1
        cuda.threadfence()
        ticket[0] = cuda.atomic.inc(counter, 0, 1000)
    cuda.syncthreads()
    if ticket[0] == cuda.gridDim.x - 1 and thread == 0:
        total = 0
        for k in range(cuda.gridDim.x):
            total += partial[k]
        out[0] = total
        counter[0] = 0


@SCHEDULES
def test_the_last_block_may_reset_the_counter_that_all_blocks_took_tickets_from(lanes_per_batch):
    partial, counter, out = np.zeros(8), np.ones(1, np.uint32) - 1, np.zeros(1)
    report = refsim.launch(
        last_block_sums, 8, 64, partial, counter.astype(np.uint32), out, lanes_per_batch=lanes_per_batch
    )
    assert not report.findings
    assert out[0] == 36


def counts_then_reads(out):
    total = cuda.shared.array(1, np.int32)
    thread = cuda.threadIdx.x
    if thread == 0:
        total[0] = 0
    cuda.syncthreads()
    cuda.atomic.add(total, 0, 1)
    if thread == 63:
        out[0] = total[0]


def test_the_last_adder_reads_what_others_still_add_to():
    report = refsim.launch(counts_then_reads, 1, 64, np.zeros(1))
    assert [finding.kind for finding in report.errors] == ["race"]
    assert report.errors[0].thread == (63, 0, 0)
    assert report.errors[0].other.thread == (62, 0, 0)


def adds_then_reads_behind_a_barrier(total, out):
    cuda.atomic.add(total, 0, 1)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.x] = total[0]


@SCHEDULES
def test_a_barrier_orders_only_the_own_blocks_additions(lanes_per_batch):
    one = refsim.launch(adds_then_reads_behind_a_barrier, 1, 64, np.zeros(1, np.int32), np.zeros(1))
    assert one.ok
    many = refsim.launch(
        adds_then_reads_behind_a_barrier, 4, 64, np.zeros(1, np.int32), np.zeros(4), lanes_per_batch=lanes_per_batch
    )
    assert [finding.kind for finding in many.errors] == ["race"]
    assert many.errors[0].other.block != many.errors[0].block


def clears_then_adds(out, x):
    i = cuda.grid(1)
    if i == 0:
        out[0] = 0
    cuda.syncthreads()
    cuda.atomic.add(out, 0, x[i])


@SCHEDULES
def test_a_plain_write_is_not_hidden_by_the_own_blocks_atomics(lanes_per_batch):
    report = refsim.launch(clears_then_adds, 4, 64, np.zeros(1), np.ones(256), lanes_per_batch=lanes_per_batch)
    assert [finding.kind for finding in report.errors] == ["race"]


def counts_then_writes_behind_a_barrier(out):
    cells = cuda.shared.array(64, np.int32)
    thread = cuda.threadIdx.x
    cells[thread] = 0
    cuda.syncthreads()
    cuda.atomic.add(cells, 0, 1)
    if thread == 40:
        out[1] = cells[0]
    cuda.syncthreads()
    if thread < 32:
        cells[0] = 5
    if thread == 31:
        out[0] = cells[0]


def counts_then_writes_behind_a_barrier_of_the_grid(counter, out):
    i = cuda.grid(1)
    cuda.atomic.add(counter, 0, 1)
    if i < 64:
        cuda.atomic.add(counter, 0, 1)
    cuda.cg.this_grid().sync()
    if i < 32:
        counter[0] = 5
    if i == 31:
        out[0] = counter[0]


@pytest.mark.parametrize(
    ("kernel", "arguments", "blocks"),
    [
        (counts_then_writes_behind_a_barrier, (np.zeros(2),), 1),
        (counts_then_writes_behind_a_barrier_of_the_grid, (np.zeros(1, np.int32), np.zeros(1)), 2),
    ],
)
def test_what_a_barrier_ended_hides_no_other_writer(kernel, arguments, blocks):
    report = refsim.launch(kernel, blocks, 64, *arguments)
    error = report.errors[-1]
    assert (error.thread, error.other.thread) == ((31, 0, 0), (30, 0, 0))
    assert error.message.startswith("read after write")
