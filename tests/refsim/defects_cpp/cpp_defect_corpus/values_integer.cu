// Wrong results by the rules of C++ for integers.

// An int is compared with an unsigned: -1 becomes the largest number there is.
namespace negative_compared_with_unsigned {
__global__ void wrong(const int* x, unsigned limit, int* out) {
    out[threadIdx.x] = x[threadIdx.x] < limit;  //! value
}
__global__ void right(const int* x, unsigned limit, int* out) {
    out[threadIdx.x] = x[threadIdx.x] < static_cast<int>(limit);
}
}

// The remainder of a negative number is negative in C; in Python and in Numba it is not.
namespace remainder_of_a_negative_number {
__global__ void wrong(const int* x, int* out) {
    out[threadIdx.x] = x[threadIdx.x] % 8;  //! value
}
__global__ void right(const int* x, int* out) {
    out[threadIdx.x] = (x[threadIdx.x] % 8 + 8) % 8;
}
}

// 1 << 40 is an int, however wide the variable is that it goes to.
namespace shift_of_an_int_into_64_bits {
__global__ void wrong(const int* x, long long* out) {
    const int bits = x[threadIdx.x];
    out[threadIdx.x] = (1 << (bits & 31)) + (bits >> 5);  //! value
}
__global__ void right(const int* x, long long* out) {
    const int bits = x[threadIdx.x];
    out[threadIdx.x] = (1ll << (bits & 31)) + (bits >> 5);
}
}

// A case without a break falls into the next one.
namespace case_without_break {
__global__ void wrong(const int* x, int* out) {
    int value = x[threadIdx.x];
    switch (value % 3) {
        case 0:
            value *= 10;  //! value
        case 1:
            value += 1;
            break;
        default:
            value = -value;
    }
    out[threadIdx.x] = value;
}
__global__ void right(const int* x, int* out) {
    int value = x[threadIdx.x];
    switch (value % 3) {
        case 0:
            value *= 10;
            break;
        case 1:
            value += 1;
            break;
        default:
            value = -value;
    }
    out[threadIdx.x] = value;
}
}

// A dimension of the launch that half of the kernel never looks at.
namespace second_axis_of_the_block_forgotten {
__global__ void wrong(const float* x, float* out) {
    const int i = (blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[i] = 2 * x[blockIdx.x * blockDim.x * blockDim.y + threadIdx.x];  //! value
}
__global__ void right(const float* x, float* out) {
    const int i = (blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[i] = 2 * x[i];
}
}
