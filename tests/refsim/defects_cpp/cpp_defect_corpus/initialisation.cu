// Reads of memory that nobody wrote: shared and local arrays, and output buffers handed over uninitialised.

constexpr int THREADS = 64;
constexpr int TILE = 8;

namespace tail_of_the_tile_not_written {
constexpr int N = 50;
__global__ void wrong(const float* x, float* out) {
    __shared__ float partial[THREADS];
    const int tid = threadIdx.x;
    if (tid < N) {
        partial[tid] = x[tid];
    }
    __syncthreads();
    for (int stride = THREADS / 2; stride > 0; stride >>= 1) {
        if (tid < stride) {
            partial[tid] += partial[tid + stride];  //! uninitialized_read(partial)
        }
        __syncthreads();
    }
    if (tid == 0) {
        out[0] = partial[0];
    }
}
__global__ void right(const float* x, float* out) {
    __shared__ float partial[THREADS];
    const int tid = threadIdx.x;
    partial[tid] = tid < N ? x[tid] : 0.0f;
    __syncthreads();
    for (int stride = THREADS / 2; stride > 0; stride >>= 1) {
        if (tid < stride) {
            partial[tid] += partial[tid + stride];
        }
        __syncthreads();
    }
    if (tid == 0) {
        out[0] = partial[0];
    }
}
}

namespace gemm_ragged_tile_not_zeroed {
constexpr int N = 16, K = 5;
__global__ void wrong(const float* a, const float* b, float* out) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int column = blockIdx.x * TILE + tx, row = blockIdx.y * TILE + ty;
    float total = 0;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        if (k0 + tx < K) {
            tile_a[ty][tx] = a[row * K + k0 + tx];
        }
        if (k0 + ty < K) {
            tile_b[ty][tx] = b[(k0 + ty) * N + column];
        }
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            total += tile_a[ty][k] * tile_b[k][tx];  //! uninitialized_read
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
    for (int k0 = 0; k0 < K; k0 += TILE) {
        tile_a[ty][tx] = k0 + tx < K ? a[row * K + k0 + tx] : 0;
        tile_b[ty][tx] = k0 + ty < K ? b[(k0 + ty) * N + column] : 0;
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            total += tile_a[ty][k] * tile_b[k][tx];
        }
        __syncthreads();
    }
    out[row * N + column] = total;
}
}

namespace local_accumulators_not_zeroed {
constexpr int COLUMNS = 12;
__global__ void wrong(const float* x, float* out) {
    float sums[3];
    const int i = threadIdx.x;
    for (int k = 0; k < COLUMNS; k++) {
        sums[k % 3] += x[i * COLUMNS + k];  //! uninitialized_read(sums)
    }
    for (int c = 0; c < 3; c++) {
        out[i * 3 + c] = sums[c];
    }
}
__global__ void right(const float* x, float* out) {
    float sums[3] = {};
    const int i = threadIdx.x;
    for (int k = 0; k < COLUMNS; k++) {
        sums[k % 3] += x[i * COLUMNS + k];
    }
    for (int c = 0; c < 3; c++) {
        out[i * 3 + c] = sums[c];
    }
}
}

namespace local_array_written_in_part {
__global__ void wrong(const float* x, float* out) {
    float values[4];
    const int i = threadIdx.x;
    for (int k = 0; k < 3; k++) {
        values[k] = x[i * 4 + k];
    }
    float largest = values[0];
    for (int k = 1; k < 4; k++) {
        largest = fmaxf(largest, values[k]);  //! uninitialized_read(values)
    }
    out[i] = largest;
}
__global__ void right(const float* x, float* out) {
    float values[4];
    const int i = threadIdx.x;
    for (int k = 0; k < 4; k++) {
        values[k] = x[i * 4 + k];
    }
    float largest = values[0];
    for (int k = 1; k < 4; k++) {
        largest = fmaxf(largest, values[k]);
    }
    out[i] = largest;
}
}

namespace local_array_written_by_one_branch {
__global__ void wrong(const float* x, float* out) {
    float keep[1];
    const int i = threadIdx.x;
    if (int(x[i]) % 2 == 0) {
        keep[0] = x[i];
    }
    out[i] = keep[0];  //! uninitialized_read(keep)
}
__global__ void right(const float* x, float* out) {
    float keep[1] = {0};
    const int i = threadIdx.x;
    if (int(x[i]) % 2 == 0) {
        keep[0] = x[i];
    }
    out[i] = keep[0];
}
}

namespace output_accumulated_without_zero {
__global__ void wrong(const float* x, float* out) {
    const int i = threadIdx.x;
    out[i] += x[i];  //! uninitialized_read(out)
}
__global__ void right(const float* x, float* out) {
    const int i = threadIdx.x;
    out[i] = x[i];
}
}

namespace atomic_on_uninitialised_output {
__global__ void wrong(const int* x, int* out) {
    const int* row = x + blockIdx.x * THREADS;
    atomicMax(&out[blockIdx.x], row[threadIdx.x]);  //! uninitialized_read(out)
}
__global__ void right(const int* x, int* out) {
    const int* row = x + blockIdx.x * THREADS;
    if (threadIdx.x == 0) {
        out[blockIdx.x] = row[0];
    }
    __syncthreads();
    atomicMax(&out[blockIdx.x], row[threadIdx.x]);
}
}

namespace shared_bins_not_cleared {
__global__ void wrong(const int* keys, int* counts) {
    __shared__ int local[16];
    const int tid = threadIdx.x;
    atomicAdd(&local[keys[tid]], 1);  //! uninitialized_read(local)
    __syncthreads();
    if (tid < 16) {
        counts[tid] = local[tid];
    }
}
__global__ void right(const int* keys, int* counts) {
    __shared__ int local[16];
    const int tid = threadIdx.x;
    if (tid < 16) {
        local[tid] = 0;
    }
    __syncthreads();
    atomicAdd(&local[keys[tid]], 1);
    __syncthreads();
    if (tid < 16) {
        counts[tid] = local[tid];
    }
}
}

namespace second_kernel_reads_what_the_first_left_out {
constexpr int N = 100;
__global__ void wrong_producer(const float* x, float* middle, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N / 8 * 8) {
        middle[i] = x[i] * x[i];
    }
}
__global__ void right_producer(const float* x, float* middle, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        middle[i] = x[i] * x[i];
    }
}
__global__ void wrong(const float* x, float* middle, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        out[i] = middle[i] + 1;  //! uninitialized_read(middle)
    }
}
__global__ void right(const float* x, float* middle, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        out[i] = middle[i] + 1;
    }
}
}

namespace prologue_of_the_double_buffer_missing {
constexpr int ROUNDS = 5;
__global__ void wrong(const float* x, float* out) {
    __shared__ float stage[2][THREADS];
    const int tid = threadIdx.x;
    float total = 0;
    for (int r = 0; r < ROUNDS; r++) {
        if (r + 1 < ROUNDS) {
            stage[(r + 1) % 2][tid] = x[(r + 1) * THREADS + tid];
        }
        total += stage[r % 2][THREADS - 1 - tid];  //! uninitialized_read(stage)
        __syncthreads();
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
        total += stage[r % 2][THREADS - 1 - tid];
        __syncthreads();
    }
    out[tid] = total;
}
}

namespace halo_cell_never_loaded {
__global__ void wrong(const float* x, float* out) {
    __shared__ float window[THREADS + 1];
    const int tid = threadIdx.x;
    const int i = blockIdx.x * blockDim.x + tid;
    window[tid + 1] = x[i];
    __syncthreads();
    out[i] = window[tid + 1] + window[tid];  //! uninitialized_read(window)
}
__global__ void right(const float* x, float* out) {
    __shared__ float window[THREADS + 1];
    const int tid = threadIdx.x;
    const int i = blockIdx.x * blockDim.x + tid;
    window[tid + 1] = x[i];
    if (tid == 0) {
        window[0] = i > 0 ? x[i - 1] : 0;
    }
    __syncthreads();
    out[i] = window[tid + 1] + window[tid];
}
}

namespace uninitialised_input_buffer {
__global__ void wrong(const float* x, float* work) {
    const int i = threadIdx.x;
    work[i] = x[i];
    work[THREADS + i] = work[THREADS + i] * 0 + x[i] + 1;  //! uninitialized_read(work)
}
__global__ void right(const float* x, float* work) {
    const int i = threadIdx.x;
    work[i] = x[i];
    work[THREADS + i] = work[i] + 1;
}
}
