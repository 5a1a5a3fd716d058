"""``mma.sync``: layouts as the PTX ISA tabulates them, values in exact arithmetic."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from exact_dot import chained, exponent, float32_toward_zero, toward_zero

import refsim

# Row and column of element i of the lane with groupID g and threadID_in_group t, as in the PTX ISA's section
# "Matrix multiply-accumulate operation using mma instruction"
A = {
    "m16n8k8 16-bit": lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
    "m16n8k16 16-bit": lambda g, t, i: (g if i < 2 or 4 <= i < 6 else g + 8, t * 2 + (i & 1) + (8 if i >= 4 else 0)),
    "m16n8k4 tf32": lambda g, t, i: (g if i == 0 else g + 8, t),
    "m16n8k8 tf32": lambda g, t, i: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4),
    "m16n8k16 8-bit": lambda g, t, i: (g if i < 4 else g + 8, t * 4 + (i & 3)),
    "m16n8k32 8-bit": lambda g, t, i: (g if i < 4 or 8 <= i < 12 else g + 8, t * 4 + (i & 3) + (16 if i >= 8 else 0)),
    "m8n8k16 8-bit": lambda g, t, i: (g, t * 4 + i),
    "m8n8k4 f64": lambda g, t, i: (g, t),
}
B = {
    "m16n8k8 16-bit": lambda g, t, i: (t * 2 + i, g),
    "m16n8k16 16-bit": lambda g, t, i: (t * 2 + (i & 1) + (8 if i >= 2 else 0), g),
    "m16n8k4 tf32": lambda g, t, i: (t, g),
    "m16n8k8 tf32": lambda g, t, i: (t if i == 0 else t + 4, g),
    "m16n8k16 8-bit": lambda g, t, i: (t * 4 + i, g),
    "m16n8k32 8-bit": lambda g, t, i: (t * 4 + (i & 3) + (16 if i >= 4 else 0), g),
    "m8n8k16 8-bit": lambda g, t, i: (t * 4 + i, g),
    "m8n8k4 f64": lambda g, t, i: (t, g),
}


def c_layout(m):
    return lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)) if m == 16 else (g, t * 2 + i)


def scattered(matrix, where, count):
    """Elements of each lane, lane after lane."""
    lanes = [[matrix[where(lane >> 2, lane % 4, i)] for i in range(count)] for lane in range(32)]
    return np.array(lanes, matrix.dtype)


def gathered(lanes, where, shape):
    matrix = np.zeros(shape, lanes.dtype)
    for lane in range(32):
        for i in range(lanes.shape[1]):
            matrix[where(lane >> 2, lane % 4, i)] = lanes[lane, i]
    return matrix


def mma(name, layout, a, b, c, device="sim:sm_90"):
    """Run one instruction on matrices: its registers are written out by hand."""
    m = a.shape[0]
    register = 8 if a.dtype == np.float64 else 4
    in_a, in_b = (scattered(x, table[layout], x.size // 32).view(f"u{register}") for x, table in ((a, A), (b, B)))
    wide_c = scattered(c, c_layout(m), c.size // 32)
    in_c = wide_c.view(np.uint32) if c.dtype == np.float16 else wide_c
    out = np.zeros_like(in_c)
    letter = {8: "d"}.get(register, "f" if c.dtype == np.float32 else "r")
    c_type = {"d": "double", "f": "float", "r": "unsigned"}[letter]
    word, in_letter = ("double", "d") if register == 8 else ("unsigned", "r")
    counts = (in_c.shape[1], in_a.shape[1], in_b.shape[1])
    names, position = [], 0
    for count in (counts[0], counts[1], counts[2], counts[0]):
        names.append("{" + ", ".join(f"%{position + i}" for i in range(count)) + "}")
        position += count
    outputs = ", ".join(f'"={letter}"(d[{i}])' for i in range(counts[0]))
    inputs = ", ".join(
        f'"{kind}"({array}[threadIdx.x * {count} + {i}])'
        for array, count, kind in (("a", counts[1], in_letter), ("b", counts[2], in_letter), ("c", counts[0], letter))
        for i in range(count)
    )
    code = f"""
    extern "C" __global__ void kernel(const {word}* a, const {word}* b, const {c_type}* c, {c_type}* out) {{
        {c_type} d[{counts[0]}];
        asm volatile("{name} {names[0]}, {names[1]}, {names[2]}, {names[3]};\\n" : {outputs} : {inputs});
        for (int i = 0; i < {counts[0]}; ++i) out[threadIdx.x * {counts[0]} + i] = d[i];
    }}"""
    views = [x.view(np.float64) if register == 8 else x.view(np.uint32) for x in (in_a, in_b)]
    report = refsim.RawKernel(code, "kernel")((1,), (32,), (*views, in_c, out), device=device)
    assert not report.findings, str(report)
    return gathered(out.view(c.dtype), c_layout(m), c.shape)


def numbers(rng, shape, dtype, spread=6):
    """Numbers of many magnitudes, some subnormal, some zero."""
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, spread, shape)
    x[rng.random(shape) < 0.1] = 0
    if dtype == np.float16:
        x[rng.random(shape) < 0.05] *= 2.0**-18
    return x.astype(dtype)


def expected(a, b, c, kind, accumulator, fraction_bits, terms, floor):
    m, n = c.shape
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    return np.array(
        [
            [
                chained(wide_a[i], wide_b[:, j], c[i, j], kind, accumulator, fraction_bits, terms, floor)
                for j in range(n)
            ]
            for i in range(m)
        ],
        c.dtype,
    )


HALVES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
UNITS = {
    "sim:sm_75": (24, 8, -132, -20), "sim:sm_80": (24, 8, -132, -20), "sim:sm_90": (25, 16, -133, -21),
    "sim:sm_120": (25, 16, -133, -21),
}  # fmt: skip


HAVE = [("f16", 8, "sim:sm_75")] + [
    (kind, depth, device) for kind in HALVES for depth in (8, 16) for device in UNITS if device != "sim:sm_75"
]


@pytest.mark.parametrize(("kind", "depth", "device"), HAVE)
def test_halves_into_float32(kind, depth, device):
    rng = np.random.default_rng(depth)
    a, b = numbers(rng, (16, depth), HALVES[kind]), numbers(rng, (depth, 8), HALVES[kind])
    c = numbers(rng, (16, 8), np.float32)
    name = f"mma.sync.aligned.m16n8k{depth}.row.col.f32.{kind}.{kind}.f32"
    d = mma(name, f"m16n8k{depth} 16-bit", a, b, c, device)
    bits, terms, floor, _ = UNITS[device]
    np.testing.assert_array_equal(d, expected(a, b, c, a.dtype.name, "float32", bits, terms, floor))


@pytest.mark.parametrize("depth", [8, 16])
def test_halves_into_float16(depth):
    rng = np.random.default_rng(depth)
    a, b = numbers(rng, (16, depth), np.float16, 4), numbers(rng, (depth, 8), np.float16, 4)
    c = numbers(rng, (16, 8), np.float16)
    name = f"mma.sync.aligned.m16n8k{depth}.row.col.f16.f16.f16.f16"
    d = mma(name, f"m16n8k{depth} 16-bit", a, b, c)
    np.testing.assert_array_equal(d, expected(a, b, c, "float16", "float16", 25, 16, -21))


@pytest.mark.parametrize("depth", [4, 8])
def test_tf32_looks_at_ten_bits(depth):
    rng = np.random.default_rng(depth)
    a, b = numbers(rng, (16, depth), np.float32), numbers(rng, (depth, 8), np.float32)
    c = numbers(rng, (16, 8), np.float32)
    name = f"mma.sync.aligned.m16n8k{depth}.row.col.f32.tf32.tf32.f32"
    d = mma(name, f"m16n8k{depth} tf32", a, b, c)
    cut_a, cut_b = ((x.view(np.uint32) >> 13 << 13).view(np.float32) for x in (a, b))
    np.testing.assert_array_equal(d, expected(cut_a, cut_b, c, "float32", "float32", 25, 8, -133))
    whole = expected(a, b, c, "float32", "float32", 25, 8, -133)
    assert (d != whole).any()


@pytest.mark.parametrize("signs", ["s8.s8", "u8.u8", "s8.u8"])
@pytest.mark.parametrize("shape", ["m16n8k16", "m16n8k32", "m8n8k16"])
@pytest.mark.parametrize("saturate", ["", ".satfinite"])
def test_bytes(shape, signs, saturate):
    rng = np.random.default_rng(3)
    m, k = int(shape[1:].split("n")[0]), int(shape.split("k")[1])
    types = [np.int8 if s == "s8" else np.uint8 for s in signs.split(".")]
    a, b = (
        rng.integers(np.iinfo(t).min, np.iinfo(t).max, size, t, endpoint=True)
        for t, size in zip(types, ((m, k), (k, 8)), strict=True)
    )
    c = rng.integers(-(2**31), 2**31, (m, 8)).astype(np.int32)
    c[:2] = [[2**31 - 1], [-(2**31)]]
    d = mma(f"mma.sync.aligned.{shape}.row.col{saturate}.s32.{signs}.s32", f"{shape} 8-bit", a, b, c)
    for i in range(m):
        for j in range(8):
            total = int(c[i, j]) + sum(int(a[i, x]) * int(b[x, j]) for x in range(k))
            if saturate:
                total = min(max(total, -(2**31)), 2**31 - 1)
            assert d[i, j] == (total + 2**31) % 2**32 - 2**31


def test_doubles_are_fused_in_order():
    rng = np.random.default_rng(4)
    a, b, c = (rng.standard_normal(shape) for shape in ((8, 4), (4, 8), (8, 8)))
    d = mma("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "m8n8k4 f64", a, b, c)
    for i in range(8):
        for j in range(8):
            total = c[i, j]
            for k in range(4):
                total = float(Fraction(a[i, k]) * Fraction(b[k, j]) + Fraction(total))
            assert d[i, j] == total


@pytest.mark.parametrize("kinds", ["e4m3.e4m3", "e5m2.e5m2", "e4m3.e5m2"])
@pytest.mark.parametrize("accumulator", [np.float32, np.float16])
def test_eight_bit_floats_go_through_halves_on_sm_90(kinds, accumulator):
    rng = np.random.default_rng(5)
    types = [{"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}[kind] for kind in kinds.split(".")]
    a, b = (numbers(rng, s, t, 3) for t, s in zip(types, ((16, 32), (32, 8)), strict=True))
    c = numbers(rng, (16, 8), accumulator)
    letter = "f32" if accumulator == np.float32 else "f16"
    d = mma(f"mma.sync.aligned.m16n8k32.row.col.{letter}.{kinds}.{letter}", "m16n8k32 8-bit", a, b, c)
    first = [k for k in range(32) if k // 2 % 2 == 0]
    second = [k for k in range(32) if k // 2 % 2 == 1]
    name, floor = ("float32", -133) if accumulator == np.float32 else ("float16", -21)
    total = np.zeros((16, 8), accumulator)
    for part in (first, second):
        total = expected(a[:, part], b[part], total, "float16", name, 25, 16, floor)
    np.testing.assert_array_equal(d, total + c)


def test_eight_bit_floats_on_sm_89_keep_thirteen_bits():
    rng = np.random.default_rng(6)
    a, b = (numbers(rng, s, ml_dtypes.float8_e4m3fn, 2) for s in ((16, 32), (32, 8)))
    c = numbers(rng, (16, 8), np.float32)
    d = mma("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "m16n8k32 8-bit", a, b, c, "sim:sm_89")
    for i in range(16):
        for j in range(8):
            total = c[i, j]
            for start in (0, 16):
                pairs = [(float(a[i, k]), float(b[k, j])) for k in range(start, start + 16)]
                terms = [(Fraction(x) * Fraction(y), exponent(x, -6) + exponent(y, -6)) for x, y in pairs if x * y]
                terms.append((Fraction(float(total)), exponent(total, -126)))
                unit = Fraction(2) ** (max(e for value, e in terms if value) - 13)
                cut = sum(toward_zero(value / unit) for value, _ in terms) * unit
                total = float32_toward_zero(cut, 13)
            assert d[i, j] == total


def test_infinities_and_nans():
    a, b = np.ones((16, 16), np.float16), np.ones((16, 8), np.float16)
    c = np.zeros((16, 8), np.float32)
    a[0, 3], a[1, 3], a[2, 3], a[3, 0], a[3, 1] = np.inf, -np.inf, np.nan, np.inf, -np.inf
    b[5, 1] = np.inf
    a[4, 5], a[5, 5] = 0, -1
    c[6, 0] = np.inf
    c[7, 0], a[7, :], b[:, 0] = np.float32(3.4e38), 60000, np.where(np.isfinite(b[:, 0]), 60000, 0)
    d = mma("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "m16n8k16 16-bit", a, b, c)
    assert d[0, 2] == np.inf
    assert d[1, 2] == -np.inf
    for i, j in ((2, 2), (3, 2), (1, 1), (4, 1)):
        assert d.view(np.uint32)[i, j] == 0x7FFFFFFF
    assert d[5, 1] == -np.inf
    assert d[6, 0] == np.inf
    assert d[7, 0] == np.float32(3.4e38)  # the products vanish beside it
    assert d[8, 2] == 16


def test_refused_where_there_is_no_such_unit():
    halves = np.zeros((16, 16), np.float16), np.zeros((16, 8), np.float16), np.zeros((16, 8), np.float32)
    name = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    with pytest.raises(refsim.UnsupportedError, match=r"mma\.sync.*compute capability 80"):
        mma(name, "m16n8k16 16-bit", *halves, device="sim:sm_75")
    with pytest.raises(refsim.UnsupportedError, match=r"mma\.sync.*warp16 has no matrix unit"):
        mma(name, "m16n8k16 16-bit", *halves, device="sim:warp16")
