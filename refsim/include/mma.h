// Matrix fragments of warps: nvcuda::wmma. The layout of a fragment is that of mma.sync on sm_80 and later.
#pragma once
#include "cuda_fp16.h"
#include "cuda_bf16.h"
namespace nvcuda {
namespace wmma {
struct row_major {};
struct col_major {};
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
namespace precision {
struct tf32 {};
}
enum layout_t { mem_row_major, mem_col_major };

template <typename __T> struct refsim_element { using type = __T; static constexpr bool tf32 = false; };
template <> struct refsim_element<precision::tf32> { using type = float; static constexpr bool tf32 = true; };
template <typename __L> struct refsim_by_rows { static constexpr bool value = true; };
template <> struct refsim_by_rows<col_major> { static constexpr bool value = false; };
// elements of a lane: for each use, shape and type those of CUDA's own header; a half lies in several lanes
template <typename __Use, int m, int n, int k, typename __T> struct refsim_elements;
#define REFSIM_ELEMENTS(type, m, n, k, a, b, c, sum)                                                       \
  template <> struct refsim_elements<matrix_a, m, n, k, type> { static constexpr int count = a; };          \
  template <> struct refsim_elements<matrix_b, m, n, k, type> { static constexpr int count = b; };          \
  REFSIM_SUMS_##sum(m, n, k, c)
#define REFSIM_SUM(type, m, n, k, c) \
  template <> struct refsim_elements<accumulator, m, n, k, type> { static constexpr int count = c; };
#define REFSIM_SUMS_half(m, n, k, c) REFSIM_SUM(__half, m, n, k, c) REFSIM_SUM(float, m, n, k, c)
#define REFSIM_SUMS_float(m, n, k, c) REFSIM_SUM(float, m, n, k, c)
#define REFSIM_SUMS_int(m, n, k, c) REFSIM_SUM(int, m, n, k, c)
#define REFSIM_SUMS_double(m, n, k, c) REFSIM_SUM(double, m, n, k, c)
#define REFSIM_SUMS_none(m, n, k, c)
REFSIM_ELEMENTS(__half, 16, 16, 16, 16, 16, 8, half)
REFSIM_ELEMENTS(__half, 32, 8, 16, 16, 16, 8, half)
REFSIM_ELEMENTS(__half, 8, 32, 16, 16, 16, 8, half)
REFSIM_ELEMENTS(__nv_bfloat16, 16, 16, 16, 8, 8, 8, none)
REFSIM_ELEMENTS(__nv_bfloat16, 32, 8, 16, 16, 4, 8, none)
REFSIM_ELEMENTS(__nv_bfloat16, 8, 32, 16, 4, 16, 8, none)
REFSIM_ELEMENTS(signed char, 16, 16, 16, 8, 8, 8, int)
REFSIM_ELEMENTS(signed char, 32, 8, 16, 16, 4, 8, int)
REFSIM_ELEMENTS(signed char, 8, 32, 16, 4, 16, 8, int)
REFSIM_ELEMENTS(unsigned char, 16, 16, 16, 8, 8, 8, none)
REFSIM_ELEMENTS(unsigned char, 32, 8, 16, 16, 4, 8, none)
REFSIM_ELEMENTS(unsigned char, 8, 32, 16, 4, 16, 8, none)
REFSIM_ELEMENTS(precision::tf32, 16, 16, 8, 4, 4, 8, float)
REFSIM_ELEMENTS(double, 8, 8, 4, 1, 1, 2, double)
#undef REFSIM_ELEMENTS
#undef REFSIM_SUM
#undef REFSIM_SUMS_half
#undef REFSIM_SUMS_float
#undef REFSIM_SUMS_int
#undef REFSIM_SUMS_double
#undef REFSIM_SUMS_none

template <typename __T, int __count> struct refsim_fragment {
  using element_type = __T;
  using storage_element_type = __T;
  static constexpr int num_elements = __count;
  static constexpr int num_storage_elements = __count;
  __T x[__count];
};
template <typename __Use, int m, int n, int k, typename __T, typename __Layout = void>
struct fragment
    : refsim_fragment<typename refsim_element<__T>::type, refsim_elements<__Use, m, n, k, __T>::count> {};

// the last arguments: role ('a', 'b' or 'c'), m, n, k, elements of a lane, rows lie contiguously
template <typename __T>
REFSIM_DEVICE void __refsim_wmma_load(__T*, const __T*, unsigned int, int, int, int, int, int, bool);
template <typename __T>
REFSIM_DEVICE void __refsim_wmma_store(const __T*, __T*, unsigned int, int, int, int, int, int, bool);
template <typename __D, typename __A, typename __B, typename __C>
REFSIM_DEVICE void __refsim_wmma_mma(__D*, const __A*, const __B*, const __C*, int, int, int, bool);

template <typename __Use, int m, int n, int k, typename __T, typename __L>
REFSIM_DEVICE inline void fill_fragment(fragment<__Use, m, n, k, __T, __L>& f, typename refsim_element<__T>::type value) {
  for (int i = 0; i < f.num_elements; ++i) f.x[i] = value;
}
template <int m, int n, int k, typename __T, typename __L>
REFSIM_DEVICE inline void load_matrix_sync(
    fragment<matrix_a, m, n, k, __T, __L>& f, const typename refsim_element<__T>::type* p, unsigned int ldm) {
  __refsim_wmma_load(f.x, p, ldm, 'a', m, n, k, f.num_elements, refsim_by_rows<__L>::value);
}
template <int m, int n, int k, typename __T, typename __L>
REFSIM_DEVICE inline void load_matrix_sync(
    fragment<matrix_b, m, n, k, __T, __L>& f, const typename refsim_element<__T>::type* p, unsigned int ldm) {
  __refsim_wmma_load(f.x, p, ldm, 'b', m, n, k, f.num_elements, refsim_by_rows<__L>::value);
}
template <int m, int n, int k, typename __T>
REFSIM_DEVICE inline void load_matrix_sync(
    fragment<accumulator, m, n, k, __T>& f, const __T* p, unsigned int ldm, layout_t layout) {
  if (layout == mem_row_major) __refsim_wmma_load(f.x, p, ldm, 'c', m, n, k, f.num_elements, true);
  else __refsim_wmma_load(f.x, p, ldm, 'c', m, n, k, f.num_elements, false);
}
template <int m, int n, int k, typename __T>
REFSIM_DEVICE inline void store_matrix_sync(
    __T* p, const fragment<accumulator, m, n, k, __T>& f, unsigned int ldm, layout_t layout) {
  if (layout == mem_row_major) __refsim_wmma_store(f.x, p, ldm, 'c', m, n, k, f.num_elements, true);
  else __refsim_wmma_store(f.x, p, ldm, 'c', m, n, k, f.num_elements, false);
}
template <int m, int n, int k, typename __D, typename __A, typename __LA, typename __LB, typename __C>
REFSIM_DEVICE inline void mma_sync(
    fragment<accumulator, m, n, k, __D>& d, const fragment<matrix_a, m, n, k, __A, __LA>& a,
    const fragment<matrix_b, m, n, k, __A, __LB>& b, const fragment<accumulator, m, n, k, __C>& c, bool satf = false) {
  if (satf) __refsim_wmma_mma(d.x, a.x, b.x, c.x, m, n, k, true);
  else __refsim_wmma_mma(d.x, a.x, b.x, c.x, m, n, k, false);
}
#ifndef __HIP__
REFSIM_DEVICE inline float __float_to_tf32(float x) {
  unsigned int bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return __uint_as_float(bits);
}
#endif
}  // namespace wmma
}  // namespace nvcuda
