"""Memory spaces and vector types of CUDA C++, assertions and the clock."""

import numpy as np
from cpp_launch import LANES, launched, ramp, words

import refsim


def test_shared_arrays_of_two_dimensions_and_dynamic_shared_memory():
    body = """
    __shared__ int tile[8][9];
    extern __shared__ unsigned char pool[];
    float* floats = reinterpret_cast<float*>(pool);
    short* shorts = reinterpret_cast<short*>(floats + blockDim.x);
    tile[i / 8][i % 8] = a[i];
    floats[i] = 0.5f * i;
    shorts[i] = -i;
    __syncthreads();
    b[i] = tile[i % 8][i / 8] + floats[63 - i] + shorts[i ^ 1];
    """
    a, b = words(np.int32) // 16, np.zeros(LANES)
    launched(body, a, b, shared_mem=LANES * 6)
    x = ramp(np.int64)
    expected = (a.reshape(8, 8).T.ravel().astype(np.float32) + np.float32(0.5) * (63 - x).astype(np.float32)) - (x ^ 1)
    np.testing.assert_array_equal(b, expected.astype(np.float32))


def test_all_dynamic_shared_names_are_one_memory():
    before = "__device__ float* pool() { extern __shared__ float floats[]; return floats + 1; }"
    body = """
    extern __shared__ int ints[];
    ints[i + 1] = a[i];
    __syncthreads();
    b[i] = __float_as_int(pool()[63 - i]);
    """
    a, b = words(np.int32), np.zeros(LANES, np.int32)
    launched(body, a, b, before=before, shared_mem=4 * LANES + 4)
    np.testing.assert_array_equal(b, a[::-1])


def test_constant_memory_with_initial_values():
    before = """
    struct Entry { int key; float value; };
    __constant__ float table[2][3] = {{1, 2, 3}, {4, 5}};
    __constant__ Entry entries[] = {{7, 0.5f}, {9, 1.5f}};
    __constant__ int offset = 40 + 2;
    """
    a = np.zeros(6)
    body = "a[i] = table[i / 3][i % 3] + entries[i & 1].key * entries[i & 1].value + offset;"
    launched(body, a, block=6, before=before)
    np.testing.assert_array_equal(a, np.array([1, 2, 3, 4, 5, 0]) + np.tile([3.5, 13.5], 3) + 42)


def test_vector_loads_and_stores():
    body = """
    if (i < 16) {
        float4 four = reinterpret_cast<const float4*>(a)[i];
        four.x += four.w;
        reinterpret_cast<float4*>(b)[i] = make_float4(four.y, four.x, four.w, four.z);
        const int2 two = *(reinterpret_cast<const int2*>(c) + i);
        *reinterpret_cast<longlong2*>(&d[2 * i]) = longlong2{two.x, two.y * 3ll};
    }
    """
    a, b, c, d = ramp(np.float32), np.zeros(LANES, np.float32), words(np.int32, 32), np.zeros(32, np.int64)
    launched(body, a, b, c, d)
    x, y, z, w = a.reshape(16, 4).T
    np.testing.assert_array_equal(b.reshape(16, 4).T, [y, x + w, w, z])
    np.testing.assert_array_equal(d.reshape(16, 2), c.reshape(16, 2).astype(np.int64) * [1, 3])


def test_launch_bounds_restrict_and_inline():
    code = """
    __forceinline__ __device__ float twice(const float* __restrict__ x, int i) { return 2 * __ldg(&x[i]); }
    static __noinline__ __device__ void put(float* out, int i, float value) { out[i] = value; }
    extern "C" __global__ void __launch_bounds__(128, 2) kernel(const float* __restrict__ x, float* __restrict__ out) {
        put(out, threadIdx.x, twice(x, threadIdx.x) + __ldcs(x + threadIdx.x));
    }
    """
    x, out = ramp(np.float32), np.zeros(LANES, np.float32)
    assert not refsim.RawKernel(code, "kernel")((1,), (LANES,), (x, out)).findings
    np.testing.assert_array_equal(out, 3 * x)


def test_assert_reports_its_line():
    code = '#include <assert.h>\nextern "C" __global__ void kernel(int* x) {\n    assert(x[threadIdx.x] < 5);\n}\n'
    assert refsim.RawKernel(code, "kernel")((1,), (5,), (ramp(np.int32),)).ok
    (finding,) = refsim.RawKernel(code, "kernel")((1,), (8,), (ramp(np.int32),)).findings
    assert (finding.kind, finding.line, finding.thread) == ("assertion", 3, (5, 0, 0))


def test_clock_advances():
    a = np.zeros(LANES, np.int64)
    launched("const long long start = clock64(); __syncthreads(); a[i] = clock64() - start;", a)
    assert (a > 0).all()
