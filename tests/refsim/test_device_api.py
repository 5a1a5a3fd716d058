"""The device API: indices, memory spaces, block-wide operations, fences."""

import numpy as np
import pytest
from clean_launch import launch_clean, mapped
from numba import cuda, float32, float64, int32

import refsim

WEIGHTS = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
ELEMENT_TYPES = [
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *(f"float{bits}" for bits in (16, 32, 64)),
]
SIDE = 8
PADDED = SIDE + 1  # Numba takes a literal or a global for a size, no expression


# ---- indices ------------------------------------------------------------------------------------------------------


def test_indices_of_a_three_dimensional_launch():
    def record(thread, block, extent, grid_extent):
        i, j, k = cuda.grid(3)
        thread[i, j, k, 0] = cuda.threadIdx.x
        thread[i, j, k, 1] = cuda.threadIdx.y
        thread[i, j, k, 2] = cuda.threadIdx.z
        block[i, j, k, 0] = cuda.blockIdx.x
        block[i, j, k, 1] = cuda.blockIdx.y
        block[i, j, k, 2] = cuda.blockIdx.z
        if i == 0 and j == 0 and k == 0:
            extent[0] = cuda.blockDim.x
            extent[1] = cuda.blockDim.y
            extent[2] = cuda.blockDim.z
            grid_extent[0] = cuda.gridDim.x
            grid_extent[1] = cuda.gridDim.y
            grid_extent[2] = cuda.gridDim.z

    grid, block = (2, 3, 2), (4, 2, 3)
    shape = tuple(g * b for g, b in zip(grid, block))
    threads, blocks = (np.full((*shape, 3), -1, np.int32) for _ in range(2))
    extent, grid_extent = (np.zeros(3, np.int32) for _ in range(2))
    launch_clean(record, grid, block, threads, blocks, extent, grid_extent)
    index = np.stack(np.indices(shape), axis=-1)
    np.testing.assert_array_equal(threads, index % block)
    np.testing.assert_array_equal(blocks, index // block)
    assert (tuple(extent), tuple(grid_extent)) == (block, grid)


def test_grid_and_gridsize_in_two_dimensions():
    def record(out, sizes):
        x, y = cuda.grid(2)
        out[x, y] = x * 100 + y
        sizes[0], sizes[1] = cuda.gridsize(2)

    out, sizes = np.zeros((6, 10), np.int64), np.zeros(2, np.int64)
    report = refsim.launch(record, (3, 2), (2, 5), out, sizes)
    assert report.ok  # every thread stores the same sizes: a note
    np.testing.assert_array_equal(out, np.arange(6)[:, None] * 100 + np.arange(10))
    assert sizes.tolist() == [6, 10]


def test_gridsize_in_one_and_three_dimensions():
    def record(out):
        x, y, z = cuda.grid(3)
        if x == 0 and y == 0 and z == 0:
            out[0] = cuda.gridsize(1)
            a, b, c = cuda.gridsize(3)
            out[1] = a
            out[2] = b
            out[3] = c

    out = np.zeros(4, np.int64)
    launch_clean(record, (2, 1, 2), (32, 2, 1), out)
    assert out[1:].tolist() == [64, 2, 2]
    assert out[0] == 64


def test_warpsize_and_laneid():
    def record(out):
        i = cuda.grid(1)
        out[i] = cuda.laneid + cuda.warpsize * 1000

    out = np.zeros(160, np.int32)
    launch_clean(record, 2, 80, out)
    np.testing.assert_array_equal(out, np.tile(np.arange(80) % 32, 2) + 32000)


# ---- shared, local and constant memory ----------------------------------------------------------------------------


def test_shared_array_of_two_dimensions():
    def transpose(x, out):
        tile = cuda.shared.array((SIDE, PADDED), float64)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        tile[ty, tx] = x[ty, tx]
        cuda.syncthreads()
        out[ty, tx] = tile[tx, ty]

    x = np.arange(64.0).reshape(8, 8)
    out = np.zeros_like(x)
    launch_clean(transpose, 1, (8, 8), x, out)
    np.testing.assert_array_equal(out, x.T)


def test_shared_memory_belongs_to_one_block():
    def sum_block(x, out):
        total = cuda.shared.array(1, int32)
        if cuda.threadIdx.x == 0:
            total[0] = 0
        cuda.syncthreads()
        cuda.atomic.add(total, 0, x[cuda.grid(1)])
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            out[cuda.blockIdx.x] = total[0]

    x = np.arange(200, dtype=np.int32)
    out = np.zeros(5, np.int32)
    launch_clean(sum_block, 5, 40, x, out)
    np.testing.assert_array_equal(out, x.reshape(5, 40).sum(axis=1))


def test_dynamic_shared_memory_is_one_pool():
    def cut(x, out):
        floats = cuda.shared.array(0, float32)
        first = floats[:32]
        second = floats[32:64]
        i = cuda.threadIdx.x
        first[i] = x[i]
        second[i] = x[i] * 10
        cuda.syncthreads()
        out[i] = first[31 - i] + second[(i + 1) % 32]

    x = np.arange(32, dtype=np.float32)
    out = np.zeros(32, np.float32)
    launch_clean(cut, 1, 32, x, out, shared_bytes=256)
    np.testing.assert_array_equal(out, x[::-1] + 10 * np.roll(x, -1))


def test_dynamic_shared_memory_has_the_size_of_the_launch():
    def size(out):
        pool = cuda.shared.array(0, float32)
        out[cuda.threadIdx.x] = pool.size

    out = np.zeros(1, np.int64)
    launch_clean(size, 1, 1, out, shared_bytes=100)
    assert out[0] == 25


@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
def test_shared_and_local_arrays_of_every_dtype(dtype):
    element = np.dtype(dtype).type

    def reverse(x, out):
        cells = cuda.shared.array(16, element)
        own = cuda.local.array(2, element)
        i = cuda.threadIdx.x
        own[0] = x[i]
        own[1] = own[0]
        cells[i] = own[-1]
        cuda.syncthreads()
        out[i] = cells[15 - i]

    x = (np.arange(16) - 4 * (np.dtype(dtype).kind != "u")).astype(dtype)
    np.testing.assert_array_equal(mapped(reverse, x, dtype), x[::-1])


def test_local_array_is_private_and_takes_any_index():
    def sort_three(x, out):
        own = cuda.local.array((3,), float32)
        i = cuda.grid(1)
        for k in range(3):
            own[k] = x[i, k]
        for a in range(2):
            for b in range(2 - a):
                if own[b] > own[b + 1]:
                    own[b], own[b + 1] = own[b + 1], own[b]
        for k in range(3):
            out[i, k] = own[k - 3]

    x = np.random.default_rng(1).normal(size=(70, 3)).astype(np.float32)
    out = np.zeros_like(x)
    launch_clean(sort_three, 1, 70, x, out)
    np.testing.assert_array_equal(out, np.sort(x, axis=1))


def test_local_array_with_an_index_of_each_thread():
    def histogram(x, out):
        counts = cuda.local.array((2, 4), int32)
        i = cuda.grid(1)
        for a in range(2):
            for b in range(4):
                counts[a, b] = 0
        for k in range(x.shape[1]):
            counts[k % 2, x[i, k]] += 1
        for a in range(2):
            for b in range(4):
                out[i, a, b] = counts[a, b]

    x = np.random.default_rng(2).integers(0, 4, (33, 20)).astype(np.int32)
    out = np.zeros((33, 2, 4), np.int32)
    launch_clean(histogram, 1, 33, x, out)
    expected = np.stack([[np.bincount(row[p::2], minlength=4) for p in range(2)] for row in x])
    np.testing.assert_array_equal(out, expected)


def test_constant_array():
    def weigh(x, out):
        weights = cuda.const.array_like(WEIGHTS)
        i = cuda.grid(1)
        out[i] = weights[i % 2, i % 3] * x[i] + weights[-1, -1]

    x = np.arange(12.0)
    i = np.arange(12)
    np.testing.assert_array_equal(mapped(weigh, x, np.float64), WEIGHTS[i % 2, i % 3] * x + 6)


# ---- block-wide operations and fences -----------------------------------------------------------------------------


def test_syncthreads_count_and_or():
    def vote(x, out):
        i = cuda.grid(1)
        own = int(x[i])
        out[i, 0] = cuda.syncthreads_count(own)
        out[i, 1] = 1 if cuda.syncthreads_and(own) != 0 else 0
        out[i, 2] = 1 if cuda.syncthreads_or(own) != 0 else 0

    x = np.zeros((4, 48), np.int32)
    x[1] = 3  # any number but zero counts as one
    x[2, ::5] = 1
    x[3, 1:] = 1
    out = np.zeros((192, 3), np.int32)
    launch_clean(vote, 4, 48, x.ravel(), out)
    truth = x != 0
    expected = np.stack([truth.sum(axis=1), truth.all(axis=1), truth.any(axis=1)], axis=1)
    np.testing.assert_array_equal(out, np.repeat(expected, 48, axis=0))


def test_count_is_a_barrier():
    def rotate(x, out):
        cells = cuda.shared.array(64, float32)
        i = cuda.threadIdx.x
        cells[i] = x[i]
        above = cuda.syncthreads_count(1 if x[i] > 10 else 0)
        out[i] = cells[(i + 1) % 64] + above

    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(mapped(rotate, x, np.float32), np.roll(x, -1) + 53)


def test_threads_that_returned_are_not_waited_for():
    def count(out):
        i = cuda.threadIdx.x
        if i >= 50:
            return
        out[i] = cuda.syncthreads_count(1)

    out = np.zeros(64, np.int32)
    launch_clean(count, 1, 64, out)
    assert out.tolist() == [50] * 50 + [0] * 14


def test_fences_change_nothing_in_one_thread():
    def fenced(x, out):
        i = cuda.grid(1)
        out[i] = x[i]
        cuda.threadfence_block()
        out[i] += 1
        cuda.threadfence()
        out[i] *= 2
        cuda.threadfence_system()

    x = np.arange(10, dtype=np.float32)
    np.testing.assert_array_equal(mapped(fenced, x, np.float32), (x + 1) * 2)


# ---- print, assert, launch forms ----------------------------------------------------------------------------------


def test_print_writes_one_line_per_thread(capsys):
    def speak(x):
        i = cuda.grid(1)
        if x[i] > 1:
            print("thread", i, "holds", x[i])

    launch_clean(speak, 1, 4, np.array([0, 1, 2, 3], np.int32))
    assert sorted(capsys.readouterr().out.splitlines()) == ["thread 2 holds 2", "thread 3 holds 3"]


def test_assert_that_holds_is_silent():
    def guarded(x, out):
        i = cuda.grid(1)
        assert x[i] >= 0
        out[i] = x[i]

    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(mapped(guarded, x, np.float32), x)


def test_assert_that_fails_is_a_finding_at_its_line():
    def guarded(x):
        i = cuda.grid(1)
        assert x[i] < 3, "too large"
        x[i] = 0

    report = refsim.launch(guarded, 1, 5, np.arange(5, dtype=np.float32))
    assert [f.kind for f in report.findings] == ["assertion"]
    assert report.findings[0].thread == (3, 0, 0)
    assert report.findings[0].line == guarded.__code__.co_firstlineno + 2


def test_real_jit_kernel_and_plain_function_are_the_same():
    def double(x):
        x[cuda.grid(1)] *= 2

    plain, jitted = np.arange(8.0), np.arange(8.0)
    launch_clean(double, 2, 4, plain)
    launch_clean(cuda.jit(double), (2,), (4,), jitted)
    np.testing.assert_array_equal(plain, jitted)
    np.testing.assert_array_equal(plain, 2 * np.arange(8.0))


def test_simulate_takes_numbas_launch_brackets():
    def fill(x, value):
        x[cuda.grid(1)] = value

    x = np.zeros(8, np.float32)
    refsim.simulate(fill)[2, 4](x, 3)
    assert x.tolist() == [3.0] * 8
    refsim.simulate(cuda.jit(fill))[(2,), (4,), 0, 0](x, 4.5)
    assert x.tolist() == [4.5] * 8


def test_arguments_keep_their_types():
    def store(out, i32, f32, flag, pair):
        out[0] = i32 * i32
        out[1] = f32 * f32
        out[2] = 1 if flag else 0
        out[3] = pair[0] + pair[1]

    out = np.zeros(4)
    launch_clean(store, 1, 1, out, np.int32(70000), np.float32(1.1), True, (2, 0.5))
    square = np.float64(np.float32(1.1) * np.float32(1.1))
    assert out.tolist() == [4_900_000_000.0, square, 1.0, 2.5]


def test_strided_and_reversed_inputs():
    def copy(x, out):
        i, j = cuda.grid(2)
        if i < x.shape[0] and j < x.shape[1]:
            out[i, j] = x[i, j] + x.shape[0] * 1000

    base = np.arange(200, dtype=np.float64).reshape(10, 20)
    for view in (base[::2, ::3], base.T, base[::-1, ::-2], np.asfortranarray(base), base[3:4], base[:, 5:6]):
        out = np.zeros(view.shape)
        launch_clean(copy, (4, 4), (8, 8), view, out)
        np.testing.assert_array_equal(out, view + view.shape[0] * 1000)


def test_unknown_device_call_names_itself_and_its_line():
    def sleeper(out):
        cuda.no_such_thing(3)
        out[0] = 1

    with pytest.raises(refsim.UnsupportedError, match="no_such_thing") as caught:
        refsim.launch(sleeper, 1, 1, np.zeros(1))
    assert "test_device_api.py" in str(caught.value)
    assert str(sleeper.__code__.co_firstlineno + 1) in str(caught.value)


def test_unknown_device_name_is_refused():
    def nothing(out):
        out[0] = 1

    with pytest.raises(Exception, match="sim:sm_1234"):
        refsim.launch(nothing, 1, 1, np.zeros(1), device="sim:sm_1234")
