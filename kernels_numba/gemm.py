"""Matrix multiplication: out[m, n] = a[m, k] · b[k, n] + bias[n], with 16×16 shared tiles and with register tiles.

A transposed input is the same kernel on a strided view. An absent bias is an array without elements.

matmul_tiled     block (16, 16) owns a 16×16 tile of out, thread (y, x) element (y, x) of it.

                            b ┌────┐
                              │    │     for each 16-deep step through k:
                              ├────┤
                              │ ▒▒ │         a_tile, b_tile ◄── 16×16 of a and of b, one element each a thread
                              └────┘
                 a ┌────┬────┐┌────┐         total += a_tile[y, :] · b_tile[:, x]
                   │    │ ▒▒ ││ out│
                   └────┴────┘└────┘

matmul_register  block (16, 16) owns a 64×64 tile of out, thread (y, x) a 4×4 grid of it, spaced 16 apart:

                     x     x+16   x+32   x+48
              y      ■      ■      ■      ■        per depth: 4 of a and 4 of b from shared memory,
              y+16   ■      ■      ■      ■        16 multiply-adds
              y+32   ■      ■      ■      ■
              y+48   ■      ■      ■      ■

                 two buffers, so that one barrier a step is enough:

                 global memory ──► a_next, b_next ──► a_tiles[filling],     b_tiles[filling]         tile `step`
                                   (registers)        a_tiles[1 - filling], b_tiles[1 - filling] ──► 16 totals

                 no bank conflicts in float32: lanes of a warp read neighbouring columns of b_tiles and one or two
                 words of a_tiles; they fill a_tiles[depth, row], whose rows are 66 long, 16 depths × 2 rows at once,
                 and (66 · depth + row) mod 32 = (2 · depth + row) mod 32 takes 32 different values.
"""

from typing import Any

import numpy as np
from numba import cuda

from kernels_numba.accumulator import DTYPES, NUMERICS, accumulator_of, per_accumulator
from kernels_numba.grid import MAX_BLOCKS_YZ, cover
from refsim.library import Kernel, Launcher

TILE = 16

THREADS_M = 16  # threads of a block along the rows of out
THREADS_N = 16  # and along its columns
THREADS = THREADS_M * THREADS_N
PER_THREAD_M = 4  # rows a thread owns
PER_THREAD_N = 4  # columns a thread owns
BLOCK_M = THREADS_M * PER_THREAD_M
BLOCK_N = THREADS_N * PER_THREAD_N
BLOCK_K = 16
A_PITCH = BLOCK_M + 2  # two words of padding against bank conflicts, see above
A_LOADS = BLOCK_M * BLOCK_K // THREADS  # elements of an a tile each thread moves
A_LOAD_ROWS = THREADS // BLOCK_K  # rows the block moves at once
B_LOADS = BLOCK_K * BLOCK_N // THREADS
B_LOAD_DEPTHS = THREADS // BLOCK_N


@per_accumulator
def matmul_tiled(real):
    @cuda.jit
    def matmul_tiled(a, b, bias, out):
        """out[m, n] = a[m, k] · b[k, n] + bias[n]; one block per 16×16 tile of out, grid (tiles of m, tiles of n)."""
        a_tile = cuda.shared.array((TILE, TILE), real)
        b_tile = cuda.shared.array((TILE, TILE), real)
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        row = cuda.blockIdx.x * TILE + y
        col = cuda.blockIdx.y * TILE + x
        m, k = a.shape
        n = b.shape[1]

        total = real(0.0)
        for k0 in range(0, k, TILE):
            a_value = real(0.0)
            if row < m and k0 + x < k:
                a_value = real(a[row, k0 + x])
            a_tile[y, x] = a_value
            b_value = real(0.0)
            if k0 + y < k and col < n:
                b_value = real(b[k0 + y, col])
            b_tile[y, x] = b_value
            cuda.syncthreads()  # both tiles are written before any thread reads a row or column of them
            for depth in range(TILE):
                total += a_tile[y, depth] * b_tile[depth, x]
            cuda.syncthreads()  # both tiles are read before the next step writes them

        if row < m and col < n:
            if bias.size > 0:
                total += real(bias[col])
            out[row, col] = total

    return matmul_tiled


@per_accumulator
def matmul_register(real):
    @cuda.jit
    def matmul_register(a, b, bias, out):
        """out[m, n] = a[m, k] · b[k, n] + bias[n]; one block per 64×64 tile of out, grid (tiles of m, tiles of n)."""
        a_tiles = cuda.shared.array((2, BLOCK_K, A_PITCH), real)
        b_tiles = cuda.shared.array((2, BLOCK_K, BLOCK_N), real)
        a_next = cuda.local.array(A_LOADS, real)
        b_next = cuda.local.array(B_LOADS, real)
        a_mine = cuda.local.array(PER_THREAD_M, real)
        b_mine = cuda.local.array(PER_THREAD_N, real)
        total = cuda.local.array((PER_THREAD_M, PER_THREAD_N), real)

        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        thread = y * THREADS_N + x
        a_load_depth = thread % BLOCK_K
        a_load_row = thread // BLOCK_K
        b_load_col = thread % BLOCK_N
        b_load_depth = thread // BLOCK_N
        block_row = cuda.blockIdx.x * BLOCK_M
        block_col = cuda.blockIdx.y * BLOCK_N
        m, k = a.shape
        n = b.shape[1]
        steps = (k + BLOCK_K - 1) // BLOCK_K

        for i in range(PER_THREAD_M):
            for j in range(PER_THREAD_N):
                total[i, j] = real(0.0)

        # Iteration `step` moves tile `step` in and multiplies tile `step - 1`; the first only moves, the last only
        # multiplies.
        for step in range(steps + 1):
            filling = step % 2
            k0 = step * BLOCK_K
            if step < steps:
                for load in range(A_LOADS):
                    row = block_row + a_load_row + load * A_LOAD_ROWS
                    value = real(0.0)
                    if row < m and k0 + a_load_depth < k:
                        value = real(a[row, k0 + a_load_depth])
                    a_next[load] = value
                for load in range(B_LOADS):
                    depth = k0 + b_load_depth + load * B_LOAD_DEPTHS
                    value = real(0.0)
                    if depth < k and block_col + b_load_col < n:
                        value = real(b[depth, block_col + b_load_col])
                    b_next[load] = value

            if step > 0:
                for depth in range(BLOCK_K):
                    for i in range(PER_THREAD_M):
                        a_mine[i] = a_tiles[1 - filling, depth, y + i * THREADS_M]
                    for j in range(PER_THREAD_N):
                        b_mine[j] = b_tiles[1 - filling, depth, x + j * THREADS_N]
                    for i in range(PER_THREAD_M):
                        for j in range(PER_THREAD_N):
                            total[i, j] += a_mine[i] * b_mine[j]

            if step < steps:
                for load in range(A_LOADS):
                    a_tiles[filling, a_load_depth, a_load_row + load * A_LOAD_ROWS] = a_next[load]
                for load in range(B_LOADS):
                    b_tiles[filling, b_load_depth + load * B_LOAD_DEPTHS, b_load_col] = b_next[load]
            cuda.syncthreads()  # tile `step` is written before it is read, `step - 1` read before it is overwritten

        for i in range(PER_THREAD_M):
            row = block_row + y + i * THREADS_M
            for j in range(PER_THREAD_N):
                col = block_col + x + j * THREADS_N
                if row < m and col < n:
                    value = total[i, j]
                    if bias.size > 0:
                        value += real(bias[col])
                    out[row, col] = value

    return matmul_register


def _operands(inputs: dict[str, Any], params: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a as (m, k), b as (k, n), and a bias of n or no elements."""
    a = inputs["a"].T if params["transpose_a"] else inputs["a"]
    b = inputs["b"].T if params["transpose_b"] else inputs["b"]
    bias = inputs["bias"]
    return a, b, np.empty(0, a.dtype) if bias is None else bias


def _run(
    kernel_for: Any, tile: tuple[int, int], launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]
) -> tuple[Any, ...]:
    a, b, bias = _operands(inputs, params)
    m, n = a.shape[0], b.shape[1]
    out = launcher.empty((m, n), a.dtype)
    if m * n > 0:
        grid = (cover(m, tile[0]), cover(n, tile[1]))
        arrays = [launcher.array(array) for array in (a, b, bias)]
        launcher.launch(kernel_for(accumulator_of(a)), grid, (16, 16), *arrays, out)
    return (out,)


def run_matmul_tiled(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    return _run(matmul_tiled, (TILE, TILE), launcher, inputs, params)


def run_matmul_register(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    return _run(matmul_register, (BLOCK_M, BLOCK_N), launcher, inputs, params)


def _accepts_columns(tile: int, inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    n = _operands(inputs, params)[1].shape[1]
    if n > MAX_BLOCKS_YZ * tile:
        return f"out has {n} columns; a grid covers {MAX_BLOCKS_YZ * tile} with tiles of {tile}"
    return None


def _accepts_tiled(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    return _accepts_columns(TILE, inputs, params)


def _accepts_register(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    return _accepts_columns(BLOCK_N, inputs, params)


KERNELS = [
    Kernel(
        name="matmul_tiled",
        operators=("matmul",),
        dtypes=DTYPES,
        run=run_matmul_tiled,
        accepts=_accepts_tiled,
        numerics=NUMERICS,
        doc="16×16 tiles in shared memory, one output per thread.",
    ),
    Kernel(
        name="matmul_register",
        operators=("matmul",),
        dtypes=DTYPES,
        run=run_matmul_register,
        accepts=_accepts_register,
        numerics=NUMERICS,
        doc="64×64 tiles, 4×4 outputs in each thread's registers, double buffering.",
    ),
]
