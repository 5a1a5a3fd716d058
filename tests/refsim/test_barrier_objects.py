"""Barrier objects: ``mbarrier`` in PTX, ``cuda::barrier``, ``__mbarrier_*``, and the named barriers of a block."""

import numpy as np
import pytest

import refsim


def run(code, *args, block=64, grid=1, device="sim:sm_90"):
    return refsim.RawKernel(code, "kernel", ("-std=c++17",))((grid,), (block,), args, device=device)


def kinds(report):
    return {finding.kind for finding in report.errors}


# ---- all threads meet -----------------------------------------------------------------------------------------------

MEET = """
#include <cuda/barrier>
using barrier = cuda::barrier<cuda::thread_scope_block>;
extern "C" __global__ void kernel(const int* in, int* out) {
    __shared__ barrier bar;
    __shared__ int cells[64];
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    int total = 0;
    for (int round = 0; round < 3; ++round) {
        cells[threadIdx.x] = in[threadIdx.x] + round;
        barrier::arrival_token token = bar.arrive();
        total += round;  // work of one's own
        bar.wait(std::move(token));
        total += cells[63 - threadIdx.x];
        bar.arrive_and_wait();
    }
    out[blockIdx.x * 64 + threadIdx.x] = total;
}"""
MEET = MEET.replace("std::move(token)", "static_cast<barrier::arrival_token&&>(token)")


def test_all_threads_meet():
    a, b = np.arange(64, dtype=np.int32), np.zeros(192, np.int32)
    report = run(MEET, a, b, grid=3)
    assert not report.findings, str(report)
    np.testing.assert_array_equal(b.reshape(3, 64), np.tile(3 * a[::-1] + 6, (3, 1)))


MEET_DEFECTS = {
    "nobody waits": ("        bar.wait(static_cast<barrier::arrival_token&&>(token));\n", "", "race"),
    "the next round overtakes": ("        bar.arrive_and_wait();\n", "        bar.arrive();\n", "race"),
    "no barrier after the initialisation": ("    __syncthreads();\n", "", "race"),
    "never initialised": ("    if (threadIdx.x == 0) init(&bar, blockDim.x);\n", "", "uninitialized_read"),
    "one arrival too many is expected": ("init(&bar, blockDim.x)", "init(&bar, blockDim.x + 1)", "deadlock"),
}


@pytest.mark.parametrize("name", MEET_DEFECTS)
def test_a_defect_of_a_meeting_is_found(name):
    old, new, kind = MEET_DEFECTS[name]
    assert old in MEET
    report = run(MEET.replace(old, new), np.arange(64, dtype=np.int32), np.zeros(64, np.int32))
    assert kind in kinds(report), str(report)


# ---- one warp fills, one uses ----------------------------------------------------------------------------------------

RING = """
#include <stdint.h>
__device__ __forceinline__ uint32_t smem(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void wait(uint64_t* bar, int parity) {
    asm volatile("{\\n"
                 ".reg .pred done;\\n"
                 "AGAIN:\\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\\n"
                 "@done bra READY;\\n"
                 "bra AGAIN;\\n"
                 "READY:\\n"
                 "}" :: "r"(smem(bar)), "r"(parity) : "memory");
}
__device__ __forceinline__ void arrive(uint64_t* bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(smem(bar)) : "memory");
}
// warp 0 fills a ring of two stages, warp 1 adds up what it finds there
extern "C" __global__ void kernel(const int* in, int* out, int rounds) {
    __shared__ uint64_t full[2], empty[2];
    __shared__ int stage[2][32];
    const int lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; ++s) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(smem(&full[s])), "r"(32));
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(smem(&empty[s])), "r"(32));
        }
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int k = 0; k < rounds; ++k) {
            wait(&empty[k % 2], (k / 2 & 1) ^ 1);
            stage[k % 2][lane] = in[32 * k + lane];
            arrive(&full[k % 2]);
        }
    } else {
        int total = 0;
        for (int k = 0; k < rounds; ++k) {
            wait(&full[k % 2], k / 2 & 1);
            total += (k + 1) * stage[k % 2][31 - lane];
            arrive(&empty[k % 2]);
        }
        out[lane] = total;
    }
}"""


def ring(code, rounds=5):
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 1000, 32 * rounds).astype(np.int32), np.zeros(32, np.int32)
    return run(code, a, b, np.int32(rounds)), a, b


def test_a_ring_of_stages():
    report, a, b = ring(RING)
    assert not report.findings, str(report)
    np.testing.assert_array_equal(b, (a.reshape(5, 32)[:, ::-1] * np.arange(1, 6)[:, None]).sum(axis=0))


RING_DEFECTS = {
    "the user does not wait": ("            wait(&full[k % 2], k / 2 & 1);\n", "", "race"),
    # the filler runs ahead by two phases, and the user waits for a parity that is past
    "the filler does not wait": ("            wait(&empty[k % 2], (k / 2 & 1) ^ 1);\n", "", "deadlock"),
    "the user gives nothing back": ("            arrive(&empty[k % 2]);\n", "", "deadlock"),
    "the filler waits for the wrong parity": ("(k / 2 & 1) ^ 1)", "k / 2 & 1)", "deadlock"),
    "given back before it is used": (
        "            total += (k + 1) * stage[k % 2][31 - lane];\n            arrive(&empty[k % 2]);\n",
        "            arrive(&empty[k % 2]);\n            total += (k + 1) * stage[k % 2][31 - lane];\n", "race",
    ),
    "an object that is not aligned": (
        "uint64_t full[2], empty[2];", "unsigned raw[10]; uint64_t *full = (uint64_t*)(raw + 1), *empty = full + 2;",
        "misaligned",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RING_DEFECTS)
def test_a_defect_of_a_ring_is_found(name):
    old, new, kind = RING_DEFECTS[name]
    assert old in RING
    report, _, _ = ring(RING.replace(old, new))
    assert kind in kinds(report), str(report)


# ---- named barriers --------------------------------------------------------------------------------------------------

NAMED = """
extern "C" __global__ void kernel(int* out) {
    __shared__ int cells[128];
    const int half = threadIdx.x / 64;
    for (int round = 1; round < 4; ++round) {
        cells[threadIdx.x] = threadIdx.x * round;
        asm volatile("bar.sync %0, 64;" :: "r"(half + 1) : "memory");
        out[threadIdx.x] += cells[threadIdx.x ^ 63];
        asm volatile("bar.sync %0, %1;" :: "r"(half + 1), "r"(64) : "memory");
    }
}"""


def test_named_barriers_of_half_a_block():
    out = np.zeros(128, np.int32)
    report = run(NAMED, out, block=128)
    assert not report.findings, str(report)
    np.testing.assert_array_equal(out, 6 * (np.arange(128) ^ 63))
    crossing = NAMED.replace("threadIdx.x ^ 63", "threadIdx.x ^ 127")
    assert "race" in kinds(run(crossing, out, block=128))
    missing = NAMED.replace('        asm volatile("bar.sync %0, %1;" :: "r"(half + 1), "r"(64) : "memory");\n', "")
    assert "race" in kinds(run(missing, out, block=128))


def test_one_warp_arrives_another_waits():
    code = """
    extern "C" __global__ void kernel(int* out) {
        __shared__ int cells[32];
        if (threadIdx.x >= 32) {
            asm volatile("bar.sync 3, 64;" ::: "memory");
            out[threadIdx.x - 32] = cells[63 - threadIdx.x];
        } else {
            cells[threadIdx.x] = threadIdx.x + 1;
            asm volatile("bar.arrive 3, 64;" ::: "memory");
        }
    }"""
    out = np.zeros(32, np.int32)
    report = run(code, out)
    assert not report.findings, str(report)
    assert out.tolist() == list(range(32, 0, -1))
    report = run(code.replace("bar.arrive 3, 64", "bar.arrive 4, 64"), out)
    assert kinds(report) == {"deadlock"}


PING_PONG = """
extern "C" __global__ void kernel(const int* in, int* out, int rounds) {
    __shared__ int cells[32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int i = 0; i < rounds; ++i) {
        if (warp == 0) {
            if (i > 0) asm volatile("bar.sync 2, 64;" ::: "memory");
            cells[lane] = in[i * 32 + lane];
            asm volatile("bar.arrive 1, 64;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            out[i * 32 + lane] = cells[31 - lane];
            if (i + 1 < rounds) asm volatile("bar.arrive 2, 64;" ::: "memory");
        }
    }
}"""


@pytest.mark.parametrize("options", [{}, {"lanes": "warp"}, {"lanes": "thread"}, {"schedule": "seed:3"}])
def test_a_producer_and_a_consumer_take_turns_in_a_loop(options):
    a, b = np.arange(128, dtype=np.int32), np.zeros(128, np.int32)
    report = refsim.RawKernel(PING_PONG, "kernel")((1,), (64,), (a, b, 4), **options)
    assert not report.findings, str(report)
    np.testing.assert_array_equal(b.reshape(4, 32), a.reshape(4, 32)[:, ::-1])


# ---- copies that arrive ----------------------------------------------------------------------------------------------

COPY = """
#include <cooperative_groups.h>
#include <cuda/barrier>
namespace cg = cooperative_groups;
extern "C" __global__ void kernel(const int* in, int* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ int cells[256];
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&bar, block.size());
    block.sync();
    cuda::memcpy_async(block, cells, in, sizeof(int) * 256, bar);
    bar.arrive_and_wait();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) out[i] = cells[255 - i];
}"""


def test_copies_arrive_with_a_barrier():
    a, b = np.arange(256, dtype=np.int32), np.zeros(256, np.int32)
    report = run(COPY, a, b)
    assert not report.findings, str(report)
    np.testing.assert_array_equal(b, a[::-1])
    report = run(COPY.replace("    bar.arrive_and_wait();\n", ""), a, b)
    assert kinds(report) == {"race"}


def test_the_c_functions():
    code = """
    #include <cuda_awbarrier_primitives.h>
    extern "C" __global__ void kernel(int* out) {
        __shared__ __mbarrier_t bar;
        __shared__ int cells[64];
        if (threadIdx.x == 0) __mbarrier_init(&bar, 64);
        __syncthreads();
        cells[threadIdx.x] = threadIdx.x;
        __mbarrier_token_t token = __mbarrier_arrive(&bar);
        while (!__mbarrier_test_wait(&bar, token)) {}
        out[threadIdx.x] = cells[63 - threadIdx.x];
        __syncthreads();
        if (threadIdx.x == 0) __mbarrier_inval(&bar);
    }"""
    out = np.zeros(64, np.int32)
    report = run(code, out)
    assert not report.findings, str(report)
    assert out.tolist() == list(range(63, -1, -1))


def test_expected_bytes_are_refused():
    code = """
    extern "C" __global__ void kernel(int* out) {
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(0), "r"(1024));
    }"""
    with pytest.raises(refsim.UnsupportedError, match=r"mbarrier\.arrive\.expect_tx\.shared\.b64 is not supported"):
        run(code, np.zeros(1, np.int32))
