"""Threads that write one value into one cell: a note, unless another value or a read comes between."""

import numpy as np
import pytest
from numba import cuda, int32

import refsim

SCHEDULES = pytest.mark.parametrize("lanes_per_batch", [1, 65536])


def severities(kernel, grid, block, cells, **options):
    report = refsim.launch(kernel, grid, block, np.zeros(cells, np.int32), checks="racecheck", **options)
    return {finding.severity for finding in report.findings}


def raised_in_a_loop(flag):
    for _ in range(3):
        flag[0] = 1


@SCHEDULES
def test_a_flag_that_all_raise_several_times_is_a_note(lanes_per_batch):
    assert severities(raised_in_a_loop, 3, 64, 1, lanes_per_batch=lanes_per_batch) == {"note"}


def lowered_then_raised(flag):
    flag[0] = 0
    cuda.syncthreads()
    flag[0] = 1


@SCHEDULES
def test_another_value_of_another_block_is_remembered_behind_its_barrier(lanes_per_batch):
    assert severities(lowered_then_raised, 1, 64, 1) == {"note"}
    assert severities(lowered_then_raised, 3, 64, 1, lanes_per_batch=lanes_per_batch) == {"error", "note"}


def own_value_replaced(flag):
    if cuda.threadIdx.x == 0:
        flag[0] = 9
        flag[0] = 5
    if cuda.threadIdx.x == 32:
        flag[0] = 5


def own_value_replaced_in_shared_memory(out):
    flag = cuda.shared.array(1, int32)
    if cuda.threadIdx.x == 0:
        flag[0] = 9
        flag[0] = 5
    if cuda.threadIdx.x == 32:
        flag[0] = 5


@pytest.mark.parametrize("kernel", [own_value_replaced, own_value_replaced_in_shared_memory])
def test_a_value_that_its_thread_replaced_is_remembered(kernel):
    assert "error" in severities(kernel, 1, 64, 1)


def read_by_one_of_the_writers(out):
    flag = cuda.shared.array(1, int32)
    flag[0] = 1
    if cuda.threadIdx.x == 63:
        out[0] = flag[0]


def replaced_by_one_of_the_writers(out):
    flag = cuda.shared.array(1, int32)
    flag[0] = 1
    if cuda.threadIdx.x == 63:
        flag[0] = 2


def added_to_by_one_of_the_writers(out):
    flag = cuda.shared.array(1, int32)
    flag[0] = 1
    if cuda.threadIdx.x == 63:
        cuda.atomic.add(flag, 0, 1)


@pytest.mark.parametrize(
    "kernel", [read_by_one_of_the_writers, replaced_by_one_of_the_writers, added_to_by_one_of_the_writers]
)
def test_the_last_writer_of_a_common_value_races_with_the_other_writers(kernel):
    assert severities(kernel, 1, 64, 1) == {"error", "note"}


def read_behind_a_warp_barrier(out):
    flag = cuda.shared.array(1, int32)
    flag[0] = 1
    cuda.syncwarp()
    if cuda.threadIdx.x == 63:
        out[0] = flag[0]


def test_a_warp_barrier_orders_the_writers_of_one_warp_only():
    assert severities(read_behind_a_warp_barrier, 1, 32, 1) == {"note"}
    assert severities(read_behind_a_warp_barrier, 1, 64, 1) == {"error", "note"}


def blocks_differ_in_value(out):
    cell = cuda.shared.array(2, int32)
    t, b = cuda.threadIdx.x, cuda.blockIdx.x
    if t == 0:
        cell[0] = 0
    if t == 1:
        cell[0] = b


def test_one_block_does_not_stand_for_the_values_of_the_others():
    assert severities(blocks_differ_in_value, 1, 32, 1) == {"note"}
    assert severities(blocks_differ_in_value, 2, 32, 1) == {"error"}
