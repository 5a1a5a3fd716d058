"""The racy pairs in C++ under other groups of lanes and a drawn schedule: the same verdicts, and the right answers."""

import pytest
from cpp_defect_corpus import PAIRS
from defect_corpus import DEFECTS
from test_defects_cpp import agrees, answers, launched, site

NUMBA = {defect.name for defect in DEFECTS}
OWN = [pair for pair in PAIRS if pair.kind in ("race", "deadlock") and pair.name not in NUMBA]
DEPENDS_ON_THE_ORDER = {"list_read_by_its_length"}  # asks once whether the list is full
FOLLOWS = {"flag_lowered_while_others_ask": {"barrier_divergence"}}  # threads leave the loop in different rounds


@pytest.mark.parametrize(
    "options", [{"lanes": "warp"}, {"lanes": "thread"}, {"schedule": "seed:3"}], ids=["warp", "thread", "seed"]
)
def test_verdicts_do_not_depend_on_who_runs_in_lockstep(options):
    assert len(OWN) >= 50
    for pair in OWN:
        if "schedule" in options and pair.name in DEPENDS_ON_THE_ORDER:
            continue
        report, _ = launched(pair, "wrong", **options)
        seen = pair.name + "\n" + "\n".join(map(site, report.findings))
        caught = [f for f in report.findings if f.kind == pair.kind and f.severity == pair.severity]
        assert caught, seen
        assert all(f.line in pair.lines for f in caught), seen
        follows = {pair.kind, "uninitialized_read"} | pair.also | FOLLOWS.get(pair.name, set())
        assert {f.kind for f in report.errors} <= follows, seen
        report, arguments = launched(pair, "right", **options)
        assert not report.findings, pair.name + "\n" + "\n".join(map(site, report.findings))
        for i, value in answers(pair).items():
            assert agrees(arguments[i], value, pair.rtol), pair.name
