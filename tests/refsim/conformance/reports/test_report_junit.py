"""JUnit XML, read by an XML parser: counts, tags and commands, and characters that XML cannot hold."""

import json
import shlex
from dataclasses import replace
from xml.etree import ElementTree

from example_reports import all_kinds

from refsim.conformance import Report, Result, Verdict
from refsim.conformance.reports import write


def parsed(reports, **options):
    return ElementTree.fromstring(write(reports, "junit", **options))


def test_rows_are_test_cases_with_their_verdicts():
    root = parsed(all_kinds())
    assert root.tag == "testsuites"
    suites = {suite.get("name"): suite for suite in root}
    counts = {
        name: [suite.get(key) for key in ("tests", "failures", "errors", "skipped")] for name, suite in suites.items()
    }
    assert counts == {
        "refsim mine.py:norm on host": ["2", "0", "0", "0"],
        "refsim mine.py:norm_without_eps on host": ["2", "2", "0", "0"],
        "refsim mine.py:raising on host": ["1", "0", "1", "0"],
        "refsim mine.py:refusing on host": ["1", "0", "0", "1"],
        "refsim mine.py:racing on sim:sm_90": ["1", "1", "0", "0"],
        "refsim mine.py:sum_of_nans on host": ["1", "1", "0", "0"],
    }
    names = [
        (test.get("classname"), test.get("name")) for test in suites["refsim mine.py:norm on host"].iter("testcase")
    ]
    assert names == [("rmsnorm.norm", "float32"), ("rmsnorm.norm", "float16")]


def test_a_failure_tells_its_cases_and_how_to_run_them_again():
    report = all_kinds()[4]
    (failure,) = parsed([report]).iter("failure")
    assert failure.get("type") == "simulator finding"
    assert failure.get("message").startswith("FAIL: simulator finding: race at ")
    commands = [shlex.split(line) for line in failure.text.splitlines() if line.startswith("refsim replay ")]
    assert [json.loads(words[2]) for words in commands] == [one.case.to_json() for one in report.results[0].failures]
    assert {tuple(words[3:]) for words in commands} == {("--backend", "mine.py:racing", "--device", "sim:sm_90")}


def test_suspect_fails_only_where_it_is_strict():
    row = Result("sum", "k", "float32", "float32", 1, 0, 0, 0.5, Verdict.SUSPECT, "statistics: off")
    report = Report("b", "d", 0, (row,))
    assert parsed([report])[0].get("failures") == "0"
    assert "statistics: off" in next(parsed([report]).iter("system-out")).text
    assert parsed([report], strict=True)[0].get("failures") == "1"


def test_characters_that_xml_cannot_hold_are_replaced():
    report = all_kinds()[2]
    hostile = "a\x00b\x1b[31m\ud800\ufffe & <tag> ]]> \U0001f600"
    row = replace(report.results[0], reason=hostile)
    (error,) = parsed([replace(report, results=(row,))]).iter("error")
    assert error.get("message") == "ERROR: a�b�[31m�� & <tag> ]]> \U0001f600"
