// HIP's built-in variables and functions for code generation by clang -cc1, as far as kernels_cupy uses them.
#pragma once

COORDINATES(
    ThreadIndex, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z()
)
COORDINATES(
    BlockIndex, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z()
)
static const ThreadIndex threadIdx{};
static const BlockIndex blockIdx{};
#define warpSize static_cast<int>(__builtin_amdgcn_wavefrontsize())

extern "C" {  // the device library
__device__ double __ocml_exp_f64(double);
__device__ double __ocml_log_f64(double);
}
inline __device__ float expf(float x) { return __builtin_expf(x); }
inline __device__ double exp(double x) { return __ocml_exp_f64(x); }
inline __device__ float logf(float x) { return __builtin_logf(x); }
inline __device__ double log(double x) { return __ocml_log_f64(x); }
inline __device__ float sqrtf(float x) { return __builtin_sqrtf(x); }
inline __device__ double sqrt(double x) { return __builtin_sqrt(x); }
inline __device__ float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
inline __device__ double fmax(double a, double b) { return __builtin_fmax(a, b); }

inline __device__ void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
inline __device__ int __shfl_xor(int value, int lanes) {
    const int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
    return __builtin_amdgcn_ds_bpermute((lane ^ lanes) * 4, value);
}
inline __device__ float __shfl_xor(float value, int lanes) {
    return __builtin_bit_cast(float, __shfl_xor(__builtin_bit_cast(int, value), lanes));
}
inline __device__ double __shfl_xor(double value, int lanes) {
    struct Words { int low, high; } words = __builtin_bit_cast(Words, value);
    words.low = __shfl_xor(words.low, lanes);
    words.high = __shfl_xor(words.high, lanes);
    return __builtin_bit_cast(double, words);
}
template <typename Real> inline __device__ Real atomicAdd(Real* cell, Real value) {
    return __hip_atomic_fetch_add(cell, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
