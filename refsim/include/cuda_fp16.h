// float16: __half is the compiler's _Float16, whose arithmetic rounds after every operation.
#pragma once
typedef _Float16 __half;
typedef _Float16 half;
struct alignas(4) __half2 {
  __half x, y;
};
typedef __half2 half2;
struct __half_raw { unsigned short x; };
struct __half2_raw { unsigned short x, y; };
#define __T __half
#define __T2 __half2
#include "refsim_half_operations.inc"
#undef __T
#undef __T2
#define REFSIM_F REFSIM_DEVICE inline
REFSIM_DEVICE unsigned short __refsim_half_as_ushort(__half);
REFSIM_DEVICE __half __refsim_ushort_as_half(unsigned short);
REFSIM_F unsigned short __half_as_ushort(__half a) { return __refsim_half_as_ushort(a); }
REFSIM_F short __half_as_short(__half a) { return (short)__refsim_half_as_ushort(a); }
REFSIM_F __half __ushort_as_half(unsigned short a) { return __refsim_ushort_as_half(a); }
REFSIM_F __half __short_as_half(short a) { return __refsim_ushort_as_half((unsigned short)a); }
REFSIM_F __half __float2half(float a) { return (__half)a; }
REFSIM_F __half __float2half_rn(float a) { return (__half)a; }
#define REFSIM_ROUND(mode)                                    \
  REFSIM_DEVICE __half __float2half_##mode(float);            \
  REFSIM_DEVICE __half __int2half_##mode(int);                \
  REFSIM_DEVICE __half __uint2half_##mode(unsigned int);      \
  REFSIM_DEVICE __half __short2half_##mode(short);            \
  REFSIM_DEVICE __half __ushort2half_##mode(unsigned short);  \
  REFSIM_DEVICE __half __ll2half_##mode(long long);           \
  REFSIM_DEVICE __half __ull2half_##mode(unsigned long long);
REFSIM_ROUND(rz)
REFSIM_ROUND(rd)
REFSIM_ROUND(ru)
#undef REFSIM_ROUND
#define REFSIM_ROUND(mode)                                    \
  REFSIM_DEVICE int __half2int_##mode(__half);                \
  REFSIM_DEVICE unsigned int __half2uint_##mode(__half);      \
  REFSIM_DEVICE long long __half2ll_##mode(__half);           \
  REFSIM_DEVICE unsigned long long __half2ull_##mode(__half); \
  REFSIM_DEVICE short __half2short_##mode(__half);            \
  REFSIM_DEVICE unsigned short __half2ushort_##mode(__half);
REFSIM_ROUND(rn)
REFSIM_ROUND(rz)
REFSIM_ROUND(rd)
REFSIM_ROUND(ru)
#undef REFSIM_ROUND
REFSIM_F __half __double2half(double a) { return (__half)a; }
REFSIM_F float __half2float(__half a) { return (float)a; }
REFSIM_F __half __int2half_rn(int a) { return (__half)a; }
REFSIM_F __half __uint2half_rn(unsigned int a) { return (__half)a; }
REFSIM_F __half __short2half_rn(short a) { return (__half)a; }
REFSIM_F __half __ushort2half_rn(unsigned short a) { return (__half)a; }
REFSIM_F __half __ll2half_rn(long long a) { return (__half)a; }
REFSIM_F __half __ull2half_rn(unsigned long long a) { return (__half)a; }
REFSIM_F __half2 make_half2(__half a, __half b) { return __half2{a, b}; }
REFSIM_F __half2 __halves2half2(__half a, __half b) { return __half2{a, b}; }
REFSIM_F __half2 __half2half2(__half a) { return __half2{a, a}; }
REFSIM_F __half2 __float2half2_rn(float a) { return __half2{(__half)a, (__half)a}; }
REFSIM_F __half2 __floats2half2_rn(float a, float b) { return __half2{(__half)a, (__half)b}; }
REFSIM_F __half2 __float22half2_rn(float2 a) { return __half2{(__half)a.x, (__half)a.y}; }
REFSIM_F float2 __half22float2(__half2 a) { return float2{(float)a.x, (float)a.y}; }
REFSIM_F __half __low2half(__half2 a) { return a.x; }
REFSIM_F __half __high2half(__half2 a) { return a.y; }
REFSIM_F float __low2float(__half2 a) { return (float)a.x; }
REFSIM_F float __high2float(__half2 a) { return (float)a.y; }
REFSIM_F __half2 __low2half2(__half2 a) { return __half2{a.x, a.x}; }
REFSIM_F __half2 __high2half2(__half2 a) { return __half2{a.y, a.y}; }
REFSIM_F __half2 __lows2half2(__half2 a, __half2 b) { return __half2{a.x, b.x}; }
REFSIM_F __half2 __highs2half2(__half2 a, __half2 b) { return __half2{a.y, b.y}; }
REFSIM_F __half2 __lowhigh2highlow(__half2 a) { return __half2{a.y, a.x}; }
#undef REFSIM_F
