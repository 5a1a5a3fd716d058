"""Reports: what the table says, and JSON that holds what each failing case needs to run again."""

import json
import math
import shlex

import numpy as np

from oracle.cases import Case
from oracle.operator import find_operator
from refsim.conformance import FunctionBackend, Report, Result, Verdict, check
from refsim.conformance.reports import SCHEMA, json_text, text, to_json


def wrong(x, axis=None):
    return np.full(np.sum(x, axis=axis).shape, np.nan, x.dtype)


def report_of(function, count=4):
    return check(FunctionBackend(function, find_operator("sum"), "mine.py:wrong"), ["sum"], ["float32"], count=count)


def test_json_has_the_fields_of_its_schema():
    data = json.loads(json_text(report_of(wrong)))
    assert set(data) == {"schema", "backend", "device", "seed", "environment", "results", "counters", "known"}
    assert data["schema"] == SCHEMA == "refsim-check/3"
    assert (data["backend"], data["device"], data["seed"]) == ("mine.py:wrong", "host", 0)
    (row,) = data["results"]
    assert {"operator", "kernel", "dtype", "cases", "worst_margin", "verdict", "failures"} <= set(row)
    assert (row["operator"], row["kernel"], row["dtype"], row["cases"]) == ("sum", "wrong", "float32", 4)
    assert row["verdict"] == "FAIL"
    assert row["worst_margin"] == "inf"
    assert len(row["failures"]) == 4
    for failure in row["failures"]:
        assert failure["element"]["got"] == "nan"
        assert failure["detail"] == ""
        assert failure["findings"] == []
        assert failure["element"]["output"] == "out"
        assert failure["reason"] == "nan"


def test_a_failure_runs_again_from_its_json():
    report = report_of(wrong)
    data = json.loads(json_text(report))
    again = [Case.from_json(failure["case"]) for failure in data["results"][0]["failures"]]
    assert again == [failure.case for failure in report.results[0].failures]
    backend = FunctionBackend(wrong, find_operator("sum"), "mine.py:wrong")
    assert to_json(check(backend, ["sum"], ["float32"], cases={("sum", "float32"): again})) == data


def test_a_passing_row_has_a_finite_margin_and_no_failures():
    (row,) = to_json(report_of(lambda x, axis=None: np.asarray(np.sum(x.astype(float), axis=axis)).astype(x.dtype)))[
        "results"
    ]
    assert row["verdict"] == "PASS"
    assert 0 < row["worst_margin"] <= 1
    assert math.isfinite(row["worst_margin"])
    assert row["failures"] == []


def test_the_table_and_the_paragraph():
    lines = text(report_of(wrong)).splitlines()
    assert lines[0] == "backend mine.py:wrong on host, seed 0"
    assert lines[1].split() == ["operator", "kernel", "dtype", "cases", "worst", "margin", "verdict"]
    assert lines[2].split() == ["sum", "wrong", "float32", "4", "inf", "FAIL"]
    assert lines[4].startswith("sum × wrong × float32: FAIL  nan: out[0] = nan, ")
    assert lines[5].startswith("  4 of 4 cases; the first: sum float32 d0=7 d1=129 axis=1 · normal · contiguous · ")
    words = shlex.split(lines[6].removeprefix("  again: "))
    assert words[:2] == ["refsim", "replay"]
    assert json.loads(words[2])["dims"] == {"d0": 7, "d1": 129}
    assert words[3:] == ["--backend", "mine.py:wrong"]


def test_brackets_in_messages_are_kept():
    result = Result("sum", "k[0]", "float32", "float32", 1, 0, 0, None, Verdict.ERROR, "raised: [bold]x[/bold]")
    printed = text(Report("b[red]", "d", 0, (result,)))
    for kept in ("k[0]", "b[red]", "[bold]x[/bold]"):
        assert kept in printed


def test_traceback_only_for_debugging():
    def raising(x):
        raise RuntimeError("boom")

    report = report_of(raising)
    assert "Traceback" not in text(report)
    assert "Traceback (most recent call last)" in text(report, debug=True)
    assert "in raising" in text(report, debug=True)


def test_an_empty_report_says_so():
    assert "nothing ran" in text(Report("b", "d", 0))


def test_a_narrow_terminal_cuts_nothing_off(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    shown = text(report_of(wrong), terminal=True)
    for words in ("worst margin", "verdict", "float32", "FAIL"):
        assert words in shown
    assert "…" not in shown.splitlines()[2]
