// Barriers, warp operations, atomics, bit functions and the like, declared only.
#pragma once
template <typename __T> struct refsim_same { using type = __T; };

REFSIM_DEVICE void __refsim_assert(bool, const char*);
REFSIM_DEVICE int printf(const char*, ...);
REFSIM_DEVICE void __trap();
REFSIM_DEVICE void __brkpt();
REFSIM_DEVICE void __nanosleep(unsigned int);
REFSIM_DEVICE long clock();
REFSIM_DEVICE long long clock64();
REFSIM_DEVICE long long wall_clock64();
REFSIM_DEVICE unsigned long long __globaltimer();
REFSIM_DEVICE void* memcpy(void*, const void*, size_t);
REFSIM_DEVICE void* malloc(size_t);
REFSIM_DEVICE void free(void*);
REFSIM_DEVICE void* memset(void*, int, size_t);

REFSIM_DEVICE void __syncthreads();
REFSIM_DEVICE int __syncthreads_count(int);
REFSIM_DEVICE int __syncthreads_and(int);
REFSIM_DEVICE int __syncthreads_or(int);
REFSIM_DEVICE void __refsim_grid_sync();
REFSIM_DEVICE void __threadfence_block();
REFSIM_DEVICE void __threadfence();
REFSIM_DEVICE void __threadfence_system();

#ifdef __HIP__
typedef unsigned long long refsim_mask;
#else
typedef unsigned int refsim_mask;
#endif
REFSIM_DEVICE void __syncwarp(refsim_mask = (refsim_mask)-1);
REFSIM_DEVICE refsim_mask __activemask();
REFSIM_DEVICE int __all_sync(refsim_mask, int);
REFSIM_DEVICE int __any_sync(refsim_mask, int);
REFSIM_DEVICE int __uni_sync(refsim_mask, int);
REFSIM_DEVICE refsim_mask __ballot_sync(refsim_mask, int);
template <typename __T> REFSIM_DEVICE __T __shfl_sync(refsim_mask, __T, int, int = warpSize);
template <typename __T> REFSIM_DEVICE __T __shfl_up_sync(refsim_mask, __T, unsigned int, int = warpSize);
template <typename __T> REFSIM_DEVICE __T __shfl_down_sync(refsim_mask, __T, unsigned int, int = warpSize);
template <typename __T> REFSIM_DEVICE __T __shfl_xor_sync(refsim_mask, __T, int, int = warpSize);
template <typename __T> REFSIM_DEVICE refsim_mask __match_any_sync(refsim_mask, __T);
template <typename __T> REFSIM_DEVICE refsim_mask __match_all_sync(refsim_mask, __T, int*);
template <typename __T> REFSIM_DEVICE __T __reduce_add_sync(refsim_mask, __T);
template <typename __T> REFSIM_DEVICE __T __reduce_min_sync(refsim_mask, __T);
template <typename __T> REFSIM_DEVICE __T __reduce_max_sync(refsim_mask, __T);
template <typename __T> REFSIM_DEVICE __T __reduce_and_sync(refsim_mask, __T);
template <typename __T> REFSIM_DEVICE __T __reduce_or_sync(refsim_mask, __T);
template <typename __T> REFSIM_DEVICE __T __reduce_xor_sync(refsim_mask, __T);
REFSIM_DEVICE unsigned int __refsim_lane();

#define REFSIM_ATOMIC(name)                                                        \
  template <typename __T> REFSIM_DEVICE __T name(__T*, typename refsim_same<__T>::type);   \
  template <typename __T> REFSIM_DEVICE __T name##_block(__T*, typename refsim_same<__T>::type); \
  template <typename __T> REFSIM_DEVICE __T name##_system(__T*, typename refsim_same<__T>::type);
REFSIM_ATOMIC(atomicAdd)
REFSIM_ATOMIC(atomicSub)
REFSIM_ATOMIC(atomicExch)
REFSIM_ATOMIC(atomicMin)
REFSIM_ATOMIC(atomicMax)
REFSIM_ATOMIC(atomicInc)
REFSIM_ATOMIC(atomicDec)
REFSIM_ATOMIC(atomicAnd)
REFSIM_ATOMIC(atomicOr)
REFSIM_ATOMIC(atomicXor)
#undef REFSIM_ATOMIC
template <typename __T>
REFSIM_DEVICE __T atomicCAS(__T*, typename refsim_same<__T>::type, typename refsim_same<__T>::type);
template <typename __T>
REFSIM_DEVICE __T atomicCAS_block(__T*, typename refsim_same<__T>::type, typename refsim_same<__T>::type);
template <typename __T>
REFSIM_DEVICE __T atomicCAS_system(__T*, typename refsim_same<__T>::type, typename refsim_same<__T>::type);

template <typename __T> REFSIM_DEVICE __T __ldg(const __T*);
template <typename __T> REFSIM_DEVICE __T __ldca(const __T*);
template <typename __T> REFSIM_DEVICE __T __ldcg(const __T*);
template <typename __T> REFSIM_DEVICE __T __ldcs(const __T*);
template <typename __T> REFSIM_DEVICE __T __ldlu(const __T*);
template <typename __T> REFSIM_DEVICE __T __ldcv(const __T*);
template <typename __T> REFSIM_DEVICE void __stwb(__T*, typename refsim_same<__T>::type);
template <typename __T> REFSIM_DEVICE void __stcg(__T*, typename refsim_same<__T>::type);
template <typename __T> REFSIM_DEVICE void __stcs(__T*, typename refsim_same<__T>::type);
template <typename __T> REFSIM_DEVICE void __stwt(__T*, typename refsim_same<__T>::type);

REFSIM_DEVICE int __popc(unsigned int);
REFSIM_DEVICE int __popcll(unsigned long long);
REFSIM_DEVICE int __clz(int);
REFSIM_DEVICE int __clzll(long long);
REFSIM_DEVICE int __ffs(int);
REFSIM_DEVICE int __ffsll(long long);
REFSIM_DEVICE unsigned int __brev(unsigned int);
REFSIM_DEVICE unsigned long long __brevll(unsigned long long);
REFSIM_DEVICE unsigned int __byte_perm(unsigned int, unsigned int, unsigned int);
REFSIM_DEVICE unsigned int __funnelshift_l(unsigned int, unsigned int, unsigned int);
REFSIM_DEVICE unsigned int __funnelshift_r(unsigned int, unsigned int, unsigned int);
REFSIM_DEVICE int __mulhi(int, int);
REFSIM_DEVICE unsigned int __umulhi(unsigned int, unsigned int);
REFSIM_DEVICE long long __mul64hi(long long, long long);
REFSIM_DEVICE unsigned long long __umul64hi(unsigned long long, unsigned long long);
REFSIM_DEVICE int __mul24(int, int);
REFSIM_DEVICE unsigned int __umul24(unsigned int, unsigned int);
REFSIM_DEVICE unsigned int __sad(int, int, unsigned int);
REFSIM_DEVICE unsigned int __usad(unsigned int, unsigned int, unsigned int);
REFSIM_DEVICE int __hadd(int, int);
REFSIM_DEVICE int __rhadd(int, int);
REFSIM_DEVICE int __dp4a(int, int, int);
REFSIM_DEVICE unsigned int __dp4a(unsigned int, unsigned int, unsigned int);
REFSIM_DEVICE int __dp2a_lo(int, int, int);
REFSIM_DEVICE int __dp2a_hi(int, int, int);
REFSIM_DEVICE bool __isShared(const void*);
REFSIM_DEVICE bool __isGlobal(const void*);
REFSIM_DEVICE size_t __cvta_generic_to_shared(const void*);
REFSIM_DEVICE size_t __cvta_generic_to_global(const void*);
REFSIM_DEVICE void* __cvta_shared_to_generic(size_t);
