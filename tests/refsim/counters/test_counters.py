"""Counters of kernels whose traffic can be worked out by hand, in both front ends."""

import numpy as np
import pytest
from numba import cuda, float32, float64, int32

import refsim
from refsim.counters import Traffic
from refsim.counters.mix import class_of_function

WARPS = 4


def count(kernel, grid, block, *args, **options):
    report = refsim.launch(kernel, grid, block, *args, counters=True, **options)
    assert report.ok, report
    return report.counters


def test_off_by_default():
    def nothing(x):
        pass

    assert refsim.launch(nothing, 1, 1, np.zeros(1)).counters is None


def _copy(x, out, stride, shift):
    i = cuda.grid(1)
    out[i] = x[i * stride + shift]


@pytest.mark.parametrize(
    ("stride", "shift", "dtype", "sectors"),
    [
        (1, 0, np.float32, 4),  # 128 bytes in a row
        (1, 1, np.float32, 5),  # begun 4 bytes later
        (2, 0, np.float32, 8),
        (8, 0, np.float32, 32),
        (32, 0, np.float32, 32),
        (0, 3, np.float32, 1),
        (1, 0, np.float64, 8),
        (1, 0, np.int8, 1),
        (1, 0, np.float16, 2),
    ],
)
@pytest.mark.parametrize("lanes_per_batch", [32, 65536])
def test_sectors_of_a_stride(stride, shift, dtype, sectors, lanes_per_batch):
    x = np.zeros(32 * WARPS * 33, dtype)
    out = np.zeros(32 * WARPS, dtype)
    counters = count(_copy, 2, 64, x, out, stride, shift, lanes_per_batch=lanes_per_batch)
    item = x.itemsize
    assert counters.global_load == Traffic(WARPS, 128, 128 * item, sectors * WARPS)
    assert counters.global_store.sectors == WARPS * item
    assert counters.global_load.efficiency == item / sectors


def test_a_part_of_an_array_begins_where_it_begins():
    base, out = np.zeros(100, np.float32), np.zeros(32, np.float32)
    assert count(_copy, 1, 32, base[8:], out, 1, 0).global_load.sectors == 4
    assert count(_copy, 1, 32, base[9:], out, 1, 0).global_load.sectors == 5


def test_lanes_that_take_no_part_ask_for_nothing():
    def odd(x, out):
        i = cuda.threadIdx.x
        if i % 2 == 1:
            out[i] = x[8 * i]
        elif i < 4:
            out[i] = 1

    x, out = np.zeros(512, np.float32), np.zeros(40, np.float32)
    counters = count(odd, 3, 40, x, out)
    assert counters.global_load == Traffic(requests=6, lanes=60, bytes=240, sectors=60)
    # per block: 2 warps at the first branch, both divided; then 2 warps at the second, of which one is divided
    assert counters.branches == 3 * 4
    assert counters.divergent_branches == 3 * 3
    assert counters.global_store.requests == 3 * 3


def test_instructions_and_operations():
    def horner(x, out, n):
        i = cuda.threadIdx.x
        total = float32(0)
        for _ in range(n):
            total = total * x[i] + x[i]
        out[i] = total / x[i]
        cuda.syncthreads()

    x, out = np.ones(48, np.float32), np.zeros(48, np.float32)
    counters = count(horner, 2, 48, x, out, 5)
    threads, warps = 96, 4
    assert counters.instructions["float_mul"] == counters.instructions["float_add"] == 5 * threads
    assert counters.warp_instructions["float_mul"] == 5 * warps
    assert counters.instructions["float_div"] == threads
    assert counters.operations == {"float32": 11 * threads}
    assert counters.flops == 11 * threads
    assert counters.branches == 6 * warps  # the test of the loop
    assert counters.divergent_branches == 0
    assert counters.barriers == warps
    assert counters.instructions["global_load"] == 11 * threads
    assert counters.global_load.requests == 11 * warps
    moved = (11 * 2 * (4 + 2) + 2 * (4 + 2)) * 32
    assert counters.moved_bytes == moved
    assert counters.arithmetic_intensity == 11 * threads / moved
    assert counters.warp_efficiency == 48 / 64


def test_lines_add_up_to_the_whole():
    def kernel(x, out):
        i = cuda.threadIdx.x
        out[i] = x[i] * 2.0
        if i < 5:
            out[i] += x[0]

    x, out = np.ones(64), np.zeros(64)
    counters = count(kernel, 1, 64, x, out)
    texts = {line.text.strip(): counts for line, counts in counters.lines.items()}
    assert texts["out[i] = x[i] * 2.0"].global_load == Traffic(2, 64, 512, 16)
    assert texts["out[i] += x[0]"].global_load == Traffic(2, 10, 80, 3)
    assert texts["if i < 5:"].divergent_branches == 1
    assert texts["if i < 5:"].branches == 2
    for name in ("branches", "divergent_branches", "flops", "moved_bytes", "bank_conflicts"):
        assert getattr(counters, name) == sum(getattr(counts, name) for counts in counters.lines.values())


def test_atomics_and_their_contention():
    def histogram(keys, bins):
        cuda.atomic.add(bins, keys[cuda.grid(1)], 1)

    keys = np.r_[np.zeros(32, np.int64), np.arange(32), np.arange(32) // 8 * 8]
    counters = count(histogram, 3, 32, keys, np.zeros(64, np.int32))
    assert counters.global_atomic == Traffic(
        requests=3, lanes=96, bytes=384, sectors=32 + 4 + 8 * 4, addresses=1 + 32 + 4, most_on_one_address=32
    )
    assert counters.global_atomic.multiplicity == 96 / 37
    assert counters.instructions["atomic"] == 96


def test_local_arrays():
    def kernel(places, out):
        i = cuda.threadIdx.x
        kept = cuda.local.array(4, float32)  # indexed by numbers that all threads share: registers
        spilled = cuda.local.array(8, float64)
        for j in range(4):
            kept[j] = j
            spilled[j] = j
        out[i] = kept[1] + spilled[places[i]]

    counters = count(kernel, 1, 32, np.arange(32) % 4, np.zeros(32))
    assert counters.local_store == Traffic(4, 128, 1024, 4 * 8)
    # word w of lane l lies at 128 w + 4 l: 8 lanes share a sector for equal places, and here all four places occur
    assert counters.local_load == Traffic(1, 32, 256, 2 * 4 * 4)


def test_constant_arrays():
    table = np.arange(8.0)

    def kernel(out):
        i = cuda.threadIdx.x
        values = cuda.const.array_like(table)
        out[i] = values[i % 8]

    counters = count(kernel, 1, 32, np.zeros(32))
    assert counters.of("constant", "load").requests == 1
    assert counters.global_load == Traffic()


def test_constant_variables_of_cpp():
    code = r"""
    __constant__ float weights[4];
    __device__ float more[4];
    extern "C" __global__ void kernel(float* out) {
        out[threadIdx.x] = weights[threadIdx.x % 2] + more[threadIdx.x % 4];
    }
    """
    counters = count(refsim.RawKernel(code, "kernel"), 1, 32, np.zeros(32, np.float32))
    assert counters.of("constant", "load") == Traffic(1, 32, 128, 1)
    assert counters.global_load == Traffic(1, 32, 128, 1)
    assert "constant load" in str(counters)


def test_unknown_traffic_is_named():
    counters = count(_copy, 1, 32, np.zeros(64), np.zeros(32), 1, 0)
    with pytest.raises(ValueError, match="texture"):
        counters.of("texture", "load")


# ---------------------------------------------------------------------------------------------------- C++


def test_vectors_are_one_request():
    code = r"""
    extern "C" __global__ void copy(const float4* x, float4* out, const float2* pairs, float* sums) {
        int i = threadIdx.x;
        out[i] = x[i];
        float2 pair = pairs[i];
        sums[i] = pair.x + pair.y + x[i].z;
    }
    """
    x, out = np.zeros(128, np.float32), np.zeros(128, np.float32)
    pairs, sums = np.zeros(64, np.float32), np.zeros(32, np.float32)
    counters = count(refsim.RawKernel(code, "copy"), 1, 32, x, out, pairs, sums)
    lines = {line.text.strip(): counts for line, counts in counters.lines.items()}
    assert lines["out[i] = x[i];"].global_load == Traffic(1, 32, 512, 16)
    assert lines["out[i] = x[i];"].global_store == Traffic(1, 32, 512, 16)
    assert lines["float2 pair = pairs[i];"].global_load == Traffic(1, 32, 256, 8)
    # one member alone is one number
    assert lines["sums[i] = pair.x + pair.y + x[i].z;"].global_load == Traffic(1, 32, 128, 16)
    assert counters.operations == {"float32": 64}


def test_lines_of_cpp():
    code = r"""
    __device__ float twice(float x) {
        float result = 2.0f * x;
        return result;
    }
    extern "C" __global__ void kernel(float* x, int n) {
        for (int i = threadIdx.x; i < n; i += 32) {
            if (i % 2) {
                x[i] = twice(x[i]);
            }
        }
    }
    """
    counters = count(refsim.RawKernel(code, "kernel"), 1, 32, np.ones(80, np.float32), np.int32(80))
    lines = {line.text.strip(): counts for line, counts in counters.lines.items()}
    assert lines["float result = 2.0f * x;"].operations == {"float32": 40}
    assert lines["x[i] = twice(x[i]);"].global_load.requests == 3
    assert lines["for (int i = threadIdx.x; i < n; i += 32) {"].branches == 4
    assert lines["for (int i = threadIdx.x; i < n; i += 32) {"].divergent_branches == 1
    assert lines["if (i % 2) {"].branches == 3
    assert lines["if (i % 2) {"].divergent_branches == 3


# ------------------------------------------------------------------------------------------------ any pattern


def _shuffled(x, places, out):
    cells = cuda.shared.array(1024, int32)
    i = cuda.threadIdx.x
    cells[i] = i
    cuda.syncthreads()
    place = places[cuda.grid(1)]
    if place >= 0:
        out[cuda.grid(1)] = cells[place % 1024] + x[place]


@pytest.mark.parametrize("seed", range(4))
def test_random_places_against_a_loop_over_warps(seed):
    """Sectors and wavefronts of scattered accesses, one warp at a time in plain Python."""
    generator = np.random.default_rng(seed)
    blocks, threads = 3, 72
    places = generator.integers(-1, (4, 60, 700, 4000)[seed], blocks * threads)
    x, out = np.zeros(4000, np.int16), np.zeros(blocks * threads, np.int64)
    report = refsim.launch(_shuffled, blocks, threads, x, places, out, counters=True, checks="none")
    sectors = wavefronts = requests = 0
    for block in range(blocks):
        for start in range(0, threads, 32):
            warp = [int(p) for p in places[block * threads :][start : min(start + 32, threads)] if p >= 0]
            if not warp:
                continue
            requests += 1
            sectors += len({2 * p // 32 for p in warp})
            banks = {}
            for p in warp:
                banks.setdefault(p % 1024 % 32, set()).add(p % 1024)
            wavefronts += max(len(words) for words in banks.values())
    line = next(c for line, c in report.counters.lines.items() if "cells[place" in line.text)
    lanes = int((places >= 0).sum())
    assert line.global_load == Traffic(requests, lanes, 2 * lanes, sectors)
    assert line.shared_load == Traffic(requests, lanes, 4 * lanes, 0, wavefronts, wavefronts - requests)


def test_findings_and_results_are_the_same_with_counters():
    def racy(x, out):
        cells = cuda.shared.array(64, float32)
        i = cuda.threadIdx.x
        cells[i] = x[i]
        out[i] = cells[(i + 1) % 64]

    results = []
    for counters in (False, True):
        x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
        results.append((str(refsim.launch(racy, 1, 64, x, out, counters=counters)), out.tolist()))
    assert results[0] == results[1]


def _relay(flags, out):
    """Each block waits for the next one."""
    block = cuda.blockIdx.x
    if cuda.threadIdx.x == 0 and block + 1 < cuda.gridDim.x:
        while cuda.atomic.add(flags, block + 1, 0) == 0:
            pass
    cuda.syncthreads()
    out[cuda.grid(1)] = block
    cuda.threadfence()
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.atomic.exch(flags, block, 1)


@pytest.mark.parametrize("options", [{}, {"lanes": "warp"}, {"schedule": "seed:3", "lanes": "warp"}])
def test_blocks_that_wait_for_each_other_are_counted(options):
    flags, out = np.zeros(4, np.int32), np.zeros(4 * 64)
    counters = count(_relay, 4, 64, flags, out, **options)
    assert counters.global_store == Traffic(8, 256, 2048, 64)
    assert counters.barriers == 8 * 2 + 8  # and the fence
    assert counters.global_atomic.requests >= 3 + 4


def _lock(mutex, total, out):
    while cuda.atomic.cas(mutex, 0, 0, 1) != 0:
        pass
    total[0] += 1
    cuda.threadfence()
    cuda.atomic.exch(mutex, 0, 0)
    cuda.syncthreads()
    out[cuda.threadIdx.x] = 1


def _tickets(state, total, out):
    ticket = cuda.atomic.add(state, 0, 1)
    while cuda.atomic.add(state, 1, 0) != ticket:
        pass
    total[0] += 1
    cuda.threadfence()
    cuda.atomic.add(state, 1, 1)
    cuda.syncthreads()
    out[cuda.threadIdx.x] = 1


@pytest.mark.parametrize(("kernel", "together"), [(_lock, 1), (_tickets, 2)])
@pytest.mark.parametrize("options", [{}, {"schedule": "seed:7", "lanes": "thread"}])
def test_threads_that_wait_for_each_other_are_counted_one_after_another(kernel, together, options):
    total = np.zeros(1, np.int32)
    counters = count(kernel, 1, 40, np.zeros(2, np.int32), total, np.zeros(40, np.int32), **options)
    assert total[0] == 40
    assert counters.global_load == Traffic(40, 40, 160, 40)
    # under the lock one by one, behind the barrier by warps again
    assert counters.global_store == Traffic(40 + 2, 40 + 40, 160 + 160, 40 + 5)
    assert counters.global_atomic.lanes >= 40 + together * 40
    assert counters.global_atomic.requests >= 40 + together * 2
    if not options:  # nobody finds the lock taken
        assert counters.global_atomic.lanes == 40 + together * 40
        assert counters.global_atomic.requests == 40 + together * 2
        assert counters.global_atomic.most_on_one_address == 32


def _hand_over(flag, data, out):
    i = cuda.threadIdx.x
    if i == 0:
        data[0] = 5
        cuda.threadfence()
        cuda.atomic.exch(flag, 0, 1)
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        cuda.threadfence()
    out[i] = data[0]


def test_those_that_waited_for_the_same_go_on_together():
    out = np.zeros(32, np.int32)
    counters = count(_hand_over, 1, 32, np.zeros(1, np.int32), np.zeros(1, np.int32), out, lanes="thread")
    assert (out == 5).all()
    assert counters.global_load == Traffic(2, 32, 128, 2)
    assert counters.global_store == Traffic(3, 33, 132, 1 + 1 + 4)
    (branch,) = (one for line, one in counters.lines.items() if "if i == 0" in line.text)
    assert branch.divergent_branches == 1


def test_single_threads_are_counted_as_the_warps_that_they_are():
    def nested(x, out):
        i = cuda.threadIdx.x
        total = 0
        for trip in range(i % 3 + 1):
            step = 1
            while step <= i:
                total += x[(i * step + trip) % 64]
                step *= 2
            if (i + trip) % 2:
                total += x[trip]
        out[i] = total

    x = np.arange(64)
    results = []
    for lanes in ("blocks", "thread"):
        out = np.zeros(64, np.int64)
        results.append((count(nested, 1, 64, x, out, lanes=lanes), out.tolist()))
    assert results[0] == results[1]


def test_matrix_products():
    code = """
    #include <mma.h>
    using namespace nvcuda;
    extern "C" __global__ void kernel(const half* a, const half* b, float* d) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
        wmma::load_matrix_sync(fa, a, 16);
        wmma::load_matrix_sync(fb, b, 16);
        wmma::fill_fragment(fc, 0.0f);
        wmma::mma_sync(fc, fa, fb, fc);
        wmma::store_matrix_sync(d, fc, 16, wmma::mem_row_major);
    }
    """
    kernel = refsim.RawKernel(code, "kernel", ("-std=c++17",))
    x, out = np.zeros((16, 16), np.float16), np.zeros((16, 16), np.float32)
    counters = count(kernel, 1, 64, x, x, out, checks="none")
    assert counters.warp_instructions["matrix"] == 2
    assert counters.instructions["matrix"] == 64
    assert counters.operations["float16"] == 2 * 2 * 16**3
    assert "matrix" in str(counters)


@pytest.mark.parametrize("size", [4, 8, 16])
def test_asynchronous_copies_are_a_load_and_a_store(size):
    code = r"""
    #include <cuda_pipeline.h>
    extern "C" __global__ void kernel(const float* x, float* out) {
        __shared__ alignas(16) float cells[128 + 4];
        __pipeline_memcpy_async(cells + 4 + threadIdx.x * (SIZE / 4), x + threadIdx.x * (SIZE / 4), SIZE);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        out[threadIdx.x] = cells[4 + threadIdx.x];
    }
    """
    kernel = refsim.RawKernel(code, "kernel", (f"-DSIZE={size}",))
    counters = count(kernel, 1, 32, np.zeros(128, np.float32), np.zeros(32, np.float32))
    assert counters.global_load == Traffic(1, 32, 32 * size, size)
    assert counters.shared_store == Traffic(1, 32, 32 * size, 0, size // 4, 0)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("float_fma", "fma fma_rn cuda.fp16.hfma hfma_relu"),
        ("float_add", "add_rz sub_rn hadd_sat cuda.fp16.hsub"),
        ("float_mul", "mul_ru hmul_sat"),
        ("float_div", "div_rn fdividef rcp_rn hdiv"),
        ("conversion", "to_int32_rz math.floor rint round float8_e5m2_sat htrunc"),
        ("compare", "min max.skips_nan fmax math.isnan numpy_fmin hltu saturate selp"),
        ("integer", "abs math.fabs copysign high_word"),
        ("special", "math.exp sqrt sqrt_rn rsqrt math.frexp.1 hsin pow erfcinv"),
        ("", "flush as_int32"),
    ],
)
def test_classes_of_functions(kind, names):
    assert {name: class_of_function(name, "float32") for name in names.split()} == dict.fromkeys(names.split(), kind)


def test_functions_of_integers():
    assert class_of_function("cuda.popc", "int32") == "integer"
    assert class_of_function("hadd", "int32") == "integer"  # the mean of two integers
    assert class_of_function("min", "int64") == "compare"


def test_rounded_operations_are_operations():
    code = r"""
    extern "C" __global__ void kernel(const float* x, float* out) {
        float a = x[threadIdx.x];
        out[threadIdx.x] = __fadd_rz(__fmaf_rn(a, a, a), expf(__fmul_ru(a, a)));
    }
    """
    counters = count(refsim.RawKernel(code, "kernel"), 1, 32, np.ones(32, np.float32), np.zeros(32, np.float32))
    assert counters.operations == {"float32": 4 * 32}
    assert [counters.instructions[kind] for kind in ("float_fma", "float_add", "float_mul", "special")] == [32] * 4


def test_complex_numbers():
    def kernel(x, out):
        i = cuda.threadIdx.x
        out[i] = x[i] * x[i] + x[i]

    x = np.ones(32, np.complex128)
    counters = count(kernel, 1, 32, x, np.zeros_like(x))
    assert counters.operations == {"complex128": 8 * 32}
    assert counters.global_load == Traffic(3, 96, 96 * 16, 3 * 16)
