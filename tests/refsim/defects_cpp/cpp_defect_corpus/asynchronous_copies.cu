// Copies that run beside the kernel: their data are there after the wait, and for others after the barrier.

#include <cuda_pipeline.h>

constexpr int THREADS = 64;

namespace copy_read_before_the_wait {
__global__ void wrong(const float* x, float* out) {
    __shared__ float4 tile[THREADS];
    const int tid = threadIdx.x;
    __pipeline_memcpy_async(&tile[tid], x + 4 * tid, sizeof(float4));  //! race(tile)
    __pipeline_commit();
    out[tid] = tile[tid].x;  //! race(tile)
    __pipeline_wait_prior(0);
}
__global__ void right(const float* x, float* out) {
    __shared__ float4 tile[THREADS];
    const int tid = threadIdx.x;
    __pipeline_memcpy_async(&tile[tid], x + 4 * tid, sizeof(float4));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[tid] = tile[tid].x;
}
}

// One group may still be on its way: it is the newest, whose data are read.
namespace wait_for_the_wrong_group {
__global__ void wrong(const float* x, float* out) {
    __shared__ float stage[2][THREADS];
    const int tid = threadIdx.x;
    __pipeline_memcpy_async(&stage[0][tid], x + tid, sizeof(float));
    __pipeline_commit();
    __pipeline_memcpy_async(&stage[1][tid], x + THREADS + tid, sizeof(float));  //! race(stage)
    __pipeline_commit();
    __pipeline_wait_prior(1);
    out[tid] = stage[0][tid] + stage[1][tid];  //! race(stage)
    __pipeline_wait_prior(0);
}
__global__ void right(const float* x, float* out) {
    __shared__ float stage[2][THREADS];
    const int tid = threadIdx.x;
    __pipeline_memcpy_async(&stage[0][tid], x + tid, sizeof(float));
    __pipeline_commit();
    __pipeline_memcpy_async(&stage[1][tid], x + THREADS + tid, sizeof(float));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    const float first = stage[0][tid];
    __pipeline_wait_prior(0);
    out[tid] = first + stage[1][tid];
}
}

// A thread waits for its own copies only; the neighbour's data need a barrier as well.
namespace wait_without_barrier {
__global__ void wrong(const float* x, float* out) {
    __shared__ float tile[THREADS];
    const int tid = threadIdx.x;
    __pipeline_memcpy_async(&tile[tid], x + tid, sizeof(float));  //! race(tile)
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[tid] = tile[THREADS - 1 - tid];  //! race(tile)
}
__global__ void right(const float* x, float* out) {
    __shared__ float tile[THREADS];
    const int tid = threadIdx.x;
    __pipeline_memcpy_async(&tile[tid], x + tid, sizeof(float));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[tid] = tile[THREADS - 1 - tid];
}
}
