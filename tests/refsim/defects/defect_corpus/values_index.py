"""Wrong results that no memory check can see: a wrong index, tile, mask or stride."""

import numpy as np
from numba import cuda, float32, int32

from .inputs import ramp
from .record import Launch, defect

TILE = 8
PADDED = TILE + 1
THREADS = 64
WARP = 32
FULL = 0xFFFFFFFF


@defect
class LastKTileDropped:
    """K // TILE tiles instead of the number rounded up: the ragged last tile is never added."""

    launch = Launch((2, 2), (TILE, TILE))

    def arguments():
        return ramp(16, 20) % 7, ramp(20, 16) % 5, np.zeros((16, 16), np.float32)

    def expected(a, b, out):
        return {2: a @ b}

    def wrong(a, b, out):
        tile_a = cuda.shared.array((TILE, TILE), float32)
        tile_b = cuda.shared.array((TILE, TILE), float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = float32(0.0)
        for step in range(a.shape[1] // TILE):  #! value
            k0 = step * TILE
            tile_a[ty, tx] = a[row, k0 + tx] if k0 + tx < a.shape[1] else float32(0.0)
            tile_b[ty, tx] = b[k0 + ty, column] if k0 + ty < b.shape[0] else float32(0.0)
            cuda.syncthreads()
            for k in range(TILE):
                total += tile_a[ty, k] * tile_b[k, tx]
            cuda.syncthreads()
        out[row, column] = total

    def right(a, b, out):
        tile_a = cuda.shared.array((TILE, TILE), float32)
        tile_b = cuda.shared.array((TILE, TILE), float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = float32(0.0)
        for step in range((a.shape[1] + TILE - 1) // TILE):
            k0 = step * TILE
            tile_a[ty, tx] = a[row, k0 + tx] if k0 + tx < a.shape[1] else float32(0.0)
            tile_b[ty, tx] = b[k0 + ty, column] if k0 + ty < b.shape[0] else float32(0.0)
            cuda.syncthreads()
            for k in range(TILE):
                total += tile_a[ty, k] * tile_b[k, tx]
            cuda.syncthreads()
        out[row, column] = total


@defect
class WrongRowOfATile:
    """The inner product takes the row of the tile that belongs to the thread's column."""

    launch = Launch((2, 2), (TILE, TILE))

    def arguments():
        return ramp(16, 20) % 7, ramp(20, 16) % 5, np.zeros((16, 16), np.float32)

    expected = LastKTileDropped.expected

    def wrong(a, b, out):
        tile_a = cuda.shared.array((TILE, TILE), float32)
        tile_b = cuda.shared.array((TILE, TILE), float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = float32(0.0)
        for step in range((a.shape[1] + TILE - 1) // TILE):
            k0 = step * TILE
            tile_a[ty, tx] = a[row, k0 + tx] if k0 + tx < a.shape[1] else float32(0.0)
            tile_b[ty, tx] = b[k0 + ty, column] if k0 + ty < b.shape[0] else float32(0.0)
            cuda.syncthreads()
            for k in range(TILE):
                total += tile_a[tx, k] * tile_b[k, tx]  #! value
            cuda.syncthreads()
        out[row, column] = total

    right = LastKTileDropped.right


@defect
class TransposedTileIndices:
    """The tile goes through shared memory, and comes out as it went in."""

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
        tile[ty, tx] = x[row + ty, column + tx]
        cuda.syncthreads()
        out[column + ty, row + tx] = tile[ty, tx]  #! value

    def right(x, out):
        tile = cuda.shared.array((TILE, PADDED), float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        row = cuda.blockIdx.y * TILE
        column = cuda.blockIdx.x * TILE
        tile[ty, tx] = x[row + ty, column + tx]
        cuda.syncthreads()
        out[column + ty, row + tx] = tile[tx, ty]


@defect
class CausalMaskOffByOne:
    """Row q may see key q as well."""

    launch = Launch((2, 2), (8, 8))

    def arguments():
        return ramp(16, 16), np.zeros((16, 16), np.float32)

    def expected(scores, out):
        return {1: np.where(np.tri(16, dtype=bool), scores, -1)}

    def wrong(scores, out):
        key, query = cuda.grid(2)
        out[query, key] = scores[query, key] if key < query else float32(-1.0)  #! value

    def right(scores, out):
        key, query = cuda.grid(2)
        out[query, key] = scores[query, key] if key <= query else float32(-1.0)


@defect
class CausalMaskAlignedToTheWrongCorner:
    """With more keys than queries the last query sees the last key: bottom-right, not top-left."""

    launch = Launch((3, 1), (4, 4))

    def arguments():
        return ramp(4, 12), np.zeros((4, 12), np.float32)

    def expected(scores, out):
        return {1: np.where(np.tri(4, 12, k=8, dtype=bool), scores, -1)}

    def wrong(scores, out):
        key, query = cuda.grid(2)
        visible = key <= query  #! value
        out[query, key] = scores[query, key] if visible else float32(-1.0)

    def right(scores, out):
        key, query = cuda.grid(2)
        visible = key <= query + scores.shape[1] - scores.shape[0]
        out[query, key] = scores[query, key] if visible else float32(-1.0)


@defect
class GroupedHeadTakenModulo:
    """Query head h belongs to key head h // group, not h % key heads."""

    launch = Launch(8, 16)

    def arguments():
        return ramp(2, 16), np.zeros((8, 16), np.float32)

    def expected(keys, out):
        return {1: np.repeat(keys, 4, axis=0)}

    def wrong(keys, out):
        head = cuda.blockIdx.x
        d = cuda.threadIdx.x
        out[head, d] = keys[head % keys.shape[0], d]  #! value

    def right(keys, out):
        head = cuda.blockIdx.x
        d = cuda.threadIdx.x
        group = out.shape[0] // keys.shape[0]
        out[head, d] = keys[head // group, d]


@defect
class RotaryPairsOfTheOtherConvention:
    """NeoX pairs (i, i + half); the kernel pairs (2i, 2i + 1)."""

    launch = Launch(4, 8)

    def arguments():
        cos = np.where(ramp(4, 8) % 3 == 0, 0, 1).astype(np.float32)
        return ramp(4, 16), cos, 1 - cos

    def expected(x, cos, sin):
        first, second = x[:, :8], x[:, 8:]
        return {0: np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=1)}

    def wrong(x, cos, sin):
        token = cuda.blockIdx.x
        i = cuda.threadIdx.x
        first = x[token, 2 * i]  #! value
        second = x[token, 2 * i + 1]  #! value
        x[token, 2 * i] = first * cos[token, i] - second * sin[token, i]
        x[token, 2 * i + 1] = second * cos[token, i] + first * sin[token, i]

    def right(x, cos, sin):
        token = cuda.blockIdx.x
        i = cuda.threadIdx.x
        half = x.shape[1] // 2
        first = x[token, i]
        second = x[token, half + i]
        x[token, i] = first * cos[token, i] - second * sin[token, i]
        x[token, half + i] = second * cos[token, i] + first * sin[token, i]


@defect
class GridStrideSkipsElements:
    """The stride counts all threads of the grid twice."""

    launch = Launch(2, 32)

    def arguments():
        return ramp(300), np.zeros(300, np.float32)

    def expected(x, out):
        return {1: x + 1}

    def wrong(x, out):
        for i in range(cuda.grid(1), x.size, 2 * cuda.gridsize(1)):  #! value
            out[i] = x[i] + 1

    def right(x, out):
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            out[i] = x[i] + 1


@defect
class ExclusiveInsteadOfInclusiveScan:
    """A warp scan by shuffles that stores the sum before the thread's own value."""

    launch = Launch(2, WARP)

    def arguments():
        return ramp(2 * WARP), np.zeros(2 * WARP, np.float32)

    def expected(x, out):
        return {1: np.cumsum(x.reshape(2, WARP), axis=1).ravel()}

    def wrong(x, out):
        lane = cuda.threadIdx.x
        i = cuda.grid(1)
        total = x[i]
        for offset in (1, 2, 4, 8, 16):
            left = cuda.shfl_up_sync(FULL, total, offset)
            if lane >= offset:
                total += left
        out[i] = total - x[i]  #! value

    def right(x, out):
        lane = cuda.threadIdx.x
        i = cuda.grid(1)
        total = x[i]
        for offset in (1, 2, 4, 8, 16):
            left = cuda.shfl_up_sync(FULL, total, offset)
            if lane >= offset:
                total += left
        out[i] = total


@defect
class ScanWithoutLaneGuard:
    """shfl_up_sync returns a lane's own value below the first lane: without the guard it is added twice."""

    launch = Launch(2, WARP)

    def arguments():
        return ramp(2 * WARP) + 1, np.zeros(2 * WARP, np.float32)

    expected = ExclusiveInsteadOfInclusiveScan.expected

    def wrong(x, out):
        i = cuda.grid(1)
        total = x[i]
        for offset in (1, 2, 4, 8, 16):
            total += cuda.shfl_up_sync(FULL, total, offset)  #! value
        out[i] = total

    right = ExclusiveInsteadOfInclusiveScan.right


@defect
class ButterflyOneStepShort:
    """Five exchanges make a sum of 32 lanes; four make two half sums."""

    launch = Launch(1, WARP)

    def arguments():
        return ramp(WARP), np.zeros(WARP, np.float32)

    def expected(x, out):
        return {1: np.full(WARP, x.sum())}

    def wrong(x, out):
        lane = cuda.threadIdx.x
        total = x[lane]
        for offset in (1, 2, 4, 8):  #! value
            total += cuda.shfl_xor_sync(FULL, total, offset)
        out[lane] = total

    def right(x, out):
        lane = cuda.threadIdx.x
        total = x[lane]
        for offset in (1, 2, 4, 8, 16):
            total += cuda.shfl_xor_sync(FULL, total, offset)
        out[lane] = total


@defect
class FirstWarpNotCounted:
    """The last pass of a block sum starts at warp 1."""

    launch = Launch(1, 128)

    def arguments():
        return ramp(128), np.zeros(1, np.float32)

    def expected(x, out):
        return {1: x.sum(keepdims=True)}

    def wrong(x, out):
        partial = cuda.shared.array(4, float32)
        tid = cuda.threadIdx.x
        total = x[tid]
        for offset in (16, 8, 4, 2, 1):
            total += cuda.shfl_down_sync(FULL, total, offset)
        if tid % WARP == 0:
            partial[tid // WARP] = total
        cuda.syncthreads()
        if tid == 0:
            total = float32(0.0)
            for w in range(1, 4):  #! value
                total += partial[w]
            out[0] = total

    def right(x, out):
        partial = cuda.shared.array(4, float32)
        tid = cuda.threadIdx.x
        total = x[tid]
        for offset in (16, 8, 4, 2, 1):
            total += cuda.shfl_down_sync(FULL, total, offset)
        if tid % WARP == 0:
            partial[tid // WARP] = total
        cuda.syncthreads()
        if tid == 0:
            total = float32(0.0)
            for w in range(4):
                total += partial[w]
            out[0] = total


@defect
class ArgmaxTakesTheLastOfEquals:
    """A tie goes to the first index, as in NumPy."""

    launch = Launch(1, 8)

    def arguments():
        return (ramp(8, 20) * 7) % 5, np.zeros(8, np.int32)

    def expected(x, out):
        return {1: x.argmax(axis=1)}

    def wrong(x, out):
        row = cuda.threadIdx.x
        best = 0
        for j in range(1, x.shape[1]):
            if x[row, j] >= x[row, best]:  #! value
                best = j
        out[row] = best

    def right(x, out):
        row = cuda.threadIdx.x
        best = 0
        for j in range(1, x.shape[1]):
            if x[row, j] > x[row, best]:
                best = j
        out[row] = best


@defect
class NegativeIndexWrapsAtTheBorder:
    """A convolution meant to pad with zeros: x[-1] is the last element, not outside, and no check can object."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS) + 1, np.zeros(THREADS, np.float32)

    def expected(x, out):
        return {1: x + np.append(0, x[:-1])}

    def wrong(x, out):
        i = cuda.grid(1)
        out[i] = x[i] + x[i - 1]  #! value

    def right(x, out):
        i = cuda.grid(1)
        left = x[i - 1] if i > 0 else float32(0.0)
        out[i] = x[i] + left


@defect
class KernelOfTheConvolutionNotFlipped:
    """A convolution, not a correlation."""

    launch = Launch(1, 60)

    def arguments():
        return ramp(64) % 11, np.array([1, 2, 3, 4, 5], np.float32), np.zeros(60, np.float32)

    def expected(x, taps, out):
        return {2: np.convolve(x, taps, mode="valid")}

    def wrong(x, taps, out):
        i = cuda.grid(1)
        total = float32(0.0)
        for k in range(taps.size):
            total += x[i + k] * taps[k]  #! value
        out[i] = total

    def right(x, taps, out):
        i = cuda.grid(1)
        total = float32(0.0)
        for k in range(taps.size):
            total += x[i + k] * taps[-1 - k]
        out[i] = total


@defect
class TruncationInsteadOfFloor:
    """int() cuts toward zero: the bins around zero are merged."""

    launch = Launch(1, THREADS)

    def arguments():
        return ramp(THREADS) / 4 - 8, np.zeros(16, np.int32)

    def expected(x, counts):
        return {1: np.bincount((np.floor(x) + 8).astype(int), minlength=16)}

    def wrong(x, counts):
        i = cuda.grid(1)
        cuda.atomic.add(counts, int(x[i]) + 8, 1)  #! value

    def right(x, counts):
        i = cuda.grid(1)
        cuda.atomic.add(counts, int(x[i] + float32(8.0)), 1)


@defect
class IntegerAccumulatorTooNarrow:
    """A cast to int32 in the loop wraps; Numba's own int64 would not."""

    launch = Launch(1, 4)

    def arguments():
        return np.full((4, 8), 2**30, np.int32), np.zeros(4, np.int64)

    def expected(x, out):
        return {1: x.sum(axis=1, dtype=np.int64)}

    def wrong(x, out):
        row = cuda.threadIdx.x
        total = int32(0)
        for j in range(x.shape[1]):
            total = int32(total + x[row, j])  #! value
        out[row] = total

    def right(x, out):
        row = cuda.threadIdx.x
        total = 0
        for j in range(x.shape[1]):
            total += x[row, j]
        out[row] = total
