// Matrix multiplication: out[m, n] = a[m, k] · b[k, n] + bias[n], with 16×16 shared tiles and with register tiles.
//
// A transposed input is the same kernel with its two strides exchanged.
//
// matmul_tiled     block (16, 16) owns a 16×16 tile of out, thread (y, x) element (y, x) of it.
//
//                             b ┌────┐
//                               │    │     for each 16-deep step through k:
//                               ├────┤
//                               │ ▒▒ │         a_tile, b_tile ◄── 16×16 of a and of b, one element each a thread
//                               └────┘
//                  a ┌────┬────┐┌────┐         total += a_tile[y, :] · b_tile[:, x]
//                    │    │ ▒▒ ││ out│
//                    └────┴────┘└────┘
//
// matmul_register  block (16, 16) owns a 64×64 tile of out, thread (y, x) a 4×4 grid of it, spaced 16 apart:
//
//                      x     x+16   x+32   x+48
//               y      ■      ■      ■      ■        per depth: 4 of a and 4 of b from shared memory,
//               y+16   ■      ■      ■      ■        16 multiply-adds
//               y+32   ■      ■      ■      ■
//               y+48   ■      ■      ■      ■
//
//                  two buffers, so that one barrier a step is enough:
//
//                  global memory ──16 bytes a thread──► a_tiles[filling],     b_tiles[filling]         tile `step`
//                                                       a_tiles[1 - filling], b_tiles[1 - filling] ──► 16 totals
//
//                  Both tiles lie [depth, place], so lanes read neighbouring words of b_tiles and few words of a_tiles.

#include "tile.cuh"

constexpr int TILE = 16;

constexpr int THREADS_M = 16;  // threads of a block along the rows of out
constexpr int THREADS_N = 16;  // and along its columns
constexpr int THREADS = THREADS_M * THREADS_N;
constexpr int PER_THREAD_M = 4;  // rows a thread owns
constexpr int PER_THREAD_N = 4;  // columns a thread owns
constexpr int BLOCK_M = THREADS_M * PER_THREAD_M;
constexpr int BLOCK_N = THREADS_N * PER_THREAD_N;
constexpr int BLOCK_K = 16;

// One block per 16×16 tile of out[m, n], grid (tiles of m, tiles of n). No bias is read where has_bias is 0.
template <typename T>
__global__ void __launch_bounds__(TILE * TILE) matmul_tiled(
    const T* a, Index a_row_stride, Index a_depth_stride, const T* b, Index b_depth_stride, Index b_col_stride,
    const T* bias, Index bias_stride, int has_bias, Index m, Index n, Index k, T* out
) {
    using Real = RealOf<T>;
    __shared__ Real a_tile[TILE][TILE];
    __shared__ Real b_tile[TILE][TILE];
    const int x = threadIdx.x;
    const int y = threadIdx.y;
    const Index row = static_cast<Index>(blockIdx.x) * TILE + y;
    const Index col = static_cast<Index>(blockIdx.y) * TILE + x;

    Real total = 0;
    for (Index k0 = 0; k0 < k; k0 += TILE) {
        const Index a_depth = k0 + x;
        const Index b_depth = k0 + y;
        a_tile[y][x] = row < m && a_depth < k ? widen(a[row * a_row_stride + a_depth * a_depth_stride]) : Real(0);
        b_tile[y][x] = b_depth < k && col < n ? widen(b[b_depth * b_depth_stride + col * b_col_stride]) : Real(0);
        __syncthreads();  // both tiles are written before any thread reads a row or column of them
#pragma unroll
        for (int depth = 0; depth < TILE; depth++) {
            total += a_tile[y][depth] * b_tile[depth][x];
        }
        __syncthreads();  // both tiles are read before the next step writes them
    }

    if (row < m && col < n) {
        if (has_bias) {
            total += widen(bias[col * bias_stride]);
        }
        out[row * n + col] = narrow<T>(total);
    }
}

// One block per 64×64 tile of out[m, n], grid (tiles of m, tiles of n). No bias is read where has_bias is 0.
template <typename T>
__global__ void __launch_bounds__(THREADS) matmul_register(
    const T* a, Index a_row_stride, Index a_depth_stride, const T* b, Index b_depth_stride, Index b_col_stride,
    const T* bias, Index bias_stride, int has_bias, Index m, Index n, Index k, T* out
) {
    using Real = RealOf<T>;
    __shared__ Real a_tiles[2][BLOCK_K][BLOCK_M];
    __shared__ Real b_tiles[2][BLOCK_K][BLOCK_N];
    Real a_mine[PER_THREAD_M];
    Real b_mine[PER_THREAD_N];
    Real total[PER_THREAD_M][PER_THREAD_N];
    const int x = threadIdx.x;
    const int y = threadIdx.y;
    const int thread = y * THREADS_N + x;
    const Index block_row = static_cast<Index>(blockIdx.x) * BLOCK_M;
    const Index block_col = static_cast<Index>(blockIdx.y) * BLOCK_N;
    const T* a_rows = a + block_row * a_row_stride;
    const T* b_cols = b + block_col * b_col_stride;
    const Index steps = (k + BLOCK_K - 1) / BLOCK_K;

#pragma unroll
    for (int i = 0; i < PER_THREAD_M; i++) {
#pragma unroll
        for (int j = 0; j < PER_THREAD_N; j++) {
            total[i][j] = 0;
        }
    }

    // Iteration `step` moves tile `step` in and multiplies tile `step - 1`; the first only moves, the last only
    // multiplies.
    for (Index step = 0; step <= steps; step++) {
        const int filling = step % 2;
        if (step < steps) {
            const Index k0 = step * BLOCK_K;
            load_tile<THREADS, BLOCK_M>(
                a_tiles[filling], a_rows + k0 * a_depth_stride, k - k0, m - block_row,
                a_depth_stride, a_row_stride, thread
            );
            load_tile<THREADS, BLOCK_N>(
                b_tiles[filling], b_cols + k0 * b_depth_stride, k - k0, n - block_col,
                b_depth_stride, b_col_stride, thread
            );
        }
        if (step > 0) {
#pragma unroll
            for (int depth = 0; depth < BLOCK_K; depth++) {
#pragma unroll
                for (int i = 0; i < PER_THREAD_M; i++) {
                    a_mine[i] = a_tiles[1 - filling][depth][y + i * THREADS_M];
                }
#pragma unroll
                for (int j = 0; j < PER_THREAD_N; j++) {
                    b_mine[j] = b_tiles[1 - filling][depth][x + j * THREADS_N];
                }
#pragma unroll
                for (int i = 0; i < PER_THREAD_M; i++) {
#pragma unroll
                    for (int j = 0; j < PER_THREAD_N; j++) {
                        total[i][j] += a_mine[i] * b_mine[j];
                    }
                }
            }
        }
        __syncthreads();  // tile `step` is written before it is read, `step - 1` read before it is overwritten
    }

#pragma unroll
    for (int j = 0; j < PER_THREAD_N; j++) {
        const Index col = block_col + x + j * THREADS_N;
        const Real shift = has_bias && col < n ? widen(bias[col * bias_stride]) : Real(0);
#pragma unroll
        for (int i = 0; i < PER_THREAD_M; i++) {
            const Index row = block_row + y + i * THREADS_M;
            if (row < m && col < n) {
                out[row * n + col] = narrow<T>(total[i][j] + shift);
            }
        }
    }
}
