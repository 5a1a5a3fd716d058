// Softmax over the last axis: a block per row, in three sweeps or in two.
//
// Block b owns row b of x[rows, cols], thread t fragments t, t + 256, … of it (16 bytes each, fragment.cuh):
//
//     row b   ┊ t0 ┊ t1 ┊ … ┊ t255 ┊ t0 ┊ t1 ┊ …        places outside the row are filled with -inf, which adds nothing
//
// softmax_block    sweep 1: maximum of my columns       ──fold_block──► row_max
//                  sweep 2: sum of exp(x - row_max)     ──fold_block──► row_sum
//                  sweep 3: out = exp(x - row_max) / row_sum
//
// softmax_online   sweep 1: running maximum and running sum of my columns, the sum rescaled whenever the maximum grows
//                           ──fold_block──► row_max;  my sum · exp(my maximum - row_max) ──fold_block──► row_sum
//                  sweep 2: out = exp(x - row_max) / row_sum
//
// A row holding NaN or +inf, or -inf alone, is NaN throughout, as exp(x - max) / sum is.

#include "fold.cuh"
#include "fragment.cuh"

constexpr int THREADS = 256;

// out[0 … cols) = exp(row - row_max) / row_sum; `first` is the thread's first position.
template <typename T>
__device__ inline void write_quotients(
    const T* row, Index first, Index cols, Index col_stride, RealOf<T> row_max, RealOf<T> row_sum, T* out
) {
    constexpr int LENGTH = Fragment<T>::LENGTH;
    RealOf<T> values[LENGTH];
    for (Index col = first; col < cols; col += THREADS * LENGTH) {
        load_fragment(values, row, col, cols, col_stride, row_max);
#pragma unroll
        for (int i = 0; i < LENGTH; i++) {
            values[i] = exponential(values[i] - row_max) / row_sum;
        }
        store_fragment(out, col, cols, values);
    }
}

// Softmax of each row of x[rows, cols] into out[rows, cols], which is contiguous; one block per row, three sweeps.
template <typename T>
__global__ void __launch_bounds__(THREADS) softmax_block(
    const T* x, Index row_stride, Index col_stride, Index cols, T* out
) {
    using Real = RealOf<T>;
    constexpr int LENGTH = Fragment<T>::LENGTH;
    __shared__ Real cells[THREADS / SMALLEST_WARP];
    Real values[LENGTH];
    const Index row_number = blockIdx.x;
    const T* row = x + row_number * row_stride;
    const Index first = first_fragment(row, col_stride) + threadIdx.x * LENGTH;

    Real my_max = negative_infinity<Real>();
    for (Index col = first; col < cols; col += THREADS * LENGTH) {
        load_fragment(values, row, col, cols, col_stride, negative_infinity<Real>());
#pragma unroll
        for (int i = 0; i < LENGTH; i++) {
            my_max = larger(my_max, values[i]);
        }
    }
    const Real row_max = fold_block<Maximum<Real>>(cells, my_max);

    Real my_sum = 0;
    for (Index col = first; col < cols; col += THREADS * LENGTH) {
        load_fragment(values, row, col, cols, col_stride, negative_infinity<Real>());
#pragma unroll
        for (int i = 0; i < LENGTH; i++) {
            my_sum += exponential(values[i] - row_max);
        }
    }
    const Real row_sum = fold_block<Sum<Real>>(cells, my_sum);

    write_quotients(row, first, cols, col_stride, row_max, row_sum, out + row_number * cols);
}

// Softmax of each row of x[rows, cols] into out[rows, cols], which is contiguous; one block per row, two sweeps.
template <typename T>
__global__ void __launch_bounds__(THREADS) softmax_online(
    const T* x, Index row_stride, Index col_stride, Index cols, T* out
) {
    using Real = RealOf<T>;
    constexpr int LENGTH = Fragment<T>::LENGTH;
    __shared__ Real cells[THREADS / SMALLEST_WARP];
    Real values[LENGTH];
    const Index row_number = blockIdx.x;
    const T* row = x + row_number * row_stride;
    const Index first = first_fragment(row, col_stride) + threadIdx.x * LENGTH;

    Real my_max = negative_infinity<Real>();
    Real my_sum = 0;  // of exp(x - my_max)
    for (Index col = first; col < cols; col += THREADS * LENGTH) {
        load_fragment(values, row, col, cols, col_stride, negative_infinity<Real>());
        Real new_max = my_max;
#pragma unroll
        for (int i = 0; i < LENGTH; i++) {
            new_max = larger(new_max, values[i]);
        }
        // No number met so far: -inf - 0 is -inf, where -inf - -inf would be NaN.
        const Real shift = new_max == negative_infinity<Real>() ? Real(0) : new_max;
        my_sum *= exponential(my_max - shift);
#pragma unroll
        for (int i = 0; i < LENGTH; i++) {
            my_sum += exponential(values[i] - shift);
        }
        my_max = new_max;
    }
    const Real row_max = fold_block<Maximum<Real>>(cells, my_max);

    if (my_max != negative_infinity<Real>()) {  // otherwise I met no number, and my sum stands: 0, or NaN
        my_sum *= exponential(my_max - row_max);
    }
    const Real row_sum = fold_block<Sum<Real>>(cells, my_sum);

    write_quotients(row, first, cols, col_stride, row_max, row_sum, out + row_number * cols);
}
