// Wrong results by a conversion at the wrong place.

#include <cuda_fp16.h>

// Two ints are divided before the quotient becomes a float.
namespace quotient_of_two_ints {
__global__ void wrong(const int* x, float* out) {
    out[threadIdx.x] = x[threadIdx.x] / 4;  //! value
}
__global__ void right(const int* x, float* out) {
    out[threadIdx.x] = x[threadIdx.x] / 4.0f;
}
}

// The magnitude goes through an int.
namespace fraction_lost_in_an_int {
__global__ void wrong(const float* x, float* out) {
    const int magnitude = fabsf(x[threadIdx.x]);  //! value
    out[threadIdx.x] = magnitude;
}
__global__ void right(const float* x, float* out) {
    const float magnitude = fabsf(x[threadIdx.x]);
    out[threadIdx.x] = magnitude;
}
}

// A large float is cut to half before it is scaled down: 70000 is infinite.
namespace narrowed_before_it_is_scaled {
__global__ void wrong(const float* x, __half* out) {
    out[threadIdx.x] = __hmul(__float2half(x[threadIdx.x]), __float2half(0.25f));  //! value
}
__global__ void right(const float* x, __half* out) {
    out[threadIdx.x] = __float2half(x[threadIdx.x] * 0.25f);
}
}
