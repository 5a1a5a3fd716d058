"""The gated activations against loops over Python floats, written from the formulas, and what they refuse."""

import math

import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.numerics import NUMERICS
from oracle.operator import InputError, find_operator


def pairs(x, bias, pairing):
    """For each pair of columns: its number, the gate and the value, bias added."""
    half = x.shape[1] // 2
    for row, column in np.ndindex(x.shape[0], half):
        first, second = (column, column + half) if pairing == "halves" else (2 * column, 2 * column + 1)
        shifts = (0.0, 0.0) if bias is None else (float(bias[first]), float(bias[second]))
        yield (row, column), float(x[row, first]) + shifts[0], float(x[row, second]) + shifts[1]


def logistic(x):
    """Stable on both sides."""
    if math.isnan(x):
        return x
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(max(x, -745.0)) / (1.0 + math.exp(max(x, -745.0)))


def stored(value, rounding):
    """The middle rounding for float32 inputs."""
    with np.errstate(all="ignore"):
        return float(np.float32(value)) if rounding == "twice" else value


def silu_and_mul(gate, value, limit, rounding):
    if limit is not None:
        gate = gate if math.isnan(gate) else min(gate, limit)
        value = value if math.isnan(value) else min(max(value, -limit), limit)
    return stored(gate * logistic(gate), rounding) * value


def gelu_and_mul(gate, value, approximate, rounding):
    if approximate == "tanh":
        phi = 0.5 * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (gate + 0.044715 * gate**3)))
    else:
        phi = 0.5 * math.erfc(-gate / math.sqrt(2.0))
    return stored(gate * phi, rounding) * value


def relu2_and_mul(gate, value, rounding):
    positive = gate if math.isnan(gate) or gate > 0 else 0.0
    return stored(positive * positive, rounding) * value


def swiglu_with_limit(gate, value, alpha, limit):
    gate = gate if math.isnan(gate) else min(gate, limit)
    value = value if math.isnan(value) else min(max(value, -limit), limit)
    return gate * logistic(alpha * gate) * (value + 1.0)


FORMULAS = (silu_and_mul, gelu_and_mul, relu2_and_mul, swiglu_with_limit)


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.__name__)
def test_equals_loops_over_scalars(formula):
    record = find_operator(formula.__name__)
    cases = [case for case in make_cases(record.name, "float32", 50, seed=5) if case.value_class != "infinities"]
    cases = [case for case in cases if case.dims["rows"] * case.dims["width"] < 2000]
    assert len(cases) >= 35
    for case in cases:
        x, bias = case.inputs().values()
        params = record.signature.complete(case.params)
        rest = {name: value for name, value in params.items() if name != "pairing"}
        (value,) = record.value(case.inputs(), case.params)
        expected = np.zeros(value.shape)
        for at, gate, partner in pairs(x, bias, params["pairing"]):
            expected[at] = formula(gate, partner, **rest)
        # 1 + erf and 1 + tanh cancel: 1e-16 of the gate times the value is what float64 keeps
        slack = 4e-16 * np.abs(np.nan_to_num(x)).max(initial=1.0) ** 2
        rounded = 1e-6 if params.get("rounding") == "twice" else 1e-12  # a middle value may be next to a tie
        np.testing.assert_allclose(value, expected, rtol=rounded, atol=slack, err_msg=str(case))


def test_the_middle_rounding_is_that_of_the_input():
    x = np.array([[1.0, 1.0]], np.float16)
    once, twice = (find_operator("silu_and_mul")(x, rounding=name)[0, 0] for name in ("once", "twice"))
    assert once == 1.0 / (1.0 + math.exp(-1.0))
    assert twice == float(np.float16(once)) != once
    expected = find_operator("silu_and_mul").expect({"x": x}, {"rounding": "twice"}, NUMERICS["float32"])[0]
    assert expected.value[0, 0] == twice
    assert expected.bound[0, 0] == 0


def test_infinite_gates():
    x = np.array([[np.inf, -np.inf, 2.0, 3.0]], np.float32)
    for name, wanted in (("silu_and_mul", np.nan), ("gelu_and_mul", np.nan), ("relu2_and_mul", 0.0)):
        out = find_operator(name)(x)
        assert out[0, 0] == np.inf
        np.testing.assert_equal(out[0, 1], wanted)


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.__name__)
def test_refuses_an_odd_width_and_another_bias(formula):
    record = find_operator(formula.__name__)
    with pytest.raises(InputError, match="width = 3 must be even"):
        record(np.ones((2, 3), np.float32))
    with pytest.raises(InputError, match="dimension width is 3 in bias"):
        record(np.ones((2, 4), np.float32), np.ones(3, np.float32))


def test_refuses_parameters_outside_their_range():
    x = np.ones((1, 2), np.float32)
    for name, params, words in (
        ("silu_and_mul", {"limit": 0.0}, "limit=0.0"),
        ("silu_and_mul", {"pairing": "thirds"}, "'thirds'"),
        ("gelu_and_mul", {"approximate": "sigmoid"}, "'sigmoid'"),
        ("swiglu_with_limit", {"alpha": -1.0}, "alpha=-1.0"),
        ("silu_and_mul", {"dtype": "float16"}, "no parameter 'dtype'"),
    ):
        with pytest.raises(InputError, match=words):
            find_operator(name)(x, **params)
