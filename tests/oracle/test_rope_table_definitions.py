"""Tables of angles against Python's own functions, and against tables in exact arithmetic far out."""

import fractions
import math

import numpy as np
import pytest

from oracle.cases import make_cases
from oracle.numerics import NUMERICS
from oracle.operator import InputError, find_operator
from refsim.conformance.judge import Judge
from refsim.conformance.verdicts import Verdict


def test_scalars_give_the_same():
    for case in make_cases("rope_table", "float64", 30, seed=1):
        inputs = case.inputs()
        cos, sin = find_operator("rope_table").value(inputs, case.params)
        factor, magnitude = case.params.get("factor", 1.0), case.params.get("magnitude", 1.0)
        for (row, column), value in np.ndenumerate(cos):
            angle = float(inputs["positions"][row]) / factor * float(inputs["frequencies"][column])
            slack = 4e-16 * (1 + abs(angle))
            assert value == pytest.approx(math.cos(angle) * magnitude, abs=slack)
            assert sin[row, column] == pytest.approx(math.sin(angle) * magnitude, abs=slack)


def test_a_table_from_exact_angles_passes_and_half_precision_angles_do_not():
    frequencies = (10_000.0 ** (-np.arange(32) / 32)).astype(np.float32)
    positions = np.array([0, 1, 100, 4095, 131_071])
    exact = [[fractions.Fraction(float(f)) * int(p) for f in frequencies] for p in positions]
    angles = np.array([[float(angle) for angle in row] for row in exact])
    expected = find_operator("rope_table").expect(
        {"frequencies": frequencies, "positions": positions}, {}, NUMERICS["float32"]
    )
    for part, function in zip(expected, (np.cos, np.sin), strict=True):
        assert Judge(part).judge(function(angles).astype(np.float32)).verdict is Verdict.PASS
        short = function(angles[:4].astype(np.float16).astype(np.float64))
        wrong = np.concatenate([short, function(angles[4:])]).astype(np.float32)
        assert Judge(part).judge(wrong).verdict is Verdict.FAIL


def test_refusals():
    with pytest.raises(InputError, match=r"positions\[0\] = 16777216 must be at least 0 and below 16777216"):
        find_operator("rope_table")(np.ones(2, np.float32), np.array([1 << 24]))
    with pytest.raises(InputError, match=r"factor=0\.0 must be float > 0"):
        find_operator("rope_table")(np.ones(2, np.float32), np.array([1]), factor=0.0)
