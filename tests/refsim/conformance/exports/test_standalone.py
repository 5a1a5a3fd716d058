"""What a reference carries along: formats as the oracle's, and words of operators without their analysis of errors."""

import numpy as np
import pytest

import oracle.vocabulary
from oracle.formats import format_of, round_to
from refsim.conformance.exports import plain
from refsim.conformance.exports.standalone import _Parts


@pytest.mark.parametrize("name", plain.FORMATS)
def test_formats_are_those_of_the_oracle(name):
    carried, record = plain.FORMATS[name], format_of(name)
    for field in ("name", "mantissa_bits", "min_normal", "max", "lowest", "is_integer", "has_nan", "has_infinity"):
        assert getattr(carried, field) == getattr(record, field), field


@pytest.mark.parametrize("saturate", [None, True])
@pytest.mark.parametrize("name", plain.FORMATS)
def test_roundings_are_those_of_the_oracle(name, saturate):
    record = format_of(name)
    random = np.random.default_rng(5)
    scales = 2.0 ** random.integers(-160, 140, 4000)
    if name in ("float16", "int8") or name.startswith("float8"):
        scales = 2.0 ** random.integers(-30, 20, 4000)
    numbers = random.standard_normal(4000) * scales
    steps = round_to(numbers, name)
    with np.errstate(invalid="ignore"):
        ties = (steps + round_to(np.nextafter(steps, np.inf), name, "up")) / 2
    special = [0.0, -0.0, np.inf, -np.inf, record.max, -record.max, record.max * 1.01, record.min_normal / 3, 1e300]
    values = np.concatenate([numbers, steps, ties, special, [] if record.is_integer else [np.nan]])
    values = values[~np.isnan(values)] if record.is_integer else values
    got, wanted = plain.round_to(values, name, saturate=saturate), round_to(values, name, saturate=saturate)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(wanted[~np.isnan(wanted)]))


def test_integers_are_rounded_toward_zero_too():
    values = np.array([-1.9, -0.5, 0.5, 1.5, 200.0])
    assert plain.round_to(values, "int8", "toward_zero").tolist() == [-1, 0, 0, 1, 127]


@pytest.mark.parametrize("word", oracle.vocabulary.__all__)
def test_every_word_stands_alone(word):
    parts = _Parts(set())
    name = parts.name_of(getattr(oracle.vocabulary, word))
    text = "\n".join([*parts.imports(), *parts.sources()])
    assert "ErrorBounded" not in text
    assert "oracle" not in text
    names = {}
    exec(text, names)
    assert callable(names[name])
