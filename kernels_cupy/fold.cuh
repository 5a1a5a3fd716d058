// Folding one value per thread into one for the block, by warp shuffles and one shared cell per warp.
//
// A warp folds as a butterfly, after which every lane holds the result; 8 lanes drawn, ◆ is a sum or a maximum:
//
//     lane           0    1    2    3    4    5    6    7
//     reach 4       0◆4  1◆5  2◆6  3◆7  4◆0  5◆1  6◆2  7◆3
//     reach 2       the sums of 0 2 4 6 in even lanes, of 1 3 5 7 in odd ones
//     reach 1       the sum of all, in every lane
//
// A block:
//
//     values ──butterfly──► one per warp ──► cells[warp] ──► lanes of every warp ──butterfly──► the result everywhere

#pragma once

#include "portable.cuh"

template <typename Real> struct Sum {
    static __device__ inline Real of_nothing() { return 0; }
    static __device__ inline Real of(Real a, Real b) { return a + b; }
};

template <typename Real> struct Maximum {
    static __device__ inline Real of_nothing() { return negative_infinity<Real>(); }
    static __device__ inline Real of(Real a, Real b) { return larger(a, b); }
};

// The fold of `value` over groups of `width` neighbouring lanes, a power of two and at most a warp; in every lane.
template <typename Fold, typename Real> __device__ inline Real fold_lanes(Real value, int width) {
    for (int reach = width / 2; reach > 0; reach /= 2) {
        value = Fold::of(value, shuffle_xor(value, reach));
    }
    return value;
}

// The fold of `value` over a one-dimensional block of WARPS_MOST · SMALLEST_WARP threads; in every thread.
// `cells` is shared, and free again afterwards.
template <typename Fold, typename Real, int WARPS_MOST>
__device__ inline Real fold_block(Real (&cells)[WARPS_MOST], Real value) {
    const int thread = threadIdx.x;
    const int lane = thread % warpSize;
    const int warp = thread / warpSize;
    const int warps = WARPS_MOST * SMALLEST_WARP / warpSize;

    value = fold_lanes<Fold>(value, warpSize);
    if (lane == 0) {
        cells[warp] = value;
    }
    __syncthreads();  // every warp's cell is written before any lane reads it

    Real total = Fold::of_nothing();
    for (int other = lane; other < warps; other += warpSize) {
        total = Fold::of(total, cells[other]);
    }
    __syncthreads();  // all cells are read before the caller's next fold writes them
    return fold_lanes<Fold>(total, warpSize);
}
