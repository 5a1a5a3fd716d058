// Wrong results of the arithmetic: a wrong start value, too narrow an accumulator, a missing rescale.

#include <cuda_fp16.h>

constexpr int THREADS = 64;

__device__ float negative_infinity() { return -__int_as_float(0x7f800000); }

namespace row_maximum_started_at_zero {
constexpr int COLUMNS = 5;
__device__ float maximum(const float* row, float largest) {
    for (int j = 0; j < COLUMNS; j++) {
        largest = fmaxf(largest, row[j]);
    }
    return largest;
}
__global__ void wrong(const float* x, float* out) {
    out[threadIdx.x] = maximum(x + threadIdx.x * COLUMNS, 0);  //! value
}
__global__ void right(const float* x, float* out) {
    out[threadIdx.x] = maximum(x + threadIdx.x * COLUMNS, negative_infinity());
}
}

namespace accumulation_in_float16 {
constexpr int COLUMNS = 3000;
__global__ void wrong(const __half* x, float* out) {
    __half total = __float2half(0);
    for (int j = 0; j < COLUMNS; j++) {
        total = total + x[threadIdx.x * COLUMNS + j];  //! value
    }
    out[threadIdx.x] = __half2float(total);
}
__global__ void right(const __half* x, float* out) {
    float total = 0;
    for (int j = 0; j < COLUMNS; j++) {
        total += __half2float(x[threadIdx.x * COLUMNS + j]);
    }
    out[threadIdx.x] = total;
}
}

namespace softmax_without_maximum {
constexpr int COLUMNS = 6;
__device__ void softmax(const float* row, float* out, float shift) {
    float total = 0;
    for (int j = 0; j < COLUMNS; j++) {
        total += expf(row[j] - shift);
    }
    for (int j = 0; j < COLUMNS; j++) {
        out[j] = expf(row[j] - shift) / total;
    }
}
__global__ void wrong(const float* x, float* out) {
    const int first = threadIdx.x * COLUMNS;
    softmax(x + first, out + first, 0);  //! value
}
__global__ void right(const float* x, float* out) {
    const int first = threadIdx.x * COLUMNS;
    float largest = x[first];
    for (int j = 1; j < COLUMNS; j++) {
        largest = fmaxf(largest, x[first + j]);
    }
    softmax(x + first, out + first, largest);
}
}

namespace online_softmax_without_rescale {
constexpr int COLUMNS = 48;
template <bool RESCALE> __device__ void softmax(const float* x, float* out) {
    const float* row = x + threadIdx.x * COLUMNS;
    float largest = negative_infinity(), total = 0;
    for (int j = 0; j < COLUMNS; j++) {
        const float above = fmaxf(largest, row[j]);
        if constexpr (RESCALE) {
            total *= expf(largest - above);
        }
        total += expf(row[j] - above);
        largest = above;
    }
    for (int j = 0; j < COLUMNS; j++) {
        out[threadIdx.x * COLUMNS + j] = expf(row[j] - largest) / total;
    }
}
__global__ void wrong(const float* x, float* out) {
    softmax<false>(x, out);  //! value
}
__global__ void right(const float* x, float* out) {
    softmax<true>(x, out);
}
}

namespace log_sum_exp_without_maximum {
constexpr int COLUMNS = 10;
struct Sum {
    float largest, total;
    __device__ explicit Sum(const float* row) : largest(row[0]), total(0) {
        for (int j = 1; j < COLUMNS; j++) {
            largest = fmaxf(largest, row[j]);
        }
        for (int j = 0; j < COLUMNS; j++) {
            total += expf(row[j] - largest);
        }
    }
};
__global__ void wrong(const float* x, float* out) {
    const Sum sum(x + threadIdx.x * COLUMNS);
    out[threadIdx.x] = logf(sum.total);  //! value
}
__global__ void right(const float* x, float* out) {
    const Sum sum(x + threadIdx.x * COLUMNS);
    out[threadIdx.x] = logf(sum.total) + sum.largest;
}
}

namespace mean_over_the_padded_width {
constexpr int COLUMNS = 48;
__device__ float row_sum(const float* x) {
    __shared__ float sums[THREADS];
    const int tid = threadIdx.x;
    sums[tid] = tid < COLUMNS ? x[blockIdx.x * COLUMNS + tid] : 0;
    __syncthreads();
    for (int stride = THREADS / 2; stride > 0; stride /= 2) {
        if (tid < stride) {
            sums[tid] += sums[tid + stride];
        }
        __syncthreads();
    }
    return sums[0];
}
__global__ void wrong(const float* x, float* out) {
    const float sum = row_sum(x);
    if (threadIdx.x == 0) {
        out[blockIdx.x] = sum / blockDim.x;  //! value
    }
}
__global__ void right(const float* x, float* out) {
    const float sum = row_sum(x);
    if (threadIdx.x == 0) {
        out[blockIdx.x] = sum / COLUMNS;
    }
}
}

namespace epsilon_outside_the_root {
constexpr int COLUMNS = 4;
__device__ float mean_square(const float* row) {
    float total = 0;
    for (int j = 0; j < COLUMNS; j++) {
        total += row[j] * row[j];
    }
    return total / COLUMNS;
}
__device__ void divide(const float* row, float* out, float root) {
    for (int j = 0; j < COLUMNS; j++) {
        out[j] = row[j] / root;
    }
}
__global__ void wrong(const float* x, float* out) {
    const int first = threadIdx.x * COLUMNS;
    divide(x + first, out + first, sqrtf(mean_square(x + first)) + 1e-6f);  //! value
}
__global__ void right(const float* x, float* out) {
    const int first = threadIdx.x * COLUMNS;
    divide(x + first, out + first, sqrtf(mean_square(x + first) + 1e-6f));
}
}

namespace variance_as_difference_of_squares {
constexpr int COLUMNS = 32;
__global__ void wrong(const float* x, float* out) {
    const float* row = x + threadIdx.x * COLUMNS;
    float first = 0, second = 0;
    for (int j = 0; j < COLUMNS; j++) {
        first += row[j];
        second += row[j] * row[j];
    }
    const float mean = first / COLUMNS;
    out[threadIdx.x] = second / COLUMNS - mean * mean;  //! value
}
__global__ void right(const float* x, float* out) {
    const float* row = x + threadIdx.x * COLUMNS;
    float first = 0, second = 0;
    for (int j = 0; j < COLUMNS; j++) {
        first += row[j];
    }
    const float mean = first / COLUMNS;
    for (int j = 0; j < COLUMNS; j++) {
        second += (row[j] - mean) * (row[j] - mean);
    }
    out[threadIdx.x] = second / COLUMNS;
}
}

namespace masked_score_zero_instead_of_minus_infinity {
constexpr int KEYS = 8;
template <typename Score> __device__ void softmax(float* out, Score score) {
    float largest = negative_infinity(), total = 0;
    for (int j = 0; j < KEYS; j++) {
        largest = fmaxf(largest, score(j));
    }
    for (int j = 0; j < KEYS; j++) {
        total += expf(score(j) - largest);
    }
    for (int j = 0; j < KEYS; j++) {
        out[j] = expf(score(j) - largest) / total;
    }
}
__global__ void wrong(const float* x, float* out) {
    const int row = threadIdx.x;
    softmax(out + row * KEYS, [=](int j) { return j <= row ? x[row * KEYS + j] : 0; });  //! value
}
__global__ void right(const float* x, float* out) {
    const int row = threadIdx.x;
    softmax(out + row * KEYS, [=](int j) { return j <= row ? x[row * KEYS + j] : negative_infinity(); });
}
}

namespace bias_added_once_per_tile {
constexpr int N = 8, K = 12, TILE = 4;
__global__ void wrong(const float* a, const float* b, const float* bias, float* out) {
    const int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    float total = 0;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        for (int k = k0; k < k0 + TILE; k++) {
            total += a[row * K + k] * b[k * N + column];
        }
        total += bias[column];  //! value
    }
    out[row * N + column] = total;
}
__global__ void right(const float* a, const float* b, const float* bias, float* out) {
    const int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    float total = 0;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        for (int k = k0; k < k0 + TILE; k++) {
            total += a[row * K + k] * b[k * N + column];
        }
    }
    out[row * N + column] = total + bias[column];
}
}
