"""Launching gemm.cu: matrix multiplication."""

from typing import Any

import numpy as np

from kernels_cupy.grid import MAX_BLOCKS_YZ, cover
from kernels_cupy.source import CPP_TYPES, DTYPES, NUMERICS, Source, cpp, instantiation, strides_of
from refsim.library import Kernel, Launcher

BLOCK = (16, 16)  # threads
TILES = {"matmul_tiled": 16, "matmul_register": 64}  # a block owns as many rows and as many columns of out

SOURCE = Source("gemm.cu", tuple(instantiation(name, CPP_TYPES[dtype]) for name in TILES for dtype in DTYPES))


def _operands(inputs: dict[str, Any], params: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """a as (m, k) and b as (k, n)."""
    a = inputs["a"].T if params["transpose_a"] else inputs["a"]
    b = inputs["b"].T if params["transpose_b"] else inputs["b"]
    return a, b


def _run(template: str, launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    operands = _operands(inputs, params)
    (m, k), n = operands[0].shape, operands[1].shape[1]
    out = launcher.empty((m, n), operands[0].dtype)
    if m * n > 0:
        has_bias = inputs["bias"] is not None
        bias = launcher.array(inputs["bias"] if has_bias else np.zeros(1, out.dtype))
        a, b = (launcher.array(operand) for operand in operands)
        arrays = (a, *strides_of(a), b, *strides_of(b), bias, *strides_of(bias))
        sizes = (np.int64(size) for size in (m, n, k))
        grid = (cover(m, TILES[template]), cover(n, TILES[template]))
        launcher.launch(SOURCE.kernel(template, cpp(out.dtype)), grid, BLOCK, *arrays, np.int32(has_bias), *sizes, out)
    return (out,)


def run_matmul_tiled(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    return _run("matmul_tiled", launcher, inputs, params)


def run_matmul_register(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    return _run("matmul_register", launcher, inputs, params)


def _accepts_columns(template: str, inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    n = _operands(inputs, params)[1].shape[1]
    tile = TILES[template]
    if n > MAX_BLOCKS_YZ * tile:
        return f"out has {n} columns; a grid covers {MAX_BLOCKS_YZ * tile} with tiles of {tile}"
    return None


def _accepts_tiled(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    return _accepts_columns("matmul_tiled", inputs, params)


def _accepts_register(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    return _accepts_columns("matmul_register", inputs, params)


KERNELS = [
    Kernel(
        name="matmul_tiled",
        operators=("matmul",),
        dtypes=DTYPES,
        run=run_matmul_tiled,
        accepts=_accepts_tiled,
        numerics=NUMERICS,
        doc="16×16 tiles in shared memory, one output per thread.",
    ),
    Kernel(
        name="matmul_register",
        operators=("matmul",),
        dtypes=DTYPES,
        run=run_matmul_register,
        accepts=_accepts_register,
        numerics=NUMERICS,
        doc="64×64 tiles moved 16 bytes a thread, 4×4 outputs in each thread's registers, double buffering.",
    ),
]
