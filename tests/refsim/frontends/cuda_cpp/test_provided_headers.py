"""Headers of CUDA and HIP: what they compute, against NumPy and ml_dtypes; and what they refuse."""

import ml_dtypes
import numpy as np
import pytest

import refsim
from refsim.frontends.cuda_cpp import CompileError

LANES = 64
PHILOX_OF_ZERO = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]  # of counter and key 0: Random123's known answers


def run(header: str, parameters: str, body: str, *args: np.ndarray, device: str = "sim:sm_90") -> None:
    code = f'#include <{header}>\nextern "C" __global__ void f({parameters}) {{ int i = threadIdx.x; {body} }}'
    report = refsim.RawKernel(code, "f")((1,), (LANES,), args, device=device)
    assert not report.findings, str(report)


def halves(seed: int, count: int = 2 * LANES) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=count).astype(np.float16)
    x[rng.choice(count, 8, replace=False)] = [0, -0.0, np.inf, -np.inf, np.nan, 1, 65504, 6e-8]
    return x


def same(a: np.ndarray, b: np.ndarray) -> bool:
    bits = f"u{a.dtype.itemsize}"
    nan = np.isnan(a.astype(np.float64)) & np.isnan(b.astype(np.float64))
    return bool(((a.view(bits) == b.view(bits)) | nan).all())


COMPARISONS = {
    "eq": np.equal, "ne": lambda a, b: (a < b) | (a > b), "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_of_pairs(name: str) -> None:
    a, b = halves(1), halves(2)
    b[::5] = a[::5]
    out, masks, both = np.zeros(2 * LANES, np.float16), np.zeros(LANES, np.uint32), np.zeros(LANES, np.int32)
    body = f"o[i] = __h{name}2(a[i], b[i]); m[i] = __h{name}2_mask(a[i], b[i]); k[i] = __hb{name}2(a[i], b[i]);"
    run("cuda_fp16.h", "half2* a, half2* b, half2* o, unsigned* m, int* k", body, a, b, out, masks, both)
    expected = COMPARISONS[name](a, b)
    assert out.tolist() == expected.astype(np.float16).tolist()
    assert both.tolist() == expected.reshape(-1, 2).all(1).astype(int).tolist()
    assert masks.view(np.uint16).tolist() == (expected * 0xFFFF).tolist()


def saturated(x: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(x), np.float16(0), np.clip(x, 0, 1)).astype(np.float16)


PAIRS = {
    "__hadd2_sat": lambda a, b: saturated(a + b), "__hmul2_sat": lambda a, b: saturated(a * b),
    "__hmax2_nan": np.maximum, "__hmin2_nan": np.minimum, "__hmax2": np.fmax, "__hmin2": np.fmin,
    "operator/": np.divide,
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_operations_on_pairs(name: str) -> None:
    a, b = halves(3), halves(4)
    out = np.zeros(2 * LANES, np.float16)
    run("cuda_fp16.h", "half2* a, half2* b, half2* o", f"o[i] = {name}(a[i], b[i]);", a, b, out)
    with np.errstate(all="ignore"):
        expected = PAIRS[name](a, b).astype(np.float16)
    zeros = (out == 0) & (expected == 0)  # of either sign where one of two equal zeros is taken
    assert same(np.where(zeros, 0, out).astype(np.float16), np.where(zeros, 0, expected).astype(np.float16))


def test_roundings_of_pairs_to_integers() -> None:
    with np.errstate(over="ignore"):
        a = halves(5) * np.float16(100)
    outs = [np.zeros(2 * LANES, np.float16) for _ in range(4)]
    body = "c[i] = h2ceil(a[i]); d[i] = h2floor(a[i]); e[i] = h2trunc(a[i]); g[i] = h2rint(a[i]);"
    run("cuda_fp16.h", "half2* a, half2* c, half2* d, half2* e, half2* g", body, a, *outs)
    for out, function in zip(outs, (np.ceil, np.floor, np.trunc, np.rint)):
        assert same(out, function(a))


def test_products_of_complex_numbers_in_half() -> None:
    rng = np.random.default_rng(6)
    a, b, c = (rng.integers(-8, 9, 2 * LANES).astype(np.float16) for _ in range(3))
    out = np.zeros_like(a)
    run("cuda_fp16.h", "half2* a, half2* b, half2* c, half2* o", "o[i] = __hcmadd(a[i], b[i], c[i]);", a, b, c, out)
    wide = [x.astype(np.float32).view(np.complex64) for x in (a, b, c)]
    assert out.tolist() == (wide[0] * wide[1] + wide[2]).view(np.float32).tolist()


@pytest.mark.parametrize(("kind", "dtype"), [("e4m3", ml_dtypes.float8_e4m3fn), ("e5m2", ml_dtypes.float8_e5m2)])
def test_vectors_of_8_bit_floats(kind: str, dtype: type) -> None:
    x = (np.random.default_rng(7).normal(size=4 * LANES) * 100).astype(np.float32)
    two, four, back = np.zeros(4 * LANES, np.uint8), np.zeros(4 * LANES, np.uint8), np.zeros(4 * LANES, np.float32)
    body = (
        f"p[2 * i] = __nv_fp8x2_{kind}(make_float2(x[i].x, x[i].y)); __nv_fp8x4_{kind} q(x[i]); r[i] = q;"
        f"float2 zw = make_float2(x[i].z, x[i].w);"
        f"p[2 * i + 1].__x = __nv_cvt_float2_to_fp8x2(zw, __NV_SATFINITE, __NV_{kind.upper()});"
        "o[i] = float4(q);"
    )
    run("cuda_fp8.h", f"float4* x, __nv_fp8x2_{kind}* p, __nv_fp8x4_{kind}* r, float4* o", body, x, two, four, back)
    largest = float(ml_dtypes.finfo(dtype).max)
    expected = np.clip(x, -largest, largest).astype(dtype)
    assert two.tolist() == four.tolist() == expected.view(np.uint8).tolist()
    assert back.tolist() == expected.astype(np.float32).tolist()


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Philox4x32-10 as its paper has it."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def test_philox_draws_what_curand_draws() -> None:
    out, uniform = np.zeros((LANES, 7), np.uint32), np.zeros(LANES, np.float32)
    body = (
        "curandStatePhilox4_32_10_t s; curand_init(1234567890123ULL, i, i & 3, &s);"
        "for (int k = 0; k < 3; ++k) o[7 * i + k] = curand(&s);"
        "uint4 v = curand4(&s); o[7 * i + 3] = v.x; o[7 * i + 4] = v.y; o[7 * i + 5] = v.z; o[7 * i + 6] = v.w;"
        "u[i] = curand_uniform(&s);"
    )
    run("curand_kernel.h", "unsigned* o, float* u", body, out, uniform)
    assert philox([0] * 4, [0] * 2) == PHILOX_OF_ZERO
    key = [1234567890123 & 0xFFFFFFFF, 1234567890123 >> 32]
    for lane in range(LANES):
        stream = [word for block in range(4) for word in philox([block, 0, lane, 0], key)][lane & 3 :]
        assert out[lane].tolist() == stream[:7]
        assert uniform[lane] == np.float32(np.float32(stream[7]) * np.float32(2.3283064e-10)) + np.float32(
            2.3283064e-10 / 2
        )


def test_normal_numbers_have_mean_0_and_deviation_1() -> None:
    out = np.zeros(8 * LANES, np.float32)
    body = (
        "curandStatePhilox4_32_10_t s; curand_init(7, i, 0, &s);"
        "for (int k = 0; k < 4; ++k) o[8 * i + k] = curand_normal(&s); *(float4*)&o[8 * i + 4] = curand_normal4(&s);"
    )
    run("curand_kernel.h", "float* o", body, out)
    assert abs(out.mean()) < 0.15
    assert abs(out.std() - 1) < 0.15


def test_scans_and_reductions_of_groups() -> None:
    x = np.random.default_rng(8).integers(-100, 100, LANES).astype(np.int32)
    out = np.zeros((5, LANES), np.int32)
    body = (
        "namespace cg = cooperative_groups; auto tile = cg::tiled_partition<16>(cg::this_thread_block());"
        "o[i] = cg::inclusive_scan(tile, x[i]); o[64 + i] = cg::exclusive_scan(tile, x[i], cg::plus<int>());"
        "o[128 + i] = cg::reduce(tile, x[i], cg::bit_xor<int>()); o[192 + i] = tile.match_any(x[i] & 1);"
        "if (i % 3 == 0) { auto g = cg::coalesced_threads(); int votes = g.ballot(x[i] > 0);"
        "  o[256 + i] = cg::reduce(g, x[i], cg::greater<int>()) + votes * 1000; }"
    )
    run("cooperative_groups.h", "int* x, int* o", body, x, out)
    rows = x.reshape(4, 16)
    assert out[0].tolist() == rows.cumsum(1).ravel().tolist()
    assert out[1].tolist() == (rows.cumsum(1) - rows).ravel().tolist()
    assert out[2].tolist() == np.repeat(np.bitwise_xor.reduce(rows, 1), 16).tolist()
    odd = rows & 1
    matches = [sum(1 << k for k in range(16) if odd[r, k] == odd[r, c]) for r in range(4) for c in range(16)]
    assert out[3].tolist() == matches
    for first in (0, 32):
        lanes = [i for i in range(first, first + 32) if i % 3 == 0]
        votes = sum(1 << k for k, i in enumerate(lanes) if x[i] > 0)
        assert {int(out[4, i]) for i in lanes} == {int(x[lanes].max()) + votes * 1000}


def test_groups_that_are_only_known_as_groups() -> None:
    body = """
    namespace cg = cooperative_groups;
    struct Sum {
        __device__ int operator()(cg::thread_group g, int* cells, int value) const {
            const int lane = g.thread_rank();
            for (int half = g.size() / 2; half > 0; half /= 2) {
                cells[lane] = value;
                g.sync();
                if (lane < half) value += cells[lane + half];
                g.sync();
            }
            return value;
        }
    } sum;
    __shared__ int cells[64];
    cg::thread_block block = cg::this_thread_block();
    const int all = sum(block, cells, x[i]);
    if (i == 0) o[0] = all;
    block.sync();
    cg::thread_group tile = cg::tiled_partition(block, 8);
    const int part = sum(tile, &cells[i / 8 * 8], x[i]);
    if (tile.thread_rank() == 0) o[1 + i / 8] = part;
    block.sync();
    const int warp = sum(cg::tiled_partition<32>(block), &cells[i / 32 * 32], x[i]);
    if (i % 32 == 0) o[9 + i / 32] = warp;
    auto third = cg::labeled_partition(cg::tiled_partition<32>(block), i % 3);
    o[64 + i] = third.size() * 100 + third.thread_rank();
    auto odd = cg::binary_partition(cg::tiled_partition<16>(block), i % 2 == 1);
    o[128 + i] = odd.size() * 100 + odd.thread_rank();
    """
    x = np.random.default_rng(8).integers(-100, 100, LANES).astype(np.int32)
    out = np.zeros((3, LANES), np.int32)
    run("cooperative_groups.h", "int* x, int* o", body, x, out)
    assert out[0, :11].tolist() == [x.sum(), *x.reshape(8, 8).sum(1), *x.reshape(2, 32).sum(1)]
    thirds = [sum(1 for k in range(32) if (k + i // 32 * 32) % 3 == i % 3) for i in range(LANES)]
    ranks = [sum(1 for k in range(i // 32 * 32, i) if k % 3 == i % 3) for i in range(LANES)]
    assert out[1].tolist() == [100 * n + r for n, r in zip(thirds, ranks, strict=True)]
    assert out[2].tolist() == [800 + i % 16 // 2 for i in range(LANES)]


REFUSED = {
    "cub/block/block_radix_sort.cuh": ("", "cub has no block/block_radix_sort"),
    "thrust/device_vector.h": ("", "thrust is not supported by refsim"),
    "curand_kernel.h": ("curandState s;", "Philox generator only"),
    "hip/hip_fp8.h": ("__hip_fp8_e4m3_fnuz x;", "FNUZ"),
    "cooperative_groups.h": ("cooperative_groups::cluster_group* cluster;", "clusters"),
}  # fmt: skip


@pytest.mark.parametrize("header", REFUSED)
def test_what_is_not_there_is_refused_by_name(header: str) -> None:
    body, message = REFUSED[header]
    with pytest.raises(CompileError, match=message):
        run(header, "int* x", body, np.zeros(1, np.int32))
