// 8-bit floats by HIP's names: the OCP formats. The FNUZ formats have another bias, and are refused.
#pragma once
#include "../cuda_fp8.h"
typedef __nv_fp8_e4m3 __hip_fp8_e4m3;
typedef __nv_fp8_e5m2 __hip_fp8_e5m2;
typedef __nv_fp8x2_e4m3 __hip_fp8x2_e4m3;
typedef __nv_fp8x2_e5m2 __hip_fp8x2_e5m2;
typedef __nv_fp8x4_e4m3 __hip_fp8x4_e4m3;
typedef __nv_fp8x4_e5m2 __hip_fp8x4_e5m2;
typedef __nv_fp8_storage_t __hip_fp8_storage_t;
struct __attribute__((unavailable("refsim does not support the FNUZ formats"))) __hip_fp8_e4m3_fnuz {};
struct __attribute__((unavailable("refsim does not support the FNUZ formats"))) __hip_fp8_e5m2_fnuz {};
