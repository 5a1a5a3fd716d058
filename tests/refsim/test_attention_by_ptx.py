"""A kernel as people write them: attention on tensor cores, with ldmatrix, mma.sync, ex2 and packed conversions."""

import ml_dtypes
import numpy as np

import refsim

ATTENTION = """
#include <cuda_bf16.h>
#include <stdint.h>
constexpr int D = 32, KEYS = 16;  // head dimension; keys per step

__device__ __forceinline__ uint32_t smem(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
template <bool trans> __device__ __forceinline__ void load4(uint32_t (&r)[4], uint32_t row) {
    if constexpr (trans)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\\n"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\\n"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row));
}
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};\\n" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ uint32_t pair(float low, float high) {
    uint32_t r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}
__device__ __forceinline__ float exp2_(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
// one warp: 16 queries of a block; o = softmax(q k^T * scale) v
extern "C" __global__ void kernel(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v, float* o,
                                  int keys, float scale_log2) {
    __shared__ __align__(128) __nv_bfloat16 qs[16 * D], ks[KEYS * D], vs[KEYS * D];
    const int lane = threadIdx.x;
    q += blockIdx.x * 16 * D;
    o += blockIdx.x * 16 * D;
    auto fetch = [&](__nv_bfloat16* to, const __nv_bfloat16* from) {
        for (int i = lane; i < 16 * D / 8; i += 32)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\\n" :: "r"(smem(to + 8 * i)), "l"(from + 8 * i));
    };
    fetch(qs, q);
    uint32_t qa[D / 16][4];
    float out[D / 8][4] = {}, top[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
    for (int first = 0; first < keys; first += KEYS) {
        fetch(ks, k + first * D);
        fetch(vs, v + first * D);
        asm volatile("cp.async.wait_all;\\n" ::: "memory");
        __syncwarp();
        if (first == 0)
            for (int d = 0; d < D / 16; ++d) load4<false>(qa[d], smem(qs + lane % 16 * D + 16 * d + lane / 16 * 8));
        float s[2][4] = {};
        for (int d = 0; d < D / 16; ++d) {
            uint32_t kb[4];
            load4<false>(kb, smem(ks + (lane / 16 * 8 + lane % 8) * D + 16 * d + lane / 8 % 2 * 8));
            mma(s[0], qa[d], kb[0], kb[1]);
            mma(s[1], qa[d], kb[2], kb[3]);
        }
        for (int h = 0; h < 2; ++h) {
            float peak = top[h];
            for (int j = 0; j < 2; ++j) peak = fmaxf(peak, fmaxf(s[j][2 * h], s[j][2 * h + 1]));
            peak = fmaxf(peak, __shfl_xor_sync(0xffffffff, peak, 1));
            peak = fmaxf(peak, __shfl_xor_sync(0xffffffff, peak, 2));
            const float shrink = exp2_((top[h] - peak) * scale_log2);
            top[h] = peak;
            total[h] *= shrink;
            for (int j = 0; j < D / 8; ++j) { out[j][2 * h] *= shrink; out[j][2 * h + 1] *= shrink; }
            for (int j = 0; j < 2; ++j)
                for (int e = 2 * h; e < 2 * h + 2; ++e) {
                    s[j][e] = exp2_((s[j][e] - peak) * scale_log2);
                    total[h] += s[j][e];
                }
        }
        // the result of the first product is the left operand of the second, register by register
        const uint32_t p[4] = {pair(s[0][0], s[0][1]), pair(s[0][2], s[0][3]), pair(s[1][0], s[1][1]),
                               pair(s[1][2], s[1][3])};
        for (int d = 0; d < D / 16; ++d) {
            uint32_t vb[4];
            load4<true>(vb, smem(vs + lane % 16 * D + 16 * d + lane / 16 * 8));
            mma(out[2 * d], p, vb[0], vb[1]);
            mma(out[2 * d + 1], p, vb[2], vb[3]);
        }
        __syncwarp();  // read before the next keys arrive
    }
    for (int h = 0; h < 2; ++h) {
        total[h] += __shfl_xor_sync(0xffffffff, total[h], 1);
        total[h] += __shfl_xor_sync(0xffffffff, total[h], 2);
        for (int j = 0; j < D / 8; ++j)
            *reinterpret_cast<float2*>(&o[(lane / 4 + 8 * h) * D + 8 * j + lane % 4 * 2]) =
                make_float2(out[j][2 * h] / total[h], out[j][2 * h + 1] / total[h]);
    }
}"""


def attention(code):
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal((rows, 32)).astype(ml_dtypes.bfloat16) for rows in (48, 64, 64))
    o = np.zeros((48, 32), np.float32)
    scale = 32**-0.5
    kernel = refsim.RawKernel(code, "kernel", ("-std=c++17",))
    report = kernel((3,), (32,), (q, k, v, o, np.int32(64), np.float32(scale / np.log(2))), device="sim:sm_90")
    scores = q.astype(np.float64) @ k.astype(np.float64).T * scale
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return report, o, weights / weights.sum(axis=1, keepdims=True) @ v.astype(np.float64)


def test_attention():
    report, o, exact = attention(ATTENTION)
    assert not report.findings, str(report)
    # the weights are rounded to bfloat16, 8 bits
    np.testing.assert_allclose(o, exact, rtol=0, atol=2.0**-8 * np.abs(exact).max())


def test_the_barrier_before_the_next_keys_is_needed():
    text = "        __syncwarp();  // read before the next keys arrive\n"
    assert text in ATTENTION
    report, _, _ = attention(ATTENTION.replace(text, ""))
    assert "race" in {finding.kind for finding in report.errors}
