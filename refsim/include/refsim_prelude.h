// What a CUDA kernel may use without including anything: qualifiers, indices, vector types, intrinsics.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ inline
#define __noinline__
#define __restrict __restrict__
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __assume(condition) __builtin_assume(condition)
#define NULL 0
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VAL __builtin_inf()
#define HUGE_VALF __builtin_inff()
#define REFSIM_DEVICE __attribute__((device))
#define assert(condition) __refsim_assert((condition), #condition)
#define offsetof(type, member) ((size_t) & ((type*)0)->member)
#define __builtin_offsetof(type, member) offsetof(type, member)

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
REFSIM_DEVICE inline void* operator new(size_t, void* place) noexcept { return place; }
namespace std {
using ::ptrdiff_t;
using ::size_t;
template <typename __T> class initializer_list {
  const __T* first;
  size_t count;
  REFSIM_DEVICE constexpr initializer_list(const __T* a, size_t n) : first(a), count(n) {}

 public:
  REFSIM_DEVICE constexpr initializer_list() : first(nullptr), count(0) {}
  REFSIM_DEVICE constexpr const __T* begin() const { return first; }
  REFSIM_DEVICE constexpr const __T* end() const { return first + count; }
  REFSIM_DEVICE constexpr size_t size() const { return count; }
};
}  // namespace std
typedef long ssize_t;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
#include "refsim_stdint.h"
#include "refsim_vectors.h"
#include "refsim_math.h"
#include "refsim_device.h"
