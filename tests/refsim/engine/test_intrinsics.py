"""Element-wise functions of lane code against exact arithmetic, the C library and wider floats."""

from __future__ import annotations

import ctypes
import ctypes.util
import itertools
import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from refsim.engine.intrinsics import (
    CARRIER,
    INTRINSICS,
    binary,
    converter,
    function,
    implementation,
    intrinsic_name,
    wrapper,
)
from refsim.frontends import numba_scalars, numba_types
from refsim.frontends.numba_scalars import COMPARISONS, LOGIC

INTEGERS = {name: np.iinfo(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")}
SPECIAL = [0.0, -0.0, 0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 1e-40, 5e-324, 1e300, math.inf, -math.inf, math.nan]


@pytest.fixture(autouse=True)
def lane_state() -> Iterator[None]:
    """As lane code runs: no floating-point warnings."""
    with np.errstate(all="ignore"):
        yield


def carried(values: list[int], name: str) -> Any:
    return np.array(values, np.uint64 if name == "uint64" else np.int64)


def edge_integers(name: str) -> list[int]:
    lo, hi = int(INTEGERS[name].min), int(INTEGERS[name].max)
    wanted = {lo, lo + 1, -7, -3, -2, -1, 0, 1, 2, 3, 5, 7, 100, hi // 2, hi - 1, hi}
    return sorted(value for value in wanted if lo <= value <= hi)


def wrapped(value: int, name: str) -> int:
    bits = INTEGERS[name].bits
    value %= 1 << bits
    return value - (1 << bits) if INTEGERS[name].min < 0 and value >> (bits - 1) else value


def check_on_pairs(op: str, name: str, expected: Any, second: list[int] | None = None) -> None:
    """Arrays, arrays with a scalar on either side, and two scalars must all give what `expected` gives."""
    function = implementation(op, name)
    right = edge_integers(name) if second is None else second
    pairs = list(itertools.product(edge_integers(name), right))
    want = [expected(a, b) for a, b in pairs]
    a, b = carried([p[0] for p in pairs], name), carried([p[1] for p in pairs], name if second is None else "int64")
    got = function(a, b)
    assert got.dtype == a.dtype
    assert got.tolist() == want
    for (x, y), value in zip(pairs, want, strict=True):
        scalar = function(x, y)
        assert not isinstance(scalar, np.ndarray)
        assert scalar == value, (x, y)
        assert function(carried([x], name), y).tolist() == [value], (x, y)
        assert function(x, carried([y], name if second is None else "int64")).tolist() == [value], (x, y)


@pytest.mark.parametrize("name", INTEGERS)
def test_floor_division_and_modulo(name: str) -> None:
    lowest = int(INTEGERS[name].min)

    def quotient(a: int, b: int) -> int:
        return 0 if b == 0 or (a == lowest < 0 and b == -1) else a // b

    check_on_pairs("//", name, quotient)
    check_on_pairs("%", name, lambda a, b: a % b if b else 0)


@pytest.mark.parametrize("name", INTEGERS)
def test_shifts_clamp_their_amount(name: str) -> None:
    bits, signed = INTEGERS[name].bits, INTEGERS[name].min < 0
    amounts = [0, 1, bits - 1, bits, bits + 1, 63, 64, 200, -1, 1 << 32, (1 << 32) + 1]

    def left(a: int, b: int) -> int:
        return wrapped(a << (b % 2**32), name) if b % 2**32 < bits else 0

    def right(a: int, b: int) -> int:
        if b % 2**32 < bits:
            return a >> (b % 2**32)
        return -1 if signed and a < 0 else 0

    check_on_pairs("<<", name, left, amounts)
    check_on_pairs(">>", name, right, amounts)


@pytest.mark.parametrize("name", ["int32", "int64", "uint64"])
def test_integer_power_wraps(name: str) -> None:
    lowest = wrapped(1 << (INTEGERS[name].bits - 1), name)

    def power(a: int, b: int) -> int:
        if b < 0:
            return lowest if a == 0 else int(Fraction(a) ** b)
        return wrapped(a**b, name)

    check_on_pairs("**", name, power, [-3, -2, -1, 0, 1, 2, 3, 17, 63, 64])
    check_on_pairs("**", name, power, [0, 1, 2, 5, 40])


def test_a_huge_integer_power_goes_through_float() -> None:
    power = implementation("**", "int64")
    assert power(carried([0, 1, -1, 3], "int64"), 70001).tolist() == [0, 1, -1, 2**63 - 1]
    assert power(-3, 70001) == -(2**63)


@pytest.mark.parametrize("name", INTEGERS)
def test_bit_functions(name: str) -> None:
    bits = INTEGERS[name].bits
    values = edge_integers(name)

    def pattern(value: int) -> str:
        return format(value % (1 << bits), f"0{bits}b")

    expected = {
        "popc": [pattern(v).count("1") for v in values],
        "clz": [bits - len(pattern(v).lstrip("0")) for v in values],
        "ffs": [bits - pattern(v).rindex("1") if v else 0 for v in values],
        "brev": [wrapped(int(pattern(v)[::-1], 2), name) for v in values],
        "abs": [wrapped(abs(v), name) for v in values],
    }
    for op, want in expected.items():
        function = implementation(op, name)
        assert function(carried(values, name)).tolist() == want, op
        assert [function(v) for v in values] == want, op


@pytest.mark.parametrize("name", INTEGERS)
def test_minimum_and_maximum_of_integers(name: str) -> None:
    check_on_pairs("max", name, max)
    check_on_pairs("min", name, min)
    top = int(INTEGERS[name].max)
    assert implementation("max", name)(carried([1], name), 2, carried([top], name)).tolist() == [top]


@pytest.mark.parametrize("name", ["int64", "uint64"])
def test_true_division_of_integers_is_one_division_in_float64(name: str) -> None:
    divide = implementation("/", name)
    for a, b in itertools.product(edge_integers(name), repeat=2):
        want = np.float64(a) / np.float64(b)
        for got in (divide(a, b), divide(carried([a], name), b)[0], divide(a, carried([b], name))[0]):
            assert got.tobytes() == want.tobytes() or (np.isnan(got) and np.isnan(want))


def python_divmod(x: Any, y: Any) -> tuple[Any, Any]:
    """numba's division of floats, statement by statement, with the remainder of the GPU."""
    quotient = x / y
    if np.isfinite(quotient) and np.isfinite(y):
        mod = exact_fma(-float(np.trunc(quotient)), float(y), float(x), x.dtype.name)
    elif np.isinf(quotient) and np.isfinite(x) and y != 0:
        mod = np.copysign(x.dtype.type(math.inf), -x)  # the quotient overflowed
    else:
        mod = x.dtype.type(math.nan)
    if y == 0:
        return quotient, mod
    one = x.dtype.type(1)
    div = (x - mod) / y
    if mod != 0:
        if (y < 0) != (mod < 0):
            div, mod = div - one, mod + y
    else:
        mod = np.copysign(x.dtype.type(0), y)
    if div == 0 or np.isnan(div):
        return div * div * x / y, mod
    floor = np.floor(div)
    return (floor + one if div - floor > 0.5 else floor), mod


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_floor_division_and_modulo_of_floats(name: str) -> None:
    rng = np.random.default_rng(3)
    values = np.concatenate([np.array(SPECIAL), rng.normal(size=20), rng.integers(-9, 9, 10)]).astype(name)
    a, b = (side.ravel() for side in np.meshgrid(values, values))
    quotient, remainder = implementation("divmod", name)(a, b)
    for x, y, q, r in zip(a, b, quotient, remainder, strict=True):
        want_q, want_r = python_divmod(x, y)
        assert same(q, want_q), (x, y)
        assert same(r, want_r), (x, y)
    assert quotient.dtype == remainder.dtype == a.dtype
    i = np.flatnonzero(np.isfinite(quotient) & np.isfinite(remainder))[50]
    assert implementation("divmod", name)(a[i], b[i]) == (quotient[i], remainder[i])
    assert np.array_equal(implementation("//", name)(a, b), quotient, equal_nan=True)
    assert np.array_equal(implementation("%", name)(a, b), remainder, equal_nan=True)


def test_a_remainder_of_a_huge_quotient_is_the_gpus() -> None:
    """Results of an H200: ``frem`` of this target is not exact."""
    modulo = implementation("%", "float64")
    x = np.float64(1e30)
    assert modulo(x, np.float64(1.5)) == 70368744177664.0
    assert modulo(x, np.float64(2.5)) == -70368744177661.5
    assert implementation("%", "float32")(np.float32(1e30), np.float32(-0.3)) == np.float32(-3.973643e22)
    assert np.isnan(modulo(np.float64(1), np.float64(math.inf)))


def same(a: Any, b: Any) -> bool:
    """Equal bit for bit, any NaN equal to any other."""
    return bool((np.isnan(a) and np.isnan(b)) or (a == b and np.signbit(a) == np.signbit(b)))


def exact_fma(a: float, b: float, c: float, name: str) -> Any:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return np.dtype(name).type(math.copysign(0.0, a) * math.copysign(1.0, b) + c if 0 in (a, b) else 0.0)
    precision, low, high = (24, -149, 128) if name == "float32" else (53, -1074, 1024)
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    while Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - precision + 1, low)
    rounded = round(size / unit) * unit  # round() of a Fraction: ties to even
    value = math.inf if rounded >= Fraction(2) ** high else float(rounded)
    return np.dtype(name).type(math.copysign(value, exact))


def fma_operands(name: str) -> tuple[Any, Any, Any]:
    """Products near the addend, ties, cancellations, subnormals and the overflow threshold."""
    rng = np.random.default_rng(7)
    count = 6000
    bits, width = (np.uint32, 23) if name == "float32" else (np.uint64, 52)
    a, b = (rng.normal(size=count).astype(name) for _ in range(2))
    c = (-(a * b) * rng.choice([1.0, 1 + 2.0**-20, 2.0**-24, 2.0**24, 2.0**-53, 2.0**53], count)).astype(name)
    short = ~np.asarray((1 << (width // 2 + 1)) - 1, bits)  # few significant bits: products that are exact ties
    a[::2] = (a[::2].view(bits) & short).view(name)
    b[::2] = (b[::2].view(bits) & short).view(name)
    scale = np.ldexp(np.ones(count, name), rng.integers(-70 if name == "float32" else -530, 62, count))
    return np.concatenate([a, a * scale]), np.concatenate([b, b * scale]), np.concatenate([c, c * scale * scale])


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_fma_rounds_once(name: str) -> None:
    a, b, c = fma_operands(name)
    got = implementation("fma", name)(a, b, c)
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    assert finite.sum() > 10_000
    fused = 0
    for x, y, z, r in zip(a[finite], b[finite], c[finite], got[finite], strict=True):
        assert same(r, exact_fma(float(x), float(y), float(z), name)), (x, y, z)
        fused += bool(r != x * y + z)
    assert fused > 1000  # the operands do tell a fused operation from an unfused one
    one = implementation("fma", name)(a[0], b[0], c[0])
    assert isinstance(one, np.dtype(name).type)
    assert one == got[0]


def test_fma_is_the_c_librarys() -> None:
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    for name, symbol, kind in (("float32", "fmaf", ctypes.c_float), ("float64", "fma", ctypes.c_double)):
        function = getattr(library, symbol)
        function.argtypes, function.restype = [kind] * 3, kind
        large = float(np.finfo(name).max)
        values = np.array([*SPECIAL, large, -large, float(np.finfo(name).tiny), 1 + 2.0**-20], name)
        grid = [side.ravel() for side in np.meshgrid(values, values, values)]
        got = implementation("fma", name)(*grid)
        for x, y, z, r in zip(*grid, got, strict=True):
            assert same(r, np.dtype(name).type(function(float(x), float(y), float(z)))), (name, x, y, z)


def ulps(got: Any, want: Any, name: str) -> Any:
    """Distance in units of the last place of the result type, per element."""
    info = np.finfo(name)
    exponent = np.frexp(np.abs(want))[1]
    unit = np.ldexp(np.ones(want.shape, want.dtype), np.maximum(exponent - info.nmant - 1, info.minexp - info.nmant))
    usable = np.isfinite(want) & (np.abs(want) < float(info.max)) & np.isfinite(got)
    return np.where(usable, np.abs(got.astype(want.dtype) - want) / unit, 0.0)


def sample(name: str) -> Any:
    rng = np.random.default_rng(11)
    bits, kind = (32, np.uint32) if name == "float32" else (64, np.uint64)
    anything = rng.integers(0, 2**bits, 40_000, np.uint64).astype(kind).view(name)
    ranges = ((-20, 20), (-1, 1), (0, 2), (-200, 200))
    return np.concatenate([anything, *(rng.uniform(lo, hi, 40_000).astype(name) for lo, hi in ranges)])


WIDER = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "cbrt": np.cbrt, "cos": np.cos, "cosh": np.cosh, "exp": np.exp, "exp2": np.exp2,
    "expm1": np.expm1, "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "sin": np.sin,
    "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip


@pytest.mark.parametrize("op", WIDER)
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_elementary_functions_keep_their_bound(op: str, name: str) -> None:
    wider = np.float64 if name == "float32" else np.longdouble
    if np.finfo(wider).nmant <= np.finfo(name).nmant + 9:
        pytest.skip("long double is no wider than double on this platform")
    x = sample(name)
    got = implementation(op, name)(x)
    want = WIDER[op](x.astype(wider))
    assert got.dtype == name
    assert np.array_equal(np.isnan(got), np.isnan(want))
    assert ulps(got, want, name).max() <= INTRINSICS[op, name].ulps
    scalar = implementation(op, name)(x[50_000])
    assert isinstance(scalar, np.dtype(name).type)


@pytest.mark.parametrize("op", ["atan2", "hypot", "pow"])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_functions_of_two_keep_their_bound(op: str, name: str) -> None:
    wider = np.float64 if name == "float32" else np.longdouble
    if np.finfo(wider).nmant <= np.finfo(name).nmant + 9:
        pytest.skip("long double is no wider than double on this platform")
    x = sample(name)
    y = np.random.default_rng(2).permutation(x)
    got = implementation(op, name)(x, y)
    want = {"atan2": np.arctan2, "hypot": np.hypot, "pow": np.power}[op](x.astype(wider), y.astype(wider))
    assert got.dtype == name
    assert ulps(got, want, name).max() <= INTRINSICS[op, name].ulps


def decimal_erf(x: float) -> Decimal:
    """2/sqrt(pi) * exp(-x**2) * sum of 2**n x**(2n+1) / (2n+1)!!: every term is positive."""
    value = Decimal(x)
    term = total = value
    n = 0
    while abs(term) > abs(total) * Decimal(10) ** -420:
        n += 1
        term = term * 2 * value * value / (2 * n + 1)
        total += term
    pi = Decimal(0)
    for k in range(350):  # Bailey, Borwein and Plouffe
        pi += (
            Decimal(4) / (8 * k + 1) - Decimal(2) / (8 * k + 4) - Decimal(1) / (8 * k + 5) - Decimal(1) / (8 * k + 6)
        ) / Decimal(16) ** k
    return 2 / pi.sqrt() * (-value * value).exp() * total


def test_error_functions_against_exact_series() -> None:
    rng = np.random.default_rng(5)
    x = np.concatenate([[1e-300, 1e-9, 0.003, 0.49999, 0.5, 26.0], rng.uniform(0, 3, 40), rng.uniform(0, 26, 30)])
    got = {name: implementation(name, "float64")(x) for name in ("erf", "erfc")}
    with localcontext() as context:
        context.prec = 430
        for i, value in enumerate(x):
            exact = decimal_erf(float(value))
            for name, want in (("erf", exact), ("erfc", 1 - exact)):
                unit = Decimal(math.ulp(float(want)))
                error = abs(Decimal(float(got[name][i])) - want) / unit
                assert error <= INTRINSICS[name, "float64"].ulps, (name, value, float(error))


def test_error_functions_everywhere_else() -> None:
    x = np.concatenate([np.linspace(-30, 30, 60_001), np.array(SPECIAL)])
    for name, exact in (("erf", math.erf), ("erfc", math.erfc)):
        got = implementation(name, "float64")(x)
        want = np.array([exact(value) for value in x])
        assert np.array_equal(np.isnan(got), np.isnan(want))
        assert ulps(got, want, "float64").max() <= INTRINSICS[name, "float64"].ulps + 1
        narrow = implementation(name, "float32")(x.astype(np.float32))
        assert narrow.dtype == np.float32
        close = np.array([exact(float(value)) for value in x.astype(np.float32)])
        assert ulps(narrow, close, "float32").max() <= 0.51
    assert np.signbit(implementation("erf", "float64")(np.float64(-0.0)))


def test_gamma_functions_at_known_points_and_poles() -> None:
    gamma, lgamma = implementation("gamma", "float64"), implementation("lgamma", "float64")
    n = np.arange(1, 171)
    factorials = np.array([float(math.factorial(k - 1)) for k in n])
    assert ulps(gamma(n.astype(float)), factorials, "float64").max() <= 10
    assert same(gamma(np.float64(-0.0)), np.float64(-math.inf))
    assert np.isnan(gamma(np.array([-1.0, -math.inf, math.nan]))).all()
    assert np.isinf(gamma(np.array([180.0, math.inf, 0.0]))).all()
    assert lgamma(np.array([0.0, -3.0, -math.inf, math.inf])).tolist() == [math.inf] * 4
    assert np.allclose(lgamma(n.astype(float)), np.log(factorials), rtol=1e-14, atol=1e-14)
    assert implementation("gamma", "float32")(np.float32(5)) == np.float32(24)


def test_maximum_of_floats_skips_nan_and_orders_zeros() -> None:
    for name in ("float32", "float64"):
        a = np.array([math.nan, 1.0, math.nan, 0.0, -0.0, -0.0, 2.0], name)
        b = np.array([1.0, math.nan, math.nan, -0.0, 0.0, -0.0, 3.0], name)
        high, low = implementation("fmax", name)(a, b), implementation("fmin", name)(a, b)
        assert [same(x, y) for x, y in zip(high, [1, 1, math.nan, 0.0, 0.0, -0.0, 3], strict=True)] == [True] * 7
        assert [same(x, y) for x, y in zip(low, [1, 1, math.nan, -0.0, -0.0, -0.0, 2], strict=True)] == [True] * 7
        assert same(implementation("fmax", name)(a, a.dtype.type(0.0))[4], 0.0)


def test_numpy_maximum_takes_the_first_of_equals() -> None:
    a, b = np.array([math.nan, 1.0, -0.0, 0.0, 2.0]), np.array([1.0, math.nan, 0.0, -0.0, 3.0])
    want = {"maximum": [math.nan, math.nan, -0.0, 0.0, 3.0], "minimum": [math.nan, math.nan, -0.0, 0.0, 2.0],
            "fmax": [1.0, 1.0, -0.0, 0.0, 3.0], "fmin": [1.0, 1.0, -0.0, 0.0, 2.0]}  # fmt: skip
    for name, values in want.items():
        got = function(f"np.{name}", "float64")(a, b)
        assert all(same(x, y) for x, y in zip(got, values, strict=True)), name
    assert function("np.maximum", "bool")(True, np.array([False])).tolist() == [True]


def test_python_maximum_of_floats_compares_from_left_to_right() -> None:
    highest, lowest = implementation("max", "float32"), implementation("min", "float32")
    nan, one = np.float32(math.nan), np.float32(1)
    assert np.isnan(highest(np.array([nan]), one))[0]
    assert highest(one, np.array([nan])).tolist() == [1.0]
    assert np.isnan(lowest(nan, one))
    assert lowest(np.float32(3), np.array([2, 4], np.float32), np.float32(2.5)).tolist() == [2.0, 2.5]


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_float_to_an_integer_power_is_repeated_multiplication(name: str) -> None:
    power = implementation("**", name)
    x = np.array([1.1, -2.3, 0.7, 3.0, 0.0], name)
    assert np.array_equal(power(x, 3), x * (x * x))
    assert np.array_equal(power(x, 5), x * ((x * x) * (x * x)))
    assert np.array_equal(power(x, -2), (1.0 / (x * x).astype(np.float64)).astype(name))
    assert np.array_equal(power(x, 0), np.ones_like(x))
    mixed = power(x, np.array([3, 5, -2, 0, -1]))
    assert mixed.dtype == name
    assert mixed.tolist() == [power(x[i], n).item() for i, n in enumerate([3, 5, -2, 0, -1])]
    assert same(power(x[:1], 70000)[0], x.dtype.type(math.inf))


def test_round_is_to_even_and_saturates() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e30, math.nan], np.float32)
    want = [0, 2, 2, 0, -2, 2**63 - 1, -(2**63)]
    assert implementation("round", "float32")(x).tolist() == want
    assert [implementation("round", "float32")(value) for value in x] == want


def test_round_to_digits_is_pythons_for_short_decimals() -> None:
    rounded = implementation("round_digits", "float64")
    values = np.array([1.25, 2.346, 1234.5678, -0.06, 15.0, 25.0])
    for digits in (-1, 0, 1, 2, 3):
        assert rounded(values, digits).tolist() == [round(float(v), digits) for v in values]
    assert rounded(np.float64(-0.05), 1) == 0.0  # the scaled value is a tie; Python rounds the decimal to -0.1
    assert rounded(np.array([math.inf, math.nan]), 2).tolist()[0] == math.inf
    assert implementation("round_digits", "float32")(np.float32(1.26), 1) == np.float32(1.3)


def test_decompositions() -> None:
    x = np.array([3.5, -0.75, 0.0, 1e-42], np.float32)
    mantissa, exponent = implementation("frexp", "float32")(x)
    assert exponent.dtype == np.int64
    assert [(m, int(e)) for m, e in zip(mantissa.tolist(), exponent, strict=True)] == [
        math.frexp(v) for v in x.tolist()
    ]
    assert np.array_equal(implementation("ldexp", "float32")(mantissa, exponent), x)
    assert implementation("ldexp", "float64")(np.float64(1), 2**40) == math.inf
    fraction, whole = implementation("modf", "float64")(np.float64(-2.75))
    assert (fraction, whole) == (-0.75, -2.0)
    assert implementation("nextafter", "float32")(np.float32(1), np.float32(2)) == np.float32(1 + 2**-23)
    remainder = implementation("remainder", "float32")(np.array([5.0, 5.0, math.inf], np.float32), np.float32(3))
    assert remainder.dtype == np.float32
    assert remainder.tolist()[:2] == [-1.0, -1.0]
    assert math.isnan(remainder[2])


def test_angles_are_one_multiplication() -> None:
    x = np.array([1.0, 90.0, 200.0], np.float32)
    assert np.array_equal(implementation("radians", "float32")(x), np.float32(math.pi / 180) * x)
    assert implementation("degrees", "float64")(np.float64(2)) == 2 * (180 / math.pi)


def test_math_of_an_integer_is_in_float64() -> None:
    assert implementation("sqrt", "int64")(carried([4, 9], "int64")).tolist() == [2.0, 3.0]
    assert implementation("floor", "uint64")(2**64 - 1) == 2.0**64
    assert implementation("isnan", "int64")(carried([1, 2], "int64")).tolist() == [False, False]


def halves() -> Any:
    rng = np.random.default_rng(9)
    return np.concatenate([np.array([*SPECIAL[:7], math.inf, -math.inf, math.nan, 65504, 6e-8], np.float16),
                           rng.integers(0, 2**16, 20_000, np.uint64).astype(np.uint16).view(np.float16)])  # fmt: skip


@pytest.mark.parametrize("op", ["hadd", "hsub", "hmul", "hdiv", "hfma"])
def test_half_arithmetic_rounds_once(op: str) -> None:
    a, b, c = halves(), np.roll(halves(), 7), np.roll(halves(), 3)
    operands = [a, b, c] if op == "hfma" else [a, b]
    got = implementation(op, "float16")(*operands)
    assert got.dtype == np.float16
    extended = [each.astype(np.longdouble) for each in operands]
    x, y = extended[:2]
    want = {"hadd": x + y, "hsub": x - y, "hmul": x * y, "hdiv": x / y, "hfma": x * y + extended[-1]}[op]
    assert np.array_equal(got, want.astype(np.float64).astype(np.float16), equal_nan=True)


@pytest.mark.parametrize("op", ["hexp", "hexp2", "hexp10", "hlog", "hlog2", "hlog10", "hsin", "hcos", "htanh", "hsqrt",
                                "hrsqrt", "hrcp"])  # fmt: skip
def test_half_functions_are_rounded_once(op: str) -> None:
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    wide = x.astype(np.longdouble)
    want = {"hexp10": lambda v: np.power(np.longdouble(10), v), "hrsqrt": lambda v: 1 / np.sqrt(v),
            "hrcp": lambda v: 1 / v}.get(op) or getattr(np, op[1:])  # fmt: skip
    got, exact = implementation(op, "float16")(x), want(wide)
    assert got.dtype == np.float16
    assert np.array_equal(np.isnan(got), np.isnan(exact))
    assert ulps(got, exact, "float16").max() <= INTRINSICS[op, "float16"].ulps
    if op[1:] in ("exp", "log", "sin", "sqrt"):
        assert np.array_equal(implementation(op[1:], "float16")(x), got, equal_nan=True)


def test_half_comparisons_are_ordered() -> None:
    nan, one = np.array([math.nan], np.float16), np.array([1], np.float16)
    for op in ("heq", "hne", "hge", "hgt", "hle", "hlt"):
        assert implementation(op, "float16")(nan, one).tolist() == [False], op
    assert implementation("hne", "float16")(one, -one).tolist() == [True]
    assert implementation("hmax", "float16")(nan, one).tolist() == [1.0]


def test_selp_chooses_in_its_type() -> None:
    choose = implementation("selp", "uint64")
    assert choose(np.array([0, 5]), 2**64 - 1, 7).tolist() == [7, 2**64 - 1]
    assert implementation("selp", "float32")(0, np.float32(1), np.float32(2)) == 2


def test_names() -> None:
    assert intrinsic_name("math.exp") == "exp"
    assert intrinsic_name("np.arcsin") == "asin"
    assert intrinsic_name("np.fmax") == "numpy_fmax"
    assert intrinsic_name("cuda.fp16.hfma") == "hfma"
    with pytest.raises(KeyError, match="it exists on float32, float64"):
        implementation("fma", "int32")
    with pytest.raises(KeyError, match="no type"):
        implementation("frobnicate", "int32")


OPERATORS = {*COMPARISONS, *LOGIC, *numba_scalars.OPERATORS, "np.logical_not", "np.invert", "np.conjugate"}


def calls_of_the_table() -> list[tuple[str, tuple[str, ...], numba_types.Signature]]:
    """Every element-wise call that numba-cuda types, with the types that its arguments are converted to."""
    found = {}
    for name, arities in numba_types._calls().items():
        if "sync" in name or name in ("int", "float", "bool", "complex", "cuda.nanosleep") or name in OPERATORS:
            continue  # not element-wise, or a conversion, or an operator
        for arity in arities:
            for types in itertools.product(numba_types.SCALAR_TYPES, repeat=arity):
                try:
                    signature = numba_types.call(name, types)
                except numba_types.TypingError:
                    continue
                if name in ("pow", "np.power") and signature.result.startswith("complex"):
                    continue  # numba-cuda types it and has no code for it
                source = "log_base" if name == "cmath.log" and arity == 2 else name
                found[name, signature.args] = (source, signature.args, signature)
    return list(found.values())


def test_every_call_that_numba_types_has_an_implementation_of_its_result_type() -> None:
    count = 0
    for name, args, signature in calls_of_the_table():
        operands = [np.array([2, 3], CARRIER[kind]) for kind in args]
        for i, result in enumerate(signature.results):
            source = name if len(signature.results) == 1 else f"{name}.{i}"
            operand = args[-1] if name == "cuda.selp" else args[0]
            got = function(source, operand)(*operands)
            assert got.dtype == CARRIER[result], (name, args)
            assert got.shape == (2,)
            scalars = (value[0] if value.dtype.kind in "fcV" else value[0].item() for value in operands)
            scalar = function(source, operand)(*scalars)
            assert scalar == got[0] or (np.isnan(scalar) and np.isnan(got[0])), (name, args)
            count += 1
    assert count > 300


def test_every_operator_that_numba_types_has_an_implementation_of_its_result_type() -> None:
    for op in ("/", "//", "%", "**", "<<", ">>"):
        for a, b in itertools.product(numba_types.SCALAR_TYPES, repeat=2):
            try:
                signature = numba_types.binary(op, a, b)
            except numba_types.TypingError:
                continue
            if op == "**" and signature.result.startswith("complex"):
                continue  # numba-cuda types it and has no code for it
            operands = [np.array([2, 3], CARRIER[kind]) for kind in signature.args]
            got = binary(op, signature.args[0])(*operands)
            assert got.dtype == CARRIER[signature.result], (op, a, b)
            want = [eval(f"{x} {op} {x}") for x in (2, 3)]
            assert got.tolist() == pytest.approx(want)


def test_names_with_a_suffix() -> None:
    nan, one = np.array([math.nan]), np.float64(1)
    assert function("max.skips_nan", "float64")(nan, one).tolist() == [1.0]
    assert np.isnan(function("max", "float64")(nan, one))[0]
    assert function("math.frexp.1", "float32")(np.float32(8)) == 4
    assert function("divmod.0", "int64")(7, 2) == 3
    assert function("power.int64", "float32")(np.float32(3), 2) == 9
    assert function("pow", "float32")(np.float32(9), np.float32(0.5)) == 3
    assert function("round", "float64")(np.float64(2.5)) == 2
    assert function("round", "float64")(np.float64(2.25), 1) == 2.2
    assert converter("int8", "float32")(np.array([3])).dtype == np.float32
    assert wrapper("uint8")(np.array([256])).tolist() == [0]


def test_arguments_are_never_changed() -> None:
    rng = np.random.default_rng(1)
    for (name, kind), found in INTRINSICS.items():
        dtype = np.dtype(kind) if kind.startswith(("float", "bool", "uint64")) else np.dtype(np.int64)
        for count in (1, 2, 3):
            if isinstance(found.function, np.ufunc) and count != found.function.nin:
                continue
            operands = [rng.integers(0, 2, 5).astype(dtype) for _ in range(count)]
            before = [each.copy() for each in operands]
            try:
                found.function(*operands)
            except TypeError:  # another number of operands
                continue
            assert all(x.tobytes() == y.tobytes() for x, y in zip(operands, before, strict=True)), (name, kind)
