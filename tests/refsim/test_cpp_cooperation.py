"""Threads that work together in CUDA and HIP C++: warps, atomics, cooperative groups."""

import numpy as np
from cpp_launch import LANES, launched, ramp, words

import refsim

FULL = 0xFFFFFFFF

# ---- warps ----------------------------------------------------------------------------------------------------------


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


# ---- atomics --------------------------------------------------------------------------------------------------------


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


# ---- cooperative groups ---------------------------------------------------------------------------------------------

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


def test_lanes_that_are_together():
    body = """
    b[i] = -1;
    if (a[i] % 3 == 0) {
        const cg::coalesced_group together = cg::coalesced_threads();
        b[i] = together.thread_rank() + 100 * together.size();
    }
    """
    a, b = ramp(np.int32), np.zeros(LANES, np.int32)
    launched(body, a, b, before=GROUPS)
    expected = np.full(LANES, -1)
    for warp in (a[:32], a[32:]):
        chosen = warp[warp % 3 == 0]
        expected[chosen] = np.arange(chosen.size) + 100 * chosen.size
    np.testing.assert_array_equal(b, expected)


# ---- copies of a group ----------------------------------------------------------------------------------------------

GROUP_COPY = """
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
extern "C" __global__ void kernel(const int* in, int* out, int n) {
    __shared__ int cells[2][64];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, cells[0], in, sizeof(int) * 64);
    for (int i = 0; i < n; ++i) {
        if (i + 1 < n) {
            cg::memcpy_async(block, cells[(i + 1) % 2], in + (i + 1) * 64, sizeof(int) * 64);
            cg::wait_prior<1>(block);
        } else {
            cg::wait(block);
        }
        out[i * 64 + block.thread_rank()] = cells[i % 2][63 - block.thread_rank()];
        block.sync();
    }
}"""


def test_a_group_copies_and_waits():
    given, out = np.arange(256, dtype=np.int32), np.zeros(256, np.int32)
    report = refsim.RawKernel(GROUP_COPY, "kernel")((1,), (64,), (given, out, 4))
    assert not report.findings, str(report)
    np.testing.assert_array_equal(out.reshape(4, 64), given.reshape(4, 64)[:, ::-1])
    for old, new in (("wait_prior<1>", "wait_prior<2>"), ("        block.sync();\n", ""), ("cg::wait(block)", "")):
        assert old in GROUP_COPY
        report = refsim.RawKernel(GROUP_COPY.replace(old, new), "kernel")((1,), (64,), (given, out, 4))
        assert {finding.kind for finding in report.errors} == {"race"}, (old, str(report))
