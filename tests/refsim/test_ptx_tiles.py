"""Tiles by PTX: ``ldmatrix``, ``stmatrix``, ``cp.async`` pipelines; right, and with one defect."""

import numpy as np
import pytest

import refsim

ROWS = np.arange(512, dtype=np.uint16)


def run(code, grid, block, *args, device="sim:sm_90", **options):
    return refsim.RawKernel(code, "kernel", ("-std=c++17",))((grid,), (block,), args, device=device, **options)


def kinds(report):
    return [(finding.kind, finding.line) for finding in report.errors]


def line_of(code, text):
    return 1 + code[: code.index(text)].count("\n")


# ---- 8 × 8 tiles -----------------------------------------------------------------------------------------------------

LOAD = """
extern "C" __global__ void kernel(const unsigned short* in, unsigned* out, int shift) {
    __shared__ __align__(16) unsigned short tile[32 * 8 + 8];
    for (int i = threadIdx.x; i < 32 * 8 + 8; i += 32) tile[i] = in[i];
    __syncwarp();
    unsigned r0, r1, r2, r3, row = (unsigned)__cvta_generic_to_shared(tile + threadIdx.x * 8 + shift);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4TRANS.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(row));
    out[threadIdx.x * 4] = r0; out[threadIdx.x * 4 + 1] = r1;
    out[threadIdx.x * 4 + 2] = r2; out[threadIdx.x * 4 + 3] = r3;
}
"""


@pytest.mark.parametrize("trans", ["", ".trans"])
def test_ldmatrix_deals_rows_as_the_isa_draws_them(trans):
    out = np.zeros(128, np.uint32)
    report = run(LOAD.replace("TRANS", trans), 1, 32, ROWS, out, np.int32(0))
    assert not report.findings, str(report)
    tiles = ROWS[:256].reshape(4, 8, 8)
    for lane in range(32):
        for tile in range(4):
            row, pair = lane // 4, lane % 4
            two = tiles[tile, row, 2 * pair : 2 * pair + 2]
            if trans:
                two = tiles[tile, 2 * pair : 2 * pair + 2, row]
            assert out[4 * lane + tile] == int(two[0]) | int(two[1]) << 16


def test_a_row_that_is_not_aligned_to_16_bytes():
    report = run(LOAD.replace("TRANS", ""), 1, 32, ROWS, np.zeros(128, np.uint32), np.int32(4))
    assert kinds(report) == [("misaligned", line_of(LOAD, "asm volatile"))]
    assert "16 bytes" in str(report)


def test_a_row_beyond_the_array_and_one_never_written():
    code = LOAD.replace("TRANS", "")
    report = run(code, 1, 32, ROWS, np.zeros(128, np.uint32), np.int32(16))
    assert kinds(report) == [("out_of_bounds", line_of(code, "asm volatile"))]
    assert "'tile'" in str(report)
    partly = code.replace("i < 32 * 8 + 8; i", "i < 31 * 8; i")
    report = run(partly, 1, 32, ROWS, np.zeros(128, np.uint32), np.int32(0))
    assert kinds(report) == [("uninitialized_read", line_of(code, "asm volatile"))]


def test_rows_that_another_lane_wrote_need_a_warp_barrier():
    code = LOAD.replace("TRANS", "").replace("    __syncwarp();\n", "\n")
    report = run(code, 1, 32, ROWS, np.zeros(128, np.uint32), np.int32(0))
    assert {kind for kind, _ in kinds(report)} == {"race"}


def test_every_lane_must_take_part():
    code = LOAD.replace("TRANS", "").replace("unsigned r0,", "if (threadIdx.x == 5) return;\n    unsigned r0,")
    report = run(code, 1, 32, ROWS, np.zeros(128, np.uint32), np.int32(0))
    assert kinds(report) == [("warp_divergence", line_of(code, "asm volatile"))]
    assert "ldmatrix needs all lanes of the warp; lanes 5 do not take part" in str(report)


def test_mma_in_a_branch_of_half_a_warp():
    code = """
    extern "C" __global__ void kernel(float* out) {
        float d[4] = {0, 0, 0, 0};
        unsigned a[4] = {0, 0, 0, 0}, b[2] = {0, 0};
        if (threadIdx.x < 16) {
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                "{%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
        }
        out[threadIdx.x] = d[0];
    }"""
    report = run(code, 1, 32, np.zeros(32, np.float32))
    assert kinds(report) == [("warp_divergence", line_of(code, "asm volatile"))]


def test_stmatrix_and_movmatrix():
    code = """
    extern "C" __global__ void kernel(const unsigned* in, unsigned short* out, unsigned* turned) {
        __shared__ __align__(16) unsigned short tile[2][8 * 8];
        unsigned row = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x / 8 % 2][threadIdx.x % 8 * 8]);
        unsigned a = in[threadIdx.x], b = in[32 + threadIdx.x], c;
        asm volatile("stmatrix.sync.aligned.m8n8.x2TRANS.shared.b16 [%0], {%1, %2};"
                     :: "r"(row), "r"(a), "r"(b) : "memory");
        asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(c) : "r"(a));
        __syncwarp();
        for (int i = threadIdx.x; i < 128; i += 32) out[i] = tile[i / 64][i % 64];
        turned[threadIdx.x] = c;
    }"""
    registers = np.arange(128, dtype=np.uint16)  # the tiles row by row, as they lie in the lanes
    for trans in ("", ".trans"):
        out, turned = np.zeros((2, 8, 8), np.uint16), np.zeros(32, np.uint32)
        report = run(code.replace("TRANS", trans), 1, 32, registers.view(np.uint32), out, turned)
        assert not report.findings, str(report)
        tiles = registers.reshape(2, 8, 8)
        np.testing.assert_array_equal(out, tiles.swapaxes(1, 2) if trans else tiles)
        np.testing.assert_array_equal(turned.view(np.uint16).reshape(8, 8), tiles[0].T)


# ---- a GEMM with swizzled tiles and a pipeline of two stages ---------------------------------------------------------

GEMM = """
#include <cuda_fp16.h>
#include <stdint.h>
constexpr int BM = 32, BN = 32, BK = 32, THREADS = 64;

__device__ __forceinline__ uint32_t smem(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void copy16(uint32_t to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(from) : "memory");
}
template <int N> __device__ __forceinline__ void wait_for() { asm volatile("cp.async.wait_group %0;" :: "n"(N)); }

// element (row, column) of a tile whose 16-byte pieces change places by row, so that 8 rows meet all banks
__device__ __forceinline__ int swizzled(int row, int column) {
    return row * BK + ((column / 8 ^ (row / 2 & 3)) * 8) + column % 8;
}

// C = A times the transpose of B; one block per 32 x 32 tile, warp w its columns 16 w to 16 w + 15
extern "C" __global__ void kernel(const half* A, const half* B, float* C, int n, int k) {
    __shared__ __align__(128) half as[2][BM * BK], bs[2][BN * BK];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int row0 = blockIdx.x / (n / BN) * BM, column0 = blockIdx.x % (n / BN) * BN;
    auto fetch = [&](int tile) {
        for (int i = thread; i < BM * BK / 8; i += THREADS) {
            const int row = i / (BK / 8), column = i % (BK / 8) * 8;
            copy16(smem(&as[tile & 1][swizzled(row, column)]), A + (row0 + row) * k + tile * BK + column);
            copy16(smem(&bs[tile & 1][swizzled(row, column)]), B + (column0 + row) * k + tile * BK + column);
        }
        asm volatile("cp.async.commit_group;");
    };
    float sum[2][2][4] = {};
    fetch(0);
    for (int tile = 0; tile < k / BK; ++tile) {
        if (tile + 1 < k / BK) {
            fetch(tile + 1);
            wait_for<1>();  // line W
        } else {
            wait_for<0>();
        }
        __syncthreads();  // line B
        for (int k0 = 0; k0 < BK; k0 += 16) {
            uint32_t a[2][4], b[4];
            for (int i = 0; i < 2; ++i) {
                uint32_t p = smem(&as[tile & 1][swizzled(16 * i + lane % 16, k0 + lane / 16 * 8)]);
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(a[i][0]), "=r"(a[i][1]), "=r"(a[i][2]), "=r"(a[i][3]) : "r"(p));
            }
            const int row = 16 * warp + lane / 16 * 8 + lane % 8;
            uint32_t p = smem(&bs[tile & 1][swizzled(row, k0 + lane / 8 % 2 * 8)]);
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3]) : "r"(p));
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 2; ++j)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\\n"
                                 : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
                                 : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]),
                                   "r"(b[2 * j]), "r"(b[2 * j + 1]));
        }
        __syncthreads();  // line E
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            for (int h = 0; h < 2; ++h) {
                const int row = row0 + 16 * i + 8 * h + lane / 4, column = column0 + 16 * warp + 8 * j + lane % 4 * 2;
                *reinterpret_cast<float2*>(&C[row * n + column]) = make_float2(sum[i][j][2 * h], sum[i][j][2 * h + 1]);
            }
}
"""


def gemm(code, m=64, n=64, k=128):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-8, 9, (rows, k)).astype(np.float16) for rows in (m, n))
    c = np.zeros((m, n), np.float32)
    report = run(code, m // 32 * (n // 32), 64, a, b, c, np.int32(n), np.int32(k))
    return report, c, a.astype(np.int64) @ b.astype(np.int64).T


def test_a_pipelined_gemm():
    report, c, expected = gemm(GEMM)
    assert not report.findings, str(report)
    np.testing.assert_array_equal(c, expected)


DEFECTS = {
    "waits for one group too few": ("wait_for<1>();  // line W", "wait_for<2>();", "race"),
    "does not wait for the last group": ("            wait_for<0>();\n", "", "race"),
    "no barrier after the wait": ("        __syncthreads();  // line B\n", "", "race"),
    "no barrier before a buffer is used again": ("        __syncthreads();  // line E\n", "", "race"),
    "waits after the barrier": (
        "        __syncthreads();  // line B\n", "        wait_for<0>();\n", "race",
    ),
    "a tile that is not aligned": (
        "__shared__ __align__(128) half as[2][BM * BK], bs[2][BN * BK];",
        "__shared__ half raw[2 * BM * BK + 4], bs[2][BN * BK]; half (*as)[BM * BK] = (half (*)[BM * BK])(raw + 4);",
        "misaligned",
    ),
    "a tile too short": ("half as[2][BM * BK]", "half as[2][BM * BK - 64]", "out_of_bounds"),
}  # fmt: skip


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_of_the_pipeline_is_found(name):
    old, new, kind = DEFECTS[name]
    assert old in GEMM
    report, _, _ = gemm(GEMM.replace(old, new), m=32, n=32)
    assert kind in {found for found, _ in kinds(report)}, str(report)


def test_a_wait_orders_only_the_copies_of_its_own_thread():
    code = """
    extern "C" __global__ void kernel(const int* in, int* out) {
        __shared__ __align__(16) int cells[64];
        unsigned to = (unsigned)__cvta_generic_to_shared(&cells[threadIdx.x]);
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(in + threadIdx.x));
        __syncthreads();
        asm volatile("cp.async.wait_all;");
        out[threadIdx.x] = cells[63 - threadIdx.x];
    }"""
    a, b = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    report = run(code, 1, 64, a, b)
    assert kinds(report) == [("race", line_of(code, "out[threadIdx.x] ="))]
    right = code.replace("__syncthreads();", "").replace('wait_all;");', 'wait_all;"); __syncthreads();')
    report = run(right, 1, 64, a, b)
    assert not report.findings, str(report)
    np.testing.assert_array_equal(b, a[::-1])


def test_copies_fill_up_with_zeros():
    code = """
    extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
        __shared__ __align__(16) uint4 cells[32];
        int i = threadIdx.x;
        unsigned to = (unsigned)__cvta_generic_to_shared(cells + i), size = i % 17;
        asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;"
                     :: "r"(to), "l"(reinterpret_cast<const uint4*>(in) + i), "n"(16), "r"(size));
        asm volatile("cp.async.commit_group;\\ncp.async.wait_group 0;");
        reinterpret_cast<uint4*>(out)[i] = cells[i];
    }"""
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 2**32, 128, np.uint32), np.zeros(128, np.uint32)
    report = run(code, 1, 32, a, b)
    assert not report.findings, str(report)
    expected = a.view(np.uint8).reshape(32, 16) * (np.arange(16) < np.arange(32)[:, None] % 17)
    np.testing.assert_array_equal(b.view(np.uint8).reshape(32, 16), expected)
