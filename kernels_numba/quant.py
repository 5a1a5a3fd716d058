"""Quantisation to 8 bits with a scale per row (token): a block per row, its largest magnitude by a shared-memory tree.

x[rows, cols]; block b owns row b, and thread t owns columns t, t + 128, t + 256, …:

    sweep 1:  maximum of my |x · smooth|  ──block_max──► amax ──► scale[b] = max(amax / largest, least)
    sweep 2:  codes[b, col] = Q(x · smooth / scale[b])

Codes are written as bytes. That of a float8_e4m3fn, sign s, exponent field e of 4 bits, fraction f of 3:

    │ s │ e e e e │ f f f │      e > 0:  ± (8 + f) · 2^(e - 10)      e = 0:  ± f · 2^-9      0x7f: NaN

so that the code of |y| = m · 2^k, m in ½ … 1, is 8 · (k + 6) + round(16 · m) - 8, where a fraction that rounds up to 16
carries into the exponent by itself; below 2^-6 it is round(|y| · 2^9).
"""

import math
from typing import Any

import ml_dtypes
import numpy as np
from numba import cuda, float32

from kernels_numba.block_tree import THREADS, block_max
from refsim.library import Kernel, Launcher

E4M3_LARGEST = 448.0
E4M3_NAN = 0x7F
E4M3_LEAST_NORMAL = 0.015625  # 2^-6
LARGEST = {"float8_e4m3fn": E4M3_LARGEST, "int8": 127.0}
DTYPES = {"float8_e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn), "int8": np.dtype(np.int8)}


@cuda.jit(device=True)
def e4m3_code(value):
    """The byte of the float8_e4m3fn next to a float32, ties to even, saturated."""
    if value != value:
        return E4M3_NAN
    size = min(abs(value), float32(E4M3_LARGEST))
    sign = 0x80 if value < float32(0.0) else 0
    if size < float32(E4M3_LEAST_NORMAL):
        return sign + round(size * float32(512.0))
    mantissa, exponent = math.frexp(size)
    return sign + 8 * (exponent + 6) + round(mantissa * float32(16.0)) - 8


@cuda.jit(device=True)
def int8_code(value):
    """The byte of the int8 next to a float32, ties to even, saturated; 0 for NaN."""
    if value != value:
        return 0
    return round(max(min(value, float32(127.0)), float32(-128.0))) & 0xFF


@cuda.jit
def quantise_token(x, smooth, largest, least, scale_of_zero, nan_counts, is_int8, scale, codes):
    """Quantise each row of x[rows, cols] into codes[rows, cols] with scale[rows]; one block per row."""
    cells = cuda.shared.array(THREADS, float32)
    thread = cuda.threadIdx.x
    row = cuda.blockIdx.x
    cols = x.shape[1]

    my_largest = float32(0.0)
    my_nan = float32(0.0)  # 1 once I met a NaN, which no comparison sees
    for first in range(0, cols, THREADS):
        col = first + thread
        if col < cols:
            value = float32(x[row, col]) * smooth[col]
            if value != value:
                my_nan = float32(1.0)
            elif abs(value) > my_largest:
                my_largest = abs(value)
    amax = block_max(cells, thread, my_largest)
    nans = block_max(cells, thread, my_nan)

    row_scale = max(amax / float32(largest), float32(least))
    if amax == float32(0.0):
        row_scale = float32(scale_of_zero)
    if nan_counts and nans > float32(0.0):
        row_scale = float32(math.nan)
    if thread == 0:
        scale[row] = row_scale

    for first in range(0, cols, THREADS):
        col = first + thread
        if col < cols:
            ratio = float32(x[row, col]) * smooth[col] / row_scale
            if is_int8:
                codes[row, col] = int8_code(ratio)
            else:
                codes[row, col] = e4m3_code(ratio)


def run_quantise_token(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    x, smooth, to, least = inputs["x"], inputs["smooth"], params["to"], params["least"]
    rows, cols = x.shape
    largest = LARGEST[to] if params["largest"] is None else params["largest"]
    scale_of_zero = 1.0 if params["of_zero"] == "one" else least
    if not x.size:  # no element, no launch: the rows have the scale of zeros
        return np.full((rows, 1), scale_of_zero, np.float32), np.zeros((rows, cols), DTYPES[to])
    scale, codes = launcher.empty(rows, np.float32), launcher.empty((rows, cols), np.uint8)
    factor = np.ones(cols, np.float32) if smooth is None else smooth
    arrays = launcher.array(x), launcher.array(factor)
    flags = params["nans"] == "propagate", to == "int8"
    launcher.launch(quantise_token, rows, THREADS, *arrays, largest, least, scale_of_zero, *flags, scale, codes)
    return launcher.host(scale).reshape(rows, 1), launcher.host(codes).view(DTYPES[to])


def accept_tokens(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    """Rows to int8 or float8_e4m3fn, to nearest."""
    if params["block"] != "token":
        return f"block={params['block']!r}; this kernel has a scale per token"
    if params["to"] not in LARGEST:
        return f"to={params['to']!r}; this kernel writes {' and '.join(LARGEST)}"
    return None if params["rounding"] == "nearest" else "rounding='toward_zero'; this kernel rounds to nearest"


KERNELS = [
    Kernel(
        name="quantise_token",
        operators=("quantise",),
        dtypes=("float16", "float32"),
        run=run_quantise_token,
        accepts=accept_tokens,
        numerics={"float16": "float32", "float32": "float32"},
        doc="One block per row: its largest magnitude by a tree, then the codes, int8 or float8 made bit by bit.",
    ),
]
