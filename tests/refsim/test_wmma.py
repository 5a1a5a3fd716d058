"""``nvcuda::wmma``: fragments of every shape and type, element access, and what goes wrong with them."""

import ml_dtypes
import numpy as np
import pytest
from exact_dot import chained

import refsim

TYPES = {
    "half": (np.float16, "half", "float", np.float32), "half into half": (np.float16, "half", "half", np.float16),
    "__nv_bfloat16": (ml_dtypes.bfloat16, "__nv_bfloat16", "float", np.float32),
    "signed char": (np.int8, "signed char", "int", np.int32),
    "unsigned char": (np.uint8, "unsigned char", "int", np.int32),
    "wmma::precision::tf32": (np.float32, "float", "float", np.float32),
    "double": (np.float64, "double", "double", np.float64),
}  # fmt: skip
# elements of a lane in the fragments of a, b and c: CUDA's crt/mma.h
COUNTS = {
    ("half", "16, 16, 16"): (16, 16, 8), ("half", "32, 8, 16"): (16, 16, 8), ("half", "8, 32, 16"): (16, 16, 8),
    ("half into half", "16, 16, 16"): (16, 16, 8), ("__nv_bfloat16", "16, 16, 16"): (8, 8, 8),
    ("__nv_bfloat16", "32, 8, 16"): (16, 4, 8), ("__nv_bfloat16", "8, 32, 16"): (4, 16, 8),
    ("signed char", "16, 16, 16"): (8, 8, 8), ("unsigned char", "32, 8, 16"): (16, 4, 8),
    ("signed char", "8, 32, 16"): (4, 16, 8), ("wmma::precision::tf32", "16, 16, 8"): (4, 4, 8),
    ("double", "8, 8, 4"): (1, 1, 2),
}  # fmt: skip


def source(kind, shape, a_layout="row_major", b_layout="row_major", out="mem_row_major"):
    _, memory, total, _ = TYPES[kind]
    element = kind.split(" into")[0]
    m, n, k = (int(x) for x in shape.split(","))
    lda, ldb = k if a_layout == "row_major" else m, n if b_layout == "row_major" else k
    ldc = n if out == "mem_row_major" else m
    return f"""
    #include <mma.h>
    using namespace nvcuda;
    extern "C" __global__ void kernel(
        const {memory}* a, const {memory}* b, const {total}* c, {total}* d, int* counts) {{
        wmma::fragment<wmma::matrix_a, {shape}, {element}, wmma::{a_layout}> fa;
        wmma::fragment<wmma::matrix_b, {shape}, {element}, wmma::{b_layout}> fb;
        wmma::fragment<wmma::accumulator, {shape}, {total}> fc;
        wmma::load_matrix_sync(fa, a, {lda});
        wmma::load_matrix_sync(fb, b, {ldb});
        wmma::load_matrix_sync(fc, c, {ldc}, wmma::{out});
        wmma::mma_sync(fc, fa, fb, fc);
        wmma::store_matrix_sync(d, fc, {ldc}, wmma::{out});
        if (threadIdx.x == 0) {{
            counts[0] = fa.num_elements; counts[1] = fb.num_elements; counts[2] = sizeof(fc.x) / sizeof(fc.x[0]);
        }}
    }}"""


def run(code, *args, block=32, grid=1, device="sim:sm_90"):
    return refsim.RawKernel(code, "kernel", ("-std=c++17",))((grid,), (block,), args, device=device)


def matrices(kind, shape, seed=0):
    m, n, k = (int(x) for x in shape.split(","))
    dtype, _, _, total = TYPES[kind]
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        a, b = (rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, s, dtype) for s in ((m, k), (k, n)))
        return a, b, rng.integers(-1000, 1000, (m, n)).astype(total)
    return tuple(
        (rng.standard_normal(s) * 2.0 ** rng.integers(-5, 6, s)).astype(t)
        for s, t in (((m, k), dtype), ((k, n), dtype), ((m, n), total))
    )


def expected(kind, a, b, c):
    if c.dtype == np.int32:
        return a.astype(np.int64) @ b.astype(np.int64) + c
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    if kind == "double":
        return None
    if kind.endswith("tf32"):
        wide_a, wide_b = ((x.view(np.uint32) >> 13 << 13).view(np.float32).astype(np.float64) for x in (a, b))
    accumulator = c.dtype.name
    terms, floor = 8 if kind.endswith("tf32") else 16, -133 if accumulator == "float32" else -21
    return np.array(
        [
            [
                chained(row, column, c[i, j], a.dtype.name, accumulator, 25, terms, floor)
                for j, column in enumerate(wide_b.T)
            ]
            for i, row in enumerate(wide_a)
        ],
        c.dtype,
    )


@pytest.mark.parametrize(("kind", "shape"), COUNTS)
def test_fragments(kind, shape):
    a, b, c = matrices(kind, shape)
    d, counts = np.zeros_like(c), np.zeros(3, np.int32)
    byte = a.dtype.itemsize == 1  # 8 of them are too short for a row
    code = source(kind, shape, b_layout="col_major" if byte else "row_major")
    report = run(code, a, b.T.copy() if byte else b, c, d, counts)
    assert not report.findings, str(report)
    assert tuple(counts) == COUNTS[kind, shape]
    wanted = expected(kind, a, b, c)
    if wanted is None:
        np.testing.assert_allclose(d, a @ b + c, rtol=0, atol=8e-16 * 5 * (abs(a) @ abs(b) + abs(c)).max())
    else:
        np.testing.assert_array_equal(d, wanted)


@pytest.mark.parametrize("a_layout", ["row_major", "col_major"])
@pytest.mark.parametrize("b_layout", ["row_major", "col_major"])
@pytest.mark.parametrize("out", ["mem_row_major", "mem_col_major"])
def test_layouts_in_memory(a_layout, b_layout, out):
    kind, shape = "half", "32, 8, 16"
    a, b, c = (np.round(x).astype(x.dtype) for x in matrices(kind, shape))
    stored = [
        x if layout.endswith("row_major") else np.ascontiguousarray(x.T)
        for x, layout in ((a, a_layout), (b, b_layout), (c, out))
    ]
    d = np.zeros_like(stored[2])
    report = run(source(kind, shape, a_layout, b_layout, out), *stored, d, np.zeros(3, np.int32))
    assert not report.findings, str(report)
    wanted = a.astype(np.int64) @ b.astype(np.int64) + c
    np.testing.assert_array_equal(d if out == "mem_row_major" else d.T, wanted)


GEMM = """
#include <mma.h>
using namespace nvcuda;
// one warp per 16 x 16 tile of c = relu(alpha * a b): the tiles of a and b pass through shared memory
extern "C" __global__ void kernel(const half* a, const half* b, float* c, int n, float alpha) {
    __shared__ __align__(32) half as[16 * 24];
    __shared__ __align__(32) half bs[16 * 24];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    const int row = blockIdx.x / (n / 16) * 16, column = blockIdx.x % (n / 16) * 16;
    for (int k = 0; k < n; k += 16) {
        for (int i = threadIdx.x; i < 256; i += 32) {
            as[i / 16 * 24 + i % 16] = a[(row + i / 16) * n + k + i % 16];
            bs[i / 16 * 24 + i % 16] = b[(k + i / 16) * n + column + i % 16];
        }
        __syncwarp();  // filled
        wmma::load_matrix_sync(fa, as, 24);
        wmma::load_matrix_sync(fb, bs, 24);
        wmma::mma_sync(sum, fa, fb, sum);
        __syncwarp();  // read
    }
    for (int i = 0; i < sum.num_elements; i++) sum.x[i] = fmaxf(alpha * sum.x[i], 0.0f);
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}"""


def gemm(code, n=48):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-8, 9, (n, n)).astype(np.float16) for _ in range(2))
    c = np.zeros((n, n), np.float32)
    report = run(code, a, b, c, np.int32(n), np.float32(0.5), grid=(n // 16) ** 2)
    return report, c, np.maximum(0, 0.5 * (a.astype(np.float64) @ b.astype(np.float64)))


def test_a_gemm():
    report, c, wanted = gemm(GEMM)
    assert not report.findings, str(report)
    np.testing.assert_array_equal(c, wanted)


DEFECTS = {
    "no barrier after the tile is filled": ("        __syncwarp();  // filled\n", "", "race", "load_matrix_sync(fa"),
    "no barrier before it is filled again": ("        __syncwarp();  // read\n", "", "race", "as[i / 16 * 24"),
    "rows that are not aligned": ("load_matrix_sync(fa, as, 24)", "load_matrix_sync(fa, as, 20)", "misaligned",
                                  "load_matrix_sync(fa"),
    "a tile that is not aligned": ("load_matrix_sync(fb, bs, 24)", "load_matrix_sync(fb, bs + 8, 24)", "misaligned",
                                   "load_matrix_sync(fb"),
    "a tile too large": ("load_matrix_sync(fa, as, 24)", "load_matrix_sync(fa, as, 32)", "out_of_bounds",
                         "load_matrix_sync(fa"),
    "a column that nobody filled": ("i < 256; i", "i < 240; i", "uninitialized_read", "load_matrix_sync(fa"),
    "half of a warp": ("wmma::mma_sync(sum", "if (threadIdx.x < 16) wmma::mma_sync(sum", "warp_divergence",
                       "mma_sync(sum"),
    "a sum without a value": ("    wmma::fill_fragment(sum, 0.0f);\n", "", "uninitialized_read", "mma_sync(sum"),
}  # fmt: skip


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_found_where_it_is(name):
    old, new, kind, where = DEFECTS[name]
    assert old in GEMM
    code = GEMM.replace(old, new)
    report, _, _ = gemm(code, n=32)
    numbers = [n for f in report.errors if f.kind == kind for n in (f.line, f.other.line if f.other else f.line)]
    lines = [code.splitlines()[number - 1] for number in numbers]
    assert any(where in line for line in lines), str(report)


def test_saturating_integers_and_rounding_to_tf32():
    code = source("signed char", "16, 16, 16").replace("mma_sync(fc, fa, fb, fc)", "mma_sync(fc, fa, fb, fc, true)")
    a, b = np.full((16, 16), 100, np.int8), np.full((16, 16), 100, np.int8)
    c, d = np.full((16, 16), 2**31 - 100, np.int32), np.zeros((16, 16), np.int32)
    assert not run(code, a, b, c, d, np.zeros(3, np.int32)).findings
    assert (d == 2**31 - 1).all()
    code = """
    #include <mma.h>
    extern "C" __global__ void kernel(const float* a, float* b) {
        b[threadIdx.x] = nvcuda::wmma::__float_to_tf32(a[threadIdx.x]);
    }
    """
    x = (np.random.default_rng(2).standard_normal(32) * 1e3).astype(np.float32)
    x[:4] = 1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-11, np.inf
    y = np.zeros_like(x)
    assert not run(code, x, y).findings
    unit = 2.0 ** (np.frexp(x[4:])[1] - 11)
    np.testing.assert_array_equal(y[4:], np.copysign(np.floor(np.abs(x[4:]) / unit + 0.5) * unit, x[4:]))
    assert y[:4].tolist() == [1 + 2.0**-10, 1 + 2.0**-9, -1 - 2.0**-10, np.inf]


@pytest.mark.parametrize(
    ("device", "message"),
    [("sim:warp16", "warp16 has no matrix unit"), ("sim:gfx942", "gfx942 has no matrix unit"),
     ("sim:sm_75", "bfloat16 needs compute capability 80")],
)  # fmt: skip
def test_refused_without_a_matrix_unit(device, message):
    a, b, c = matrices("__nv_bfloat16", "16, 16, 16")
    with pytest.raises(refsim.UnsupportedError, match=rf"nvcuda::wmma.*{message}"):
        run(source("__nv_bfloat16", "16, 16, 16"), a, b, c, c.copy(), np.zeros(3, np.int32), block=64, device=device)
