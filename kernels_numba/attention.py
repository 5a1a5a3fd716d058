"""Attention as five kernels over a buffer of scores: scores, scale, mask, softmax, weighted sum.

q[batch, heads, queries, head_dim], k[batch, kv_heads, keys, head_dim], v[batch, kv_heads, keys, v_dim]; query head h
reads kv head h // (heads / kv_heads). The buffer is scores[batch · heads, queries, keys] in the accumulator's type.

    q, k ──► attention_scores         scores = q · kᵀ
                    ▼
             attention_scale          scores · scale
                    ▼
             attention_mask           scores of hidden keys ◄ -inf
                    ▼
             attention_softmax        scores ◄ weights             ──► lse
                    ▼
    v ─────► attention_weighted_sum   weights · v                  ──► out

    attention_scores, attention_weighted_sum   block (16, 16) owns a 16×16 tile of its output, grid (batch · heads,
                                               tiles of queries, tiles of keys or of v_dim); inputs pass through
                                               shared memory in 16×16 tiles, as in gemm.py's matmul_tiled
    attention_scale, attention_mask            one thread per score
    attention_softmax                          one block per row of scores, as in softmax.py's softmax_block

Query i sees key j iff j <= i + diagonal. A row that sees nothing has weights 0, out 0 and lse -inf.

            top_left: diagonal 0             bottom_right: diagonal keys - queries

               keys                             keys
             ■ · · · ·                        ■ ■ ■ · ·
    queries  ■ ■ · · ·                        ■ ■ ■ ■ ·
             ■ ■ ■ · ·                        ■ ■ ■ ■ ■
"""

import math
from typing import Any

from numba import cuda

from kernels_numba.accumulator import DTYPES, NUMERICS, accumulator_of, per_accumulator
from kernels_numba.block_tree import THREADS, block_max, block_sum
from kernels_numba.grid import MAX_BLOCKS_YZ, cover
from refsim.library import Kernel, Launcher

TILE = 16
SCORE_THREADS = 256  # threads of a block where each thread owns one score
NEGATIVE_INFINITY = float("-inf")


@per_accumulator
def attention_scores(real):
    @cuda.jit
    def attention_scores(q, k, scores):
        """scores[batch · heads, queries, keys] = q · kᵀ; one block per 16×16 tile of scores."""
        q_tile = cuda.shared.array((TILE, TILE), real)  # [query, depth]
        k_tile = cuda.shared.array((TILE, TILE), real)  # [depth, key]
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        batch_head = cuda.blockIdx.x
        heads, queries, head_dim = q.shape[1], q.shape[2], q.shape[3]
        keys = k.shape[2]
        batch = batch_head // heads
        head = batch_head % heads
        kv_head = head // (heads // k.shape[1])
        query = cuda.blockIdx.y * TILE + y
        key = cuda.blockIdx.z * TILE + x

        score = real(0.0)
        for d0 in range(0, head_dim, TILE):
            q_value = real(0.0)
            if query < queries and d0 + x < head_dim:
                q_value = real(q[batch, head, query, d0 + x])
            q_tile[y, x] = q_value
            k_value = real(0.0)
            if key < keys and d0 + y < head_dim:
                k_value = real(k[batch, kv_head, key, d0 + y])
            k_tile[y, x] = k_value
            cuda.syncthreads()  # both tiles are written before any thread reads a row or column of them
            for depth in range(TILE):
                score += q_tile[y, depth] * k_tile[depth, x]
            cuda.syncthreads()  # both tiles are read before the next step writes them

        if query < queries and key < keys:
            scores[batch_head, query, key] = score

    return attention_scores


@per_accumulator
def attention_scale(real):
    @cuda.jit
    def attention_scale(scores, scale):
        """Multiply every score by scale, in place; one thread per score."""
        index = cuda.grid(1)
        if index < scores.size:
            queries, keys = scores.shape[1], scores.shape[2]
            key = index % keys
            query = index // keys % queries
            batch_head = index // keys // queries
            scores[batch_head, query, key] *= real(scale)

    return attention_scale


@per_accumulator
def attention_mask(real):
    @cuda.jit
    def attention_mask(scores, diagonal):
        """Set the scores of keys that their query does not see to -inf; one thread per score."""
        index = cuda.grid(1)
        if index < scores.size:
            queries, keys = scores.shape[1], scores.shape[2]
            key = index % keys
            query = index // keys % queries
            batch_head = index // keys // queries
            if key > query + diagonal:
                scores[batch_head, query, key] = real(NEGATIVE_INFINITY)

    return attention_mask


@per_accumulator
def attention_softmax(real):
    @cuda.jit
    def attention_softmax(scores, lse):
        """Turn each row of scores into weights, in place, and write lse[batch, heads, queries]; one block per row."""
        cells = cuda.shared.array(THREADS, real)
        thread = cuda.threadIdx.x
        queries, keys = scores.shape[1], scores.shape[2]
        query = cuda.blockIdx.x % queries
        batch_head = cuda.blockIdx.x // queries
        batch = batch_head // lse.shape[1]
        head = batch_head % lse.shape[1]

        my_max = real(NEGATIVE_INFINITY)
        for first in range(0, keys, THREADS):
            key = first + thread
            if key < keys:
                my_max = max(my_max, scores[batch_head, query, key])
        row_max = block_max(cells, thread, my_max)
        if row_max == real(NEGATIVE_INFINITY):  # a row that sees nothing: -inf - 0 is -inf, where -inf - -inf is NaN
            row_max = real(0.0)

        my_sum = real(0.0)
        for first in range(0, keys, THREADS):
            key = first + thread
            if key < keys:
                weight = math.exp(scores[batch_head, query, key] - row_max)
                scores[batch_head, query, key] = weight
                my_sum += weight
        row_sum = block_sum(cells, thread, my_sum)

        row_lse = real(NEGATIVE_INFINITY)
        if row_sum == real(0.0):
            row_sum = real(1.0)  # all weights are 0, and so are they divided by 1
        else:
            row_lse = row_max + math.log(row_sum)
        for first in range(0, keys, THREADS):
            key = first + thread
            if key < keys:
                scores[batch_head, query, key] /= row_sum
        if thread == 0:
            lse[batch, head, query] = row_lse

    return attention_softmax


@per_accumulator
def attention_weighted_sum(real):
    @cuda.jit
    def attention_weighted_sum(weights, v, out):
        """out[batch, heads, queries, v_dim] = weights · v; one block per 16×16 tile of (queries, v_dim)."""
        weight_tile = cuda.shared.array((TILE, TILE), real)  # [query, key]
        v_tile = cuda.shared.array((TILE, TILE), real)  # [key, col]
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        batch_head = cuda.blockIdx.x
        heads, queries, v_dim = out.shape[1], out.shape[2], out.shape[3]
        keys = v.shape[2]
        batch = batch_head // heads
        head = batch_head % heads
        kv_head = head // (heads // v.shape[1])
        query = cuda.blockIdx.y * TILE + y
        col = cuda.blockIdx.z * TILE + x

        total = real(0.0)
        for key0 in range(0, keys, TILE):
            weight = real(0.0)
            if query < queries and key0 + x < keys:
                weight = weights[batch_head, query, key0 + x]
            weight_tile[y, x] = weight
            v_value = real(0.0)
            if key0 + y < keys and col < v_dim:
                v_value = real(v[batch, kv_head, key0 + y, col])
            v_tile[y, x] = v_value
            cuda.syncthreads()  # both tiles are written before any thread reads a row or column of them
            for key in range(TILE):
                total += weight_tile[y, key] * v_tile[key, x]
            cuda.syncthreads()  # both tiles are read before the next step writes them

        if query < queries and col < v_dim:
            out[batch, head, query, col] = total

    return attention_weighted_sum


def run_attention_five(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    batch, heads, queries, head_dim = q.shape
    keys, v_dim = v.shape[2:]
    accumulator = accumulator_of(q)
    out = launcher.empty((batch, heads, queries, v_dim), q.dtype)
    lse = launcher.empty((batch, heads, queries), accumulator)
    rows = batch * heads * queries
    if rows == 0:
        return out, lse

    scores = launcher.empty((batch * heads, queries, keys), accumulator)
    if keys > 0:
        grid = (batch * heads, cover(queries, TILE), cover(keys, TILE))
        launcher.launch(attention_scores(accumulator), grid, (TILE, TILE), launcher.array(q), launcher.array(k), scores)
        blocks = cover(rows * keys, SCORE_THREADS)
        launcher.launch(attention_scale(accumulator), blocks, SCORE_THREADS, scores, scale_of(head_dim, params))
        diagonal = diagonal_of(queries, keys, params)
        launcher.launch(attention_mask(accumulator), blocks, SCORE_THREADS, scores, diagonal)
    launcher.launch(attention_softmax(accumulator), rows, THREADS, scores, lse)
    if v_dim > 0:
        grid = (batch * heads, cover(queries, TILE), cover(v_dim, TILE))
        launcher.launch(attention_weighted_sum(accumulator), grid, (TILE, TILE), scores, launcher.array(v), out)
    return out, lse


def scale_of(head_dim: int, params: dict[str, Any]) -> float:
    """The factor on the scores: the parameter ``scale``, or 1 / sqrt(head_dim)."""
    scale = params["scale"]
    return 1.0 / math.sqrt(head_dim) if scale is None else float(scale)


def diagonal_of(queries: int, keys: int, params: dict[str, Any]) -> int:
    """The d for which query i sees key j iff j <= i + d; without a causal mask all keys lie below it."""
    return {"none": keys, "top_left": 0, "bottom_right": keys - queries}[params["causal"]]


def _accepts(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    longest = max(inputs["q"].shape[2], *inputs["v"].shape[2:])
    if longest > MAX_BLOCKS_YZ * TILE:
        return f"queries, keys or v_dim reach {longest}; a grid covers {MAX_BLOCKS_YZ * TILE} with tiles of {TILE}"
    return None


KERNELS = [
    Kernel(
        name="attention_five",
        operators=("attention",),
        dtypes=DTYPES,
        run=run_attention_five,
        accepts=_accepts,
        numerics=NUMERICS,
        doc="Five kernels over a buffer of scores: scores, scale, mask, softmax, weighted sum.",
    ),
]
