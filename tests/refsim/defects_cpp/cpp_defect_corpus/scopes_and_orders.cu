// How far atomic operations and fences reach, and in which order: scopes, volatile flags, release and acquire.

#include <cuda/atomic>

constexpr int THREADS = 64;

// An atomic operation of block scope is one for its own block only.
namespace block_scoped_counter {
__global__ void wrong(int* counter) {
    atomicAdd_block(counter, 1);  //! race(counter)
}
__global__ void right(int* counter) {
    atomicAdd(counter, 1);
}
}

// One block takes part with the wide operation, which does not help.
namespace one_block_adds_with_block_scope {
__global__ void wrong(int* counter) {
    if (blockIdx.x == 0) {
        atomicAdd_block(counter, 1);  //! race(counter)
    } else {
        atomicAdd(counter, 1);  //! race(counter)
    }
}
__global__ void right(int* counter) {
    atomicAdd(counter, 1);
}
}

// A lock of block scope keeps out the own block's threads.
namespace block_scoped_lock {
__global__ void wrong(int* lock, int* total) {
    if (threadIdx.x == 0) {
        while (atomicCAS_block(lock, 0, 1) != 0) {  //! race(lock)
        }
        __threadfence();
        *total = *total + 1 + blockIdx.x;  //! race(total)
        __threadfence();
        atomicExch_block(lock, 0);  //! race(lock)
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

// The last block sums what the others made visible to themselves only.
namespace block_fence_before_the_ticket {
__global__ void wrong(const float* x, float* partial, unsigned* tickets, float* out) {
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = 2 * x[blockIdx.x];  //! race(partial)
        __threadfence_block();
        if (atomicInc(tickets, gridDim.x - 1) == gridDim.x - 1) {
            float sum = 0;
            for (int i = 0; i < gridDim.x; i++) {
                sum += partial[i];  //! race(partial)
            }
            *out = sum;
        }
    }
}
__global__ void right(const float* x, float* partial, unsigned* tickets, float* out) {
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = 2 * x[blockIdx.x];
        __threadfence();
        if (atomicInc(tickets, gridDim.x - 1) == gridDim.x - 1) {
            float sum = 0;
            for (int i = 0; i < gridDim.x; i++) {
                sum += partial[i];
            }
            *out = sum;
        }
    }
}
}

// Within a block a fence of block scope is enough, and without any the message may come after its flag.
namespace handed_to_another_warp_without_fence {
__global__ void wrong(const float* x, float* out) {
    __shared__ float message;
    __shared__ int flag;
    if (threadIdx.x == 0) {
        flag = 0;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        message = x[0];  //! race(message)
        atomicExch_block(&flag, 1);
    }
    if (threadIdx.x == 32) {
        while (atomicAdd_block(&flag, 0) == 0) {
        }
        __threadfence_block();
        out[0] = message;  //! race(message)
    }
}
__global__ void right(const float* x, float* out) {
    __shared__ float message;
    __shared__ int flag;
    if (threadIdx.x == 0) {
        flag = 0;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        message = x[0];
        __threadfence_block();
        atomicExch_block(&flag, 1);
    }
    if (threadIdx.x == 32) {
        while (atomicAdd_block(&flag, 0) == 0) {
        }
        __threadfence_block();
        out[0] = message;
    }
}
}

// The fence comes after the flag: too late for the message.
namespace fence_behind_the_flag {
__global__ void wrong(const float* x, float* message, int* flag, float* out) {
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        *message = x[0];  //! race(message)
        atomicExch(flag, 1);
        __threadfence();
    } else if (threadIdx.x == 0) {
        while (atomicAdd(flag, 0) == 0) {
        }
        __threadfence();
        out[blockIdx.x] = *message;  //! race(message)
    }
}
__global__ void right(const float* x, float* message, int* flag, float* out) {
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        *message = x[0];
        __threadfence();
        atomicExch(flag, 1);
    } else if (threadIdx.x == 0) {
        while (atomicAdd(flag, 0) == 0) {
        }
        __threadfence();
        out[blockIdx.x] = *message;
    }
}
}

// All threads write the message, thread 0 alone fences, and has not met the others.
namespace fence_of_one_thread_for_all {
__global__ void wrong(const float* x, float* message, int* flag, float* out) {
    const int tid = threadIdx.x;
    if (blockIdx.x == 0) {
        message[tid] = x[tid];  //! race(message)
        if (tid == 0) {
            __threadfence();
            atomicExch(flag, 1);
        }
    } else {
        if (tid == 0) {
            while (atomicAdd(flag, 0) == 0) {
            }
            __threadfence();
        }
        __syncthreads();
        out[tid] = message[tid];  //! race(message)
    }
}
__global__ void right(const float* x, float* message, int* flag, float* out) {
    const int tid = threadIdx.x;
    if (blockIdx.x == 0) {
        message[tid] = x[tid];
        __syncthreads();
        if (tid == 0) {
            __threadfence();
            atomicExch(flag, 1);
        }
    } else {
        if (tid == 0) {
            while (atomicAdd(flag, 0) == 0) {
            }
            __threadfence();
        }
        __syncthreads();
        out[tid] = message[tid];
    }
}
}

// A barrier of all blocks made by hand, with the count but without the fence.
namespace hand_made_grid_barrier_without_fence {
__global__ void wrong(const float* x, float* middle, int* arrived, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int n = gridDim.x * blockDim.x;
    middle[i] = 2 * x[i];  //! race(middle)
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < gridDim.x) {
        }
    }
    __syncthreads();
    out[i] = middle[n - 1 - i];  //! race(middle)
}
__global__ void right(const float* x, float* middle, int* arrived, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int n = gridDim.x * blockDim.x;
    middle[i] = 2 * x[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < gridDim.x) {
        }
        __threadfence();
    }
    __syncthreads();
    out[i] = middle[n - 1 - i];
}
}

// A volatile flag is written and read as it stands, but orders nothing by itself.
namespace volatile_flag_without_fence {
__global__ void wrong(const float* x, float* message, volatile int* flag, float* out) {
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        *message = x[0];  //! race(message)
        *flag = 1;
    } else if (threadIdx.x == 0) {
        while (*flag == 0) {
        }
        __threadfence();
        out[blockIdx.x] = *message;  //! race(message)
    }
}
__global__ void right(const float* x, float* message, volatile int* flag, float* out) {
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        *message = x[0];
        __threadfence();
        *flag = 1;
    } else if (threadIdx.x == 0) {
        while (*flag == 0) {
        }
        __threadfence();
        out[blockIdx.x] = *message;
    }
}
}

// A flag that is not volatile: the compiler may read it once, before the loop.
namespace flag_without_volatile {
using volatile_flag_without_fence::right;
__global__ void wrong(const float* x, float* message, int* flag, float* out) {
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        *message = x[0];  //! race(message)
        __threadfence();
        *flag = 1;  //! race(flag)
    } else if (threadIdx.x == 0) {
        while (*flag == 0) {  //! race(flag)
        }
        __threadfence();
        out[blockIdx.x] = *message;  //! race(message)
    }
}
}

// One volatile flag per block and a chain of blocks: the fence is missing on one link only.
namespace volatile_chain_with_a_weak_link {
__global__ void wrong(const int* x, int* total, volatile int* state) {
    if (threadIdx.x == 0) {
        int before = 0;
        if (blockIdx.x > 0) {
            while (state[blockIdx.x - 1] == 0) {
            }
            __threadfence();
            before = total[blockIdx.x - 1];  //! race(total)
        }
        total[blockIdx.x] = before + x[blockIdx.x];  //! race(total)
        if (blockIdx.x != 1) {
            __threadfence();
        }
        state[blockIdx.x] = 1;
    }
}
__global__ void right(const int* x, int* total, volatile int* state) {
    if (threadIdx.x == 0) {
        int before = 0;
        if (blockIdx.x > 0) {
            while (state[blockIdx.x - 1] == 0) {
            }
            __threadfence();
            before = total[blockIdx.x - 1];
        }
        total[blockIdx.x] = before + x[blockIdx.x];
        __threadfence();
        state[blockIdx.x] = 1;
    }
}
}

// Volatile is not atomic: two threads may read the same old count.
namespace volatile_counter {
__global__ void wrong(volatile int* counter) {
    *counter = *counter + 1;  //! race(counter)
}
__global__ void right(volatile int* counter) {
    atomicAdd(const_cast<int*>(counter), 1);
}
}

// A release that is none.
namespace relaxed_store_of_the_flag {
template <cuda::thread_scope scope>
__device__ void send(const float* x, float* message, int* flag, cuda::memory_order order) {
    *message = x[0];  //! race(message)
    cuda::atomic_ref<int, scope>(*flag).store(1, order);
}
template <cuda::thread_scope scope>
__device__ void receive(float* message, int* flag, float* out) {
    cuda::atomic_ref<int, scope> seen(*flag);
    while (seen.load(cuda::memory_order_acquire) == 0) {
    }
    out[blockIdx.x] = *message;  //! race(message)
}
__global__ void wrong(const float* x, float* message, int* flag, float* out) {
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        send<cuda::thread_scope_device>(x, message, flag, cuda::memory_order_relaxed);
    } else if (threadIdx.x == 0) {
        receive<cuda::thread_scope_device>(message, flag, out);
    }
}
__global__ void right(const float* x, float* message, int* flag, float* out) {
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        send<cuda::thread_scope_device>(x, message, flag, cuda::memory_order_release);
    } else if (threadIdx.x == 0) {
        receive<cuda::thread_scope_device>(message, flag, out);
    }
}
}

// Release and acquire of block scope, between blocks.
namespace release_of_block_scope_between_blocks {
template <cuda::thread_scope scope>
__device__ void pass_on(const float* x, float* message, int* flag, float* out) {
    cuda::atomic_ref<int, scope> sent(*flag);
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        *message = x[0];  //! race(message)
        sent.fetch_add(1, cuda::memory_order_release);  //! race(flag)
    } else if (threadIdx.x == 0) {
        int seen = 0;
        while (seen == 0) {
            seen = sent.fetch_add(0, cuda::memory_order_acquire);  //! race(flag)
        }
        out[blockIdx.x] = *message;  //! race(message)
    }
}
__global__ void wrong(const float* x, float* message, int* flag, float* out) {
    pass_on<cuda::thread_scope_block>(x, message, flag, out);
}
__global__ void right(const float* x, float* message, int* flag, float* out) {
    pass_on<cuda::thread_scope_device>(x, message, flag, out);
}
}

// A fence of block scope does not make a relaxed store of device scope a release.
namespace narrow_fence_before_a_wide_store {
template <cuda::thread_scope scope>
__device__ void pass_on(const float* x, float* message, int* flag, float* out) {
    cuda::atomic_ref<int, cuda::thread_scope_device> sent(*flag);
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        *message = x[0];  //! race(message)
        cuda::atomic_thread_fence(cuda::memory_order_release, scope);
        sent.store(1, cuda::memory_order_relaxed);
    } else if (threadIdx.x == 0) {
        while (sent.load(cuda::memory_order_acquire) == 0) {
        }
        out[blockIdx.x] = *message;  //! race(message)
    }
}
__global__ void wrong(const float* x, float* message, int* flag, float* out) {
    pass_on<cuda::thread_scope_block>(x, message, flag, out);
}
__global__ void right(const float* x, float* message, int* flag, float* out) {
    pass_on<cuda::thread_scope_device>(x, message, flag, out);
}
}

// The last block counts with a relaxed ticket, which hands nothing on.
namespace relaxed_ticket_of_the_last_block {
__device__ void fold(const float* x, float* partial, unsigned* tickets, float* out, cuda::memory_order order) {
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = 2 * x[blockIdx.x];  //! race(partial)
        cuda::atomic_ref<unsigned, cuda::thread_scope_device> ticket(*tickets);
        if (ticket.fetch_add(1, order) == gridDim.x - 1) {
            float sum = 0;
            for (int i = 0; i < gridDim.x; i++) {
                sum += partial[i];  //! race(partial)
            }
            *out = sum;
        }
    }
}
__global__ void wrong(const float* x, float* partial, unsigned* tickets, float* out) {
    fold(x, partial, tickets, out, cuda::memory_order_relaxed);
}
__global__ void right(const float* x, float* partial, unsigned* tickets, float* out) {
    fold(x, partial, tickets, out, cuda::memory_order_acq_rel);
}
}
