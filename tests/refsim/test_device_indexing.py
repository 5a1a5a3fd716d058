"""Indexing in kernels: negative and multi-dimensional indices, slices as views, array attributes, tuples."""

import numpy as np
from clean_launch import launch_clean, mapped
from numba import cuda

TABLE = (2, 3, 5, 7)


def test_negative_and_multidimensional_indices():
    def pick(x, out):
        i = cuda.grid(1)
        out[i, 0] = x[-1, -1, i]
        out[i, -2] = x[i % 2][-2][i]
        out[i, 2] = x[-2, 1][-1 - i]

    x = np.arange(24.0).reshape(2, 3, 4)
    out = np.zeros((4, 3))
    launch_clean(pick, 1, 4, x, out)
    i = np.arange(4)
    np.testing.assert_array_equal(out, np.stack([x[-1, -1, i], x[i % 2, -2, i], x[-2, 1][-1 - i]], axis=1))


def test_slices_are_views():
    def write(x):
        i = cuda.grid(1)
        row = x[1]
        column = x[:, 2]
        block = x[2:4, 3:]
        row[i % 5] = 100 + i % 5
        cuda.syncthreads()  # the row and the column share a cell
        if i < 4:
            column[i] += 1000
        if i < 2:
            block[i, 0] = -1
            block[i, -1] = -2

    x = np.zeros((4, 5))
    launch_clean(write, 1, 5, x)
    expected = np.zeros((4, 5))
    expected[1] = 100 + np.arange(5)
    expected[:, 2] += 1000
    expected[2:4, 3] = -1
    expected[2:4, 4] = -2
    np.testing.assert_array_equal(x, expected)


def test_slices_with_steps_and_open_ends():
    def read(x, out):
        i = cuda.grid(1)
        out[i, 0] = x[::2][i]
        out[i, 1] = x[::-1][i]
        out[i, 2] = x[3:][i]
        out[i, 3] = x[-5:][i]
        out[i, 4] = x[1:-1:3][i]
        out[i, 5] = x[:-4].size
        out[i, 6] = x[2:100].shape[0]
        out[i, 7] = len(x[7:3])

    x = np.arange(12) * 10
    out = np.zeros((4, 8), np.int64)
    launch_clean(read, 1, 4, x, out)
    i = np.arange(4)
    columns = [x[::2][i], x[::-1][i], x[3:][i], x[-5:][i], x[1:-1:3][i]]
    np.testing.assert_array_equal(out[:, :5], np.stack(columns, axis=1))
    assert out[:, 5:].tolist() == [[8, 10, 0]] * 4


def test_slice_that_starts_where_the_thread_says():
    def windows(x, out):
        i = cuda.grid(1)
        window = x[i : i + 3]
        out[i] = window[0] + 10 * window[-1] + 100 * window.size

    x = np.arange(10)
    out = np.zeros(8, np.int64)
    launch_clean(windows, 1, 8, x, out)
    assert out.tolist() == [i + 10 * (i + 2) + 300 for i in range(8)]


def test_array_attributes():
    def describe(x, out):
        if cuda.grid(1) == 0:
            out[0] = x.shape[0]
            out[1] = x.shape[-1]
            out[2] = x.size
            out[3] = x.ndim
            out[4] = len(x)
            rows, columns = x.shape
            out[5] = rows * 100 + columns

    out = np.zeros(6, np.int64)
    launch_clean(describe, 1, 32, np.zeros((4, 7), np.float32), out)
    assert out.tolist() == [4, 7, 28, 2, 4, 407]


def test_swap_by_tuple_assignment():
    def swap(x):
        i = cuda.grid(1)
        x[i], x[-1 - i] = x[-1 - i], x[i]

    x = np.arange(10)
    launch_clean(swap, 1, 5, x)
    assert x.tolist() == list(range(9, -1, -1))


def test_tuples():
    def tuples(x, out):
        i = cuda.grid(1)
        pair = (x[i], 2 * i)
        first, second = pair
        nested = (pair, TABLE[i % 4])
        (a, b), c = nested
        out[i] = first + second + pair[0] + pair[-1] + a + b + c + len(pair) + TABLE[2]

    x = np.arange(6) * 100
    i = np.arange(6)
    expected = 3 * x + 3 * (2 * i) + np.array(TABLE)[i % 4] + 2 + 5
    np.testing.assert_array_equal(mapped(tuples, x, np.int64), expected)
