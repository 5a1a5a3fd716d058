"""cuda.fp16 and cuda.bf16: every function against fractions, mpmath and Python's own comparisons."""

import math
import re
from fractions import Fraction

import cffi
import ml_dtypes
import mpmath
import numpy as np
import pytest
from clean_launch import launch_clean
from numba import cuda
from numba.cuda import bf16, fp16
from rounding_by_definition import rounded, same

import refsim
from refsim.frontends import numba_types

DTYPES = {"fp16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
KINDS = {"fp16": "float16", "bf16": "bfloat16"}
MODULES = {"fp16": fp16, "bf16": bf16}
NUMBERS = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    2.25,
    0.333,
    -7.0,
    100.0,
    1e-3,
    6e-5,
    2048.0,
    -0.1,
    3.14,
    0.75,
    -60000.0,
    6e-8,
    0.5,
    2.5,
]
SPECIAL = [math.inf, -math.inf, math.nan]
SIGNATURES = {
    module: {name: s for name, s in numba_types.declared(f"cuda.{module}").items() if name in exporter.__all__}
    for module, exporter in MODULES.items()
}
mp = mpmath.mp.clone()
mp.prec = 120


def dtype_of(kind):
    return np.dtype(ml_dtypes.bfloat16) if kind == "bfloat16" else np.dtype(kind)


def apply(module, name, *columns):
    """The function on every row of arguments, in a kernel: inputs and outputs as Python numbers."""
    function, signature = getattr(MODULES[module], name), SIGNATURES[module][name]

    def one(a, out):
        i = cuda.grid(1)
        out[i] = function(a[i])

    def two(a, b, out):
        i = cuda.grid(1)
        out[i] = function(a[i], b[i])

    def three(a, b, c, out):
        i = cuda.grid(1)
        out[i] = function(a[i], b[i], c[i])

    with np.errstate(over="ignore"):
        inputs = [np.array(column, dtype_of(kind)) for column, kind in zip(columns, signature.args, strict=True)]
    out = np.zeros(inputs[0].size, dtype_of(signature.result))
    launch_clean((one, two, three)[len(inputs) - 1], 1, out.size, *inputs, out)
    return [numbers(array) for array in inputs], numbers(out)


def numbers(array):
    return array.tolist() if array.dtype.kind in "biu" else array.astype(np.float64).tolist()


def names(module, *patterns):
    return [name for name in SIGNATURES[module] if any(re.fullmatch(p, name.removeprefix("__")) for p in patterns)]


def cases(*patterns):
    return [(module, name) for module in MODULES for name in names(module, *patterns)]


def base(name):
    return name.removeprefix("__").removesuffix("_rn").removesuffix("_sat").removesuffix("_relu")


EXACT = {
    "hadd": lambda a, b: a + b, "hsub": lambda a, b: a - b, "hmul": lambda a, b: a * b, "hdiv": lambda a, b: a / b,
    "hfma": lambda a, b, c: a * b + c,
}  # fmt: skip
ARITHMETIC = r"h(add|sub|mul|div)(_rn|_sat)?", r"hfma(_sat|_relu)?"


@pytest.mark.parametrize(("module", "name"), cases(*ARITHMETIC))
def test_arithmetic_rounds_once(module, name):
    kind, count = KINDS[module], len(SIGNATURES[module][name].args)
    rows = [(a, b, c)[:count] for a in NUMBERS for b in NUMBERS for c in (NUMBERS[::5] if count == 3 else [0.0])]
    for start in range(0, len(rows), 1000):
        columns, got = apply(module, name, *zip(*rows[start : start + 1000], strict=True))
        for row, value in zip(zip(*columns, strict=True), got, strict=True):
            a, b = Fraction(row[0]), Fraction(row[1])
            if base(name) == "hdiv" and b == 0:
                continue
            wanted = rounded(EXACT[base(name)](a, b, *(Fraction(c) for c in row[2:])), kind)
            if name.endswith("_sat"):
                wanted = min(max(wanted, 0.0), 1.0)
            elif name.endswith("_relu"):
                wanted = max(wanted, 0.0)
            assert value == wanted, (row, value, wanted)


def test_saturation_turns_nan_into_zero_and_rectification_keeps_it():
    for module in MODULES:
        prefix = "__" if module == "fp16" else ""
        assert apply(module, f"{prefix}hadd_sat", [math.nan], [1.0])[1] == [0.0]
        assert math.isnan(apply(module, f"{prefix}hfma_relu", [math.nan], [1.0], [1.0])[1][0])


COMPARE = {
    "heq": lambda a, b: a == b, "hne": lambda a, b: a != b, "hge": lambda a, b: a >= b, "hgt": lambda a, b: a > b,
    "hle": lambda a, b: a <= b, "hlt": lambda a, b: a < b,
}  # fmt: skip


@pytest.mark.parametrize(("module", "name"), cases(r"h(eq|ne|ge|gt|le|lt)u?"))
def test_comparisons_of_nan_are_false_and_unordered_ones_true(module, name):
    some = [0.0, -0.0, 1.0, -2.0, *SPECIAL]
    (left, right), got = apply(module, name, *zip(*[(a, b) for a in some for b in some], strict=True))
    plain = name.removeprefix("__")
    for a, b, value in zip(left, right, got, strict=True):
        unordered = math.isnan(a) or math.isnan(b)
        wanted = plain.endswith("u") if unordered else COMPARE[plain.removesuffix("u")](a, b)
        assert value == wanted, (a, b)


@pytest.mark.parametrize(("module", "name"), cases(r"h(max|min)(_nan)?"))
def test_maximum_and_minimum(module, name):
    some = [0.0, -0.0, 1.0, -2.0, *SPECIAL]
    (left, right), got = apply(module, name, *zip(*[(a, b) for a in some for b in some], strict=True))
    for a, b, value in zip(left, right, got, strict=True):
        if math.isnan(a) or math.isnan(b):
            wanted = math.nan if name.endswith("_nan") else b if math.isnan(a) else a
        else:
            choose = max if "max" in name else min
            wanted = choose(a, b, key=lambda x: (x, math.copysign(1, x)))
        assert same(value, wanted), (a, b, value)


WHOLE = {
    "habs": abs, "hneg": lambda x: -x, "hceil": math.ceil, "hfloor": math.floor, "htrunc": math.trunc, "hrint": round,
    "hisinf": lambda x: (x == math.inf) - (x == -math.inf), "hisnan": lambda x: x != x,
}  # fmt: skip


@pytest.mark.parametrize(("module", "name"), cases(*WHOLE))
def test_exact_function(module, name):
    points = [1.5, -1.5, 2.5, 0.4, -0.6, 7.0, 1000.5, -0.0, 3e4]
    plain = name.removeprefix("__")
    points += SPECIAL if plain in ("habs", "hneg", "hisinf", "hisnan") else []
    (points,), got = apply(module, name, points)
    for x, value in zip(points, got, strict=True):
        wanted = WHOLE[plain](x)
        assert value == wanted or (math.isnan(value) and math.isnan(wanted)), (x, value)


FUNCTIONS = {
    "hrcp": lambda x: 1 / x, "hsqrt": mp.sqrt, "hrsqrt": lambda x: 1 / mp.sqrt(x), "hsin": mp.sin, "hcos": mp.cos,
    "htanh": mp.tanh, "htanh_approx": mp.tanh, "hexp": mp.exp, "hexp2": lambda x: mp.power(2, x),
    "hexp10": lambda x: mp.power(10, x), "hlog": mp.log, "hlog2": lambda x: mp.log(x, 2), "hlog10": mp.log10,
}  # fmt: skip


@pytest.mark.parametrize(("module", "name"), cases(*FUNCTIONS))
def test_function_is_rounded_correctly(module, name):
    signed = name in ("hrcp", "hsin", "hcos", "htanh", "htanh_approx", "hexp", "hexp2", "hexp10")
    points = [
        v * s for v in (0.013, 0.1, 0.3, 0.5, 0.9, 1.0, 1.7, 2.0, 3.3, 4.4) for s in ((1, -1) if signed else (1,))
    ]
    (points,), got = apply(module, name, points)
    for x, value in zip(points, got, strict=True):
        exact = FUNCTIONS[name](mp.mpf(x))
        scaled = Fraction(int(mp.nint(exact * mp.mpf(2) ** 110)), 2**110)
        assert same(value, rounded(scaled, KINDS[module])), (x, value, exact)


C_TYPES = {
    "half": "float16", "float": "float32", "double": "float64", "char": "int8", "uchar": "uint8", "short": "int16",
    "ushort": "uint16", "int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64",
}  # fmt: skip
CONVERSION = r"([a-z0-9]+?)(?:2|_to_)([a-z0-9]+?)(?:_(r[nduz]))?"


@pytest.mark.parametrize(("module", "name"), cases(CONVERSION))
def test_conversion_is_rounded_as_its_name_says(module, name):
    source, target, mode = re.fullmatch(CONVERSION, name.removeprefix("__")).groups()
    source, target = C_TYPES.get(source, source), C_TYPES.get(target, target)
    assert (source, target) == (SIGNATURES[module][name].args[0], SIGNATURES[module][name].result)
    if "float" in source:
        points = [0.0, 0.1, -0.1, 1.5, -2.5, 3.5, 1 / 3, 2047.7, -1e5, 6e-8, 65519.0, 65520.0, 250.5, -129.0, 1e20]
    else:
        info = np.iinfo(source)
        points = [0, 1, -1, 2049, -2051, 257, 65519, 65521, 2**24 + 1, 2**53 + 2**29 + 1]
        points = [v for v in points if info.min <= v <= info.max]
        points += [int(info.max), int(info.min), int(info.max) - 1]
    (points,), got = apply(module, name, points)
    for x, value in zip(points, got, strict=True):
        if "int" not in target:
            if math.isinf(x):
                continue
            assert same(value, rounded(Fraction(x), target, mode or "rn")), (x, value)
            continue
        info = np.iinfo(target)
        if math.isinf(x):
            wanted = info.max if x > 0 else info.min
        else:
            whole = {"rn": round, "rd": math.floor, "ru": math.ceil, "rz": math.trunc}[mode](x)
            wanted = min(max(whole, info.min), info.max)
        assert value == wanted, (x, value)
    if "int" in target:
        wanted = -(2**63) if target == "int64" else 2**63 if target == "uint64" else 0
        assert apply(module, name, [math.nan])[1] == [wanted]


@pytest.mark.parametrize("module", MODULES)
def test_bits(module):
    kind = KINDS[module]
    words = np.array([0, 1, 0x3C00, 0x8000, 0x3F80, 0xBF80, 0x7BFF], np.uint16)
    stands_for = words.view(DTYPES[module]).astype(np.float64).tolist()
    for name in names(module, r"[a-z0-9]+_as_[a-z0-9]+"):
        signature = SIGNATURES[module][name]
        if signature.result == kind:
            assert apply(module, name, words.astype(signature.args[0]))[1] == stands_for
        else:
            assert apply(module, name, stands_for)[1] == words.astype(signature.result).tolist()


@pytest.mark.parametrize("module", MODULES)
def test_every_function_is_tested(module):
    exported = {name for name in MODULES[module].__all__ if not name.endswith("registry")}
    exported -= {"bfloat16", "__half", "atomicAdd"}  # types, and a function of a pointer
    assert exported == set(SIGNATURES[module])
    patterns = [*ARITHMETIC, r"h(eq|ne|ge|gt|le|lt)u?", r"h(max|min)(_nan)?", *WHOLE, *FUNCTIONS, CONVERSION]
    tested = set(names(module, *patterns, r"[a-z0-9]+_as_[a-z0-9]+"))
    assert tested == exported


def test_nan_has_the_bits_that_an_h200_gave_it():
    def bits(x, y, out):
        out[0] = fp16.__half_as_ushort(fp16.__hfma_relu(x[0], x[1], x[1]))
        out[1] = fp16.__half_as_ushort(fp16.__hmax_nan(x[0], x[1]))
        out[2] = bf16.bfloat16_as_uint16(bf16.hadd(y[0], y[1]))
        out[3] = fp16.__half_as_ushort(fp16.hmax(-fp16.habs(x[2]), fp16.habs(x[2])))
        out[4] = fp16.__half_as_ushort(fp16.hmin(fp16.habs(x[2]), -fp16.habs(x[2])))

    numbers = [math.nan, 1.0, 0.0]
    out = np.zeros(5, np.uint16)
    launch_clean(bits, 1, 1, np.array(numbers, np.float16), np.array(numbers, ml_dtypes.bfloat16), out)
    assert out.tolist() == [0x7FFF, 0x7FFF, 0x7FFF, 0x0000, 0x8000]


def test_operators_and_conversions_of_bfloat16():
    def mixed(x, y, out, wide):
        i = cuda.grid(1)
        out[i, 0] = x[i] + y[i]
        out[i, 1] = x[i] * y[i] - x[i]
        out[i, 2] = -x[i] / y[i]
        out[i, 3] = bf16.bfloat16(1.1)
        out[i, 4] = math.exp(x[i])
        wide[i, 0] = x[i] + np.float32(1.1)
        wide[i, 1] = np.float32(x[i])
        wide[i, 2] = x[i] < y[i]

    kind = ml_dtypes.bfloat16
    x = np.array([0.5, -1.5, 3.0, 0.1], kind)
    y = np.array([0.25, 7.0, -0.3, 11.0], kind)
    out, wide = np.zeros((4, 5), kind), np.zeros((4, 3), np.float32)
    launch_clean(mixed, 1, 4, x, y, out, wide)
    a, b = x.astype(np.float64), y.astype(np.float64)

    def short(values):
        return [rounded(Fraction(float(v)), "bfloat16") for v in values]

    product = np.array(short(a * b))
    expected = [short(a + b), short(product - a), short(-a / b), short(np.full(4, 1.1)), short(np.exp(a))]
    np.testing.assert_array_equal(out.astype(np.float64), np.stack(expected, axis=1))
    np.testing.assert_array_equal(wide, np.stack([x.astype(np.float32) + np.float32(1.1), a, a < b], axis=1))


def test_bfloat16_in_shared_memory_and_under_both_spellings():
    def through(x, out):
        cells = cuda.shared.array(4, cuda.bfloat16)
        i = cuda.threadIdx.x
        cells[i] = cuda.bf16.hneg(x[i])
        cuda.syncthreads()
        out[i] = cells[3 - i]

    x = np.array([1, 2, 3, 4], ml_dtypes.bfloat16)
    out = np.zeros(4, ml_dtypes.bfloat16)
    launch_clean(through, 1, 4, x, out)
    assert out.astype(np.float64).tolist() == [-4, -3, -2, -1]


FFI = cffi.FFI()


def test_atomic_add_on_float16_through_a_pointer():
    def add(x, out, old):
        i = cuda.grid(1)
        old[i] = cuda.fp16.atomicAdd(FFI.from_buffer(out[i % 2 :]), x[i])

    x = np.array([1, 2, 0.1, 2048, 3, 4], np.float16)
    out, old = np.array([10, 20], np.float16), np.zeros(6, np.float16)
    launch_clean(add, 1, 6, x, out, old)
    expected, before = [10.0, 20.0], []
    for i, value in enumerate(x.tolist()):
        before.append(expected[i % 2])
        expected[i % 2] = rounded(Fraction(expected[i % 2]) + Fraction(value), "float16")
    assert out.tolist() == expected
    assert old.tolist() == before


def test_wrong_calls_are_named():
    def pointer(x):
        cuda.fp16.atomicAdd(x, x[0])

    def complex_argument(x):
        x[0] = cuda.fp16.hadd(x[0], 1j)

    def unknown(x):
        x[0] = cuda.bf16.hcbrt(x[0])

    for kernel, message in ((pointer, "pointer"), (complex_argument, "complex128"), (unknown, "hcbrt")):
        with pytest.raises((refsim.KernelTypeError, refsim.UnsupportedError), match=message):
            refsim.launch(kernel, 1, 1, np.zeros(2, np.float16))
