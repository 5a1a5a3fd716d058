"""Attention as one kernel: an online softmax over tiles of keys; no score ever reaches global memory.

Shapes, heads and the diagonal are those of attention.py. Block (16, 16) owns 16 queries of one head and 64 columns
of v; thread (row, lane) owns query `row`, one key of each tile, and columns lane, lane + 16, lane + 32, lane + 48.
A warp is two rows of 16 lanes, so a row's maximum and sum are butterfly shuffles: 8, 4, 2, 1 lanes away.

    for each tile of 16 keys that some query of the block sees:

        lane 0 … 15
      ┌────────────┐
      │   score    │ = scale · q · kᵀ, head_dim in slices of 16:  q_slice[query, depth], k_slice[key, depth]
      └─────┬──────┘   hidden keys: -inf
            ├─► new_max = max(running_max, row maximum)         weight  = exp(score - new_max)
            │                                                   rescale = exp(running_max - new_max)
            ├─► running_sum = running_sum · rescale + row sum
            ▼
      weights[query, key] ─┐
      v_tile[key, 64 cols]─┴─► total[4] = total · rescale + weights · v_tile

    out = total / running_sum,   lse = running_max + log(running_sum)

k_slice rows are 17 long, so that 16 lanes reading one depth of 16 keys meet 16 banks.
"""

import math
from typing import Any

from numba import cuda

from kernels_numba.accumulator import DTYPES, NUMERICS, accumulator_of, per_accumulator
from kernels_numba.attention import diagonal_of, scale_of
from kernels_numba.grid import MAX_BLOCKS_YZ, cover
from refsim.library import Kernel, Launcher

TILE = 16  # queries of a block, keys of a tile, depths of a slice, lanes of a row
PITCH = TILE + 1  # one word of padding
PER_THREAD_V = 4  # columns of v a thread owns
BLOCK_V = TILE * PER_THREAD_V
FULL_WARP = 0xFFFFFFFF  # mask naming all lanes of a warp
NEGATIVE_INFINITY = float("-inf")


@cuda.jit(device=True)
def row_max(value):
    """The maximum of ``value`` over the 16 lanes of a row, in every lane."""
    reach = TILE // 2
    while reach > 0:
        value = max(value, cuda.shfl_xor_sync(FULL_WARP, value, reach))
        reach //= 2
    return value


@cuda.jit(device=True)
def row_sum(value):
    """The sum of ``value`` over the 16 lanes of a row, in every lane."""
    reach = TILE // 2
    while reach > 0:
        value += cuda.shfl_xor_sync(FULL_WARP, value, reach)
        reach //= 2
    return value


@per_accumulator
def attention_fused(real):
    @cuda.jit
    def attention_fused(q, k, v, scale, diagonal, out, lse):
        """Attention of 16 queries into out[…, 64 columns] and lse; grid (batch · heads, tiles of queries, of v_dim)."""
        q_slice = cuda.shared.array((TILE, TILE), real)  # [query, depth]
        k_slice = cuda.shared.array((TILE, PITCH), real)  # [key, depth]
        weights = cuda.shared.array((TILE, TILE), real)  # [query, key]
        v_tile = cuda.shared.array((TILE, BLOCK_V), real)  # [key, col]
        total = cuda.local.array(PER_THREAD_V, real)

        lane = cuda.threadIdx.x
        row = cuda.threadIdx.y
        heads, queries, head_dim = q.shape[1], q.shape[2], q.shape[3]
        keys, v_dim = v.shape[2], v.shape[3]
        batch = cuda.blockIdx.x // heads
        head = cuda.blockIdx.x % heads
        kv_head = head // (heads // k.shape[1])
        first_query = cuda.blockIdx.y * TILE
        query = first_query + row
        first_col = cuda.blockIdx.z * BLOCK_V
        last_query = min(first_query + TILE, queries) - 1
        key_stop = min(keys, last_query + diagonal + 1)  # past the last key that a query of this block sees

        running_max = real(NEGATIVE_INFINITY)
        running_sum = real(0.0)
        for c in range(PER_THREAD_V):
            total[c] = real(0.0)

        for key0 in range(0, key_stop, TILE):
            score = real(0.0)
            for d0 in range(0, head_dim, TILE):
                q_value = real(0.0)
                if query < queries and d0 + lane < head_dim:
                    q_value = real(q[batch, head, query, d0 + lane])
                q_slice[row, lane] = q_value
                k_value = real(0.0)
                if key0 + row < keys and d0 + lane < head_dim:
                    k_value = real(k[batch, kv_head, key0 + row, d0 + lane])
                k_slice[row, lane] = k_value
                cuda.syncthreads()  # both slices are written before any thread reads a row of them
                for depth in range(TILE):
                    score += q_slice[row, depth] * k_slice[lane, depth]
                cuda.syncthreads()  # both slices are read before the next one is written

            score *= real(scale)
            key = key0 + lane
            if key >= keys or key > query + diagonal:
                score = real(NEGATIVE_INFINITY)

            new_max = max(running_max, row_max(score))
            shift = new_max
            if new_max == real(NEGATIVE_INFINITY):  # nothing seen yet: -inf - 0 is -inf, where -inf - -inf is NaN
                shift = real(0.0)
            weight = math.exp(score - shift)
            rescale = math.exp(running_max - shift)
            running_sum = running_sum * rescale + row_sum(weight)
            running_max = new_max

            weights[row, lane] = weight
            for c in range(PER_THREAD_V):
                col = first_col + c * TILE + lane
                v_value = real(0.0)
                if key0 + row < keys and col < v_dim:
                    v_value = real(v[batch, kv_head, key0 + row, col])
                v_tile[row, c * TILE + lane] = v_value
            cuda.syncthreads()  # weights and v_tile are written before any thread reads a row or column of them
            for c in range(PER_THREAD_V):
                total[c] *= rescale
            for key_row in range(TILE):
                for c in range(PER_THREAD_V):
                    total[c] += weights[row, key_row] * v_tile[key_row, c * TILE + lane]
            cuda.syncthreads()  # weights and v_tile are read before the next tile writes them
            # (the slices' barriers order that too, but a head_dim of 0 has no slices)

        if query < queries:
            row_lse = real(NEGATIVE_INFINITY)
            if running_sum == real(0.0):
                running_sum = real(1.0)  # the totals are 0, and so are they divided by 1
            else:
                row_lse = running_max + math.log(running_sum)
            for c in range(PER_THREAD_V):
                col = first_col + c * TILE + lane
                if col < v_dim:
                    out[batch, head, query, col] = total[c] / running_sum
            if lane == 0 and cuda.blockIdx.z == 0:
                lse[batch, head, query] = row_lse

    return attention_fused


def run_attention_fused(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    batch, heads, queries, head_dim = q.shape
    keys, v_dim = v.shape[2:]
    accumulator = accumulator_of(q)
    out = launcher.empty((batch, heads, queries, v_dim), q.dtype)
    lse = launcher.empty((batch, heads, queries), accumulator)
    if batch * heads * queries > 0:
        grid = (batch * heads, cover(queries, TILE), max(1, cover(v_dim, BLOCK_V)))
        arrays = [launcher.array(array) for array in (q, k, v)]
        scale, diagonal = scale_of(head_dim, params), diagonal_of(queries, keys, params)
        launcher.launch(attention_fused(accumulator), grid, (TILE, TILE), *arrays, scale, diagonal, out, lse)
    return out, lse


def _accepts(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    queries = inputs["q"].shape[2]
    if queries > MAX_BLOCKS_YZ * TILE:
        return f"there are {queries} queries; a grid covers {MAX_BLOCKS_YZ * TILE} with tiles of {TILE}"
    v_dim = inputs["v"].shape[3]
    if v_dim > MAX_BLOCKS_YZ * BLOCK_V:
        return f"v_dim is {v_dim}; a grid covers {MAX_BLOCKS_YZ * BLOCK_V} with tiles of {BLOCK_V}"
    return None


KERNELS = [
    Kernel(
        name="attention_fused",
        operators=("attention",),
        dtypes=DTYPES,
        run=run_attention_fused,
        accepts=_accepts,
        numerics=NUMERICS,
        doc="One kernel: an online softmax over tiles of 16 keys.",
    ),
]
