"""What CUDA C++ adds to C++: memory spaces, vector types, half numbers, bit, math, warp and group intrinsics."""

import ml_dtypes
import numpy as np
import pytest

import refsim

LANES = 64
FULL = 0xFFFFFFFF
INDEX = "const int i = blockIdx.x * blockDim.x + threadIdx.x;"


def launched(body, *args, block=LANES, grid=1, before="", device="sim:sm_90", options=("-std=c++17",), **launch):
    """Run ``body`` as a kernel whose parameters a, b, … have the arguments' types: the report, without findings."""
    names = {
        "float32": "float", "float64": "double", "int32": "int", "uint32": "unsigned", "int64": "long long",
        "uint64": "unsigned long long", "int16": "short", "uint16": "unsigned short", "int8": "signed char",
        "uint8": "unsigned char", "float16": "__half", "bfloat16": "__nv_bfloat16",
    }  # fmt: skip
    parameters = ", ".join(f"{names[arg.dtype.name]}* {name}" for arg, name in zip(args, "abcdefgh", strict=False))
    code = f'{before}\nextern "C" __global__ void kernel({parameters}) {{\n{INDEX}\n{body}\n}}\n'
    report = refsim.RawKernel(code, "kernel", options)((grid,), (block,), args, device=device, **launch)
    assert not report.findings, str(report)
    return report


def ramp(dtype, count=LANES):
    return np.arange(count, dtype=dtype)


def words(dtype=np.uint32, count=LANES):
    """Numbers of all magnitudes, 0 and the largest among them."""
    rng = np.random.default_rng(7)
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, count, dtype, endpoint=True)
    x[: count // 2] >>= rng.integers(0, info.bits, count // 2).astype(dtype)
    x[:3] = 0, info.max, info.min
    return x


# ---- memory spaces ------------------------------------------------------------------------------------------------


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


# ---- integers -----------------------------------------------------------------------------------------------------


def test_bit_intrinsics():
    body = """
    b[i] = __popc(a[i]); c[i] = __clz(a[i]); d[i] = __ffs(a[i]); e[i] = __brev(a[i]);
    f[i] = __byte_perm(a[i], i, 0x4162); g[i] = __funnelshift_l(a[i], i, 5);
    """
    a = words()
    b, c, d, e, f, g = (np.zeros(LANES, np.uint32) for _ in range(6))
    launched(body, a, b, c, d, e, f, g)
    texts = [f"{v:032b}" for v in a]
    assert b.tolist() == [t.count("1") for t in texts]
    assert c.tolist() == [32 - len(t.lstrip("0")) for t in texts]
    assert d.tolist() == [(32 - t.rindex("1")) if "1" in t else 0 for t in texts]
    assert e.tolist() == [int(t[::-1], 2) for t in texts]
    pool = np.stack([a, ramp(np.uint32)], axis=1).view(np.uint8).reshape(LANES, 8)
    np.testing.assert_array_equal(f, pool[:, [2, 6, 1, 4]].copy().view(np.uint32).ravel())
    np.testing.assert_array_equal(g, (ramp(np.uint32) << 5) | (a >> 27))


def test_wide_products_and_dot_products():
    body = """
    c[i] = __mulhi(a[i], b[i]); d[i] = __umulhi(a[i], b[i]); e[i] = __dp4a(a[i], b[i], i); f[i] = __mul24(a[i], b[i]);
    """
    a, b = words(np.int32), words(np.int32)[::-1].copy()
    c, e, f = (np.zeros(LANES, np.int32) for _ in range(3))
    d = np.zeros(LANES, np.uint32)
    launched(body, a, b, c, d, e, f)
    wide = a.astype(np.int64) * b
    np.testing.assert_array_equal(c, wide >> 32)
    np.testing.assert_array_equal(d, (a.view(np.uint32).astype(np.uint64) * b.view(np.uint32)) >> np.uint64(32))
    bytes_ = a.view(np.int8).reshape(LANES, 4).astype(np.int32), b.view(np.int8).reshape(LANES, 4)
    np.testing.assert_array_equal(e, (bytes_[0] * bytes_[1]).sum(axis=1) + np.arange(LANES))
    low = [(x.astype(np.int64) << 40) >> 40 for x in (a, b)]
    np.testing.assert_array_equal(f, (low[0] * low[1]).astype(np.int32))


# ---- floating point -----------------------------------------------------------------------------------------------


def test_directed_roundings_and_fused_multiply_add():
    body = """
    c[i] = __fadd_rd(a[i], b[i]); d[i] = __fadd_ru(a[i], b[i]); e[i] = __fmaf_rn(a[i], b[i], -a[i] * b[i]);
    f[i] = __fmul_rz(a[i], b[i]);
    """
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=LANES).astype(np.float32) for _ in range(2))
    c, d, e, f = (np.zeros(LANES, np.float32) for _ in range(4))
    launched(body, a, b, c, d, e, f)
    total, product = a.astype(np.float64) + b, a.astype(np.float64) * b
    assert (c <= total).all()
    assert (d >= total).all()
    assert (np.nextafter(c, np.float32(np.inf)) >= d).all()
    assert (c < d).any()
    np.testing.assert_array_equal(e, (product - (a * b).astype(np.float64)).astype(np.float32))
    assert (np.abs(f) <= np.abs(product)).all()
    assert (np.abs(np.nextafter(f, np.copysign(np.float32(np.inf), f))) > np.abs(product)).all()


@pytest.mark.parametrize(
    ("call", "reference", "ulps"),
    [
        ("__expf(x)", np.exp, 2 + 1.16 * 4),
        ("expf(x)", np.exp, 2),
        ("__logf(x * x + 2.5f)", lambda x: np.log(x * x + 2.5), 8),
        ("logf(x * x + 2.5f)", lambda x: np.log(x * x + 2.5), 2),
        ("rsqrtf(x * x + 1)", lambda x: 1 / np.sqrt(x * x + 1), 3),
        ("sqrtf(fabsf(x))", lambda x: np.sqrt(np.abs(x)), 0.5),
        ("__fdividef(x, 3)", lambda x: x / 3, 2),
        ("tanhf(x)", np.tanh, 2),
        ("sinf(x)", np.sin, 2),
        ("powf(fabsf(x), 1.5f)", lambda x: np.abs(x) ** 1.5, 4),
        ("fminf(fmaxf(x, -1), 1)", lambda x: np.clip(x, -1, 1), 0),
        ("copysignf(2.5f, x) + truncf(x) + rintf(x)", lambda x: np.copysign(2.5, x) + np.trunc(x) + np.rint(x), 0),
    ],
)
def test_math_functions_within_their_ulps(call, reference, ulps):
    a = np.linspace(-4, 4, LANES, dtype=np.float32)
    b = np.zeros(LANES, np.float32)
    launched(f"const float x = a[i]; b[i] = {call};", a, b)
    with np.errstate(divide="ignore"):
        exact = reference(a.astype(np.float64))
    distance = np.abs(b - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert distance.max() <= ulps + 0.5, distance.max()


def test_use_fast_math_is_the_intrinsic():
    a = np.linspace(-40, 80, LANES, dtype=np.float32)
    fast, intrinsic = np.zeros(LANES, np.float32), np.zeros(LANES, np.float32)
    launched("b[i] = expf(a[i]);", a, fast, options=("--use_fast_math",))
    launched("b[i] = __expf(a[i]);", a, intrinsic)
    np.testing.assert_array_equal(fast, intrinsic)


def test_bit_casts_and_conversions_with_a_rounding():
    body = """
    b[i] = __float_as_int(a[i]); c[i] = __int_as_float(b[i] ^ 0x80000000); d[i] = __float2int_rd(a[i]);
    e[i] = __float2int_ru(a[i]); f[i] = __float2int_rn(a[i]); g[i] = (int)a[i];
    """
    a = np.linspace(-8, 8, LANES, dtype=np.float32)
    a[:3] = 0.5, -2.5, 1.5
    c = np.zeros(LANES, np.float32)
    b, d, e, f, g = (np.zeros(LANES, np.int32) for _ in range(5))
    launched(body, a, b, c, d, e, f, g)
    np.testing.assert_array_equal(b, a.view(np.int32))
    np.testing.assert_array_equal(c, -a)
    for got, rounded in ((d, np.floor), (e, np.ceil), (f, np.rint), (g, np.trunc)):
        np.testing.assert_array_equal(got, rounded(a))


def test_conversions_saturate_as_on_the_device():
    a = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 1e20], np.float32)
    b, c, d = np.zeros(6, np.int32), np.zeros(6, np.uint32), np.zeros(6, np.int64)
    launched("b[i] = a[i]; c[i] = a[i]; d[i] = a[i];", a, b, c, d, block=6)
    assert b.tolist() == [0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 2**31 - 1]
    assert c.tolist() == [0, 2**32 - 1, 0, 3_000_000_000, 0, 2**32 - 1]
    assert d.tolist()[1:3] == [2**63 - 1, -(2**63)]


# ---- half precision -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "kind", "dtype"),
    [("cuda_fp16.h", "__half", np.float16), ("cuda_bf16.h", "__nv_bfloat16", ml_dtypes.bfloat16)],
)
def test_half_operators_round_once_each(header, kind, dtype):
    body = """
    const T x = a[i], y = b[i];
    c[i] = x * y + x - y / x;
    d[i] = __hfma(x, y, __hneg(x));
    e[i] = (x < y) + 2 * (x == x) + 4 * __hge(x, y);
    T z = x;
    z += y;
    z *= x;
    f[i] = z;
    """
    rng = np.random.default_rng(3)
    a, b = ((rng.normal(size=LANES) + 0.01).astype(dtype) for _ in range(2))
    c, d, f = (np.zeros(LANES, dtype) for _ in range(3))
    e = np.zeros(LANES, np.int32)
    launched(body, a, b, c, d, e, f, before=f"#include <{header}>\nusing T = {kind};")
    np.testing.assert_array_equal(c, a * b + a - b / a)
    np.testing.assert_array_equal(d, (a.astype(np.float64) * b.astype(np.float64) - a.astype(np.float64)).astype(dtype))
    np.testing.assert_array_equal(e, (a < b) + 2 + 4 * (a >= b))
    np.testing.assert_array_equal(f, (a + b) * a)


def test_half_conversions_and_their_roundings():
    body = """
    b[i] = __float2half_rn(a[i]); c[i] = __float2half_rz(a[i]); d[i] = __half2float(b[i]); e[i] = __float2half_ru(a[i]);
    f[i] = __float2bfloat16(a[i]);
    """
    a = np.random.default_rng(4).normal(size=LANES).astype(np.float32) * 1000
    b, c, e = (np.zeros(LANES, np.float16) for _ in range(3))
    d, f = np.zeros(LANES, np.float32), np.zeros(LANES, ml_dtypes.bfloat16)
    launched(body, a, b, c, d, e, f, before="#include <cuda_fp16.h>\n#include <cuda_bf16.h>")
    np.testing.assert_array_equal(b, a.astype(np.float16))
    np.testing.assert_array_equal(d, b.astype(np.float32))
    np.testing.assert_array_equal(f, a.astype(ml_dtypes.bfloat16))
    assert (np.abs(c.astype(np.float32)) <= np.abs(a)).all()
    assert (e.astype(np.float32) >= a).all()
    assert (np.nextafter(e, np.float16(-np.inf)).astype(np.float32) < a).all()


def test_pairs_of_halves():
    body = """
    if (i < 32) {
        const __half2 x = reinterpret_cast<const __half2*>(a)[i];
        const __half2 y = __hadd2(x, __float2half2_rn(0.5f));
        reinterpret_cast<__half2*>(b)[i] = __hmul2(y, __halves2half2(__high2half(x), __low2half(x)));
    }
    """
    a, b = np.linspace(-4, 4, LANES, dtype=np.float16), np.zeros(LANES, np.float16)
    launched(body, a, b, before="#include <cuda_fp16.h>")
    pairs = a.reshape(32, 2)
    np.testing.assert_array_equal(b.reshape(32, 2), (pairs + np.float16(0.5)) * pairs[:, ::-1])


# ---- warps --------------------------------------------------------------------------------------------------------


def test_shuffles():
    body = f"""
    b[i] = __shfl_sync({FULL}u, a[i], (i + 5) & 31);
    c[i] = __shfl_up_sync({FULL}u, a[i], 3, 8);
    d[i] = __shfl_down_sync({FULL}u, a[i], 2);
    e[i] = __shfl_xor_sync({FULL}u, (long long)a[i] << 20, 9) >> 20;
    """
    a = words(np.int32)
    b, c, d, e = (np.zeros(LANES, np.int32) for _ in range(4))
    launched(body, a, b, c, d, e)
    warps, lane = a.reshape(2, 32), np.arange(32)
    np.testing.assert_array_equal(b.reshape(2, 32), np.roll(warps, -5, axis=1))
    np.testing.assert_array_equal(c.reshape(2, 32), warps[:, np.where(lane % 8 >= 3, lane - 3, lane)])
    np.testing.assert_array_equal(d.reshape(2, 32), warps[:, np.where(lane < 30, lane + 2, lane)])
    np.testing.assert_array_equal(e.reshape(2, 32), warps[:, lane ^ 9])


def test_votes_matches_and_reductions():
    body = f"""
    b[i] = __ballot_sync({FULL}u, a[i] % 3 == 0);
    c[i] = __any_sync({FULL}u, a[i] == 40) + 2 * __all_sync({FULL}u, a[i] < 32);
    d[i] = __match_any_sync({FULL}u, a[i] % 5);
    e[i] = __reduce_add_sync({FULL}u, a[i]) + __reduce_max_sync({FULL}u, a[i]) * 1000;
    if (i % 4 == 1) {{ f[i] = __activemask(); }}
    """
    a = ramp(np.uint32)
    b, c, d, e, f = (np.zeros(LANES, np.uint32) for _ in range(5))
    launched(body, a, b, c, d, e, f)
    bit = np.uint64(1) << (a % 32).astype(np.uint64)
    by_warp = [(a // 32 == w) for w in range(2)]
    for w, mine in enumerate(by_warp):
        assert set(b[mine]) == {(bit[mine & (a % 3 == 0)]).sum()}
        assert set(c[mine]) == {2 if w == 0 else 1}
        for k in range(5):
            assert set(d[mine & (a % 5 == k)]) == {bit[mine & (a % 5 == k)].sum()}
        assert set(e[mine]) == {a[mine].sum() + 1000 * a[mine].max()}
        assert set(f[mine & (a % 4 == 1)]) == {0x22222222}


def test_hips_own_names_with_masks_of_64_bits():
    body = """
    b[i] = __ballot(a[i] % 2);
    c[i] = __shfl_xor(a[i], 32) + __shfl(a[i], 63) + warpSize + __lane_id();
    d[i] = __any(a[i] == 63) + 2 * __all(a[i] < 63) + __popcll(__activemask());
    """
    a = ramp(np.int32)
    b, c, d = np.zeros(LANES, np.uint64), np.zeros(LANES, np.int32), np.zeros(LANES, np.int32)
    launched(body, a, b, c, d, device="sim:gfx942", before="#include <hip/hip_runtime.h>")
    assert set(b) == {0xAAAAAAAAAAAAAAAA}
    np.testing.assert_array_equal(c, (a ^ 32) + 63 + 64 + a)
    assert set(d) == {1 + 64}


# ---- atomics ------------------------------------------------------------------------------------------------------


def test_atomics_of_every_kind():
    body = """
    atomicAdd(&a[0], i); atomicSub(&a[1], i); atomicMax(&a[2], i); atomicMin(&a[3], -i); atomicOr(&a[4], 1 << (i & 15));
    atomicAnd(&a[5], ~(1 << (i & 7))); atomicXor(&a[6], i); atomicExch(&a[7], 9); atomicCAS(&a[8], 0, 5);
    atomicInc(&b[0], 9); atomicDec(&b[1], 9); atomicAdd(c, 0.5f); atomicAdd(d, 0.25); atomicAdd(e, 1ull << 40);
    atomicAdd_block(&a[9], 1); atomicAdd_system(&a[10], 2);
    """
    a, b = np.zeros(11, np.int32), np.zeros(2, np.uint32)
    a[5] = -1
    c, d, e = np.zeros(1, np.float32), np.zeros(1), np.zeros(1, np.uint64)
    launched(body, a, b, c, d, e)
    assert a.tolist() == [2016, -2016, 63, -63, 0xFFFF, -256, 0, 9, 5, 64, 128]
    assert b.tolist() == [64 % 10, (-64) % 10]
    assert (c[0], d[0], e[0]) == (32, 16, 64 << 40)


def test_compare_and_swap_of_16_bits():
    body = """
    unsigned short old = 60000, seen;
    do {
        seen = old;
        old = atomicCAS(a, seen, (unsigned short)(seen + 3));
    } while (old != seen);
    """
    a = np.array([60000], np.uint16)
    launched(body, a, block=32)
    assert a[0] == 60000 + 96


# ---- cooperative groups -------------------------------------------------------------------------------------------

GROUPS = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;"


def test_thread_block_and_tile():
    body = """
    __shared__ int cells[64];
    cg::thread_block block = cg::this_thread_block();
    cells[block.thread_rank()] = a[i];
    block.sync();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    int total = cells[63 - i];
    for (int step = tile.size() / 2; step > 0; step /= 2) {
        total += tile.shfl_down(total, step);
    }
    b[i] = tile.shfl(total, 0) + 1000 * tile.thread_rank() + 10000 * tile.meta_group_rank();
    c[i] = tile.any(a[i] == 20) + 2 * tile.all(i < 32) + block.size();
    """
    a, b, c = ramp(np.int32), np.zeros(LANES, np.int32), np.zeros(LANES, np.int32)
    launched(body, a, b, c, before=GROUPS)
    sums = np.repeat(a[::-1].reshape(8, 8).sum(axis=1), 8)
    np.testing.assert_array_equal(b, sums + 1000 * (a % 8) + 10000 * (a // 8))
    np.testing.assert_array_equal(c, (a // 8 == 2) + 2 * (a < 32) + 64)


def test_grid_sync():
    body = """
    a[i] = i;
    cg::this_grid().sync();
    b[i] = a[gridDim.x * blockDim.x - 1 - i];
    """
    a, b = refsim.empty(256, np.int32), np.zeros(256, np.int32)
    launched(body, a, b, grid=4, before=GROUPS)
    np.testing.assert_array_equal(b, np.arange(256)[::-1])
