// Barriers that only a part of a block reaches. Threads that have returned are not waited for: that is allowed.

constexpr int THREADS = 64;

namespace barrier_under_divergent_branch {
__global__ void wrong(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    if (tid < 32) {
        cells[tid] = x[tid];
        __syncthreads();  //! barrier_divergence
        out[tid] = cells[31 - tid];
    }
    __syncthreads();  //! barrier_divergence
}
__global__ void right(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    if (tid < 32) {
        cells[tid] = x[tid];
    }
    __syncthreads();
    if (tid < 32) {
        out[tid] = cells[31 - tid];
    }
}
}

namespace early_return_is_not_a_branch {
__global__ void wrong(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    const bool used = tid < 40;
    if (used) {
        cells[tid] = x[tid];
        __syncthreads();  //! barrier_divergence
    }
    if (used) {
        out[tid] = cells[39 - tid];
    } else {
        out[tid] = 0;
    }
}
__global__ void right(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    if (tid >= 40) {
        return;
    }
    cells[tid] = x[tid];
    __syncthreads();
    out[tid] = cells[39 - tid];
}
}

namespace two_barriers_for_two_halves {
__global__ void wrong(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    if (tid < 32) {
        cells[tid] = x[tid];
        __syncthreads();  //! barrier_divergence
    } else {
        cells[tid] = -x[tid];
        __syncthreads();  //! barrier_divergence
    }
    out[tid] = cells[tid];
}
__global__ void right(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    if (tid < 32) {
        cells[tid] = x[tid];
    } else {
        cells[tid] = -x[tid];
    }
    __syncthreads();
    out[tid] = cells[THREADS - 1 - tid];
}
}

namespace loop_with_different_trip_counts {
constexpr int N = 100;
__global__ void wrong(const float* x, float* out) {
    float total = 0;
    for (int i = threadIdx.x; i < N; i += THREADS) {
        total += x[i];
        __syncthreads();  //! barrier_divergence
    }
    out[threadIdx.x] = total;
}
__global__ void right(const float* x, float* out) {
    float total = 0;
    for (int start = 0; start < N; start += THREADS) {
        if (start + threadIdx.x < N) {
            total += x[start + threadIdx.x];
        }
        __syncthreads();
    }
    out[threadIdx.x] = total;
}
}

namespace break_past_the_barrier {
__global__ void wrong(const float* x, float* out) {
    const int tid = threadIdx.x;
    int steps = 0;
    for (int k = 0; k < 4; k++) {
        steps++;
        if (k == tid % 4) {
            break;
        }
        __syncthreads();  //! barrier_divergence
    }
    out[tid] = steps;
}
__global__ void right(const float* x, float* out) {
    const int tid = threadIdx.x;
    int steps = 0;
    for (int k = 0; k < 4; k++) {
        if (k <= tid % 4) {
            steps++;
        }
        __syncthreads();
    }
    out[tid] = steps;
}
}

namespace while_until_own_value_is_small {
__global__ void wrong(const float* x, float* out) {
    float value = x[threadIdx.x];
    int halvings = 0;
    while (value >= 1) {
        value *= 0.5f;
        halvings++;
        __syncthreads();  //! barrier_divergence
    }
    out[threadIdx.x] = halvings;
}
__global__ void right(const float* x, float* out) {
    float value = x[threadIdx.x];
    int halvings = 0;
    while (__syncthreads_or(value >= 1)) {
        if (value >= 1) {
            value *= 0.5f;
            halvings++;
        }
    }
    out[threadIdx.x] = halvings;
}
}

namespace count_under_divergent_branch {
__global__ void wrong(const float* x, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x > 0) {
        const int count = __syncthreads_count(fmodf(x[i], 6) == 5);  //! barrier_divergence
        if (threadIdx.x == 1) {
            out[blockIdx.x] = count;
        }
    }
}
__global__ void right(const float* x, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int count = __syncthreads_count(fmodf(x[i], 6) == 5);
    if (threadIdx.x == 1) {
        out[blockIdx.x] = count;
    }
}
}

namespace continue_past_syncthreads_or {
__global__ void wrong(const float* x, float* out) {
    const int tid = threadIdx.x;
    int total = 0;
    for (int k = 0; k < 4; k++) {
        if (x[tid] < 20) {
            total++;
            continue;
        }
        total += 1 + __syncthreads_or(k == tid % 4);  //! barrier_divergence
    }
    out[tid] = total;
}
__global__ void right(const float* x, float* out) {
    const int tid = threadIdx.x;
    int total = 0;
    for (int k = 0; k < 4; k++) {
        const int anybody = __syncthreads_or(k == tid % 4);
        if (x[tid] < 20) {
            total++;
            continue;
        }
        total += 1 + (anybody != 0);
    }
    out[tid] = total;
}
}

namespace device_function_with_barrier_under_branch {
__device__ float block_reverse(float* cells, float value, int tid, int count) {
    cells[tid] = value;
    __syncthreads();  //! barrier_divergence
    return cells[count - 1 - tid];
}
__global__ void wrong(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    cells[tid] = x[tid];
    __syncthreads();
    if (tid < 48) {
        out[tid] = block_reverse(cells, x[tid], tid, THREADS);
    } else {
        out[tid] = x[tid];
    }
    __syncthreads();  //! barrier_divergence
}
__global__ void right(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    const float reverse = block_reverse(cells, x[tid], tid, THREADS);
    out[tid] = tid < 48 ? reverse : x[tid];
}
}

namespace barrier_inside_the_tail_guard {
constexpr int N = 100;
__global__ void wrong(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    const int i = blockIdx.x * blockDim.x + tid;
    if (i < N) {
        cells[tid] = x[i];
        __syncthreads();  //! barrier_divergence
        out[i] = blockIdx.x == 0 ? cells[THREADS - 1 - tid] : cells[tid];
    }
}
__global__ void right(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    const int i = blockIdx.x * blockDim.x + tid;
    if (i < N) {
        cells[tid] = x[i];
    }
    __syncthreads();
    if (i < N) {
        out[i] = blockIdx.x == 0 ? cells[THREADS - 1 - tid] : cells[tid];
    }
}
}

namespace barrier_for_one_row_of_threads {
__global__ void wrong(const float* x, float* out) {
    __shared__ float head[16];
    const int tx = threadIdx.x, ty = threadIdx.y;
    if (ty == 0) {
        head[tx] = x[tx];
        __syncthreads();  //! barrier_divergence
    }
    __syncthreads();  //! barrier_divergence
    out[ty * 16 + tx] = x[ty * 16 + tx] + head[15 - tx];
}
__global__ void right(const float* x, float* out) {
    __shared__ float head[16];
    const int tx = threadIdx.x, ty = threadIdx.y;
    if (ty == 0) {
        head[tx] = x[tx];
    }
    __syncthreads();
    out[ty * 16 + tx] = x[ty * 16 + tx] + head[15 - tx];
}
}
