// Operators of cub, and exchange of values of any type between the lanes of a warp.
#pragma once
#include "../../cstring"
namespace cub {
struct Sum { template <typename T> __device__ T operator()(const T& a, const T& b) const { return a + b; } };
struct Difference { template <typename T> __device__ T operator()(const T& a, const T& b) const { return a - b; } };
struct Max { template <typename T> __device__ T operator()(const T& a, const T& b) const { return b > a ? b : a; } };
struct Min { template <typename T> __device__ T operator()(const T& a, const T& b) const { return b < a ? b : a; } };
struct Equality { template <typename T> __device__ bool operator()(const T& a, const T& b) const { return a == b; } };
struct NullType {};

namespace refsim_ {
__device__ inline int thread_rank() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

// Where item i of this thread lies in the block's tile: beside its others, or `threads` apart.
template <bool striped, int threads, int items> __device__ int tile_position(int i) {
  return striped ? thread_rank() + i * threads : thread_rank() * items + i;
}

// The value that another lane of the warp has, of any type.
template <typename T> __device__ T taken(T value, int lane) {
  if constexpr (sizeof(T) % 4 == 0) {
    unsigned words[sizeof(T) / 4];
    memcpy(words, &value, sizeof(T));
    for (int i = 0; i < (int)(sizeof(T) / 4); ++i) words[i] = __shfl_sync(__activemask(), words[i], lane);
    memcpy(&value, words, sizeof(T));
  } else {
    unsigned char bytes[sizeof(T)];
    memcpy(bytes, &value, sizeof(T));
    for (int i = 0; i < (int)sizeof(T); ++i) bytes[i] = __shfl_sync(__activemask(), (unsigned)bytes[i], lane);
    memcpy(&value, bytes, sizeof(T));
  }
  return value;
}

// Lane 0 of each group of `width` lanes gets the reduction of the group's first `valid` ones.
template <typename T, typename Op> __device__ T reduced(T value, Op op, int valid, int width) {
  const int lane = thread_rank() % warpSize, within = lane % width;
  for (int distance = 1; distance < width; distance *= 2) {
    const bool there = within + distance < valid;
    const T other = taken(value, there ? lane + distance : lane);
    if (there) value = op(value, other);
  }
  return value;
}

// Each lane gets the reduction of its group's lanes up to itself.
template <typename T, typename Op> __device__ T scanned(T value, Op op, int width) {
  const int lane = thread_rank() % warpSize, within = lane % width;
  for (int distance = 1; distance < width; distance *= 2) {
    const bool there = within >= distance;
    const T other = taken(value, there ? lane - distance : lane);
    if (there) value = op(other, value);
  }
  return value;
}

// The value of the lane before, the own one in the first lane.
template <typename T> __device__ T previous(T value) {
  const int lane = thread_rank() % warpSize;
  return taken(value, lane ? lane - 1 : 0);
}
}  // namespace refsim_
}  // namespace cub
