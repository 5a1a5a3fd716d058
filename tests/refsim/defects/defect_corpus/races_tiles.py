"""Races in tiles, windows and buffers that a block passes through shared memory."""

import numpy as np
from numba import cuda, float32

from .inputs import ramp
from .record import Launch, defect

THREADS = 64
TILE = 8
PADDED = TILE + 1


@defect
class GemmTileUsedBeforeItIsComplete:
    """Tiled matrix product without the barrier between loading a tile and using it."""

    launch = Launch((2, 2), (TILE, TILE))

    def arguments():
        return ramp(16, 16), ramp(16, 16) % 7, np.zeros((16, 16), np.float32)

    def expected(a, b, out):
        return {2: a @ b}

    def wrong(a, b, out):
        tile_a = cuda.shared.array((TILE, TILE), float32)
        tile_b = cuda.shared.array((TILE, TILE), float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = float32(0.0)
        for k0 in range(0, a.shape[1], TILE):
            tile_a[ty, tx] = a[row, k0 + tx]  #! race
            tile_b[ty, tx] = b[k0 + ty, column]  #! race
            for k in range(TILE):
                total += tile_a[ty, k] * tile_b[k, tx]  #! race
            cuda.syncthreads()
        out[row, column] = total

    def right(a, b, out):
        tile_a = cuda.shared.array((TILE, TILE), float32)
        tile_b = cuda.shared.array((TILE, TILE), float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = float32(0.0)
        for k0 in range(0, a.shape[1], TILE):
            tile_a[ty, tx] = a[row, k0 + tx]
            tile_b[ty, tx] = b[k0 + ty, column]
            cuda.syncthreads()
            for k in range(TILE):
                total += tile_a[ty, k] * tile_b[k, tx]
            cuda.syncthreads()
        out[row, column] = total


@defect
class GemmTileReplacedWhileInUse:
    """Tiled matrix product without the barrier between using a tile and loading the next one."""

    launch = Launch((2, 2), (TILE, TILE))

    def arguments():
        return ramp(16, 24), ramp(24, 16) % 5, np.zeros((16, 16), np.float32)

    def expected(a, b, out):
        return {2: a @ b}

    def wrong(a, b, out):
        tile_a = cuda.shared.array((TILE, TILE), float32)
        tile_b = cuda.shared.array((TILE, TILE), float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = float32(0.0)
        for k0 in range(0, a.shape[1], TILE):
            tile_a[ty, tx] = a[row, k0 + tx]  #! race
            tile_b[ty, tx] = b[k0 + ty, column]  #! race
            cuda.syncthreads()
            for k in range(TILE):
                total += tile_a[ty, k] * tile_b[k, tx]  #! race
        out[row, column] = total

    right = GemmTileUsedBeforeItIsComplete.right


@defect
class DoubleBufferWithoutBarrier:
    """Two buffers save one of the two barriers of a round, not both."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(6, THREADS), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: np.roll(x, -1, axis=1).sum(axis=0, dtype=np.float32)}

    def wrong(x, out):
        stage = cuda.shared.array((2, THREADS), float32)
        tid = cuda.threadIdx.x
        rounds = x.shape[0]
        stage[0, tid] = x[0, tid]
        cuda.syncthreads()
        total = float32(0.0)
        for r in range(rounds):
            if r + 1 < rounds:
                stage[(r + 1) % 2, tid] = x[r + 1, tid]  #! race(stage)
            total += stage[r % 2, (tid + 1) % THREADS]  #! race(stage)
        out[tid] = total

    def right(x, out):
        stage = cuda.shared.array((2, THREADS), float32)
        tid = cuda.threadIdx.x
        rounds = x.shape[0]
        stage[0, tid] = x[0, tid]
        cuda.syncthreads()
        total = float32(0.0)
        for r in range(rounds):
            if r + 1 < rounds:
                stage[(r + 1) % 2, tid] = x[r + 1, tid]
            total += stage[r % 2, (tid + 1) % THREADS]
            cuda.syncthreads()
        out[tid] = total


@defect
class DoubleBufferWritesTheBufferInUse:
    """The prefetch goes to the buffer that the block is reading: the flip is missing."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(6, THREADS), np.zeros(THREADS, np.float32)

    expected = DoubleBufferWithoutBarrier.expected

    def wrong(x, out):
        stage = cuda.shared.array((2, THREADS), float32)
        tid = cuda.threadIdx.x
        rounds = x.shape[0]
        stage[0, tid] = x[0, tid]
        cuda.syncthreads()
        total = float32(0.0)
        for r in range(rounds):
            total += stage[0, (tid + 1) % THREADS]  #! race(stage)
            if r + 1 < rounds:
                stage[0, tid] = x[r + 1, tid]  #! race(stage)
            cuda.syncthreads()
        out[tid] = total

    right = DoubleBufferWithoutBarrier.right


@defect
class HaloLoadedAfterTheBarrier:
    """The edge threads load the halo cells, but after the block has met."""

    launch = Launch(2, THREADS)

    def arguments():
        return ramp(2 * THREADS + 2), np.zeros(2 * THREADS, np.float32)

    def expected(x, out):
        return {1: x[:-2] + x[1:-1] + x[2:]}

    def wrong(x, out):
        window = cuda.shared.array(66, float32)
        tid = cuda.threadIdx.x
        i = cuda.grid(1)
        window[tid] = x[i]
        cuda.syncthreads()
        if tid >= THREADS - 2:
            window[tid + 2] = x[i + 2]  #! race(window)
        out[i] = window[tid] + window[tid + 1] + window[tid + 2]  #! race(window)

    def right(x, out):
        window = cuda.shared.array(66, float32)
        tid = cuda.threadIdx.x
        i = cuda.grid(1)
        window[tid] = x[i]
        if tid >= THREADS - 2:
            window[tid + 2] = x[i + 2]
        cuda.syncthreads()
        out[i] = window[tid] + window[tid + 1] + window[tid + 2]


@defect
class ScratchReusedBetweenTwoReductions:
    """Row maximum and row sum share one scratch array; the second fill overtakes the first result's readers."""

    launch = Launch(3, THREADS)

    def arguments():
        return ramp(3, THREADS), np.zeros((3, 2), np.float32)

    def expected(x, out):
        return {1: np.stack([x.max(axis=1), (x.max(axis=1, keepdims=True) - x).sum(axis=1)], axis=1)}

    def wrong(x, out):
        scratch = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        row = cuda.blockIdx.x
        scratch[tid] = x[row, tid]
        cuda.syncthreads()
        stride = THREADS // 2
        while stride > 0:
            if tid < stride:
                scratch[tid] = max(scratch[tid], scratch[tid + stride])
            cuda.syncthreads()
            stride //= 2
        largest = scratch[0]  #! race(scratch)
        scratch[tid] = largest - x[row, tid]  #! race(scratch)
        cuda.syncthreads()
        stride = THREADS // 2
        while stride > 0:
            if tid < stride:
                scratch[tid] += scratch[tid + stride]
            cuda.syncthreads()
            stride //= 2
        if tid == 0:
            out[row, 0] = largest
            out[row, 1] = scratch[0]

    def right(x, out):
        scratch = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        row = cuda.blockIdx.x
        scratch[tid] = x[row, tid]
        cuda.syncthreads()
        stride = THREADS // 2
        while stride > 0:
            if tid < stride:
                scratch[tid] = max(scratch[tid], scratch[tid + stride])
            cuda.syncthreads()
            stride //= 2
        largest = scratch[0]
        cuda.syncthreads()
        scratch[tid] = largest - x[row, tid]
        cuda.syncthreads()
        stride = THREADS // 2
        while stride > 0:
            if tid < stride:
                scratch[tid] += scratch[tid + stride]
            cuda.syncthreads()
            stride //= 2
        if tid == 0:
            out[row, 0] = largest
            out[row, 1] = scratch[0]


@defect
class DynamicSharedViewsOverlap:
    """Two arrays cut from the dynamic shared memory: the second starts inside the first."""

    launch = Launch(1, THREADS, shared_bytes=2 * THREADS * 4)

    def arguments():
        return ramp(THREADS), ramp(THREADS) + 1000, np.zeros(THREADS, np.float32)

    def expected(x, y, out):
        return {2: np.roll(x, -1) + y[::-1]}

    def wrong(x, y, out):
        pool = cuda.shared.array(0, float32)
        first = pool[:THREADS]
        second = pool[THREADS // 2 :]
        tid = cuda.threadIdx.x
        first[tid] = x[tid]  #! race
        second[tid] = y[tid]  #! race
        cuda.syncthreads()
        out[tid] = first[(tid + 1) % THREADS] + second[THREADS - 1 - tid]

    def right(x, y, out):
        pool = cuda.shared.array(0, float32)
        first = pool[:THREADS]
        second = pool[THREADS:]
        tid = cuda.threadIdx.x
        first[tid] = x[tid]
        second[tid] = y[tid]
        cuda.syncthreads()
        out[tid] = first[(tid + 1) % THREADS] + second[THREADS - 1 - tid]


@defect
class ShiftInPlaceWithinShared:
    """Shifting a row by one in place: a thread writes the cell that its neighbour is reading."""

    launch = Launch(2, THREADS)

    def arguments():
        return ramp(2 * THREADS), np.zeros(2 * THREADS, np.float32)

    def expected(x, out):
        return {1: np.roll(x.reshape(2, THREADS), 1, axis=1).ravel()}

    def wrong(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        i = cuda.grid(1)
        cells[tid] = x[i]
        cuda.syncthreads()
        cells[(tid + 1) % THREADS] = cells[tid]  #! race(cells)
        cuda.syncthreads()
        out[i] = cells[tid]

    def right(x, out):
        cells = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        i = cuda.grid(1)
        cells[tid] = x[i]
        cuda.syncthreads()
        value = cells[tid]
        cuda.syncthreads()
        cells[(tid + 1) % THREADS] = value
        cuda.syncthreads()
        out[i] = cells[tid]


@defect
class TransposeTileWithoutBarrier:
    """A padded tile is read by columns before its rows are complete."""

    launch = Launch((2, 2), (TILE, TILE))

    def arguments():
        return ramp(16, 16), np.zeros((16, 16), np.float32)

    def expected(x, out):
        return {1: x.T}

    def wrong(x, out):
        tile = cuda.shared.array((TILE, PADDED), float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        row = cuda.blockIdx.y * TILE
        column = cuda.blockIdx.x * TILE
        tile[ty, tx] = x[row + ty, column + tx]  #! race(tile)
        out[column + ty, row + tx] = tile[tx, ty]  #! race(tile)

    def right(x, out):
        tile = cuda.shared.array((TILE, PADDED), float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        row = cuda.blockIdx.y * TILE
        column = cuda.blockIdx.x * TILE
        tile[ty, tx] = x[row + ty, column + tx]
        cuda.syncthreads()
        out[column + ty, row + tx] = tile[tx, ty]
