// What assumes 32 lanes, on a wavefront of 64. HIP C++.

#include <hip/hip_runtime.h>

// The 32 lanes that the loop folds are half of a wavefront of 64.
namespace reduction_of_32_lanes_on_64 {
__global__ void wrong(const float* x, float* out) {
    const int tid = threadIdx.x;
    float total = x[tid];
    for (int offset = 16; offset > 0; offset /= 2) {  //! value
        total += __shfl_down(total, offset);
    }
    if (tid % warpSize == 0) {
        out[tid / warpSize] = total;
    }
}
__global__ void right(const float* x, float* out) {
    const int tid = threadIdx.x;
    float total = x[tid];
    for (int offset = warpSize / 2; offset > 0; offset /= 2) {
        total += __shfl_down(total, offset);
    }
    if (tid % warpSize == 0) {
        out[tid / warpSize] = total;
    }
}
}

// __ballot gives 64 bits on a wavefront of 64; an unsigned keeps the lower half.
namespace ballot_kept_in_32_bits {
__global__ void wrong(const int* x, int* out) {
    const unsigned votes = __ballot(x[threadIdx.x] % 3 == 0);  //! value
    out[threadIdx.x] = __popc(votes);
}
__global__ void right(const int* x, int* out) {
    const unsigned long long votes = __ballot(x[threadIdx.x] % 3 == 0);
    out[threadIdx.x] = __popcll(votes);
}
}

// A mask of 32 lanes, as CUDA writes it, names the lower half of a wavefront: the upper half calls all the same.
namespace mask_of_32_lanes_on_64 {
__global__ void wrong(const float* x, float* out) {
    const int tid = threadIdx.x;
    out[tid] = __shfl_xor_sync(0xFFFFFFFFull, x[tid], 1);  //! warp_divergence
}
__global__ void right(const float* x, float* out) {
    const int tid = threadIdx.x;
    out[tid] = __shfl_xor_sync(~0ull, x[tid], 1);
}
}

// Lane and warp by the constants of another device: every second half-wavefront writes to a cell of its own.
namespace warp_number_by_32_on_64 {
__global__ void wrong(const float* x, float* out) {
    __shared__ float partial[2];
    const int tid = threadIdx.x;
    float total = x[tid];
    for (int offset = warpSize / 2; offset > 0; offset /= 2) {
        total += __shfl_xor(total, offset);
    }
    if (tid % 32 == 0) {
        partial[tid / 32] = total;  //! out_of_bounds(partial)
    }
    __syncthreads();
    if (tid == 0) {
        out[0] = partial[0] + partial[1];
    }
}
__global__ void right(const float* x, float* out) {
    __shared__ float partial[2];
    const int tid = threadIdx.x;
    float total = x[tid];
    for (int offset = warpSize / 2; offset > 0; offset /= 2) {
        total += __shfl_xor(total, offset);
    }
    if (tid % warpSize == 0) {
        partial[tid / warpSize] = total;
    }
    __syncthreads();
    if (tid == 0) {
        out[0] = partial[0] + partial[1];
    }
}
}
