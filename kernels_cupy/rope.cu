// Rotary position embedding: a block per token turns every pair of every head by the token's angles.
//
// One head of x[tokens, heads, head_dim], half = 4, and where the two members of pair p lie:
//
//     neox   │ a0 a1 a2 a3 │ b0 b1 b2 b3 │ tail … │      a at p,    b at p + half
//     gptj   │ a0 b0 a1 b1 │ a2 b2 a3 b3 │ tail … │      a at 2·p,  b at 2·p + 1
//
//     a' = a · cos[position, p] - b · sin[position, p]
//     b' = b · cos[position, p] + a · sin[position, p]         position = positions[token]
//
// Work is dealt out in fragments of 16 bytes (fragment.cuh), thread t taking items t, t + 128, … of the token:
//
//     neox   an item is one fragment of a's, one of b's, one of cos and one of sin
//     gptj   an item is one fragment of pairs; cos and sin are read one by one
//     tail   an item is one fragment, copied untouched

#include "fragment.cuh"

constexpr int THREADS = 128;

// out[0 … rotary) of one head: the a's in its first half, the b's in its second; item `item` of ⌈half / LENGTH⌉.
template <typename T>
__device__ inline void rotate_halves(
    const T* head, Index dim_stride, const T* cosines, Index cos_stride, const T* sines, Index sin_stride,
    Index half, Index item, T* out
) {
    using Real = RealOf<T>;
    constexpr int LENGTH = Fragment<T>::LENGTH;
    Real a[LENGTH];
    Real b[LENGTH];
    Real cosine[LENGTH];
    Real sine[LENGTH];
    const Index pair = item * LENGTH;
    load_fragment(a, head, pair, half, dim_stride, Real(0));
    load_fragment(b, head + half * dim_stride, pair, half, dim_stride, Real(0));
    load_fragment(cosine, cosines, pair, half, cos_stride, Real(0));
    load_fragment(sine, sines, pair, half, sin_stride, Real(0));
#pragma unroll
    for (int i = 0; i < LENGTH; i++) {
        const Real turned = a[i] * cosine[i] - b[i] * sine[i];
        b[i] = b[i] * cosine[i] + a[i] * sine[i];
        a[i] = turned;
    }
    store_fragment(out, pair, half, a);
    store_fragment(out + half, pair, half, b);
}

// out[0 … rotary) of one head, whose pairs are neighbours; item `item` of ⌈2 · half / LENGTH⌉.
template <typename T>
__device__ inline void rotate_neighbours(
    const T* head, Index dim_stride, const T* cosines, Index cos_stride, const T* sines, Index sin_stride,
    Index half, Index item, T* out
) {
    using Real = RealOf<T>;
    constexpr int LENGTH = Fragment<T>::LENGTH;
    Real pairs[LENGTH];
    const Index first = item * LENGTH;
    load_fragment(pairs, head, first, 2 * half, dim_stride, Real(0));
#pragma unroll
    for (int i = 0; i < LENGTH; i += 2) {
        const Index pair = (first + i) / 2;
        if (pair < half) {
            const Real cosine = widen(cosines[pair * cos_stride]);
            const Real sine = widen(sines[pair * sin_stride]);
            const Real a = pairs[i];
            const Real b = pairs[i + 1];
            pairs[i] = a * cosine - b * sine;
            pairs[i + 1] = b * cosine + a * sine;
        }
    }
    store_fragment(out, first, 2 * half, pairs);
}

// Rotate x[tokens, heads, head_dim] into out of the same shape, which is contiguous; one block per token.
// NEIGHBOURS: pairs lie side by side (gptj) rather than half a rotary dimension apart (neox).
template <typename T, typename Position, bool NEIGHBOURS>
__global__ void __launch_bounds__(THREADS) rope(
    const T* x, Index token_stride, Index head_stride, Index dim_stride,
    const Position* positions, Index positions_stride,
    const T* cos, Index cos_row_stride, Index cos_stride, const T* sin, Index sin_row_stride, Index sin_stride,
    Index heads, Index head_dim, Index half, T* out
) {
    constexpr int LENGTH = Fragment<T>::LENGTH;
    const Index token = blockIdx.x;
    const Index position = positions[token * positions_stride];
    const T* cosines = cos + position * cos_row_stride;
    const T* sines = sin + position * sin_row_stride;
    const Index rotary = 2 * half;
    const Index tail = head_dim - rotary;
    const Index rotations = ((NEIGHBOURS ? rotary : half) + LENGTH - 1) / LENGTH;  // items of one head
    const Index copies = (tail + LENGTH - 1) / LENGTH;

    for (Index item = threadIdx.x; item < heads * rotations; item += THREADS) {
        const Index head = item / rotations;
        const T* from = x + token * token_stride + head * head_stride;
        T* to = out + (token * heads + head) * head_dim;
        if constexpr (NEIGHBOURS) {
            rotate_neighbours(from, dim_stride, cosines, cos_stride, sines, sin_stride, half, item % rotations, to);
        } else {
            rotate_halves(from, dim_stride, cosines, cos_stride, sines, sin_stride, half, item % rotations, to);
        }
    }

    for (Index item = threadIdx.x; item < heads * copies; item += THREADS) {
        const Index head = item / copies;
        const T* from = x + token * token_stride + head * head_stride + rotary * dim_stride;
        T* to = out + (token * heads + head) * head_dim + rotary;
        copy_fragment(from, item % copies * LENGTH, tail, dim_stride, to);
    }
}
