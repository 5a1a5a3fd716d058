"""The pytest plugin, run on tests of its own: verdicts, options, reports, and several processes."""

import json
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

import oracle.relations.families  # noqa: F401  a run in this process forgets what it imports first, not what that registered
from oracle.operator import UnknownOperatorError
from refsim.conformance import UsageError
from refsim.testing import conforms

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]

MINE = """
import numpy as np
import pytest
from refsim.testing import conforms


def norm(x, weight, eps=1e-6):
    wide = x.astype(np.float64)
    return (wide / np.sqrt(np.mean(wide * wide, axis=-1, keepdims=True) + eps) * weight).astype(x.dtype)
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Write a file of tests and run pytest on it, in this process or, with workers, in others."""

    def run(body, *options):
        if body:
            pytester.makepyfile(test_mine=MINE + body)
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # those of others take seconds to load
        plugins = ["-p", "refsim.pytest_plugin", *(["-p", "xdist"] if "-n" in options else [])]
        call = pytester.runpytest_subprocess if "-n" in options else pytester.runpytest_inprocess
        # An editable install, found by no path, is loaded without pytest's rewriting of assertions.
        warnings = ["-W", "error", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        return call(*plugins, "--strict-markers", *warnings, "--refsim-cases", "6", *options)

    return run


RIGHT = """
@conforms("rmsnorm")
def test_right():
    return norm
"""
WRONG = """
@conforms("rmsnorm", dtypes=["float32"], cases=24)
def test_wrong():
    return lambda x, weight, eps=1e-6: norm(x, weight, 0.0)
"""


def test_each_dtype_is_a_test(run):
    result = run(RIGHT, "-v")
    result.assert_outcomes(passed=3)
    for dtype in ("float16", "float32", "float64"):
        result.stdout.fnmatch_lines([f"*test_right[[]{dtype}[]] PASSED*"])


def test_a_wrong_answer_fails_and_says_how_to_run_it_again(run, pytester):
    result = run(WRONG)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*rmsnorm × test_mine.py::test_wrong × float32: FAIL  value: out[[]*is accepted*"])
    # Where CI runs (the variable CI is set), pytest prints the whole message a second time in its summary.
    (command,) = {line.strip().removeprefix("again: ") for line in result.outlines if "again: " in line}
    words = shlex.split(command)
    assert words[:2] == ["pytest", "test_mine.py::test_wrong[float32]"]
    again = run("", *words[1:])
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(["*1 of 1 cases; the first: rmsnorm float32 *"])
    other = run("", "test_mine.py", "--refsim-case", words[-1].replace("float32", "float16"))
    other.assert_outcomes(skipped=1)


def test_fixtures_classes_and_parameters(run, pytester):
    result = run(
        """
@pytest.fixture
def implementation():
    return norm

class TestNorm:
    @conforms("rmsnorm", dtypes=["float32", "float64"])
    @pytest.mark.parametrize("wide", [True, False])
    def test_method(self, implementation, refsim_dtype, wide):
        assert refsim_dtype in ("float32", "float64")
        return implementation

def test_plain():
    pass
""",
        "--refsim-report",
        "report.json",
    )
    result.assert_outcomes(passed=5)
    rows = json.loads((pytester.path / "report.json").read_text())["results"]
    assert sorted({(row["kernel"], row["dtype"]) for row in rows}) == [
        ("test_mine.py::TestNorm::test_method[False]", "float32"),
        ("test_mine.py::TestNorm::test_method[False]", "float64"),
        ("test_mine.py::TestNorm::test_method[True]", "float32"),
        ("test_mine.py::TestNorm::test_method[True]", "float64"),
    ]


KERNEL = """
from numba import cuda

@cuda.jit
def copy(x, out):
    out[cuda.grid(1)] = x[cuda.grid(1)]

def hosted(launcher, x, axis=None):
    {prologue}
    out = launcher.empty(x.shape, x.dtype)
    if x.ndim == 1 and x.size:
        launcher.launch(copy, 1, x.size + 1, launcher.array(x), out)
    return out

@conforms("sum", dtypes=["float32"])
def test_kernel():
    return hosted
"""


def test_kernels_run_on_the_device_that_was_asked_for(run, pytester):
    body = KERNEL.format(prologue='assert launcher.device == "sim:sm_80", launcher.device')
    result = run(body, "--refsim-device", "sim:sm_80", "--refsim-report", "report.json")
    result.assert_outcomes(failed=1)
    report = json.loads((pytester.path / "report.json").read_text())
    assert report["device"] == "sim:sm_80"
    assert "sm_90" not in result.stdout.str()
    assert report["results"][0]["again"][-2:] == ["--refsim-device", "sim:sm_80"]
    result.stdout.no_fnmatch_line("*AssertionError*")
    result.stdout.fnmatch_lines(["*FAIL  shape: out: shape*"])


def test_refusals_skip(run):
    result = run(
        """
from refsim.conformance import Refused

@conforms("rmsnorm", dtypes=["float32"])
def test_refusing():
    def refuse(x, weight, eps=1e-6):
        raise Refused("never on a Monday")
    return refuse
""",
        "-rs",
    )
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*every case was refused: never on a Monday"])


def test_what_cannot_be_judged_fails_with_a_reason(run):
    result = run("""
@conforms("rmsnorm", dtypes=["float32"])
def test_nothing():
    pass

@conforms("rmsnorm", dtypes=["float32"])
async def test_async():
    return norm
""")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*is of type NoneType; expected a backend, a function*"])
    result.stdout.fnmatch_lines(["*must be a plain function, not an async one*"])


KNOWN = """
[[deviation]]
operator = "rmsnorm"
kernel = "test_mine.py::test_wrong"
kind = "value"
reason = "eps is left out"
link = "https://example.org/issues/7"
expires = 2999-12-31
"""
TWO_DTYPES = WRONG.replace('["float32"]', '["float32", "float64"]')


def test_known_deviations_are_expected_failures_on_several_processes_too(run, pytester):
    pytester.makefile(".toml", known=KNOWN)
    result = run(TWO_DTYPES, "--refsim-known", "known.toml", "--refsim-report", "report.json", "-rx", "-n", "2")
    result.assert_outcomes(xfailed=2)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["XFAIL*known deviation: *eps is left out (https://example.org/issues/7, until *"])
    report = json.loads((pytester.path / "report.json").read_text())
    assert [row["verdict"] for row in report["results"]] == ["KNOWN", "KNOWN"]
    (entry,) = report["known"]
    counts = [sum(tried["verdict"] == "KNOWN" for tried in row["tried"]) for row in report["results"]]
    assert all(counts)
    assert (entry["deviating"], entry["cases"]) == (sum(counts), 48)


def test_a_list_that_is_not_true_any_more_fails_the_run(run, pytester):
    pytester.makefile(".toml", known=KNOWN + KNOWN.replace("test_wrong", "test_right").replace('"rms', '"r*s'))
    result = run(WRONG + RIGHT, "--refsim-known", "known.toml")
    result.assert_outcomes(xfailed=1, passed=3)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["refsim: known.toml, entry 2 (line 9): r*snorm, value, *passes again on all of*"])
    pytester.makefile(".toml", known=KNOWN)
    nothing = run(RIGHT, "--refsim-known", "known.toml")
    nothing.assert_outcomes(passed=3)
    assert nothing.ret == pytest.ExitCode.TESTS_FAILED
    nothing.stdout.fnmatch_lines(["*matches none of the cases that were judged*"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--refsim-known", "nowhere.toml"], "--refsim-known: nowhere.toml cannot be read"),
        (["--refsim-device", "foo"], "--refsim-device: unknown device 'foo'; give sim:NAME or cuda:NUMBER"),
        (["--refsim-device", "sim:foo"], "--refsim-device: "),
        (["--refsim-case", "{"], "--refsim-case is not JSON: "),
        (["--refsim-case", "[]"], "--refsim-case: a case is a JSON object, not list"),
        (
            ["--refsim-case", '{"operator": "nothing", "dtype": "float32", "dims": {}}'],
            "--refsim-case: unknown operator",
        ),
        (["--refsim-cases", "0"], "--refsim-cases must be at least 1, not 0"),
        (["--refsim-report", "report.pdf"], "--refsim-report: report.pdf ends in .pdf, which is no form of a report"),
        (["--refsim-report", "nowhere/report.html"], "--refsim-report: no such folder"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(run, options, words):
    result = run(RIGHT, *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert words in result.stderr.str()


def test_decorators_are_refused_at_once():
    with pytest.raises(UnknownOperatorError, match="did you mean 'rmsnorm'"):
        conforms("rmsnrm")
    with pytest.raises(UsageError, match="rmsnorm has no dtype 'int8'"):
        conforms("rmsnorm", dtypes=["int8"])
    with pytest.raises(UsageError, match="cases must be at least 1, not 0"):
        conforms("rmsnorm", cases=0)
    with pytest.raises(UsageError, match="seed must be at least 0, not -1"):
        conforms("rmsnorm", seed=-1)
    with pytest.raises(UsageError, match=r"dtypes must be a list of names with at least one, not \[\]"):
        conforms("rmsnorm", dtypes=[])


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((lambda: None,), {}, r'write @conforms\("softmax"\), not @conforms alone'),
        ((5,), {}, "operator must be a name, such as 'softmax', not 5"),
        (("softmax",), {"cases": "a"}, "cases must be a whole number, not 'a'"),
        (("softmax",), {"cases": True}, "cases must be a whole number, not True"),
        (("softmax",), {"seed": None}, "seed must be a whole number, not None"),
        (("softmax",), {"dtypes": "float32"}, "dtypes must be a list of names, such as .*, not 'float32'"),
        (("softmax",), {"strict": "yes"}, "strict must be True or False, not 'yes'"),
        (("softmax",), {"device": 0}, "device must be a name, such as 'sim:sm_90', not 0"),
    ],
)
def test_arguments_of_another_type_are_named(arguments, options, words):
    with pytest.raises(TypeError, match=words):
        conforms(*arguments, **options)


@pytest.mark.parametrize("target", [5, int])
def test_only_a_function_can_be_decorated(target):
    with pytest.raises(TypeError, match="conforms goes above a test function, not above"):
        conforms("softmax")(target)


def test_two_operators_for_one_test_are_refused(run):
    result = run("""
@conforms("rmsnorm")
@conforms("softmax")
def test_both():
    return norm
""")
    assert result.ret != 0
    assert (
        "is to conform to softmax, rmsnorm; write a test function for each" in result.stdout.str() + result.stderr.str()
    )


def test_reports_from_several_processes_are_those_of_one(run, pytester):
    alone = run(RIGHT + WRONG, "--refsim-report", "alone.json")
    alone.assert_outcomes(passed=3, failed=1)
    alone.stdout.fnmatch_lines(["refsim: 4 results in alone.json"])
    spread = run("", "--refsim-report", "spread.json", "-n", "2")
    spread.assert_outcomes(passed=3, failed=1)
    one, other = (json.loads((pytester.path / name).read_text()) for name in ("alone.json", "spread.json"))
    assert one["results"] == other["results"]
    assert len(one["results"]) == 4
    assert {row["verdict"] for row in one["results"]} == {"PASS", "FAIL"}


def test_other_forms_of_the_report(run, pytester):
    run(RIGHT, "-k", "float32", "--refsim-report", "report.xml").assert_outcomes(passed=1, deselected=2)
    (test,) = ElementTree.parse(pytester.path / "report.xml").iter("testcase")
    assert (test.get("classname"), test.get("name")) == ("rmsnorm.test_mine.py::test_right", "float32")
    run("", "-k", "float32", "--refsim-report", "report.html")
    assert (pytester.path / "report.html").read_text().startswith("<!doctype html>")


def test_an_installed_refsim_brings_the_plugin():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"refsim": "refsim.pytest_plugin"}


def test_the_plugin_loads_nothing_heavy():
    code = (
        "import sys, refsim.pytest_plugin as p; print(sorted({'numpy', 'numba', 'oracle', 'click'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
