"""Launching rope.cu: rotary position embedding."""

from typing import Any

import numpy as np

from kernels_cupy.source import CPP_TYPES, DTYPES, NUMERICS, Source, cpp, instantiation, strides_of
from refsim.library import Kernel, Launcher

THREADS = 128
NEIGHBOURS = {"neox": "false", "gptj": "true"}  # whether the members of a pair lie side by side

SOURCE = Source(
    "rope.cu",
    tuple(
        instantiation("rope", CPP_TYPES[dtype], CPP_TYPES[position], neighbours)
        for dtype in DTYPES
        for position in ("int32", "int64")
        for neighbours in NEIGHBOURS.values()
    ),
)


def run_rope(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    out = launcher.empty(inputs["x"].shape, inputs["x"].dtype)
    if inputs["x"].size > 0:
        arrays = [launcher.array(inputs[name]) for name in ("x", "positions", "cos", "sin")]
        x, positions, cos, _ = arrays
        tokens, heads, head_dim = x.shape
        kernel = SOURCE.kernel("rope", cpp(x.dtype), cpp(positions.dtype), NEIGHBOURS[params["pairing"]])
        pointers = (value for array in arrays for value in (array, *strides_of(array)))
        sizes = (np.int64(size) for size in (heads, head_dim, cos.shape[1]))
        launcher.launch(kernel, tokens, THREADS, *pointers, *sizes, out)
    return (out,)


KERNELS = [
    Kernel(
        name="rope",
        operators=("rope",),
        dtypes=DTYPES,
        run=run_rope,
        numerics=NUMERICS,
        doc="One block per token, 16 bytes of a's and of b's at a time; one instantiation per pairing.",
    ),
]
