"""LayerNorm, and RMSNorm fused with the residual addition before it: a block per row, sums by a shared-memory tree.

x[rows, cols]; block b owns row b, and thread t owns columns t, t + 128, t + 256, …:

layernorm          sweep 1:  sum of my x                ──block_sum──► mean = sum / cols
                   sweep 2:  sum of my (x - mean)²      ──block_sum──► root = sqrt(sum / cols + eps)
                   sweep 3:  out = (x - mean) / root · weight + bias

fused_add_rmsnorm  sweep 1:  residual_out = x + residual; sum of my squares ──block_sum──► rms
                   sweep 2:  out = residual_out / rms · (weight + gain_shift)

The squares, and sweep 2, start from the sum as it was stored where ``from_stored``, from x + residual otherwise. A
thread reads back only what it wrote itself, so that needs no barrier.
"""

import math
from typing import Any

import numpy as np
from numba import cuda

from kernels_numba.accumulator import DTYPES, NUMERICS, accumulator_of, per_accumulator
from kernels_numba.block_tree import THREADS, block_sum
from refsim.library import Kernel, Launcher


@per_accumulator
def layernorm(real):
    @cuda.jit
    def layernorm(x, weight, bias, eps, out):
        """Normalise each row of x[rows, cols] by mean and deviation into out[rows, cols]; one block per row."""
        cells = cuda.shared.array(THREADS, real)
        thread = cuda.threadIdx.x
        row = cuda.blockIdx.x
        cols = x.shape[1]

        my_sum = real(0.0)
        for first in range(0, cols, THREADS):
            col = first + thread
            if col < cols:
                my_sum += real(x[row, col])
        mean = block_sum(cells, thread, my_sum) / real(cols)

        my_squares = real(0.0)
        for first in range(0, cols, THREADS):
            col = first + thread
            if col < cols:
                deviation = real(x[row, col]) - mean
                my_squares += deviation * deviation
        root = math.sqrt(block_sum(cells, thread, my_squares) / real(cols) + real(eps))

        for first in range(0, cols, THREADS):
            col = first + thread
            if col < cols:
                out[row, col] = (real(x[row, col]) - mean) / root * real(weight[col]) + real(bias[col])

    return layernorm


@per_accumulator
def fused_add_rmsnorm(real):
    @cuda.jit
    def fused_add_rmsnorm(x, residual, weight, eps, gain_shift, from_stored, twice, residual_out, out):
        """Add residual[rows, cols] to x into residual_out, and normalise the sum into out; one block per row."""
        cells = cuda.shared.array(THREADS, real)
        thread = cuda.threadIdx.x
        row = cuda.blockIdx.x
        cols = x.shape[1]

        my_squares = real(0.0)
        for first in range(0, cols, THREADS):
            col = first + thread
            if col < cols:
                value = real(x[row, col]) + real(residual[row, col])
                residual_out[row, col] = value
                if from_stored:
                    value = real(residual_out[row, col])
                my_squares += value * value
        rms = math.sqrt(block_sum(cells, thread, my_squares) / real(cols) + real(eps))

        for first in range(0, cols, THREADS):
            col = first + thread
            if col < cols:
                if from_stored:
                    value = real(residual_out[row, col])
                else:
                    value = real(x[row, col]) + real(residual[row, col])
                normal = value / rms
                if twice:  # rounded to out's dtype before the gain
                    out[row, col] = normal
                    normal = real(out[row, col])
                out[row, col] = normal * (real(weight[col]) + real(gain_shift))

    return fused_add_rmsnorm


def run_layernorm(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    x, weight, bias = inputs["x"], inputs["weight"], inputs["bias"]
    out = launcher.empty(x.shape, x.dtype)
    if x.size > 0:
        columns = x.shape[1]
        gain = np.ones(columns, x.dtype) if weight is None else weight
        shift = np.zeros(columns, x.dtype) if bias is None else bias
        arrays = [launcher.array(array) for array in (x, gain, shift)]
        launcher.launch(layernorm(accumulator_of(x)), x.shape[0], THREADS, *arrays, params["eps"], out)
    return (out,)


def run_fused_add_rmsnorm(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    x = inputs["x"]
    residual_out, out = launcher.empty(x.shape, x.dtype), launcher.empty(x.shape, x.dtype)
    if x.size > 0:
        arrays = [launcher.array(inputs[name]) for name in ("x", "residual", "weight")]
        gain_shift = 1.0 if params["gain"] == "one_plus_weight" else 0.0
        ways = params["normalised"] == "rounded", params["rounding"] == "twice"
        kernel = fused_add_rmsnorm(accumulator_of(x))
        launcher.launch(kernel, x.shape[0], THREADS, *arrays, params["eps"], gain_shift, *ways, residual_out, out)
    return residual_out, out


KERNELS = [
    Kernel(
        name="layernorm",
        operators=("layernorm",),
        dtypes=DTYPES,
        run=run_layernorm,
        numerics=NUMERICS,
        doc="One block per row: mean, then squared deviations from it, each folded as a tree in shared memory.",
    ),
    Kernel(
        name="fused_add_rmsnorm",
        operators=("fused_add_rmsnorm",),
        dtypes=DTYPES,
        run=run_fused_add_rmsnorm,
        numerics=NUMERICS,
        doc="One block per row: the sum and its squares in one sweep, the quotients in another.",
    ),
]
