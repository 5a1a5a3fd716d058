// Warp intrinsics that Numba does not have.

constexpr unsigned FULL = 0xFFFFFFFF;

// The early return of a guard comes before a ballot that still counts on all lanes.
namespace ballot_after_an_early_return {
__global__ void wrong(const int* x, int* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (x[i] % 3 != 0) {
        out[i] = -1;
    } else {
        out[i] = __popc(__ballot_sync(FULL, x[i] % 2));  //! warp_divergence
    }
}
__global__ void right(const int* x, int* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned odd = __ballot_sync(FULL, x[i] % 3 == 0 && x[i] % 2);
    out[i] = x[i] % 3 != 0 ? -1 : __popc(odd);
}
}

// The reduction intrinsic takes the members' mask, too; an int mask of all ones is the full mask in both.
namespace reduce_inside_a_branch {
__global__ void wrong(const int* x, int* out) {
    const int lane = threadIdx.x;
    if (lane >= 8) {
        out[lane] = __reduce_max_sync(FULL, x[lane]);  //! warp_divergence
    }
}
__global__ void right(const int* x, int* out) {
    const int lane = threadIdx.x;
    if (lane >= 8) {
        out[lane] = __reduce_max_sync(0xFFFFFF00, x[lane]);
    }
}
}

// Segments of eight lanes by the width argument need three exchanges.
namespace segment_sum_one_step_short {
__global__ void wrong(const float* x, float* out) {
    float total = x[threadIdx.x];
    for (int offset = 4; offset > 1; offset /= 2) {
        total += __shfl_xor_sync(FULL, total, offset, 8);  //! value
    }
    out[threadIdx.x] = total;
}
__global__ void right(const float* x, float* out) {
    float total = x[threadIdx.x];
    for (int offset = 4; offset > 0; offset /= 2) {
        total += __shfl_xor_sync(FULL, total, offset, 8);
    }
    out[threadIdx.x] = total;
}
}
