"""Known deviations: what a list excuses, when it is no longer true, and what is said of a list that is malformed."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

from oracle.cases import Case
from oracle.operator import find_operator
from refsim.cli import main
from refsim.conformance import Capability, FunctionBackend, Refused, UsageError, Verdict, check, reading, reports
from refsim.conformance.known import KINDS, KnownDeviations, fits, merged, read_known
from refsim.conformance.reports import from_json, text, to_json, write
from refsim.conformance.reports.differences import differences
from refsim.conformance.standing import standing
from refsim.conformance.verdicts import Failure

ENTRY = """
[[deviation]]
operator = "softmax"
kind = "value"
reason = "strided rows are read as if they lay side by side"
link = "https://example.org/issues/7"
expires = 2030-06-30
"""
TODAY = date(2030, 6, 30)


def right(x):
    wide = x.astype(np.promote_types(x.dtype, np.float32))
    weights = np.exp(wide - wide.max(axis=-1, keepdims=True, initial=-np.inf))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(x.dtype)


def strided_wrong(x):
    y = right(x)
    return y if x.flags.c_contiguous else y[..., ::-1].copy()


def strided_refused(x):
    if not x.flags.c_contiguous:
        raise Refused("rows must lie side by side")
    return right(x)


@pytest.fixture
def known(tmp_path):
    def known(*changes, today=TODAY):
        path = tmp_path / "known.toml"
        path.write_text("".join(ENTRY + change for change in changes or ("",)), encoding="utf-8")
        return read_known(path, today)

    return known


def judged(function, entries, dtypes=("float32",), **options):
    backend = FunctionBackend(function, find_operator("softmax"), "mine")
    return check(backend, ["softmax"], dtypes, count=24, known=KnownDeviations(entries), **options)


def test_a_known_deviation_does_not_fail_and_is_shown_with_its_reason(known):
    without = judged(strided_wrong, ())
    assert without.results[0].verdict is Verdict.FAIL
    report = judged(strided_wrong, known('layout = ["strided", "trans*", "padded", "misaligned"]'))
    (row,) = report.results
    assert (row.verdict, report.exit_code()) == (Verdict.KNOWN, 0)
    assert row.reason == (
        "value: strided rows are read as if they lay side by side (https://example.org/issues/7, until 2030-06-30)"
    ) or row.reason.startswith("exact value: strided rows")
    assert {tried.verdict for tried in row.tried} == {Verdict.PASS, Verdict.KNOWN}
    assert [f.case for f in row.failures] == [f.case for f in without.results[0].failures]
    (entry,) = report.known
    assert (entry.problem, entry.deviating) == ("", len(row.failures))


def test_what_the_patterns_leave_out_fails_as_before(known):
    report = judged(strided_wrong, known('layout = "strided"'))
    assert report.results[0].verdict is Verdict.FAIL
    kinds = {(failure.case.layout == "strided", failure.verdict) for failure in report.results[0].failures}
    assert kinds == {(True, Verdict.KNOWN), (False, Verdict.FAIL)}
    assert report.exit_code() == 1


def test_another_kind_of_failure_is_not_excused(known):
    entries = [replace(entry, kind="crash") for entry in known()]
    report = judged(strided_wrong, entries)
    assert report.results[0].verdict is Verdict.FAIL
    assert [entry.problem for entry in report.known] == ["passes again"]  # nothing crashes


def test_one_that_passes_again_is_a_failure(known):
    report = judged(right, known())
    assert report.results[0].verdict is Verdict.PASS
    assert report.exit_code() == 1
    assert "known.toml, entry 1 (line 2): softmax, value, 'strided rows" in report.outdated[0].advice
    assert "passes again on all of its 24 cases; delete it" in text(report)


def test_one_that_matches_nothing_is_an_error(known):
    report = judged(strided_wrong, known("", 'case = "*cols=123456 *"'))
    assert [entry.problem for entry in report.known] == ["", "matches nothing"]
    assert report.results[0].verdict is Verdict.KNOWN
    assert report.exit_code() == 1
    assert "entry 2 (line 9)" in text(report)
    assert "matches none of the cases that were judged" in text(report)


def test_an_expired_one_fails_and_excuses_nothing(known):
    entries = known(today=date(2030, 7, 1))
    report = judged(strided_wrong, entries)
    assert report.results[0].verdict is Verdict.FAIL
    assert [entry.problem for entry in report.known] == ["expired"]
    assert "expired on 2030-06-30" in text(report)
    assert judged(right, entries).exit_code() == 1


def test_entries_of_what_was_not_judged_are_set_aside(known):
    other = [replace(entry, operator=("matmul",)) for entry in known()]
    double = known('dtype = "float64"')
    report = judged(right, [*other, *double])
    assert [entry.problem for entry in report.known] == ["", ""]
    assert report.exit_code() == 0


def test_cases_that_are_refused(known):
    entries = [replace(entry, kind="unsupported") for entry in known('layout = ["str*", "tr*", "pad*", "mis*"]')]
    assert judged(strided_refused, entries).exit_code() == 0
    assert [entry.problem for entry in judged(right, entries).known] == ["passes again"]

    def never(x):
        raise Refused("never on a Monday")

    whole = [replace(entry, kind="unsupported") for entry in known()]
    report = judged(never, whole)
    (row,) = report.results
    assert (row.verdict, row.cases, row.refused, report.exit_code()) == (Verdict.KNOWN, 0, 24, 0)
    assert judged(never, entries).results[0].verdict is Verdict.UNSUPPORTED  # some of the layouts are not on the list


def test_an_operator_that_is_not_served_at_all(known):
    entries = [replace(entry, operator=("matmul",), kind="unsupported") for entry in known()]
    backend = FunctionBackend(right, find_operator("softmax"), "mine")

    def report(entries):
        return check(backend, ["matmul"], ["float32"], required=True, known=KnownDeviations(entries))

    assert (report(entries).results[0].verdict, report(entries).exit_code()) == (Verdict.KNOWN, 0)
    partly = [replace(entry, layout=("strided",)) for entry in entries]
    assert (report(partly).results[0].verdict, report(partly).exit_code()) == (Verdict.UNSUPPORTED, 1)


def test_a_profile_with_known_deviations_is_not_claimed(known):
    found = standing(judged(strided_wrong, known()), "core")
    assert (found.known, found.claimed) == (("softmax",), False)
    assert "deviate in known ways: softmax" in str(found)


def test_every_form_of_report_shows_it(known):
    reported = judged(strided_wrong, known("", 'case = "nothing"'))
    data = json.loads(json.dumps(to_json(reported)))
    schema = json.loads((Path(reports.__file__).parent / "check.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(data, schema)
    assert repr(from_json(data, "it")) == repr(reported)
    assert schema["$defs"]["deviation"]["properties"]["kind"]["enum"] == list(KINDS)
    assert [entry["problem"] for entry in data["known"]] == ["", "matches nothing"]
    (suite,) = ElementTree.fromstring(write([reported], "junit"))
    assert [suite.get(key) for key in ("tests", "failures", "errors", "skipped")] == ["2", "0", "1", "1"]
    skipped = suite.find("testcase/skipped")
    assert skipped.get("message").startswith("KNOWN: ")
    assert "known: strided rows are read" in skipped.text
    assert '"known":"strided rows are read' in write([reported], "html")


def test_a_failure_that_becomes_known_is_no_progress(known):
    before, after = judged(strided_wrong, ()), judged(strided_wrong, known())
    (one,) = differences(before, after)
    assert one.kind == "changed"
    assert [one.kind for one in differences(after, before)] == ["worse"]
    assert [one.kind for one in differences(judged(right, ()), replace(after, results=(replace(
        after.results[0], kernel="right"),)))] == ["worse"]  # fmt: skip


def test_counts_of_several_runs_are_put_together(known):
    entries = known()
    row = Capability("softmax", "k", "float32")
    tallies = [KnownDeviations(entries) for _ in range(3)]
    for tally, verdict in zip(tallies, (Verdict.PASS, Verdict.FAIL)):
        tally.ask("softmax", ["float32"])
        tally.recognise(
            row, Case("softmax", "float32", {"cols": 3}), verdict, "value" if verdict is Verdict.FAIL else ""
        )
    assert [tally.entries[0].problem for tally in tallies] == ["passes again", "", ""]
    (whole,) = merged(tally.entries for tally in tallies)
    assert (whole.cases, whole.deviating, whole.problem) == (2, 1, "")


def test_only_the_star_is_special():
    assert fits(["test_a.py::test[*-x]"], "test_a.py::test[9-x]")
    assert not fits(["test[ab]"], "testa")
    assert not fits(["sum"], "cumsum")
    assert fits(["x", "*sum"], "cumsum")


def test_every_reason_of_a_failure_has_a_kind():
    told = Failure.__doc__.partition("reason : str\n")[2].partition("message : str")[0]
    reasons = set(told.split("``")[1::2])
    assert reasons == {reason for kind in KINDS.values() for reason in kind}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"operator": '"sofmax"'}, "known.toml, entry 1 (line 2): no operator is 'sofmax'; did you mean 'softmax'?"),
        ({"dtype": '"flaot16"'}, "no dtype is 'flaot16'; did you mean 'float16'?"),
        ({"value_class": '"norml"'}, "no value class is 'norml'; did you mean 'normal'?"),
        ({"layout": '["strided", "stridden"]'}, "no layout is 'stridden'; did you mean 'strided'?"),
        ({"layuot": '"strided"'}, "unknown key 'layuot'; did you mean 'layout'?"),
        ({"kind": '"vlaue"'}, "kind = 'vlaue' is unknown; did you mean 'value'?"),
        ({"kernel": "7"}, "kernel = 7 must be a name, a pattern such as 'sum*', or a list of them"),
        ({"layout": "[]"}, "layout = [] must be a name"),
        ({"reason": '" "'}, "reason = ' ' must be a text"),
        ({"link": '"see above"'}, "link = 'see above' must be an address, such as https://"),
        ({"expires": '"2030-06-30"'}, "expires = '2030-06-30' must be a day, without quotes"),
        ({"expires": "2030-06-30T10:00:00"}, "must be a day"),
        ({"expires": None}, "'expires' is missing; every entry has operator, kind, reason, link, expires"),
    ],
)
def test_a_malformed_entry_is_named_with_the_fix(tmp_path, change, words):
    lines = {line.partition(" = ")[0]: line.partition(" = ")[2] for line in ENTRY.strip().splitlines()[1:]} | change
    body = "\n[[deviation]]\n" + "".join(f"{key} = {value}\n" for key, value in lines.items() if value is not None)
    path = tmp_path / "known.toml"
    path.write_text(body, encoding="utf-8")
    with pytest.raises(UsageError) as error:
        read_known(path, TODAY)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        ("[[deviation]\n", "is not TOML: Expected ']]'"),
        ("[[deviations]]\n", "holds 'deviations'; every entry starts with a line [[deviation]]"),
        ("[deviation]\nkind = 'value'\n", "holds a 'deviation' that is no list of tables"),
        ("\xff", "is not TOML"),
        ("a = " + 100_000 * "[", "is nested too deeply to be read"),
    ],
)
def test_a_malformed_file_is_wrong_usage(tmp_path, content, words):
    path = tmp_path / "known.toml"
    if content is not None:
        path.write_text(content, encoding="latin-1")
    result = CliRunner().invoke(main, ["check", "softmax", "--known", str(path)])
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())


def test_a_byte_order_mark_is_no_part_of_the_list(tmp_path):
    path = tmp_path / "known.toml"
    path.write_bytes(b"\xef\xbb\xbf" + ENTRY.encode("utf-8"))
    assert len(read_known(path, TODAY)) == 1


def test_a_list_without_an_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MOST_BYTES", 1 << 20)
    with pytest.raises(UsageError, match="/dev/zero cannot be read: it holds more than 1 MiB"):
        read_known(Path("/dev/zero"))


MINE = """
import numpy as np

def softmax(x):
    wide = x.astype(np.promote_types(x.dtype, np.float32))
    weights = np.exp(wide - wide.max(axis=-1, keepdims=True, initial=-np.inf))
    y = (weights / weights.sum(axis=-1, keepdims=True)).astype(x.dtype)
    y[..., 5:6] *= x.dtype.type(1.5)
    return y
"""
COLUMN = ENTRY.replace("strided rows are read as if they lay side by side", "column 5").replace("2030", "2999")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE, encoding="utf-8")
    Path("known.toml").write_text(COLUMN, encoding="utf-8")
    return tmp_path


def run(*words):
    return CliRunner().invoke(main, [*words, "--backend", "mine.py:softmax"])


def test_the_command_takes_the_list_and_a_report_of_it_holds_nothing_to_run_again(folder):
    words = ["check", "softmax", "--dtype", "float32", "--cases", "20"]
    assert run(*words).exit_code == 1
    result = run(*words, "--known", "known.toml")
    assert result.exit_code == 0, result.output
    assert "KNOWN" in result.stdout
    assert "column 5 (https://example.org/issues/7, until 2999-06-30)" in result.stdout
    Path("other.toml").write_text(COLUMN.replace("softmax", "sum"), encoding="utf-8")
    for names in (("known.toml", "other.toml"), ("other.toml", "known.toml", "known.toml")):
        several = run(*words, *(word for name in names for word in ("--known", name)))
        assert several.exit_code == 0, several.output
    assert run(*words, "--known", "known.toml", "--format", "json", "-o", "report.json").exit_code == 0
    assert CliRunner().invoke(main, ["report", "report.json"]).exit_code == 0
    again = run("replay", "report.json")
    assert again.exit_code == 2
    assert "holds no failing case" in again.output


def test_fuzzing_looks_for_what_is_not_known(folder):
    words = ["fuzz", "softmax", "--dtype", "float32", "--profile", "ci", "--cases", "12"]
    result = run(*words, "--known", "known.toml")
    assert result.exit_code == 0, result.output
    assert "KNOWN" in result.stdout
    assert not Path("refsim-failures.json").exists()
    Path("known.toml").write_text(COLUMN + 'layout = "strided"\n', encoding="utf-8")
    other = run(*words, "--known", "known.toml", "--format", "json")
    assert other.exit_code == 1
    verdicts = [failure["verdict"] for failure in json.loads(other.stdout)["results"][0]["failures"]]
    assert "FAIL" in verdicts
    saved = json.loads(Path("refsim-failures.json").read_text(encoding="utf-8"))
    assert all(case["layout"] != "strided" for case in saved)
    unseen = COLUMN + 'case = "nothing"\n'
    Path("known.toml").write_text(COLUMN + unseen, encoding="utf-8")
    assert run(*words, "--known", "known.toml").exit_code == 0  # chance did not draw it; that is no evidence
    Path("known.toml").write_text(COLUMN.replace("2999", "1999"), encoding="utf-8")
    assert run(*words, "--known", "known.toml").exit_code == 1
