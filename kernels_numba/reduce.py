"""Sum over one axis or all: one atomic per element, a shared-memory tree, and warp shuffles in two passes.

Every kernel sees the input as x[outer, length, inner] and sums over the middle axis into out[outer, inner]:

            inner                                   inner
          ┌───────┐                               ┌───────┐
    length│ x[o]  │ ──── sum over length ───►     │out[o] │    for each o in outer
          └───────┘                               └───────┘

sum_atomic    one thread per element of x; it adds its element to its output cell in global memory.

sum_tree      one block per output cell. Thread t sums elements t, t + 128, t + 256, … in a register,
              then the block folds 128 registers into one through shared memory (block_tree.py).

sum_shuffle   pass 1: one block per output cell and chunk of 1024 elements  x ──► partials[outer, chunks, inner]
              pass 2: the same kernel, one chunk holding all partial sums   partials ──► out

              256 registers ──shuffles──► 8 warp totals ──shared memory──► warp 0 ──shuffles──► 1 sum
"""

import math
from typing import Any

import numpy as np
from numba import cuda

from kernels_numba.accumulator import DTYPES, NUMERICS, accumulator_of, per_accumulator
from kernels_numba.block_tree import THREADS, block_sum
from kernels_numba.grid import cover
from refsim.library import Kernel, Launcher

ELEMENT_THREADS = 256  # threads of a block where each thread owns one element

WARP = 32
FULL_WARP = 0xFFFFFFFF  # mask naming all lanes of a warp
SHUFFLE_THREADS = 256
SHUFFLE_WARPS = SHUFFLE_THREADS // WARP
CHUNK = 4 * SHUFFLE_THREADS  # elements of the summed axis per block in the first pass

ATOMIC_NUMERICS = {"float16": "float32_fast", "float32": "float32_fast", "float64": "float64"}
"""A float32 atomic addition to global memory flushes subnormals to zero (PTX ISA, ``atom.add.f32``), on any device."""


@per_accumulator
def sum_atomic(real):
    @cuda.jit
    def sum_atomic(x, totals):
        """Add every element of x[outer, length, inner] to totals[outer, inner], which holds zeros."""
        element = cuda.grid(1)
        if element < x.size:
            length, inner = x.shape[1], x.shape[2]
            i = element % inner
            position = element // inner % length
            o = element // inner // length
            cuda.atomic.add(totals, (o, i), real(x[o, position, i]))

    return sum_atomic


@cuda.jit
def round_to_output(totals, out):
    """Write totals[outer, inner] to out[outer, inner] in out's dtype; one thread per cell."""
    cell = cuda.grid(1)
    if cell < totals.size:
        o = cell // totals.shape[1]
        i = cell % totals.shape[1]
        out[o, i] = totals[o, i]


@per_accumulator
def sum_tree(real):
    @cuda.jit
    def sum_tree(x, out):
        """Sum x[outer, length, inner] over length; one block per cell of out[outer, inner]."""
        cells = cuda.shared.array(THREADS, real)
        thread = cuda.threadIdx.x
        length, inner = x.shape[1], x.shape[2]
        o = cuda.blockIdx.x // inner
        i = cuda.blockIdx.x % inner

        partial = real(0.0)
        for first in range(0, length, THREADS):
            position = first + thread
            if position < length:
                partial += real(x[o, position, i])

        total = block_sum(cells, thread, partial)
        if thread == 0:
            out[o, i] = total

    return sum_tree


@per_accumulator
def sum_shuffle(real):
    @cuda.jit
    def sum_shuffle(x, chunk_length, out):
        """Sum x[outer, length, inner] over chunks of length; one block per cell of out[outer, chunks, inner]."""
        warp_totals = cuda.shared.array(SHUFFLE_WARPS, real)
        thread = cuda.threadIdx.x
        lane = thread % WARP
        warp = thread // WARP
        chunks, inner = out.shape[1], out.shape[2]
        i = cuda.blockIdx.x % inner
        chunk = cuda.blockIdx.x // inner % chunks
        o = cuda.blockIdx.x // inner // chunks
        chunk_start = chunk * chunk_length
        chunk_stop = min(chunk_start + chunk_length, x.shape[1])

        partial = real(0.0)
        for first in range(0, chunk_length, SHUFFLE_THREADS):
            position = chunk_start + first + thread
            if position < chunk_stop:
                partial += real(x[o, position, i])

        reach = WARP // 2
        while reach > 0:
            partial += cuda.shfl_down_sync(FULL_WARP, partial, reach)
            reach //= 2
        if lane == 0:
            warp_totals[warp] = partial
        cuda.syncthreads()  # every warp's total is written before warp 0 reads them

        if warp == 0:
            total = real(0.0)
            if lane < SHUFFLE_WARPS:
                total = warp_totals[lane]
            reach = SHUFFLE_WARPS // 2
            while reach > 0:
                total += cuda.shfl_down_sync(FULL_WARP, total, reach)
                reach //= 2
            if lane == 0:
                out[o, chunk, i] = total

    return sum_shuffle


def _summed_in_the_middle(x: np.ndarray, axis: int | None) -> tuple[np.ndarray, tuple[int, ...]]:
    """View x as (outer, length, inner) with the summed axis in the middle, and the shape of the result.

    Merging axes of a strided array may take a copy; an array of up to three dimensions summed over one axis never does.
    """
    if axis is None:
        return x.reshape(1, -1, 1), ()
    axis %= x.ndim
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    return x.reshape(math.prod(before), x.shape[axis], math.prod(after)), before + after


def run_sum_atomic(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    x, shape = _summed_in_the_middle(inputs["x"], params["axis"])
    outer, _, inner = x.shape
    accumulator = accumulator_of(x)
    totals = launcher.zeros((outer, inner), accumulator)
    if x.size > 0:
        grid = cover(x.size, ELEMENT_THREADS)
        launcher.launch(sum_atomic(accumulator), grid, ELEMENT_THREADS, launcher.array(x), totals)
    if x.dtype == accumulator:
        return (totals.reshape(shape),)
    out = launcher.empty((outer, inner), x.dtype)
    if outer * inner > 0:
        launcher.launch(round_to_output, cover(outer * inner, ELEMENT_THREADS), ELEMENT_THREADS, totals, out)
    return (out.reshape(shape),)


def run_sum_tree(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    x, shape = _summed_in_the_middle(inputs["x"], params["axis"])
    outer, _, inner = x.shape
    out = launcher.empty((outer, inner), x.dtype)
    if outer * inner > 0:
        launcher.launch(sum_tree(accumulator_of(x)), outer * inner, THREADS, launcher.array(x), out)
    return (out.reshape(shape),)


def run_sum_shuffle(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    x, shape = _summed_in_the_middle(inputs["x"], params["axis"])
    outer, length, inner = x.shape
    out = launcher.empty((outer, 1, inner), x.dtype)
    if outer * inner > 0:
        kernel = sum_shuffle(accumulator_of(x))
        chunks = max(1, cover(length, CHUNK))
        partials = launcher.empty((outer, chunks, inner), accumulator_of(x))
        launcher.launch(kernel, outer * chunks * inner, SHUFFLE_THREADS, launcher.array(x), CHUNK, partials)
        launcher.launch(kernel, outer * inner, SHUFFLE_THREADS, partials, chunks, out)
    return (out.reshape(shape),)


KERNELS = [
    Kernel(
        name="sum_atomic",
        operators=("sum",),
        dtypes=DTYPES,
        run=run_sum_atomic,
        numerics=ATOMIC_NUMERICS,
        doc="One thread per element, which it adds to its sum atomically.",
        deterministic=False,
    ),
    Kernel(
        name="sum_tree",
        operators=("sum",),
        dtypes=DTYPES,
        run=run_sum_tree,
        numerics=NUMERICS,
        doc="One block per sum, folded as a tree in shared memory.",
    ),
    Kernel(
        name="sum_shuffle",
        operators=("sum",),
        dtypes=DTYPES,
        run=run_sum_shuffle,
        numerics=NUMERICS,
        doc="Two passes of warp shuffles: one block per chunk of 1024 elements, then one per sum.",
    ),
]
