"""RMSNorm: a block per row, mean square by a shared-memory tree.

x[rows, cols], weight[cols]; block b owns row b, and thread t owns columns t, t + 128, t + 256, …:

    sweep 1:  sum of my x²  ──block_sum──► square_sum ──► rms = sqrt(square_sum / cols + eps)
    sweep 2:  out = x / rms · weight
"""

import math
from typing import Any

from numba import cuda

from kernels_numba.accumulator import DTYPES, NUMERICS, accumulator_of, per_accumulator
from kernels_numba.block_tree import THREADS, block_sum
from refsim.library import Kernel, Launcher


@per_accumulator
def rmsnorm(real):
    @cuda.jit
    def rmsnorm(x, weight, eps, out):
        """Normalise each row of x[rows, cols] by its root mean square into out[rows, cols]; one block per row."""
        cells = cuda.shared.array(THREADS, real)
        thread = cuda.threadIdx.x
        row = cuda.blockIdx.x
        cols = x.shape[1]

        my_squares = real(0.0)
        for first in range(0, cols, THREADS):
            col = first + thread
            if col < cols:
                value = real(x[row, col])
                my_squares += value * value
        square_sum = block_sum(cells, thread, my_squares)
        rms = math.sqrt(square_sum / real(cols) + real(eps))

        for first in range(0, cols, THREADS):
            col = first + thread
            if col < cols:
                out[row, col] = real(x[row, col]) / rms * real(weight[col])

    return rmsnorm


def run_rmsnorm(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    x, weight = inputs["x"], inputs["weight"]
    out = launcher.empty(x.shape, x.dtype)
    if x.size > 0:
        kernel = rmsnorm(accumulator_of(x))
        launcher.launch(kernel, x.shape[0], THREADS, launcher.array(x), launcher.array(weight), params["eps"], out)
    return (out,)


KERNELS = [
    Kernel(
        name="rmsnorm",
        operators=("rmsnorm",),
        dtypes=DTYPES,
        run=run_rmsnorm,
        numerics=NUMERICS,
        doc="One block per row, its mean square folded as a tree in shared memory.",
    ),
]
