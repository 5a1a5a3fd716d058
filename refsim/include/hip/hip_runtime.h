// What a HIP kernel may use: CUDA's names, warp operations without _sync, and operators on vector types.
#pragma once
#include "../refsim_prelude.h"
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_DYNAMIC_SHARED(__T, name) extern __shared__ __T name[];
#define hipThreadIdx_x threadIdx.x
#define hipThreadIdx_y threadIdx.y
#define hipThreadIdx_z threadIdx.z
#define hipBlockIdx_x blockIdx.x
#define hipBlockIdx_y blockIdx.y
#define hipBlockIdx_z blockIdx.z
#define hipBlockDim_x blockDim.x
#define hipBlockDim_y blockDim.y
#define hipBlockDim_z blockDim.z
#define hipGridDim_x gridDim.x
#define hipGridDim_y gridDim.y
#define hipGridDim_z gridDim.z
template <typename __T> REFSIM_DEVICE __T __shfl(__T, int, int = warpSize);
template <typename __T> REFSIM_DEVICE __T __shfl_up(__T, unsigned int, int = warpSize);
template <typename __T> REFSIM_DEVICE __T __shfl_down(__T, unsigned int, int = warpSize);
template <typename __T> REFSIM_DEVICE __T __shfl_xor(__T, int, int = warpSize);
REFSIM_DEVICE int __all(int);
REFSIM_DEVICE int __any(int);
REFSIM_DEVICE unsigned long long __ballot(int);
REFSIM_DEVICE unsigned int __lane_id();
REFSIM_DEVICE float unsafeAtomicAdd(float*, float);
REFSIM_DEVICE double unsafeAtomicAdd(double*, double);
#define REFSIM_VECTOR_OPERATOR(V, __T, op, M)                                                              \
  REFSIM_DEVICE inline V operator op(V a, V b) { V r; M(r, a, op b, ) return r; }                         \
  REFSIM_DEVICE inline V& operator op##=(V& a, V b) { a = a op b; return a; }
#define REFSIM_SCALED(V, __T, M)                                                                           \
  REFSIM_DEVICE inline V operator*(V a, __T s) { V r; M##_SCALAR(r, a, s) return r; }                       \
  REFSIM_DEVICE inline V operator*(__T s, V a) { return a * s; }
#define REFSIM_TWO(r, a, b, unused) r.x = a.x b.x; r.y = a.y b.y;
#define REFSIM_FOUR(r, a, b, unused) r.x = a.x b.x; r.y = a.y b.y; r.z = a.z b.z; r.w = a.w b.w;
#define REFSIM_TWO_SCALAR(r, a, s) r.x = a.x * s; r.y = a.y * s;
#define REFSIM_FOUR_SCALAR(r, a, s) r.x = a.x * s; r.y = a.y * s; r.z = a.z * s; r.w = a.w * s;
REFSIM_VECTOR_OPERATOR(float2, float, +, REFSIM_TWO)
REFSIM_VECTOR_OPERATOR(float2, float, -, REFSIM_TWO)
REFSIM_VECTOR_OPERATOR(float2, float, *, REFSIM_TWO)
REFSIM_VECTOR_OPERATOR(float4, float, +, REFSIM_FOUR)
REFSIM_VECTOR_OPERATOR(float4, float, -, REFSIM_FOUR)
REFSIM_VECTOR_OPERATOR(float4, float, *, REFSIM_FOUR)
REFSIM_SCALED(float2, float, REFSIM_TWO)
REFSIM_SCALED(float4, float, REFSIM_FOUR)
#undef REFSIM_VECTOR_OPERATOR
#undef REFSIM_SCALED
#undef REFSIM_TWO
#undef REFSIM_FOUR
#undef REFSIM_TWO_SCALAR
#undef REFSIM_FOUR_SCALAR
