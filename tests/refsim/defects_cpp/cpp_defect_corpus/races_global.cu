// Races in global memory: within a block, between blocks, and around atomics and fences.

constexpr int THREADS = 64;
constexpr int BLOCKS = 4;
constexpr int N = THREADS * BLOCKS;

__device__ int grid_index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// The sum of one value per thread, in thread 0.
__device__ float block_sum(float value) {
    __shared__ float sums[THREADS];
    const int tid = threadIdx.x;
    sums[tid] = value;
    __syncthreads();
    for (int stride = THREADS / 2; stride > 0; stride /= 2) {
        if (tid < stride) {
            sums[tid] += sums[tid + stride];
        }
        __syncthreads();
    }
    return sums[0];
}

namespace plain_add_instead_of_atomic {
__global__ void wrong(const float* x, float* out) {
    const int i = grid_index();
    if (i < N) {
        *out += x[i];  //! race(out)
    }
}
__global__ void right(const float* x, float* out) {
    const int i = grid_index();
    if (i < N) {
        atomicAdd(out, x[i]);
    }
}
}

namespace two_blocks_write_one_output {
__global__ void wrong(const float* x, float* out) {
    out[threadIdx.x] = x[grid_index()] * 2;  //! race(out)
}
__global__ void right(const float* x, float* out) {
    const int i = grid_index();
    out[i] = x[i] * 2;
}
}

namespace block_reads_its_neighbours_output {
__device__ int before(int i) { return (i + N - THREADS) % N; }
__global__ void wrong(const float* x, float* out) {
    const int i = grid_index();
    out[i] = x[i];  //! race(out)
    __syncthreads();
    out[i] += out[before(i)];  //! race(out)
}
__global__ void right(const float* x, float* out) {
    const int i = grid_index();
    out[i] = x[i];
    __syncthreads();
    out[i] += x[before(i)];
}
}

namespace in_place_stencil_between_blocks {
__global__ void wrong(float* x, float* out) {
    const int i = grid_index();
    float value = x[i];
    if (i + 1 < N) {
        value += x[i + 1];  //! race(x)
    }
    __syncthreads();
    x[i] = value;  //! race(x)
    out[i] = value;
}
__global__ void right(float* x, float* out) {
    const int i = grid_index();
    float value = x[i];
    if (i + 1 < N) {
        value += x[i + 1];
    }
    __syncthreads();
    out[i] = value;
}
}

namespace in_place_stencil_within_block {
__global__ void wrong(float* x) {
    const int i = grid_index();
    if (i + 1 < THREADS) {
        x[i] += x[i + 1];  //! race(x)
    }
}
__global__ void right(float* x) {
    const int i = grid_index();
    float value = x[i];
    if (i + 1 < THREADS) {
        value += x[i + 1];
    }
    __syncthreads();
    x[i] = value;
}
}

namespace scratch_in_global_memory_without_barrier {
__global__ void wrong(const float* x, float* scratch, float* out) {
    const int i = grid_index();
    scratch[i] = x[i] * x[i];  //! race(scratch)
    out[i] = scratch[THREADS - 1 - i];  //! race(scratch)
}
__global__ void right(const float* x, float* scratch, float* out) {
    const int i = grid_index();
    scratch[i] = x[i] * x[i];
    __syncthreads();
    out[i] = scratch[THREADS - 1 - i];
}
}

namespace last_block_reduction_without_fence {
__global__ void wrong(const float* x, float* partial, int* tickets, float* out) {
    __shared__ bool last;
    const float sum = block_sum(x[grid_index()]);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;  //! race(partial)
        last = atomicAdd(tickets, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float total = 0;
        for (int b = 0; b < gridDim.x; b++) {
            total += partial[b];  //! race(partial)
        }
        *out = total;
    }
}
__global__ void right(const float* x, float* partial, int* tickets, float* out) {
    __shared__ bool last;
    const float sum = block_sum(x[grid_index()]);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(tickets, 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float total = 0;
        for (int b = 0; b < gridDim.x; b++) {
            total += partial[b];
        }
        *out = total;
    }
}
}

namespace partials_read_by_any_block {
using last_block_reduction_without_fence::right;
__global__ void wrong(const float* x, float* partial, int* tickets, float* out) {
    const float sum = block_sum(x[grid_index()]);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;  //! race(partial)
    }
    __threadfence();
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        float total = 0;
        for (int b = 0; b < gridDim.x; b++) {
            total += partial[b];  //! race(partial)
        }
        *out = total;
    }
}
}

namespace flag_published_without_fence {
__global__ void wrong(float* message, int* flag, float* out) {
    if (threadIdx.x == 0) {
        if (blockIdx.x == 0) {
            *message = 42;  //! race(message)
            atomicExch(flag, 1);
        } else if (atomicAdd(flag, 0) == 1) {
            *out = *message;  //! race(message)
        }
    }
}
__global__ void right(float* message, int* flag, float* out) {
    if (threadIdx.x == 0) {
        if (blockIdx.x == 0) {
            *message = 42;
            __threadfence();
            atomicExch(flag, 1);
        } else if (atomicAdd(flag, 0) == 1) {
            __threadfence();
            *out = *message;
        }
    }
}
}

namespace global_histogram_with_plain_add {
__global__ void wrong(const int* keys, int* counts) {
    counts[keys[grid_index()]] += 1;  //! race(counts)
}
__global__ void right(const int* keys, int* counts) {
    atomicAdd(&counts[keys[grid_index()]], 1);
}
}

namespace grid_stride_with_the_block_stride {
__global__ void wrong(float* x) {
    for (int i = grid_index(); i < 256; i += blockDim.x) {
        x[i] += 1;  //! race(x)
    }
}
__global__ void right(float* x) {
    for (int i = grid_index(); i < 256; i += blockDim.x * gridDim.x) {
        x[i] += 1;
    }
}
}

namespace transpose_in_place_by_every_thread {
constexpr int SIDE = 16;
__global__ void wrong(float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i != j) {
        const float value = x[i * SIDE + j];  //! race(x)
        x[i * SIDE + j] = x[j * SIDE + i];  //! race(x)
        x[j * SIDE + i] = value;  //! race(x)
    }
}
__global__ void right(float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < j) {
        const float value = x[i * SIDE + j];
        x[i * SIDE + j] = x[j * SIDE + i];
        x[j * SIDE + i] = value;
    }
}
}

namespace overlapping_tiles {
__global__ void wrong(const float* x, float* out) {
    const int i = blockIdx.x * (THREADS - 1) + threadIdx.x;
    out[i] = x[i] + blockIdx.x;  //! race(out)
}
__global__ void right(const float* x, float* out) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    out[i] = x[i] + blockIdx.x;
}
}

namespace maximum_by_compare_and_store {
__global__ void wrong(const int* x, int* out) {
    const int i = grid_index();
    if (x[i] > *out) {  //! race(out)
        *out = x[i];  //! race(out)
    }
}
__global__ void right(const int* x, int* out) {
    atomicMax(out, x[grid_index()]);
}
}

namespace compaction_with_plain_counter {
__global__ void wrong(const int* x, int* count, int* flags) {
    if (x[grid_index()] % 3 == 0) {
        const int place = (*count)++;  //! race(count)
        flags[place] = 1;  //! race(flags)
    }
}
__global__ void right(const int* x, int* count, int* flags) {
    if (x[grid_index()] % 3 == 0) {
        const int place = atomicAdd(count, 1);
        flags[place] = 1;
    }
}
}

namespace counter_read_while_others_add {
__global__ void wrong(int* count, int* seen) {
    atomicAdd(count, 1);  //! race(count)
    seen[grid_index()] = *count > 0;  //! race(count)
}
__global__ void right(int* count, int* seen) {
    const int before = atomicAdd(count, 1);
    seen[grid_index()] = before >= 0;
}
}

namespace aliased_input_and_output {
__global__ void wrong(const float* source, float* target) {
    const int i = grid_index();
    target[i] = source[i];  //! race
}
__global__ void right(const float* source, float* target) {
    const int i = grid_index();
    const float value = source[i];
    __syncthreads();
    target[i] = value;
}
}

namespace cleared_by_one_block_filled_by_all {
__global__ void wrong(const float* x, float* out) {
    const int i = grid_index();
    if (i == 0) {
        *out = 0;  //! race(out)
    }
    __syncthreads();
    atomicAdd(out, x[i]);  //! race(out)
}
__global__ void right(const float* x, float* out) {
    atomicAdd(out, x[grid_index()]);
}
}

namespace flag_raised_by_every_block {
__global__ void wrong(const float* x, int* found) {
    if (x[grid_index()] > 100) {
        *found = 1;  //! race(found) note
    }
}
__global__ void right(const float* x, int* found) {
    if (x[grid_index()] > 100) {
        atomicExch(found, 1);
    }
}
}
