"""Indices outside an array: global, shared, local and constant memory, slices, atomics. Numba wraps -size ... -1."""

import numpy as np
from numba import cuda, float32, int32

from .inputs import ramp
from .record import Launch, defect

THREADS = 64
TAPS = 5
TABLE = np.array([1.0, 2.0, 4.0, 8.0], np.float32)


@defect
class TailWithoutGuard:
    """The grid is rounded up to whole blocks and nobody asks whether the element exists."""

    launch = Launch(2, THREADS)

    def arguments():
        return ramp(100), np.zeros(100, np.float32)

    def expected(x, out):
        return {1: x + 1}

    def wrong(x, out):
        i = cuda.grid(1)
        out[i] = x[i] + 1  #! out_of_bounds

    def right(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[i] + 1


@defect
class TailGuardOffByOne:
    """The guard says <= where it means <."""

    launch = Launch(2, THREADS)

    def arguments():
        return ramp(100), np.zeros(128, np.float32)

    def expected(x, out):
        return {1: np.append(x * 3, np.zeros(28))}

    def wrong(x, out):
        i = cuda.grid(1)
        if i <= x.size:
            out[i] = x[i] * 3  #! out_of_bounds(x)

    def right(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[i] * 3


@defect
class StencilReadsPastTheEnd:
    """The right neighbour of the last element."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: np.append(x[1:] - x[:-1], 0)}

    def wrong(x, out):
        i = cuda.grid(1)
        out[i] = x[i + 1] - x[i]  #! out_of_bounds(x)

    def right(x, out):
        i = cuda.grid(1)
        if i + 1 < x.size:
            out[i] = x[i + 1] - x[i]


@defect
class IndexBelowMinusSize:
    """x[i - 1] wraps to the last element as Numba defines it; x[i - 65] of 64 elements is outside."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: np.roll(x, 1)}

    def wrong(x, out):
        i = cuda.grid(1)
        out[i] = x[i - THREADS - 1]  #! out_of_bounds(x)

    def right(x, out):
        i = cuda.grid(1)
        out[i] = x[i - 1]


@defect
class SharedWindowTooSmall:
    """A block of 64 with two halo cells needs 66 cells of shared memory."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS + 2), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: x[:-2] + x[2:]}

    def wrong(x, out):
        window = cuda.shared.array(64, float32)
        tid = cuda.threadIdx.x
        window[tid] = x[tid]
        if tid < 2:
            window[THREADS + tid] = x[THREADS + tid]  #! out_of_bounds(window)
        cuda.syncthreads()
        if tid < 62:
            out[tid] = window[tid] + window[tid + 2]

    def right(x, out):
        window = cuda.shared.array(66, float32)
        tid = cuda.threadIdx.x
        window[tid] = x[tid]
        if tid < 2:
            window[THREADS + tid] = x[THREADS + tid]
        cuda.syncthreads()
        out[tid] = window[tid] + window[tid + 2]


@defect
class SharedIndexBelowMinusSize:
    """Below -size in shared memory."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: np.roll(x, 2)}

    def wrong(x, out):
        cells = cuda.shared.array(64, float32)
        tid = cuda.threadIdx.x
        cells[tid] = x[tid]
        cuda.syncthreads()
        out[tid] = cells[tid - 66]  #! out_of_bounds(cells)

    def right(x, out):
        cells = cuda.shared.array(64, float32)
        tid = cuda.threadIdx.x
        cells[tid] = x[tid]
        cuda.syncthreads()
        out[tid] = cells[tid - 2]


@defect
class LocalArrayPastTheEnd:
    """A window of five taps, six of them loaded."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS + TAPS), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: np.lib.stride_tricks.sliding_window_view(x, TAPS).max(axis=1)[:THREADS]}

    def wrong(x, out):
        window = cuda.local.array(TAPS, float32)
        i = cuda.grid(1)
        for k in range(TAPS + 1):
            window[k] = x[i + k]  #! out_of_bounds(window)
        largest = window[0]
        for k in range(1, TAPS):
            largest = max(largest, window[k])
        out[i] = largest

    def right(x, out):
        window = cuda.local.array(TAPS, float32)
        i = cuda.grid(1)
        for k in range(TAPS):
            window[k] = x[i + k]
        largest = window[0]
        for k in range(1, TAPS):
            largest = max(largest, window[k])
        out[i] = largest


@defect
class RowAndColumnSwapped:
    """x[column, row] of a matrix that is not square."""

    launch = Launch((2, 2), (8, 8))

    def arguments():
        return ramp(12, 9), np.zeros((12, 9), np.float32)

    def expected(x, out):
        return {1: x + 0.5}

    def wrong(x, out):
        column, row = cuda.grid(2)
        if row < x.shape[0] and column < x.shape[1]:
            out[row, column] = x[column, row] + 0.5  #! out_of_bounds(x)

    def right(x, out):
        column, row = cuda.grid(2)
        if row < x.shape[0] and column < x.shape[1]:
            out[row, column] = x[row, column] + 0.5


@defect
class OneAxisGuarded:
    """A two-dimensional grid rounded up in both axes, guarded in one."""

    launch = Launch((2, 2), (8, 8))

    def arguments():
        return ramp(16, 10), np.zeros((16, 10), np.float32)

    def expected(x, out):
        return {1: -x}

    def wrong(x, out):
        column, row = cuda.grid(2)
        if row < x.shape[0]:
            out[row, column] = -x[row, column]  #! out_of_bounds

    def right(x, out):
        column, row = cuda.grid(2)
        if row < x.shape[0] and column < x.shape[1]:
            out[row, column] = -x[row, column]


@defect
class PairsOfAnOddCount:
    """Elements taken in pairs; the last one has no partner."""

    launch = Launch(1, 32)

    def arguments():
        return ramp(33), np.zeros(17, np.float32)

    def expected(x, out):
        return {1: np.append(x[:-1:2] + x[1::2], x[-1])}

    def wrong(x, out):
        i = cuda.grid(1)
        if 2 * i < x.size:
            out[i] = x[2 * i] + x[2 * i + 1]  #! out_of_bounds(x)

    def right(x, out):
        i = cuda.grid(1)
        if 2 * i + 1 < x.size:
            out[i] = x[2 * i] + x[2 * i + 1]
        elif 2 * i < x.size:
            out[i] = x[2 * i]


@defect
class AtomicPastTheLastBin:
    """The largest value falls into a bin that does not exist."""

    launch = Launch(1, THREADS)

    def arguments():
        return np.linspace(0, 1, THREADS, dtype=np.float32), np.zeros(8, np.int32)

    def expected(x, counts):
        return {1: np.bincount(np.minimum((x * np.float32(8)).astype(int), 7), minlength=8).astype(np.int32)}

    def wrong(x, counts):
        i = cuda.grid(1)
        cuda.atomic.add(counts, int(x[i] * float32(8)), 1)  #! out_of_bounds(counts)

    def right(x, counts):
        i = cuda.grid(1)
        cuda.atomic.add(counts, min(int(x[i] * float32(8)), 7), 1)


@defect
class GatherThroughABadIndex:
    """Padding entries of an index list are -1000 and used as they are."""

    launch = Launch(1, THREADS)

    def arguments():
        index = (ramp(THREADS, dtype=np.int32) * 5) % 32
        index[::9] = -1000
        return ramp(32), index, np.zeros(THREADS, np.float32)

    def expected(x, index, out):
        return {2: np.where(index < 0, 0, x[np.maximum(index, 0)])}

    def wrong(x, index, out):
        i = cuda.grid(1)
        out[i] = x[index[i]]  #! out_of_bounds(x)

    def right(x, index, out):
        i = cuda.grid(1)
        if index[i] >= 0:
            out[i] = x[index[i]]


@defect
class SlicePastItsEnd:
    """A row taken as a view: its bounds are the row's, not the matrix's."""

    launch = Launch(1, 8)

    def arguments():
        return ramp(8, 6), np.zeros(8, np.float32)

    def expected(x, out):
        return {1: x.sum(axis=1)}

    def wrong(x, out):
        i = cuda.grid(1)
        row = x[i]
        total = float32(0.0)
        for j in range(x.shape[1] + 1):
            total += row[j]  #! out_of_bounds
        out[i] = total

    def right(x, out):
        i = cuda.grid(1)
        row = x[i]
        total = float32(0.0)
        for j in range(x.shape[1]):
            total += row[j]
        out[i] = total


@defect
class ConstantTablePastItsEnd:
    """A table of four entries in constant memory, indexed by 0 ... 7."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS), np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: x * TABLE[np.arange(THREADS) % 4]}

    def wrong(x, out):
        table = cuda.const.array_like(TABLE)
        i = cuda.grid(1)
        out[i] = x[i] * table[i % 8]  #! out_of_bounds(table)

    def right(x, out):
        table = cuda.const.array_like(TABLE)
        i = cuda.grid(1)
        out[i] = x[i] * table[i % 4]


@defect
class ThirdDimensionNotGuarded:
    """A three-dimensional grid with a ragged depth."""

    launch = Launch((1, 1, 2), (4, 4, 4))

    def arguments():
        return ramp(4, 4, 7), np.zeros((4, 4, 7), np.float32)

    def expected(x, out):
        return {1: x - 1}

    def wrong(x, out):
        i, j, k = cuda.grid(3)
        if i < x.shape[0] and j < x.shape[1]:
            out[i, j, k] = x[i, j, k] - 1  #! out_of_bounds

    def right(x, out):
        i, j, k = cuda.grid(3)
        if i < x.shape[0] and j < x.shape[1] and k < x.shape[2]:
            out[i, j, k] = x[i, j, k] - 1


@defect
class SharedTileRowPastTheEnd:
    """The tile has 8 rows; the block has 9 rows of threads."""

    launch = Launch(1, (8, 9))

    def arguments():
        return ramp(9, 8, dtype=np.int32), np.zeros((9, 8), np.int32)

    def expected(x, out):
        return {1: np.vstack([x[:8][:, ::-1], np.zeros((1, 8), np.int32)])}

    def wrong(x, out):
        tile = cuda.shared.array((8, 8), int32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        tile[ty, tx] = x[ty, tx]  #! out_of_bounds(tile)
        cuda.syncthreads()
        if ty < 8:
            out[ty, tx] = tile[ty, 7 - tx]

    def right(x, out):
        tile = cuda.shared.array((8, 8), int32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        if ty < 8:
            tile[ty, tx] = x[ty, tx]
        cuda.syncthreads()
        if ty < 8:
            out[ty, tx] = tile[ty, 7 - tx]


@defect
class StoreTooFarByAWholeArray:
    """A wrong pitch sends the store far outside, where no neighbouring allocation would catch it."""

    launch = Launch(1, (8, 8))

    def arguments():
        return ramp(8, 8), np.zeros(64, np.float32)

    def expected(x, out):
        return {1: x.ravel()}

    def wrong(x, out):
        column, row = cuda.grid(2)
        out[row * 1024 + column] = x[row, column]  #! out_of_bounds(out)

    def right(x, out):
        column, row = cuda.grid(2)
        out[row * 8 + column] = x[row, column]


@defect
class DynamicSharedMemoryTooSmall:
    """The kernel uses 32 floats of dynamic shared memory, the launch reserves 31."""

    wrong_launch = Launch(1, 32, shared_bytes=31 * 4)
    right_launch = Launch(1, 32, shared_bytes=32 * 4)

    def arguments():
        return ramp(32), np.zeros(31, np.float32)

    def expected(x, out):
        return {1: x[1:]}

    def wrong(x, out):
        pool = cuda.shared.array(0, float32)
        tid = cuda.threadIdx.x
        pool[tid] = x[tid]  #! out_of_bounds(pool)
        cuda.syncthreads()
        if tid < 30:
            out[tid] = pool[tid + 1]

    def right(x, out):
        pool = cuda.shared.array(0, float32)
        tid = cuda.threadIdx.x
        pool[tid] = x[tid]
        cuda.syncthreads()
        if tid < 31:
            out[tid] = pool[tid + 1]
