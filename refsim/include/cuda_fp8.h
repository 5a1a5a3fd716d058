// 8-bit floats: a byte, converted with one rounding to nearest even, and saturation.
#pragma once
#include "cuda_fp16.h"
#include "cuda_bf16.h"
typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
REFSIM_DEVICE unsigned char __refsim_to_e4m3(float, bool);
REFSIM_DEVICE unsigned char __refsim_to_e5m2(float, bool);
REFSIM_DEVICE unsigned char __refsim_to_e4m3(double, bool);
REFSIM_DEVICE unsigned char __refsim_to_e5m2(double, bool);
REFSIM_DEVICE float __refsim_e4m3_to_float(unsigned char);
REFSIM_DEVICE float __refsim_e5m2_to_float(unsigned char);
#define REFSIM_F REFSIM_DEVICE inline
REFSIM_F __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t s, __nv_fp8_interpretation_t kind) {
  return kind == __NV_E4M3 ? __refsim_to_e4m3(x, s == __NV_SATFINITE) : __refsim_to_e5m2(x, s == __NV_SATFINITE);
}
REFSIM_F __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t s, __nv_fp8_interpretation_t kind) {
  return kind == __NV_E4M3 ? __refsim_to_e4m3(x, s == __NV_SATFINITE) : __refsim_to_e5m2(x, s == __NV_SATFINITE);
}
#undef REFSIM_F
#define REFSIM_FP8_FROM(name, type, kind, wide) \
  REFSIM_DEVICE explicit name(type x) { __x = __refsim_to_##kind((wide)x, true); }
#define REFSIM_FP8(name, kind)                                                                         \
  struct name {                                                                                        \
    __nv_fp8_storage_t __x;                                                                            \
    name() = default;                                                                                  \
    REFSIM_FP8_FROM(name, float, kind, float)                                                          \
    REFSIM_FP8_FROM(name, double, kind, double)                                                        \
    REFSIM_FP8_FROM(name, __half, kind, float)                                                         \
    REFSIM_FP8_FROM(name, __nv_bfloat16, kind, float)                                                  \
    REFSIM_FP8_FROM(name, int, kind, double)                                                           \
    REFSIM_FP8_FROM(name, unsigned int, kind, double)                                                  \
    REFSIM_FP8_FROM(name, short, kind, double)                                                         \
    REFSIM_FP8_FROM(name, unsigned short, kind, double)                                                \
    REFSIM_FP8_FROM(name, long, kind, double)                                                          \
    REFSIM_FP8_FROM(name, unsigned long, kind, double)                                                 \
    REFSIM_FP8_FROM(name, long long, kind, double)                                                     \
    REFSIM_FP8_FROM(name, unsigned long long, kind, double)                                            \
    REFSIM_DEVICE explicit operator float() const { return __refsim_##kind##_to_float(__x); }          \
    REFSIM_DEVICE explicit operator double() const { return __refsim_##kind##_to_float(__x); }         \
    REFSIM_DEVICE explicit operator __half() const { return (__half)__refsim_##kind##_to_float(__x); } \
    REFSIM_DEVICE explicit operator __nv_bfloat16() const {                                            \
      return (__nv_bfloat16)__refsim_##kind##_to_float(__x);                                           \
    }                                                                                                  \
  };
REFSIM_FP8(__nv_fp8_e4m3, e4m3)
REFSIM_FP8(__nv_fp8_e5m2, e5m2)
#undef REFSIM_FP8
#undef REFSIM_FP8_FROM
typedef unsigned int __nv_fp8x4_storage_t;
#define REFSIM_F REFSIM_DEVICE inline
REFSIM_F __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t s, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8((float)__ushort_as_half(x.x), s, kind);
}
REFSIM_F __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 x, __nv_saturation_t s, __nv_fp8_interpretation_t kind) {
  return (__nv_fp8x2_storage_t)(__nv_cvt_float_to_fp8(x.x, s, kind) | (__nv_cvt_float_to_fp8(x.y, s, kind) << 8));
}
REFSIM_F __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 x, __nv_saturation_t s, __nv_fp8_interpretation_t kind) {
  return (__nv_fp8x2_storage_t)(__nv_cvt_double_to_fp8(x.x, s, kind) | (__nv_cvt_double_to_fp8(x.y, s, kind) << 8));
}
REFSIM_F __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw x, __nv_saturation_t s, __nv_fp8_interpretation_t kind) {
  return (__nv_fp8x2_storage_t)(__nv_cvt_halfraw_to_fp8(__half_raw{x.x}, s, kind) |
                                (__nv_cvt_halfraw_to_fp8(__half_raw{x.y}, s, kind) << 8));
}
REFSIM_F float __refsim_fp8_to_float(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind) {
  return kind == __NV_E4M3 ? __refsim_e4m3_to_float(x) : __refsim_e5m2_to_float(x);
}
REFSIM_F __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind) {
  return __half_raw{__half_as_ushort((__half)__refsim_fp8_to_float(x, kind))};
}
REFSIM_F __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t kind) {
  return __half2_raw{__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)x, kind).x,
                     __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)(x >> 8), kind).x};
}
#define REFSIM_FP8_VECTORS(kind, which)                                                                              \
  struct alignas(2) __nv_fp8x2_##kind {                                                                              \
    __nv_fp8x2_storage_t __x;                                                                                        \
    __nv_fp8x2_##kind() = default;                                                                                   \
    REFSIM_DEVICE explicit __nv_fp8x2_##kind(float2 x) { __x = __nv_cvt_float2_to_fp8x2(x, __NV_SATFINITE, which); }  \
    REFSIM_DEVICE explicit __nv_fp8x2_##kind(__half2 x) {                                                            \
      __x = __nv_cvt_float2_to_fp8x2(float2{(float)x.x, (float)x.y}, __NV_SATFINITE, which);                         \
    }                                                                                                                \
    REFSIM_DEVICE explicit __nv_fp8x2_##kind(__nv_bfloat162 x) {                                                     \
      __x = __nv_cvt_float2_to_fp8x2(float2{(float)x.x, (float)x.y}, __NV_SATFINITE, which);                         \
    }                                                                                                                \
    REFSIM_DEVICE explicit operator float2() const {                                                                 \
      return float2{__refsim_##kind##_to_float((unsigned char)__x), __refsim_##kind##_to_float((unsigned char)(__x >> 8))}; \
    }                                                                                                                \
    REFSIM_DEVICE explicit operator __half2() const {                                                                \
      float2 x = float2(*this);                                                                                      \
      return __half2{(__half)x.x, (__half)x.y};                                                                      \
    }                                                                                                                \
  };                                                                                                                 \
  struct alignas(4) __nv_fp8x4_##kind {                                                                              \
    __nv_fp8x4_storage_t __x;                                                                                        \
    __nv_fp8x4_##kind() = default;                                                                                   \
    REFSIM_DEVICE explicit __nv_fp8x4_##kind(float4 x) {                                                             \
      __x = __nv_cvt_float2_to_fp8x2(float2{x.x, x.y}, __NV_SATFINITE, which) |                                      \
            ((unsigned int)__nv_cvt_float2_to_fp8x2(float2{x.z, x.w}, __NV_SATFINITE, which) << 16);                 \
    }                                                                                                                \
    REFSIM_DEVICE explicit operator float4() const {                                                                 \
      return float4{__refsim_##kind##_to_float((unsigned char)__x), __refsim_##kind##_to_float((unsigned char)(__x >> 8)), \
                    __refsim_##kind##_to_float((unsigned char)(__x >> 16)),                                          \
                    __refsim_##kind##_to_float((unsigned char)(__x >> 24))};                                         \
    }                                                                                                                \
  };
REFSIM_FP8_VECTORS(e4m3, __NV_E4M3)
REFSIM_FP8_VECTORS(e5m2, __NV_E5M2)
#undef REFSIM_FP8_VECTORS
#undef REFSIM_F
