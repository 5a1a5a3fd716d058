"""The largest and the k largest against loops and sorting by Python, and what it refuses."""

import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.error import UndecidableError, exact
from oracle.numerics import NUMERICS
from oracle.operator import InputError, find_operator
from oracle.vocabulary import exact_value
from refsim.conformance.judge import Judge

PASSED = ["PASS", "PASS"]
TOPK = find_operator("topk")


def test_equals_sorting_by_python():
    for case in make_cases("topk", "float32", 48, seed=5):
        x, k = case.inputs()["x"], case.params.get("k", 1)
        indices, values = TOPK.value(case.inputs(), case.params)
        assert indices.shape == values.shape == (len(x), k)
        for row, (found, got) in enumerate(zip(indices, values, strict=True)):
            wanted = sorted(range(x.shape[1]), key=lambda at: (-float(x[row, at]), at))[:k]
            assert found.tolist() == wanted, str(case)
            assert got.tolist() == [float(x[row, at]) for at in wanted]


def verdicts(x, indices, **params):
    """Whether the judge takes indices, and the values that belong to them."""
    given = {"indices": np.asarray(indices, np.int32)}
    expected = TOPK.expect({"x": x}, params, NUMERICS["float32"], given)
    values = np.take_along_axis(x, given["indices"], axis=-1)
    outputs = (given["indices"], values)
    return [Judge(part).judge(got).verdict.value for part, got in zip(expected, outputs, strict=True)]


def test_the_rule_for_ties_and_the_order():
    x = np.array([[2.0, 1.0, 2.0, 2.0]], np.float32)
    assert verdicts(x, [[0, 2]], k=2) == PASSED
    assert verdicts(x, [[0, 3]], k=2)[0] == "FAIL"
    assert verdicts(x, [[3, 0]], k=2, ties="any") == PASSED
    assert verdicts(x, [[2, 2]], k=2, ties="any")[0] == "FAIL"
    assert verdicts(x, [[1, 0, 2, 3]], k=4)[0] == "FAIL"
    assert verdicts(x, [[1, 0, 2, 3]], k=4, ordered=False) == PASSED


def test_refuses_what_is_outside_the_specification():
    x = np.ones((2, 3), np.float32)
    with pytest.raises(InputError, match="k = 4 must be at most cols = 3"):
        TOPK(x, k=4)
    with pytest.raises(InputError, match="k=0"):
        TOPK(x, k=0)
    with pytest.raises(InputError, match="'first'"):
        TOPK(x, ties="first")


@pytest.mark.parametrize("ties", ["lowest", "highest"])
def test_the_largest_equals_loops_over_scalars(ties):
    for case in make_cases("argmax", "float32", 40, seed=5):
        x = case.inputs()["x"]
        (found,), (largest,) = (find_operator(name).value({"x": x}, params) for name, params in (
            ("argmax", {"ties": ties}), ("max", {}),
        ))  # fmt: skip
        for at, row in enumerate(x.tolist()):
            best = 0
            for column, value in enumerate(row):
                better = value > row[best] or (value != value and row[best] == row[best])
                again = value == row[best] or (value != value and row[best] != row[best])
                best = column if better or (again and ties == "highest") else best
            assert found[at] == best, str(case)
            np.testing.assert_equal(largest[at], row[best])


def test_nothing_has_no_largest():
    for name in ("max", "argmax"):
        with pytest.raises(InputError, match="cols = 0"):
            find_operator(name)(np.zeros((2, 0), np.float32))
    with pytest.raises(InputError, match="'any'"):
        find_operator("argmax")(np.zeros(2, np.float32), ties="any")


def test_the_place_of_a_subnormal_number_is_known_where_arithmetic_flushes():
    x = np.array([0.0, 1e-40, -1e-40], np.float32)
    (part,) = find_operator("argmax").expect({"x": x}, {}, NUMERICS["float32_fast"])
    assert int(part.value) == 1
    with pytest.raises(UndecidableError, match="carries errors"):
        exact_value(exact(x, NUMERICS["float32_fast"]))
    with pytest.raises(UndecidableError, match="carries errors"):
        exact_value(exact(x, NUMERICS["float32"]) / 3.0, unflushed=True)
