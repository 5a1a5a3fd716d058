"""What got better or worse between two reports: by verdict, by single cases, by margin; and exit codes."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from example_reports import all_kinds

from oracle.cases import Case
from refsim.cli import main
from refsim.conformance import Report, Result, UsageError, Verdict
from refsim.conformance.reports import json_text
from refsim.conformance.reports.differences import comparable, differences
from refsim.conformance.verdicts import Tried

PASS, SUSPECT, INCONCLUSIVE, UNSUPPORTED, ERROR, FAIL = map(
    Verdict, ("PASS", "SUSPECT", "INCONCLUSIVE", "UNSUPPORTED", "ERROR", "FAIL")
)


def row(verdict, *cases, margin=0.5, kernel="k"):
    tried = tuple(
        Tried(Case("sum", "float32", {"d0": 3}, seed=seed), each, 0.5) for seed, each in enumerate(cases or (verdict,))
    )
    return Result("sum", kernel, "float32", "float32", len(tried), 0, 0, margin, verdict, tried=tried)


def report(*rows, **fields):
    return replace(Report("b", "d", 0, rows), **fields)


def kinds(old, new):
    return [(one.kind, one.row[1]) for one in differences(report(*old), report(*new))]


ORDER = [PASS, SUSPECT, INCONCLUSIVE, UNSUPPORTED, FAIL]


@pytest.mark.parametrize("old", ORDER)
@pytest.mark.parametrize("new", ORDER)
def test_verdicts_have_an_order(old, new):
    expected = ORDER.index(new) - ORDER.index(old)
    wanted = [] if expected == 0 else [("worse" if expected > 0 else "better", "k")]
    assert kinds([row(old)], [row(new)]) == wanted


def test_raising_is_no_better_than_being_wrong():
    assert kinds([row(ERROR)], [row(FAIL)]) == kinds([row(FAIL)], [row(ERROR)]) == [("changed", "k")]


def test_rows_come_and_go():
    assert kinds([row(PASS)], []) == [("worse", "k")]
    assert kinds([], [row(FAIL)]) == [("new", "k")]
    assert kinds([row(PASS, kernel="a"), row(FAIL, kernel="b")], [row(FAIL, kernel="a"), row(PASS, kernel="b")]) == [
        ("worse", "a"),
        ("better", "b"),
    ]


def test_single_cases_count_where_the_verdict_stays():
    few, more = row(FAIL, FAIL, PASS, PASS), row(FAIL, FAIL, FAIL, PASS)
    (worse,) = differences(report(few), report(more))
    assert (worse.kind, worse.why) == ("worse", "1 of 3 cases are worse")
    (better,) = differences(report(more), report(few))
    assert (better.kind, better.why) == ("better", "1 of 3 cases are better")
    (mixed,) = differences(report(few), report(row(FAIL, PASS, FAIL, PASS)))
    assert (mixed.kind, mixed.why) == ("worse", "1 of 3 cases are worse, 1 better")
    assert kinds([row(PASS, PASS, PASS)], [row(PASS, PASS, UNSUPPORTED)]) == [("worse", "k")]


def test_other_cases_are_no_regression():
    (one,) = differences(report(row(PASS, PASS)), report(row(PASS, PASS, PASS)))
    assert (one.kind, one.why) == ("changed", "1 cases before, 2 others now")


def test_margins_are_told_where_they_moved():
    (one,) = differences(report(row(PASS, margin=0.2)), report(row(PASS, margin=0.4)))
    assert (one.kind, one.why) == ("changed", "worst margin 0.2 before, 0.4 now")
    assert kinds([row(PASS, margin=0.2)], [row(PASS, margin=0.21)]) == []
    assert kinds([row(PASS, margin=0.0)], [row(PASS, margin=0.0)]) == []
    assert kinds([row(ERROR, margin=None)], [row(ERROR, margin=None)]) == []


def test_two_rows_of_one_name_cannot_be_compared():
    with pytest.raises(UsageError, match="the new report has two rows sum × k × float32"):
        differences(report(), report(row(PASS), row(FAIL)))


def test_what_else_differs_is_told():
    old = report(environment={"numpy": "2.0", "python": "3.11"})
    new = report(seed=1, environment={"numpy": "2.1", "python": "3.11", "torch": "2.5"})
    assert comparable(old, new) == [
        "seed: 0 before, 1 now",
        "numpy: 2.0 before, 2.1 now",
        "torch: none before, 2.5 now",
    ]


@pytest.fixture
def files(tmp_path):
    right, wrong = all_kinds()[:2]
    wrong = replace(wrong, results=tuple(replace(result, kernel="norm") for result in wrong.results))
    paths = tmp_path / "right.json", tmp_path / "wrong.json"
    for path, content in zip(paths, (right, wrong), strict=True):
        path.write_text(json_text(content), encoding="utf-8")
    return paths


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_exit_codes_and_output_of_the_command(files):
    right, wrong = files
    worse = run("diff", right, wrong)
    assert worse.exit_code == 1, worse.output
    lines = worse.stdout.splitlines()
    assert lines[0] == "backend: mine.py:norm before, mine.py:norm_without_eps now"
    assert lines[2].split() == ["worse", "rmsnorm", "norm", "float32", "PASS", "FAIL"]
    assert lines[-1] == "2 worse"
    better = run("diff", wrong, right)
    assert better.exit_code == 0
    assert better.stdout.splitlines()[-1] == "2 better"
    same = run("diff", right, right)
    assert (same.exit_code, same.stdout) == (0, "no row changed\n")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        ("{", "is not JSON"),
        (100_000 * "[", "is nested too deeply to be read"),
        ("[]", "is not a report"),
        ('{"schema": "x/9"}', "of schema 'x/9'"),
    ],
)
def test_bad_input_is_exit_code_2(files, tmp_path, content, words):
    bad = tmp_path / "bad.json"
    if content is not None:
        bad.write_text(content)
    for arguments in (("diff", files[0], bad), ("diff", bad, files[0]), ("report", bad)):
        result = run(*arguments)
        assert result.exit_code == 2
        assert words in " ".join(result.output.split())


def test_what_the_judged_say_moves_no_cursor(tmp_path):
    hostile = "k\x1b[31m\n[red]\ud800"
    before, after = report(row(PASS, kernel=hostile)), report(row(FAIL, kernel=hostile), device="sim:\x1b[2J")
    paths = tmp_path / "before.json", tmp_path / "after.json"
    for path, content in zip(paths, (before, after), strict=True):
        path.write_text(json_text(content), encoding="utf-8")
    result = run("diff", *paths)
    assert result.exit_code == 1, result.output
    assert r"k\x1b[31m\n[red]\ud800" in result.stdout
    assert r"sim:\x1b[2J now" in result.stdout
    assert "\x1b" not in result.stdout


def test_a_byte_order_mark_is_no_part_of_a_report(files):
    right, wrong = files
    right.write_bytes(b"\xef\xbb\xbf" + right.read_bytes())
    assert run("diff", right, wrong).exit_code == 1


def test_reports_are_written_again_in_other_forms(files, tmp_path):
    page = tmp_path / "page.html"
    both = run("report", *files, "--format", "html", "-o", page)
    assert both.exit_code == 1
    assert page.read_text(encoding="utf-8").count('"schema":"refsim-check/3"') == 2
    assert run("report", files[0], "--format", "json").stdout == files[0].read_text(encoding="utf-8")
    assert run("report", files[0]).exit_code == 0
    two = run("report", *files, "--format", "json")
    assert two.exit_code == 2
    assert "a JSON file holds one report, and here are 2" in " ".join(two.output.split())
    assert json.loads(files[0].read_text())["results"][0]["verdict"] == "PASS"
