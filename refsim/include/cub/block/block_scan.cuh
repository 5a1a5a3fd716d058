// cub::BlockScan: prefix sums of the block's threads, in the order of their ranks.
#pragma once
#include "../thread/thread_operators.cuh"
namespace cub {
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

template <typename T, int BLOCK_DIM_X, BlockScanAlgorithm ALGORITHM = BLOCK_SCAN_RAKING, int BLOCK_DIM_Y = 1,
          int BLOCK_DIM_Z = 1, int LEGACY_ARCH = 0>
class BlockScan {
  static constexpr int THREADS = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;

 public:
  struct TempStorage { alignas(T) unsigned char warps[(THREADS + 15) / 16 * sizeof(T)]; };
  __device__ explicit BlockScan(TempStorage& storage) : warps_(reinterpret_cast<T*>(storage.warps)) {}

  template <typename Op> __device__ void InclusiveScan(T input, T& output, Op op, T& aggregate) {
    T before;
    const bool any = scan(input, output, before, op, aggregate);
    if (any) output = op(before, output);
  }
  template <typename Op> __device__ void InclusiveScan(T input, T& output, Op op) {
    T aggregate;
    InclusiveScan(input, output, op, aggregate);
  }
  template <typename Op> __device__ void ExclusiveScan(T input, T& output, T initial, Op op, T& aggregate) {
    T inclusive, before;
    const bool any = scan(input, inclusive, before, op, aggregate);
    const T previous = refsim_::previous(inclusive);
    output = any ? op(initial, before) : initial;
    if (refsim_::thread_rank() % warpSize != 0) output = op(output, previous);
  }
  template <typename Op> __device__ void ExclusiveScan(T input, T& output, T initial, Op op) {
    T aggregate;
    ExclusiveScan(input, output, initial, op, aggregate);
  }
  template <int ITEMS, typename Op>
  __device__ void InclusiveScan(T (&inputs)[ITEMS], T (&outputs)[ITEMS], Op op) {
    T own = inputs[0], total, before, aggregate;
    for (int i = 1; i < ITEMS; ++i) own = op(own, inputs[i]);
    const bool any = scan(own, total, before, op, aggregate);
    const T previous = refsim_::previous(total);
    const bool inner = refsim_::thread_rank() % warpSize != 0;
    T running = inputs[0];
    if (inner) running = op(previous, running);
    if (any) running = op(before, running);
    outputs[0] = running;
    for (int i = 1; i < ITEMS; ++i) outputs[i] = running = op(running, inputs[i]);
  }
  template <int ITEMS, typename Op>
  __device__ void ExclusiveScan(T (&inputs)[ITEMS], T (&outputs)[ITEMS], T initial, Op op) {
    T own = inputs[0], running, aggregate;
    for (int i = 1; i < ITEMS; ++i) own = op(own, inputs[i]);
    ExclusiveScan(own, running, initial, op, aggregate);
    for (int i = 0; i < ITEMS; ++i) {
      const T item = inputs[i];
      outputs[i] = running;
      running = op(running, item);
    }
  }
  __device__ void InclusiveSum(T input, T& output) { InclusiveScan(input, output, cub::Sum()); }
  __device__ void InclusiveSum(T input, T& output, T& aggregate) { InclusiveScan(input, output, cub::Sum(), aggregate); }
  __device__ void ExclusiveSum(T input, T& output) { ExclusiveScan(input, output, T(0), cub::Sum()); }
  __device__ void ExclusiveSum(T input, T& output, T& aggregate) {
    ExclusiveScan(input, output, T(0), cub::Sum(), aggregate);
  }
  template <int ITEMS> __device__ void InclusiveSum(T (&inputs)[ITEMS], T (&outputs)[ITEMS]) {
    InclusiveScan(inputs, outputs, cub::Sum());
  }
  template <int ITEMS> __device__ void ExclusiveSum(T (&inputs)[ITEMS], T (&outputs)[ITEMS]) {
    ExclusiveScan(inputs, outputs, T(0), cub::Sum());
  }

 private:
  // Scans within warps; `before` is what earlier warps come to, if there are any.
  template <typename Op> __device__ bool scan(T input, T& inclusive, T& before, Op op, T& aggregate) {
    const int rank = refsim_::thread_rank(), lane = rank % warpSize, warp = rank / warpSize;
    const int count = (THREADS + warpSize - 1) / warpSize;
    inclusive = refsim_::scanned(input, op, warpSize);
    if (lane == warpSize - 1 || rank == THREADS - 1) warps_[warp] = inclusive;
    __syncthreads();
    T total = warps_[0];
    before = total;
    for (int i = 1; i < count; ++i) {
      if (i == warp) before = total;
      total = op(total, warps_[i]);
    }
    aggregate = total;
    return warp > 0;
  }
  T* warps_;
};
}  // namespace cub
