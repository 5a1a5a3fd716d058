// Sum over one axis or all: two passes of warp shuffles, or one pass and an atomic addition per block.
//
// Every kernel sees the input as x[outer, length, inner] and sums over the middle axis into out[outer, inner]. A block
// owns one chunk of one line x[o, :, i]:
//
//     line   │ chunk 0              │ chunk 1              │ chunk 2      │
//              ┊f┊f┊f┊…┊f┊            ┊f┊f┊f┊…                              fragments of 16 bytes (fragment.cuh)
//               t0 t1 …  t255 t0 …                                          thread t owns fragments t, t + 256, …
//
//              256 registers ──fold_block──► one sum
//
// sum_chunks   pass 1: x ──► partials[outer, chunks, inner]
//              pass 2: the same kernel, one chunk holding all partial sums   partials ──► out
//
// sum_atomic   the block's first thread adds its sum to totals[outer, inner] in global memory, which holds zeros

#include "fold.cuh"
#include "fragment.cuh"

constexpr int THREADS = 256;

// The sum of one chunk of a line, in every thread.
template <typename T> __device__ inline RealOf<T> sum_of_chunk(const T* chunk, Index length, Index stride) {
    using Real = RealOf<T>;
    constexpr int LENGTH = Fragment<T>::LENGTH;
    __shared__ Real cells[THREADS / SMALLEST_WARP];
    Real values[LENGTH];

    Real partial = 0;
    const Index first = first_fragment(chunk, stride) + threadIdx.x * LENGTH;
    for (Index position = first; position < length; position += THREADS * LENGTH) {
        load_fragment(values, chunk, position, length, stride, Real(0));
#pragma unroll
        for (int i = 0; i < LENGTH; i++) {
            partial += values[i];
        }
    }
    return fold_block<Sum<Real>>(cells, partial);
}

// out[outer, chunks, inner]: sums of x[outer, length, inner] over chunks of chunk_length; one block per element of out.
template <typename T, typename Out>
__global__ void __launch_bounds__(THREADS) sum_chunks(
    const T* x, Index outer_stride, Index length_stride, Index inner_stride,
    Index length, Index inner, Index chunk_length, Index chunks, Out* out
) {
    const Index block = blockIdx.x;
    const Index i = block % inner;
    const Index chunk = block / inner % chunks;
    const Index o = block / inner / chunks;
    const Index start = chunk * chunk_length;
    const Index rest = length - start;
    const T* first = x + o * outer_stride + start * length_stride + i * inner_stride;

    const RealOf<T> sum = sum_of_chunk(first, rest < chunk_length ? rest : chunk_length, length_stride);
    if (threadIdx.x == 0) {
        out[block] = narrow<Out>(sum);
    }
}

// totals[outer, inner] += sums of x[outer, length, inner] over chunks of chunk_length; grid as for sum_chunks.
template <typename T>
__global__ void __launch_bounds__(THREADS) sum_atomic(
    const T* x, Index outer_stride, Index length_stride, Index inner_stride,
    Index length, Index inner, Index chunk_length, Index chunks, RealOf<T>* totals
) {
    const Index block = blockIdx.x;
    const Index i = block % inner;
    const Index chunk = block / inner % chunks;
    const Index o = block / inner / chunks;
    const Index start = chunk * chunk_length;
    const Index rest = length - start;
    const T* first = x + o * outer_stride + start * length_stride + i * inner_stride;

    const RealOf<T> sum = sum_of_chunk(first, rest < chunk_length ? rest : chunk_length, length_stride);
    if (threadIdx.x == 0) {
        atomicAdd(totals + o * inner + i, sum);
    }
}

// out[cells] = totals[cells] rounded to T; one thread per fragment.
template <typename T>
__global__ void __launch_bounds__(THREADS) round_to_output(const RealOf<T>* totals, Index cells, T* out) {
    using Real = RealOf<T>;
    constexpr int LENGTH = Fragment<T>::LENGTH;
    Real values[LENGTH];
    const Index first = (static_cast<Index>(blockIdx.x) * THREADS + threadIdx.x) * LENGTH;
#pragma unroll
    for (int i = 0; i < LENGTH; i++) {
        values[i] = first + i < cells ? totals[first + i] : Real(0);
    }
    store_fragment(out, first, cells, values);
}
