// Copies that the threads of a group share and wait for together.
#pragma once
#include "../cooperative_groups.h"
#include "../cuda_pipeline.h"
namespace cooperative_groups {
template <typename __Group, typename __T>
REFSIM_DEVICE inline void memcpy_async(const __Group& group, __T* target, const __T* source, size_t bytes) {
  for (size_t i = group.thread_rank(); i < bytes / sizeof(__T); i += group.size()) {
    __refsim_copy_begin();
    target[i] = source[i];
    __refsim_copy_end();
  }
  __refsim_copy_commit();
}
template <unsigned int stages, typename __Group> REFSIM_DEVICE inline void wait_prior(const __Group& group) {
  __refsim_copy_wait(stages);
  group.sync();
}
template <typename __Group> REFSIM_DEVICE inline void wait(const __Group& group) { wait_prior<0>(group); }
}  // namespace cooperative_groups
