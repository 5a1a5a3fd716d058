// Races in shared memory: a barrier is missing, or stands in the wrong place, or something weaker stands there.

constexpr int THREADS = 64;
constexpr int BINS = 16;
constexpr int WARP = 32;

namespace missing_barrier_before_read {
__global__ void wrong(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    cells[tid] = x[tid];  //! race(cells)
    out[tid] = cells[(tid + 1) % THREADS];  //! race(cells)
}
__global__ void right(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    cells[tid] = x[tid];
    __syncthreads();
    out[tid] = cells[(tid + 1) % THREADS];
}
}

namespace missing_barrier_after_read {
constexpr int ROWS = 4;
__global__ void wrong(const float* x, float* out) {
    __shared__ float row[THREADS];
    const int tid = threadIdx.x;
    for (int r = 0; r < ROWS; r++) {
        row[tid] = x[r * THREADS + tid];  //! race(row)
        __syncthreads();
        out[r * THREADS + tid] = row[THREADS - 1 - tid];  //! race(row)
    }
}
__global__ void right(const float* x, float* out) {
    __shared__ float row[THREADS];
    const int tid = threadIdx.x;
    for (int r = 0; r < ROWS; r++) {
        row[tid] = x[r * THREADS + tid];
        __syncthreads();
        out[r * THREADS + tid] = row[THREADS - 1 - tid];
        __syncthreads();
    }
}
}

namespace tree_reduction_without_barrier_in_loop {
__global__ void wrong(const float* x, float* out) {
    __shared__ float partial[128];
    const int tid = threadIdx.x;
    partial[tid] = x[blockIdx.x * blockDim.x + tid];
    __syncthreads();
    for (int stride = 64; stride > 0; stride /= 2) {
        if (tid < stride) {
            partial[tid] += partial[tid + stride];  //! race(partial)
        }
    }
    if (tid == 0) {
        out[blockIdx.x] = partial[0];
    }
}
__global__ void right(const float* x, float* out) {
    __shared__ float partial[128];
    const int tid = threadIdx.x;
    partial[tid] = x[blockIdx.x * blockDim.x + tid];
    __syncthreads();
    for (int stride = 64; stride > 0; stride /= 2) {
        if (tid < stride) {
            partial[tid] += partial[tid + stride];
        }
        __syncthreads();
    }
    if (tid == 0) {
        out[blockIdx.x] = partial[0];
    }
}
}

namespace scan_without_barrier_between_read_and_write {
__global__ void wrong(const float* x, float* out) {
    __shared__ float sums[THREADS];
    const int tid = threadIdx.x;
    const int i = blockIdx.x * blockDim.x + tid;
    sums[tid] = x[i];
    __syncthreads();
    for (int distance = 1; distance < THREADS; distance *= 2) {
        if (tid >= distance) {
            sums[tid] += sums[tid - distance];  //! race(sums)
        }
        __syncthreads();
    }
    out[i] = sums[tid];
}
__global__ void right(const float* x, float* out) {
    __shared__ float sums[THREADS];
    const int tid = threadIdx.x;
    const int i = blockIdx.x * blockDim.x + tid;
    sums[tid] = x[i];
    __syncthreads();
    for (int distance = 1; distance < THREADS; distance *= 2) {
        const float left = tid >= distance ? sums[tid - distance] : 0.0f;
        __syncthreads();
        sums[tid] += left;
        __syncthreads();
    }
    out[i] = sums[tid];
}
}

namespace shared_histogram_with_plain_add {
__global__ void wrong(const int* keys, int* counts) {
    __shared__ int local[BINS];
    const int tid = threadIdx.x;
    if (tid < BINS) {
        local[tid] = 0;
    }
    __syncthreads();
    local[keys[blockIdx.x * blockDim.x + tid]]++;  //! race(local)
    __syncthreads();
    if (tid < BINS) {
        atomicAdd(&counts[tid], local[tid]);
    }
}
__global__ void right(const int* keys, int* counts) {
    __shared__ int local[BINS];
    const int tid = threadIdx.x;
    if (tid < BINS) {
        local[tid] = 0;
    }
    __syncthreads();
    atomicAdd(&local[keys[blockIdx.x * blockDim.x + tid]], 1);
    __syncthreads();
    if (tid < BINS) {
        atomicAdd(&counts[tid], local[tid]);
    }
}
}

namespace shared_histogram_cleared_without_barrier {
__global__ void wrong(const int* keys, int* counts) {
    __shared__ int local[BINS];
    const int tid = threadIdx.x;
    if (tid < BINS) {
        local[tid] = 0;  //! race(local)
    }
    atomicAdd(local + keys[tid], 1);  //! race(local)
    __syncthreads();
    if (tid < BINS) {
        counts[tid] = local[tid];
    }
}
__global__ void right(const int* keys, int* counts) {
    __shared__ int local[BINS];
    const int tid = threadIdx.x;
    if (tid < BINS) {
        local[tid] = 0;
    }
    __syncthreads();
    atomicAdd(local + keys[tid], 1);
    __syncthreads();
    if (tid < BINS) {
        counts[tid] = local[tid];
    }
}
}

namespace shared_atomic_mixed_with_plain_read {
__global__ void wrong(const int* x, int* out) {
    __shared__ int total;
    const int tid = threadIdx.x;
    if (tid == 0) {
        total = 0;
    }
    __syncthreads();
    atomicAdd(&total, x[tid]);  //! race(total)
    out[tid] = total;  //! race(total)
}
__global__ void right(const int* x, int* out) {
    __shared__ int total;
    const int tid = threadIdx.x;
    if (tid == 0) {
        total = 0;
    }
    __syncthreads();
    atomicAdd(&total, x[tid]);
    __syncthreads();
    out[tid] = total;
}
}

namespace warp_synchronous_reduction {
__global__ void wrong(const float* x, float* out) {
    __shared__ float partial[THREADS];
    const int tid = threadIdx.x;
    partial[tid] = x[blockIdx.x * blockDim.x + tid];
    __syncthreads();
    if (tid < WARP) {
        for (int offset = WARP; offset > 0; offset /= 2) {
            partial[tid] += partial[tid + offset];  //! race(partial)
        }
    }
    if (tid == 0) {
        out[blockIdx.x] = partial[0];
    }
}
__global__ void right(const float* x, float* out) {
    __shared__ float partial[THREADS];
    const int tid = threadIdx.x;
    partial[tid] = x[blockIdx.x * blockDim.x + tid];
    __syncthreads();
    if (tid < WARP) {
        for (int offset = WARP; offset > 0; offset /= 2) {
            const float upper = partial[tid + offset];
            __syncwarp();
            partial[tid] += upper;
            __syncwarp();
        }
    }
    if (tid == 0) {
        out[blockIdx.x] = partial[0];
    }
}
}

namespace syncwarp_where_the_block_must_meet {
__global__ void wrong(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    cells[tid] = x[tid];  //! race(cells)
    __syncwarp();
    out[tid] = cells[THREADS - 1 - tid];  //! race(cells)
}
__global__ void right(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    cells[tid] = x[tid];
    __syncthreads();
    out[tid] = cells[THREADS - 1 - tid];
}
}

namespace warp_exchange_without_syncwarp {
__global__ void wrong(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    const int lane = tid % WARP;
    cells[tid] = x[tid];  //! race(cells)
    out[tid] = cells[tid - lane + WARP - 1 - lane];  //! race(cells)
}
__global__ void right(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    const int lane = tid % WARP;
    cells[tid] = x[tid];
    __syncwarp();
    out[tid] = cells[tid - lane + WARP - 1 - lane];
}
}

namespace fence_instead_of_barrier {
__global__ void wrong(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    cells[tid] = x[tid];  //! race(cells)
    __threadfence_block();
    out[tid] = cells[(tid + 3) % THREADS];  //! race(cells)
}
__global__ void right(const float* x, float* out) {
    __shared__ float cells[THREADS];
    const int tid = threadIdx.x;
    cells[tid] = x[tid];
    __syncthreads();
    out[tid] = cells[(tid + 3) % THREADS];
}
}

namespace broadcast_without_barrier {
__global__ void wrong(const float* x, float* out) {
    __shared__ float head;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) {
        head = x[i];  //! race(head)
    }
    out[i] = head;  //! race(head)
}
__global__ void right(const float* x, float* out) {
    __shared__ float head;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) {
        head = x[i];
    }
    __syncthreads();
    out[i] = head;
}
}

namespace two_writers_of_one_cell {
__global__ void wrong(const float* x, float* out) {
    __shared__ float odd[THREADS / 2];
    const int tid = threadIdx.x;
    odd[tid / 2] = x[tid];  //! race(odd)
    __syncthreads();
    if (tid < THREADS / 2) {
        out[tid] = odd[tid];
    }
}
__global__ void right(const float* x, float* out) {
    __shared__ float odd[THREADS / 2];
    const int tid = threadIdx.x;
    if (tid % 2 == 1) {
        odd[tid / 2] = x[tid];
    }
    __syncthreads();
    if (tid < THREADS / 2) {
        out[tid] = odd[tid];
    }
}
}

namespace bitonic_sort_without_barrier {
__global__ void wrong(const float* x, float* out) {
    __shared__ float keys[THREADS];
    const int tid = threadIdx.x;
    keys[tid] = x[tid];
    __syncthreads();
    for (int size = 2; size <= THREADS; size *= 2) {
        for (int stride = size / 2; stride > 0; stride /= 2) {
            const int partner = tid ^ stride;
            if (partner > tid) {
                const float low = keys[tid];  //! race(keys)
                const float high = keys[partner];  //! race(keys)
                if ((low > high) == ((tid & size) == 0)) {
                    keys[tid] = high;  //! race(keys)
                    keys[partner] = low;  //! race(keys)
                }
            }
        }
    }
    __syncthreads();
    out[tid] = keys[tid];
}
__global__ void right(const float* x, float* out) {
    __shared__ float keys[THREADS];
    const int tid = threadIdx.x;
    keys[tid] = x[tid];
    __syncthreads();
    for (int size = 2; size <= THREADS; size *= 2) {
        for (int stride = size / 2; stride > 0; stride /= 2) {
            const int partner = tid ^ stride;
            if (partner > tid) {
                const float low = keys[tid];
                const float high = keys[partner];
                if ((low > high) == ((tid & size) == 0)) {
                    keys[tid] = high;
                    keys[partner] = low;
                }
            }
            __syncthreads();
        }
    }
    out[tid] = keys[tid];
}
}

namespace same_value_from_many_threads {
__global__ void wrong(const float* x, float* out) {
    __shared__ float flag;
    const int tid = threadIdx.x;
    flag = 1;  //! race(flag) note
    __syncthreads();
    out[tid] = x[tid] + flag;
}
__global__ void right(const float* x, float* out) {
    __shared__ float flag;
    const int tid = threadIdx.x;
    if (tid == 0) {
        flag = 1;
    }
    __syncthreads();
    out[tid] = x[tid] + flag;
}
}
