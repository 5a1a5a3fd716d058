// Memory accesses with known address patterns, one instruction of interest a kernel: what hardware counts for each of
// them are the rules that refsim's counters follow. Launched by measured_launches.py.
//
// A pattern is a table `where`: lane i accesses element where[i] of the array, or nothing if that is negative. The other
// accesses of a kernel are the same everywhere: the table is read, and the result stored, one word per lane in order.

struct alignas(8) Two { unsigned x, y; };
struct alignas(16) Four { unsigned x, y, z, w; };

__device__ inline unsigned fold(unsigned char value) { return value; }
__device__ inline unsigned fold(unsigned short value) { return value; }
__device__ inline unsigned fold(unsigned value) { return value; }
__device__ inline unsigned fold(Two value) { return value.x + value.y; }
__device__ inline unsigned fold(Four value) { return value.x + value.y + value.z + value.w; }

template <typename T> __device__ inline T made(unsigned value);
template <> __device__ inline unsigned char made<unsigned char>(unsigned value) { return value; }
template <> __device__ inline unsigned short made<unsigned short>(unsigned value) { return value; }
template <> __device__ inline unsigned made<unsigned>(unsigned value) { return value; }
template <> __device__ inline Two made<Two>(unsigned value) { return {value, value + 1}; }
template <> __device__ inline Four made<Four>(unsigned value) { return {value, value + 1, value + 2, value + 3}; }

// out[thread] = x[where[thread]]
template <typename T> __global__ void load_global(const T* x, const int* where, unsigned* out) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int place = where[thread];
    unsigned result = 0;
    if (place >= 0) {
        result = fold(x[place]);
    }
    out[thread] = result;
}

// x[where[thread]] = thread
template <typename T> __global__ void store_global(T* x, const int* where) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int place = where[thread];
    if (place >= 0) {
        x[place] = made<T>(thread);
    }
}

// The same in shared memory of 16 KiB, which each thread first fills a word of.
template <typename T> __global__ void load_shared(const int* where, unsigned* out) {
    __shared__ Four cells[1024];
    const int thread = threadIdx.x;
    const int place = where[thread];
    reinterpret_cast<volatile unsigned*>(cells)[thread] = thread;
    __syncthreads();
    unsigned result = 0;
    if (place >= 0) {
        result = fold(reinterpret_cast<const T*>(cells)[place]);
    }
    out[thread] = result;
}

template <typename T> __global__ void store_shared(const int* where, unsigned* out) {
    __shared__ Four cells[1024];
    const int thread = threadIdx.x;
    const int place = where[thread];
    if (place >= 0) {
        reinterpret_cast<T*>(cells)[place] = made<T>(thread);
    }
    __syncthreads();
    out[thread] = reinterpret_cast<volatile unsigned*>(cells)[thread];
}

// Transposing a 32×32 tile of x[32, 32] into out, block (32, 8). COLS 33 pads a row by one word.
template <int COLS> __global__ void transpose(const float* x, float* out) {
    __shared__ float tile[32][COLS];
    for (int row = threadIdx.y; row < 32; row += 8) {
        tile[row][threadIdx.x] = x[row * 32 + threadIdx.x];
    }
    __syncthreads();
    for (int row = threadIdx.y; row < 32; row += 8) {
        out[row * 32 + threadIdx.x] = tile[threadIdx.x][row];
    }
}

// The same with the columns of a row exchanged by XOR with the row's number.
__global__ void transpose_swizzled(const float* x, float* out) {
    __shared__ float tile[32][32];
    for (int row = threadIdx.y; row < 32; row += 8) {
        tile[row][threadIdx.x ^ row] = x[row * 32 + threadIdx.x];
    }
    __syncthreads();
    for (int row = threadIdx.y; row < 32; row += 8) {
        out[row * 32 + threadIdx.x] = tile[threadIdx.x][row ^ threadIdx.x];
    }
}

// cells[where[thread]] += weight[thread], results dropped
__global__ void add_global(unsigned* cells, const int* where, const unsigned* weight) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int place = where[thread];
    if (place >= 0) {
        atomicAdd(cells + place, weight[thread]);
    }
}

// and results kept
__global__ void fetch_and_add_global(unsigned* cells, const int* where, const unsigned* weight, unsigned* out) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int place = where[thread];
    unsigned before = 0;
    if (place >= 0) {
        before = atomicAdd(cells + place, weight[thread]);
    }
    out[thread] = before;
}

// in shared memory
__global__ void fetch_and_add_shared(const int* where, const unsigned* weight, unsigned* out) {
    __shared__ unsigned cells[1024];
    const int thread = threadIdx.x;
    const int place = where[thread];
    for (int cell = thread; cell < 1024; cell += blockDim.x) {
        cells[cell] = 0;
    }
    __syncthreads();
    unsigned before = 0;
    if (place >= 0) {
        before = atomicAdd(cells + place, weight[thread]);
    }
    out[thread] = before;
}

// A local array that the compiler cannot keep in registers: its places are known at run time only.
__global__ void local_array(const int* where, unsigned* out) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned mine[64];
    for (int i = 0; i < 64; i++) {
        mine[i] = i ^ thread;
    }
    const int place = where[thread];
    mine[place & 63] = 7;
    out[thread] = mine[(place >> 6) & 63];
}
