// bfloat16: __nv_bfloat16 is the compiler's __bf16, whose arithmetic rounds after every operation.
#pragma once
typedef __bf16 __nv_bfloat16;
typedef __bf16 nv_bfloat16;
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
typedef __nv_bfloat162 nv_bfloat162;
#define __T __nv_bfloat16
#define __T2 __nv_bfloat162
#include "refsim_half_operations.inc"
#undef __T
#undef __T2
#define REFSIM_F REFSIM_DEVICE inline
REFSIM_DEVICE unsigned short __refsim_bfloat16_as_ushort(__nv_bfloat16);
REFSIM_DEVICE __nv_bfloat16 __refsim_ushort_as_bfloat16(unsigned short);
REFSIM_F unsigned short __bfloat16_as_ushort(__nv_bfloat16 a) { return __refsim_bfloat16_as_ushort(a); }
REFSIM_F short __bfloat16_as_short(__nv_bfloat16 a) { return (short)__refsim_bfloat16_as_ushort(a); }
REFSIM_F __nv_bfloat16 __ushort_as_bfloat16(unsigned short a) { return __refsim_ushort_as_bfloat16(a); }
REFSIM_F __nv_bfloat16 __short_as_bfloat16(short a) { return __refsim_ushort_as_bfloat16((unsigned short)a); }
REFSIM_F __nv_bfloat16 __float2bfloat16(float a) { return (__nv_bfloat16)a; }
REFSIM_F __nv_bfloat16 __float2bfloat16_rn(float a) { return (__nv_bfloat16)a; }
#define REFSIM_ROUND(mode)                                               \
  REFSIM_DEVICE __nv_bfloat16 __float2bfloat16_##mode(float);            \
  REFSIM_DEVICE __nv_bfloat16 __int2bfloat16_##mode(int);                \
  REFSIM_DEVICE __nv_bfloat16 __uint2bfloat16_##mode(unsigned int);      \
  REFSIM_DEVICE __nv_bfloat16 __short2bfloat16_##mode(short);            \
  REFSIM_DEVICE __nv_bfloat16 __ushort2bfloat16_##mode(unsigned short);  \
  REFSIM_DEVICE __nv_bfloat16 __ll2bfloat16_##mode(long long);           \
  REFSIM_DEVICE __nv_bfloat16 __ull2bfloat16_##mode(unsigned long long);
REFSIM_ROUND(rz)
REFSIM_ROUND(rd)
REFSIM_ROUND(ru)
#undef REFSIM_ROUND
#define REFSIM_ROUND(mode)                                               \
  REFSIM_DEVICE int __bfloat162int_##mode(__nv_bfloat16);                \
  REFSIM_DEVICE unsigned int __bfloat162uint_##mode(__nv_bfloat16);      \
  REFSIM_DEVICE long long __bfloat162ll_##mode(__nv_bfloat16);           \
  REFSIM_DEVICE unsigned long long __bfloat162ull_##mode(__nv_bfloat16); \
  REFSIM_DEVICE short __bfloat162short_##mode(__nv_bfloat16);            \
  REFSIM_DEVICE unsigned short __bfloat162ushort_##mode(__nv_bfloat16);
REFSIM_ROUND(rn)
REFSIM_ROUND(rz)
REFSIM_ROUND(rd)
REFSIM_ROUND(ru)
#undef REFSIM_ROUND
REFSIM_F __nv_bfloat16 __double2bfloat16(double a) { return (__nv_bfloat16)a; }
REFSIM_F float __bfloat162float(__nv_bfloat16 a) { return (float)a; }
REFSIM_F __nv_bfloat16 __int2bfloat16_rn(int a) { return (__nv_bfloat16)a; }
REFSIM_F __nv_bfloat16 __uint2bfloat16_rn(unsigned int a) { return (__nv_bfloat16)a; }
REFSIM_F __nv_bfloat16 __short2bfloat16_rn(short a) { return (__nv_bfloat16)a; }
REFSIM_F __nv_bfloat16 __ushort2bfloat16_rn(unsigned short a) { return (__nv_bfloat16)a; }
REFSIM_F __nv_bfloat16 __ll2bfloat16_rn(long long a) { return (__nv_bfloat16)a; }
REFSIM_F __nv_bfloat16 __ull2bfloat16_rn(unsigned long long a) { return (__nv_bfloat16)a; }
REFSIM_F __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162{a, b}; }
REFSIM_F __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162{a, b}; }
REFSIM_F __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return __nv_bfloat162{a, a}; }
REFSIM_F __nv_bfloat162 __float2bfloat162_rn(float a) { return __nv_bfloat162{(__nv_bfloat16)a, (__nv_bfloat16)a}; }
REFSIM_F __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
  return __nv_bfloat162{(__nv_bfloat16)a, (__nv_bfloat16)b};
}
REFSIM_F __nv_bfloat162 __float22bfloat162_rn(float2 a) { return __floats2bfloat162_rn(a.x, a.y); }
REFSIM_F float2 __bfloat1622float2(__nv_bfloat162 a) { return float2{(float)a.x, (float)a.y}; }
REFSIM_F __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a) { return a.x; }
REFSIM_F __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a) { return a.y; }
REFSIM_F float __low2float(__nv_bfloat162 a) { return (float)a.x; }
REFSIM_F float __high2float(__nv_bfloat162 a) { return (float)a.y; }
REFSIM_F __nv_bfloat162 __low2bfloat162(__nv_bfloat162 a) { return __nv_bfloat162{a.x, a.x}; }
REFSIM_F __nv_bfloat162 __high2bfloat162(__nv_bfloat162 a) { return __nv_bfloat162{a.y, a.y}; }
REFSIM_F __nv_bfloat162 __lowhigh2highlow(__nv_bfloat162 a) { return __nv_bfloat162{a.y, a.x}; }
REFSIM_F __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162{a.x, b.x}; }
REFSIM_F __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162{a.y, b.y}; }
#undef REFSIM_F
