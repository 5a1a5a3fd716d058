"""The kernels that the benchmark times. Plain functions: refsim and Numba's own simulator run the same source."""

import numpy as np
from numba import cuda, float32

TILE = 16


def gemm(a, b, out):
    """One 16x16 tile of the product per block, one element per thread, both operands through shared memory."""
    tile_a = cuda.shared.array((TILE, TILE), float32)
    tile_b = cuda.shared.array((TILE, TILE), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    column, row = cuda.grid(2)
    m, depth = a.shape
    n = b.shape[1]
    total = float32(0.0)
    for k0 in range(0, depth, TILE):
        if row < m and k0 + tx < depth:
            tile_a[ty, tx] = a[row, k0 + tx]
        else:
            tile_a[ty, tx] = 0
        if k0 + ty < depth and column < n:
            tile_b[ty, tx] = b[k0 + ty, column]
        else:
            tile_b[ty, tx] = 0
        cuda.syncthreads()  # the tile is complete before it is used
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()  # the tile is used before it is replaced
    if row < m and column < n:
        out[row, column] = total


def saxpy(alpha, x, y, out):
    """One element per thread."""
    i = cuda.grid(1)
    if i < x.size:
        out[i] = alpha * x[i] + y[i]


def saxpy_grid_stride(alpha, x, y):
    """Each thread walks over the array in steps of the grid, in place."""
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        y[i] += alpha * x[i]


def mandelbrot(counts, limit):
    """One pixel per thread; the loop's length is the thread's own."""
    column, row = cuda.grid(2)
    height, width = counts.shape
    if row < height and column < width:
        re = float32(-2.0 + 3.0 * column / width)
        im = float32(-1.5 + 3.0 * row / height)
        x = float32(0.0)
        y = float32(0.0)
        steps = 0
        while steps < limit and x * x + y * y < float32(4.0):
            x, y = x * x - y * y + re, float32(2.0) * x * y + im
            steps += 1
        counts[row, column] = steps


def long_loop(x, out, rounds):
    """Many reads and operations per thread on small arrays: length without size."""
    i = cuda.grid(1)
    total = float32(0.0)
    for r in range(rounds):
        total += x[(i + r) % x.size]
    out[i] = total


def grid_over(n, block):
    """Blocks that cover n elements."""
    return (n + block - 1) // block


def gemm_launch(n):
    """(grid, block, arguments, multiply-adds) of an n x n x n product of small integers."""
    rng = np.random.default_rng(n)
    a, b = (rng.integers(-4, 5, (n, n)).astype(np.float32) for _ in range(2))
    blocks = grid_over(n, TILE)
    return (blocks, blocks), (TILE, TILE), (a, b, np.zeros((n, n), np.float32)), n**3


def saxpy_launch(n):
    """(grid, block, arguments, elements)."""
    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    return grid_over(n, 128), 128, (np.float32(2.0), x, y, np.zeros(n, np.float32)), n


def saxpy_grid_stride_launch(n):
    """(grid, block, arguments, elements): 16 elements per thread."""
    return grid_over(n, 16 * 128), 128, (np.float32(2.0), np.arange(n, dtype=np.float32), np.ones(n, np.float32)), n


def mandelbrot_launch(n, limit):
    """(grid, block, arguments, None): the work is the sum of the counts afterwards."""
    blocks = grid_over(n, 16)
    return (blocks, blocks), (16, 16), (np.zeros((n, n), np.int32), limit), None
