"""cuda.libdevice: every function against mpmath, exact fractions, the C library and integers of Python."""

import ctypes
import ctypes.util
import math
import re
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from clean_launch import launch_clean
from numba import cuda
from numba.cuda import libdevice, libdevicefuncs
from rounding_by_definition import LIMITS, rounded, same

from refsim.engine.intrinsics import INTRINSICS
from refsim.frontends.numba_libdevice import functions

FUNCTIONS = functions()
LIBRARY = ctypes.CDLL(ctypes.util.find_library("m"))
TINY, HUGE = 5e-324, 1.7976931348623157e308
SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, HUGE, -HUGE]
POINTS = [
    *(s * v for v in (1e-310, 1e-30, 1e-5, 0.013, 0.1, 0.25, 0.3, 0.49, 0.5, 0.7, 0.999, 1.0, 1.5, 2.5, 3.7, 5.5, 9.2,
                      12.4, 19.9, 24.9, 26.3, 40.7) for s in (1, -1)),
]  # fmt: skip
PAIRS = [1.0, -1.0, 0.3, -2.5, 7.0, 1e-5, 1e10, -3e-3, 2.0**-149, 3.0, 0.1, -0.1, 1 / 3, 16777217.0, 1e16, -1e-300]
WORDS = [0, 1, -1, 2, 7, -7, 0x7FFFFFFF, -0x80000000, 0x12345678, -0x1234567, 0x00FFFFFF, 0x800000, 0x6420]
LONG_WORDS = [*WORDS, 2**63 - 1, -(2**63), 0x123456789ABCDEF, 2**53 + 1, 2**62 + 2**38 + 1, -(2**40) - 1]
MODES = {"rn": "n", "rd": "f", "ru": "c", "rz": "d"}


def apply(name, *columns):
    """The function on every row of arguments, in a kernel; one array per result."""
    function, signature = getattr(libdevice, name), FUNCTIONS[name]

    def one(a, out):
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            out[i] = function(a[i])

    def two(a, b, out):
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            out[i] = function(a[i], b[i])

    def three(a, b, c, out):
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            out[i] = function(a[i], b[i], c[i])

    def one_pair(a, out, other):
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            out[i], other[i] = function(a[i])

    def two_pair(a, b, out, other):
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            out[i], other[i] = function(a[i], b[i])

    kernels = {(1, 1): one, (2, 1): two, (3, 1): three, (1, 2): one_pair, (2, 2): two_pair}
    inputs = [np.array(column, kind) for column, kind in zip(columns, signature.args, strict=True)]
    outputs = [np.zeros(inputs[0].size, kind) for kind in signature.results]
    launch_clean(kernels[len(inputs), len(outputs)], 1, min(inputs[0].size, 256), *inputs, *outputs)
    return [array.tolist() for array in inputs], [array.tolist() for array in outputs]


def errors_in_ulps(got, exact, kind):
    _, lowest, largest = LIMITS[kind]
    if abs(exact) > largest:
        return 0.0 if abs(got) in (math.inf, largest) else math.inf
    spacing = np.spacing(np.dtype(kind).type(abs(float(exact)))) if exact else 2.0**lowest
    return float(abs(mpmath.mpf(got) - exact) / mpmath.mpf(float(spacing)))


def label(name):
    signature = FUNCTIONS[name]
    return INTRINSICS[signature.engine, signature.operands[0]].ulps


# --------------------------------------------------------------------------- functions of reals, against mpmath

mp = mpmath.mp.clone()
mp.prec = 140


def erfcinv(y):
    if y >= 0.5:
        return mp.erfinv(1 - y)
    root = mp.sqrt(-mp.log(y))
    for _ in range(60):
        root = root + (mp.erfc(root) - y) * mp.sqrt(mp.pi) / 2 * mp.exp(root * root) / (1 + root)
    for _ in range(6):
        root = root + (mp.erfc(root) - y) * mp.sqrt(mp.pi) / 2 * mp.exp(root * root)
    return root


def real_cube_root(x):
    return mp.sign(x) * mp.cbrt(abs(x))


REALS = {
    "acos": (mp.acos, -1, 1), "acosh": (mp.acosh, 1, 99), "asin": (mp.asin, -1, 1), "asinh": (mp.asinh, -99, 99),
    "atan": (mp.atan, -99, 99), "atanh": (mp.atanh, -0.9999, 0.9999), "cbrt": (real_cube_root, -99, 99),
    "cos": (mp.cos, -99, 99), "cosh": (mp.cosh, -99, 99), "cospi": (mp.cospi, -99, 99), "erf": (mp.erf, -99, 99),
    "erfc": (mp.erfc, -99, 26), "erfcinv": (erfcinv, 1e-30, 1.9999),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), -25, 99),
    "erfinv": (mp.erfinv, -0.9999, 0.9999), "exp": (mp.exp, -99, 99), "exp10": (lambda x: mp.power(10, x), -37, 37),
    "exp2": (lambda x: mp.power(2, x), -99, 99), "expm1": (mp.expm1, -99, 99),
    "j0": (lambda x: mp.besselj(0, x), -99, 99),
    "j1": (lambda x: mp.besselj(1, x), -99, 99), "lgamma": (lambda x: mp.log(abs(mp.gamma(x))), 0.01, 99),
    "log": (mp.log, 1e-311, 99), "log10": (mp.log10, 1e-311, 99), "log1p": (mp.log1p, -0.9999, 99),
    "log2": (lambda x: mp.log(x, 2), 1e-311, 99), "normcdf": (mp.ncdf, -12, 99),
    "normcdfinv": (lambda p: -mp.sqrt(2) * erfcinv(2 * p), 1e-30, 0.9999),
    "rcbrt": (lambda x: 1 / real_cube_root(x), -99, 99), "rsqrt": (lambda x: 1 / mp.sqrt(x), 1e-311, 99),
    "sin": (mp.sin, -99, 99), "sinh": (mp.sinh, -99, 99), "sinpi": (mp.sinpi, -99, 99), "sqrt": (mp.sqrt, 0, 99),
    "tan": (mp.tan, -99, 99), "tanh": (mp.tanh, -99, 99), "tgamma": (mp.gamma, 0.01, 99),
    "y0": (lambda x: mp.bessely(0, x), 1e-31, 99), "y1": (lambda x: mp.bessely(1, x), 1e-29, 99),
}  # fmt: skip
REAL_NAMES = [*REALS, *(f"{name}f" for name in REALS), "frsqrt_rn"] + [
    f"fast_{name}f" for name in ("cos", "exp", "exp10", "log", "log10", "log2", "sin", "tan")
]
ROOTS = {"lgamma": (1.0, 2.0)}


def stem(name):
    name = name.removeprefix("fast_")
    if name == "frsqrt_rn":
        return "rsqrt"
    return name if name in REALS else name.removesuffix("f")


@pytest.mark.parametrize("name", REAL_NAMES)
def test_function_of_a_real(name):
    function, low, high = REALS[stem(name)]
    points = [x for x in np.array(POINTS, FUNCTIONS[name].args[0]).tolist() if low <= x <= high and x]
    (points,), (got,) = apply(name, points)
    allowed = max(label(name), 0.5)
    for x, value in zip(points, got, strict=True):
        error = errors_in_ulps(value, function(mp.mpf(x)), FUNCTIONS[name].results[0])
        assert error <= allowed, (x, value, error)


# what no C library knows, at 0, -0, inf, -inf, nan, the largest and its negative
HAND_MADE = {
    "cospi": [1, 1, math.nan, math.nan, math.nan, 1, 1], "sinpi": [0.0, -0.0, math.nan, math.nan, math.nan, 0.0, -0.0],
    "erfcx": [1, 1, 0.0, math.inf, math.nan, 0.0, math.inf],
    "erfinv": [0.0, -0.0, math.nan, math.nan, math.nan, math.nan, math.nan],
    "erfcinv": [math.inf, math.inf, math.nan, math.nan, math.nan, math.nan, math.nan],
    "normcdf": [0.5, 0.5, 1, 0.0, math.nan, 1, 0.0],
    "normcdfinv": [-math.inf, -math.inf, math.nan, math.nan, math.nan, math.nan, math.nan],
    "rcbrt": [math.inf, -math.inf, 0.0, -0.0, math.nan, None, None],
    "rsqrt": [math.inf, -math.inf, 0.0, math.nan, math.nan, None, math.nan],
}  # fmt: skip


@pytest.mark.parametrize("name", REAL_NAMES)
def test_function_of_a_real_at_its_ends(name):
    kind = FUNCTIONS[name].args[0]
    largest = LIMITS[kind][2]
    points = [math.copysign(largest, x) if abs(x) == HUGE else x for x in SPECIAL]
    _, (got,) = apply(name, points)
    if stem(name) in HAND_MADE:
        expected = HAND_MADE[stem(name)]
    else:
        c = getattr(LIBRARY, stem(name))
        c.argtypes, c.restype = [ctypes.c_double], ctypes.c_double
        with np.errstate(over="ignore"):
            expected = np.array([c(x) for x in points]).astype(kind).tolist()
    for x, value, wanted in zip(points, got, expected, strict=True):
        if wanted is None or (stem(name) == "erfcx" and abs(x) == largest):
            continue
        if stem(name) in ("j0", "j1", "y0", "y1") and abs(x) == largest:
            assert math.isnan(value) if x < 0 and stem(name)[0] == "y" else abs(value) < 1e-10
            continue
        tolerance = (
            0.0 if math.isinf(wanted) or math.isnan(wanted) else 8 * float(np.spacing(np.dtype(kind).type(wanted)))
        )
        assert same(value, wanted) or abs(value - wanted) <= abs(tolerance), (x, value, wanted)


@pytest.mark.parametrize("name", ["atan2", "hypot", "pow", "atan2f", "hypotf", "powf", "fast_powf"])
def test_function_of_two_reals(name):
    base = name.removeprefix("fast_").removesuffix("f")
    function = {"atan2": mp.atan2, "hypot": mp.hypot, "pow": mp.power}[base]
    rows = [(a, b) for a in PAIRS[:-1] for b in (0.5, -1.5, 2.0, 3.7, -0.25) if base != "pow" or (a > 0 and a > 1e-40)]
    (xs, ys), (got,) = apply(name, *zip(*rows, strict=True))
    for x, y, value in zip(xs, ys, got, strict=True):
        error = errors_in_ulps(value, function(mp.mpf(x), mp.mpf(y)), FUNCTIONS[name].results[0])
        assert error <= max(label(name), 0.5), (x, y, value, error)


@pytest.mark.parametrize("name", ["sincos", "sincosf", "sincospi", "sincospif", "fast_sincosf"])
def test_sine_and_cosine_together(name):
    points = [x for x in POINTS if abs(x) > 1e-37]
    (points,), (sines, cosines) = apply(name, points)
    sine, cosine = (mp.sinpi, mp.cospi) if "pi" in name else (mp.sin, mp.cos)
    for x, s, c in zip(points, sines, cosines, strict=True):
        kind = FUNCTIONS[name].args[0]
        assert errors_in_ulps(s, sine(mp.mpf(x)), kind) <= 2.0
        assert errors_in_ulps(c, cosine(mp.mpf(x)), kind) <= 2.0


@pytest.mark.parametrize("name", ["jn", "yn", "jnf", "ynf"])
def test_bessel_functions_of_higher_order(name):
    rows = [(n, x) for n in (0, 1, 2, 5, 20) for x in (0.5, 1.0, 3.7, 4.9, 19.5, 25.5, 60.0)]
    (orders, xs), (got,) = apply(name, *zip(*rows, strict=True))
    kind, function = FUNCTIONS[name].results[0], mp.besselj if name[0] == "j" else mp.bessely
    for n, x, value in zip(orders, xs, got, strict=True):
        exact = function(n, mp.mpf(x))
        small = abs(value - float(exact)) <= (1e-15 if kind == "float64" else 6e-8)
        assert small or errors_in_ulps(value, exact, kind) <= label(name), (n, x, value)
    _, (got,) = apply(name, [-1, 3, 3, 2, 2], [1.0, 0.0, math.nan, math.inf, -2.0])
    if name[0] == "y":
        assert math.isnan(got[0])
        assert got[1] == -math.inf
        assert math.isnan(got[2])
        assert got[3] == 0
        assert math.isnan(got[4])
    else:
        assert math.isnan(got[0])
        assert got[1] == 0
        assert math.isnan(got[2])
        assert got[3] == 0
        assert abs(got[4] - 0.3528340286156377) < 3e-8


# ------------------------------------------------------------------------- rounding, by the definition, in fractions

ARITHMETIC = [
    name for name in FUNCTIONS if re.fullmatch(r"(fma|fmaf)_r.|[fd](add|sub|mul|div|rcp|sqrt)_r.|fmaf?", name)
]


def exact_result(op, x):
    a, b = (Fraction(v) for v in (x * 2)[:2])
    if op in ("div", "rcp"):
        return (a / b if op == "div" else 1 / a) if (b if op == "div" else a) else None
    if op == "fma":
        return a * b + Fraction(x[2])
    return {"add": a + b, "sub": a - b, "mul": a * b}[op]


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_is_rounded_as_its_name_says(name):
    kind, count = FUNCTIONS[name].results[0], len(FUNCTIONS[name].args)
    op = "fma" if name.startswith("fma") else name[1:].split("_")[0]
    mode = name.split("_")[1] if "_" in name else "rn"
    numbers = [*PAIRS, TINY, -1e-310, LIMITS[kind][2], -LIMITS[kind][2], 1.0 + 2.0**-23, 1.0 - 2.0**-53, 2.0**-126]
    numbers = [float(x) for x in np.clip(numbers, -LIMITS[kind][2], LIMITS[kind][2])]
    others = numbers[::3] if count == 3 else [-1.0]
    rows = [(a, b, c)[:count] for a in numbers for b in (numbers if count > 1 else [1.0]) for c in others]
    columns, (got,) = apply(name, *zip(*rows, strict=True))
    for row, value in zip(zip(*columns, strict=True), got, strict=True):
        if op == "sqrt":
            if row[0] > 0:
                assert same(value, rounded_root(row[0], kind, mode)), (row, value)
            continue
        exact = exact_result(op, row)
        if exact is None:
            continue
        if exact:
            assert same(value, rounded(exact, kind, mode)), (row, value, rounded(exact, kind, mode))
        elif op in ("add", "sub", "fma"):
            terms = (row[0], -row[1] if op == "sub" else row[1]) if op != "fma" else (row[0] * row[1], row[2])
            agree = math.copysign(1, terms[0]) == math.copysign(1, terms[1]) and not any(terms)
            assert same(value, terms[0] if agree else -0.0 if mode == "rd" else 0.0), (row, value)


def rounded_root(x, kind, mode):
    """A square root to 200 bits is enough: it is exact or far from every boundary."""
    value = Fraction(x)
    shift = 400 - (value.denominator.bit_length() - value.numerator.bit_length()) // 2 * 2 + 2400
    scaled = value * Fraction(4) ** shift
    root = math.isqrt(scaled.numerator // scaled.denominator)
    exact = scaled.denominator == 1 and root * root == scaled.numerator
    return rounded(Fraction(root, 2**shift) + (0 if exact else Fraction(1, 2 ** (shift + 1))), kind, mode)


def test_arithmetic_on_infinities_and_nan():
    inf, nan = math.inf, math.nan
    for mode in MODES:
        assert apply(f"fadd_{mode}", [inf, inf, nan], [-1.0, -inf, 1.0])[1][0][0] == inf
        _, (got,) = apply(f"ddiv_{mode}", [1.0, -1.0, 0.0, 1.0], [0.0, 0.0, 0.0, -inf])
        assert got[:2] == [inf, -inf]
        assert math.isnan(got[2])
        assert same(got[3], -0.0)
        _, (got,) = apply(f"dsqrt_{mode}", [-1.0, -0.0, inf])
        assert math.isnan(got[0])
        assert same(got[1], -0.0)
        assert got[2] == inf
        assert apply(f"fma_{mode}", [inf], [1.0], [-1.0])[1] == [[inf]]


CONVERSIONS = [
    name for name in FUNCTIONS if re.fullmatch(r"(double|float|u?int|u?ll)2(double|float|u?int|u?ll)_r.", name)
]
INTEGER = {"int": (32, True), "uint": (32, False), "ll": (64, True), "ull": (64, False)}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversion_is_rounded_as_its_name_says(name):
    source, target, mode = re.fullmatch(r"(\w+)2(\w+)_(r.)", name).groups()
    if source in INTEGER:
        numbers = WORDS if INTEGER[source][0] == 32 else LONG_WORDS
        (numbers,), (got,) = apply(name, numbers)
        bits, signed = INTEGER[source]
        for x, value in zip(numbers, got, strict=True):
            exact = Fraction(x if signed else x % 2**bits)
            assert value == rounded(exact, "float64" if target == "double" else "float32", mode), x
        return
    halves = [
        -2.5,
        -1.5,
        -0.5,
        0.5,
        1.5,
        2.5,
        0.1,
        -0.1,
        7.999,
        -7.999,
        3e9,
        -3e9,
        5e9,
        1e19,
        -1e19,
        3e38,
        -3e38,
        1 / 3,
    ]
    halves += [1e-310, -1e-40, HUGE, 0.0] if source == "double" else [1e-45, 0.0]
    (numbers,), (got,) = apply(name, halves)
    for x, value in zip(numbers, got, strict=True):
        if target == "float":
            assert same(value, rounded(Fraction(x), "float32", mode)), x
            continue
        bits, signed = INTEGER[target]
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        whole = {"rn": round, "rd": math.floor, "ru": math.ceil, "rz": math.trunc}[mode](x)
        wanted = min(max(whole, low), high)
        assert (value - wanted) % 2**bits == 0, (x, value, wanted)


# ----------------------------------------------------------------------------------------------- exact functions


def away(x):
    return math.copysign(math.floor(Fraction(abs(x)) + Fraction(1, 2)), x)


def to_even(x):
    return math.copysign(abs(round(x)), x)


EXACT_OF_ONE = {
    "ceil": lambda x: math.copysign(abs(math.ceil(x)), x), "floor": lambda x: math.copysign(abs(math.floor(x)), x),
    "trunc": lambda x: math.copysign(abs(math.trunc(x)), x), "rint": to_even, "nearbyint": to_even, "round": away,
    "fabs": abs, "logb": lambda x: float(math.frexp(x)[1] - 1), "llrint": round, "llround": lambda x: int(away(x)),
    "ilogb": lambda x: math.frexp(x)[1] - 1,
}  # fmt: skip


@pytest.mark.parametrize("name", [*EXACT_OF_ONE, *(f"{name}f" for name in EXACT_OF_ONE)])
def test_exact_function_of_a_float(name):
    function = EXACT_OF_ONE.get(name) or EXACT_OF_ONE[name[:-1]]
    points = [*POINTS, 2.5, -3.5, 1e17, -0.49999997, 8388609.0, 4503599627370497.0]
    (points,), (got,) = apply(name, [x for x in points if name[-1] != "f" or abs(x) > 1e-37])
    for x, value in zip(points, got, strict=True):
        assert same(float(value), float(function(x))), (x, value)


def test_exact_functions_at_their_ends():
    inf, nan, lowest = math.inf, math.nan, -(2**31)
    for suffix in ("", "f"):
        for name in ("ceil", "floor", "trunc", "rint", "nearbyint", "round"):
            _, (got,) = apply(name + suffix, [0.0, -0.0, inf, -inf, nan])
            assert all(same(a, b) for a, b in zip(got, [0.0, -0.0, inf, -inf, nan], strict=True)), name
        _, (got,) = apply("logb" + suffix, [0.0, inf, -inf, nan, 1.0])
        assert got[:3] == [-inf, inf, inf]
        assert math.isnan(got[3])
        assert apply("ilogb" + suffix, [0.0, inf, nan])[1] == [[lowest, 2**31 - 1, lowest]]
        for name, wanted in (("isnan", [0, 0, 1]), ("isinf", [0, 1, 0])):
            assert [bool(v) for v in apply(name + (suffix or "d"), [1.0, -inf, nan])[1][0]] == [bool(v) for v in wanted]
        assert [bool(v) for v in apply("signbit" + (suffix or "d"), [1.0, -0.0, -3.0])[1][0]] == [False, True, True]
    assert [bool(v) for v in apply("finitef", [1.0, inf, nan])[1][0]] == [True, False, False]
    assert [bool(v) for v in apply("isfinited", [1.0, inf, nan])[1][0]] == [True, False, False]
    assert apply("saturatef", [-1.0, 0.25, 7.0, nan, inf])[1] == [[0.0, 0.25, 1.0, 0.0, 1.0]]


EXACT_OF_TWO = {
    "copysign": math.copysign, "fmod": math.fmod, "remainder": math.remainder, "fmax": max, "fmin": min,
    "fdim": lambda a, b: a - b if a > b else 0.0,
}  # fmt: skip


@pytest.mark.parametrize("name", [*EXACT_OF_TWO, *(f"{name}f" for name in EXACT_OF_TWO)])
def test_exact_function_of_two_floats(name):
    rows = [(a, b) for a in PAIRS[:8] for b in (1.0, -0.3, 2.5, 1e4, 0.125)]
    (xs, ys), (got,) = apply(name, *zip(*rows, strict=True))
    function, kind = EXACT_OF_TWO.get(name) or EXACT_OF_TWO[name[:-1]], FUNCTIONS[name].results[0]
    for x, y, value in zip(xs, ys, got, strict=True):
        assert value == float(np.dtype(kind).type(function(x, y))), (x, y, value)


def test_two_floats_of_which_one_is_nan():
    for suffix in ("", "f"):
        for name in ("fmax", "fmin"):
            assert apply(name + suffix, [math.nan, 1.0], [2.0, math.nan])[1] == [[2.0, 1.0]]
        assert math.isnan(apply("fdim" + suffix, [math.nan], [1.0])[1][0][0])
        _, (got,) = apply("nextafter" + suffix, [1.0, 0.0, 1.0, math.nan], [2.0, -1.0, 1.0, 1.0])
        step, least = (2.0**-23, 2.0**-149) if suffix else (2.0**-52, TINY)
        assert got[:3] == [1.0 + step, -least, 1.0]
        assert math.isnan(got[3])
    assert apply("fast_fdividef", [1.0, 6.0, 5.0], [2.0**127, 2.0, -0.3])[1][0][:2] == [0.0, 3.0]


@pytest.mark.parametrize("suffix", ["", "f"])
def test_functions_with_two_results_or_an_integer(suffix):
    points = [0.75, -3.5, 1e10, 1e-5, 0.0, -2.0]
    (xs,), (mantissas, exponents) = apply(f"frexp{suffix}", points)
    assert list(zip(mantissas, exponents, strict=True)) == [math.frexp(x) for x in xs]
    (xs,), (fractions, wholes) = apply(f"modf{suffix}", points)
    assert list(zip(fractions, wholes, strict=True)) == [math.modf(x) for x in xs]
    for name in ("ldexp", "scalbn"):
        (xs, ns), (got,) = apply(name + suffix, points, [3, -2, 20, -140, 7, 100])
        kind = FUNCTIONS[name + suffix].results[0]
        assert got == [rounded(Fraction(x) * Fraction(2) ** n, kind) for x, n in zip(xs, ns, strict=True)]
    (xs, ns), (got,) = apply(f"powi{suffix}", [1.5, -2.5, 0.3, 3.0, 7.0], [3, -3, 10, 0, 20])
    kind = FUNCTIONS[f"powi{suffix}"].results[0]
    for x, n, value in zip(xs, ns, got, strict=True):
        assert errors_in_ulps(value, mp.power(mp.mpf(x), n), kind) <= max(label(f"powi{suffix}"), 0.5)
    rows = [(5.0, 2.0), (7.0, 2.0), (-29.5, 3.0), (1e10, 0.7), (2.5, -1.0), (-0.3, 7.0)]
    (xs, ys), (rests, quotients) = apply(f"remquo{suffix}", *zip(*rows, strict=True))
    for x, y, rest, quotient in zip(xs, ys, rests, quotients, strict=True):
        whole = round(Fraction(x) / Fraction(y))
        assert rest == math.remainder(x, y)
        assert quotient == math.copysign(abs(whole) % 8, whole)


def test_bits_of_floats():
    numbers = [1.0, -2.5, 1e-40, math.inf, -0.0]
    (xs,), (got,) = apply("float_as_int", numbers)
    assert got == np.array(xs, np.float32).view(np.int32).tolist()
    assert apply("int_as_float", got)[1][0] == np.array(xs, np.float32).tolist()
    (xs,), (got,) = apply("double_as_longlong", numbers)
    bits = np.array(xs).view(np.int64)
    assert got == bits.tolist()
    assert apply("longlong_as_double", got)[1][0] == xs
    assert apply("double2hiint", xs)[1][0] == (bits >> 32).tolist()
    low = (bits & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    assert apply("double2loint", [0.1, *xs[1:]])[1][0][0] == np.array([0.1]).view(np.int32)[0]
    assert apply("hiloint2double", (bits >> 32).tolist(), low.tolist())[1][0] == xs
    halves = np.array([1.0, -2.5, 65504.0, 1e6, 6e-8, 0.1], np.float32)
    with np.errstate(over="ignore"):
        expected = halves.astype(np.float16)
    assert apply("float2half_rn", halves)[1][0] == expected.view(np.int16).tolist()
    assert apply("half2float", expected.view(np.int16))[1][0] == expected.astype(np.float32).tolist()


def signed(value, bits=32):
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def permuted(a, b, selector):
    chosen = (a % 2**32 | (b % 2**32) << 32).to_bytes(8, "little")
    return int.from_bytes(bytes(chosen[(selector >> (4 * i)) & 7] for i in range(4)), "little")


U32, U64 = 2**32, 2**64
INTEGERS = {
    "abs": abs, "llabs": abs, "brev": lambda x: int(f"{x % U32:032b}"[::-1], 2),
    "brevll": lambda x: int(f"{x % U64:064b}"[::-1], 2), "clz": lambda x: 32 - (x % U32).bit_length(),
    "clzll": lambda x: 64 - (x % U64).bit_length(), "ffs": lambda x: ((x & -x) % U32).bit_length(),
    "ffsll": lambda x: ((x & -x) % U64).bit_length(), "popc": lambda x: (x % U32).bit_count(),
    "popcll": lambda x: (x % U64).bit_count(), "hadd": lambda a, b: (a + b) >> 1,
    "rhadd": lambda a, b: (a + b + 1) >> 1,
    "uhadd": lambda a, b: (a % U32 + b % U32) >> 1, "urhadd": lambda a, b: (a % U32 + b % U32 + 1) >> 1,
    "max": max, "min": min, "llmax": max, "llmin": min, "umax": lambda a, b: max(a % U32, b % U32),
    "umin": lambda a, b: min(a % U32, b % U32), "ullmax": lambda a, b: max(a % U64, b % U64),
    "ullmin": lambda a, b: min(a % U64, b % U64), "mul24": lambda a, b: signed(a, 24) * signed(b, 24),
    "umul24": lambda a, b: a % 2**24 * (b % 2**24), "mulhi": lambda a, b: (a * b) >> 32,
    "umulhi": lambda a, b: (a % U32 * (b % U32)) >> 32, "mul64hi": lambda a, b: (a * b) >> 64,
    "umul64hi": lambda a, b: (a % U64 * (b % U64)) >> 64, "byte_perm": permuted,
    "sad": lambda a, b, c: abs(a - b) + c, "usad": lambda a, b, c: abs(a % U32 - b % U32) + c,
}  # fmt: skip


@pytest.mark.parametrize("name", INTEGERS)
def test_function_of_integers(name):
    kinds = FUNCTIONS[name].args
    words = WORDS if kinds[0] == "int32" else LONG_WORDS
    rows = [(a, b, c)[: len(kinds)] for a in words for b in (words if len(kinds) > 1 else [0]) for c in (0x6420, -3)]
    columns, (got,) = apply(name, *zip(*rows, strict=True))
    bits = 64 if FUNCTIONS[name].results[0] == "int64" else 32
    assert got == [signed(INTEGERS[name](*row), bits) for row in zip(*columns, strict=True)]


# ------------------------------------------------------------------------------------------------------- the list


def test_every_function_of_numba_cuda_is_known_and_tested():
    assert set(FUNCTIONS) == {name.removeprefix("__nv_") for name in libdevicefuncs.functions}
    for name, function in FUNCTIONS.items():
        assert (function.engine, function.operands[0]) in INTRINSICS, (name, function)
    pairs = ["sincos", "sincospi", "frexp", "modf", "remquo", "nextafter", "ldexp", "scalbn", "powi", "jn", "yn",
             "atan2", "hypot", "pow"]  # fmt: skip
    tested = {
        *REAL_NAMES, *ARITHMETIC, *CONVERSIONS, *INTEGERS, *(n + s for n in (*EXACT_OF_ONE, *EXACT_OF_TWO, *pairs)
        for s in ("", "f")), "fast_powf", "fast_sincosf", "fast_fdividef", "finitef", "isfinited", "isinfd", "isinff",
        "isnand", "isnanf", "signbitd", "signbitf", "saturatef", "float_as_int", "int_as_float", "double_as_longlong",
        "longlong_as_double", "double2hiint", "double2loint", "hiloint2double", "float2half_rn", "half2float",
    }  # fmt: skip
    assert set(FUNCTIONS) == tested


def test_arguments_are_converted():
    def of_integer(x, out):
        i = cuda.grid(1)
        out[i] = libdevice.sqrtf(x[i]) + cuda.libdevice.sqrt(x[i])

    out = np.zeros(2)
    launch_clean(of_integer, 1, 2, np.array([4, 9]), out)
    assert out.tolist() == [4.0, 6.0]
