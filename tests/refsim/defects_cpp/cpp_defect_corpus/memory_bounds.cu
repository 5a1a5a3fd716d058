// Accesses outside an array: global, shared, local and constant memory, pointers, atomics.

constexpr int THREADS = 64;
constexpr int TAPS = 5;

__device__ int grid_index() { return blockIdx.x * blockDim.x + threadIdx.x; }

namespace tail_without_guard {
__global__ void wrong(const float* x, float* out) {
    const int i = grid_index();
    out[i] = x[i] + 1;  //! out_of_bounds
}
__global__ void right(const float* x, float* out) {
    const int i = grid_index();
    if (i < 100) {
        out[i] = x[i] + 1;
    }
}
}

namespace tail_guard_off_by_one {
__global__ void wrong(const float* x, float* out) {
    const int i = grid_index();
    if (i <= 100) {
        out[i] = x[i] * 3;  //! out_of_bounds(x)
    }
}
__global__ void right(const float* x, float* out) {
    const int i = grid_index();
    if (i < 100) {
        out[i] = x[i] * 3;
    }
}
}

namespace stencil_reads_past_the_end {
__global__ void wrong(const float* x, float* out) {
    const int i = grid_index();
    out[i] = x[i + 1] - x[i];  //! out_of_bounds(x)
}
__global__ void right(const float* x, float* out) {
    const int i = grid_index();
    if (i + 1 < THREADS) {
        out[i] = x[i + 1] - x[i];
    }
}
}

namespace index_below_minus_size {
__global__ void wrong(const float* x, float* out) {
    const int i = grid_index();
    out[i] = x[i - THREADS - 1];  //! out_of_bounds(x)
}
__global__ void right(const float* x, float* out) {
    const int i = grid_index();
    out[i] = x[i > 0 ? i - 1 : THREADS - 1];
}
}

namespace shared_window_too_small {
__global__ void wrong(const float* x, float* out) {
    __shared__ float window[THREADS];
    const int tid = threadIdx.x;
    window[tid] = x[tid];
    if (tid < 2) {
        window[THREADS + tid] = x[THREADS + tid];  //! out_of_bounds(window)
    }
    __syncthreads();
    if (tid < THREADS - 2) {
        out[tid] = window[tid] + window[tid + 2];
    }
}
__global__ void right(const float* x, float* out) {
    __shared__ float window[THREADS + 2];
    const int tid = threadIdx.x;
    window[tid] = x[tid];
    if (tid < 2) {
        window[THREADS + tid] = x[THREADS + tid];
    }
    __syncthreads();
    out[tid] = window[tid] + window[tid + 2];
}
}

namespace shared_index_below_minus_size {
__global__ void wrong(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    cells[tid] = x[tid];
    __syncthreads();
    out[tid] = cells[tid - 66];  //! out_of_bounds(cells)
}
__global__ void right(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    cells[tid] = x[tid];
    __syncthreads();
    out[tid] = cells[(tid - 2u) % THREADS];
}
}

namespace local_array_past_the_end {
__global__ void wrong(const float* x, float* out) {
    float window[TAPS];
    const int i = grid_index();
    for (int k = 0; k <= TAPS; k++) {
        window[k] = x[i + k];  //! out_of_bounds(window)
    }
    float largest = window[0];
    for (int k = 1; k < TAPS; k++) {
        largest = fmaxf(largest, window[k]);
    }
    out[i] = largest;
}
__global__ void right(const float* x, float* out) {
    float window[TAPS];
    const int i = grid_index();
    for (int k = 0; k < TAPS; k++) {
        window[k] = x[i + k];
    }
    float largest = window[0];
    for (int k = 1; k < TAPS; k++) {
        largest = fmaxf(largest, window[k]);
    }
    out[i] = largest;
}
}

namespace row_and_column_swapped {
constexpr int ROWS = 12, COLUMNS = 9;
__global__ void wrong(const float* x, float* out) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < ROWS && column < COLUMNS) {
        out[row * COLUMNS + column] = x[row * ROWS + column] + 0.5f;  //! out_of_bounds(x)
    }
}
__global__ void right(const float* x, float* out) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < ROWS && column < COLUMNS) {
        out[row * COLUMNS + column] = x[row * COLUMNS + column] + 0.5f;
    }
}
}

namespace one_axis_guarded {
constexpr int ROWS = 16, COLUMNS = 10;
__global__ void wrong(const float* x, float* out) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < ROWS) {
        out[row * COLUMNS + column] = -x[row * COLUMNS + column];  //! out_of_bounds
    }
}
__global__ void right(const float* x, float* out) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < ROWS && column < COLUMNS) {
        out[row * COLUMNS + column] = -x[row * COLUMNS + column];
    }
}
}

namespace pairs_of_an_odd_count {
constexpr int N = 33;
__global__ void wrong(const float* x, float* out) {
    const int i = grid_index();
    if (2 * i < N) {
        out[i] = x[2 * i] + x[2 * i + 1];  //! out_of_bounds(x)
    }
}
__global__ void right(const float* x, float* out) {
    const int i = grid_index();
    if (2 * i + 1 < N) {
        out[i] = x[2 * i] + x[2 * i + 1];
    } else if (2 * i < N) {
        out[i] = x[2 * i];
    }
}
}

namespace atomic_past_the_last_bin {
__global__ void wrong(const float* x, int* counts) {
    atomicAdd(&counts[int(x[grid_index()] * 8)], 1);  //! out_of_bounds(counts)
}
__global__ void right(const float* x, int* counts) {
    atomicAdd(&counts[min(int(x[grid_index()] * 8), 7)], 1);
}
}

namespace gather_through_a_bad_index {
__global__ void wrong(const float* x, const int* index, float* out) {
    const int i = grid_index();
    out[i] = x[index[i]];  //! out_of_bounds(x)
}
__global__ void right(const float* x, const int* index, float* out) {
    const int i = grid_index();
    if (index[i] >= 0) {
        out[i] = x[index[i]];
    }
}
}

namespace slice_past_its_end {
constexpr int COLUMNS = 6;
__global__ void wrong(const float* x, float* out) {
    const float* row = x + threadIdx.x * COLUMNS;
    float total = 0;
    for (int j = 0; j <= COLUMNS; j++) {
        total += row[j];  //! out_of_bounds(x)
    }
    out[threadIdx.x] = total;
}
__global__ void right(const float* x, float* out) {
    const float* row = x + threadIdx.x * COLUMNS;
    float total = 0;
    for (int j = 0; j < COLUMNS; j++) {
        total += row[j];
    }
    out[threadIdx.x] = total;
}
}

namespace constant_table_past_its_end {
__constant__ float table[4] = {1, 2, 4, 8};
__global__ void wrong(const float* x, float* out) {
    const int i = grid_index();
    out[i] = x[i] * table[i % 8];  //! out_of_bounds(table)
}
__global__ void right(const float* x, float* out) {
    const int i = grid_index();
    out[i] = x[i] * table[i % 4];
}
}

namespace third_dimension_not_guarded {
constexpr int ROWS = 4, COLUMNS = 4, DEPTH = 7;
__global__ void wrong(const float* x, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int j = blockIdx.y * blockDim.y + threadIdx.y;
    const int k = blockIdx.z * blockDim.z + threadIdx.z;
    if (i < ROWS && j < COLUMNS) {
        const int element = (k * ROWS + i) * COLUMNS + j;
        out[element] = x[element] - 1;  //! out_of_bounds
    }
}
__global__ void right(const float* x, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int j = blockIdx.y * blockDim.y + threadIdx.y;
    const int k = blockIdx.z * blockDim.z + threadIdx.z;
    if (i < ROWS && j < COLUMNS && k < DEPTH) {
        const int element = (k * ROWS + i) * COLUMNS + j;
        out[element] = x[element] - 1;
    }
}
}

namespace shared_tile_row_past_the_end {
__global__ void wrong(const int* x, int* out) {
    __shared__ int tile[8][8];
    const int tx = threadIdx.x, ty = threadIdx.y;
    tile[ty][tx] = x[ty * 8 + tx];  //! out_of_bounds(tile)
    __syncthreads();
    if (ty < 8) {
        out[ty * 8 + tx] = tile[ty][7 - tx];
    }
}
__global__ void right(const int* x, int* out) {
    __shared__ int tile[8][8];
    const int tx = threadIdx.x, ty = threadIdx.y;
    if (ty < 8) {
        tile[ty][tx] = x[ty * 8 + tx];
    }
    __syncthreads();
    if (ty < 8) {
        out[ty * 8 + tx] = tile[ty][7 - tx];
    }
}
}

namespace store_too_far_by_a_whole_array {
__global__ void wrong(const float* x, float* out) {
    const int column = threadIdx.x, row = threadIdx.y;
    out[row * 1024 + column] = x[row * 8 + column];  //! out_of_bounds(out)
}
__global__ void right(const float* x, float* out) {
    const int column = threadIdx.x, row = threadIdx.y;
    out[row * 8 + column] = x[row * 8 + column];
}
}

namespace dynamic_shared_memory_too_small {
__global__ void wrong(const float* x, float* out) {
    extern __shared__ float pool[];
    const int tid = threadIdx.x;
    pool[tid] = x[tid];  //! out_of_bounds
    __syncthreads();
    if (tid < 30) {
        out[tid] = pool[tid + 1];
    }
}
__global__ void right(const float* x, float* out) {
    extern __shared__ float pool[];
    const int tid = threadIdx.x;
    pool[tid] = x[tid];
    __syncthreads();
    if (tid < 31) {
        out[tid] = pool[tid + 1];
    }
}
}
