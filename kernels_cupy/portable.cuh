// What CUDA and HIP spell differently, and the two types of a kernel: T, as stored, and Real, as computed with.
//
//     T          Half   BFloat16   float   double
//     Real       float  float      float   double        widen(T) is exact, narrow<T> rounds to nearest even
//
// The warp size is the built-in run-time value warpSize: 32 on NVIDIA, 64 or 32 on AMD. Nothing here assumes one;
// blocks have multiples of 64 threads, so they are whole warps, and every lane takes part in every shuffle.

#pragma once

#if defined(__HIP__) || defined(__HIPCC__)
#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>
#include <hip/hip_bf16.h>
using BFloat16 = __hip_bfloat16;
#else
#include <cuda_fp16.h>
#include <cuda_bf16.h>
using BFloat16 = __nv_bfloat16;
#endif

using Half = __half;
using Index = long long;  // extents, strides and positions of arrays, in elements

constexpr int SMALLEST_WARP = 16;  // bounds the warps of a block, and so the shared cells that they need

template <typename T> struct Accumulator { using Real = float; };
template <> struct Accumulator<double> { using Real = double; };
template <typename T> using RealOf = typename Accumulator<T>::Real;

// ------------------------------------------------------------------------------------------------ conversions

__device__ inline float widen(float value) { return value; }
__device__ inline double widen(double value) { return value; }
__device__ inline float widen(Half value) { return __half2float(value); }
__device__ inline float widen(BFloat16 value) { return __bfloat162float(value); }

template <typename T> __device__ inline T narrow(RealOf<T> value) { return value; }
template <> __device__ inline Half narrow<Half>(float value) { return __float2half(value); }
template <> __device__ inline BFloat16 narrow<BFloat16>(float value) { return __float2bfloat16(value); }

// ------------------------------------------------------------------------------------------------------- math

__device__ inline float exponential(float x) { return expf(x); }
__device__ inline double exponential(double x) { return exp(x); }
__device__ inline float logarithm(float x) { return logf(x); }
__device__ inline double logarithm(double x) { return log(x); }
__device__ inline float square_root(float x) { return sqrtf(x); }
__device__ inline double square_root(double x) { return sqrt(x); }
__device__ inline float larger(float a, float b) { return fmaxf(a, b); }    // of a number and a NaN, the number
__device__ inline double larger(double a, double b) { return fmax(a, b); }

template <typename Real> __device__ inline Real negative_infinity() { return -__int_as_float(0x7f800000); }

// --------------------------------------------------------------------------------------------------- shuffles

// The value of the lane whose number differs in the bit `reach`; all lanes of the warp call it.
template <typename Real> __device__ inline Real shuffle_xor(Real value, int reach) {
#if defined(__HIP__) || defined(__HIPCC__)
    return __shfl_xor(value, reach);
#else
    const unsigned every_lane = 0xffffffffu >> (32 - warpSize);
    return __shfl_xor_sync(every_lane, value, reach);
#endif
}
