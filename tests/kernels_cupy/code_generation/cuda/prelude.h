// CUDA's built-in variables and functions for code generation by clang -cc1, as far as kernels_cupy uses them and clang has
// them not built in.
#pragma once
#include "../keywords.h"

COORDINATES(ThreadIndex, __nvvm_read_ptx_sreg_tid_x(), __nvvm_read_ptx_sreg_tid_y(), __nvvm_read_ptx_sreg_tid_z())
COORDINATES(BlockIndex, __nvvm_read_ptx_sreg_ctaid_x(), __nvvm_read_ptx_sreg_ctaid_y(), __nvvm_read_ptx_sreg_ctaid_z())
static const ThreadIndex threadIdx{};
static const BlockIndex blockIdx{};
#define warpSize __nvvm_read_ptx_sreg_warpsize()

extern "C" {  // libdevice
__device__ float __nv_expf(float);
__device__ double __nv_exp(double);
__device__ float __nv_logf(float);
__device__ double __nv_log(double);
}
inline __device__ float expf(float x) { return __nv_expf(x); }
inline __device__ double exp(double x) { return __nv_exp(x); }
inline __device__ float logf(float x) { return __nv_logf(x); }
inline __device__ double log(double x) { return __nv_log(x); }
inline __device__ float sqrtf(float x) { return __nvvm_sqrt_rn_f(x); }
inline __device__ double sqrt(double x) { return __nvvm_sqrt_rn_d(x); }
inline __device__ float fmaxf(float a, float b) { return __nvvm_fmax_f(a, b); }
inline __device__ double fmax(double a, double b) { return __nvvm_fmax_d(a, b); }

inline __device__ int __shfl_xor_sync(unsigned mask, int value, int lanes) {
    return __nvvm_shfl_sync_bfly_i32(mask, value, lanes, 0x1f);
}
inline __device__ float __shfl_xor_sync(unsigned mask, float value, int lanes) {
    return __builtin_bit_cast(float, __shfl_xor_sync(mask, __builtin_bit_cast(int, value), lanes));
}
inline __device__ double __shfl_xor_sync(unsigned mask, double value, int lanes) {
    struct Words { int low, high; } words = __builtin_bit_cast(Words, value);
    words.low = __shfl_xor_sync(mask, words.low, lanes);
    words.high = __shfl_xor_sync(mask, words.high, lanes);
    return __builtin_bit_cast(double, words);
}
inline __device__ float atomicAdd(float* cell, float value) { return __nvvm_atom_add_gen_f(cell, value); }
inline __device__ double atomicAdd(double* cell, double value) { return __nvvm_atom_add_gen_d(cell, value); }
