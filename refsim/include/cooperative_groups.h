// Cooperative groups: thread block, tiles of a warp, the lanes that are together, the grid.
#pragma once
namespace cooperative_groups {
struct thread_block {
  REFSIM_DEVICE void sync() const { __syncthreads(); }
  REFSIM_DEVICE static unsigned int thread_rank() {
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  }
  REFSIM_DEVICE static unsigned int size() { return blockDim.x * blockDim.y * blockDim.z; }
  REFSIM_DEVICE static unsigned int num_threads() { return size(); }
  REFSIM_DEVICE static uint3 group_index() { return uint3{blockIdx.x, blockIdx.y, blockIdx.z}; }
  REFSIM_DEVICE static uint3 thread_index() { return uint3{threadIdx.x, threadIdx.y, threadIdx.z}; }
  REFSIM_DEVICE static dim3 dim_threads() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
  REFSIM_DEVICE static dim3 group_dim() { return dim_threads(); }
};
REFSIM_DEVICE inline thread_block this_thread_block() { return thread_block{}; }

struct grid_group {
  REFSIM_DEVICE void sync() const { __refsim_grid_sync(); }
  REFSIM_DEVICE static bool is_valid() { return true; }
  REFSIM_DEVICE static unsigned long long thread_rank() {
    unsigned long long block = ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    return block * thread_block::size() + thread_block::thread_rank();
  }
  REFSIM_DEVICE static unsigned long long size() {
    return (unsigned long long)gridDim.x * gridDim.y * gridDim.z * thread_block::size();
  }
  REFSIM_DEVICE static unsigned long long num_threads() { return size(); }
  REFSIM_DEVICE static dim3 group_dim() { return dim3(gridDim.x, gridDim.y, gridDim.z); }
};
REFSIM_DEVICE inline grid_group this_grid() { return grid_group{}; }

template <unsigned int n, typename __Parent = void> struct thread_block_tile {
  REFSIM_DEVICE static unsigned int thread_rank() { return thread_block::thread_rank() % n; }
  REFSIM_DEVICE static constexpr unsigned int size() { return n; }
  REFSIM_DEVICE static constexpr unsigned int num_threads() { return n; }
  REFSIM_DEVICE static unsigned int meta_group_rank() { return thread_block::thread_rank() / n; }
  REFSIM_DEVICE static unsigned int meta_group_size() { return (thread_block::size() + n - 1) / n; }
  REFSIM_DEVICE static refsim_mask mask() {
    unsigned int first = __refsim_lane() / n * n;
    return n == sizeof(refsim_mask) * 8 ? (refsim_mask)-1 : ((((refsim_mask)1 << (n % (sizeof(refsim_mask) * 8))) - 1) << first);
  }
  REFSIM_DEVICE void sync() const { __syncwarp(mask()); }
  template <typename __T> REFSIM_DEVICE __T shfl(__T x, int lane) const { return __shfl_sync(mask(), x, lane, n); }
  template <typename __T> REFSIM_DEVICE __T shfl_up(__T x, unsigned int d) const { return __shfl_up_sync(mask(), x, d, n); }
  template <typename __T> REFSIM_DEVICE __T shfl_down(__T x, unsigned int d) const { return __shfl_down_sync(mask(), x, d, n); }
  template <typename __T> REFSIM_DEVICE __T shfl_xor(__T x, int m) const { return __shfl_xor_sync(mask(), x, m, n); }
  template <typename __T> REFSIM_DEVICE unsigned int match_any(__T x) const {
    return (unsigned int)(__match_any_sync(mask(), x) >> (__refsim_lane() / n * n));
  }
  REFSIM_DEVICE int any(int p) const { return __any_sync(mask(), p); }
  REFSIM_DEVICE int all(int p) const { return __all_sync(mask(), p); }
  REFSIM_DEVICE refsim_mask ballot(int p) const { return __ballot_sync(mask(), p) >> (__refsim_lane() / n * n); }
};
template <unsigned int n, typename __Group> REFSIM_DEVICE inline thread_block_tile<n> tiled_partition(const __Group&) {
  return thread_block_tile<n>{};
}

struct coalesced_group {
  refsim_mask lanes;
  REFSIM_DEVICE unsigned int size() const { return (unsigned int)__popcll(lanes); }
  REFSIM_DEVICE unsigned int num_threads() const { return size(); }
  REFSIM_DEVICE unsigned int thread_rank() const {
    return (unsigned int)__popcll(lanes & (((refsim_mask)1 << __refsim_lane()) - 1));
  }
  REFSIM_DEVICE void sync() const { __syncwarp(lanes); }
  REFSIM_DEVICE int any(int p) const { return __any_sync(lanes, p); }
  REFSIM_DEVICE int all(int p) const { return __all_sync(lanes, p); }
  template <typename __T> REFSIM_DEVICE __T shfl(__T x, int rank) const {
    int source = 0;
    for (int lane = 0, seen = 0; lane < warpSize; ++lane) {
      if ((lanes >> lane) & 1) {
        if (seen == rank) source = lane;
        ++seen;
      }
    }
    return __shfl_sync(lanes, x, source);
  }
  template <typename __T> REFSIM_DEVICE __T shfl_down(__T x, unsigned int d) const {
    unsigned int rank = thread_rank() + d;
    return shfl(x, (int)(rank < size() ? rank : thread_rank()));
  }
  template <typename __T> REFSIM_DEVICE __T shfl_up(__T x, unsigned int d) const {
    unsigned int rank = thread_rank();
    return shfl(x, (int)(rank < d ? rank : rank - d));
  }
  REFSIM_DEVICE unsigned int ballot(int p) const {
    refsim_mask voted = __ballot_sync(lanes, p);
    unsigned int result = 0;
    for (int lane = 0, rank = 0; lane < warpSize; ++lane) {
      if ((lanes >> lane) & 1) {
        result |= (unsigned int)((voted >> lane) & 1) << rank;
        ++rank;
      }
    }
    return result;
  }
};
template <unsigned int n, typename __P> REFSIM_DEVICE inline refsim_mask __lanes_of(const thread_block_tile<n, __P>& tile) {
  return tile.mask();
}
REFSIM_DEVICE inline refsim_mask __lanes_of(const coalesced_group& g) { return g.lanes; }
REFSIM_DEVICE inline coalesced_group coalesced_threads() { return coalesced_group{__activemask()}; }
template <typename __Group> REFSIM_DEVICE inline void sync(const __Group& g) { g.sync(); }

template <typename __T> struct plus { REFSIM_DEVICE __T operator()(__T a, __T b) const { return a + b; } };
template <typename __T> struct less { REFSIM_DEVICE __T operator()(__T a, __T b) const { return b < a ? b : a; } };
template <typename __T> struct greater { REFSIM_DEVICE __T operator()(__T a, __T b) const { return a < b ? b : a; } };
template <unsigned int n, typename __P, typename __T, typename __Op>
REFSIM_DEVICE inline __T reduce(const thread_block_tile<n, __P>& tile, __T x, __Op op) {
  for (int d = n / 2; d > 0; d /= 2) x = op(x, tile.shfl_xor(x, d));
  return x;
}
template <typename __T> struct bit_and { REFSIM_DEVICE __T operator()(__T a, __T b) const { return a & b; } };
template <typename __T> struct bit_or { REFSIM_DEVICE __T operator()(__T a, __T b) const { return a | b; } };
template <typename __T> struct bit_xor { REFSIM_DEVICE __T operator()(__T a, __T b) const { return a ^ b; } };
template <typename __T, typename __Op> REFSIM_DEVICE inline __T reduce(const coalesced_group& group, __T x, __Op op) {
  __T r = group.shfl(x, 0);
  for (unsigned int rank = 1; rank < group.size(); ++rank) r = op(r, group.shfl(x, (int)rank));
  return r;
}
template <unsigned int n, typename __P, typename __T, typename __Op>
REFSIM_DEVICE inline __T inclusive_scan(const thread_block_tile<n, __P>& tile, __T x, __Op op) {
  for (unsigned int d = 1; d < n; d *= 2) {
    __T y = tile.shfl_up(x, d);
    if (tile.thread_rank() >= d) x = op(y, x);
  }
  return x;
}
template <unsigned int n, typename __P, typename __T>
REFSIM_DEVICE inline __T inclusive_scan(const thread_block_tile<n, __P>& tile, __T x) { return inclusive_scan(tile, x, plus<__T>()); }
template <unsigned int n, typename __P, typename __T, typename __Op>
REFSIM_DEVICE inline __T exclusive_scan(const thread_block_tile<n, __P>& tile, __T x, __Op op) {
  __T y = tile.shfl_up(inclusive_scan(tile, x, op), 1);
  return tile.thread_rank() == 0 ? __T() : y;
}
template <unsigned int n, typename __P, typename __T>
REFSIM_DEVICE inline __T exclusive_scan(const thread_block_tile<n, __P>& tile, __T x) { return exclusive_scan(tile, x, plus<__T>()); }

template <typename __Group, typename __Label>
REFSIM_DEVICE inline coalesced_group labeled_partition(const __Group& g, __Label label) {
  return coalesced_group{__match_any_sync(__lanes_of(g), label)};
}
template <typename __Group> REFSIM_DEVICE inline coalesced_group binary_partition(const __Group& g, bool which) {
  const refsim_mask lanes = __lanes_of(g), yes = __ballot_sync(lanes, which);
  return coalesced_group{which ? yes : lanes & ~yes};
}

// Any group but the grid, where the source does not say which.
struct thread_group {
  bool whole_block;
  refsim_mask lanes;
  unsigned int count, rank;
  REFSIM_DEVICE thread_group(const thread_block& block)
      : whole_block(true), lanes(0), count(block.size()), rank(block.thread_rank()) {}
  REFSIM_DEVICE thread_group(const coalesced_group& g)
      : whole_block(false), lanes(g.lanes), count(g.size()), rank(g.thread_rank()) {}
  template <unsigned int n, typename __P> REFSIM_DEVICE thread_group(const thread_block_tile<n, __P>& tile)
      : whole_block(false), lanes(tile.mask()), count(n), rank(tile.thread_rank()) {}
  REFSIM_DEVICE thread_group(refsim_mask lanes, unsigned int count, unsigned int rank)
      : whole_block(false), lanes(lanes), count(count), rank(rank) {}
  REFSIM_DEVICE void sync() const {
    if (whole_block) __syncthreads();
    else __syncwarp(lanes);
  }
  REFSIM_DEVICE unsigned int size() const { return count; }
  REFSIM_DEVICE unsigned int num_threads() const { return count; }
  REFSIM_DEVICE unsigned int thread_rank() const { return rank; }
  REFSIM_DEVICE static bool is_valid() { return true; }
};
REFSIM_DEVICE inline thread_group tiled_partition(const thread_group& parent, unsigned int n) {
  const unsigned int bits = sizeof(refsim_mask) * 8;
  const refsim_mask all = n >= bits ? ~(refsim_mask)0 : ((refsim_mask)1 << n) - 1;
  return thread_group(all << (__refsim_lane() / n * n), n, parent.thread_rank() % n);
}

struct __attribute__((unavailable("refsim has no clusters"))) cluster_group;
}  // namespace cooperative_groups
