// Warp operations whose mask names lanes that are not there, or whose source lane is not.

constexpr unsigned FULL = 0xFFFFFFFF;
constexpr int WARP = 32;

namespace shuffle_inside_a_branch {
__global__ void wrong(const float* x, float* out) {
    const int lane = threadIdx.x;
    float value = x[lane];
    if (lane < 16) {
        value += __shfl_down_sync(FULL, value, 1);  //! warp_divergence
    }
    out[lane] = value;
}
__global__ void right(const float* x, float* out) {
    const int lane = threadIdx.x;
    float value = x[lane];
    const float next = __shfl_down_sync(FULL, value, 1);
    if (lane < 16) {
        value += next;
    }
    out[lane] = value;
}
}

namespace partner_beyond_a_partial_warp {
__global__ void wrong(const float* x, float* out) {
    const int i = threadIdx.x;
    out[i] = __shfl_xor_sync(FULL, x[i], 16);  //! warp_divergence
}
__global__ void right(const float* x, float* out) {
    const int i = threadIdx.x;
    out[i] = __shfl_xor_sync(FULL, x[i], 8);
}
}

namespace shuffle_past_the_edge_of_the_group {
__global__ void wrong(const float* x, float* out) {
    const int lane = threadIdx.x;
    if (lane < 24) {
        float total = x[lane];
        for (int offset = 16; offset > 0; offset /= 2) {
            total += __shfl_down_sync(0xFFFFFF, total, offset);  //! warp_divergence
        }
        if (lane == 0) {
            out[0] = total;
        }
    }
}
__global__ void right(const float* x, float* out) {
    const int lane = threadIdx.x;
    float total = lane < 24 ? x[lane] : 0;
    for (int offset = 16; offset > 0; offset /= 2) {
        total += __shfl_down_sync(FULL, total, offset);
    }
    if (lane == 0) {
        out[0] = total;
    }
}
}

namespace source_lane_not_in_mask {
__global__ void wrong(const float* x, float* out) {
    const int lane = threadIdx.x;
    if (lane < 16) {
        out[lane] = __shfl_sync(0xFFFF, x[lane], 21);  //! warp_divergence
    }
}
__global__ void right(const float* x, float* out) {
    const int lane = threadIdx.x;
    if (lane < 16) {
        out[lane] = __shfl_sync(0xFFFF, x[lane], 5);
    }
}
}

namespace caller_not_in_its_own_mask {
__global__ void wrong(const float* x, float* out) {
    const int lane = threadIdx.x;
    out[lane] = __shfl_sync(0xFFFF, x[lane], lane / 16 * 16);  //! warp_divergence
}
__global__ void right(const float* x, float* out) {
    const int lane = threadIdx.x;
    const unsigned mask = lane < 16 ? 0xFFFF : 0xFFFF0000;
    out[lane] = __shfl_sync(mask, x[lane], lane / 16 * 16);
}
}

namespace neighbour_has_returned {
constexpr int N = 20;
__global__ void wrong(const float* x, float* out) {
    const int lane = threadIdx.x;
    if (lane >= N) {
        return;
    }
    out[lane] = __shfl_down_sync(FULL, x[lane], 1);  //! warp_divergence
}
__global__ void right(const float* x, float* out) {
    const int lane = threadIdx.x;
    const float next = __shfl_down_sync(FULL, lane < N ? x[lane] : 0, 1);
    if (lane < N) {
        out[lane] = next;
    }
}
}

namespace vote_inside_a_loop_that_lanes_leave {
__global__ void wrong(const int* x, int* out) {
    const int lane = threadIdx.x;
    int rounds = 0;
    while (rounds <= x[lane] % 4) {
        rounds++;
        __any_sync(FULL, rounds > 2);  //! warp_divergence
    }
    out[lane] = rounds;
}
__global__ void right(const int* x, int* out) {
    const int lane = threadIdx.x;
    int rounds = 0;
    while (__any_sync(FULL, rounds <= x[lane] % 4)) {
        if (rounds <= x[lane] % 4) {
            rounds++;
        }
    }
    out[lane] = rounds;
}
}

namespace syncwarp_with_full_mask_in_a_branch {
__global__ void wrong(const float* x, float* out) {
    __shared__ float cells[WARP];
    const int lane = threadIdx.x;
    if (lane < 16) {
        cells[lane] = x[lane];
        __syncwarp();  //! warp_divergence
        out[lane] = cells[15 - lane];
    }
}
__global__ void right(const float* x, float* out) {
    __shared__ float cells[WARP];
    const int lane = threadIdx.x;
    if (lane < 16) {
        cells[lane] = x[lane];
        __syncwarp(0xFFFF);
        out[lane] = cells[15 - lane];
    }
}
}

namespace match_inside_a_branch {
__global__ void wrong(const int* keys, int* out) {
    const int lane = threadIdx.x;
    if (keys[lane] % 2 == 1) {
        out[lane] = __match_any_sync(FULL, keys[lane]);  //! warp_divergence
    }
}
__global__ void right(const int* keys, int* out) {
    const int lane = threadIdx.x;
    const unsigned equals = __match_any_sync(FULL, keys[lane]);
    if (keys[lane] % 2 == 1) {
        out[lane] = equals;
    }
}
}

namespace second_pass_of_the_reduction_by_few_lanes {
__device__ float warp_sum(float total) {
    for (int offset = 16; offset > 0; offset /= 2) {
        total += __shfl_down_sync(FULL, total, offset);
    }
    return total;
}
__global__ void wrong(const float* x, float* out) {
    __shared__ float partial[4];
    const int tid = threadIdx.x;
    float total = warp_sum(x[tid]);
    if (tid % WARP == 0) {
        partial[tid / WARP] = total;
    }
    __syncthreads();
    if (tid < 4) {
        total = partial[tid];
        for (int offset = 2; offset > 0; offset /= 2) {
            total += __shfl_down_sync(FULL, total, offset);  //! warp_divergence
        }
        if (tid == 0) {
            out[0] = total;
        }
    }
}
__global__ void right(const float* x, float* out) {
    __shared__ float partial[4];
    const int tid = threadIdx.x;
    float total = warp_sum(x[tid]);
    if (tid % WARP == 0) {
        partial[tid / WARP] = total;
    }
    __syncthreads();
    if (tid < WARP) {
        total = warp_sum(tid < 4 ? partial[tid] : 0);
        if (tid == 0) {
            out[0] = total;
        }
    }
}
}
