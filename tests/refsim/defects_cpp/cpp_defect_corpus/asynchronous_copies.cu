// Copies that run beside the kernel: their data are there after the wait, and for others after the barrier.

#include <cuda_pipeline.h>

constexpr int THREADS = 64;

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
