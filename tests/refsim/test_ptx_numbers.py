"""PTX instructions on numbers, against their definitions in Python's integers and NumPy's floats."""

import math

import ml_dtypes
import numpy as np
import pytest

import refsim

COUNT = 256
M32, M64 = 2**32 - 1, 2**64 - 1


def signed(x, bits=32):
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def words(bits, seed):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(f"u{bits // 8}")
    x = rng.integers(0, 2**bits, COUNT, dtype)
    x[COUNT // 2 :] >>= rng.integers(0, bits, COUNT // 2).astype(dtype)
    x[:4] = 0, 2**bits - 1, 2 ** (bits - 1), 2 ** (bits - 1) - 1
    return x


def floats(seed):
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(COUNT) * 2.0 ** rng.integers(-20, 20, COUNT)).astype(np.float32)
    x[:8] = 0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1
    return x


def run(cases, result, arguments, device="sim:sm_90"):
    """Run many ``asm`` statements in one kernel; %a, %b, … in them are its arguments, %o the result."""
    names = {"float32": ("float", "f"), "uint32": ("unsigned", "r"), "uint64": ("unsigned long long", "l"),
             "uint16": ("unsigned short", "h"), "float64": ("double", "d")}  # fmt: skip
    kind, letter = names[result]
    lines = []
    for number, text in enumerate(cases):
        used = [name for name in arguments if f"%{name}" in text]
        for position, name in enumerate(used):
            text = text.replace(f"%{name}", f"%{position + 1}")
        text = text.replace("%o", "%0")
        inputs = ", ".join(f'"{names[arguments[name].dtype.name][1]}"({name}[i])' for name in used)
        lines.append(f'asm("{text}" : "={letter}"(out[{number} * {COUNT} + i]) : {inputs});')
    parameters = ", ".join(f"const {names[x.dtype.name][0]}* {name}" for name, x in arguments.items())
    body = "\n".join(lines)
    code = f'extern "C" __global__ void kernel({parameters}, {kind}* out) {{ int i = threadIdx.x;\n{body}\n}}'
    out = np.zeros((len(cases), COUNT), result)
    report = refsim.RawKernel(code, "kernel")((1,), (COUNT,), (*arguments.values(), out), device=device)
    assert not report.findings, str(report)
    return out


def lop3(a, b, c, table):
    return sum(((table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1)) & 1) << i for i in range(32))


def prmt(a, b, s):
    pool = (b << 32 | a).to_bytes(8, "little")
    out = []
    for i in range(4):
        nibble = s >> 4 * i & 15
        byte = pool[nibble & 7]
        out.append((0xFF if byte & 0x80 else 0) if nibble & 8 else byte)
    return int.from_bytes(out, "little")


def bytes_of(x, kind):
    return [signed(x >> 8 * i, 8) if kind == "s" else x >> 8 * i & 255 for i in range(4)]


WORDS = {
    "add.u32 %o, %a, %b;": lambda a, b, c: a + b,
    "sub.s32 %o, %a, %b;": lambda a, b, c: a - b,
    "mul.lo.u32 %o, %a, %b;": lambda a, b, c: a * b,
    "mul.hi.u32 %o, %a, %b;": lambda a, b, c: a * b >> 32,
    "mul.hi.s32 %o, %a, %b;": lambda a, b, c: signed(a) * signed(b) >> 32,
    "mad.lo.s32 %o, %a, %b, %c;": lambda a, b, c: a * b + c,
    "mad.hi.u32 %o, %a, %b, %c;": lambda a, b, c: (a * b >> 32) + c,
    "min.s32 %o, %a, %b;": lambda a, b, c: min(signed(a), signed(b)),
    "max.u32 %o, %a, %b;": lambda a, b, c: max(a, b),
    "and.b32 %o, %a, %b;": lambda a, b, c: a & b,
    "xor.b32 %o, %a, 0xF0F0F0F0;": lambda a, b, c: a ^ 0xF0F0F0F0,
    "not.b32 %o, %a;": lambda a, b, c: ~a,
    "neg.s32 %o, %a;": lambda a, b, c: -a,
    "abs.s32 %o, %a;": lambda a, b, c: abs(signed(a)),
    "shl.b32 %o, %a, %b;": lambda a, b, c: a << min(b, 32),
    "shr.u32 %o, %a, %b;": lambda a, b, c: a >> min(b, 32),
    "shr.s32 %o, %a, %b;": lambda a, b, c: signed(a) >> min(b, 32),
    "shr.s32 %o, %a, 5;": lambda a, b, c: signed(a) >> 5,
    "shf.l.wrap.b32 %o, %a, %b, %c;": lambda a, b, c: ((b << 32 | a) << (c & 31)) >> 32,
    "shf.r.wrap.b32 %o, %a, %b, %c;": lambda a, b, c: (b << 32 | a) >> (c & 31),
    "shf.l.clamp.b32 %o, %a, %b, %c;": lambda a, b, c: ((b << 32 | a) << min(c, 32)) >> 32,
    "shf.r.clamp.b32 %o, %a, %b, %c;": lambda a, b, c: (b << 32 | a) >> min(c, 32),
    "lop3.b32 %o, %a, %b, %c, 0xEA;": lambda a, b, c: lop3(a, b, c, 0xEA),
    "lop3.b32 %o, %a, %b, %c, 0x1D;": lambda a, b, c: lop3(a, b, c, 0x1D),
    "prmt.b32 %o, %a, %b, %c;": lambda a, b, c: prmt(a, b, c),
    "prmt.b32 %o, %a, %b, 0x5410;": lambda a, b, c: prmt(a, b, 0x5410),
    "popc.b32 %o, %a;": lambda a, b, c: a.bit_count(),
    "clz.b32 %o, %a;": lambda a, b, c: 32 - a.bit_length(),
    "brev.b32 %o, %a;": lambda a, b, c: int(f"{a:032b}"[::-1], 2),
    "bfe.u32 %o, %a, 3, 7;": lambda a, b, c: a >> 3 & 127,
    "bfe.s32 %o, %a, 20, 12;": lambda a, b, c: signed(a) >> 20,
    "bfi.b32 %o, %a, %b, 4, 9;": lambda a, b, c: b & ~(511 << 4) | (a & 511) << 4,
    "dp4a.u32.u32 %o, %a, %b, %c;": lambda a, b, c: sum(map(math.prod, zip(bytes_of(a, "u"), bytes_of(b, "u")))) + c,
    "dp4a.s32.s32 %o, %a, %b, %c;": lambda a, b, c: sum(map(math.prod, zip(bytes_of(a, "s"), bytes_of(b, "s")))) + c,
    "{.reg .pred p; setp.lt.s32 p, %a, %b; selp.b32 %o, %a, %c, p;}":
        lambda a, b, c: a if signed(a) < signed(b) else c,
    "{.reg .pred p, q; setp.gt.u32 p|q, %a, %b; @p add.u32 %o, %a, 1; @q add.u32 %o, %a, 2; @!p xor.b32 %o, %o, 8;}":
        lambda a, b, c: a + 1 if a > b else (a + 2) ^ 8,
    "{.reg .pred p, q; setp.eq.u32 p, %a, 0; setp.lo.or.u32 q, %b, %c, p; selp.u32 %o, 1, 0, q;}":
        lambda a, b, c: b < c or a == 0,
    "{\\n\\t.reg .b32 t<3>;\\n\\tmov.b32 t0, %a;\\n\\tadd.u32 t1, t0, %b; // twice\\n\\t"
    "add.u32 t2, t1, t1;\\n\\tmov.b32 %o, t2;\\n\\t}":
        lambda a, b, c: 2 * (a + b),
    "{.reg .b16 lo, hi; mov.b32 {lo, hi}, %a; mov.b32 %o, {hi, lo};}": lambda a, b, c: a << 16 | a >> 16,
    "cvt.u32.u8 %o, %a;": lambda a, b, c: a & 255,
    "cvt.s32.s16 %o, %a;": lambda a, b, c: signed(a, 16),
    # a loop: the sum of 0 … a mod 8
    "{.reg .u32 i, s; .reg .pred p; and.b32 i, %a, 7; mov.u32 s, 0; AGAIN: add.u32 s, s, i; sub.u32 i, i, 1; "
    "setp.ne.u32 p, i, 0xFFFFFFFF; @p bra AGAIN; mov.u32 %o, s;}": lambda a, b, c: sum(range((a & 7) + 1)),
    # a branch forward
    "{.reg .pred p; setp.lt.u32 p, %a, %b; mov.u32 %o, 7; @p bra END; mov.u32 %o, %c; END: add.u32 %o, %o, 1;}":
        lambda a, b, c: (7 if a < b else c) + 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def integers():
    a, b, c = (words(32, seed) for seed in (1, 2, 3))
    b[8:40] = np.arange(16, 48)  # shift amounts
    c[8:40] = np.arange(16, 48)
    return a, b, c, run(list(WORDS), "uint32", {"a": a, "b": b, "c": c})


@pytest.mark.parametrize("text", WORDS)
def test_words(text, integers):
    a, b, c, out = integers
    function = WORDS[text]
    row = out[list(WORDS).index(text)]
    wanted = [int(function(*map(int, each))) & M32 for each in zip(a, b, c, strict=True)]
    np.testing.assert_array_equal(row, np.array(wanted, np.uint32))


LONG = {
    "mul.wide.u32 %o, %a, %b;": lambda a, b, x, y: a * b,
    "mul.wide.s32 %o, %a, %b;": lambda a, b, x, y: signed(a) * signed(b),
    "mad.wide.u32 %o, %a, %b, %x;": lambda a, b, x, y: a * b + x,
    "mul.hi.u64 %o, %x, %y;": lambda a, b, x, y: x * y >> 64,
    "mul.hi.s64 %o, %x, %y;": lambda a, b, x, y: signed(x, 64) * signed(y, 64) >> 64,
    "mul.lo.u64 %o, %x, %y;": lambda a, b, x, y: x * y,
    "add.s64 %o, %x, %y;": lambda a, b, x, y: x + y,
    "shl.b64 %o, %x, %a;": lambda a, b, x, y: x << min(a, 64),
    "shr.u64 %o, %x, 33;": lambda a, b, x, y: x >> 33,
    "mov.b64 %o, {%a, %b};": lambda a, b, x, y: b << 32 | a,
    "cvt.u64.u32 %o, %a;": lambda a, b, x, y: a,
    "cvt.s64.s32 %o, %a;": lambda a, b, x, y: signed(a),
    "brev.b64 %o, %x;": lambda a, b, x, y: int(f"{x:064b}"[::-1], 2),
    "bfe.u64 %o, %x, 30, 20;": lambda a, b, x, y: x >> 30 & (1 << 20) - 1,
    "min.s64 %o, %x, %y;": lambda a, b, x, y: min(signed(x, 64), signed(y, 64)),
}


def test_long_words():
    a, b, x, y = words(32, 4), words(32, 5), words(64, 6), words(64, 7)
    out = run(list(LONG), "uint64", {"a": a, "b": b, "x": x, "y": y})
    for text, row in zip(LONG, out, strict=True):
        wanted = [LONG[text](*map(int, each)) & M64 for each in zip(a, b, x, y, strict=True)]
        np.testing.assert_array_equal(row, np.array(wanted, np.uint64), err_msg=text)


def flushed(x):
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x)


def fma(a, b, c):
    return (a.astype(np.longdouble) * b + c).astype(np.float32)


FLOATS = {
    "add.f32 %o, %a, %b;": lambda a, b, c: a + b,
    "sub.rn.f32 %o, %a, %b;": lambda a, b, c: a - b,
    "mul.ftz.f32 %o, %a, %b;": lambda a, b, c: flushed(flushed(a) * flushed(b)),
    "add.ftz.f32 %o, %a, %b;": lambda a, b, c: flushed(flushed(a) + flushed(b)),
    "mul.sat.f32 %o, %a, %b;": lambda a, b, c: np.fmin(np.fmax(a * b, np.float32(0)), np.float32(1)),
    "div.rn.f32 %o, %a, %b;": lambda a, b, c: a / b,
    "min.f32 %o, %a, %b;": lambda a, b, c: np.fmin(a, b),
    "max.f32 %o, %a, 0f3F800000;": lambda a, b, c: np.fmax(a, np.float32(1)),
    "max.NaN.f32 %o, %a, %b;": lambda a, b, c: np.maximum(a, b),
    "neg.f32 %o, %a;": lambda a, b, c: -a,
    "abs.f32 %o, %a;": lambda a, b, c: np.abs(a),
    "rcp.rn.f32 %o, %a;": lambda a, b, c: np.float32(1) / a,
    "sqrt.rn.f32 %o, %a;": lambda a, b, c: np.sqrt(a),
    "cvt.rni.f32.f32 %o, %a;": lambda a, b, c: np.rint(a),
    "cvt.rzi.f32.f32 %o, %a;": lambda a, b, c: np.trunc(a),
    "mov.f32 %o, %c;": lambda a, b, c: c,
    "{.reg .pred p; setp.ltu.f32 p, %a, %b; selp.f32 %o, %a, %b, p;}":
        lambda a, b, c: np.where((a < b) | np.isnan(a) | np.isnan(b), a, b),
    "{.reg .pred p; setp.ne.f32 p, %a, %a; selp.f32 %o, 0f40000000, %b, p;}": lambda a, b, c: b,
}  # fmt: skip
APPROXIMATE = {
    "ex2.approx.ftz.f32 %o, %a;": lambda a: 2.0 ** flushed(a).astype(np.float64),
    "lg2.approx.f32 %o, %a;": lambda a: np.log2(a.astype(np.float64)),
    "rsqrt.approx.f32 %o, %a;": lambda a: 1 / np.sqrt(a.astype(np.float64)),
    "rcp.approx.ftz.f32 %o, %a;": lambda a: 1 / flushed(a).astype(np.float64),
    "sqrt.approx.f32 %o, %a;": lambda a: np.sqrt(a.astype(np.float64)),
    "tanh.approx.f32 %o, %a;": lambda a: np.tanh(a.astype(np.float64)),
    "sin.approx.f32 %o, %a;": lambda a: np.sin(a.astype(np.float64)),
    "cos.approx.f32 %o, %a;": lambda a: np.cos(a.astype(np.float64)),
    "fma.rn.f32 %o, %a, %a, %a;": lambda a: a.astype(np.float64) * a + a,
}


def test_floats():
    a, b, c = (floats(seed) for seed in (1, 2, 3))
    b[:8] = 1, 2, 3, np.nan, 5, 1, 1e-30, 1e-30
    out = run(list(FLOATS), "float32", {"a": a, "b": b, "c": c})
    with np.errstate(all="ignore"):
        for text, row in zip(FLOATS, out, strict=True):
            wanted = FLOATS[text](a, b, c).astype(np.float32)
            np.testing.assert_array_equal(row, wanted, err_msg=text)
            same = np.isnan(row) | (np.signbit(row) == np.signbit(wanted))
            assert same.all(), text


def test_approximate_functions_are_as_near_as_they_promise():
    a = floats(4)
    out = run(list(APPROXIMATE), "float32", {"a": a})
    with np.errstate(all="ignore"):
        for text, row in zip(APPROXIMATE, out, strict=True):
            exact = APPROXIMATE[text](a)
            np.testing.assert_allclose(row, exact.astype(np.float32), rtol=2.0**-21, err_msg=text)


def halves(x):
    return x.view(np.uint16)


def test_packed_halves():
    rng = np.random.default_rng(8)
    names = {"f16x2": np.float16, "bf16x2": ml_dtypes.bfloat16}
    for name, dtype in names.items():
        a, b, c = ((rng.standard_normal(2 * COUNT) * 4).astype(dtype) for _ in range(3))
        cases = {
            f"add.{name} %o, %a, %b;": a + b,
            f"mul.{name} %o, %a, %b;": a * b,
            f"fma.rn.{name} %o, %a, %b, %c;":
                (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(dtype),
            f"fma.rn.relu.{name} %o, %a, %b, %c;":
                np.maximum(0, a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(dtype),
            f"max.{name} %o, %a, %b;": np.maximum(a, b),
            f"neg.{name} %o, %a;": -a,
        }  # fmt: skip
        words_of = {key: halves(x).view(np.uint32) for key, x in zip("abc", (a, b, c), strict=True)}
        out = run(list(cases), "uint32", words_of)
        for (text, wanted), row in zip(cases.items(), out, strict=True):
            np.testing.assert_array_equal(row.view(np.uint16), halves(wanted.astype(dtype)), err_msg=text)


def test_conversions_of_pairs():
    a, b = floats(9)[8:], floats(10)[8:]
    a, b = (np.concatenate([x, x[:8]]) for x in (a, b))
    out = run(
        ["cvt.rn.f16x2.f32 %o, %a, %b;", "cvt.rn.bf16x2.f32 %o, %a, %b;", "cvt.rn.relu.f16x2.f32 %o, %a, %b;",
         "cvt.rna.tf32.f32 %o, %a;", "cvt.rn.tf32.f32 %o, %a;"],
        "uint32", {"a": a, "b": b},
    )  # fmt: skip
    with np.errstate(over="ignore"):
        for row, dtype in zip(out[:2], (np.float16, ml_dtypes.bfloat16), strict=True):
            np.testing.assert_array_equal(row & 0xFFFF, halves(b.astype(dtype)))
            np.testing.assert_array_equal(row >> 16, halves(a.astype(dtype)))
        np.testing.assert_array_equal(out[2] & 0xFFFF, halves(np.maximum(b, 0).astype(np.float16)))
    unit = 2.0 ** (np.frexp(a.astype(np.float64))[1] - 11)
    away = np.copysign(np.floor(np.abs(a) / unit + 0.5) * unit, a)
    np.testing.assert_array_equal(out[3].view(np.float32), away.astype(np.float32))
    np.testing.assert_array_equal(out[4].view(np.float32), (np.rint(a / unit) * unit).astype(np.float32))


def test_eight_bit_floats():
    a, b = floats(11)[8:], floats(12)[8:]
    a, b = (np.concatenate([x, x[:8]]) for x in (a, b))
    kinds = {"e4m3": (ml_dtypes.float8_e4m3fn, 448), "e5m2": (ml_dtypes.float8_e5m2, 57344)}
    out = run([f"cvt.rn.satfinite.{kind}x2.f32 %o, %a, %b;" for kind in kinds], "uint16", {"a": a, "b": b})
    for row, (dtype, limit) in zip(out, kinds.values(), strict=True):
        for shift, x in ((8, a), (0, b)):
            np.testing.assert_array_equal(row >> shift & 255, np.clip(x, -limit, limit).astype(dtype).view(np.uint8))
    codes = np.arange(COUNT, dtype=np.uint16) * 257
    codes[(codes & 0x7F) >= 0x7C] = 0
    back = run([f"cvt.rn.f16x2.{kind}x2 %o, %h;" for kind in kinds], "uint32", {"h": codes})
    for row, (dtype, _) in zip(back, kinds.values(), strict=True):
        wanted = (codes & 255).astype(np.uint8).view(dtype).astype(np.float16)
        np.testing.assert_array_equal(row & 0xFFFF, halves(wanted))
        np.testing.assert_array_equal(row >> 16, halves(wanted))


def test_floats_to_integers_and_back():
    a = (floats(13) * 8).astype(np.float32)
    a[np.isnan(a)] = 0
    a = np.clip(a, -1e6, 1e6)
    modes = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
    cases = {f"cvt.{mode}.s32.f32 %o, %a;": function for mode, function in modes.items()}
    out = run(list(cases), "uint32", {"a": a})
    for row, function in zip(out, cases.values(), strict=True):
        np.testing.assert_array_equal(row.view(np.int32), function(a).astype(np.int32))
    x = words(32, 14)
    out = run(["cvt.rn.f32.s32 %o, %x;", "cvt.rn.f32.u32 %o, %x;"], "float32", {"x": x})
    np.testing.assert_array_equal(out[0], x.view(np.int32).astype(np.float32))
    np.testing.assert_array_equal(out[1], x.astype(np.float32))
