"""The raw kernels and raw modules of CuPy's user guide, in words of our own, give NumPy's answers.

https://docs.cupy.dev/en/stable/user_guide/kernel.html, "Raw kernels", "Kernel arguments", "Custom user types" and
"Raw modules", and the examples of structures that it links to.
"""

import numpy as np
import pytest

import refsim

COMPLEX = [("float", np.complex64, np.float32), ("double", np.complex128, np.float64)]


def run(kernel, grid, block, args, **options):
    """Call a kernel as CuPy calls it; any finding is a failure."""
    report = kernel(grid, block, args, **options)
    assert not report.findings, str(report)


# ---- raw kernels --------------------------------------------------------------------------------------------------


def test_sum_of_two_matrices():
    add = refsim.RawKernel(
        r"""
        extern "C" __global__ void add(const float* a, const float* b, float* total) {
            const int element = blockIdx.x * blockDim.x + threadIdx.x;
            total[element] = a[element] + b[element];
        }
        """,
        "add",
    )
    a, b = np.arange(25, dtype=np.float32).reshape(5, 5), np.linspace(0, 1, 25, dtype=np.float32).reshape(5, 5)
    total = np.zeros((5, 5), np.float32)
    run(add, (5,), (5,), (a, b, total))
    np.testing.assert_array_equal(total, a + b)


@pytest.mark.parametrize(("cpp", "dtype", "real"), COMPLEX)
def test_complex_arrays(cpp, dtype, real):
    axpy = refsim.RawKernel(
        r"""
        #include <cupy/complex.cuh>
        extern "C" __global__ void axpy(const complex<T>* x, const complex<T>* y, complex<T>* out, T a) {
            const int i = blockIdx.x * blockDim.x + threadIdx.x;
            out[i] = x[i] + a * y[i];
        }
        """,
        "axpy",
        options=(f"-DT={cpp}",),
    )
    x = np.arange(25, dtype=dtype).reshape(5, 5)
    y = 1j * np.arange(25, dtype=dtype).reshape(5, 5)
    out = np.zeros((5, 5), dtype)
    run(axpy, (5,), (5,), (x, y, out, real(2.0)))
    np.testing.assert_array_equal(out, x + 2 * y)


@pytest.mark.parametrize(("cpp", "dtype", "real"), COMPLEX)
def test_complex_arithmetic_beyond_the_sum(cpp, dtype, real):
    code = r"""
    #include <cupy/complex.cuh>
    extern "C" __global__ void several(const complex<T>* x, const complex<T>* y, complex<T>* product,
                                       complex<T>* conjugate, T* square, int n) {
        const int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) {
            product[i] = x[i] * y[i];
            conjugate[i] = conj(x[i]) - complex<T>(0, 1);
            square[i] = norm(x[i]) + x[i].real() - y[i].imag();
        }
    }
    """
    several = refsim.RawKernel(code, "several", (f"-DT={cpp}",))
    x = (np.arange(20) - 3 + 2j * np.arange(20)).astype(dtype)
    y = (1j * np.arange(20) + 5).astype(dtype)
    product, conjugate, square = np.zeros(20, dtype), np.zeros(20, dtype), np.zeros(20, real)
    run(several, (2,), (16,), (x, y, product, conjugate, square, 20))
    np.testing.assert_array_equal(product, x * y)
    np.testing.assert_array_equal(conjugate, np.conj(x) - 1j)
    np.testing.assert_array_equal(square, x.real**2 + x.imag**2 + x.real - y.imag)


def test_complex_numbers_by_functions_of_cucomplex():
    code = r"""
    #include <cuComplex.h>
    extern "C" __global__ void divide(const cuDoubleComplex* x, const cuDoubleComplex* y, cuDoubleComplex* out) {
        const int i = threadIdx.x;
        out[i] = cuCadd(cuCdiv(x[i], y[i]), make_cuDoubleComplex(cuCreal(x[i]), -cuCimag(y[i])));
    }
    """
    divide = refsim.RawKernel(code, "divide", translate_cucomplex=True)
    x = np.arange(8) + 1j * np.arange(8)[::-1]
    y = 2.0 ** np.arange(8) * (1 + 1j)
    out = np.zeros(8, np.complex128)
    run(divide, (1,), (8,), (x, y, out))
    np.testing.assert_allclose(out, x / y + x.real - 1j * y.imag, rtol=1e-15)


def test_strides_of_a_view_are_the_callers_business():
    copy = refsim.RawKernel(
        r"""
        extern "C" __global__ void copy(const float* x, int row_stride, int column_stride, float* out) {
            const int row = threadIdx.y, column = threadIdx.x;
            out[row * blockDim.x + column] = x[row * row_stride + column * column_stride];
        }
        """,
        "copy",
    )
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    out = np.zeros((4, 3), np.float32)
    strides = [np.int32(stride // 4) for stride in x.T.strides]
    run(copy, (1,), (3, 4), (x, *strides, out))
    np.testing.assert_array_equal(out, x.T)


def test_dynamic_shared_memory_of_the_launch():
    reverse = refsim.RawKernel(
        r"""
        extern "C" __global__ void reverse(const double* x, double* out) {
            extern __shared__ double block[];
            block[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
            __syncthreads();
            out[blockIdx.x * blockDim.x + threadIdx.x] = block[blockDim.x - 1 - threadIdx.x];
        }
        """,
        "reverse",
    )
    x = np.random.default_rng(3).random(96)
    out = np.zeros(96)
    run(reverse, (3,), (32,), (x, out), shared_mem=32 * 8)
    np.testing.assert_array_equal(out, x.reshape(3, 32)[:, ::-1].ravel())


def test_attributes_of_a_kernel():
    code = r"""
    extern "C" __global__ void __launch_bounds__(256) mirror(float* x) {
        __shared__ float cells[100];
        cells[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = cells[blockDim.x - 1 - threadIdx.x];
    }
    """
    mirror = refsim.RawKernel(code, "mirror")
    assert mirror.attributes["max_threads_per_block"] == 256
    assert mirror.attributes["shared_size_bytes"] == 400
    assert mirror.attributes["max_dynamic_shared_size_bytes"] == 49152
    mirror.max_dynamic_shared_size_bytes = 50000
    assert mirror.attributes["max_dynamic_shared_size_bytes"] == 50000


def test_type_traits_without_jitify():
    code = r"""
    #include <type_traits>
    template <typename T> __global__ void halve(T* x) {
        if constexpr (std::is_integral<T>::value) {
            x[threadIdx.x] >>= 1;
        } else {
            x[threadIdx.x] *= T(0.5);
        }
    }
    """
    module = refsim.RawModule(code=code, options=("-std=c++17",), name_expressions=["halve<int>", "halve<float>"])
    integers, floats = np.arange(-8, 8, dtype=np.int32), np.arange(-8, 8, dtype=np.float32)
    expected = integers >> 1, floats / 2
    run(module.get_function("halve<int>"), (1,), (16,), (integers,))
    run(module.get_function("halve<float>"), (1,), (16,), (floats,))
    np.testing.assert_array_equal(integers, expected[0])
    np.testing.assert_array_equal(floats, expected[1])


def test_printf(capfd):
    hello = refsim.RawKernel(
        r"""
        #include <cstdio>
        extern "C" __global__ void hello(const float* x) {
            printf("thread %d of %u has %.2f\n", (int)threadIdx.x, blockDim.x, x[threadIdx.x]);
        }
        """,
        "hello",
    )
    run(hello, (1,), (3,), (np.array([0.5, 1.25, -2], np.float32),))
    printed = sorted(capfd.readouterr().out.splitlines())
    assert printed == [
        "thread 0 of 3 has 0.50",
        "thread 1 of 3 has 1.25",
        "thread 2 of 3 has -2.00",
    ]


# ---- kernel arguments ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cpp", "dtype"),
    [
        ("signed char", np.int8),
        ("short", np.int16),
        ("int", np.int32),
        ("long long", np.int64),
        ("unsigned char", np.uint8),
        ("unsigned short", np.uint16),
        ("unsigned int", np.uint32),
        ("unsigned long long", np.uint64),
        ("float", np.float32),
        ("double", np.float64),
        ("bool", np.bool_),
    ],
)
def test_numpy_scalars_and_arrays_of_one_type(cpp, dtype):
    code = r"""
    extern "C" __global__ void choose(const T* x, T other, T* out) {
        out[threadIdx.x] = threadIdx.x % 2 ? other : x[threadIdx.x];
    }
    """
    x = np.array([0, 1, 100, 101], np.float64).astype(dtype)
    out = np.zeros(4, dtype)
    run(refsim.RawKernel(code, "choose", (f"-DT={cpp}",)), (1,), (4,), (x, dtype(7), out))
    np.testing.assert_array_equal(out, np.where(np.arange(4) % 2, dtype(7), x))


def test_half_numbers():
    code = r"""
    #include <cuda_fp16.h>
    extern "C" __global__ void scale(const half* x, half factor, half* out) {
        out[threadIdx.x] = x[threadIdx.x] * factor;
    }
    """
    x = np.linspace(-3, 3, 16, dtype=np.float16)
    out = np.zeros(16, np.float16)
    run(refsim.RawKernel(code, "scale"), (1,), (16,), (x, np.float16(1.1), out))
    np.testing.assert_array_equal(out, x * np.float16(1.1))


def test_python_numbers_are_long_long_double_and_bool():
    code = r"""
    extern "C" __global__ void line(long long n, double slope, bool rising, double* out) {
        const int i = threadIdx.x;
        if (i < n) {
            out[i] = rising ? slope * i : -slope * i;
        }
    }
    """
    line = refsim.RawKernel(code, "line")
    for rising in (True, False):
        out = np.zeros(10)
        run(line, (1,), (16,), (10, 0.25, rising, out))
        np.testing.assert_array_equal(out, np.arange(10) * (0.25 if rising else -0.25))


def test_floats_seen_as_float3():
    code = r"""
    extern "C" __global__ void norm(const void* points, float* out) {
        const float3 point = reinterpret_cast<const float3*>(points)[threadIdx.x];
        out[threadIdx.x] = point.x * point.x + point.y * point.y + point.z * point.z;
    }
    """
    points = np.arange(30, dtype=np.float32).reshape(10, 3)
    out = np.zeros(10, np.float32)
    run(refsim.RawKernel(code, "norm"), (1,), (10,), (points, out))
    np.testing.assert_array_equal(out, (points**2).sum(axis=1))


# ---- custom user types --------------------------------------------------------------------------------------------


def test_vector_type_by_value():
    code = r"""
    extern "C" __global__ void shift(const float* x, float3 by, float* out) {
        const float all[3] = {by.x, by.y, by.z};
        out[threadIdx.x] = x[threadIdx.x] + all[threadIdx.x % 3];
    }
    """
    float3 = np.dtype({"names": ["x", "y", "z"], "formats": [np.float32] * 3})
    by = np.array([0.5, 2, -4], np.float32).view(float3)
    by["x"] = 42.0
    x, out = np.arange(12, dtype=np.float32), np.zeros(12, np.float32)
    run(refsim.RawKernel(code, "shift"), (1,), (12,), (x, by, out))
    np.testing.assert_array_equal(out, x + np.tile([42, 2, -4], 4))


def test_matrix_of_25_numbers_by_value():
    code = r"""
    struct Matrix { float value[5][5]; };
    extern "C" __global__ void times(Matrix matrix, const float* x, float* out) {
        float total = 0;
        for (int k = 0; k < 5; k++) {
            total += matrix.value[threadIdx.x][k] * x[k];
        }
        out[threadIdx.x] = total;
    }
    """
    float5x5 = np.dtype({"names": ["value"], "formats": [(np.float32, (5, 5))]})
    matrix = np.arange(25, dtype=np.float32).reshape(5, 5)
    assert float5x5.itemsize == 100
    x, out = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    run(refsim.RawKernel(code, "times"), (1,), (5,), (matrix.ravel().view(float5x5), x, out))
    np.testing.assert_array_equal(out, matrix @ x)


def test_builtin_vectors_with_an_operator():
    code = r"""
    __device__ double3 operator-(const double3& a, const double3& b) {
        return make_double3(a.x - b.x, a.y - b.y, a.z - b.z);
    }
    extern "C" __global__ void centre(const double3* points, double3 origin, double3* out) {
        out[threadIdx.x] = points[threadIdx.x] - origin;
    }
    """
    double3 = np.dtype({"names": ["x", "y", "z"], "formats": [np.float64] * 3})
    points, origin = np.random.default_rng(1).random((8, 3)), np.array([0.1, 0.2, 0.3])
    out = np.zeros((8, 3))
    run(refsim.RawKernel(code, "centre"), (1,), (8,), (points, origin.view(double3), out))
    np.testing.assert_array_equal(out, points - origin)


@pytest.mark.parametrize(("cpp", "dtype"), [("float", np.float32), ("double", np.float64)])
def test_template_of_a_matrix_with_operators(cpp, dtype):
    code = r"""
    template <typename T> struct Square {
        T cells[4][4];
        __device__ T& operator()(int i, int j) { return cells[i][j]; }
        __device__ const T& operator()(int i, int j) const { return cells[i][j]; }
    };
    template <typename T> __device__ Square<T> operator+(const Square<T>& a, const Square<T>& b) {
        Square<T> sum;
        for (int i = 0; i < 4; i++) {
            for (int j = 0; j < 4; j++) {
                sum(i, j) = a(i, j) + b(i, j);
            }
        }
        return sum;
    }
    template <typename T> __device__ Square<T> operator*(const Square<T>& a, const Square<T>& b) {
        Square<T> product;
        for (int i = 0; i < 4; i++) {
            for (int j = 0; j < 4; j++) {
                product(i, j) = 0;
                for (int k = 0; k < 4; k++) {
                    product(i, j) += a(i, k) * b(k, j);
                }
            }
        }
        return product;
    }
    template <typename T>
    __global__ void multiply_add(const Square<T>* a, const Square<T>* b, const Square<T> c, Square<T>* out) {
        out[threadIdx.x] = a[threadIdx.x] * b[threadIdx.x] + c;
    }
    """
    names = ("multiply_add<float>", "multiply_add<double>")
    module = refsim.RawModule(code=code, options=("-std=c++11",), name_expressions=names)
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-9, 9, (8, 4, 4)).astype(dtype) for _ in range(2))
    c = rng.integers(-9, 9, (4, 4)).astype(dtype)
    out = np.zeros_like(a)
    square = np.dtype({"names": ["cells"], "formats": [(dtype, (4, 4))]})
    run(module.get_function(f"multiply_add<{cpp}>"), (1,), (8,), (a, b, c.ravel().view(square), out))
    np.testing.assert_array_equal(out, a @ b + c)


NESTED = r"""
struct Nested {
    int4 a;
    char b;
    double c[2];
    short1 d;
    unsigned long long e[3];
};
"""


def nested_layout():
    """Size of the structure, and size and offset of its members, as the kernel sees them."""
    code = (
        NESTED
        + r"""
    using Count = unsigned long long;
    extern "C" __global__ void layout(Count* size, Count* sizes, Count* offsets) {
        const Nested* nothing = nullptr;
        *size = sizeof(Nested);
        sizes[0] = sizeof(nothing->a);
        sizes[1] = sizeof(nothing->b);
        sizes[2] = sizeof(nothing->c);
        sizes[3] = sizeof(nothing->d);
        sizes[4] = sizeof(nothing->e);
        offsets[0] = (Count)&nothing->a;
        offsets[1] = (Count)&nothing->b;
        offsets[2] = (Count)&nothing->c;
        offsets[3] = (Count)&nothing->d;
        offsets[4] = (Count)&nothing->e;
    }
    """
    )
    size, sizes, offsets = np.zeros(1, np.uint64), np.zeros(5, np.uint64), np.zeros(5, np.uint64)
    run(refsim.RawKernel(code, "layout", ("--std=c++11",)), (1,), (1,), (size, sizes, offsets))
    return int(size[0]), sizes.tolist(), offsets.tolist()


def test_layout_of_a_structure():
    size, sizes, offsets = nested_layout()
    assert size == 80  # the alignment of int4, 16 bytes, pads it
    assert (sizes, offsets) == ([16, 1, 16, 2, 24], [0, 16, 24, 40, 48])


def test_structure_of_structures_by_value():
    size, sizes, offsets = nested_layout()
    fields = [(np.int32, 4), (np.int8, 1), (np.float64, 2), (np.int16, 1), (np.uint64, 3)]
    formats = [
        np.dtype({"names": list("xyzw"[:n]), "formats": [kind] * n, "itemsize": bytes_})
        for (kind, n), bytes_ in zip(fields, sizes, strict=True)
    ]
    nested = np.dtype({"names": list("abcde"), "formats": formats, "offsets": offsets, "itemsize": size})
    value, first = np.zeros(1, nested), 0
    for name, (kind, n), form in zip("abcde", fields, formats, strict=True):
        value[name] = np.arange(first, first + n).astype(kind).view(form)
        first += n
    code = (
        NESTED
        + r"""
    extern "C" __global__ void total(const Nested s, double* out) {
        double sum = s.a.x + s.a.y + s.a.z + s.a.w + s.b;
        sum += s.c[0] + s.c[1] + s.d.x;
        sum += s.e[0] + s.e[1] + s.e[2];
        out[threadIdx.x] = threadIdx.x * sum;
    }
    """
    )
    out = np.zeros(8)
    run(refsim.RawKernel(code, "total"), (1,), (8,), (value, out))
    np.testing.assert_array_equal(out, np.arange(8) * sum(range(11)))


# ---- raw modules --------------------------------------------------------------------------------------------------


def test_several_kernels_of_one_source():
    code = r"""
    extern "C" {
    __global__ void plus(const float* a, const float* b, float* out, unsigned int count) {
        const unsigned int i = blockDim.x * blockIdx.x + threadIdx.x;
        if (i < count) {
            out[i] = a[i] + b[i];
        }
    }
    __global__ void times(const float* a, const float* b, float* out, unsigned int count) {
        const unsigned int i = blockDim.x * blockIdx.x + threadIdx.x;
        if (i < count) {
            out[i] = a[i] * b[i];
        }
    }
    }
    """
    module = refsim.RawModule(code=code)
    plus, times = module.get_function("plus"), module.get_function("times")
    a, b = np.arange(100, dtype=np.float32).reshape(10, 10), np.full((10, 10), 3, np.float32)
    out = np.zeros((10, 10), np.float32)
    run(plus, (10,), (10,), (a, b, out, 100))
    np.testing.assert_array_equal(out, a + b)
    run(times, (13,), (8,), (a, b, out, 100))
    np.testing.assert_array_equal(out, a * b)


def test_template_kernels_by_name_expressions():
    code = r"""
    template <typename T> __global__ void triple(T* x, int count) {
        const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < count) {
            x[i] = x[i] * 3;
        }
    }
    """
    names = ["triple<float>", "triple<double>"]
    module = refsim.RawModule(code=code, options=("-std=c++11",), name_expressions=names)
    for name, dtype in zip(names, (np.float32, np.float64), strict=True):
        x = np.arange(10, dtype=dtype)
        run(module.get_function(name), (1,), (10,), (x, 10))
        np.testing.assert_array_equal(x, 3 * np.arange(10))


def test_template_with_types_and_values():
    code = r"""
    template <typename In, typename Out, int ROWS, bool NEGATE = false>
    __global__ void sum_rows(const In* x, Out* out) {
        Out total = 0;
        for (int row = 0; row < ROWS; row++) {
            total += x[row * blockDim.x + threadIdx.x];
        }
        out[threadIdx.x] = NEGATE ? -total : total;
    }
    """
    names = ("sum_rows<signed char, int, 4>", "sum_rows<float, double, 3, true>")
    module = refsim.RawModule(code=code, name_expressions=names)
    bytes_ = np.full((4, 6), 120, np.int8)
    sums = np.zeros(6, np.int32)
    run(module.get_function(names[0]), (1,), (6,), (bytes_, sums))
    np.testing.assert_array_equal(sums, 480)
    floats, totals = np.random.default_rng(5).random((3, 6)).astype(np.float32), np.zeros(6)
    run(module.get_function(names[1]), (1,), (6,), (floats, totals))
    np.testing.assert_array_equal(totals, -floats.astype(np.float64).sum(axis=0))


def test_constant_memory_filled_by_the_host():
    code = r"""
    __constant__ float coefficients[3];
    __device__ int launches = 0;
    extern "C" __global__ void polynomial(const float* x, float* out) {
        const float at = x[threadIdx.x];
        out[threadIdx.x] = coefficients[0] + at * (coefficients[1] + at * coefficients[2]);
        if (threadIdx.x == 0) {
            launches++;
        }
    }
    """
    module = refsim.RawModule(code=code)
    coefficients = module.get_global("coefficients")
    assert coefficients.nbytes == 12
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    for chosen in ((1, 2, 3), (0.5, 0, -1)):
        coefficients.view(np.float32)[:] = chosen
        run(module.get_function("polynomial"), (1,), (8,), (x, out))
        np.testing.assert_array_equal(out, chosen[0] + chosen[1] * x + chosen[2] * x**2)
    assert module.get_global("launches").view(np.int32).tolist() == [2]


def test_options_define_macros_and_find_headers(tmp_path):
    (tmp_path / "half_of.cuh").write_text("__device__ inline float half_of(float x) { return x / 2; }\n")
    code = r"""
    #include "half_of.cuh"
    extern "C" __global__ void scale(float* x) {
        if (threadIdx.x < COUNT) {
            x[threadIdx.x] = half_of(x[threadIdx.x]) + OFFSET;
        }
    }
    """
    options = (f"-I{tmp_path}", "-DCOUNT=6", "-D", "OFFSET=1.5f", "--std=c++17")
    x = np.arange(8, dtype=np.float32)
    run(refsim.RawKernel(code, "scale", options), (1,), (8,), (x,))
    np.testing.assert_array_equal(x, np.where(np.arange(8) < 6, np.arange(8) / 2 + 1.5, np.arange(8)))
