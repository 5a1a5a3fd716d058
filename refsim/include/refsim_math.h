// Mathematical functions and conversions, declared only: the simulator knows them by name.
#pragma once
#define REFSIM_ONE(name) \
  REFSIM_DEVICE float name##f(float); \
  REFSIM_DEVICE float name(float); \
  REFSIM_DEVICE double name(double);
#define REFSIM_TWO(name) \
  REFSIM_DEVICE float name##f(float, float); \
  REFSIM_DEVICE float name(float, float); \
  REFSIM_DEVICE double name(double, double); \
  REFSIM_DEVICE double name(float, double); \
  REFSIM_DEVICE double name(double, float);
REFSIM_ONE(sqrt)
REFSIM_ONE(rsqrt)
REFSIM_ONE(cbrt)
REFSIM_ONE(rcbrt)
REFSIM_ONE(exp)
REFSIM_ONE(exp2)
REFSIM_ONE(exp10)
REFSIM_ONE(expm1)
REFSIM_ONE(log)
REFSIM_ONE(log2)
REFSIM_ONE(log10)
REFSIM_ONE(log1p)
REFSIM_ONE(sin)
REFSIM_ONE(cos)
REFSIM_ONE(tan)
REFSIM_ONE(asin)
REFSIM_ONE(acos)
REFSIM_ONE(atan)
REFSIM_ONE(sinh)
REFSIM_ONE(cosh)
REFSIM_ONE(tanh)
REFSIM_ONE(asinh)
REFSIM_ONE(acosh)
REFSIM_ONE(atanh)
REFSIM_ONE(erf)
REFSIM_ONE(erfc)
REFSIM_ONE(erfinv)
REFSIM_ONE(normcdf)
REFSIM_ONE(lgamma)
REFSIM_ONE(tgamma)
REFSIM_ONE(ceil)
REFSIM_ONE(floor)
REFSIM_ONE(trunc)
REFSIM_ONE(round)
REFSIM_ONE(rint)
REFSIM_ONE(nearbyint)
REFSIM_ONE(fabs)
REFSIM_ONE(sinpi)
REFSIM_ONE(cospi)
REFSIM_TWO(pow)
REFSIM_TWO(atan2)
REFSIM_TWO(hypot)
REFSIM_TWO(fmod)
REFSIM_TWO(remainder)
REFSIM_TWO(fmin)
REFSIM_TWO(fmax)
REFSIM_TWO(copysign)
REFSIM_TWO(nextafter)
REFSIM_TWO(fdim)
#undef REFSIM_ONE
#undef REFSIM_TWO
// an integer argument is a double, as in <cmath>
#define REFSIM_INTEGER(name)                                       \
  REFSIM_DEVICE double name(int);                                  \
  REFSIM_DEVICE double name(unsigned int);                         \
  REFSIM_DEVICE double name(long);                                 \
  REFSIM_DEVICE double name(unsigned long);
REFSIM_INTEGER(sqrt)
REFSIM_INTEGER(exp)
REFSIM_INTEGER(log)
REFSIM_INTEGER(log2)
REFSIM_INTEGER(sin)
REFSIM_INTEGER(cos)
REFSIM_INTEGER(ceil)
REFSIM_INTEGER(floor)
REFSIM_INTEGER(fabs)
#undef REFSIM_INTEGER
REFSIM_DEVICE float fmaf(float, float, float);
REFSIM_DEVICE float fma(float, float, float);
REFSIM_DEVICE double fma(double, double, double);
REFSIM_DEVICE float powif(float, int);
REFSIM_DEVICE float pow(float, int);
REFSIM_DEVICE double pow(double, int);
REFSIM_DEVICE double pow(int, int);
REFSIM_DEVICE float ldexpf(float, int);
REFSIM_DEVICE float ldexp(float, int);
REFSIM_DEVICE double ldexp(double, int);
REFSIM_DEVICE float scalbnf(float, int);
REFSIM_DEVICE double scalbn(double, int);
REFSIM_DEVICE void sincosf(float, float*, float*);
REFSIM_DEVICE void sincos(double, double*, double*);
REFSIM_DEVICE void sincospif(float, float*, float*);
REFSIM_DEVICE float fdividef(float, float);
REFSIM_DEVICE float __saturatef(float);
REFSIM_DEVICE int lroundf(float);
REFSIM_DEVICE long lrintf(float);
REFSIM_DEVICE long lrint(double);
REFSIM_DEVICE long llrintf(float);
REFSIM_DEVICE bool isnan(float);
REFSIM_DEVICE bool isnan(double);
REFSIM_DEVICE bool isinf(float);
REFSIM_DEVICE bool isinf(double);
REFSIM_DEVICE bool isfinite(float);
REFSIM_DEVICE bool isfinite(double);
REFSIM_DEVICE bool signbit(float);
REFSIM_DEVICE bool signbit(double);
REFSIM_DEVICE int abs(int);
REFSIM_DEVICE long abs(long);
REFSIM_DEVICE long long abs(long long);
REFSIM_DEVICE float abs(float);
REFSIM_DEVICE double abs(double);
REFSIM_DEVICE long labs(long);
REFSIM_DEVICE long long llabs(long long);
#define REFSIM_EXTREME(name)                                       \
  REFSIM_DEVICE int name(int, int);                                \
  REFSIM_DEVICE unsigned int name(unsigned int, unsigned int);     \
  REFSIM_DEVICE unsigned int name(int, unsigned int);              \
  REFSIM_DEVICE unsigned int name(unsigned int, int);              \
  REFSIM_DEVICE long name(long, long);                             \
  REFSIM_DEVICE unsigned long name(unsigned long, unsigned long);  \
  REFSIM_DEVICE unsigned long name(long, unsigned long);           \
  REFSIM_DEVICE unsigned long name(unsigned long, long);           \
  REFSIM_DEVICE long long name(long long, long long);              \
  REFSIM_DEVICE unsigned long long name(unsigned long long, unsigned long long); \
  REFSIM_DEVICE unsigned long long name(long long, unsigned long long); \
  REFSIM_DEVICE unsigned long long name(unsigned long long, long long); \
  REFSIM_DEVICE float name(float, float);                          \
  REFSIM_DEVICE double name(double, double);                       \
  REFSIM_DEVICE double name(float, double);                        \
  REFSIM_DEVICE double name(double, float);
REFSIM_EXTREME(min)
REFSIM_EXTREME(max)
#undef REFSIM_EXTREME
REFSIM_DEVICE unsigned int umin(unsigned int, unsigned int);
REFSIM_DEVICE unsigned int umax(unsigned int, unsigned int);
REFSIM_DEVICE float __expf(float);
REFSIM_DEVICE float __exp10f(float);
REFSIM_DEVICE float __logf(float);
REFSIM_DEVICE float __log2f(float);
REFSIM_DEVICE float __log10f(float);
REFSIM_DEVICE float __sinf(float);
REFSIM_DEVICE float __cosf(float);
REFSIM_DEVICE float __tanf(float);
REFSIM_DEVICE float __tanhf(float);
REFSIM_DEVICE float __powf(float, float);
REFSIM_DEVICE float __fdividef(float, float);
REFSIM_DEVICE float __frcp_rn(float);
REFSIM_DEVICE float __fsqrt_rn(float);
REFSIM_DEVICE float __frsqrt_rn(float);
REFSIM_DEVICE float __fadd_rn(float, float);
REFSIM_DEVICE float __fsub_rn(float, float);
REFSIM_DEVICE float __fmul_rn(float, float);
REFSIM_DEVICE float __fdiv_rn(float, float);
REFSIM_DEVICE float __fmaf_rn(float, float, float);
REFSIM_DEVICE double __dadd_rn(double, double);
REFSIM_DEVICE double __dsub_rn(double, double);
REFSIM_DEVICE double __dmul_rn(double, double);
REFSIM_DEVICE double __ddiv_rn(double, double);
REFSIM_DEVICE double __dsqrt_rn(double);
REFSIM_DEVICE double __fma_rn(double, double, double);
REFSIM_DEVICE int __float_as_int(float);
REFSIM_DEVICE unsigned int __float_as_uint(float);
REFSIM_DEVICE float __int_as_float(int);
REFSIM_DEVICE float __uint_as_float(unsigned int);
REFSIM_DEVICE long long __double_as_longlong(double);
REFSIM_DEVICE double __longlong_as_double(long long);
REFSIM_DEVICE int __double2hiint(double);
REFSIM_DEVICE int __double2loint(double);
REFSIM_DEVICE double __hiloint2double(int, int);
#define REFSIM_ROUND(suffix)                                       \
  REFSIM_DEVICE int __float2int_##suffix(float);                   \
  REFSIM_DEVICE unsigned int __float2uint_##suffix(float);         \
  REFSIM_DEVICE long long __float2ll_##suffix(float);              \
  REFSIM_DEVICE unsigned long long __float2ull_##suffix(float);    \
  REFSIM_DEVICE int __double2int_##suffix(double);                 \
  REFSIM_DEVICE unsigned int __double2uint_##suffix(double);       \
  REFSIM_DEVICE long long __double2ll_##suffix(double);            \
  REFSIM_DEVICE unsigned long long __double2ull_##suffix(double);
REFSIM_ROUND(rn)
REFSIM_ROUND(rz)
REFSIM_ROUND(rd)
REFSIM_ROUND(ru)
#undef REFSIM_ROUND
REFSIM_DEVICE float __int2float_rn(int);
REFSIM_DEVICE float __uint2float_rn(unsigned int);
REFSIM_DEVICE float __ll2float_rn(long long);
REFSIM_DEVICE float __ull2float_rn(unsigned long long);
REFSIM_DEVICE double __int2double_rn(int);
REFSIM_DEVICE double __uint2double_rn(unsigned int);
REFSIM_DEVICE double __ll2double_rn(long long);
REFSIM_DEVICE double __ull2double_rn(unsigned long long);
REFSIM_DEVICE float __double2float_rn(double);
#define REFSIM_DIRECTED(mode)                                       \
  REFSIM_DEVICE float __fadd_##mode(float, float);                  \
  REFSIM_DEVICE float __fsub_##mode(float, float);                  \
  REFSIM_DEVICE float __fmul_##mode(float, float);                  \
  REFSIM_DEVICE float __fdiv_##mode(float, float);                  \
  REFSIM_DEVICE float __frcp_##mode(float);                         \
  REFSIM_DEVICE float __fsqrt_##mode(float);                        \
  REFSIM_DEVICE float __fmaf_##mode(float, float, float);           \
  REFSIM_DEVICE double __dadd_##mode(double, double);               \
  REFSIM_DEVICE double __dsub_##mode(double, double);               \
  REFSIM_DEVICE double __dmul_##mode(double, double);               \
  REFSIM_DEVICE double __ddiv_##mode(double, double);               \
  REFSIM_DEVICE double __drcp_##mode(double);                       \
  REFSIM_DEVICE double __dsqrt_##mode(double);                      \
  REFSIM_DEVICE double __fma_##mode(double, double, double);        \
  REFSIM_DEVICE float __double2float_##mode(double);                \
  REFSIM_DEVICE float __int2float_##mode(int);                      \
  REFSIM_DEVICE float __uint2float_##mode(unsigned int);            \
  REFSIM_DEVICE float __ll2float_##mode(long long);                 \
  REFSIM_DEVICE float __ull2float_##mode(unsigned long long);       \
  REFSIM_DEVICE double __ll2double_##mode(long long);               \
  REFSIM_DEVICE double __ull2double_##mode(unsigned long long);
REFSIM_DIRECTED(rd)
REFSIM_DIRECTED(ru)
REFSIM_DIRECTED(rz)
#undef REFSIM_DIRECTED
REFSIM_DEVICE double __drcp_rn(double);
