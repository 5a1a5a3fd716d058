// Atomic and plain accesses of one cell, and values that several threads store.

constexpr int THREADS = 64;

// The maximum is atomic, where it was is not: a loser may write its place last.
namespace place_of_the_maximum_stored_plainly {
__global__ void wrong(const int* x, int* best, int* place) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (atomicMax(best, x[i]) < x[i]) {
        *place = i;  //! race(place)
    }
}
__global__ void right(const int* x, int* best, int* place) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int left = 0; left < gridDim.x * blockDim.x; left++) {
        if (x[left] > x[i]) {
            return;
        }
    }
    *best = x[i];
    *place = i;
}
}

// Bits of one word: one thread stores it whole while the others set their bits.
namespace word_stored_while_others_set_bits {
__global__ void wrong(unsigned* word) {
    if (threadIdx.x == 0) {
        *word = 1;  //! race(word)
    } else if (threadIdx.x < 32) {
        atomicOr(word, 1u << threadIdx.x);  //! race(word)
    }
}
__global__ void right(unsigned* word) {
    if (threadIdx.x < 32) {
        atomicOr(word, 1u << threadIdx.x);
    }
}
}

// The slot is exchanged atomically by some and looked at plainly by another.
namespace mailbox_peeked_at {
__global__ void wrong(int* box, int* out) {
    const int tid = threadIdx.x;
    if (tid == 0) {
        atomicExch(box, 7);  //! race(box)
    }
    if (tid == 32) {
        out[0] = *box == 7;  //! race(box)
    }
}
__global__ void right(int* box, int* out) {
    const int tid = threadIdx.x;
    if (tid == 0) {
        atomicExch(box, 7);
    }
    __syncthreads();
    if (tid == 32) {
        out[0] = *box == 7;
    }
}
}

// A place reserved atomically, and filled; the count is read plainly by a thread that fills on.
namespace append_and_read_the_length {
__global__ void wrong(const int* x, int* length, int* list, int* out) {
    const int i = threadIdx.x;
    if (x[i] % 2 == 0) {
        list[atomicAdd(length, 1)] = x[i];  //! race(length)
    }
    if (i == 0) {
        out[0] = *length;  //! race(length)
    }
}
__global__ void right(const int* x, int* length, int* list, int* out) {
    const int i = threadIdx.x;
    if (x[i] % 2 == 0) {
        list[atomicAdd(length, 1)] = x[i];
    }
    __syncthreads();
    if (i == 0) {
        out[0] = *length;
    }
}
}

// The list itself: its entries are read by a block that knows the length, but not that they have arrived.
namespace list_read_by_its_length {
__global__ void wrong(const int* x, int* length, int* list, int* out) {
    const int i = threadIdx.x;
    if (i < 32) {
        list[atomicAdd(length, 1)] = x[i];  //! race(list)
    } else {
        const int known = atomicAdd(length, 0);
        if (i == 32 && known == 32) {
            out[0] = list[0];  //! race(list)
        }
    }
}
__global__ void right(const int* x, int* length, int* list, int* out) {
    const int i = threadIdx.x;
    if (i < 32) {
        list[atomicAdd(length, 1)] = x[i];
    }
    __syncthreads();
    const int known = atomicAdd(length, 0);
    if (i == 32 && known == 32) {
        out[0] = list[0];
    }
}
}

// All store 5, but one of them stored 9 on the way, which may come last.
namespace another_value_on_the_way {
__global__ void wrong(int* cell) {
    if (threadIdx.x == 0) {
        *cell = 9;  //! race(cell)
    }
    *cell = 5;  //! race(cell)
}
__global__ void right(int* cell) {
    if (threadIdx.x == 0) {
        *cell = 9;
    }
    __syncthreads();
    if (threadIdx.x == 32) {
        *cell = 5;
    }
}
}

// The same value from all, and another from one.
namespace cleared_by_all_and_set_by_one {
__global__ void wrong(int* out) {
    __shared__ int found;
    found = 0;  //! race(found)
    if (threadIdx.x == 7) {
        found = 1;  //! race(found)
    }
    __syncthreads();
    out[threadIdx.x] = found;
}
__global__ void right(int* out) {
    __shared__ int found;
    if (threadIdx.x == 0) {
        found = 0;
    }
    __syncthreads();
    if (threadIdx.x == 7) {
        found = 1;
    }
    __syncthreads();
    out[threadIdx.x] = found;
}
}

// A flag that all threads raise in every round: the same value each time.
namespace flag_raised_in_every_round {
__global__ void wrong(int* flag) {
    for (int round = 0; round < 3; round++) {
        *flag = 1;  //! race(flag) note
    }
}
__global__ void right(int* flag) {
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        *flag = 1;
    }
}
}

// Blocks store one value, but read it back at once: another block may still write.
namespace common_value_read_back {
__global__ void wrong(int* ready, int* out) {
    if (threadIdx.x == 0) {
        *ready = 1;  //! race(ready)
        out[blockIdx.x] = *ready;  //! race(ready)
    }
}
__global__ void right(int* ready, int* out) {
    if (threadIdx.x == 0) {
        atomicExch(ready, 1);
        out[blockIdx.x] = atomicAdd(ready, 0);
    }
}
}
