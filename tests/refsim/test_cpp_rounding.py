"""Arithmetic and conversions of CUDA C++ whose names say how they round, against exact fractions."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from cpp_launch import launched
from cpp_rounded import rounded

COUNT = 256
MODES = ("rn", "rd", "ru", "rz")
HALVES = {"half": ("cuda_fp16.h", np.float16), "bfloat16": ("cuda_bf16.h", ml_dtypes.bfloat16)}


def floats(dtype, seed):
    """Numbers of all sizes, subnormal ones, the largest, zeros of both signs, infinities and NaN."""
    rng, info = np.random.default_rng(seed), np.finfo(dtype)
    bits = rng.integers(0, 1 << 8 * np.dtype(dtype).itemsize, COUNT, np.uint64)
    x = bits.astype(f"u{np.dtype(dtype).itemsize}").view(dtype)
    near = (rng.normal(size=COUNT) * 4).astype(dtype)
    x = np.where(rng.random(COUNT) < 0.4, near, x)
    edges = [0.0, -0.0, 1.0, -1.0, info.max, -info.max, info.tiny, info.smallest_subnormal, -info.smallest_subnormal]
    edges += [np.inf, -np.inf, np.nan, 3.0, 1.5]
    places = rng.integers(0, COUNT, 96)
    x[places] = rng.choice(np.array(edges, dtype), 96)
    return x


def exact_result(op, x):
    """The exact result, and whether an exact zero is negative when rounding down and otherwise."""
    try:
        with np.errstate(all="ignore"):
            native = {
                "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": np.divide,
                "rcp": lambda a: 1 / a, "sqrt": np.sqrt,
                "fma": lambda a, b, c: c if np.isfinite(a * 0.0 + b * 0.0) else a * b + c,
            }[op](*x)  # fmt: skip
        q = [Fraction(float(each)) for each in x]
    except (ValueError, OverflowError):  # an infinity or a NaN: a finite result of these is a zero
        return float(native), (bool(np.signbit(native)),) * 2
    if op in ("div", "rcp") and q[-1] == 0:
        return float(native), (False, False)
    if op == "sqrt":
        return (float(native), (False,) * 2) if q[0] < 0 else (q[0], (bool(np.signbit(x[0])),) * 2)
    signs = [bool(np.signbit(each)) for each in x]
    if op == "fma":
        exact, terms = q[0] * q[1] + q[2], [signs[0] != signs[1], signs[2]]
    elif op in ("add", "sub"):
        exact = q[0] + q[1] if op == "add" else q[0] - q[1]
        terms = [signs[0], signs[1] != (op == "sub")]
    else:
        exact = {"mul": lambda: q[0] * q[1], "div": lambda: q[0] / q[1], "rcp": lambda: 1 / q[0]}[op]()
        terms = [signs[0] != signs[-1] if op != "rcp" else signs[0]]
    return exact, (any(terms), all(terms))


def square_root(q, kind, mode):
    """Rounded root of a fraction, by an integer root of many bits with what is left folded into the last one."""
    scale = 1 << 2400
    root = math.isqrt(q.numerator * q.denominator * scale * scale)
    inexact = root * root != q.numerator * q.denominator * scale * scale
    return rounded(Fraction(2 * root + inexact, 2 * scale * q.denominator), kind, mode)


def same(got, expected):
    return (math.isnan(got) and math.isnan(expected)) or (got == expected and np.signbit(got) == np.signbit(expected))


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "rcp", "sqrt", "fma"])
def test_arithmetic_is_rounded_as_its_name_says(op, kind):
    names = {"fma": "fmaf" if kind == "float32" else "fma"}
    stem = ("__f" if kind == "float32" else "__d") + op if op != "fma" else f"__{names['fma']}"
    operands = {"rcp": 1, "sqrt": 1, "fma": 3}.get(op, 2)
    x = [floats(kind, seed) for seed in (1, 2, 3)[:operands]]
    if op == "add":
        x[1][:64] = -x[0][:64]  # exact zeros
    results = [np.zeros(COUNT, kind) for _ in MODES]
    call = ", ".join(f"{name}[i]" for name in "abc"[:operands])
    outputs = "abcdefgh"[operands : operands + 4]
    body = " ".join(f"{out}[i] = {stem}_{mode}({call});" for out, mode in zip(outputs, MODES))
    launched(body, *x, *results, grid=4)
    for lane in range(COUNT):
        values = [each[lane] for each in x]
        exact, (down, otherwise) = exact_result(op, values)
        for mode, result in zip(MODES, results):
            if op == "sqrt" and isinstance(exact, Fraction) and exact:
                expected = square_root(exact, kind, mode)
            else:
                expected = rounded(exact, kind, mode, down if mode == "rd" else otherwise)
            assert same(float(result[lane]), expected), (op, mode, values, result[lane], expected)


def test_numbers_become_float32_and_float64_as_the_name_says():
    rng = np.random.default_rng(4)
    wide = rng.integers(-(2**63), 2**63, COUNT) >> rng.integers(0, 62, COUNT)
    kinds = {
        "double2float": (floats("float64", 5), np.float32), "int2float": (wide.astype(np.int32), np.float32),
        "uint2float": (wide.astype(np.uint32), np.float32), "ll2float": (wide, np.float32),
        "ull2float": (wide.astype(np.uint64), np.float32), "ll2double": (wide, np.float64),
        "ull2double": (wide.astype(np.uint64), np.float64),
    }  # fmt: skip
    for name, (x, target) in kinds.items():
        results = [np.zeros(COUNT, target) for _ in MODES]
        launched(" ".join(f"{o}[i] = __{name}_{m}(a[i]);" for o, m in zip("bcde", MODES)), x, *results, grid=4)
        for mode, result in zip(MODES, results):
            for value, got in zip(x.tolist(), result.tolist()):
                expected = rounded(value, np.dtype(target).name, mode, math.copysign(1, value) < 0)
                assert same(got, expected), (name, mode, value, got, expected)


@pytest.mark.parametrize("name", HALVES)
def test_numbers_become_16_bit_floats_as_the_name_says(name):
    header, dtype = HALVES[name]
    with np.errstate(invalid="ignore"):
        every = np.arange(2**16, dtype=np.uint16).view(dtype).astype(np.float32)
    every = every[np.isfinite(every)]
    between = np.nextafter(every, np.float32(np.inf)), np.nextafter(every, np.float32(-np.inf))
    rng = np.random.default_rng(6)
    edges = [0.0, -0.0, 65504, 65519.99, 65520, 65536, -65520, 3.4e38, 3.39e38, 1e-45, -1e-45, np.inf, -np.inf, np.nan]
    chosen = np.concatenate([edges, *(rng.choice(x, 300) for x in (every, *between))]).astype(np.float32)
    chosen = chosen[: len(chosen) // 4 * 4]
    wide = rng.integers(-(2**63), 2**63, len(chosen)) >> rng.integers(0, 62, len(chosen))
    wide[:6] = (1 << 62) + (1 << 54) + np.array([-1, 0, 1, -(1 << 54), 1 << 54, 3])  # about ties of bfloat16
    kinds = {"float": chosen, "int": wide.astype(np.int32), "ushort": wide.astype(np.uint16), "ll": wide}
    for source, x in kinds.items():
        results = [np.zeros(len(x), dtype) for _ in MODES]
        body = " ".join(f"{o}[i] = __{source}2{name}_{m}(a[i]);" for o, m in zip("bcde", MODES))
        launched(body, x, *results, grid=len(x) // 4, block=4, before=f"#include <{header}>")
        for mode, result in zip(MODES, results):
            for value, got in zip(x.tolist(), result.astype(np.float64).tolist()):
                expected = rounded(value, np.dtype(dtype).name, mode, math.copysign(1, value) < 0)
                assert same(got, expected), (source, mode, value, got, expected)


@pytest.mark.parametrize("name", HALVES)
def test_every_16_bit_float_becomes_an_integer_as_the_name_says(name):
    header, dtype = HALVES[name]
    x = np.arange(2**16, dtype=np.uint16).view(dtype)
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
        wide[np.isnan(wide)] = np.nan  # a quiet one
    whole = {"rn": np.rint, "rd": np.floor, "ru": np.ceil, "rz": np.trunc}
    limits = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "short": np.int16}
    for mode, function in whole.items():
        results = [np.zeros(len(x), kind) for kind in limits.values()]
        body = " ".join(f"{o}[i] = __{name}2{target}_{mode}(a[i]);" for o, target in zip("bcde", limits))
        launched(body, x, *results, grid=256, block=256, before=f"#include <{header}>")
        for kind, got in zip(limits.values(), results):
            info = np.iinfo(kind)
            for value, each in zip(function(wide).tolist(), got.tolist()):
                if math.isfinite(value):
                    assert each == min(max(int(value), info.min), info.max)
                elif math.isinf(value):
                    assert each == (info.max if value > 0 else info.min)


# measured on an H200: value; codes of e4m3 from float (saturating, not), e5m2 (likewise), then from double: e4m3, e5m2
EIGHT_BITS = """
nan 7f 7f 7f 7f 7f 7e
-nan 7f 7f 7f 7f ff fe
inf 7e 7f 7b 7c 7e 7c
-inf fe ff fb fc fe fc
-0.0 80 80 80 80 80 80
464 7e 7e 5f 5f 7e 5f
464.0001 7e 7f 5f 5f 7e 5f
-465 fe ff df df fe df
57344 7e 7f 7b 7b 7e 7b
61440 7e 7f 7b 7c 7e 7c
61439.9 7e 7f 7b 7b 7e 7b
-61441 fe ff fb fc fe fc
-1e-9 80 80 80 80 80 80
0.0009765625 0 0 14 14 0 14
0.0009775390625 1 1 14 14 1 14
9.5 52 52 49 49 52 49
13.000000000001 55 55 4a 4a 55 4b
1e300 7e 7f 7b 7c 7e 7c
"""


def test_codes_of_8_bit_floats_are_those_of_a_device():
    rows = [line.split() for line in EIGHT_BITS.strip().splitlines()]
    x = np.array([float(row[0]) for row in rows])
    results = [np.zeros(len(x), np.uint8) for _ in range(6)]
    body = """
    const float narrow = a[i];
    b[i] = __nv_cvt_float_to_fp8(narrow, __NV_SATFINITE, __NV_E4M3);
    c[i] = __nv_cvt_float_to_fp8(narrow, __NV_NOSAT, __NV_E4M3);
    d[i] = __nv_cvt_float_to_fp8(narrow, __NV_SATFINITE, __NV_E5M2);
    e[i] = __nv_cvt_float_to_fp8(narrow, __NV_NOSAT, __NV_E5M2);
    f[i] = __nv_fp8_e4m3(a[i]).__x;
    g[i] = __nv_cvt_double_to_fp8(a[i], __NV_NOSAT, __NV_E5M2);
    """
    launched(body, x, *results, block=len(x), before="#include <cuda_fp8.h>")
    for row, *codes in zip(rows, *results):
        assert row[1:] == [f"{code:x}" for code in codes], row


@pytest.mark.parametrize(("name", "dtype"), [("e4m3", ml_dtypes.float8_e4m3fn), ("e5m2", ml_dtypes.float8_e5m2)])
def test_every_8_bit_float_goes_there_and_back(name, dtype):
    codes = np.arange(256, dtype=np.uint8)
    wide, back, half = np.zeros(256, np.float32), np.zeros(256, np.uint8), np.zeros(256, np.float16)
    body = f"""
    __nv_fp8_{name} x;
    x.__x = a[i];
    b[i] = float(x);
    c[i] = __nv_fp8_{name}(b[i]).__x;
    d[i] = __half(x);
    """
    launched(body, codes, wide, back, half, block=256, before="#include <cuda_fp8.h>")
    with np.errstate(invalid="ignore"):
        expected = codes.view(dtype).astype(np.float32)
    np.testing.assert_array_equal(wide, expected)
    np.testing.assert_array_equal(half, expected.astype(np.float16))
    largest = 448 if name == "e4m3" else 57344
    saturated = np.where(np.isinf(expected), np.copysign(largest, expected), expected).astype(np.float32)
    is_nan = np.isnan(expected)
    np.testing.assert_array_equal(back[~is_nan], saturated[~is_nan].astype(dtype).view(np.uint8))
    assert (back[is_nan] == 0x7F).all()
