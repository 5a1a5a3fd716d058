"""Rounding against two definitions that share nothing with it: a sorted list of all values, and Fractions."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.formats import FORMATS, ROUNDINGS, next_down, next_up, round_to, spacing

# name: (exponent bits, mantissa bits, bias, largest finite value, what lies beyond), as their specifications say
# (IEEE 754; OCP 8-bit floating point; OCP microscaling formats; the fnuz formats of Graphcore and AMD).
SPECIFIED = {
    "float16": (5, 10, 15, 65504.0, "inf"),
    "bfloat16": (8, 7, 127, 255 * 2.0**120, "inf"),
    "float8_e4m3fn": (4, 3, 7, 448.0, "nan"),
    "float8_e4m3fnuz": (4, 3, 8, 240.0, "nan"),
    "float8_e5m2": (5, 2, 15, 57344.0, "inf"),
    "float8_e5m2fnuz": (5, 2, 16, 57344.0, "nan"),
    "float6_e2m3fn": (2, 3, 1, 7.5, "nothing"),
    "float6_e3m2fn": (3, 2, 3, 28.0, "nothing"),
    "float4_e2m1fn": (2, 1, 1, 6.0, "nothing"),
}
NO_NEGATIVE_ZERO = {"float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "int8", "int4"}
MINIFLOATS = list(SPECIFIED)
SYMMETRIC = ["float64", "float32", *MINIFLOATS]
EXTREMES = [5e-324, 2.0**-1022, 1e-200, 1e100, 1.7976931348623157e308, np.inf]


@cache
def magnitudes(name: str) -> np.ndarray:
    """All finite magnitudes of a format in order, and one more: the next if the exponent had no bound."""
    exponent_bits, mantissa_bits, bias, largest, _ = SPECIFIED[name]
    found = []
    for field in range(2**exponent_bits + 1):
        for mantissa in range(2**mantissa_bits):
            hidden = 2**mantissa_bits if field else 0
            value = (hidden + mantissa) * 2.0 ** (max(field, 1) - bias - mantissa_bits)
            found.append(value)
            if value > largest:
                return np.array(found)
    raise AssertionError(f"{name} never exceeds {largest}")


@cache
def line(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All finite values in order with one step beyond at either end, and which of them are even."""
    if name in ("int8", "int4"):
        bits = int(name[3:])
        values = np.arange(-(2.0 ** (bits - 1)) - 1, 2.0 ** (bits - 1) + 1)
        return values, values % 2 == 0
    positive = magnitudes(name)
    even = np.arange(positive.size) % 2 == 0
    return np.concatenate([-positive[:0:-1], positive]), np.concatenate([even[:0:-1], even])


def hard_inputs(values: np.ndarray) -> np.ndarray:
    """Every value, every midpoint between neighbours, one float64 step to either side of both, and the extremes."""
    centres = np.concatenate([values, (values[1:] + values[:-1]) / 2])
    x = np.concatenate([centres, np.nextafter(centres, np.inf), np.nextafter(centres, -np.inf), EXTREMES])
    return np.concatenate([x, -x])


def choose(x: np.ndarray, low: np.ndarray, high: np.ndarray, low_even: np.ndarray, rounding: str) -> np.ndarray:
    """Which of two neighbours around x is right: True for the higher."""
    if rounding == "up":
        return x > low
    if rounding == "down":
        return x >= high
    if rounding == "toward_zero":
        return np.where(x > 0, x >= high, x > low)
    below, above = x - low, high - x  # exact: the two are within a factor of two, or low or high is 0
    if rounding == "nearest_even":
        return (above < below) | ((above == below) & ~low_even)
    return (above < below) | ((above == below) & (x > 0))


def by_definition(x: np.ndarray, name: str, rounding: str, saturate: bool) -> np.ndarray:
    """The definition of rounding, by search in the list of all values."""
    values, even = line(name)
    inside = np.clip(x, np.nextafter(values[0], np.inf), np.nextafter(values[-1], -np.inf))
    index = np.clip(np.searchsorted(values, inside, side="right") - 1, 0, values.size - 2)
    index = index + choose(inside, values[index], values[index + 1], even[index], rounding)
    result = values[index]
    outside = (index == 0) | (index == values.size - 1) | np.isinf(x)
    if saturate:
        result = np.where(outside, np.where(x > 0, values[-2], values[1]), result)
    else:
        result = np.where(outside, np.copysign(np.inf if SPECIFIED[name][4] == "inf" else np.nan, x), result)
    return np.where(result == 0, 0.0 if name in NO_NEGATIVE_ZERO else np.copysign(0.0, x), result)


def assert_identical(got: np.ndarray, expected: np.ndarray, x: np.ndarray) -> None:
    """Equal values, equal signs of zeros, NaN in the same places."""
    same = ((got == expected) & (np.signbit(got) == np.signbit(expected))) | (np.isnan(got) & np.isnan(expected))
    wrong = np.flatnonzero(~same)
    assert wrong.size == 0, (
        f"{wrong.size} wrong; first: {x[wrong[0]].hex()} -> {got[wrong[0]]}, not {expected[wrong[0]]}"
    )


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("name", [*MINIFLOATS, "int8", "int4"])
def test_every_value_every_midpoint_and_their_surroundings(name: str, rounding: str) -> None:
    x = hard_inputs(line(name)[0])
    assert_identical(round_to(x, name, rounding, saturate=True), by_definition(x, name, rounding, True), x)
    default = FORMATS[name].overflow == "saturate"
    assert_identical(round_to(x, name, rounding), by_definition(x, name, rounding, default), x)
    if FORMATS[name].has_nan:
        assert_identical(round_to(x, name, rounding, saturate=False), by_definition(x, name, rounding, False), x)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("saturate", [True, False])
def test_e8m0_takes_ties_upwards_and_has_no_zero(rounding: str, saturate: bool) -> None:
    powers = 2.0 ** np.arange(-127, 129)
    low, high = powers[:-1], powers[1:]
    beyond = powers[-2] if saturate else np.nan
    for x in (low, low * 1.5, np.nextafter(low * 1.5, 0), np.nextafter(low * 1.5, np.inf), np.nextafter(high, 0)):
        if rounding in ("toward_zero", "down"):
            expected = low
        elif rounding == "up":
            expected = np.where(x > low, high, low)
        else:
            expected = np.where(x >= low * 1.5, high, low)
        expected = np.where(expected > powers[-2], beyond, expected)
        assert_identical(round_to(x, "float8_e8m0fnu", rounding, saturate), expected, x)

    below = np.array([5e-324, 2.0**-129, 2.0**-128, 2.0**-127 - 2.0**-150])
    has_a_floor = saturate or rounding not in ("toward_zero", "down")
    expected = np.full(4, powers[0] if has_a_floor else np.nan)
    assert_identical(round_to(below, "float8_e8m0fnu", rounding, saturate), expected, below)

    never = np.array([0.0, -0.0, -1.0, -1e300, -np.inf])
    expected = np.full(5, powers[0] if saturate else np.nan)
    assert_identical(round_to(never, "float8_e8m0fnu", rounding, saturate), expected, never)
    assert_identical(round_to(np.array([np.inf]), "float8_e8m0fnu", rounding, saturate), np.array([beyond]), never)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_float32_at_neighbours_midpoints_and_their_surroundings(rounding: str) -> None:
    codes = np.random.default_rng(32).integers(0, 0x7F7F_FFFF, 40_000, dtype=np.uint32)
    codes[:20_000] >>= np.arange(20_000, dtype=np.uint32) % 24  # small ones: subnormals
    codes[:6] = 0, 1, 2, 0x007F_FFFF, 0x0080_0000, 0x7F7F_FFFE
    low, high = codes.view(np.float32).astype(float), (codes + 1).view(np.float32).astype(float)
    middle = (low + high) / 2
    for x in (low, middle, np.nextafter(low, np.inf), np.nextafter(middle, 0), np.nextafter(middle, np.inf)):
        for sign in (1.0, -1.0):
            if sign > 0:
                expected = np.where(choose(x, low, high, codes % 2 == 0, rounding), high, low)
            else:
                expected = np.where(choose(-x, -high, -low, codes % 2 == 1, rounding), -low, -high)
            expected = np.where(expected == 0, sign * 0.0, expected)
            assert_identical(round_to(sign * x, "float32", rounding), expected, sign * x)


@pytest.mark.parametrize(
    ("rounding", "positive", "negative"),
    [
        ("nearest_even", np.inf, -np.inf),
        ("nearest_away", np.inf, -np.inf),
        ("toward_zero", 1, -1),
        ("up", np.inf, -1),
        ("down", 1, -np.inf),
    ],
)
def test_float32_overflow(rounding: str, positive: float, negative: float) -> None:
    largest = FORMATS["float32"].max
    half = largest + 2.0**103  # midway to the next if the exponent had no bound: a tie, to even is away
    for x in (half, 1e39, 1.7e308):
        assert round_to(x, "float32", rounding) == (largest if positive == 1 else positive)
        assert round_to(-x, "float32", rounding) == (-largest if negative == -1 else negative)
        assert round_to([x, -x, np.inf, -np.inf], "float32", rounding, saturate=True).tolist() == [
            largest,
            -largest,
            largest,
            -largest,
        ]
    assert round_to([np.inf, -np.inf], "float32", rounding).tolist() == [np.inf, -np.inf]
    if rounding.startswith("nearest"):
        assert round_to(np.nextafter(half, 0), "float32", rounding) == largest


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_float64_is_the_identity(rounding: str) -> None:
    x = np.array([0.0, -0.0, 5e-324, -1.7976931348623157e308, np.inf, np.nan, 1 / 3])
    got = round_to(x, "float64", rounding)
    assert_identical(got, x, x)
    assert not np.shares_memory(got, x)
    assert round_to([np.inf, -np.inf], "float64", rounding, saturate=True).tolist() == [x[3] * -1, x[3]]


def test_bfloat16_is_rounded_once() -> None:
    """By way of float32 it would be 1."""
    assert round_to(1 + 2.0**-8 + 2.0**-40, "bfloat16") == 1.0078125


@pytest.mark.parametrize("name", [name for name, format in FORMATS.items() if format.has_nan])
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_nan_stays_nan(name: str, rounding: str) -> None:
    signalling = np.array([0x7FF0_0000_0000_0001, 0xFFF8_0000_0000_0000], np.uint64).view(np.float64)
    for saturate in (True, False):
        assert np.isnan(round_to([np.nan, -np.nan, *signalling], name, rounding, saturate)).all()


@pytest.mark.parametrize("name", ["int8", "int4", "uint4", "float4_e2m1fn", "float6_e2m3fn"])
def test_nan_is_refused_where_the_format_has_none(name: str) -> None:
    with pytest.raises(ValueError, match=rf"NaN at index \(1, 0\): {name} has no NaN"):
        round_to([[1.0, 2.0], [np.nan, np.nan]], name)
    with pytest.raises(ValueError, match=f"{name} has neither infinity nor NaN"):
        round_to([1.0], name, saturate=False)


# ---------------------------------------------------------------------------------------------- neighbours


@pytest.mark.parametrize("name", MINIFLOATS)
def test_spacing_is_the_distance_to_the_next_larger_magnitude(name: str) -> None:
    values = magnitudes(name)
    step = np.diff(values)
    assert np.array_equal(spacing(values[:-1], name), step)
    assert np.array_equal(spacing(-values[:-1], name), step)
    assert np.array_equal(spacing(np.nextafter(values[1:], 0), name), step)
    assert spacing([0.0, 5e-324], name).tolist() == [FORMATS[name].min_subnormal] * 2
    assert spacing([1e300, np.inf, -np.inf], name).tolist() == [step[-1]] * 3
    assert np.isnan(spacing(np.nan, name))


def test_spacing_of_the_other_formats() -> None:
    assert spacing([0.0, 0.3, 100.0, 1e9], "int8").tolist() == [1.0] * 4
    assert spacing([1.0, 3.0, 2.0**-127, 0.0], "float8_e8m0fnu").tolist() == [1.0, 2.0, 2.0**-127, 2.0**-127]
    x = np.array([0.0, 1e-310, 1.0, 1.5, 3e38, 1e308])
    assert np.array_equal(spacing(x, "float64"), np.spacing(x))
    assert np.array_equal(spacing(x[:-1], "float32"), np.spacing(x[:-1].astype(np.float32)).astype(float))


@pytest.mark.parametrize("name", [*MINIFLOATS, "int8", "int4"])
def test_next_up_and_down_walk_the_line(name: str) -> None:
    values = line(name)[0][1:-1]
    middle = (values[1:] + values[:-1]) / 2
    assert np.array_equal(next_up(values[:-1], name), values[1:])
    assert np.array_equal(next_up(middle, name), values[1:])
    assert np.array_equal(next_down(values[1:], name), values[:-1])
    assert np.array_equal(next_down(middle, name), values[:-1])
    beyond = np.inf if FORMATS[name].has_infinity else values[-1]
    assert next_up(values[-1], name) == beyond
    assert next_up(-np.inf, name) == values[0]


# ---------------------------------------------------------------------------------------------- properties


@st.composite
def formats_and_values(draw: st.DrawFn, names: list[str], count: int = 1) -> tuple:
    """A format and float64 values, half of them on or next to a value or a midpoint near the format's range."""
    name = draw(st.sampled_from(names))
    format = FORMATS[name]
    values = []
    for _ in range(count):
        if draw(st.booleans()):
            values.append(draw(st.floats(allow_nan=False)))
            continue
        low = math.frexp(format.min_subnormal)[1] - 3
        exponent = draw(st.integers(low, min(math.frexp(format.max)[1] + 1, 1023)))
        bits = format.precision + 1
        x = math.ldexp(draw(st.integers(-(2**bits), 2**bits)), exponent - bits)
        values.append(float(np.nextafter(x, draw(st.sampled_from([x, np.inf, -np.inf])))))
    return name, *values


def exactly(x: float, name: str, rounding: str) -> Fraction | None:
    """The definition of rounding in exact arithmetic; None beyond the range."""
    format = FORMATS[name]
    exact = Fraction(x)
    step = Fraction(format.min_subnormal)
    if not format.is_integer:
        step = max(step, Fraction(2) ** (math.frexp(x)[1] - format.precision))
    down = exact // step
    rest = exact / step - down
    if rounding == "nearest_even":
        rounded = round(exact / step)
    elif rounding == "nearest_away":
        rounded = down + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and exact > 0))
    elif rounding == "toward_zero":
        rounded = down + (exact < 0 and rest > 0)
    else:
        rounded = down + (rounding == "up" and rest > 0)
    result = rounded * step
    return result if Fraction(format.lowest) <= result <= Fraction(format.max) else None


@settings(deadline=None, max_examples=600)
@given(formats_and_values([*SYMMETRIC, "int8", "int4"]), st.sampled_from(ROUNDINGS))
def test_rounding_is_what_fractions_say(drawn: tuple[str, float], rounding: str) -> None:
    name, x = drawn
    if np.isinf(x):
        return
    expected = exactly(x, name, rounding)
    got = float(round_to(x, name, rounding, saturate=True))
    if expected is None:
        assert got == (FORMATS[name].max if x > 0 else FORMATS[name].lowest)
    else:
        assert Fraction(got) == expected


@settings(deadline=None, max_examples=300)
@given(formats_and_values([*FORMATS], count=2), st.sampled_from(ROUNDINGS))
def test_rounding_is_monotone_and_idempotent(drawn: tuple[str, float, float], rounding: str) -> None:
    name, x, y = drawn
    low, high = round_to([min(x, y), max(x, y)], name, rounding)
    assert low <= high
    assert round_to([low, high], name, rounding).tolist() == [low, high]


@settings(deadline=None, max_examples=300)
@given(formats_and_values(SYMMETRIC), st.sampled_from(ROUNDINGS))
def test_rounding_is_symmetric_in_sign(drawn: tuple[str, float], rounding: str) -> None:
    name, x = drawn
    mirrored = {"up": "down", "down": "up"}.get(rounding, rounding)
    assert float(round_to(-x, name, mirrored)) == -float(round_to(x, name, rounding))


@settings(deadline=None, max_examples=300)
@given(formats_and_values([name for name in FORMATS if name != "float8_e8m0fnu"]), st.sampled_from(ROUNDINGS))
def test_the_error_is_bounded_by_the_spacing(drawn: tuple[str, float], rounding: str) -> None:
    name, x = drawn
    format = FORMATS[name]
    if not format.lowest <= x <= format.max:
        return
    rounded = float(round_to(x, name, rounding, saturate=True))
    error = abs(Fraction(rounded) - Fraction(x))
    step = Fraction(float(spacing(x, name)))
    assert error <= step / 2 if rounding.startswith("nearest") else error < step
    if rounding in ("down", "up"):
        assert (rounded <= x) if rounding == "down" else (rounded >= x)


# ---------------------------------------------------------------------------------------------- arrays


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_shape_and_memory_layout_do_not_matter(name: str, rounding: str) -> None:
    big = np.random.default_rng(5).standard_normal((3, 2, 20_000)) * 50  # more than one pass
    kept = big.copy()
    got = round_to(big, name, rounding)
    assert got.dtype == np.float64
    assert got.shape == big.shape
    assert np.array_equal(big, kept)
    turned = round_to(big.T[::-3], name, rounding)
    assert np.array_equal(turned, got.T[::-3])
    for index in [(0, 0, 0), (1, 1, 16_383), (2, 1, 19_999)]:
        single = round_to(big[index], name, rounding)
        assert isinstance(single, np.ndarray)
        assert single.shape == ()
        assert single == got[index]
    assert round_to(np.empty((0, 4)), name, rounding).shape == (0, 4)
    assert spacing(np.empty((0, 4)), name).shape == (0, 4)
    assert np.array_equal(spacing(big.T, name), spacing(big, name).T)


@pytest.mark.parametrize("name", FORMATS)
def test_floating_point_errors_are_not_reported(name: str) -> None:
    with np.errstate(all="raise"):
        round_to([1e308, -1e308, 5e-324, np.inf, 1 / 3, 0.0], name)
        spacing([1e308, -1e308, 5e-324, np.inf, np.nan, 0.0], name)


@pytest.mark.parametrize(
    "dtype", [*(format.dtype for format in FORMATS.values()), np.int32, np.uint64, bool, ">f8", ">f2"]
)
def test_every_exact_dtype_is_taken(dtype: np.dtype) -> None:
    x = np.array([1, 1, 1], dtype)
    assert round_to(x, "bfloat16").tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1j], "complex128"),
        (["1"], "<U1"),
        ([2**53 + 1], r"int64 values beyond 2\*\*53"),
        ([-(2**63)], r"int64 values beyond 2\*\*53"),
        (np.ones(1, np.longdouble), "longdouble|float128"),
        ([None], "object"),
        (np.zeros(1, [("a", "f4")]), "'a'"),
    ],
)
def test_what_float64_does_not_hold_is_refused(x: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        round_to(x, "float32")  # type: ignore[arg-type]


def test_unknown_rounding_and_format_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown rounding 'nearest'; expected one of nearest_even"):
        round_to([1.0], "float32", "nearest")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown number format 'fp32'"):
        round_to([1.0], "fp32")
