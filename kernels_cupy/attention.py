"""Launching attention.cu: attention in three kernels over a buffer of scores, or in one."""

import math
from typing import Any

import numpy as np

from kernels_cupy.grid import MAX_BLOCKS_YZ, cover
from kernels_cupy.source import CPP_TYPES, DTYPES, NUMERICS, Source, accumulator_of, cpp, instantiation, strides_of
from refsim.library import Kernel, Launcher

TILE = 16  # queries of a block, keys of a tile
BLOCK_V = 64  # columns of v of a block
BLOCK = (TILE, TILE)  # threads
ROW_THREADS = TILE * TILE  # threads of a block that owns a row of scores

SOURCE = Source(
    "attention.cu",
    (
        *(
            instantiation(name, CPP_TYPES[dtype])
            for name in ("attention_scores", "attention_weighted_sum", "attention_fused")
            for dtype in DTYPES
        ),
        *(instantiation("attention_softmax", real) for real in ("float", "double")),
    ),
)


def _scale_of(head_dim: int, params: dict[str, Any]) -> float:
    """The factor on the scores: the parameter ``scale``, or 1 / sqrt(head_dim)."""
    scale = params["scale"]
    return 1.0 / math.sqrt(head_dim) if scale is None else float(scale)


def _diagonal_of(queries: int, keys: int, params: dict[str, Any]) -> int:
    """The d for which query i sees key j iff j <= i + d; without a causal mask all keys lie below it."""
    return {"none": keys, "top_left": 0, "bottom_right": keys - queries}[params["causal"]]


def _integers(*values: int) -> tuple[np.int64, ...]:
    return tuple(np.int64(value) for value in values)


def run_attention_three(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    batch, heads, queries, head_dim = inputs["q"].shape
    kv_heads, keys, v_dim = inputs["v"].shape[1:]
    dtype, accumulator = inputs["q"].dtype, accumulator_of(inputs["q"])
    out = launcher.empty((batch, heads, queries, v_dim), dtype)
    lse = launcher.empty((batch, heads, queries), accumulator)
    rows = batch * heads * queries
    if rows == 0:
        return out, lse

    q, k, v = (launcher.array(inputs[name]) for name in ("q", "k", "v"))
    scores = launcher.empty((batch * heads, queries, keys), accumulator)
    if keys > 0:
        launcher.launch(
            SOURCE.kernel("attention_scores", cpp(dtype)),
            (batch * heads, cover(queries, TILE), cover(keys, TILE)),
            BLOCK,
            *(q, *strides_of(q), k, *strides_of(k)),
            *_integers(heads, kv_heads, queries, keys, head_dim),
            accumulator.type(_scale_of(head_dim, params)),
            np.int64(_diagonal_of(queries, keys, params)),
            scores,
        )
    softmax = SOURCE.kernel("attention_softmax", cpp(accumulator))
    launcher.launch(softmax, rows, ROW_THREADS, scores, np.int64(keys), lse)
    if v_dim > 0:
        launcher.launch(
            SOURCE.kernel("attention_weighted_sum", cpp(dtype)),
            (batch * heads, cover(queries, TILE), cover(v_dim, BLOCK_V)),
            BLOCK,
            *(scores, v, *strides_of(v)),
            *_integers(heads, kv_heads, queries, keys, v_dim),
            out,
        )
    return out, lse


def run_attention_fused(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    batch, heads, queries, head_dim = inputs["q"].shape
    kv_heads, keys, v_dim = inputs["v"].shape[1:]
    dtype, accumulator = inputs["q"].dtype, accumulator_of(inputs["q"])
    out = launcher.empty((batch, heads, queries, v_dim), dtype)
    lse = launcher.empty((batch, heads, queries), accumulator)
    if batch * heads * queries > 0:
        q, k, v = (launcher.array(inputs[name]) for name in ("q", "k", "v"))
        launcher.launch(
            SOURCE.kernel("attention_fused", cpp(dtype)),
            (batch * heads, cover(queries, TILE), max(1, cover(v_dim, BLOCK_V))),
            BLOCK,
            *(q, *strides_of(q), k, *strides_of(k), v, *strides_of(v)),
            *_integers(heads, kv_heads, queries, keys, head_dim, v_dim),
            accumulator.type(_scale_of(head_dim, params)),
            np.int64(_diagonal_of(queries, keys, params)),
            *(out, lse),
        )
    return out, lse


def _accepts_three(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    longest = max(inputs["q"].shape[2], inputs["v"].shape[2])
    if longest > MAX_BLOCKS_YZ * TILE:
        return f"queries or keys reach {longest}; a grid covers {MAX_BLOCKS_YZ * TILE} with tiles of {TILE}"
    return _accepts_columns(inputs["v"].shape[3])


def _accepts_fused(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    queries = inputs["q"].shape[2]
    if queries > MAX_BLOCKS_YZ * TILE:
        return f"there are {queries} queries; a grid covers {MAX_BLOCKS_YZ * TILE} with tiles of {TILE}"
    return _accepts_columns(inputs["v"].shape[3])


def _accepts_columns(v_dim: int) -> str | None:
    if v_dim > MAX_BLOCKS_YZ * BLOCK_V:
        return f"v_dim is {v_dim}; a grid covers {MAX_BLOCKS_YZ * BLOCK_V} with tiles of {BLOCK_V}"
    return None


KERNELS = [
    Kernel(
        name="attention_three",
        operators=("attention",),
        dtypes=DTYPES,
        run=run_attention_three,
        accepts=_accepts_three,
        numerics=NUMERICS,
        doc="Three kernels over a buffer of scores: masked scores, softmax, weighted sum.",
    ),
    Kernel(
        name="attention_fused",
        operators=("attention",),
        dtypes=DTYPES,
        run=run_attention_fused,
        accepts=_accepts_fused,
        numerics=NUMERICS,
        doc="One kernel: an online softmax over tiles of 16 keys.",
    ),
]
