"""Reads of memory that nobody wrote: shared and local arrays, and output buffers handed over uninitialised."""

import numpy as np
from numba import cuda, float32, int32

import refsim

from .inputs import ramp
from .record import Launch, defect

THREADS = 64
TILE = 8


@defect
class TailOfTheTileNotWritten:
    """The guard protects the load, and leaves the rest of the tile unwritten, but the reduction reads all of it."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(50), np.zeros(1, np.float32)

    def expected(x, out):
        return {1: x.sum(keepdims=True)}

    def wrong(x, out):
        partial = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        if tid < x.size:
            partial[tid] = x[tid]
        cuda.syncthreads()
        stride = THREADS // 2
        while stride > 0:
            if tid < stride:
                partial[tid] += partial[tid + stride]  #! uninitialized_read(partial)
            cuda.syncthreads()
            stride //= 2
        if tid == 0:
            out[0] = partial[0]

    def right(x, out):
        partial = cuda.shared.array(THREADS, float32)
        tid = cuda.threadIdx.x
        partial[tid] = x[tid] if tid < x.size else float32(0.0)
        cuda.syncthreads()
        stride = THREADS // 2
        while stride > 0:
            if tid < stride:
                partial[tid] += partial[tid + stride]
            cuda.syncthreads()
            stride //= 2
        if tid == 0:
            out[0] = partial[0]


@defect
class GemmRaggedTileNotZeroed:
    """K is no multiple of the tile and the rest of the last tile is neither zeroed nor skipped."""

    launch = Launch((2, 2), (TILE, TILE))

    def arguments():
        return ramp(16, 5) % 3, ramp(5, 16) % 4, np.zeros((16, 16), np.float32)

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
            if k0 + tx < a.shape[1]:
                tile_a[ty, tx] = a[row, k0 + tx]
            if k0 + ty < b.shape[0]:
                tile_b[ty, tx] = b[k0 + ty, column]
            cuda.syncthreads()
            for k in range(TILE):
                total += tile_a[ty, k] * tile_b[k, tx]  #! uninitialized_read
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
            tile_a[ty, tx] = 0
            tile_b[ty, tx] = 0
            if k0 + tx < a.shape[1]:
                tile_a[ty, tx] = a[row, k0 + tx]
            if k0 + ty < b.shape[0]:
                tile_b[ty, tx] = b[k0 + ty, column]
            cuda.syncthreads()
            for k in range(TILE):
                total += tile_a[ty, k] * tile_b[k, tx]
            cuda.syncthreads()
        out[row, column] = total


@defect
class LocalAccumulatorsNotZeroed:
    """Sums start from whatever the local array held."""

    launch = Launch(1, 32)

    def arguments():
        return ramp(32, 12), np.zeros((32, 3), np.float32)

    def expected(x, out):
        return {1: x.reshape(32, 4, 3).sum(axis=1)}

    def wrong(x, out):
        sums = cuda.local.array(3, float32)
        i = cuda.grid(1)
        for k in range(x.shape[1]):
            sums[k % 3] += x[i, k]  #! uninitialized_read(sums)
        for c in range(3):
            out[i, c] = sums[c]

    def right(x, out):
        sums = cuda.local.array(3, float32)
        i = cuda.grid(1)
        for c in range(3):
            sums[c] = 0
        for k in range(x.shape[1]):
            sums[k % 3] += x[i, k]
        for c in range(3):
            out[i, c] = sums[c]


@defect
class LocalArrayWrittenInPart:
    """Three of four entries are written, four are read."""

    launch = Launch(1, 32)

    def arguments():
        return ramp(32, 4), np.zeros(32, np.float32)

    def expected(x, out):
        return {1: x.max(axis=1)}

    def wrong(x, out):
        values = cuda.local.array(4, float32)
        i = cuda.grid(1)
        for k in range(3):
            values[k] = x[i, k]
        largest = values[0]
        for k in range(1, 4):
            largest = max(largest, values[k])  #! uninitialized_read(values)
        out[i] = largest

    def right(x, out):
        values = cuda.local.array(4, float32)
        i = cuda.grid(1)
        for k in range(4):
            values[k] = x[i, k]
        largest = values[0]
        for k in range(1, 4):
            largest = max(largest, values[k])
        out[i] = largest


@defect
class LocalArrayWrittenByOneBranch:
    """Only some threads fill their local array."""

    launch = Launch(1, 32)

    def arguments():
        return ramp(32), np.zeros(32, np.float32)

    def expected(x, out):
        return {1: np.where(x % 2 == 0, x, 0)}

    def wrong(x, out):
        keep = cuda.local.array(1, float32)
        i = cuda.grid(1)
        if x[i] % 2 == 0:
            keep[0] = x[i]
        out[i] = keep[0]  #! uninitialized_read(keep)

    def right(x, out):
        keep = cuda.local.array(1, float32)
        i = cuda.grid(1)
        keep[0] = 0
        if x[i] % 2 == 0:
            keep[0] = x[i]
        out[i] = keep[0]


@defect
class OutputAccumulatedWithoutZero:
    """out += x on a buffer that the caller handed over uninitialised."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), refsim.empty(THREADS, np.float32)

    def expected(x, out):
        return {1: x}

    def wrong(x, out):
        i = cuda.grid(1)
        out[i] += x[i]  #! uninitialized_read(out)

    def right(x, out):
        i = cuda.grid(1)
        out[i] = x[i]


@defect
class AtomicOnUninitialisedOutput:
    """An atomic maximum compares with what was there before."""

    launch = Launch(2, THREADS)

    def arguments():
        return ramp(2, THREADS, dtype=np.int32), refsim.empty(2, np.int32)

    def expected(x, out):
        return {1: x.max(axis=1)}

    def wrong(x, out):
        row = cuda.blockIdx.x
        cuda.atomic.max(out, row, x[row, cuda.threadIdx.x])  #! uninitialized_read(out)

    def right(x, out):
        row = cuda.blockIdx.x
        if cuda.threadIdx.x == 0:
            out[row] = x[row, 0]
        cuda.syncthreads()
        cuda.atomic.max(out, row, x[row, cuda.threadIdx.x])


@defect
class SharedBinsNotCleared:
    """A shared histogram whose bins nobody set to zero."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS, dtype=np.int32) % 16, np.zeros(16, np.int32)

    def expected(keys, counts):
        return {1: np.full(16, 4, np.int32)}

    def wrong(keys, counts):
        local = cuda.shared.array(16, int32)
        tid = cuda.threadIdx.x
        cuda.atomic.add(local, keys[tid], 1)  #! uninitialized_read(local)
        cuda.syncthreads()
        if tid < 16:
            counts[tid] = local[tid]

    def right(keys, counts):
        local = cuda.shared.array(16, int32)
        tid = cuda.threadIdx.x
        if tid < 16:
            local[tid] = 0
        cuda.syncthreads()
        cuda.atomic.add(local, keys[tid], 1)
        cuda.syncthreads()
        if tid < 16:
            counts[tid] = local[tid]


@defect
class SecondKernelReadsWhatTheFirstLeftOut:
    """The first kernel drops its ragged tail; the second one reads the whole intermediate buffer."""

    launch = Launch(2, THREADS)

    def arguments():
        return ramp(100), refsim.empty(100, np.float32), np.zeros(100, np.float32)

    def expected(x, middle, out):
        return {2: x * x + 1}

    def wrong_producer(x, middle, out):
        i = cuda.grid(1)
        if i < x.size // 8 * 8:
            middle[i] = x[i] * x[i]

    def right_producer(x, middle, out):
        i = cuda.grid(1)
        if i < x.size:
            middle[i] = x[i] * x[i]

    def wrong(x, middle, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = middle[i] + 1  #! uninitialized_read(middle)

    def right(x, middle, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = middle[i] + 1


@defect
class PrologueOfTheDoubleBufferMissing:
    """The loop prefetches the next stage; nobody loaded the first."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(5, THREADS), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: x.sum(axis=0)[::-1]}

    def wrong(x, out):
        stage = cuda.shared.array((2, THREADS), float32)
        tid = cuda.threadIdx.x
        total = float32(0.0)
        for r in range(x.shape[0]):
            if r + 1 < x.shape[0]:
                stage[(r + 1) % 2, tid] = x[r + 1, tid]
            total += stage[r % 2, THREADS - 1 - tid]  #! uninitialized_read(stage)
            cuda.syncthreads()
        out[tid] = total

    def right(x, out):
        stage = cuda.shared.array((2, THREADS), float32)
        tid = cuda.threadIdx.x
        stage[0, tid] = x[0, tid]
        cuda.syncthreads()
        total = float32(0.0)
        for r in range(x.shape[0]):
            if r + 1 < x.shape[0]:
                stage[(r + 1) % 2, tid] = x[r + 1, tid]
            total += stage[r % 2, THREADS - 1 - tid]
            cuda.syncthreads()
        out[tid] = total


@defect
class HaloCellNeverLoaded:
    """The left halo cell of a block's window is nobody's job."""

    launch = Launch(2, THREADS)

    def arguments():
        return ramp(2 * THREADS), np.zeros(2 * THREADS, np.float32)

    def expected(x, out):
        return {1: x + np.append(0, x[:-1])}

    def wrong(x, out):
        window = cuda.shared.array(65, float32)
        tid = cuda.threadIdx.x
        i = cuda.grid(1)
        window[tid + 1] = x[i]
        cuda.syncthreads()
        out[i] = window[tid + 1] + window[tid]  #! uninitialized_read(window)

    def right(x, out):
        window = cuda.shared.array(65, float32)
        tid = cuda.threadIdx.x
        i = cuda.grid(1)
        window[tid + 1] = x[i]
        if tid == 0:
            window[0] = x[i - 1] if i > 0 else float32(0.0)
        cuda.syncthreads()
        out[i] = window[tid + 1] + window[tid]


@defect
class UninitialisedInputBuffer:
    """A work buffer that the caller never filled is read by the kernel."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), refsim.empty((2, THREADS), np.float32)

    def expected(x, work):
        return {1: np.stack([x, x + 1])}

    def wrong(x, work):
        i = cuda.grid(1)
        work[0, i] = x[i]
        work[1, i] = work[1, i] * 0 + x[i] + 1  #! uninitialized_read(work)

    def right(x, work):
        i = cuda.grid(1)
        work[0, i] = x[i]
        work[1, i] = work[0, i] + 1
