"""Atomics on every dtype: final values, returned old values, float and integer rules."""

import numpy as np
import pytest
from clean_launch import launch_clean
from numba import cuda

INTEGERS = ["int32", "uint32", "int64", "uint64"]
NUMBERS = [*INTEGERS, "float32", "float64"]
THREADS = 96
BLOCKS = 3


def numbers(dtype, count=THREADS * BLOCKS, seed=0):
    """Small integers, of both signs where the dtype has them: sums are exact in any order."""
    low = 0 if dtype.startswith("u") else -50
    return np.random.default_rng(seed).integers(low, 50, count).astype(dtype)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_add_and_sub(dtype):
    def accumulate(x, out):
        i = cuda.grid(1)
        cuda.atomic.add(out, 0, x[i])
        cuda.atomic.sub(out, 1, x[i])

    x = numbers(dtype)
    out = np.full(2, 7, dtype)
    launch_clean(accumulate, BLOCKS, THREADS, x, out)
    with np.errstate(over="ignore"):
        total = x.sum(dtype=dtype)
        np.testing.assert_array_equal(out, np.array([total + np.array(7, dtype), np.array(7, dtype) - total]))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_add_returns_the_old_values(dtype):
    def ticket(counter, out):
        i = cuda.grid(1)
        out[i] = cuda.atomic.add(counter, 0, 2)

    counter, out = np.full(1, 5, dtype), np.zeros(THREADS * BLOCKS, dtype)
    launch_clean(ticket, BLOCKS, THREADS, counter, out)
    np.testing.assert_array_equal(np.sort(out), (5 + 2 * np.arange(THREADS * BLOCKS)).astype(dtype))
    assert counter[0] == 5 + 2 * THREADS * BLOCKS


def maximum(x, out, old):
    i = cuda.grid(1)
    old[i] = cuda.atomic.max(out, i % 4, x[i])


def minimum(x, out, old):
    i = cuda.grid(1)
    old[i] = cuda.atomic.min(out, i % 4, x[i])


def maximum_without_nan(x, out, old):
    i = cuda.grid(1)
    old[i] = cuda.atomic.nanmax(out, i % 4, x[i])


def minimum_without_nan(x, out, old):
    i = cuda.grid(1)
    old[i] = cuda.atomic.nanmin(out, i % 4, x[i])


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("kernel", [maximum, minimum, maximum_without_nan, minimum_without_nan])
def test_extremes(dtype, kernel):
    x = numbers(dtype, seed=3)
    start = np.array([0, 100, 10, 20], dtype)
    out, old = start.copy(), np.zeros_like(x)
    launch_clean(kernel, BLOCKS, THREADS, x, out, old)
    reduce = np.maximum if kernel in (maximum, maximum_without_nan) else np.minimum
    for cell in range(4):
        mine = x[cell::4]
        assert out[cell] == reduce.reduce(np.append(mine, start[cell]))
        seen = old[cell::4]  # every old value was the start or somebody's value, and one of them was the start
        assert set(seen) <= {start[cell], *mine}
        assert start[cell] in seen


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nanmax_and_nanmin_ignore_nan(dtype):
    def extremes(x, out):
        i = cuda.grid(1)
        cuda.atomic.nanmax(out, 0, x[i])
        cuda.atomic.nanmin(out, 1, x[i])

    x = np.array([3, np.nan, -2, 8, np.nan, 1], dtype)
    out = np.array([0, 0], dtype)
    launch_clean(extremes, 1, 6, x, out)
    assert out.tolist() == [8, -2]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bitwise(dtype):
    def fold(x, ands, ors, xors):
        i = cuda.grid(1)
        cuda.atomic.and_(ands, i % 3, x[i])
        cuda.atomic.or_(ors, i % 3, x[i])
        cuda.atomic.xor(xors, i % 3, x[i])

    x = np.random.default_rng(5).integers(0, 2**31, 90).astype(dtype)
    start = np.array([0x7FF0FFFF, 0x00000F00, 0x12345678], dtype)
    results = [start.copy() for _ in range(3)]
    launch_clean(fold, 3, 30, x, *results)
    for reduce, out in zip((np.bitwise_and, np.bitwise_or, np.bitwise_xor), results):
        for cell in range(3):
            assert out[cell] == reduce.reduce(np.append(x[cell::3], start[cell]))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_exchange_passes_every_value_on(dtype):
    def exchange(x, out, old):
        i = cuda.grid(1)
        old[i] = cuda.atomic.exch(out, 0, x[i])

    x = np.arange(10, 74).astype(dtype)
    out, old = np.full(1, 3, dtype), np.zeros(64, dtype)
    launch_clean(exchange, 2, 32, x, out, old)
    np.testing.assert_array_equal(np.sort(np.append(old, out)), np.append(np.array([3], dtype), x))


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_increment_and_decrement_wrap_at_their_limit(dtype):
    def count(up, down, old):
        i = cuda.grid(1)
        old[i] = cuda.atomic.inc(up, 0, 9)
        cuda.atomic.dec(down, 0, 9)

    up, down, old = np.full(1, 7, dtype), np.full(1, 2, dtype), np.zeros(64, dtype)
    launch_clean(count, 1, 64, up, down, old)
    value, seen = 7, []
    for _ in range(64):
        seen.append(value)
        value = 0 if value >= 9 else value + 1
    assert up[0] == value
    assert sorted(old.tolist()) == sorted(seen)
    value = 2
    for _ in range(64):
        value = 9 if value == 0 or value > 9 else value - 1
    assert down[0] == value


@pytest.mark.parametrize("dtype", INTEGERS)
def test_compare_and_swap_has_one_winner(dtype):
    def claim(cell, old):
        i = cuda.grid(1)
        old[i] = cuda.atomic.compare_and_swap(cell, 0, i + 1)

    cell, old = np.zeros(1, dtype), np.full(64, 99, dtype)
    launch_clean(claim, 2, 32, cell, old)
    assert (old == 0).sum() == 1
    winner = int(np.flatnonzero(old == 0)[0])
    assert cell[0] == winner + 1
    assert set(old.tolist()) == {0, winner + 1}


@pytest.mark.parametrize("dtype", INTEGERS)
def test_cas_takes_an_index(dtype):
    def claim(cells, old):
        i = cuda.grid(1)
        old[i] = cuda.atomic.cas(cells, (i % 2, 1), 5, i + 100)

    cells, old = np.full((2, 2), 5, dtype), np.zeros(40, dtype)
    launch_clean(claim, 1, 40, cells, old)
    assert cells[:, 0].tolist() == [5, 5]
    for row in range(2):
        mine = old[row::2]
        winner = int(np.flatnonzero(mine == 5)[0]) * 2 + row
        assert (mine == 5).sum() == 1
        assert cells[row, 1] == winner + 100


def test_cas_that_does_not_match_changes_nothing():
    def claim(cells, old):
        i = cuda.grid(1)
        old[i] = cuda.atomic.cas(cells, i, 1, 50)

    cells, old = np.array([0, 1, 2, 1], np.int32), np.zeros(4, np.int32)
    launch_clean(claim, 1, 4, cells, old)
    assert cells.tolist() == [0, 50, 2, 50]
    assert old.tolist() == [0, 1, 2, 1]


def test_index_of_two_dimensions_and_negative_index():
    def scatter(x, out, line):
        i = cuda.grid(1)
        cuda.atomic.add(out, (i % 2, i % 3), x[i])
        cuda.atomic.add(line, -1, x[i])

    x = numbers("float64", 60)
    out, line = np.zeros((2, 3)), np.zeros(4)
    launch_clean(scatter, 2, 30, x, out, line)
    i = np.arange(60)
    expected = np.zeros((2, 3))
    np.add.at(expected, (i % 2, i % 3), x)
    np.testing.assert_array_equal(out, expected)
    assert line.tolist() == [0, 0, 0, x.sum()]


def test_float_atomics_round_in_the_arrays_format():
    def accumulate(x, out):
        cuda.atomic.add(out, 0, x[cuda.grid(1)])

    x = np.full(16, 2.0**-24)
    out = np.ones(1, np.float32)  # each addend is half a unit in the last place: ties to even, nothing changes
    launch_clean(accumulate, 1, 16, x, out)
    assert out[0] == 1.0


def test_atomics_in_shared_memory():
    def histogram(keys, out):
        counts = cuda.shared.array(8, np.uint32)
        i = cuda.threadIdx.x
        if i < 8:
            counts[i] = 0
        cuda.syncthreads()
        cuda.atomic.add(counts, keys[cuda.grid(1)], 1)
        cuda.syncthreads()
        if i < 8:
            cuda.atomic.add(out, i, counts[i])

    keys = np.random.default_rng(7).integers(0, 8, 256).astype(np.int64)
    out = np.zeros(8, np.uint32)
    launch_clean(histogram, 4, 64, keys, out)
    np.testing.assert_array_equal(out, np.bincount(keys, minlength=8))


def test_atomics_only_where_the_branch_goes():
    def count_positive(x, out):
        i = cuda.grid(1)
        if x[i] > 0:
            cuda.atomic.add(out, 0, 1)
        elif x[i] < 0:
            cuda.atomic.add(out, 1, 1)

    x = numbers("int32", 200)
    out = np.zeros(2, np.int32)
    launch_clean(count_positive, 2, 100, x, out)
    assert out.tolist() == [(x > 0).sum(), (x < 0).sum()]


SUBNORMAL = np.float32(1e-40)


def running_sums(cell, values, flush):
    """What a cell holds after each addition in turn."""

    def small_is_zero(x):
        return np.copysign(np.float32(0), x) if flush and abs(x) < np.float32(2.0**-126) else x

    sums = []
    for value in values:
        cell = small_is_zero(small_is_zero(cell) + small_is_zero(value))
        sums.append(cell)
    return np.array(sums, np.float32)


@pytest.mark.parametrize(("device", "flush"), [("sim:sm_90", True), ("sim:gfx942", False)])
@pytest.mark.parametrize("cells", [1, 3])
def test_float32_additions_to_global_memory_flush_subnormal_numbers_where_the_device_does(device, flush, cells):
    def accumulate(x, out):
        i = cuda.grid(1)
        cuda.atomic.add(out, i % out.size, x[i])

    rng = np.random.default_rng(3)
    x = (rng.integers(-3, 4, THREADS) * 1.1754944e-38 * rng.choice([0.3, 1, 1.25], THREADS)).astype(np.float32)
    out = np.full(cells, SUBNORMAL)
    launch_clean(accumulate, 1, THREADS, x, out, device=device)
    expected = [running_sums(SUBNORMAL, x[cell::cells], flush)[-1] for cell in range(cells)]
    assert out.tobytes() == np.array(expected, np.float32).tobytes()


def test_adding_zero_flushes_a_subnormal_cell_of_global_but_not_of_shared_memory():
    def add_zero(out, old, shared):
        cell = cuda.shared.array(1, "float32")
        cell[0] = -1e-40
        cuda.syncthreads()
        cuda.atomic.add(cell, 0, np.float32(0))
        old[0] = cuda.atomic.add(out, 0, np.float32(0))
        shared[0] = cell[0]

    out, old, shared = np.array([-SUBNORMAL]), np.zeros(1, np.float32), np.zeros(1, np.float32)
    launch_clean(add_zero, 1, 1, out, old, shared)
    assert (out[0], old[0], shared[0]) == (0, -SUBNORMAL, -SUBNORMAL)
