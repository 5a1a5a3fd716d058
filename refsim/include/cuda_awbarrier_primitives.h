// Barrier objects by CUDA's C functions.
#pragma once
#include "refsim_barriers.h"
typedef unsigned long long __mbarrier_t;
typedef unsigned long long __mbarrier_token_t;
REFSIM_DEVICE inline unsigned int __mbarrier_maximum_count() { return (1u << 20) - 1; }
REFSIM_DEVICE inline void __mbarrier_init(__mbarrier_t* b, unsigned int count) { __refsim_barrier_init(b, count); }
REFSIM_DEVICE inline void __mbarrier_inval(__mbarrier_t* b) { __refsim_barrier_inval(b); }
REFSIM_DEVICE inline __mbarrier_token_t __mbarrier_arrive(__mbarrier_t* b) { return __refsim_barrier_arrive(b, 1); }
REFSIM_DEVICE inline __mbarrier_token_t __mbarrier_arrive_and_drop(__mbarrier_t* b) { return __refsim_barrier_drop(b, 1); }
REFSIM_DEVICE inline bool __mbarrier_test_wait(__mbarrier_t* b, __mbarrier_token_t token) {
  return __refsim_barrier_test(b, token);
}
REFSIM_DEVICE inline bool __mbarrier_test_wait_parity(__mbarrier_t* b, bool parity) {
  return __refsim_barrier_parity(b, parity);
}
