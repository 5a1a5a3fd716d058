"""SwiGLU's activation: one thread per output, in tiles of 128 columns of a row.

x[rows, width], out[rows, width / 2]; where the gate and the value of output column c lie in a row of x:

    halves       │ g0 g1 g2 g3 │ v0 v1 v2 v3 │      gate at c,    value at c + width / 2
    interleaved  │ g0 v0 g1 v1 │ g2 v2 g3 v3 │      gate at 2·c,  value at 2·c + 1

so the gate lies at c · gate_step and the value value_offset behind it: (1, width / 2) or (2, 1).

    grid  (tiles of columns, rows)      out = gate / (1 + exp(-gate)) · value
"""

import math
from typing import Any

import numpy as np
from numba import cuda

from kernels_numba.accumulator import DTYPES, NUMERICS, accumulator_of, per_accumulator
from kernels_numba.grid import MAX_BLOCKS_YZ, cover
from refsim.library import Kernel, Launcher

THREADS = 128
NO_LIMIT = float("inf")


@per_accumulator
def silu_and_mul(real):
    @cuda.jit
    def silu_and_mul(x, bias, gate_step, value_offset, limit, twice, out):
        """silu of the gates of x[rows, width] times its values into out[rows, width / 2]; one thread per output."""
        col = cuda.blockIdx.x * THREADS + cuda.threadIdx.x
        row = cuda.blockIdx.y
        if col < out.shape[1]:
            at_gate = col * gate_step
            at_value = at_gate + value_offset
            gate = real(x[row, at_gate]) + real(bias[at_gate])
            value = real(x[row, at_value]) + real(bias[at_value])
            if gate > real(limit):
                gate = real(limit)
            if value > real(limit):
                value = real(limit)
            if value < -real(limit):
                value = -real(limit)
            activated = gate / (real(1.0) + math.exp(-gate))
            if twice:  # rounded to out's dtype before the product; I read back only what I wrote
                out[row, col] = activated
                activated = real(out[row, col])
            out[row, col] = activated * value

    return silu_and_mul


def run_silu_and_mul(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    x, bias = inputs["x"], inputs["bias"]
    rows, width = x.shape
    half = width // 2
    out = launcher.empty((rows, half), x.dtype)
    if rows * half > 0:
        added = np.zeros(width, x.dtype) if bias is None else bias
        gate_step, value_offset = (1, half) if params["pairing"] == "halves" else (2, 1)
        limit = NO_LIMIT if params["limit"] is None else params["limit"]
        arrays, twice = [launcher.array(x), launcher.array(added)], params["rounding"] == "twice"
        kernel, grid = silu_and_mul(accumulator_of(x)), (cover(half, THREADS), rows)
        launcher.launch(kernel, grid, THREADS, *arrays, gate_step, value_offset, limit, twice, out)
    return (out,)


def accept_rows(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    """A row of blocks per row of x."""
    rows = inputs["x"].shape[0]
    return None if rows <= MAX_BLOCKS_YZ else f"x has {rows} rows; the grid takes {MAX_BLOCKS_YZ}"


KERNELS = [
    Kernel(
        name="silu_and_mul",
        operators=("silu_and_mul",),
        dtypes=DTYPES,
        run=run_silu_and_mul,
        accepts=accept_rows,
        numerics=NUMERICS,
        doc="One thread per output; both pairings are strides of one kernel.",
    ),
]
