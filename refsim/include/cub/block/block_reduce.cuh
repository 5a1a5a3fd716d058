// cub::BlockReduce: the result is in the block's first thread.
#pragma once
#include "../thread/thread_operators.cuh"
namespace cub {
enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS,
  BLOCK_REDUCE_WARP_REDUCTIONS_NONDETERMINISTIC
};

template <typename T, int BLOCK_DIM_X, BlockReduceAlgorithm ALGORITHM = BLOCK_REDUCE_WARP_REDUCTIONS,
          int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1, int LEGACY_ARCH = 0>
class BlockReduce {
  static constexpr int THREADS = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;

 public:
  struct TempStorage { alignas(T) unsigned char warps[(THREADS + 15) / 16 * sizeof(T)]; };
  __device__ explicit BlockReduce(TempStorage& storage) : warps_(reinterpret_cast<T*>(storage.warps)) {}

  template <typename Op> __device__ T Reduce(T input, Op op, int num_valid) {
    if (num_valid > THREADS) num_valid = THREADS;
    const int rank = refsim_::thread_rank(), lane = rank % warpSize;
    const T sum = refsim_::reduced(input, op, num_valid - (rank - lane), warpSize);
    if (lane == 0) warps_[rank / warpSize] = sum;
    __syncthreads();
    T total = sum;
    if (rank == 0)
      for (int i = warpSize; i < num_valid; i += warpSize) total = op(total, warps_[i / warpSize]);
    return total;
  }
  template <typename Op> __device__ T Reduce(T input, Op op) { return Reduce(input, op, THREADS); }
  template <int ITEMS, typename Op> __device__ T Reduce(T (&inputs)[ITEMS], Op op) {
    T own = inputs[0];
    for (int i = 1; i < ITEMS; ++i) own = op(own, inputs[i]);
    return Reduce(own, op, THREADS);
  }
  __device__ T Sum(T input) { return Reduce(input, cub::Sum()); }
  __device__ T Sum(T input, int num_valid) { return Reduce(input, cub::Sum(), num_valid); }
  template <int ITEMS> __device__ T Sum(T (&inputs)[ITEMS]) { return Reduce(inputs, cub::Sum()); }

 private:
  T* warps_;
};
}  // namespace cub
