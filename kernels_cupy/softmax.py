"""Launching softmax.cu: softmax over the last axis."""

from typing import Any

import numpy as np

from kernels_cupy.source import CPP_TYPES, DTYPES, NUMERICS, Source, cpp, instantiation, strides_of
from refsim.library import Kernel, Launcher

THREADS = 256

SOURCE = Source(
    "softmax.cu",
    tuple(instantiation(name, CPP_TYPES[dtype]) for name in ("softmax_block", "softmax_online") for dtype in DTYPES),
)


def _run(template: str, launcher: Launcher, x: np.ndarray) -> tuple[Any, ...]:
    cols = x.shape[-1]
    rows = x.size // max(cols, 1)
    out = launcher.empty((rows, cols), x.dtype)
    if x.size > 0:
        matrix = launcher.array(x.reshape(rows, cols))
        kernel = SOURCE.kernel(template, cpp(x.dtype))
        launcher.launch(kernel, rows, THREADS, matrix, *strides_of(matrix), np.int64(cols), out)
    return (out.reshape(x.shape),)


def run_softmax_block(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    return _run("softmax_block", launcher, inputs["x"])


def run_softmax_online(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    return _run("softmax_online", launcher, inputs["x"])


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
