// Lanes of a warp that rely on lockstep, and buffers that are used again: in the next round, by a copy, by turns.

#include <cooperative_groups.h>
#include <cuda_pipeline.h>

constexpr int THREADS = 64;

// Volatile keeps the values in memory; it does not keep the lanes together.
namespace volatile_warp_reduction {
__global__ void wrong(const float* x, float* out) {
    __shared__ float cells[64];
    volatile float* mine = cells;
    const int tid = threadIdx.x;
    mine[tid] = x[tid];
    __syncthreads();
    if (tid < 32) {
        for (int stride = 32; stride > 0; stride /= 2) {
            mine[tid] = mine[tid] + mine[tid + stride];  //! race(cells)
        }
    }
    if (tid == 0) {
        out[0] = mine[0];
    }
}
__global__ void right(const float* x, float* out) {
    __shared__ float cells[64];
    volatile float* mine = cells;
    const int tid = threadIdx.x;
    mine[tid] = x[tid];
    __syncthreads();
    if (tid < 32) {
        for (int stride = 32; stride > 0; stride /= 2) {
            const float sum = mine[tid] + mine[tid + stride];
            __syncwarp();
            mine[tid] = sum;
            __syncwarp();
        }
    }
    if (tid == 0) {
        out[0] = mine[0];
    }
}
}

// An inclusive scan of a warp: lanes ahead overwrite what lanes behind have yet to read.
namespace warp_scan_without_syncwarp {
__global__ void wrong(const int* x, int* out) {
    __shared__ int cells[32];
    const int lane = threadIdx.x;
    cells[lane] = x[lane];
    __syncwarp();
    for (int step = 1; step < 32; step *= 2) {
        const int before = lane >= step ? cells[lane - step] : 0;  //! race(cells)
        cells[lane] += before;  //! race(cells)
        __syncwarp();
    }
    out[lane] = cells[lane];
}
__global__ void right(const int* x, int* out) {
    __shared__ int cells[32];
    const int lane = threadIdx.x;
    cells[lane] = x[lane];
    __syncwarp();
    for (int step = 1; step < 32; step *= 2) {
        const int before = lane >= step ? cells[lane - step] : 0;
        __syncwarp();
        cells[lane] += before;
        __syncwarp();
    }
    out[lane] = cells[lane];
}
}

// Each half of the warp meets by itself; the values cross from one to the other.
namespace syncwarp_of_half_a_warp {
__global__ void wrong(const int* x, int* out) {
    __shared__ int cells[32];
    const int lane = threadIdx.x;
    cells[lane] = x[lane];  //! race(cells)
    if (lane < 16) {
        __syncwarp(0x0000ffff);
    } else {
        __syncwarp(0xffff0000);
    }
    out[lane] = cells[31 - lane];  //! race(cells)
}
__global__ void right(const int* x, int* out) {
    __shared__ int cells[32];
    const int lane = threadIdx.x;
    cells[lane] = x[lane];
    __syncwarp();
    out[lane] = cells[31 - lane];
}
}

// A shuffle passes a register; it does not order memory.
namespace shuffle_taken_for_a_barrier {
__global__ void wrong(const int* x, int* out) {
    __shared__ int cells[32];
    const int lane = threadIdx.x;
    cells[lane] = x[lane];  //! race(cells)
    const int step = __shfl_sync(0xffffffff, x[1], 0);
    out[lane] = cells[(lane + step) % 32];  //! race(cells)
}
__global__ void right(const int* x, int* out) {
    __shared__ int cells[32];
    const int lane = threadIdx.x;
    cells[lane] = x[lane];
    const int step = __shfl_sync(0xffffffff, x[1], 0);
    __syncwarp();
    out[lane] = cells[(lane + step) % 32];
}
}

// The first lane of each warp leaves a result for the others.
namespace result_of_the_first_lane {
__global__ void wrong(const int* x, int* out) {
    __shared__ int found[2];
    const int tid = threadIdx.x;
    if (tid % 32 == 0) {
        found[tid / 32] = x[tid] + 1;  //! race(found)
    }
    out[tid] = found[tid / 32];  //! race(found)
}
__global__ void right(const int* x, int* out) {
    __shared__ int found[2];
    const int tid = threadIdx.x;
    if (tid % 32 == 0) {
        found[tid / 32] = x[tid] + 1;
    }
    __syncwarp();
    out[tid] = found[tid / 32];
}
}

// A transposition within the warp, through global memory.
namespace warp_exchange_in_global_memory {
__global__ void wrong(const int* x, int* scratch, int* out) {
    const int lane = threadIdx.x;
    scratch[lane] = x[lane];  //! race(scratch)
    out[lane] = scratch[lane ^ 5];  //! race(scratch)
}
__global__ void right(const int* x, int* scratch, int* out) {
    const int lane = threadIdx.x;
    scratch[lane] = x[lane];
    __syncwarp();
    out[lane] = scratch[lane ^ 5];
}
}

// A tile of sixteen lanes meets; its neighbour tile's values are read.
namespace tile_sync_for_the_neighbour_tile {
__global__ void wrong(const int* x, int* out) {
    __shared__ int cells[32];
    const auto tile = cooperative_groups::tiled_partition<16>(cooperative_groups::this_thread_block());
    cells[threadIdx.x] = x[threadIdx.x];  //! race(cells)
    tile.sync();
    out[threadIdx.x] = cells[threadIdx.x ^ 16];  //! race(cells)
}
__global__ void right(const int* x, int* out) {
    __shared__ int cells[32];
    const auto tile = cooperative_groups::tiled_partition<16>(cooperative_groups::this_thread_block());
    cells[threadIdx.x] = x[threadIdx.x];
    tile.sync();
    out[threadIdx.x] = cells[threadIdx.x ^ 15];
}
}

// The sums of the warps of one row are replaced by those of the next before they are folded.
namespace sums_of_warps_reused_for_the_next_row {
constexpr int ROWS = 4;
__device__ int warp_sum(int value) {
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_down_sync(0xffffffff, value, step);
    }
    return value;
}
__global__ void wrong(const int* x, int* out) {
    __shared__ int sums[2];
    const int tid = threadIdx.x;
    for (int row = 0; row < ROWS; row++) {
        const int sum = warp_sum(x[row * THREADS + tid]);
        if (tid % 32 == 0) {
            sums[tid / 32] = sum;  //! race(sums)
        }
        __syncthreads();
        if (tid == 0) {
            out[row] = sums[0] + sums[1];  //! race(sums)
        }
    }
}
__global__ void right(const int* x, int* out) {
    __shared__ int sums[2];
    const int tid = threadIdx.x;
    for (int row = 0; row < ROWS; row++) {
        const int sum = warp_sum(x[row * THREADS + tid]);
        if (tid % 32 == 0) {
            sums[tid / 32] = sum;
        }
        __syncthreads();
        if (tid == 0) {
            out[row] = sums[0] + sums[1];
        }
        __syncthreads();
    }
}
}

// "Has anything changed?": the flag is lowered for the next round while some still ask about the last.
namespace flag_lowered_while_others_ask {
__global__ void wrong(int* x) {
    __shared__ int changed;
    const int tid = threadIdx.x;
    do {
        if (tid == 0) {
            changed = 0;  //! race(changed)
        }
        __syncthreads();
        const int left = tid > 0 ? x[tid - 1] : 0;
        __syncthreads();
        if (left > x[tid]) {
            x[tid] = left;
            atomicOr(&changed, 1);
        }
        __syncthreads();
    } while (changed != 0);  //! race(changed)
}
__global__ void right(int* x) {
    __shared__ int changed;
    const int tid = threadIdx.x;
    do {
        __syncthreads();
        if (tid == 0) {
            changed = 0;
        }
        __syncthreads();
        const int left = tid > 0 ? x[tid - 1] : 0;
        __syncthreads();
        if (left > x[tid]) {
            x[tid] = left;
            atomicOr(&changed, 1);
        }
        __syncthreads();
    } while (changed != 0);
}
}

// A prefetch by two steps needs three buffers.
namespace ring_one_buffer_short {
constexpr int STEPS = 6;
template <int BUFFERS>
__device__ void run(const float* x, float* out) {
    __shared__ float ring[BUFFERS][THREADS];
    const int tid = threadIdx.x;
    float sum = 0;
    ring[0][tid] = x[tid];
    for (int step = 0; step < STEPS; step++) {
        if (step + 1 < STEPS) {
            ring[(step + 1) % BUFFERS][tid] = x[(step + 1) * THREADS + tid];  //! race(ring)
        }
        if (BUFFERS > 1) {
            __syncthreads();
        }
        sum += ring[step % BUFFERS][THREADS - 1 - tid];  //! race(ring)
    }
    out[tid] = sum;
}
__global__ void wrong(const float* x, float* out) {
    run<1>(x, out);
}
__global__ void right(const float* x, float* out) {
    run<3>(x, out);
}
}

// The count of a tile is set back for the next one while slow threads still use it.
namespace count_of_the_tile_set_back {
constexpr int TILES = 3;
__global__ void wrong(const int* x, int* out) {
    __shared__ int count;
    const int tid = threadIdx.x;
    for (int tile = 0; tile < TILES; tile++) {
        if (tid == 0) {
            count = 0;  //! race(count)
        }
        __syncthreads();
        if (x[tile * THREADS + tid] % 3 == 0) {
            atomicAdd(&count, 1);
        }
        __syncthreads();
        out[tile * THREADS + tid] = count;  //! race(count)
    }
}
__global__ void right(const int* x, int* out) {
    __shared__ int count;
    const int tid = threadIdx.x;
    for (int tile = 0; tile < TILES; tile++) {
        if (tid == 0) {
            count = 0;
        }
        __syncthreads();
        if (x[tile * THREADS + tid] % 3 == 0) {
            atomicAdd(&count, 1);
        }
        __syncthreads();
        out[tile * THREADS + tid] = count;
        __syncthreads();
    }
}
}

// The first tile of a double buffer is used without the barrier that all later ones have.
namespace double_buffer_without_the_first_barrier {
constexpr int STEPS = 4;
__global__ void wrong(const float* x, float* out) {
    __shared__ float tiles[2][THREADS];
    const int tid = threadIdx.x;
    float sum = 0;
    tiles[0][tid] = x[tid];  //! race(tiles)
    for (int step = 0; step < STEPS; step++) {
        sum += tiles[step % 2][tid ^ 1];  //! race(tiles)
        if (step + 1 < STEPS) {
            tiles[(step + 1) % 2][tid] = x[(step + 1) * THREADS + tid];
        }
        __syncthreads();
    }
    out[tid] = sum;
}
__global__ void right(const float* x, float* out) {
    __shared__ float tiles[2][THREADS];
    const int tid = threadIdx.x;
    float sum = 0;
    tiles[0][tid] = x[tid];
    __syncthreads();
    for (int step = 0; step < STEPS; step++) {
        sum += tiles[step % 2][tid ^ 1];
        if (step + 1 < STEPS) {
            tiles[(step + 1) % 2][tid] = x[(step + 1) * THREADS + tid];
        }
        __syncthreads();
    }
    out[tid] = sum;
}
}

// Two buffers in global memory take turns; a barrier of the block does not hold the neighbour blocks.
namespace two_global_buffers_and_barriers_of_blocks {
constexpr int STEPS = 4;
__global__ void wrong(float* a, float* b) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    for (int step = 0; step < STEPS; step++) {
        b[i] = a[i] + a[(i + 1) % n];  //! race(a)
        __syncthreads();
        a[i] = b[i];  //! race(a)
        __syncthreads();
    }
}
__global__ void right(float* a, float* b) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    for (int step = 0; step < STEPS; step++) {
        b[i] = a[i] + a[(i + 1) % n];
        cooperative_groups::this_grid().sync();
        a[i] = b[i];
        cooperative_groups::this_grid().sync();
    }
}
}

// The stage is filled again by copies while other threads still read it.
namespace stage_refilled_while_read {
constexpr int STEPS = 3;
__global__ void wrong(const float* x, float* out) {
    __shared__ float stage[THREADS];
    const int tid = threadIdx.x;
    float sum = 0;
    for (int step = 0; step < STEPS; step++) {
        __pipeline_memcpy_async(&stage[tid], x + step * THREADS + tid, sizeof(float));  //! race(stage)
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        sum += stage[THREADS - 1 - tid];  //! race(stage)
    }
    out[tid] = sum;
}
__global__ void right(const float* x, float* out) {
    __shared__ float stage[THREADS];
    const int tid = threadIdx.x;
    float sum = 0;
    for (int step = 0; step < STEPS; step++) {
        __pipeline_memcpy_async(&stage[tid], x + step * THREADS + tid, sizeof(float));
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        sum += stage[THREADS - 1 - tid];
        __syncthreads();
    }
    out[tid] = sum;
}
}

// The group is closed after the wait, which waits for the groups closed before.
namespace committed_after_the_wait {
__global__ void wrong(const float* x, float* out) {
    __shared__ float tile[THREADS];
    const int tid = threadIdx.x;
    __pipeline_memcpy_async(&tile[tid], x + tid, sizeof(float));  //! race(tile)
    __pipeline_wait_prior(0);
    __pipeline_commit();
    out[tid] = tile[tid];  //! race(tile)
}
__global__ void right(const float* x, float* out) {
    __shared__ float tile[THREADS];
    const int tid = threadIdx.x;
    __pipeline_memcpy_async(&tile[tid], x + tid, sizeof(float));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[tid] = tile[tid];
}
}

// The part past the end is to be zero, and is cleared while the copy may still write there.
namespace cleared_while_the_copy_is_on_its_way {
__global__ void wrong(const float* x, float* out) {
    __shared__ float tile[THREADS];
    const int tid = threadIdx.x;
    __pipeline_memcpy_async(&tile[tid], x + tid, sizeof(float));  //! race(tile)
    __pipeline_commit();
    if (tid >= 60) {
        tile[tid] = 0;  //! race(tile)
    }
    __pipeline_wait_prior(0);
    out[tid] = tile[tid];
}
__global__ void right(const float* x, float* out) {
    __shared__ float tile[THREADS];
    const int tid = threadIdx.x;
    __pipeline_memcpy_async(&tile[tid], x + tid, sizeof(float));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    if (tid >= 60) {
        tile[tid] = 0;
    }
    out[tid] = tile[tid];
}
}
