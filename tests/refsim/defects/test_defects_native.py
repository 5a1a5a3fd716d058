"""The pairs with loops as machine code: the same reports word for word, and the same bits."""

import pytest
from defect_corpus import DEFECTS
from test_defects import launched

LARGE = 1 << 24  # bytes of an array that is there for its size


@pytest.mark.parametrize("role", ["wrong", "right"])
def test_reports_and_results_are_those_of_lane_code(role):
    for pair in DEFECTS:
        kernel, launch, producer = (getattr(pair, name) for name in (role, f"{role}_launch", f"{role}_producer"))
        expected, before = launched(pair, kernel, launch, producer, native="never")
        report, after = launched(pair, kernel, launch, producer, native="always")
        assert str(report) == str(expected), pair.name
        assert repr(report.findings) == repr(expected.findings), pair.name
        for got, want in zip(after, before):
            assert getattr(want, "nbytes", LARGE) >= LARGE or got.tobytes() == want.tobytes(), pair.name
