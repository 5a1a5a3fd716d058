// Barrier objects in shared memory, declared only.
#pragma once
REFSIM_DEVICE void __refsim_barrier_init(unsigned long long*, long long);
REFSIM_DEVICE void __refsim_barrier_inval(unsigned long long*);
REFSIM_DEVICE unsigned long long __refsim_barrier_arrive(unsigned long long*, long long);
REFSIM_DEVICE unsigned long long __refsim_barrier_drop(unsigned long long*, long long);
REFSIM_DEVICE bool __refsim_barrier_test(unsigned long long*, unsigned long long);
REFSIM_DEVICE bool __refsim_barrier_parity(unsigned long long*, unsigned long long);
REFSIM_DEVICE void __refsim_copies_arrive();
