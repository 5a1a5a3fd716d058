// cub::BlockLoad: a tile of memory into the registers of a block's threads.
#pragma once
#include "../thread/thread_operators.cuh"
namespace cub {
enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};

template <typename T, int BLOCK_DIM_X, int ITEMS, BlockLoadAlgorithm ALGORITHM = BLOCK_LOAD_DIRECT,
          int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1, int LEGACY_ARCH = 0>
class BlockLoad {
 public:
  struct TempStorage { unsigned char unused; };
  __device__ BlockLoad() {}
  __device__ explicit BlockLoad(TempStorage&) {}
  template <typename Iterator> __device__ void Load(Iterator from, T (&items)[ITEMS]) {
    for (int i = 0; i < ITEMS; ++i) items[i] = from[position(i)];
  }
  template <typename Iterator> __device__ void Load(Iterator from, T (&items)[ITEMS], int valid) {
    for (int i = 0; i < ITEMS; ++i)
      if (position(i) < valid) items[i] = from[position(i)];
  }
  template <typename Iterator, typename Default>
  __device__ void Load(Iterator from, T (&items)[ITEMS], int valid, Default other) {
    for (int i = 0; i < ITEMS; ++i) items[i] = position(i) < valid ? T(from[position(i)]) : T(other);
  }

 private:
  static __device__ int position(int i) {
    return refsim_::tile_position<ALGORITHM == BLOCK_LOAD_STRIPED, BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z, ITEMS>(i);
  }
};
}  // namespace cub
