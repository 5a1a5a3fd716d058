// RMSNorm: a block per row, mean square by warp shuffles.
//
// Block b owns row b of x[rows, cols], thread t fragments t, t + 256, … of it (16 bytes each, fragment.cuh):
//
//     row b    ┊ t0 ┊ t1 ┊ … ┊ t255 ┊ t0 ┊ t1 ┊ …
//
//     sweep 1:  sum of my x²  ──fold_block──► square_sum ──► rms = sqrt(square_sum / cols + eps)
//     sweep 2:  out = x / rms · weight                        weight and out in fragments at the same columns

#include "fold.cuh"
#include "fragment.cuh"

constexpr int THREADS = 256;

// Normalise each row of x[rows, cols] by its root mean square into out[rows, cols], which is contiguous.
template <typename T>
__global__ void __launch_bounds__(THREADS) rmsnorm(
    const T* x, Index row_stride, Index col_stride, const T* weight, Index weight_stride,
    Index cols, RealOf<T> eps, T* out
) {
    using Real = RealOf<T>;
    constexpr int LENGTH = Fragment<T>::LENGTH;
    __shared__ Real cells[THREADS / SMALLEST_WARP];
    Real values[LENGTH];
    Real weights[LENGTH];
    const Index row_number = blockIdx.x;
    const T* row = x + row_number * row_stride;
    const Index first = first_fragment(row, col_stride) + threadIdx.x * LENGTH;

    Real my_squares = 0;
    for (Index col = first; col < cols; col += THREADS * LENGTH) {
        load_fragment(values, row, col, cols, col_stride, Real(0));
#pragma unroll
        for (int i = 0; i < LENGTH; i++) {
            my_squares += values[i] * values[i];
        }
    }
    const Real square_sum = fold_block<Sum<Real>>(cells, my_squares);
    const Real rms = square_root(square_sum / static_cast<Real>(cols) + eps);

    for (Index col = first; col < cols; col += THREADS * LENGTH) {
        load_fragment(values, row, col, cols, col_stride, Real(0));
        load_fragment(weights, weight, col, cols, weight_stride, Real(0));
#pragma unroll
        for (int i = 0; i < LENGTH; i++) {
            values[i] = values[i] / rms * weights[i];
        }
        store_fragment(out + row_number * cols, col, cols, values);
    }
}
