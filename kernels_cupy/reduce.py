"""Launching reduce.cu: sum over one axis or all."""

import math
from typing import Any

import numpy as np

from kernels_cupy.grid import cover
from kernels_cupy.source import CPP_TYPES, DTYPES, NUMERICS, Source, accumulator_of, cpp, instantiation, strides_of
from refsim.library import Kernel, Launcher

THREADS = 256
CHUNK = 16 * THREADS  # elements of the summed axis per block in the first pass

ATOMIC_NUMERICS = {**NUMERICS, "float16": "float32_fast", "bfloat16": "float32_fast", "float32": "float32_fast"}
"""A float32 atomic addition to global memory flushes subnormals to zero (PTX ISA, ``atom.add.f32``), on any device."""

SOURCE = Source(
    "reduce.cu",
    (
        *(instantiation("sum_chunks", CPP_TYPES[dtype], CPP_TYPES[NUMERICS[dtype]]) for dtype in DTYPES),
        *(instantiation("sum_chunks", "float", half) for half in ("Half", "BFloat16")),
        *(instantiation("sum_atomic", CPP_TYPES[dtype]) for dtype in DTYPES),
        *(instantiation("round_to_output", half) for half in ("Half", "BFloat16")),
    ),
)


def _summed_in_the_middle(x: np.ndarray, axis: int | None) -> tuple[np.ndarray, tuple[int, ...]]:
    """View x as (outer, length, inner) with the summed axis in the middle, and the shape of the result.

    Merging axes of a strided array may take a copy; an array of up to three dimensions summed over one axis never does.
    """
    if axis is None:
        return x.reshape(1, -1, 1), ()
    axis %= x.ndim
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    return x.reshape(math.prod(before), x.shape[axis], math.prod(after)), before + after


def _launch_sum(launcher: Launcher, kernel: Any, x: Any, chunk_length: int, chunks: int, out: Any) -> None:
    """Sum chunks of x[outer, length, inner] into ``out``, one block per chunk."""
    outer, length, inner = x.shape
    sizes = (np.int64(size) for size in (length, inner, chunk_length, chunks))
    launcher.launch(kernel, outer * chunks * inner, THREADS, x, *strides_of(x), *sizes, out)


def run_sum_shuffle(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    view, shape = _summed_in_the_middle(inputs["x"], params["axis"])
    outer, length, inner = view.shape
    out = launcher.empty((outer, inner), view.dtype)
    if outer * inner > 0:
        x = launcher.array(view)
        accumulator = accumulator_of(x)
        chunks = max(1, cover(length, CHUNK))
        partials = launcher.empty((outer, chunks, inner), accumulator)
        _launch_sum(launcher, SOURCE.kernel("sum_chunks", cpp(x.dtype), cpp(accumulator)), x, CHUNK, chunks, partials)
        _launch_sum(launcher, SOURCE.kernel("sum_chunks", cpp(accumulator), cpp(x.dtype)), partials, chunks, 1, out)
    return (out.reshape(shape),)


def run_sum_atomic(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    view, shape = _summed_in_the_middle(inputs["x"], params["axis"])
    outer, length, inner = view.shape
    accumulator = accumulator_of(view)
    totals = launcher.zeros((outer, inner), accumulator)
    if view.size > 0:
        x = launcher.array(view)
        _launch_sum(launcher, SOURCE.kernel("sum_atomic", cpp(x.dtype)), x, CHUNK, cover(length, CHUNK), totals)
    if view.dtype == accumulator:
        return (totals.reshape(shape),)
    out = launcher.empty((outer, inner), view.dtype)
    cells = outer * inner
    if cells > 0:
        fragments = cover(cells, 16 // view.dtype.itemsize)
        kernel = SOURCE.kernel("round_to_output", cpp(view.dtype))
        launcher.launch(kernel, cover(fragments, THREADS), THREADS, totals, np.int64(cells), out)
    return (out.reshape(shape),)


KERNELS = [
    Kernel(
        name="sum_atomic",
        operators=("sum",),
        dtypes=DTYPES,
        run=run_sum_atomic,
        numerics=ATOMIC_NUMERICS,
        doc="One block per chunk of 4096 elements, folded by warp shuffles and added to its sum atomically.",
        deterministic=False,
    ),
    Kernel(
        name="sum_shuffle",
        operators=("sum",),
        dtypes=DTYPES,
        run=run_sum_shuffle,
        numerics=NUMERICS,
        doc="Two passes of warp shuffles: one block per chunk of 4096 elements, then one per sum.",
    ),
]
