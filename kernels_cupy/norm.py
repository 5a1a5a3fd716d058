"""Launching norm.cu: RMSNorm."""

from typing import Any

import numpy as np

from kernels_cupy.source import CPP_TYPES, DTYPES, NUMERICS, Source, accumulator_of, cpp, instantiation, strides_of
from refsim.library import Kernel, Launcher

THREADS = 256

SOURCE = Source("norm.cu", tuple(instantiation("rmsnorm", CPP_TYPES[dtype]) for dtype in DTYPES))


def run_rmsnorm(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    out = launcher.empty(inputs["x"].shape, inputs["x"].dtype)
    if inputs["x"].size > 0:
        x, weight = launcher.array(inputs["x"]), launcher.array(inputs["weight"])
        rows, cols = x.shape
        kernel = SOURCE.kernel("rmsnorm", cpp(x.dtype))
        eps = accumulator_of(x).type(params["eps"])
        arrays = (x, *strides_of(x), weight, *strides_of(weight))
        launcher.launch(kernel, rows, THREADS, *arrays, np.int64(cols), eps, out)
    return (out,)


KERNELS = [
    Kernel(
        name="rmsnorm",
        operators=("rmsnorm",),
        dtypes=DTYPES,
        run=run_rmsnorm,
        numerics=NUMERICS,
        doc="One block per row, its mean square folded by warp shuffles.",
    ),
]
