"""The examples of numba-cuda's documentation, written out as kernels, give NumPy's answers.

Two of them wait for the whole grid inside the kernel; here they are two launches, or one launch per step. The one
that draws random numbers by a library draws them by a generator written out in the kernel.
"""

import math

import numba
import numpy as np
import pytest
from clean_launch import launch_clean
from numba import cuda, float32, int32

TILE = 16
TAX_RATE = 0.08
PRICES = np.array([10.0, 25.0, 5.0, 15.0, 30.0])
SESSION_TIMEOUT = 3600


def blocks_for(n, threads):
    return (n + threads - 1) // threads


def test_vector_addition():
    @cuda.jit
    def add(a, b, c):
        tid = cuda.grid(1)
        if tid < len(c):
            c[tid] = a[tid] + b[tid]

    rng = np.random.default_rng(1)
    a, b = rng.random(100_000), rng.random(100_000)
    c = np.zeros_like(a)
    launch_clean(add, len(a) // 256 + 1, 256, a, b, c)
    np.testing.assert_array_equal(c, a + b)


# ---- matrix products ----------------------------------------------------------------------------------------------


def test_matrix_product_one_element_per_thread():
    @cuda.jit
    def matmul(a, b, c):
        i, j = cuda.grid(2)
        if i < c.shape[0] and j < c.shape[1]:
            total = 0.0
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            c[i, j] = total

    a, b, c = np.arange(16.0).reshape(4, 4), np.ones((4, 4)), np.zeros((4, 4))
    launch_clean(matmul, (1, 1), (16, 16), a, b, c)
    np.testing.assert_array_equal(c, a @ b)


@cuda.jit
def matmul_shared(a, b, c):
    """The documentation's product through shared memory: as many tiles along K as blocks along x."""
    tile_a = cuda.shared.array(shape=(TILE, TILE), dtype=float32)
    tile_b = cuda.shared.array(shape=(TILE, TILE), dtype=float32)
    x, y = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    total = float32(0.0)
    for step in range(cuda.gridDim.x):
        tile_a[ty, tx] = 0
        tile_b[ty, tx] = 0
        if y < a.shape[0] and tx + step * TILE < a.shape[1]:
            tile_a[ty, tx] = a[y, tx + step * TILE]
        if x < b.shape[1] and ty + step * TILE < b.shape[0]:
            tile_b[ty, tx] = b[ty + step * TILE, x]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = total


@pytest.mark.parametrize(("m", "k", "n"), [(4, 4, 4), (5, 23, 7), (33, 17, 40), (1, 64, 1)])
def test_matrix_product_through_shared_memory(m, k, n):
    a, b, c = np.arange(float(m * k)).reshape(m, k) % 50, np.ones((k, n)), np.zeros((m, n))
    grid = (blocks_for(max(m, k, n), TILE), blocks_for(max(m, k), TILE))
    launch_clean(matmul_shared, grid, (TILE, TILE), a, b, c)
    np.testing.assert_array_equal(c, a @ b)


# ---- reductions ---------------------------------------------------------------------------------------------------


def test_sum_of_an_array_by_one_block():
    count = 1024

    @cuda.jit
    def array_sum(data):
        tid = cuda.threadIdx.x
        size = len(data)
        if tid < size:
            i = cuda.grid(1)
            sums = cuda.shared.array(count, int32)
            sums[tid] = data[i]
            cuda.syncthreads()
            stride = 1
            while stride < cuda.blockDim.x:
                if tid % (2 * stride) == 0:
                    sums[tid] += sums[tid + stride]
                stride *= 2
                cuda.syncthreads()
            if tid == 0:
                data[tid] = sums[tid]

    data = np.arange(count)
    launch_clean(array_sum, 1, count, data)
    assert data[0] == 523776
    np.testing.assert_array_equal(data[1:], np.arange(1, count))


# ---- the heat equation --------------------------------------------------------------------------------------------


@cuda.jit
def heat_step(now, after, k):
    i = cuda.grid(1)
    if i >= len(now):
        return
    here = now[i]
    if i == 0:
        after[i] = here + k * (now[i + 1] - 2 * here)
    elif i == len(now) - 1:
        after[i] = here + k * (now[i - 1] - 2 * here)
    else:
        after[i] = here + k * (now[i - 1] - 2 * here + now[i + 1])


def test_heat_equation_with_one_launch_per_step():
    size, steps = 501, 200
    now, after = np.zeros(size), np.zeros(size)
    now[size // 2] = 10_000
    expected = now.copy()
    for _ in range(steps):
        launch_clean(heat_step, blocks_for(size, 128), 128, now, after, 0.25)
        now, after = after, now
        left, right = np.append(0, expected[:-1]), np.append(expected[1:], 0)
        expected = expected + 0.25 * (left - 2 * expected + right)
    np.testing.assert_allclose(now, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(now.sum(), 10_000)


# ---- Monte Carlo --------------------------------------------------------------------------------------------------


@cuda.jit(device=True)
def next_state(state):
    return (state * 1103515245 + 12345) % 2147483648


@cuda.jit
def integrate(out, low, high, draws):
    """Each thread draws its own numbers and adds up 1 / x."""
    i = cuda.grid(1)
    if i < out.size:
        state = (i * 2654435761 + 1) % 2147483648
        total = 0.0
        for _ in range(draws):
            state = next_state(state)
            sample = state / 2147483648 * (high - low) + low
            total += 1.0 / sample
        out[i] = total


@pytest.mark.parametrize(("low", "high"), [(1.0, 2.0), (2.0, 3.0)])
def test_monte_carlo_integral(low, high):
    threads, draws = 4096, 16
    out = np.zeros(threads)
    launch_clean(integrate, blocks_for(threads, 128), 128, out, low, high, draws)
    state = (np.arange(threads) * 2654435761 + 1) % 2147483648
    expected = np.zeros(threads)
    for _ in range(draws):
        state = (state * 1103515245 + 12345) % 2147483648
        expected += 1.0 / (state / 2147483648 * (high - low) + low)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_allclose(out.mean() / draws * (high - low), math.log(high / low), atol=2e-3)


def test_three_dimensional_strided_loops():
    @cuda.jit
    def fill(out):
        start_x, start_y, start_z = cuda.grid(3)
        stride_x, stride_y, stride_z = cuda.gridsize(3)
        tid = start_z * stride_y * stride_x + start_y * stride_x + start_x
        for i in range(start_z, out.shape[0], stride_z):
            for j in range(start_y, out.shape[1], stride_y):
                for k in range(start_x, out.shape[2], stride_x):
                    out[i, j, k] = tid

    out = np.full((11, 13, 9), -1)
    launch_clean(fill, (2, 1, 2), (2, 4, 2), out)
    z, y, x = np.indices(out.shape)
    np.testing.assert_array_equal(out, (z % 4) * 4 * 4 + (y % 4) * 4 + x % 4)


# ---- sessions of a click stream -----------------------------------------------------------------------------------


@cuda.jit
def mark_boundaries(user, seconds, first):
    i = cuda.grid(1)
    if i >= len(user):
        return
    boundary = i == 0
    if not boundary:
        new_user = user[i] != user[i - 1]
        timed_out = seconds[i] - seconds[i - 1] > SESSION_TIMEOUT
        boundary = new_user or timed_out
    first[i] = i if boundary else -1


@cuda.jit
def spread_sessions(first, session):
    """Each session's first thread labels the clicks up to the next boundary."""
    i = cuda.grid(1)
    if i < len(first) and first[i] >= 0:
        session[i] = i
        ahead = 1
        while i + ahead < len(first) and first[i + ahead] < 0:
            session[i + ahead] = i
            ahead += 1


def test_sessions_of_a_click_stream():
    rng = np.random.default_rng(4)
    user = np.sort(rng.integers(0, 20, 300))
    seconds = np.cumsum(rng.integers(1, 9000, 300))
    first, session = np.zeros(300, np.int64), np.full(300, -1)
    launch_clean(mark_boundaries, 3, 128, user, seconds, first)
    launch_clean(spread_sessions, 3, 128, first, session)
    boundary = np.append(True, (np.diff(user) != 0) | (np.diff(seconds) > SESSION_TIMEOUT))
    expected = np.maximum.accumulate(np.where(boundary, np.arange(300), 0))
    np.testing.assert_array_equal(session, expected)


# ---- functions and globals ----------------------------------------------------------------------------------------


@numba.njit
def business_logic(x, y, z):
    return 4 * z * (2 * x - (4 * y) / 2 * math.pi)


def test_function_shared_by_cpu_and_gpu():
    @cuda.jit
    def apply(out, xs, ys, zs):
        tid = cuda.grid(1)
        if tid < len(xs):
            out[tid] = business_logic(xs[tid], ys[tid], zs[tid])

    xs, ys, zs = np.array([1, 10, 234]), np.array([2, 2, 4014]), np.array([3, 14, 2211])
    out = np.zeros(3)
    launch_clean(apply, 1, 32, out, xs, ys, zs)
    np.testing.assert_array_equal(out, 4 * zs * (2 * xs - (4 * ys) / 2 * math.pi))


def test_globals_are_constants():
    @cuda.jit
    def totals(quantities, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = quantities[i] * PRICES[i] * (1 + TAX_RATE)

    quantities, out = np.arange(1.0, 6.0), np.zeros(5)
    launch_clean(totals, 1, 32, quantities, out)
    np.testing.assert_array_equal(out, quantities * PRICES * 1.08)
