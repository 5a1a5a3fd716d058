// Asynchronous copies by CUDA's pipeline functions: the bytes move when a copy is issued, and count as on their way
// until it is waited for.
#pragma once
REFSIM_DEVICE void __refsim_copy_begin();
REFSIM_DEVICE void __refsim_copy_end();
REFSIM_DEVICE void __refsim_copy_commit();
REFSIM_DEVICE void __refsim_copy_wait(size_t);
REFSIM_DEVICE inline void __pipeline_memcpy_async(void* target, const void* source, size_t bytes) {
  __refsim_copy_begin();
  if (bytes == 16) *(uint4*)target = *(const uint4*)source;
  else if (bytes == 8) *(uint2*)target = *(const uint2*)source;
  else *(unsigned int*)target = *(const unsigned int*)source;
  __refsim_copy_end();
}
REFSIM_DEVICE inline void __pipeline_commit() { __refsim_copy_commit(); }
REFSIM_DEVICE inline void __pipeline_wait_prior(size_t count) { __refsim_copy_wait(count); }
