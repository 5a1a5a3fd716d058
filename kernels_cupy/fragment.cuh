// Fragments: the elements that one thread moves at once, 16 bytes of a line (a row, a column, any strided vector).
//
// A line rarely begins or ends on a 16-byte boundary. Fragments do; the first and the last one hang over:
//
//     memory       ┊ 0 1 2 3 ┊ 4 5 6 7 ┊ 8 9 A B ┊ C D E F ┊      ┊ every 16 bytes; float drawn, 4 a fragment
//     line             0 1     2 3 4 5   6 7 8 9   A                11 elements
//     fragments    -2 ────── 2 ─────── 6 ─────── 10 ──────
//     thread         t0        t1        t2        t3
//     moved by      elements  16 bytes  16 bytes  elements
//
// A place of a fragment outside its line gets a fill value and is never read or written. A line with another stride
// than 1 is moved by elements, starting at its own beginning.

#pragma once

#include "portable.cuh"

template <typename T> struct alignas(16) Fragment {
    static constexpr int LENGTH = 16 / sizeof(T);
    T element[LENGTH];
};

// How many elements ago, counted from `start`, the last 16-byte boundary was.
template <typename T> __device__ inline int past_boundary(const T* start) {
    return static_cast<int>(reinterpret_cast<unsigned long long>(start) % 16 / sizeof(T));
}

// The position of a line's first fragment: 0, or a little before it, so that all fragments lie on boundaries.
template <typename T> __device__ inline Index first_fragment(const T* line, Index stride) {
    return stride == 1 ? -past_boundary(line) : 0;
}

// Whether elements first, first + 1, … of a line with this many elements can be moved as 16 bytes.
template <typename T> __device__ inline bool moves_whole(const T* line, Index first, Index length, Index stride) {
    return stride == 1 && first >= 0 && first + Fragment<T>::LENGTH <= length && past_boundary(line + first) == 0;
}

// values[i] = line[first + i], or `fill` where the line has no such element.
template <typename T>
__device__ inline void load_fragment(
    RealOf<T> (&values)[Fragment<T>::LENGTH], const T* line, Index first, Index length, Index stride, RealOf<T> fill
) {
    if (moves_whole(line, first, length, stride)) {
        const Fragment<T> fragment = *reinterpret_cast<const Fragment<T>*>(line + first);
#pragma unroll
        for (int i = 0; i < Fragment<T>::LENGTH; i++) {
            values[i] = widen(fragment.element[i]);
        }
    } else {
#pragma unroll
        for (int i = 0; i < Fragment<T>::LENGTH; i++) {
            const Index position = first + i;
            values[i] = position >= 0 && position < length ? widen(line[position * stride]) : fill;
        }
    }
}

// line[first + i] = values[i] rounded to T, where the line, whose stride is 1, has such an element.
template <typename T>
__device__ inline void store_fragment(
    T* line, Index first, Index length, const RealOf<T> (&values)[Fragment<T>::LENGTH]
) {
    if (moves_whole(line, first, length, 1)) {
        Fragment<T> fragment;
#pragma unroll
        for (int i = 0; i < Fragment<T>::LENGTH; i++) {
            fragment.element[i] = narrow<T>(values[i]);
        }
        *reinterpret_cast<Fragment<T>*>(line + first) = fragment;
    } else {
#pragma unroll
        for (int i = 0; i < Fragment<T>::LENGTH; i++) {
            const Index position = first + i;
            if (position >= 0 && position < length) {
                line[position] = narrow<T>(values[i]);
            }
        }
    }
}

// to[first + i] = from[first + i], bit for bit, where the lines, of which `to` has stride 1, have such an element.
template <typename T>
__device__ inline void copy_fragment(const T* from, Index first, Index length, Index stride, T* to) {
    if (moves_whole(from, first, length, stride) && moves_whole(to, first, length, 1)) {
        *reinterpret_cast<Fragment<T>*>(to + first) = *reinterpret_cast<const Fragment<T>*>(from + first);
    } else {
#pragma unroll
        for (int i = 0; i < Fragment<T>::LENGTH; i++) {
            const Index position = first + i;
            if (position < length) {
                to[position] = from[position * stride];
            }
        }
    }
}
