"""The rules that others judge by: each accepts and refuses what it says, at its edge."""

import numpy as np
import pytest

from oracle.formats import format_of
from refsim.conformance.rules import RULES, TORCH_DEFAULTS


def accepts(name, got, want, number_format="float32"):
    got, want = (np.asarray(x, np.float64) for x in (got, want))
    return RULES[name].accepts(got, want, format_of(number_format))


def alone(error, size=100):
    """Ones, the first off by an error."""
    return np.ones(size) + error * (np.arange(size) == 0)


@pytest.mark.parametrize("name", RULES)
def test_equal_outputs_are_accepted(name):
    for want in ([1.0, -2.0], [0.0, 0.0], [np.nan, np.inf, 3.0], [-np.inf], [], [3e38, 1e300], [1e-300, 0.0]):
        assert accepts(name, want, want)


@pytest.mark.parametrize("name", sorted(set(RULES) - {"95 %"}))
def test_what_is_not_finite_must_agree(name):
    assert not accepts(name, [np.nan, 1.0], [1.0, 1.0])
    assert not accepts(name, [1.0, 1.0], [np.nan, 1.0])
    assert not accepts(name, [-np.inf, 1.0], [np.inf, 1.0])
    assert not accepts(name, [np.inf, 1.0], [1.0, 1.0])


def test_allclose_takes_a_percent_and_a_hundredth():
    assert accepts("allclose", [0.0, 100.0], [0.0099, 101.0])
    assert not accepts("allclose", [0.0, 100.0], [0.0102, 101.0])


@pytest.mark.parametrize(("dtype", "rtol"), [(dtype, rtol) for dtype, (rtol, _) in TORCH_DEFAULTS.items()])
def test_assert_close_goes_by_dtype(dtype, rtol):
    assert accepts("assert_close", [1e3 * (1 + 0.99 * rtol)], [1e3], dtype)
    assert not accepts("assert_close", [1e3 * (1 + 1.1 * rtol)], [1e3], dtype)


def test_assert_close_wants_codes_and_integers_equal():
    assert not accepts("assert_close", [1.125], [1.0], "float8_e4m3fn")
    assert not accepts("assert_close", [3.0], [4.0], "int32")


def test_five_percent_of_the_elements_may_be_anything():
    want = np.ones(100)
    assert accepts("95 %", np.where(np.arange(100) < 5, np.nan, want), want)
    assert not accepts("95 %", np.where(np.arange(100) < 6, 1.02, want), want)
    assert accepts("95 %", want * 1e-3, np.zeros(100))


def test_cosine_sees_directions_only():
    want = np.linspace(1.0, 2.0, 50)
    assert accepts("cosine", 1e6 * want, want)
    assert not accepts("cosine", -want, want)
    assert not accepts("cosine", np.zeros(50), want)
    assert not accepts("cosine", want, np.zeros(50))


def test_relative_error_goes_by_the_largest_value():
    want = np.array([1e-6, 100.0])
    assert accepts("relative error", want + np.array([0.9, 0.0]), want)
    assert not accepts("relative error", want + np.array([1.1, 0.0]), want)


def test_nmse_drowns_one_wrong_element():
    assert accepts("NMSE", alone(0.2), np.ones(100))
    assert not accepts("NMSE", alone(0.3), np.ones(100))
