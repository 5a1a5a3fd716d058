// Wrong results that no memory check can see: a wrong index, tile, mask or stride.

constexpr int TILE = 8;
constexpr int WARP = 32;
constexpr unsigned FULL = 0xFFFFFFFF;

namespace last_k_tile_dropped {
constexpr int N = 16, K = 20;
template <int STEPS, bool SWAPPED> __device__ void product(const float* a, const float* b, float* out) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int column = blockIdx.x * TILE + tx, row = blockIdx.y * TILE + ty;
    float total = 0;
    for (int step = 0; step < STEPS; step++) {
        const int k0 = step * TILE;
        tile_a[ty][tx] = k0 + tx < K ? a[row * K + k0 + tx] : 0;
        tile_b[ty][tx] = k0 + ty < K ? b[(k0 + ty) * N + column] : 0;
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            total += tile_a[SWAPPED ? tx : ty][k] * tile_b[k][tx];
        }
        __syncthreads();
    }
    out[row * N + column] = total;
}
__global__ void wrong(const float* a, const float* b, float* out) {
    product<K / TILE, false>(a, b, out);  //! value
}
__global__ void right(const float* a, const float* b, float* out) {
    product<(K + TILE - 1) / TILE, false>(a, b, out);
}
}

namespace wrong_row_of_a_tile {
using last_k_tile_dropped::right;
using last_k_tile_dropped::K;
__global__ void wrong(const float* a, const float* b, float* out) {
    last_k_tile_dropped::product<(K + TILE - 1) / TILE, true>(a, b, out);  //! value
}
}

namespace transposed_tile_indices {
constexpr int N = 16;
__global__ void wrong(const float* x, float* out) {
    __shared__ float tile[TILE][TILE + 1];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    tile[ty][tx] = x[(row + ty) * N + column + tx];
    __syncthreads();
    out[(column + ty) * N + row + tx] = tile[ty][tx];  //! value
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

namespace causal_mask_off_by_one {
constexpr int KEYS = 16;
__global__ void wrong(const float* scores, float* out) {
    const int key = blockIdx.x * blockDim.x + threadIdx.x, query = blockIdx.y * blockDim.y + threadIdx.y;
    out[query * KEYS + key] = key < query ? scores[query * KEYS + key] : -1;  //! value
}
__global__ void right(const float* scores, float* out) {
    const int key = blockIdx.x * blockDim.x + threadIdx.x, query = blockIdx.y * blockDim.y + threadIdx.y;
    out[query * KEYS + key] = key <= query ? scores[query * KEYS + key] : -1;
}
}

namespace causal_mask_aligned_to_the_wrong_corner {
constexpr int QUERIES = 4, KEYS = 12;
__global__ void wrong(const float* scores, float* out) {
    const int key = blockIdx.x * blockDim.x + threadIdx.x, query = blockIdx.y * blockDim.y + threadIdx.y;
    const bool visible = key <= query;  //! value
    out[query * KEYS + key] = visible ? scores[query * KEYS + key] : -1;
}
__global__ void right(const float* scores, float* out) {
    const int key = blockIdx.x * blockDim.x + threadIdx.x, query = blockIdx.y * blockDim.y + threadIdx.y;
    const bool visible = key <= query + KEYS - QUERIES;
    out[query * KEYS + key] = visible ? scores[query * KEYS + key] : -1;
}
}

namespace grouped_head_taken_modulo {
constexpr int HEADS = 8, KEY_HEADS = 2, DEPTH = 16;
__global__ void wrong(const float* keys, float* out) {
    const int head = blockIdx.x, d = threadIdx.x;
    out[head * DEPTH + d] = keys[head % KEY_HEADS * DEPTH + d];  //! value
}
__global__ void right(const float* keys, float* out) {
    const int head = blockIdx.x, d = threadIdx.x;
    out[head * DEPTH + d] = keys[head / (HEADS / KEY_HEADS) * DEPTH + d];
}
}

namespace rotary_pairs_of_the_other_convention {
constexpr int HALF = 8;
__device__ void rotate(float& first, float& second, float cos, float sin) {
    const float old = first;
    first = old * cos - second * sin;
    second = second * cos + old * sin;
}
__global__ void wrong(float* x, const float* cos, const float* sin) {
    const int i = threadIdx.x, pair = blockIdx.x * HALF + i;
    float* token = x + blockIdx.x * 2 * HALF;
    rotate(token[2 * i], token[2 * i + 1], cos[pair], sin[pair]);  //! value
}
__global__ void right(float* x, const float* cos, const float* sin) {
    const int i = threadIdx.x, pair = blockIdx.x * HALF + i;
    float* token = x + blockIdx.x * 2 * HALF;
    rotate(token[i], token[HALF + i], cos[pair], sin[pair]);
}
}

namespace grid_stride_skips_elements {
constexpr int N = 300;
__global__ void wrong(const float* x, float* out) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += 2 * gridDim.x * blockDim.x) {  //! value
        out[i] = x[i] + 1;
    }
}
__global__ void right(const float* x, float* out) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x) {
        out[i] = x[i] + 1;
    }
}
}

namespace exclusive_instead_of_inclusive_scan {
__device__ float scan(float total) {
    const int lane = threadIdx.x;
    for (int offset = 1; offset < WARP; offset *= 2) {
        const float left = __shfl_up_sync(FULL, total, offset);
        if (lane >= offset) {
            total += left;
        }
    }
    return total;
}
__global__ void wrong(const float* x, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = scan(x[i]) - x[i];  //! value
}
__global__ void right(const float* x, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = scan(x[i]);
}
}

namespace scan_without_lane_guard {
using exclusive_instead_of_inclusive_scan::right;
__global__ void wrong(const float* x, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float total = x[i];
    for (int offset = 1; offset < WARP; offset *= 2) {
        total += __shfl_up_sync(FULL, total, offset);  //! value
    }
    out[i] = total;
}
}

namespace butterfly_one_step_short {
__global__ void wrong(const float* x, float* out) {
    float total = x[threadIdx.x];
    for (int offset = 1; offset < WARP / 2; offset *= 2) {  //! value
        total += __shfl_xor_sync(FULL, total, offset);
    }
    out[threadIdx.x] = total;
}
__global__ void right(const float* x, float* out) {
    float total = x[threadIdx.x];
    for (int offset = 1; offset < WARP; offset *= 2) {
        total += __shfl_xor_sync(FULL, total, offset);
    }
    out[threadIdx.x] = total;
}
}

namespace first_warp_not_counted {
template <int FIRST> __device__ void block_sum(const float* x, float* out) {
    __shared__ float partial[4];
    const int tid = threadIdx.x;
    float total = x[tid];
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        total += __shfl_down_sync(FULL, total, offset);
    }
    if (tid % WARP == 0) {
        partial[tid / WARP] = total;
    }
    __syncthreads();
    if (tid == 0) {
        total = 0;
        for (int w = FIRST; w < 4; w++) {
            total += partial[w];
        }
        *out = total;
    }
}
__global__ void wrong(const float* x, float* out) {
    block_sum<1>(x, out);  //! value
}
__global__ void right(const float* x, float* out) {
    block_sum<0>(x, out);
}
}

namespace argmax_takes_the_last_of_equals {
constexpr int COLUMNS = 20;
__global__ void wrong(const float* x, int* out) {
    const float* row = x + threadIdx.x * COLUMNS;
    int best = 0;
    for (int j = 1; j < COLUMNS; j++) {
        if (row[j] >= row[best]) {  //! value
            best = j;
        }
    }
    out[threadIdx.x] = best;
}
__global__ void right(const float* x, int* out) {
    const float* row = x + threadIdx.x * COLUMNS;
    int best = 0;
    for (int j = 1; j < COLUMNS; j++) {
        if (row[j] > row[best]) {
            best = j;
        }
    }
    out[threadIdx.x] = best;
}
}

namespace kernel_of_the_convolution_not_flipped {
constexpr int TAPS = 5;
__global__ void wrong(const float* x, const float* taps, float* out) {
    const int i = threadIdx.x;
    float total = 0;
    for (int k = 0; k < TAPS; k++) {
        total += x[i + k] * taps[k];  //! value
    }
    out[i] = total;
}
__global__ void right(const float* x, const float* taps, float* out) {
    const int i = threadIdx.x;
    float total = 0;
    for (int k = 0; k < TAPS; k++) {
        total += x[i + k] * taps[TAPS - 1 - k];
    }
    out[i] = total;
}
}

namespace truncation_instead_of_floor {
__global__ void wrong(const float* x, int* counts) {
    atomicAdd(&counts[int(x[threadIdx.x]) + 8], 1);  //! value
}
__global__ void right(const float* x, int* counts) {
    atomicAdd(&counts[int(floorf(x[threadIdx.x])) + 8], 1);
}
}

namespace integer_accumulator_too_narrow {
constexpr int COLUMNS = 8;
__global__ void wrong(const int* x, long long* out) {
    int total = 0;
    for (int j = 0; j < COLUMNS; j++) {
        total += x[threadIdx.x * COLUMNS + j];  //! value
    }
    out[threadIdx.x] = total;
}
__global__ void right(const int* x, long long* out) {
    long long total = 0;
    for (int j = 0; j < COLUMNS; j++) {
        total += x[threadIdx.x * COLUMNS + j];
    }
    out[threadIdx.x] = total;
}
}
