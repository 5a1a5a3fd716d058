// Races in the tiles, windows and buffers that a block passes through shared memory.

constexpr int THREADS = 64;
constexpr int TILE = 8;

namespace gemm_tile_used_before_it_is_complete {
constexpr int N = 16;
__global__ void wrong(const float* a, const float* b, float* out) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int column = blockIdx.x * TILE + tx, row = blockIdx.y * TILE + ty;
    float total = 0;
    for (int k0 = 0; k0 < N; k0 += TILE) {
        tile_a[ty][tx] = a[row * N + k0 + tx];  //! race(tile_a)
        tile_b[ty][tx] = b[(k0 + ty) * N + column];  //! race(tile_b)
        for (int k = 0; k < TILE; k++) {
            total += tile_a[ty][k] * tile_b[k][tx];  //! race
        }
        __syncthreads();
    }
    out[row * N + column] = total;
}
__global__ void right(const float* a, const float* b, float* out) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int column = blockIdx.x * TILE + tx, row = blockIdx.y * TILE + ty;
    float total = 0;
    for (int k0 = 0; k0 < N; k0 += TILE) {
        tile_a[ty][tx] = a[row * N + k0 + tx];
        tile_b[ty][tx] = b[(k0 + ty) * N + column];
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            total += tile_a[ty][k] * tile_b[k][tx];
        }
        __syncthreads();
    }
    out[row * N + column] = total;
}
}

namespace gemm_tile_replaced_while_in_use {
constexpr int N = 16, K = 24;
__global__ void wrong(const float* a, const float* b, float* out) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int column = blockIdx.x * TILE + tx, row = blockIdx.y * TILE + ty;
    float total = 0;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        tile_a[ty][tx] = a[row * K + k0 + tx];  //! race(tile_a)
        tile_b[ty][tx] = b[(k0 + ty) * N + column];  //! race(tile_b)
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            total += tile_a[ty][k] * tile_b[k][tx];  //! race
        }
    }
    out[row * N + column] = total;
}
__global__ void right(const float* a, const float* b, float* out) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int column = blockIdx.x * TILE + tx, row = blockIdx.y * TILE + ty;
    float total = 0;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        tile_a[ty][tx] = a[row * K + k0 + tx];
        tile_b[ty][tx] = b[(k0 + ty) * N + column];
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            total += tile_a[ty][k] * tile_b[k][tx];
        }
        __syncthreads();
    }
    out[row * N + column] = total;
}
}

namespace double_buffer_without_barrier {
constexpr int ROUNDS = 6;
__global__ void wrong(const float* x, float* out) {
    __shared__ float stage[2][THREADS];
    const int tid = threadIdx.x;
    stage[0][tid] = x[tid];
    __syncthreads();
    float total = 0;
    for (int r = 0; r < ROUNDS; r++) {
        if (r + 1 < ROUNDS) {
            stage[(r + 1) % 2][tid] = x[(r + 1) * THREADS + tid];  //! race(stage)
        }
        total += stage[r % 2][(tid + 1) % THREADS];  //! race(stage)
    }
    out[tid] = total;
}
__global__ void right(const float* x, float* out) {
    __shared__ float stage[2][THREADS];
    const int tid = threadIdx.x;
    stage[0][tid] = x[tid];
    __syncthreads();
    float total = 0;
    for (int r = 0; r < ROUNDS; r++) {
        if (r + 1 < ROUNDS) {
            stage[(r + 1) % 2][tid] = x[(r + 1) * THREADS + tid];
        }
        total += stage[r % 2][(tid + 1) % THREADS];
        __syncthreads();
    }
    out[tid] = total;
}
}

namespace double_buffer_writes_the_buffer_in_use {
using double_buffer_without_barrier::right;
using double_buffer_without_barrier::ROUNDS;
__global__ void wrong(const float* x, float* out) {
    __shared__ float stage[2][THREADS];
    const int tid = threadIdx.x;
    stage[0][tid] = x[tid];
    __syncthreads();
    float total = 0;
    float* current = stage[0];  // the flip is missing
    for (int r = 0; r < ROUNDS; r++) {
        total += current[(tid + 1) % THREADS];  //! race(stage)
        if (r + 1 < ROUNDS) {
            current[tid] = x[(r + 1) * THREADS + tid];  //! race(stage)
        }
        __syncthreads();
    }
    out[tid] = total;
}
}

namespace halo_loaded_after_the_barrier {
__global__ void wrong(const float* x, float* out) {
    __shared__ float window[THREADS + 2];
    const int tid = threadIdx.x;
    const int i = blockIdx.x * blockDim.x + tid;
    window[tid] = x[i];
    __syncthreads();
    if (tid >= THREADS - 2) {
        window[tid + 2] = x[i + 2];  //! race(window)
    }
    out[i] = window[tid] + window[tid + 1] + window[tid + 2];  //! race(window)
}
__global__ void right(const float* x, float* out) {
    __shared__ float window[THREADS + 2];
    const int tid = threadIdx.x;
    const int i = blockIdx.x * blockDim.x + tid;
    window[tid] = x[i];
    if (tid >= THREADS - 2) {
        window[tid + 2] = x[i + 2];
    }
    __syncthreads();
    out[i] = window[tid] + window[tid + 1] + window[tid + 2];
}
}

namespace scratch_reused_between_two_reductions {
struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};
struct Maximum {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
template <typename Operation> __device__ void fold(float* scratch, int tid, Operation operation) {
    for (int stride = THREADS / 2; stride > 0; stride /= 2) {
        if (tid < stride) {
            scratch[tid] = operation(scratch[tid], scratch[tid + stride]);
        }
        __syncthreads();
    }
}
__global__ void wrong(const float* x, float* out) {
    __shared__ float scratch[THREADS];
    const int tid = threadIdx.x;
    const float mine = x[blockIdx.x * THREADS + tid];
    scratch[tid] = mine;
    __syncthreads();
    fold(scratch, tid, Maximum());
    const float largest = scratch[0];  //! race(scratch)
    scratch[tid] = largest - mine;  //! race(scratch)
    __syncthreads();
    fold(scratch, tid, Sum());
    if (tid == 0) {
        out[2 * blockIdx.x] = largest;
        out[2 * blockIdx.x + 1] = scratch[0];
    }
}
__global__ void right(const float* x, float* out) {
    __shared__ float scratch[THREADS];
    const int tid = threadIdx.x;
    const float mine = x[blockIdx.x * THREADS + tid];
    scratch[tid] = mine;
    __syncthreads();
    fold(scratch, tid, Maximum());
    const float largest = scratch[0];
    __syncthreads();
    scratch[tid] = largest - mine;
    __syncthreads();
    fold(scratch, tid, Sum());
    if (tid == 0) {
        out[2 * blockIdx.x] = largest;
        out[2 * blockIdx.x + 1] = scratch[0];
    }
}
}

namespace dynamic_shared_views_overlap {
__global__ void wrong(const float* x, const float* y, float* out) {
    extern __shared__ float pool[];
    float* first = pool;
    float* second = pool + THREADS / 2;
    const int tid = threadIdx.x;
    first[tid] = x[tid];  //! race
    second[tid] = y[tid];  //! race
    __syncthreads();
    out[tid] = first[(tid + 1) % THREADS] + second[THREADS - 1 - tid];
}
__global__ void right(const float* x, const float* y, float* out) {
    extern __shared__ float pool[];
    float* first = pool;
    float* second = pool + THREADS;
    const int tid = threadIdx.x;
    first[tid] = x[tid];
    second[tid] = y[tid];
    __syncthreads();
    out[tid] = first[(tid + 1) % THREADS] + second[THREADS - 1 - tid];
}
}

namespace shift_in_place_within_shared {
__global__ void wrong(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    const int i = blockIdx.x * blockDim.x + tid;
    cells[tid] = x[i];
    __syncthreads();
    cells[(tid + 1) % THREADS] = cells[tid];  //! race(cells)
    __syncthreads();
    out[i] = cells[tid];
}
__global__ void right(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    const int i = blockIdx.x * blockDim.x + tid;
    cells[tid] = x[i];
    __syncthreads();
    const float value = cells[tid];
    __syncthreads();
    cells[(tid + 1) % THREADS] = value;
    __syncthreads();
    out[i] = cells[tid];
}
}

namespace transpose_tile_without_barrier {
constexpr int N = 16;
__global__ void wrong(const float* x, float* out) {
    __shared__ float tile[TILE][TILE + 1];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    tile[ty][tx] = x[(row + ty) * N + column + tx];  //! race(tile)
    out[(column + ty) * N + row + tx] = tile[tx][ty];  //! race(tile)
}
__global__ void right(const float* x, float* out) {
    __shared__ float tile[TILE][TILE + 1];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    tile[ty][tx] = x[(row + ty) * N + column + tx];
    __syncthreads();
    out[(column + ty) * N + row + tx] = tile[tx][ty];
}
}
