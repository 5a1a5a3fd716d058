// Orders that CUDA C++ programs get wrong: locks, last blocks, pipelines, asynchronous copies.

constexpr int THREADS = 64;

// A lock of one thread per block, in the form that also works within a warp. The critical section must be fenced on
// both sides.
namespace lock_without_fences {
__global__ void wrong(int* lock, int* total) {
    for (bool done = threadIdx.x != 0; !done;) {
        if (atomicCAS(lock, 0, 1) == 0) {
            *total = *total + 1 + blockIdx.x;  //! race(total)
            atomicExch(lock, 0);
            done = true;
        }
    }
}
__global__ void right(int* lock, int* total) {
    for (bool done = threadIdx.x != 0; !done;) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            *total = *total + 1 + blockIdx.x;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}
}

// The same lock as it is usually written: the thread spins until it has it.
namespace spin_lock_without_fences {
__global__ void wrong(int* lock, int* total) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {
        }
        *total = *total + 1 + blockIdx.x;  //! race(total)
        atomicExch(lock, 0);
    }
}
__global__ void right(int* lock, int* total) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {
        }
        __threadfence();
        *total = *total + 1 + blockIdx.x;
        __threadfence();
        atomicExch(lock, 0);
    }
}
}

// The lock is given back with a plain store.
namespace lock_released_by_a_plain_store {
using lock_without_fences::right;
__global__ void wrong(int* lock, int* total) {
    for (bool done = threadIdx.x != 0; !done;) {
        if (atomicCAS(lock, 0, 1) == 0) {  //! race(lock)
            __threadfence();
            *total = *total + 1 + blockIdx.x;  //! race(total)
            __threadfence();
            *lock = 0;  //! race(lock)
            done = true;
        }
    }
}
}

// Whoever does not get the lock at once goes on without it.
namespace lock_asked_once {
using lock_without_fences::right;
__global__ void wrong(int* lock, int* total) {
    if (threadIdx.x == 0) {
        const bool mine = atomicCAS(lock, 0, 1) == 0;
        __threadfence();
        *total = *total + 1 + blockIdx.x;  //! race(total)
        __threadfence();
        if (mine) {
            atomicAdd(lock, 0);
        }
    }
}
}

// A thread that has the lock waits for it.
namespace lock_asked_for_twice {
__device__ void acquire(int* lock) {
    while (atomicCAS(lock, 0, 1) != 0) {  //! deadlock
    }
    __threadfence();
}
__device__ void release(int* lock) {
    __threadfence();
    atomicExch(lock, 0);
}
__global__ void wrong(int* lock, int* total) {
    if (threadIdx.x != 0) {
        return;
    }
    acquire(lock);
    *total += 1;
    acquire(lock);
    *total += 2;
    release(lock);
    release(lock);
}
__global__ void right(int* lock, int* total) {
    if (threadIdx.x != 0) {
        return;
    }
    acquire(lock);
    *total += 1;
    release(lock);
    acquire(lock);
    *total += 2;
    release(lock);
}
}

// An atomic maximum of floats by compare and swap: without the loop, losers give up.
namespace compare_and_swap_without_retry {
__global__ void wrong(const float* x, float* out) {
    int* cell = reinterpret_cast<int*>(out);
    const float value = x[blockIdx.x * blockDim.x + threadIdx.x];
    const int old = atomicAdd(cell, 0);
    if (__int_as_float(old) < value) {
        atomicCAS(cell, old, __float_as_int(value));  //! value
    }
}
__global__ void right(const float* x, float* out) {
    int* cell = reinterpret_cast<int*>(out);
    const float value = x[blockIdx.x * blockDim.x + threadIdx.x];
    int old = atomicAdd(cell, 0), assumed;
    do {
        assumed = old;
        if (__int_as_float(assumed) >= value) {
            break;
        }
        old = atomicCAS(cell, assumed, __float_as_int(value));
    } while (old != assumed);
}
}

// The partial sums of all blocks, folded by the last one, in parallel.
namespace last_block_sum_without_fence {
__device__ unsigned tickets = 0;
__device__ void fold(float* cells, int tid) {
    for (int stride = THREADS / 2; stride > 0; stride /= 2) {
        __syncthreads();
        if (tid < stride) {
            cells[tid] += cells[tid + stride];
        }
    }
    __syncthreads();
}
__global__ void wrong(const float* x, volatile float* partial, float* out) {
    __shared__ float cells[THREADS];
    __shared__ bool is_last;
    const int tid = threadIdx.x;
    cells[tid] = x[blockIdx.x * blockDim.x + tid];
    fold(cells, tid);
    if (tid == 0) {
        partial[blockIdx.x] = cells[0];  //! race(partial)
        is_last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last) {
        cells[tid] = tid < gridDim.x ? partial[tid] : 0;  //! race(partial)
        fold(cells, tid);
        if (tid == 0) {
            *out = cells[0];
        }
    }
}
__global__ void right(const float* x, volatile float* partial, float* out) {
    __shared__ float cells[THREADS];
    __shared__ bool is_last;
    const int tid = threadIdx.x;
    cells[tid] = x[blockIdx.x * blockDim.x + tid];
    fold(cells, tid);
    if (tid == 0) {
        partial[blockIdx.x] = cells[0];
        __threadfence();
        is_last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (is_last) {
        cells[tid] = tid < gridDim.x ? partial[tid] : 0;
        fold(cells, tid);
        if (tid == 0) {
            *out = cells[0];
        }
    }
}
}

// Tiles pass through two buffers by pointer exchange; the barrier at the end of the step is missing.
namespace swapped_pointers_without_barrier {
constexpr int STEPS = 5;
__global__ void wrong(const float* x, float* out) {
    __shared__ float buffers[2][THREADS];
    const int tid = threadIdx.x;
    float* current = buffers[0];
    float* next = buffers[1];
    current[tid] = x[tid];
    __syncthreads();
    for (int step = 0; step < STEPS; step++) {
        next[tid] = current[tid] + current[(tid + 1) % THREADS];  //! race(buffers)
        float* const previous = current;
        current = next;
        next = previous;
    }
    out[tid] = current[tid];
}
__global__ void right(const float* x, float* out) {
    __shared__ float buffers[2][THREADS];
    const int tid = threadIdx.x;
    float* current = buffers[0];
    float* next = buffers[1];
    current[tid] = x[tid];
    __syncthreads();
    for (int step = 0; step < STEPS; step++) {
        next[tid] = current[tid] + current[(tid + 1) % THREADS];
        __syncthreads();
        float* const previous = current;
        current = next;
        next = previous;
    }
    out[tid] = current[tid];
}
}

// A vector of four is written by one thread and its parts are read by three others.
namespace vector_store_read_by_others {
__global__ void wrong(const float* x, float* out) {
    __shared__ float4 fours[THREADS / 4];
    const int tid = threadIdx.x;
    if (tid % 4 == 0) {
        fours[tid / 4] = *reinterpret_cast<const float4*>(x + tid);  //! race(fours)
    }
    out[tid] = reinterpret_cast<float*>(fours)[tid ^ 3];  //! race(fours)
}
__global__ void right(const float* x, float* out) {
    __shared__ float4 fours[THREADS / 4];
    const int tid = threadIdx.x;
    if (tid % 4 == 0) {
        fours[tid / 4] = *reinterpret_cast<const float4*>(x + tid);
    }
    __syncthreads();
    out[tid] = reinterpret_cast<float*>(fours)[tid ^ 3];
}
}

// Two threads own one 32-bit word: bytes of their own do not race, a word that covers both does.
namespace flags_packed_into_a_word {
__global__ void wrong(const int* x, unsigned char* out) {
    __shared__ unsigned words[THREADS / 4];
    const int tid = threadIdx.x;
    if (tid % 4 == 0) {
        words[tid / 4] = 0;
    }
    __syncthreads();
    words[tid / 4] |= (x[tid] & 1u) << (tid % 4 * 8);  //! race(words)
    __syncthreads();
    out[tid] = reinterpret_cast<unsigned char*>(words)[tid];
}
__global__ void right(const int* x, unsigned char* out) {
    __shared__ unsigned words[THREADS / 4];
    const int tid = threadIdx.x;
    reinterpret_cast<unsigned char*>(words)[tid] = x[tid] & 1;
    __syncthreads();
    out[tid] = reinterpret_cast<unsigned char*>(words)[tid];
}
}

// A static variable of the kernel's file is one for all blocks.
namespace device_variable_shared_by_blocks {
__device__ int current;
__global__ void wrong(const int* x, int* out) {
    if (threadIdx.x == 0) {
        current = x[blockIdx.x];  //! race(current)
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = current;  //! race(current)
}
__global__ void right(const int* x, int* out) {
    __shared__ int mine;
    if (threadIdx.x == 0) {
        mine = x[blockIdx.x];
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = mine;
}
}
