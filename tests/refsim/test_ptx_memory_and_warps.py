"""PTX instructions on memory, on warps, and the ways in which people write asm statements."""

import ml_dtypes
import numpy as np
import pytest

import refsim


def run(body, *args, block=64, before="", device="sim:sm_90"):
    names = {"float32": "float", "int32": "int", "uint32": "unsigned", "uint64": "unsigned long long",
             "uint8": "unsigned char", "uint16": "unsigned short"}  # fmt: skip
    parameters = ", ".join(f"{names[x.dtype.name]}* {name}" for name, x in zip("abcd", args, strict=False))
    code = f'{before}\nextern "C" __global__ void kernel({parameters}) {{\nint i = threadIdx.x;\n{body}\n}}'
    return refsim.RawKernel(code, "kernel", ("-std=c++17",))((1,), np.atleast_1d(block).tolist(), args, device=device)


def clean(*args, **options):
    report = run(*args, **options)
    assert not report.findings, str(report)


def test_vector_loads_and_stores():
    body = """
    unsigned x, y, z, w;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4 + 16];"
                 : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(a + 4 * i));
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" :: "l"(b + 4 * i), "r"(y), "r"(x) : "memory");
    asm volatile("st.global.cs.b32 [%0+8], %1;\\n\\tst.global.u32 [%0+12], %2;" :: "l"(b + 4 * i), "r"(z), "r"(w));
    """
    a, b = np.arange(260, dtype=np.uint32), np.zeros(256, np.uint32)
    clean(body, a, b)
    np.testing.assert_array_equal(b.reshape(64, 4), a[4:].reshape(64, 4)[:, [1, 0, 2, 3]])


def test_a_vector_that_is_not_aligned():
    body = 'unsigned x, y; asm("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "l"(a + i)); b[i] = x + y;'
    report = run(body, np.zeros(128, np.uint32), np.zeros(64, np.uint32))
    assert [finding.kind for finding in report.errors] == ["misaligned"]


def test_shared_memory_by_address():
    body = """
    __shared__ __align__(16) float cells[64 * 2];
    unsigned address;
    asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(address) : "l"(cells));
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" :: "r"(address + 8 * i), "f"(a[i]), "f"(2 * a[i]) : "memory");
    __syncthreads();
    asm volatile("ld.shared.f32 %0, [%1+4];" : "=f"(b[i]) : "r"(address + 8 * (63 - i)));
    """
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    clean(body, a, b)
    np.testing.assert_array_equal(b, 2 * a[::-1])
    report = run(body.replace("__syncthreads();", ""), a, b)
    assert [finding.kind for finding in report.errors] == ["race"]
    report = run(body.replace("(63 - i)", "(64 - i)"), a, b)
    assert [finding.kind for finding in report.errors] == ["out_of_bounds"]
    assert "'cells'" in str(report)


def test_narrow_loads_fill_their_register():
    body = """
    unsigned x; int y; unsigned short z;
    asm("ld.global.u8 %0, [%1];" : "=r"(x) : "l"(a + i));
    asm("ld.global.s8 %0, [%1];" : "=r"(y) : "l"(a + i));
    asm("ld.global.u16 %0, [%1];" : "=h"(z) : "l"(a + 2 * (i / 2)));
    b[i] = x + 1000 * y + (z << 20);
    asm volatile("st.global.b8 [%0], %1;" :: "l"(c + i), "r"(x + 256));
    """
    a = np.arange(100, 164, dtype=np.uint8)
    b, c = np.zeros(64, np.int32), np.zeros(64, np.uint8)
    clean(body, a, b, c)
    wide = a.view(np.uint16).repeat(2).astype(np.int64)
    np.testing.assert_array_equal(b, (a + 1000 * a.view(np.int8).astype(np.int64) + (wide << 20)).astype(np.int32))
    np.testing.assert_array_equal(c, a)


def test_atomics_and_reductions():
    body = """
    unsigned old;
    asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(a), "r"(i));
    asm volatile("red.relaxed.gpu.global.max.s32 [%0], %1;" :: "l"(a + 1), "r"(i));
    asm volatile("red.global.add.f32 [%0], %1;" :: "l"(b), "f"(0.5f));
    asm volatile("atom.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(a + 2), "r"(0), "r"(i + 1));
    asm volatile("red.global.add.noftz.bf16x2 [%0], %1;" :: "l"(a + 3), "r"(0x3F803F80));
    """
    a, b = np.zeros(4, np.uint32), np.zeros(1, np.float32)
    clean(body, a, b)
    assert a[:3].tolist() == [2016, 63, 1]
    assert a[3:].view(ml_dtypes.bfloat16).astype(float).tolist() == [64, 64]
    assert b[0] == 32


def test_release_and_acquire_order_what_came_before():
    code = """
    extern "C" __global__ void kernel(int* data, unsigned* flag, int* out) {
        unsigned seen = 0;
        if (blockIdx.x == 0) {
            data[0] = 42;
            asm volatile("st.RELEASE.gpu.global.u32 [%0], %1;" :: "l"(flag), "r"(1) : "memory");
        } else {
            while (seen == 0) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
            out[0] = data[0];
        }
    }"""
    for how in ("release", "relaxed"):
        data, flag, out = np.zeros(1, np.int32), np.zeros(1, np.uint32), np.zeros(1, np.int32)
        kernel = refsim.RawKernel(code.replace("RELEASE", how), "kernel")
        report = kernel((2,), (1,), (data, flag, out), device="sim:sm_90")
        assert out[0] == 42
        assert [finding.kind for finding in report.errors] == ([] if how == "release" else ["race"])


def test_shuffles_votes_and_masks():
    body = """
    unsigned x = a[i], up, down, bfly, idx, ballot, active, same, leader, first; int in_range = 0;
    asm volatile("shfl.sync.up.b32 %0, %1, 3, 0, 0xffffffff;" : "=r"(up) : "r"(x));
    asm volatile("{.reg .pred p; shfl.sync.down.b32 %0|p, %2, 5, 0x181f, -1; @p mov.b32 %1, 1;}"
                 : "=r"(down), "+r"(in_range) : "r"(x));
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, %3, %4;" : "=r"(bfly) : "r"(x), "r"(9), "n"(31), "r"(0xffffffff));
    asm volatile("shfl.sync.idx.b32 %0, %1, 7, 0x1f, 0xffffffff;" : "=r"(idx) : "r"(x));
    asm volatile("{.reg .pred p; setp.gt.u32 p, %1, 20; vote.sync.ballot.b32 %0, p, 0xffffffff;}"
                 : "=r"(ballot) : "r"(x));
    asm volatile("activemask.b32 %0;" : "=r"(active));
    asm volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(same) : "r"(x % 4));
    asm volatile("{.reg .pred p; elect.sync %0|p, %2; selp.u32 %1, 1, 0, p;}" : "=r"(leader), "=r"(first) : "r"(-1));
    unsigned* o = b + 10 * i;
    o[0] = up; o[1] = down; o[2] = bfly; o[3] = idx; o[4] = ballot; o[5] = active; o[6] = same; o[7] = leader;
    o[8] = first; o[9] = in_range;
    """
    a = np.arange(32, dtype=np.uint32) * 2
    out = np.zeros((32, 10), np.uint32)
    clean(body, a, out, block=32)
    lane = np.arange(32)
    np.testing.assert_array_equal(out[:, 0], a[np.where(lane >= 3, lane - 3, lane)])
    inside = lane % 8 + 5 < 8
    np.testing.assert_array_equal(out[:, 1], a[np.where(inside, lane + 5, lane) % 32])
    np.testing.assert_array_equal(out[:, 9], inside)
    np.testing.assert_array_equal(out[:, 2], a[lane ^ 9])
    assert set(out[:, 3]) == {14}
    assert set(out[:, 4]) == {0xFFFFFFFF << 11 & 0xFFFFFFFF}
    assert set(out[:, 5]) == {0xFFFFFFFF}
    np.testing.assert_array_equal(out[:, 6], np.where(lane % 2, 0xAAAAAAAA, 0x55555555))
    assert out[:, 7:9].tolist() == [[0, int(x == 0)] for x in lane]


def test_special_registers():
    body = """
    unsigned* o = a + 8 * (i + threadIdx.y * 16);
    asm("mov.u32 %0, %%laneid;" : "=r"(o[0])); asm("mov.u32 %0, %%warpid;" : "=r"(o[1]));
    asm("mov.u32 %0, %%tid.y;" : "=r"(o[2])); asm("mov.u32 %0, %%ntid.x;" : "=r"(o[3]));
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(o[4])); asm("mov.u32 %0, %%lanemask_ge;" : "=r"(o[5]));
    asm("mad.lo.u32 %0, %%ctaid.x, %%nctaid.x, %%nwarpid;" : "=r"(o[6]));
    unsigned t0, t1;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(t0)); asm volatile("mov.u32 %0, %%clock;" : "=r"(t1));
    o[7] = t1 > t0;
    """
    out = np.zeros((64, 8), np.uint32)
    clean(body, out, block=(16, 4))
    n = np.arange(64)
    lane = n % 32
    for column, wanted in enumerate([lane, n // 32, n // 16, 16 + 0 * n, (1 << lane) - 1,
                                     0xFFFFFFFF << lane & 0xFFFFFFFF, 2 + 0 * n, 1 + 0 * n]):  # fmt: skip
        np.testing.assert_array_equal(out[:, column], wanted)


def test_statements_without_effect_here():
    body = """
    asm volatile("" ::: "memory");
    asm volatile("prefetch.global.L2 [%0];" :: "l"(a));
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("nanosleep.u32 %0;" :: "r"(20));
    asm volatile("fence.acq_rel.gpu;\\nmembar.cta;");
    asm volatile("bar.sync 0;");
    asm volatile("{ // nothing at all \\n }");
    a[i] = 1;
    """
    a = np.zeros(64, np.uint32)
    clean(body, a)
    assert a.all()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('asm("wgmma.fence.sync.aligned;");', r"wgmma\.fence\.sync\.aligned is not supported"),
        ('asm("cp.async.bulk.commit_group;");', r"cp\.async\.bulk\.commit_group is not supported"),
        ('asm("add.u32 %0, %1, t;" : "=r"(a[i]) : "r"(1));', r"add\.u32: register 't' is not declared"),
        ('asm("add.u32 %1, %1, 1;" : "=r"(a[i]) : "r"(1));', r"add\.u32: operand %1 is an input"),
        ('asm("add.f64 %0, %1, %1;" : "=f"(*(float*)a) : "f"(1.0f));', r"add\.f64: operand %1 has 32 bits"),
        ('asm("ld.global.u32 %0, [%1];" : "=r"(a[i]) : "r"(1));', r"ld\.global\.u32: the address in %1 is a number"),
        ('asm("mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 {%0}, {%0}, {%0}, {%0};" : "+r"(a[i]));', r"m8n8k32"),
    ],
)
def test_refused_with_its_name(body, message):
    with pytest.raises(refsim.UnsupportedError, match=rf"(?s)<kernel>:4.*{message}"):
        run(body, np.zeros(64, np.uint32))


def test_assembly_for_amd_devices_is_refused():
    with pytest.raises(refsim.UnsupportedError, match=r"AMD devices.*s_nop 0"):
        run('asm volatile("s_nop 0");', np.zeros(64, np.uint32), device="sim:gfx942")
