"""The reductions along rows against loops over Python floats, written from the formulas, and what they refuse."""

import math

import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.operator import InputError, find_operator


def mean(row):
    return math.fsum(row) / len(row)


def cumsum(row, exclusive):
    return [math.fsum(row[: at + (not exclusive)]) for at in range(len(row))]


def logsumexp(row):
    if not row or max(row) == -math.inf:
        return -math.inf
    largest = max(row)
    return largest + math.log(math.fsum(math.exp(value - largest) for value in row))


def log_softmax(row):
    largest = max(row, default=0.0)
    total = math.fsum(math.exp(value - largest) for value in row)
    return [value - largest - math.log(total) for value in row]


UNLIKE = {"infinities", "not_a_number"}


@pytest.mark.parametrize("formula", [mean, cumsum, logsumexp, log_softmax], ids=lambda formula: formula.__name__)
def test_equals_loops_over_scalars(formula):
    record = find_operator(formula.__name__)
    cases = [case for case in make_cases(record.name, "float32", 40, seed=5) if case.value_class not in UNLIKE]
    cases = [case for case in cases if np.prod(list(case.dims.values())) < 1500]
    assert len(cases) >= 25
    for case in cases:
        x = case.inputs()["x"]
        (value,) = record.value(case.inputs(), case.params)
        params = record.signature.complete(case.params)
        scale = np.abs(x, where=np.isfinite(x), out=np.zeros_like(x)).max(initial=1.0)
        for at in np.ndindex(x.shape[:-1]):
            wanted = formula([float(number) for number in x[at]], **params)
            np.testing.assert_allclose(value[at], wanted, rtol=1e-12, atol=1e-14 * scale * 64, err_msg=str(case))


def test_infinities_and_empty_rows():
    x = np.array([[1.0, np.inf, -np.inf], [-np.inf] * 3, [1.0, np.nan, 2.0]])
    np.testing.assert_equal(find_operator("logsumexp")(x), [np.inf, -np.inf, np.nan])
    assert np.isnan(find_operator("log_softmax")(x)).all()
    assert find_operator("logsumexp")(np.zeros((2, 0))).tolist() == [-np.inf, -np.inf]
    assert find_operator("log_softmax")(np.zeros((2, 0))).shape == (2, 0)
    assert find_operator("cumsum")(np.zeros((2, 0)), exclusive=True).shape == (2, 0)


def test_refuses_what_is_outside_the_specification():
    with pytest.raises(InputError, match="cols = 0"):
        find_operator("mean")(np.zeros((2, 0), np.float32))
    with pytest.raises(InputError, match="exclusive=1"):
        find_operator("cumsum")(np.zeros(3, np.float32), exclusive=1)
    with pytest.raises(InputError, match="expected at least 1"):
        find_operator("logsumexp")(np.zeros((), np.float32))
