"""Kernels that refsim, Numba's simulator and OpenCL on the CPU all run: here for Numba, in peer_kernels.cl for OpenCL.

A `Workload` names one kernel, makes its arguments, says what it must compute, and how much work that is.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import simulated_kernels as basic
from numba import cuda, float32, int32

TILE = 16
PADDED = TILE + 1
WIDE = 64
ROWS = 4
BLOCK = 128
HEAD = 64
KEYS = 32
BINS = 256


def gemm_registers(a, b, out):
    """A 64x64 tile of the product per block, 4x4 elements per thread in registers."""
    tile_a = cuda.shared.array((WIDE, TILE), float32)
    tile_b = cuda.shared.array((TILE, WIDE), float32)
    sums = cuda.local.array((ROWS, ROWS), float32)
    left = cuda.local.array(ROWS, float32)
    right = cuda.local.array(ROWS, float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    row0 = cuda.blockIdx.y * WIDE
    column0 = cuda.blockIdx.x * WIDE
    for r in range(ROWS):
        for c in range(ROWS):
            sums[r, c] = float32(0.0)
    for k0 in range(0, a.shape[1], TILE):
        for r in range(ROWS):
            tile_a[ty + TILE * r, tx] = a[row0 + ty + TILE * r, k0 + tx]
            tile_b[ty, tx + TILE * r] = b[k0 + ty, column0 + tx + TILE * r]
        cuda.syncthreads()  # the tiles are complete before they are used
        for k in range(TILE):
            for r in range(ROWS):
                left[r] = tile_a[ty + TILE * r, k]
                right[r] = tile_b[k, tx + TILE * r]
            for r in range(ROWS):
                for c in range(ROWS):
                    sums[r, c] += left[r] * right[c]
        cuda.syncthreads()  # the tiles are used before they are replaced
    for r in range(ROWS):
        for c in range(ROWS):
            out[row0 + ty + TILE * r, column0 + tx + TILE * c] = sums[r, c]


def softmax(x, out):
    """One row per block: maximum, sum of exponentials and quotient, each by a tree in shared memory."""
    cells = cuda.shared.array(BLOCK, float32)
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    top = float32(-math.inf)
    for c in range(t, x.shape[1], BLOCK):
        top = max(top, x[row, c])
    cells[t] = top
    cuda.syncthreads()  # every partial maximum is there
    half = BLOCK // 2
    while half > 0:
        if t < half:
            cells[t] = max(cells[t], cells[t + half])
        cuda.syncthreads()  # this level is done before the next
        half //= 2
    top = cells[0]
    cuda.syncthreads()  # the maximum is read before the cells are used again
    total = float32(0.0)
    for c in range(t, x.shape[1], BLOCK):
        total += math.exp(x[row, c] - top)
    cells[t] = total
    cuda.syncthreads()  # every partial sum is there
    half = BLOCK // 2
    while half > 0:
        if t < half:
            cells[t] += cells[t + half]
        cuda.syncthreads()  # this level is done before the next
        half //= 2
    total = cells[0]
    for c in range(t, x.shape[1], BLOCK):
        out[row, c] = math.exp(x[row, c] - top) / total


def rmsnorm(x, weight, out):
    """One row per block: the mean square by a tree in shared memory."""
    cells = cuda.shared.array(BLOCK, float32)
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    total = float32(0.0)
    for c in range(t, x.shape[1], BLOCK):
        total += x[row, c] * x[row, c]
    cells[t] = total
    cuda.syncthreads()  # every partial sum is there
    half = BLOCK // 2
    while half > 0:
        if t < half:
            cells[t] += cells[t + half]
        cuda.syncthreads()  # this level is done before the next
        half //= 2
    scale = float32(1.0) / math.sqrt(cells[0] / float32(x.shape[1]) + float32(1e-6))
    for c in range(t, x.shape[1], BLOCK):
        out[row, c] = x[row, c] * scale * weight[c]


def attention(q, k, v, out, scale):
    """One query per thread, keys and values in tiles through shared memory, softmax rescaled as it goes."""
    keys = cuda.shared.array((KEYS, HEAD), float32)
    values = cuda.shared.array((KEYS, HEAD), float32)
    query = cuda.local.array(HEAD, float32)
    sums = cuda.local.array(HEAD, float32)
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x * cuda.blockDim.x + t
    for d in range(HEAD):
        query[d] = q[row, d]
        sums[d] = float32(0.0)
    top = float32(-math.inf)
    total = float32(0.0)
    for start in range(0, k.shape[0], KEYS):
        for j in range(t, KEYS * HEAD, cuda.blockDim.x):
            keys[j // HEAD, j % HEAD] = k[start + j // HEAD, j % HEAD]
            values[j // HEAD, j % HEAD] = v[start + j // HEAD, j % HEAD]
        cuda.syncthreads()  # the tile is complete before it is used
        for j in range(KEYS):
            score = float32(0.0)
            for d in range(HEAD):
                score += query[d] * keys[j, d]
            score *= scale
            higher = max(top, score)
            old = math.exp(top - higher)
            new = math.exp(score - higher)
            total = total * old + new
            for d in range(HEAD):
                sums[d] = sums[d] * old + new * values[j, d]
            top = higher
        cuda.syncthreads()  # the tile is used before it is replaced
    for d in range(HEAD):
        out[row, d] = sums[d] / total


def transpose(x, out):
    """A padded tile through shared memory, read and written along rows."""
    tile = cuda.shared.array((TILE, PADDED), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    tile[ty, tx] = x[cuda.blockIdx.y * TILE + ty, cuda.blockIdx.x * TILE + tx]
    cuda.syncthreads()  # the tile is complete before it is read across
    out[cuda.blockIdx.x * TILE + ty, cuda.blockIdx.y * TILE + tx] = tile[tx, ty]


def scan(x, out):
    """Inclusive sums within each block, doubling the distance, between two buffers."""
    cells = cuda.shared.array((2, BLOCK), float32)
    t = cuda.threadIdx.x
    i = cuda.blockIdx.x * BLOCK + t
    cells[0, t] = x[i]
    cuda.syncthreads()  # all are loaded
    here = 0
    distance = 1
    while distance < BLOCK:
        if t >= distance:
            cells[1 - here, t] = cells[here, t] + cells[here, t - distance]
        else:
            cells[1 - here, t] = cells[here, t]
        here = 1 - here
        distance *= 2
        cuda.syncthreads()  # this buffer is complete before the next step reads it
    out[i] = cells[here, t]


def histogram(x, counts):
    """Counts of byte values: a histogram per block in shared memory, added to the one in global memory."""
    bins = cuda.shared.array(BINS, int32)
    t = cuda.threadIdx.x
    for b in range(t, BINS, cuda.blockDim.x):
        bins[b] = 0
    cuda.syncthreads()  # all bins are zero
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, x[i], 1)
    cuda.syncthreads()  # all values are counted
    for b in range(t, BINS, cuda.blockDim.x):
        cuda.atomic.add(counts, b, bins[b])


def warp_sum(x, out):
    """The sum of 32 elements per warp, by shuffles."""
    i = cuda.grid(1)
    total = x[i]
    total += cuda.shfl_xor_sync(0xFFFFFFFF, total, 16)
    total += cuda.shfl_xor_sync(0xFFFFFFFF, total, 8)
    total += cuda.shfl_xor_sync(0xFFFFFFFF, total, 4)
    total += cuda.shfl_xor_sync(0xFFFFFFFF, total, 2)
    total += cuda.shfl_xor_sync(0xFFFFFFFF, total, 1)
    if cuda.laneid == 0:
        out[i // 32] = total


def bitonic_sort(x, out):
    """Each block sorts its 128 elements in shared memory."""
    cells = cuda.shared.array(BLOCK, float32)
    t = cuda.threadIdx.x
    i = cuda.blockIdx.x * BLOCK + t
    cells[t] = x[i]
    cuda.syncthreads()  # all are loaded
    size = 2
    while size <= BLOCK:
        stride = size // 2
        while stride > 0:
            partner = t ^ stride
            if partner > t:
                up = (t & size) == 0
                if (cells[t] > cells[partner]) == up:
                    other = cells[t]
                    cells[t] = cells[partner]
                    cells[partner] = other
            cuda.syncthreads()  # this exchange is done before the next
            stride //= 2
        size *= 2
    out[i] = cells[t]


# ---- what is run --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Workload:
    """One kernel and its input.

    Attributes
    ----------
    kernel
        The Numba kernel, a plain function.
    opencl
        Name of the same kernel in peer_kernels.cl; empty where OpenCL on this CPU has none.
    arguments
        Makes (grid, block, arguments, units of work) for a size.
    expected
        What the last array argument (or the one at `output`) must be, from the arguments.
    size, small
        Size for refsim and OpenCL, and one that Numba's simulator finishes.
    unit
        What is counted.
    barriers
        True for a kernel that Numba's simulator needs a thread per CUDA thread for.
    """

    kernel: Callable[..., None]
    opencl: str
    arguments: Callable[[int], tuple[Any, Any, tuple[Any, ...], int]]
    expected: Callable[..., np.ndarray]
    size: int
    small: int
    unit: str
    barriers: bool
    output: int = -1
    exact: bool = False

    @property
    def name(self) -> str:
        return self.kernel.__name__


def _uniform(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


def _gemm(n: int) -> Any:
    return basic.gemm_launch(n)


def _gemm_registers(n: int) -> Any:
    _, block, arguments, work = basic.gemm_launch(n)
    return (n // WIDE, n // WIDE), block, arguments, work


def _rows(n: int) -> Any:
    x = _uniform(n, 1024)
    return n, BLOCK, (x, np.zeros_like(x)), x.size


def _norm(n: int) -> Any:
    x = _uniform(n, 1024)
    return n, BLOCK, (x, _uniform(1024, seed=1), np.zeros_like(x)), x.size


def _attention(n: int) -> Any:
    rows = 16 * n  # queries of 16 heads that share n keys
    q, k, v = (_uniform(count, HEAD, seed=s) for s, count in enumerate((rows, n, n)))
    return rows // WIDE, WIDE, (q, k, v, np.zeros_like(q), np.float32(HEAD**-0.5)), 2 * rows * n * HEAD


def _transpose(n: int) -> Any:
    x = _uniform(n, n)
    return (n // TILE, n // TILE), (TILE, TILE), (x, np.zeros_like(x)), x.size


def _line(n: int) -> Any:
    x = np.random.default_rng(0).integers(-8, 9, n).astype(np.float32)
    return n // BLOCK, BLOCK, (x, np.zeros_like(x)), n


def _bytes(n: int) -> Any:
    x = np.random.default_rng(0).integers(0, BINS, n).astype(np.int32)
    return max(1, n // (16 * BLOCK)), BLOCK, (x, np.zeros(BINS, np.int32)), n


def _warps(n: int) -> Any:
    x = np.random.default_rng(0).integers(-8, 9, n).astype(np.float32)
    return n // BLOCK, BLOCK, (x, np.zeros(n // 32, np.float32)), n


def _stride(n: int) -> Any:
    grid, block, (alpha, x, y), work = basic.saxpy_grid_stride_launch(n)
    return grid, block, (alpha, x, y), work


def _mandelbrot(n: int) -> Any:
    grid, block, (counts, limit), _ = basic.mandelbrot_launch(n, 200)
    return grid, block, (counts, np.int32(limit)), int(mandelbrot_counts(n, 200).sum())


def mandelbrot_counts(n: int, limit: int) -> np.ndarray:
    """Steps until escape, for every pixel at once."""
    column, row = np.meshgrid(np.arange(n), np.arange(n))
    re = (-2.0 + 3.0 * column / n).astype(np.float32)
    im = (-1.5 + 3.0 * row / n).astype(np.float32)
    x, y, counts = np.zeros_like(re), np.zeros_like(re), np.zeros(re.shape, np.int32)
    live = np.ones(re.shape, bool)
    with np.errstate(all="ignore"):
        for _ in range(limit):
            live &= x * x + y * y < 4
            counts += live
            x, y = x * x - y * y + re, np.float32(2) * x * y + im
    return counts


def _attention_expected(q: Any, k: Any, v: Any, out: Any, scale: Any) -> np.ndarray:
    scores = (q.astype(np.float64) @ k.T) * scale
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ v


def _softmax_expected(x: Any, out: Any) -> np.ndarray:
    weights = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def _norm_expected(x: Any, weight: Any, out: Any) -> np.ndarray:
    wide = x.astype(np.float64)
    return wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-6) * weight


WORKLOADS = [
    Workload(basic.gemm, "gemm", _gemm, lambda a, b, o: a @ b, 512, 48, "multiply-adds", True, exact=True),
    Workload(gemm_registers, "gemm_registers", _gemm_registers, lambda a, b, o: a @ b, 512, 64, "multiply-adds", True,
             exact=True),
    Workload(softmax, "softmax", _rows, _softmax_expected, 2048, 2, "elements", True),
    Workload(rmsnorm, "rmsnorm", _norm, _norm_expected, 2048, 2, "elements", True),
    Workload(attention, "attention", _attention, _attention_expected, 512, 32, "multiply-adds", True, output=3),
    Workload(transpose, "transpose", _transpose, lambda x, o: x.T, 2048, 64, "elements", True, exact=True),
    Workload(scan, "scan", _line, lambda x, o: np.cumsum(x.reshape(-1, BLOCK), axis=1).reshape(-1), 1 << 21, 512,
             "elements", True, exact=True),
    Workload(histogram, "histogram", _bytes, lambda x, o: np.bincount(x, minlength=BINS), 1 << 21, 2048, "elements",
             True, exact=True),
    Workload(warp_sum, "", _warps, lambda x, o: x.reshape(-1, 32).sum(axis=1), 1 << 21, 0, "elements", False,
             exact=True),
    Workload(bitonic_sort, "bitonic_sort", _line, lambda x, o: np.sort(x.reshape(-1, BLOCK), axis=1).reshape(-1),
             1 << 18, 128, "elements", True, exact=True),
    Workload(basic.saxpy_grid_stride, "saxpy_grid_stride", _stride, lambda a, x, y: a * x + y, 1 << 21, 1 << 16,
             "elements", False, exact=True),
    Workload(basic.mandelbrot, "mandelbrot", _mandelbrot, lambda counts, limit: mandelbrot_counts(len(counts), limit),
             512, 48, "steps", False, output=0, exact=True),
]  # fmt: skip
