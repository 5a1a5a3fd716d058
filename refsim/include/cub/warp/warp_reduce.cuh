// cub::WarpReduce: the result is in the first lane of each logical warp.
#pragma once
#include "../thread/thread_operators.cuh"
namespace cub {
template <typename T, int LOGICAL_WARP_THREADS = 32, int LEGACY_ARCH = 0> class WarpReduce {
 public:
  struct TempStorage { unsigned char unused; };
  __device__ explicit WarpReduce(TempStorage&) {}
  template <typename Op> __device__ T Reduce(T input, Op op, int valid_items = LOGICAL_WARP_THREADS) {
    return refsim_::reduced(input, op, valid_items, LOGICAL_WARP_THREADS);
  }
  __device__ T Sum(T input, int valid_items = LOGICAL_WARP_THREADS) { return Reduce(input, cub::Sum(), valid_items); }
  __device__ T Max(T input, int valid_items = LOGICAL_WARP_THREADS) { return Reduce(input, cub::Max(), valid_items); }
  __device__ T Min(T input, int valid_items = LOGICAL_WARP_THREADS) { return Reduce(input, cub::Min(), valid_items); }
};
}  // namespace cub
