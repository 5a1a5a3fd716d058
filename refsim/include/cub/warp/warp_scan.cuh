// cub::WarpScan: prefix sums within a logical warp.
#pragma once
#include "../thread/thread_operators.cuh"
namespace cub {
template <typename T, int LOGICAL_WARP_THREADS = 32, int LEGACY_ARCH = 0> class WarpScan {
 public:
  struct TempStorage { unsigned char unused; };
  __device__ explicit WarpScan(TempStorage&) {}
  template <typename Op> __device__ void InclusiveScan(T input, T& output, Op op) {
    output = refsim_::scanned(input, op, LOGICAL_WARP_THREADS);
  }
  template <typename Op> __device__ void InclusiveScan(T input, T& output, Op op, T& aggregate) {
    InclusiveScan(input, output, op);
    const int lane = refsim_::thread_rank() % warpSize;
    aggregate = refsim_::taken(output, lane - lane % LOGICAL_WARP_THREADS + LOGICAL_WARP_THREADS - 1);
  }
  template <typename Op> __device__ void ExclusiveScan(T input, T& output, T initial, Op op) {
    const T inclusive = refsim_::scanned(input, op, LOGICAL_WARP_THREADS);
    const T before = refsim_::previous(inclusive);
    const bool first = refsim_::thread_rank() % warpSize % LOGICAL_WARP_THREADS == 0;
    output = first ? initial : op(initial, before);
  }
  __device__ void InclusiveSum(T input, T& output) { InclusiveScan(input, output, cub::Sum()); }
  __device__ void InclusiveSum(T input, T& output, T& aggregate) { InclusiveScan(input, output, cub::Sum(), aggregate); }
  __device__ void ExclusiveSum(T input, T& output) { ExclusiveScan(input, output, T(0), cub::Sum()); }
};
}  // namespace cub
