"""Integer, float and half intrinsics of CUDA C++, and conversions as the device makes them."""

import ml_dtypes
import numpy as np
import pytest
from cpp_launch import LANES, launched, ramp, words

import refsim

# ---- integers -------------------------------------------------------------------------------------------------------


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


# ---- floating point -------------------------------------------------------------------------------------------------


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


# ---- half precision -------------------------------------------------------------------------------------------------


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


def test_eight_bit_floats_through_float():
    body = """
    const __nv_fp8_e4m3 small(a[i]);
    const __nv_fp8_e5m2 wide(a[i]);
    b[i] = float(small);
    c[i] = float(wide);
    d[i] = __nv_cvt_float_to_fp8(a[i], __NV_SATFINITE, __NV_E4M3);
    """
    a = np.concatenate([np.linspace(-500, 500, 32), np.logspace(-9, 4.7, 32)]).astype(np.float32)
    b, c, d = np.zeros(LANES, np.float32), np.zeros(LANES, np.float32), np.zeros(LANES, np.uint8)
    launched(body, a, b, c, d, before="#include <cuda_fp8.h>")
    small = np.clip(a, -448, 448).astype(ml_dtypes.float8_e4m3fn)
    wide = a.astype(ml_dtypes.float8_e5m2)
    np.testing.assert_array_equal(b, small.astype(np.float32))
    np.testing.assert_array_equal(c, wide.astype(np.float32))
    np.testing.assert_array_equal(d, small.view(np.uint8))


def test_eight_bit_floats_saturate_unless_told_otherwise():
    body = """
    b[i] = float(__nv_fp8_e5m2(a[i]));
    c[i] = float(__nv_fp8_e4m3(a[i]));
    d[i] = __nv_cvt_float_to_fp8(a[i], __NV_NOSAT, __NV_E5M2);
    """
    a = np.array([1e5, -1e9, np.inf, -np.inf, 60000], np.float32)
    b, c, d = np.zeros(5, np.float32), np.zeros(5, np.float32), np.zeros(5, np.uint8)
    launched(body, a, b, c, d, block=5, before="#include <cuda_fp8.h>")
    assert b.tolist() == [57344, -57344, 57344, -57344, 57344]
    assert c.tolist() == [448, -448, 448, -448, 448]
    np.testing.assert_array_equal(d, a.astype(ml_dtypes.float8_e5m2).view(np.uint8))


# ---- options, headers and assembly --------------------------------------------------------------------------------


def test_products_are_fused_only_if_asked_for():
    rng = np.random.default_rng(5)
    a, b = (rng.normal(size=LANES).astype(np.float32) for _ in range(2))
    rounded, fused = np.zeros(LANES, np.float32), np.zeros(LANES, np.float32)
    launched("c[i] = a[i] * b[i] + -0.25f;", a, b, rounded, options=("-fmad=false",))
    launched("c[i] = a[i] * b[i] + -0.25f;", a, b, fused, options=("--fmad=true",))
    np.testing.assert_array_equal(rounded, a * b - np.float32(0.25))
    np.testing.assert_array_equal(fused, (a.astype(np.float64) * b - 0.25).astype(np.float32))
    assert (rounded != fused).any()


def test_standard_headers():
    before = """
    #include <algorithm>
    #include <array>
    #include <cstdint>
    #include <limits>
    #include <type_traits>
    #include <utility>
    #include <cuda/std/limits>
    template <typename T> using Bare = std::remove_reference_t<std::remove_const_t<T>>;
    """
    body = """
    std::array<int32_t, 3> cells = {a[i], -a[i], 7};
    int low = std::numeric_limits<int16_t>::min(), high = cuda::std::numeric_limits<short>::max();
    std::swap(low, high);
    static_assert(std::is_same<Bare<const float>, float>::value, "");
    static_assert(std::is_floating_point_v<double> && !std::is_signed_v<uint8_t>);
    b[i] = std::max(cells[0], cells[1]) + std::min(low, std::clamp(a[i], high, 5)) + int(cells.size());
    """
    a, b = words(np.int32) // 4, np.zeros(LANES, np.int32)
    launched(body, a, b, before=before)
    np.testing.assert_array_equal(b, np.abs(a) + np.minimum(32767, np.clip(a, -32768, 5)) + 3)


def test_inline_assembly_of_known_instructions():
    body = """
    int sum, lane;
    asm("add.s32 %0, %1, %2;" : "=r"(sum) : "r"(a[i]), "r"(i));
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    b[i] = sum * 100 + lane;
    """
    a, b = ramp(np.int32), np.zeros(LANES, np.int32)
    launched(body, a, b)
    np.testing.assert_array_equal(b, 200 * a + a % 32)


def test_unknown_assembly_names_instruction_and_line():
    code = 'extern "C" __global__ void kernel(int* x) {\n    asm("frobnicate.s32 %0, 1;" : "=r"(x[0]));\n}\n'
    with pytest.raises(refsim.UnsupportedError, match=r"(?s)<kernel>:2.*frobnicate"):
        refsim.RawKernel(code, "kernel")((1,), (1,), (ramp(np.int32),))
