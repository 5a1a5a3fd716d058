// Pointers and indices as only C++ has them: 32-bit overflow, misalignment, vectors, records.

constexpr int THREADS = 64;

__device__ int grid_index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// x[-1] is no element of the array; in Numba it is the last one.
namespace negative_index_does_not_wrap {
__global__ void wrong(const float* x, float* out) {
    const int i = grid_index();
    out[i] = x[i] + x[i - 1];  //! out_of_bounds(x)
}
__global__ void right(const float* x, float* out) {
    const int i = grid_index();
    out[i] = x[i] + (i > 0 ? x[i - 1] : 0);
}
}

// The product of row and pitch is an int, and passes 2^31 before it becomes an address.
namespace index_overflows_int {
__global__ void wrong(const unsigned char* x, int pitch, unsigned char* out) {
    const int row = grid_index();
    out[row] = x[row * pitch];  //! out_of_bounds
}
__global__ void right(const unsigned char* x, int pitch, unsigned char* out) {
    const int row = grid_index();
    out[row] = x[static_cast<long long>(row) * pitch];
}
}

// 2^32 comes back as 0: the access is in bounds, and reads another element.
namespace index_overflows_int_and_comes_back {
__global__ void wrong(const unsigned char* x, int pitch, unsigned char* out) {
    const int row = 4 * grid_index();
    out[row / 4] = x[row * pitch];  //! out_of_bounds
}
__global__ void right(const unsigned char* x, int pitch, unsigned char* out) {
    const int row = 4 * grid_index();
    out[row / 4] = x[static_cast<long long>(row) * pitch];
}
}

// An unsigned index wraps by definition.
namespace index_overflows_unsigned {
__global__ void wrong(const unsigned char* x, unsigned pitch, unsigned char* out) {
    const unsigned row = grid_index();
    out[row] = x[row * pitch];  //! value
}
__global__ void right(const unsigned char* x, unsigned pitch, unsigned char* out) {
    const unsigned row = grid_index();
    out[row] = x[static_cast<size_t>(row) * pitch];
}
}

// 16 bytes from an address that is a multiple of 4: two rows of odd length behind each other.
namespace misaligned_vector_load {
constexpr int ROW = 33;
__global__ void wrong(const float* x, float* out) {
    const float* row = x + blockIdx.x * ROW;
    const float4 four = reinterpret_cast<const float4*>(row)[threadIdx.x];  //! misaligned(x)
    out[blockIdx.x * 8 + threadIdx.x] = four.x + four.y + four.z + four.w;
}
__global__ void right(const float* x, float* out) {
    const float* four = x + blockIdx.x * ROW + 4 * threadIdx.x;
    out[blockIdx.x * 8 + threadIdx.x] = four[0] + four[1] + four[2] + four[3];
}
}

// The same for a store, and for 8 bytes.
namespace misaligned_vector_store {
__global__ void wrong(const float* x, float* out) {
    const int i = threadIdx.x;
    reinterpret_cast<float2*>(out + 1)[i] = make_float2(x[2 * i], x[2 * i + 1]);  //! misaligned(out)
}
__global__ void right(const float* x, float* out) {
    const int i = threadIdx.x;
    out[2 * i + 1] = x[2 * i];
    out[2 * i + 2] = x[2 * i + 1];
}
}

// A view of four floats has its last float past the end, the first three inside.
namespace vector_load_past_the_ragged_end {
constexpr int N = 30;
__global__ void wrong(const float* x, float* out) {
    const int i = 4 * threadIdx.x;
    if (i < N) {
        const float4 four = *reinterpret_cast<const float4*>(x + i);  //! out_of_bounds(x)
        *reinterpret_cast<float4*>(out + i) = four;
    }
}
__global__ void right(const float* x, float* out) {
    const int i = 4 * threadIdx.x;
    if (i + 3 < N) {
        *reinterpret_cast<float4*>(out + i) = *reinterpret_cast<const float4*>(x + i);
    } else {
        for (int k = i; k < N; k++) {
            out[k] = x[k];
        }
    }
}
}

// The launch reserves one cell for the left halo; the kernel writes a right one, too.
namespace dynamic_shared_off_by_one {
__global__ void wrong(const float* x, float* out) {
    extern __shared__ float window[];
    const int tid = threadIdx.x;
    window[tid + 1] = x[tid];
    if (tid == 0) {
        window[0] = 0;
        window[blockDim.x + 1] = 0;  //! out_of_bounds
    }
    __syncthreads();
    out[tid] = window[tid] + window[tid + 1];
}
__global__ void right(const float* x, float* out) {
    extern __shared__ float window[];
    const int tid = threadIdx.x;
    window[tid + 1] = x[tid];
    if (tid == 0) {
        window[0] = 0;
    }
    __syncthreads();
    out[tid] = window[tid] + window[tid + 1];
}
}

// The pointer walks; it is compared with the end, but a step too late.
namespace walking_pointer_passes_the_end {
__global__ void wrong(const float* x, float* out) {
    float total = 0;
    const float* end = x + 60;
    for (const float* p = x + threadIdx.x; p <= end; p += 30) {
        total += *p;  //! out_of_bounds(x)
    }
    out[threadIdx.x] = total;
}
__global__ void right(const float* x, float* out) {
    float total = 0;
    const float* end = x + 60;
    for (const float* p = x + threadIdx.x; p < end; p += 30) {
        total += *p;
    }
    out[threadIdx.x] = total;
}
}

// An optional bias was not given: the null pointer is read.
namespace null_pointer_read {
__global__ void wrong(const float* x, const float* bias, float* out) {
    const int i = grid_index();
    out[i] = x[i] + bias[i];  //! out_of_bounds
}
__global__ void right(const float* x, const float* bias, float* out) {
    const int i = grid_index();
    out[i] = x[i] + (bias != nullptr ? bias[i] : 0);
}
}

// The neighbour of the last record.
namespace struct_array_one_record_too_many {
struct Particle {
    float mass;
    float position[2];
};
__global__ void wrong(const Particle* particles, float* out) {
    const int i = grid_index();
    out[i] = particles[i + 1].position[1] - particles[i].position[1];  //! out_of_bounds(particles)
}
__global__ void right(const Particle* particles, float* out) {
    const int i = grid_index();
    if (i + 1 < THREADS) {
        out[i] = particles[i + 1].position[1] - particles[i].position[1];
    }
}
}
