// Built-in vector types, dim3 and the index variables.
#pragma once
#define REFSIM_VECTOR(name, __T, a2, a4)                                                      \
  struct name##1 { __T x; };                                                                  \
  struct alignas(a2) name##2 { __T x, y; };                                                   \
  struct name##3 { __T x, y, z; };                                                            \
  struct alignas(a4) name##4 { __T x, y, z, w; };                                             \
  REFSIM_DEVICE name##1 make_##name##1(__T x);                                                \
  REFSIM_DEVICE name##2 make_##name##2(__T x, __T y);                                           \
  REFSIM_DEVICE name##3 make_##name##3(__T x, __T y, __T z);                                      \
  REFSIM_DEVICE name##4 make_##name##4(__T x, __T y, __T z, __T w);
REFSIM_VECTOR(char, signed char, 2, 4)
REFSIM_VECTOR(uchar, unsigned char, 2, 4)
REFSIM_VECTOR(short, short, 4, 8)
REFSIM_VECTOR(ushort, unsigned short, 4, 8)
REFSIM_VECTOR(int, int, 8, 16)
REFSIM_VECTOR(uint, unsigned int, 8, 16)
REFSIM_VECTOR(longlong, long long, 16, 16)
REFSIM_VECTOR(ulonglong, unsigned long long, 16, 16)
REFSIM_VECTOR(float, float, 8, 16)
REFSIM_VECTOR(double, double, 16, 16)
#undef REFSIM_VECTOR

struct dim3 {
  unsigned int x, y, z;
  REFSIM_DEVICE constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1) : x(vx), y(vy), z(vz) {}
};
extern REFSIM_DEVICE const uint3 threadIdx;
extern REFSIM_DEVICE const uint3 blockIdx;
extern REFSIM_DEVICE const dim3 blockDim;
extern REFSIM_DEVICE const dim3 gridDim;
extern REFSIM_DEVICE const int warpSize;
