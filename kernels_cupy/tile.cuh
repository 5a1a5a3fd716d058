// Moving a tile of a matrix from global to shared memory, 16 bytes a thread.
//
// Fragments run along the direction in which the matrix is contiguous; tile[row][col] holds Real either way:
//
//     contiguous rows                  contiguous columns                 neither: as on the right, element by element
//
//        cols ──►                         cols ──►
//       ┌────┬────┬────┐                 ┌─┬─┬─┬─┬─┐
//       │ t0 │ t1 │ t2 │                 │t│t│t│t│t│
//       ├────┼────┼────┤                 │0│1│2│3│4│
//       │ t3 │ t4 │ t5 │                 ├─┼─┼─┼─┼─┤
//       └────┴────┴────┘                 └─┴─┴─┴─┴─┘
//
// Places past the matrix' end hold 0.

#pragma once

#include "fragment.cuh"

// tile[row][col] = source[row · row_stride + col · col_stride], for ROWS × COLS places of which the matrix has
// rows × cols; all THREADS threads of the block take part. PITCH is the length of the tile's rows in shared memory.
template <int THREADS, int COLS, typename T, typename Real, int ROWS, int PITCH>
__device__ inline void load_tile(
    Real (&tile)[ROWS][PITCH], const T* source, Index rows, Index cols, Index row_stride, Index col_stride, int thread
) {
    constexpr int LENGTH = Fragment<T>::LENGTH;
    Real values[LENGTH];
    if (col_stride == 1) {
        constexpr int PER_ROW = COLS / LENGTH;
        for (int fragment = thread; fragment < ROWS * PER_ROW; fragment += THREADS) {
            const int row = fragment / PER_ROW;
            const int col = fragment % PER_ROW * LENGTH;
            load_fragment(values, source + row * row_stride, col, row < rows ? cols : 0, 1, Real(0));
#pragma unroll
            for (int i = 0; i < LENGTH; i++) {
                tile[row][col + i] = values[i];
            }
        }
    } else {
        for (int fragment = thread; fragment < ROWS / LENGTH * COLS; fragment += THREADS) {
            const int row = fragment / COLS * LENGTH;
            const int col = fragment % COLS;
            load_fragment(values, source + col * col_stride, row, col < cols ? rows : 0, row_stride, Real(0));
#pragma unroll
            for (int i = 0; i < LENGTH; i++) {
                tile[row + i][col] = values[i];
            }
        }
    }
}
