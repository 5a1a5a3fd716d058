// What a CUDA or HIP compiler defines before the first line of a source, for clang -cc1, which defines nothing.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads) __attribute__((launch_bounds(threads)))

// The three coordinates of a built-in variable, each read by a function.
#define COORDINATES(type, x_of, y_of, z_of) \
    struct type { \
        __declspec(property(get = get_x)) unsigned x; \
        __declspec(property(get = get_y)) unsigned y; \
        __declspec(property(get = get_z)) unsigned z; \
        static inline __device__ unsigned get_x() { return x_of; } \
        static inline __device__ unsigned get_y() { return y_of; } \
        static inline __device__ unsigned get_z() { return z_of; } \
    };

inline __device__ float __int_as_float(int bits) { return __builtin_bit_cast(float, bits); }

// A 16-bit type and its conversions from and to float.
#define SIXTEEN_BITS(name, compiler_type, widening, narrowing) \
    struct __attribute__((aligned(2))) name { compiler_type value; }; \
    inline __device__ float widening(name x) { return static_cast<float>(x.value); } \
    inline __device__ name narrowing(float x) { return {static_cast<compiler_type>(x)}; }
