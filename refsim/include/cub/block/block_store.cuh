// cub::BlockStore: the registers of a block's threads into a tile of memory.
#pragma once
#include "../thread/thread_operators.cuh"
namespace cub {
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};

template <typename T, int BLOCK_DIM_X, int ITEMS, BlockStoreAlgorithm ALGORITHM = BLOCK_STORE_DIRECT,
          int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1, int LEGACY_ARCH = 0>
class BlockStore {
 public:
  struct TempStorage { unsigned char unused; };
  __device__ BlockStore() {}
  __device__ explicit BlockStore(TempStorage&) {}
  template <typename Iterator> __device__ void Store(Iterator to, T (&items)[ITEMS]) {
    for (int i = 0; i < ITEMS; ++i) to[position(i)] = items[i];
  }
  template <typename Iterator> __device__ void Store(Iterator to, T (&items)[ITEMS], int valid) {
    for (int i = 0; i < ITEMS; ++i)
      if (position(i) < valid) to[position(i)] = items[i];
  }

 private:
  static __device__ int position(int i) {
    return refsim_::tile_position<ALGORITHM == BLOCK_STORE_STRIPED, BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z, ITEMS>(i);
  }
};
}  // namespace cub
