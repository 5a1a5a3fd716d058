"""Conversions between scalar types and wrap-around, on arrays and on scalars."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from refsim.engine.intrinsics import CARRIER, convert, wrap

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
TYPES = ["bool", *INTEGERS, *FLOATS]


@pytest.fixture(autouse=True)
def lane_state() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def samples(name: str) -> list[Any]:
    """Scalars of a type, as lanes hold a value that is the same in all of them."""
    if name == "bool":
        return [False, True]
    if name in FLOATS:
        values = [
            0.0,
            -0.0,
            0.5,
            -0.5,
            0.99,
            1.5,
            -1.5,
            127.9,
            128.0,
            -129.0,
            255.5,
            256.0,
            300.7,
            32768.0,
            -32769.0,
            65504,
        ]
        values += [2.0**31, -(2.0**31), 2.0**32, 2.0**53 - 1, 2.0**63, -(2.0**63), 2.0**64, 1e19, -1e19, 1e300]
        values += [math.inf, -math.inf, math.nan, 1e-40]
        return [np.dtype(name).type(value) for value in values]
    lo, hi = int(np.iinfo(name).min), int(np.iinfo(name).max)
    wanted = {lo, lo + 1, -129, -1, 0, 1, 127, 128, 255, 256, 2**24 + 1, 2**53 + 1, 2**62 + 2**38 + 1, hi - 1, hi}
    return sorted(value for value in wanted if lo <= value <= hi)


def equal(a: Any, b: Any) -> bool:
    return bool(a == b and np.signbit(float(a)) == np.signbit(float(b))) or (a != a and b != b)


@pytest.mark.parametrize(("source", "target"), list(itertools.product(TYPES, TYPES)))
def test_arrays_and_scalars_convert_alike_and_to_the_carrier(source: str, target: str) -> None:
    values = samples(source)
    array = np.array(values, CARRIER[source])
    kept = array.copy()
    got = convert(array, source, target)
    assert got.dtype == CARRIER[target]
    assert got.shape == array.shape
    assert np.array_equal(array, kept, equal_nan=source in FLOATS)
    for value, element in zip(values, got.tolist(), strict=True):
        scalar = convert(value, source, target)
        assert not isinstance(scalar, np.ndarray)
        kinds = {"bool": bool, **dict.fromkeys(INTEGERS, int)}
        assert type(scalar) is kinds.get(target, np.dtype(target).type)
        assert equal(scalar, element), value
        assert equal(convert(np.array([value], CARRIER[source]), source, target)[0], element), value


@pytest.mark.parametrize("name", INTEGERS)
def test_wrap_keeps_the_low_bits(name: str) -> None:
    info = np.iinfo(name)
    rng = np.random.default_rng(4)
    values = [*rng.integers(-(2**63), 2**63 - 1, 50).tolist(), 0, -1, 2**63 - 1, -(2**63), int(info.max), int(info.min)]
    for value in [*values, 2**64 + 5, -(2**70) - 3, 3 * 2**63]:
        got = wrap(value, name)
        assert type(got) is int
        assert info.min <= got <= info.max
        assert (got - value) % (1 << info.bits) == 0
    array = np.array([v for v in values if v < 2**63], np.int64)
    assert wrap(array, name).tolist() == [wrap(v, name) for v in array.tolist()]
    assert wrap(array, name).dtype == CARRIER[name]
    assert wrap(array.astype(np.uint64), name).tolist() == [wrap(v, name) for v in array.tolist()]
    assert wrap(True, name) == 1


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", ["int16", "int32", "int64", "uint16", "uint32", "uint64"])
def test_a_float_is_truncated_and_saturates_and_a_half_is_rounded(source: str, target: str) -> None:
    info = np.iinfo(target)
    for value in samples(source):
        got = convert(value, source, target)
        if math.isnan(value):
            top = wrap(1 << (info.bits - 1), target)
            assert got == (top if source == "float64" or info.bits == 64 else 0)
        elif math.isinf(value):
            assert got == (info.max if value > 0 else info.min)
        else:
            whole = round(float(value)) if source == "float16" else math.trunc(float(value))
            assert got == min(max(whole, int(info.min)), int(info.max)), value


def test_a_float_becomes_an_8_bit_integer_through_16_bits() -> None:
    assert convert(np.float32(300.7), "float32", "uint8") == 300 - 256
    assert convert(np.float32(-1), "float32", "uint8") == 0
    assert convert(np.float64(1e9), "float64", "int8") == -1
    assert convert(np.array([-129.0, 128.0]), "float64", "int8").tolist() == [127, -128]


def test_a_half_saturates_at_8_bits() -> None:
    halves = np.array([300.75, -129, 1.5, 2.5, math.nan, math.inf], np.float16)
    assert convert(halves, "float16", "int8").tolist() == [127, -128, 2, 2, 0, 127]
    assert convert(halves, "float16", "uint8").tolist() == [255, 0, 2, 2, 0, 255]


def nearest(value: int, precision: int) -> float:
    """The integer rounded to `precision` bits, ties to even."""
    shift = max(abs(value).bit_length() - precision, 0)
    return float(round(Fraction(value, 1 << shift)) << shift)


def test_an_integer_is_rounded_once_to_float32() -> None:
    values = [2**62 + 2**38 + 1, -(2**62) - 2**38 - 1, 2**53 + 1, 2**24 + 1, 2**25 + 3, 2**63 - 1]
    twice = 0
    for value in values:
        want = nearest(value, 24)
        assert convert(value, "int64", "float32") == want
        assert convert(np.array([value]), "int64", "float32")[0] == want
        twice += bool(np.float32(float(value)) != np.float32(want))
    assert twice > 0  # going through float64 would be wrong for some of them
    for big in (2**64 - 1, 2**63 + 2**39 + 1):
        assert convert(big, "uint64", "float32") == nearest(big, 24)
        assert convert(np.array([big], np.uint64), "uint64", "float32")[0] == nearest(big, 24)


@pytest.mark.parametrize("name", FLOATS)
def test_everything_but_zero_is_true(name: str) -> None:
    values = np.array([0.0, -0.0, math.nan, 1.0, -2.0], name)
    assert convert(values, name, "bool").tolist() == [False, False, True, True, True]


def test_a_wider_float_is_rounded_once_to_half() -> None:
    tie_breaker = 1 + 2.0**-11 + 2.0**-40  # in float32 this is a tie, which goes to 1
    assert convert(np.float64(tie_breaker), "float64", "float16") == np.float16(1 + 2.0**-10)
    assert convert(np.array([tie_breaker]), "float64", "float16")[0] == np.float16(1 + 2.0**-10)


def test_signedness_changes_keep_the_bits() -> None:
    assert convert(-1, "int64", "uint64") == 2**64 - 1
    assert convert(np.array([-1]), "int64", "uint64").tolist() == [2**64 - 1]
    assert convert(np.array([2**64 - 1], np.uint64), "uint64", "int32").tolist() == [-1]
    assert convert(np.array([-1]), "int8", "uint32").tolist() == [2**32 - 1]


def test_a_conversion_that_changes_nothing_returns_its_argument() -> None:
    lanes = np.arange(4)
    assert convert(lanes, "int32", "int64") is lanes
    assert convert(lanes, "int8", "int8") is lanes


def test_empty_arrays_convert() -> None:
    for source, target in itertools.product(TYPES, TYPES):
        assert convert(np.array([], CARRIER[source]), source, target).dtype == CARRIER[target]
