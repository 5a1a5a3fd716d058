"""What loops repeat is computed before them, with the same results and the same findings."""

import numpy as np
from cpp_launch import LANES, launched, ramp
from numba import cuda, int64

import refsim


def test_two_arrays_split_by_hand_from_one_memory_are_read_at_the_same_subscripts():
    body = """
    extern __shared__ int pool[];
    int* left = pool;
    int* right = pool + 1024;
    for (int j = 0; j < 16; j++) { left[16 * i + j] = a[i] + j; right[16 * i + j] = a[i] - j; }
    __syncthreads();
    int total = 0;
    const int mine = threadIdx.x;
    for (int trip = 0; trip < 3; trip++)
        for (int j = 0; j < 16; j++)
            total += left[16 * mine + j] * (trip + 1) - right[16 * mine + j];
    b[i] = total;
    """
    a, b = ramp(np.int32) * 7, np.zeros(LANES, np.int32)
    launched(body, a, b, shared_mem=8192)
    j = np.arange(16)
    want = sum(((a[:, None] + j) * (trip + 1) - (a[:, None] - j)).sum(1) for trip in range(3))
    np.testing.assert_array_equal(b, want)


def test_unsigned_differences_below_zero_become_negative_and_wrap():
    body = """
    int signed_ = (int)(threadIdx.x - 5u);
    long long wide = (long long)(threadIdx.x - 5u) * 16;
    unsigned back = (unsigned)(int)threadIdx.x * 3u + (unsigned)signed_;
    unsigned long long far = (unsigned)signed_;
    b[i] = signed_;
    c[i] = wide;
    d[i] = back;
    e[i] = far;
    """
    a, b = ramp(np.int32), np.zeros(LANES, np.int32)
    c, d, e = np.zeros(LANES, np.int64), np.zeros(LANES, np.uint32), np.zeros(LANES, np.uint64)
    launched(body, a, b, c, d, e)
    x = np.arange(LANES, dtype=np.int64)
    np.testing.assert_array_equal(b, x - 5)
    np.testing.assert_array_equal(c, ((x - 5) % 2**32) * 16)
    np.testing.assert_array_equal(d, (4 * x - 5) % 2**32)
    np.testing.assert_array_equal(e, (x - 5) % 2**32)


def test_an_invariant_subscript_that_overflows_is_still_found():
    code = """
    extern "C" __global__ void kernel(int* out, int big) {
        int total = 0;
        for (int k = 0; k < 4; k++) total += out[(long long)(big * 4 * (int)threadIdx.x) + k];
        out[0] = total;
    }"""
    report = refsim.RawKernel(code, "kernel")((1,), (2,), (np.zeros(64, np.int32), np.int32(1 << 30)))
    assert any("32-bit" in finding.message or "int32" in finding.message for finding in report.findings), str(report)


def test_nested_loops_read_what_each_trip_wrote():
    def kernel(out):
        cells = cuda.shared.array((4, 33), int64)
        t = cuda.threadIdx.x
        total = 0
        for trip in range(3):
            for j in range(4):
                cells[j, t + 1] = trip * 100 + j * 10 + t
            cuda.syncthreads()
            for j in range(4):
                for k in range(2):
                    total += cells[j, (t + 1) % 32 + 1] * (k + 1)
            cuda.syncthreads()
        out[t] = total

    out = np.zeros(32, np.int64)
    assert not refsim.launch(kernel, 1, 32, out).findings
    t = (np.arange(32) + 1) % 32
    want = sum((trip * 100 + j * 10 + t) * 3 for trip in range(3) for j in range(4))
    np.testing.assert_array_equal(out, want)


def test_a_subscript_out_of_bounds_in_a_nested_loop_is_found():
    def kernel(out):
        cells = cuda.shared.array((4, 32), int64)
        t = cuda.threadIdx.x
        for j in range(4):
            cells[j, t] = t
        cuda.syncthreads()
        total = 0
        for trip in range(2):
            for j in range(4):
                total += cells[j, t + 1] + trip
        out[t] = total

    report = refsim.launch(kernel, 1, 32, np.zeros(32, np.int64))
    assert [finding.kind for finding in report.findings] == ["out_of_bounds"]


def rows_of_four(pointer, shared_mem=0):
    """What a loop reads at two subscripts, of which the loop changes one, through a pointer."""
    code = f"""
    extern "C" __global__ void kernel(int* x, int* out, int n) {{
        extern __shared__ unsigned char pool[];
        const int t = threadIdx.x;
        pool[t] = 0;
        __syncthreads();
        int (*rows)[4] = {pointer};
        int total = 0;
        if (rows != (int (*)[4])x) {{
            for (int k = 0; k < n; k++) rows[t][k] = 10 * t + k;
            __syncthreads();
        }}
        for (int k = 0; k < n; k++) total += rows[t][k];
        out[32 * blockIdx.x + t] = total;
    }}"""
    x, out = np.arange(160, dtype=np.int32), np.zeros(96, np.int32)
    report = refsim.RawKernel(code, "kernel")((3,), (32,), (x, out, np.int32(4)), shared_mem=shared_mem)
    return report, out


def test_a_null_pointer_is_found_in_a_loop():
    report, _ = rows_of_four("nullptr", shared_mem=32)
    assert {(finding.kind, "null pointer" in finding.message) for finding in report.findings} == {
        ("out_of_bounds", True)
    }


def test_words_of_bytes_are_read_in_a_loop():
    report, out = rows_of_four("(int (*)[4])pool", shared_mem=512)
    assert not report.findings, str(report)
    np.testing.assert_array_equal(out, np.tile(40 * np.arange(32) + 6, 3))


def test_global_rows_are_read_in_a_loop():
    report, out = rows_of_four("(int (*)[4])x", shared_mem=32)
    assert not report.findings, str(report)
    np.testing.assert_array_equal(out, np.tile(np.arange(128).reshape(32, 4).sum(1), 3))


def test_quotients_are_worked_out_anew_where_threads_have_left_or_operands_have_changed():
    body = """
    int total = 0, n = a[i];
    float sum = n;
    for (int k = 0; k < n / 3; k++) sum += 2.0f;
    total += (int)sum;
    for (int k = 0; k < n / 3; k++) { total += n / 3; n -= 2; total += n / 3; }
    if (n % 5 > 1) { total += n % 5; n += 7; }
    b[i] = total + n % 5;
    """
    a, b = ramp(np.int32) % 23, np.zeros(LANES, np.int32)
    launched(body, a, b)

    def one(n):
        total = n + n // 3 * 2
        k = 0
        while k < n // 3:
            total += n // 3
            n -= 2
            total += n // 3
            k += 1
        if n % 5 > 1:
            total += n % 5
            n += 7
        return total + n % 5

    np.testing.assert_array_equal(b, [one(int(n)) for n in a])
