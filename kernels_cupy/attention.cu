// Attention as three kernels over a buffer of scores, and as one kernel that keeps none.
//
// q[batch, heads, queries, head_dim], k[batch, kv_heads, keys, head_dim], v[batch, kv_heads, keys, v_dim]; query head h
// reads kv head h / (heads / kv_heads). Query i sees key j iff j <= i + diagonal; a row that sees nothing has weights
// 0, out 0 and lse -inf.
//
//             top_left: diagonal 0             bottom_right: diagonal keys - queries
//
//                keys                             keys
//              ■ · · · ·                        ■ ■ ■ · ·
//     queries  ■ ■ · · ·                        ■ ■ ■ ■ ·
//              ■ ■ ■ · ·                        ■ ■ ■ ■ ■
//
// attention_scores        scores[batch · heads, queries, keys] = scale · q · kᵀ, or -inf where the key is hidden
//          ▼              block (16, 16) owns a 16×16 tile of scores; q and k pass through shared memory, 32 deep
// attention_softmax       scores ◄ weights, lse              a block per row, in fragments of 16 bytes (fragment.cuh)
//          ▼
// attention_weighted_sum  out = weights · v                  block (16, 16) owns a 16×64 tile of out
//
// attention_fused         block (16, 16) owns 16 queries of one head and 64 columns of v; thread (row, lane) owns query
//                         `row`, one key of each tile, and columns lane, lane + 16, lane + 32, lane + 48. A row is 16
//                         neighbouring lanes of one warp, whether that has 16, 32 or 64, and folds by shuffles.
//
//     for each tile of 16 keys that some query of the block sees:
//
//         lane 0 … 15
//       ┌────────────┐
//       │   score    │ = scale · q · kᵀ, head_dim in slices of 32:  q_slice[query, depth], k_slice[key, depth]
//       └─────┬──────┘   hidden keys: -inf
//             ├─► new_max = max(running_max, row maximum)         weight  = exp(score - new_max)
//             │                                                   rescale = exp(running_max - new_max)
//             ├─► running_sum = running_sum · rescale + row sum
//             ▼
//       weights[query, key] ─┐
//       v_tile[key, 64 cols]─┴─► total[4] = total · rescale + weights · v_tile
//
//     out = total / running_sum,   lse = running_max + log(running_sum)
//
// Slices are 33 long, so that 16 lanes reading one depth of 16 keys meet 16 banks.

#include "fold.cuh"
#include "tile.cuh"

constexpr int TILE = 16;          // queries of a block, keys of a tile, lanes of a row
constexpr int SLICE = 32;         // depths of head_dim in shared memory at once
constexpr int PITCH = SLICE + 1;  // one word of padding
constexpr int PER_THREAD_V = 4;   // columns of v a thread owns
constexpr int BLOCK_V = TILE * PER_THREAD_V;
constexpr int THREADS = TILE * TILE;

// The product of query `row` of q and key `lane` of k, which start at the block's tiles and have `queries` and `keys`
// rows. All threads of the block call it; the slices are free again afterwards.
template <typename T, typename Real>
__device__ inline Real product_of_row_and_lane(
    Real (&q_slice)[TILE][PITCH], Real (&k_slice)[TILE][PITCH],
    const T* q, Index queries, Index q_row_stride, Index q_depth_stride,
    const T* k, Index keys, Index k_row_stride, Index k_depth_stride, Index head_dim
) {
    const int lane = threadIdx.x;
    const int row = threadIdx.y;
    const int thread = row * TILE + lane;
    Real product = 0;
    for (Index d0 = 0; d0 < head_dim; d0 += SLICE) {
        const Index rest = head_dim - d0;
        const T* q_depths = q + d0 * q_depth_stride;
        const T* k_depths = k + d0 * k_depth_stride;
        load_tile<THREADS, SLICE>(q_slice, q_depths, queries, rest, q_row_stride, q_depth_stride, thread);
        load_tile<THREADS, SLICE>(k_slice, k_depths, keys, rest, k_row_stride, k_depth_stride, thread);
        __syncthreads();  // both slices are written before any thread reads a row of them
        const int depths = rest < SLICE ? static_cast<int>(rest) : SLICE;
        for (int depth = 0; depth < depths; depth++) {
            product += q_slice[row][depth] * k_slice[lane][depth];
        }
        __syncthreads();  // both slices are read before the next one is written
    }
    return product;
}

// One block per 16×16 tile of scores[batch · heads, queries, keys]; grid (batch · heads, tiles of queries, of keys).
template <typename T>
__global__ void __launch_bounds__(THREADS) attention_scores(
    const T* q, Index q_batch_stride, Index q_head_stride, Index q_row_stride, Index q_depth_stride,
    const T* k, Index k_batch_stride, Index k_head_stride, Index k_row_stride, Index k_depth_stride,
    Index heads, Index kv_heads, Index queries, Index keys, Index head_dim,
    RealOf<T> scale, Index diagonal, RealOf<T>* scores
) {
    using Real = RealOf<T>;
    __shared__ Real q_slice[TILE][PITCH];
    __shared__ Real k_slice[TILE][PITCH];
    const Index batch_head = blockIdx.x;
    const Index batch = batch_head / heads;
    const Index head = batch_head % heads;
    const Index kv_head = head / (heads / kv_heads);
    const Index query0 = static_cast<Index>(blockIdx.y) * TILE;
    const Index key0 = static_cast<Index>(blockIdx.z) * TILE;
    const Index query = query0 + threadIdx.y;
    const Index key = key0 + threadIdx.x;
    const T* q_rows = q + batch * q_batch_stride + head * q_head_stride + query0 * q_row_stride;
    const T* k_rows = k + batch * k_batch_stride + kv_head * k_head_stride + key0 * k_row_stride;

    const Real product = product_of_row_and_lane(
        q_slice, k_slice, q_rows, queries - query0, q_row_stride, q_depth_stride,
        k_rows, keys - key0, k_row_stride, k_depth_stride, head_dim
    );
    if (query < queries && key < keys) {
        scores[(batch_head * queries + query) * keys + key] =
            key <= query + diagonal ? scale * product : negative_infinity<Real>();
    }
}

// Turn each row of scores[rows, keys] into weights, in place, and write lse[rows]; one block per row.
template <typename Real>
__global__ void __launch_bounds__(THREADS) attention_softmax(Real* scores, Index keys, Real* lse) {
    constexpr int LENGTH = Fragment<Real>::LENGTH;
    __shared__ Real cells[THREADS / SMALLEST_WARP];
    Real values[LENGTH];
    Real* row = scores + blockIdx.x * keys;
    const Index first = first_fragment(row, 1) + threadIdx.x * LENGTH;

    Real my_max = negative_infinity<Real>();
    for (Index key = first; key < keys; key += THREADS * LENGTH) {
        load_fragment(values, row, key, keys, 1, negative_infinity<Real>());
#pragma unroll
        for (int i = 0; i < LENGTH; i++) {
            my_max = larger(my_max, values[i]);
        }
    }
    const Real row_max = fold_block<Maximum<Real>>(cells, my_max);
    // A row that sees nothing: -inf - 0 is -inf, where -inf - -inf would be NaN.
    const Real shift = row_max == negative_infinity<Real>() ? Real(0) : row_max;

    Real my_sum = 0;
    for (Index key = first; key < keys; key += THREADS * LENGTH) {
        load_fragment(values, row, key, keys, 1, negative_infinity<Real>());
#pragma unroll
        for (int i = 0; i < LENGTH; i++) {
            values[i] = exponential(values[i] - shift);
            my_sum += values[i];
        }
        store_fragment(row, key, keys, values);
    }
    const Real row_sum = fold_block<Sum<Real>>(cells, my_sum);
    const Real divisor = row_sum == Real(0) ? Real(1) : row_sum;  // weights of 0 stay 0

    for (Index key = first; key < keys; key += THREADS * LENGTH) {
        load_fragment(values, row, key, keys, 1, Real(0));
#pragma unroll
        for (int i = 0; i < LENGTH; i++) {
            values[i] /= divisor;
        }
        store_fragment(row, key, keys, values);
    }
    if (threadIdx.x == 0) {
        lse[blockIdx.x] = row_sum == Real(0) ? negative_infinity<Real>() : shift + logarithm(row_sum);
    }
}

// One block per 16×64 tile of out[batch · heads, queries, v_dim]; grid (batch · heads, tiles of queries, of v_dim).
template <typename T>
__global__ void __launch_bounds__(THREADS) attention_weighted_sum(
    const RealOf<T>* weights,
    const T* v, Index v_batch_stride, Index v_head_stride, Index v_row_stride, Index v_col_stride,
    Index heads, Index kv_heads, Index queries, Index keys, Index v_dim, T* out
) {
    using Real = RealOf<T>;
    __shared__ Real weight_tile[TILE][TILE];  // [query, key]
    __shared__ Real v_tile[TILE][BLOCK_V];    // [key, col]
    Real total[PER_THREAD_V];
    const int lane = threadIdx.x;
    const int row = threadIdx.y;
    const int thread = row * TILE + lane;
    const Index batch_head = blockIdx.x;
    const Index batch = batch_head / heads;
    const Index head = batch_head % heads;
    const Index kv_head = head / (heads / kv_heads);
    const Index query0 = static_cast<Index>(blockIdx.y) * TILE;
    const Index col0 = static_cast<Index>(blockIdx.z) * BLOCK_V;
    const Index query = query0 + row;
    const Real* weight_rows = weights + (batch_head * queries + query0) * keys;
    const T* v_cols = v + batch * v_batch_stride + kv_head * v_head_stride + col0 * v_col_stride;

#pragma unroll
    for (int c = 0; c < PER_THREAD_V; c++) {
        total[c] = 0;
    }
    for (Index key0 = 0; key0 < keys; key0 += TILE) {
        load_tile<THREADS, TILE>(weight_tile, weight_rows + key0, queries - query0, keys - key0, keys, 1, thread);
        load_tile<THREADS, BLOCK_V>(
            v_tile, v_cols + key0 * v_row_stride, keys - key0, v_dim - col0, v_row_stride, v_col_stride, thread
        );
        __syncthreads();  // both tiles are written before any thread reads a row or column of them
#pragma unroll
        for (int key = 0; key < TILE; key++) {
#pragma unroll
            for (int c = 0; c < PER_THREAD_V; c++) {
                total[c] += weight_tile[row][key] * v_tile[key][c * TILE + lane];
            }
        }
        __syncthreads();  // both tiles are read before the next step writes them
    }

#pragma unroll
    for (int c = 0; c < PER_THREAD_V; c++) {
        const Index col = col0 + c * TILE + lane;
        if (query < queries && col < v_dim) {
            out[(batch_head * queries + query) * v_dim + col] = narrow<T>(total[c]);
        }
    }
}

// Attention of 16 queries into out[…, 64 columns] and lse; grid (batch · heads, tiles of queries, tiles of v_dim).
template <typename T>
__global__ void __launch_bounds__(THREADS) attention_fused(
    const T* q, Index q_batch_stride, Index q_head_stride, Index q_row_stride, Index q_depth_stride,
    const T* k, Index k_batch_stride, Index k_head_stride, Index k_row_stride, Index k_depth_stride,
    const T* v, Index v_batch_stride, Index v_head_stride, Index v_row_stride, Index v_col_stride,
    Index heads, Index kv_heads, Index queries, Index keys, Index head_dim, Index v_dim,
    RealOf<T> scale, Index diagonal, T* out, RealOf<T>* lse
) {
    using Real = RealOf<T>;
    __shared__ Real q_slice[TILE][PITCH];
    __shared__ Real k_slice[TILE][PITCH];
    __shared__ Real weights[TILE][TILE];    // [query, key]
    __shared__ Real v_tile[TILE][BLOCK_V];  // [key, col]
    Real total[PER_THREAD_V];
    const int lane = threadIdx.x;
    const int row = threadIdx.y;
    const int thread = row * TILE + lane;
    const Index batch_head = blockIdx.x;
    const Index batch = batch_head / heads;
    const Index head = batch_head % heads;
    const Index kv_head = head / (heads / kv_heads);
    const Index query0 = static_cast<Index>(blockIdx.y) * TILE;
    const Index col0 = static_cast<Index>(blockIdx.z) * BLOCK_V;
    const Index query = query0 + row;
    const T* q_rows = q + batch * q_batch_stride + head * q_head_stride + query0 * q_row_stride;
    const T* k_rows = k + batch * k_batch_stride + kv_head * k_head_stride;
    const T* v_cols = v + batch * v_batch_stride + kv_head * v_head_stride + col0 * v_col_stride;
    const Index query_stop = query0 + TILE < queries ? query0 + TILE : queries;
    const Index seen = query_stop + diagonal;  // past the last key that the block's last query sees
    const Index key_stop = seen < keys ? seen : keys;

    Real running_max = negative_infinity<Real>();
    Real running_sum = 0;
#pragma unroll
    for (int c = 0; c < PER_THREAD_V; c++) {
        total[c] = 0;
    }

    for (Index key0 = 0; key0 < key_stop; key0 += TILE) {
        const Index key = key0 + lane;
        const Real product = product_of_row_and_lane(
            q_slice, k_slice, q_rows, queries - query0, q_row_stride, q_depth_stride,
            k_rows + key0 * k_row_stride, keys - key0, k_row_stride, k_depth_stride, head_dim
        );
        const Real score = key < keys && key <= query + diagonal ? scale * product : negative_infinity<Real>();

        const Real new_max = larger(running_max, fold_lanes<Maximum<Real>>(score, TILE));
        // Nothing seen yet: -inf - 0 is -inf, where -inf - -inf would be NaN.
        const Real shift = new_max == negative_infinity<Real>() ? Real(0) : new_max;
        const Real weight = exponential(score - shift);
        const Real rescale = exponential(running_max - shift);
        running_sum = running_sum * rescale + fold_lanes<Sum<Real>>(weight, TILE);
        running_max = new_max;

        weights[row][lane] = weight;
        load_tile<THREADS, BLOCK_V>(
            v_tile, v_cols + key0 * v_row_stride, keys - key0, v_dim - col0, v_row_stride, v_col_stride, thread
        );
        __syncthreads();  // weights and v_tile are written before any thread reads a row or column of them
#pragma unroll
        for (int c = 0; c < PER_THREAD_V; c++) {
            total[c] *= rescale;
        }
#pragma unroll
        for (int key_row = 0; key_row < TILE; key_row++) {
#pragma unroll
            for (int c = 0; c < PER_THREAD_V; c++) {
                total[c] += weights[row][key_row] * v_tile[key_row][c * TILE + lane];
            }
        }
        __syncthreads();  // weights and v_tile are read before the next tile writes them
        // (the slices' barriers order that too, but a head_dim of 0 has no slices)
    }

    if (query < queries) {
        const Index out_row = batch_head * queries + query;
        const Real divisor = running_sum == Real(0) ? Real(1) : running_sum;  // totals of 0 stay 0
#pragma unroll
        for (int c = 0; c < PER_THREAD_V; c++) {
            const Index col = col0 + c * TILE + lane;
            if (col < v_dim) {
                out[out_row * v_dim + col] = narrow<T>(total[c] / divisor);
            }
        }
        if (lane == 0 && blockIdx.z == 0) {
            lse[out_row] = running_sum == Real(0) ? negative_infinity<Real>() : running_max + logarithm(running_sum);
        }
    }
}
