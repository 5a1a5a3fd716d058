// Launches that a device refuses: too many threads, too much shared memory, a grid or block axis too long.

namespace too_many_threads_in_a_block {
__global__ void wrong(const float* x, float* out) {  //! launch_limit
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = x[i] + 1;
}
__global__ void right(const float* x, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = x[i] + 1;
}
}

namespace too_many_threads_in_three_axes {
__device__ int element() {
    const int i = threadIdx.x, j = threadIdx.y, k = blockIdx.z * blockDim.z + threadIdx.z;
    return (i * 16 + j) * 8 + k;
}
__global__ void wrong(const float* x, float* out) {  //! launch_limit
    out[element()] = x[element()] * 2;
}
__global__ void right(const float* x, float* out) {
    out[element()] = x[element()] * 2;
}
}

namespace block_too_deep {
__global__ void wrong(const float* x, float* out) {  //! launch_limit
    const int k = blockIdx.z * blockDim.z + threadIdx.z;
    out[k] = x[k] * 3;
}
__global__ void right(const float* x, float* out) {
    const int k = blockIdx.z * blockDim.z + threadIdx.z;
    out[k] = x[k] * 3;
}
}

namespace grid_too_tall {
__global__ void wrong(float* out) {  //! launch_limit
    out[blockIdx.x + blockIdx.y] = 1;
}
__global__ void right(float* out) {
    out[blockIdx.x + blockIdx.y] = 1;
}
}

namespace too_much_static_shared_memory {
__global__ void wrong(const float* x, float* out) {  //! launch_limit
    __shared__ float pool[60000];  //! launch_limit
    const int tid = threadIdx.x;
    pool[tid] = x[tid];
    __syncthreads();
    out[tid] = pool[31 - tid];
}
__global__ void right(const float* x, float* out) {
    __shared__ float pool[1000];
    const int tid = threadIdx.x;
    pool[tid] = x[tid];
    __syncthreads();
    out[tid] = pool[31 - tid];
}
}

namespace too_much_dynamic_shared_memory {
__global__ void wrong(const float* x, float* out) {  //! launch_limit
    extern __shared__ float pool[];  //! launch_limit
    const int tid = threadIdx.x;
    pool[tid] = x[tid];
    __syncthreads();
    out[tid] = pool[31 - tid];
}
__global__ void right(const float* x, float* out) {
    extern __shared__ float pool[];
    const int tid = threadIdx.x;
    pool[tid] = x[tid];
    __syncthreads();
    out[tid] = pool[31 - tid];
}
}

namespace more_threads_than_launch_bounds {
constexpr int MOST = 128;
__global__ void __launch_bounds__(MOST) wrong(const float* x, float* out) {  //! launch_limit
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = x[i] + 1;
}
__global__ void __launch_bounds__(2 * MOST, 2) right(const float* x, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = x[i] + 1;
}
}
