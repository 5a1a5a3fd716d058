"""Softmax over the last axis: a block per row in three sweeps, and an online one in two.

Both see x[rows, cols]; block b owns row b, and thread t owns columns t, t + 128, t + 256, …:

    row b   │ t0 t1 … t127 │ t0 t1 … t127 │ t0 t1 …        ragged end: threads past cols sit out
              ◄── 128 ──►

softmax_block    sweep 1: maximum of my columns       ──block_max──► row_max
                 sweep 2: sum of exp(x - row_max)     ──block_sum──► row_sum
                 sweep 3: out = exp(x - row_max) / row_sum

softmax_online   sweep 1: running maximum and running sum of my columns, the sum rescaled whenever the maximum grows
                          ──block_max──► row_max;  my sum · exp(my maximum - row_max) ──block_sum──► row_sum
                 sweep 2: out = exp(x - row_max) / row_sum

A row holding NaN or +inf, or -inf alone, is NaN throughout, as exp(x - max) / sum is.
"""

import math
from typing import Any

import numpy as np
from numba import cuda

from kernels_numba.accumulator import DTYPES, NUMERICS, accumulator_of, per_accumulator
from kernels_numba.block_tree import THREADS, block_max, block_sum
from refsim.library import Kernel, Launcher

NEGATIVE_INFINITY = float("-inf")  # the maximum of nothing


@per_accumulator
def softmax_block(real):
    @cuda.jit
    def softmax_block(x, out):
        """Softmax of each row of x[rows, cols] into out[rows, cols]; one block per row, three sweeps."""
        cells = cuda.shared.array(THREADS, real)
        thread = cuda.threadIdx.x
        row = cuda.blockIdx.x
        cols = x.shape[1]

        my_max = real(NEGATIVE_INFINITY)
        for first in range(0, cols, THREADS):
            col = first + thread
            if col < cols:
                my_max = max(my_max, real(x[row, col]))
        row_max = block_max(cells, thread, my_max)

        my_sum = real(0.0)
        for first in range(0, cols, THREADS):
            col = first + thread
            if col < cols:
                my_sum += math.exp(real(x[row, col]) - row_max)
        row_sum = block_sum(cells, thread, my_sum)

        for first in range(0, cols, THREADS):
            col = first + thread
            if col < cols:
                out[row, col] = math.exp(real(x[row, col]) - row_max) / row_sum

    return softmax_block


@per_accumulator
def softmax_online(real):
    @cuda.jit
    def softmax_online(x, out):
        """Softmax of each row of x[rows, cols] into out[rows, cols]; one block per row, two sweeps."""
        cells = cuda.shared.array(THREADS, real)
        thread = cuda.threadIdx.x
        row = cuda.blockIdx.x
        cols = x.shape[1]

        my_max = real(NEGATIVE_INFINITY)
        my_sum = real(0.0)  # of exp(x - my_max)
        for first in range(0, cols, THREADS):
            col = first + thread
            if col < cols:
                value = real(x[row, col])
                if value != real(NEGATIVE_INFINITY):  # adds nothing, and (-inf) - (-inf) would be NaN
                    new_max = max(my_max, value)
                    my_sum = my_sum * math.exp(my_max - new_max) + math.exp(value - new_max)
                    my_max = new_max
        row_max = block_max(cells, thread, my_max)

        if my_max != real(NEGATIVE_INFINITY):  # otherwise I met no number, and my sum stands: 0, or NaN
            my_sum *= math.exp(my_max - row_max)
        row_sum = block_sum(cells, thread, my_sum)

        for first in range(0, cols, THREADS):
            col = first + thread
            if col < cols:
                out[row, col] = math.exp(real(x[row, col]) - row_max) / row_sum

    return softmax_online


def _run(kernel_for: Any, launcher: Launcher, x: np.ndarray) -> tuple[Any, ...]:
    cols = x.shape[-1]
    rows = x.size // max(cols, 1)
    out = launcher.empty((rows, cols), x.dtype)
    if x.size > 0:
        launcher.launch(kernel_for(accumulator_of(x)), rows, THREADS, launcher.array(x.reshape(rows, cols)), out)
    return (out.reshape(x.shape),)


def run_softmax_block(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    return _run(softmax_block, launcher, inputs["x"])


def run_softmax_online(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    return _run(softmax_online, launcher, inputs["x"])


KERNELS = [
    Kernel(
        name="softmax_block",
        operators=("softmax",),
        dtypes=DTYPES,
        run=run_softmax_block,
        numerics=NUMERICS,
        doc="One block per row: a sweep each for the maximum, the sum and the quotients.",
    ),
    Kernel(
        name="softmax_online",
        operators=("softmax",),
        dtypes=DTYPES,
        run=run_softmax_online,
        numerics=NUMERICS,
        doc="One block per row: maximum and sum in one sweep, the sum rescaled as the maximum grows.",
    ),
]
