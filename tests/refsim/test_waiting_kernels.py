"""Threads that wait for each other in loops: they finish, race or deadlock as on a device."""

import numpy as np
import pytest
from numba import cuda, float32

import refsim

I32 = np.int32


def spin_lock(lock, total):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    total[0] += 1
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


def test_a_spin_lock_serialises_all_threads():
    total = np.zeros(1)
    assert not refsim.launch(spin_lock, 2, 32, np.zeros(1, I32), total).findings
    assert total[0] == 64


def spin_lock_without_fence(lock, total):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    total[0] += 1
    cuda.atomic.exch(lock, 0, 0)


def test_a_lock_that_is_given_back_without_a_fence_orders_nothing():
    report = refsim.launch(spin_lock_without_fence, 1, 64, np.zeros(1, I32), np.zeros(1))
    assert {finding.kind for finding in report.errors} == {"race"}


def lock_never_given_back(lock, total):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    total[0] += 1


def test_a_lock_that_is_not_given_back_is_a_deadlock():
    report = refsim.launch(lock_never_given_back, 1, 64, np.zeros(1, I32), np.zeros(1))
    (finding,) = report.errors
    assert finding.kind == "deadlock"
    assert "63 threads" in finding.message
    assert "cas" in finding.source


def wait_for_a_flag(flag, out):
    i = cuda.grid(1)
    if i != 0:
        waited = 0
        while cuda.atomic.add(flag, 0, 0) == 0:
            waited += 1
        out[i] = out[0]
    else:
        out[0] = 5
        cuda.threadfence()
        cuda.atomic.exch(flag, 0, 1)


@pytest.mark.parametrize(("grid", "block"), [(1, 64), (8, 8), (3, 33)])
def test_consumers_wait_for_the_producer(grid, block):
    out = np.zeros(grid * block)
    assert not refsim.launch(wait_for_a_flag, grid, block, np.zeros(1, I32), out).findings
    assert (out == 5).all()


def grid_barrier(arrived, x, out):
    i = cuda.grid(1)
    x[i] = i
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.threadfence()
        cuda.atomic.add(arrived, 0, 1)
        while cuda.atomic.add(arrived, 0, 0) < cuda.gridDim.x:
            pass
        cuda.threadfence()
    cuda.syncthreads()
    out[i] = x[(i + 37) % x.size]


def test_a_ticket_barrier_orders_all_blocks():
    x, out = np.zeros(256), np.zeros(256)
    assert not refsim.launch(grid_barrier, 8, 32, np.zeros(1, I32), x, out).findings
    np.testing.assert_array_equal(out, (np.arange(256) + 37) % 256)


def producer_and_consumer_warps(flag, buffer, out):
    t = cuda.threadIdx.x
    if t < 32:
        buffer[t] = cuda.shfl_xor_sync(0xFFFFFFFF, t, 1)
        cuda.threadfence()
        cuda.syncwarp()
        if t == 0:
            cuda.atomic.exch(flag, 0, 1)
    else:
        if t == 32:
            while cuda.atomic.add(flag, 0, 0) == 0:
                pass
            cuda.threadfence()
        cuda.syncwarp()
        out[t - 32] = buffer[t - 32]


def test_a_warp_hands_its_results_to_another():
    out = np.zeros(32)
    assert not refsim.launch(producer_and_consumer_warps, 1, 64, np.zeros(1, I32), np.zeros(32), out).findings
    np.testing.assert_array_equal(out, np.arange(32) ^ 1)


def look_back_scan(x, ticket, state, total, out):
    """Chained scan: each block waits for the running total of the one before it."""
    cells = cuda.shared.array(32, float32)
    before = cuda.shared.array(2, float32)
    t = cuda.threadIdx.x
    if t == 0:
        before[1] = cuda.atomic.add(ticket, 0, 1)
    cuda.syncthreads()
    block = int(before[1])
    cells[t] = x[block * 32 + t]
    cuda.syncthreads()
    step = 1
    while step < 32:
        value = cells[t - step] if t >= step else float32(0)
        cuda.syncthreads()
        cells[t] += value
        cuda.syncthreads()
        step *= 2
    if t == 0:
        carried = float32(0)
        if block > 0:
            while cuda.atomic.add(state, block - 1, 0) == 0:
                pass
            cuda.threadfence()
            carried = total[block - 1]
        total[block] = carried + cells[31]
        cuda.threadfence()
        cuda.atomic.exch(state, block, 1)
        before[0] = carried
    cuda.syncthreads()
    out[block * 32 + t] = cells[t] + before[0]


def test_a_decoupled_look_back_scan_finishes():
    x = np.arange(256, dtype=np.float32) % 7
    out = np.zeros(256, np.float32)
    report = refsim.launch(look_back_scan, 8, 32, x, np.zeros(1, I32), np.zeros(8, I32), np.zeros(8, np.float32), out)
    assert not report.findings
    np.testing.assert_array_equal(out, np.cumsum(x))


def waits_before_the_barrier_of_its_waker(flag):
    t = cuda.threadIdx.x
    if t == 0:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
    cuda.syncthreads()
    if t == 1:
        cuda.atomic.exch(flag, 0, 1)


def test_a_deadlock_says_who_waits_where():
    (finding,) = refsim.launch(waits_before_the_barrier_of_its_waker, 1, 64, np.zeros(1, I32)).errors
    assert finding.kind == "deadlock"
    assert "63 threads at the barrier" in finding.message
    assert "1 thread in the loop" in finding.message


def test_too_many_waiting_threads_are_refused():
    with pytest.raises(refsim.UnsupportedError, match="launch a smaller grid"):
        refsim.launch(spin_lock, 1024, 64, np.zeros(1, I32), np.zeros(1))


def test_a_spin_lock_of_many_threads_takes_its_turns():
    total = np.zeros(1)
    assert not refsim.launch(spin_lock, 8, 64, np.zeros(1, I32), total).findings
    assert total[0] == 512


def locked_by_leaders(lock, total):
    if cuda.threadIdx.x == 0:
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        total[0] += 1
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)


def test_blocks_that_wait_for_each_other_run_in_lockstep_each():
    """More threads than could take turns one by one."""
    total = np.zeros(1)
    assert not refsim.launch(locked_by_leaders, 80, 256, np.zeros(1, I32), total).findings
    assert total[0] == 80
