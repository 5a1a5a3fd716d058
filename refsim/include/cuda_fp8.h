// 8-bit floats: a byte, converted by way of float with rounding to nearest even and saturation.
#pragma once
#include "cuda_fp16.h"
#include "cuda_bf16.h"
typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
REFSIM_DEVICE unsigned char __refsim_float_to_e4m3(float, bool);
REFSIM_DEVICE unsigned char __refsim_float_to_e5m2(float, bool);
REFSIM_DEVICE float __refsim_e4m3_to_float(unsigned char);
REFSIM_DEVICE float __refsim_e5m2_to_float(unsigned char);
REFSIM_DEVICE inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t s, __nv_fp8_interpretation_t kind) {
  return kind == __NV_E4M3 ? __refsim_float_to_e4m3(x, s == __NV_SATFINITE) : __refsim_float_to_e5m2(x, s == __NV_SATFINITE);
}
#define REFSIM_FP8(name, kind)                                                                   \
  struct name {                                                                                  \
    __nv_fp8_storage_t __x;                                                                      \
    name() = default;                                                                            \
    REFSIM_DEVICE explicit name(float x) { __x = __refsim_float_to_##kind(x, true); }             \
    REFSIM_DEVICE explicit name(double x) { __x = __refsim_float_to_##kind((float)x, true); }     \
    REFSIM_DEVICE explicit name(__half x) { __x = __refsim_float_to_##kind((float)x, true); }     \
    REFSIM_DEVICE explicit name(__nv_bfloat16 x) { __x = __refsim_float_to_##kind((float)x, true); } \
    REFSIM_DEVICE explicit name(int x) { __x = __refsim_float_to_##kind((float)x, true); }        \
    REFSIM_DEVICE explicit operator float() const { return __refsim_##kind##_to_float(__x); }     \
    REFSIM_DEVICE explicit operator double() const { return __refsim_##kind##_to_float(__x); }    \
    REFSIM_DEVICE explicit operator __half() const { return (__half)__refsim_##kind##_to_float(__x); } \
    REFSIM_DEVICE explicit operator __nv_bfloat16() const { return (__nv_bfloat16)__refsim_##kind##_to_float(__x); } \
  };
REFSIM_FP8(__nv_fp8_e4m3, e4m3)
REFSIM_FP8(__nv_fp8_e5m2, e5m2)
#undef REFSIM_FP8
