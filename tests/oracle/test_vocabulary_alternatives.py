"""`either`: the value of the first formula, a bound that holds for each of them."""

import numpy as np
import pytest

from oracle.error import envelope, exact
from oracle.numerics import NUMERICS
from oracle.vocabulary import either, sigmoid

FLOAT32 = NUMERICS["float32"]


def test_plain_arrays_keep_the_first():
    first, second = np.ones(3), np.zeros(3)
    assert either(first, second) is first


def test_the_bound_is_the_wider_one():
    x = exact(np.linspace(-6, 6, 97, dtype=np.float32), FLOAT32)
    by_tanh, by_sigmoid = 1.0 + np.tanh(x), 2.0 * sigmoid(2.0 * x)
    both = either(by_tanh, by_sigmoid)
    assert both.value.tobytes() == by_tanh.value.tobytes()
    bounds = [envelope(form, "float64").bound for form in (both, by_tanh, by_sigmoid)]
    assert (bounds[0] >= np.maximum(bounds[1], bounds[2]) * (1 - 1e-12)).all()
    assert (bounds[0] <= np.maximum(bounds[1], bounds[2]) + 1e-15).all()


@pytest.mark.parametrize("kernel", ["tanh", "sigmoid"])
def test_honest_kernels_of_either_form_lie_within(kernel):
    x = np.random.default_rng(3).standard_normal(4000).astype(np.float32)
    expected = envelope(either(1.0 + np.tanh(exact(x, FLOAT32)), 2.0 * sigmoid(2.0 * exact(x, FLOAT32))), "float32")
    one = np.float32(1)
    got = one + np.tanh(x) if kernel == "tanh" else np.float32(2) * (one / (one + np.exp(np.float32(-2) * x)))
    assert got.dtype == np.float32
    low, high = (expected.value + sign * expected.bound for sign in (-1, 1))
    assert ((np.float32(low) <= got) & (got <= np.float32(high))).all()


def test_formulas_that_differ_are_charged_for_it():
    x = exact(np.array([1.0, 2.0]), FLOAT32)
    both = envelope(either(x, x + 1.0), "float32")
    assert both.bound.tolist() == [1.0, 1.0]
    assert (both.sigma >= 1.0).all()
