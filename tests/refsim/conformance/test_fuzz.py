"""Fuzzing: what it finds, how small it makes it, and what it writes down."""

import json
import os
import runpy
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from oracle.cases import Case
from oracle.cases.recipes import RECIPES
from oracle.operator import find_operator
from refsim.cli import main
from refsim.conformance import Capability, FunctionBackend, UsageError, Verdict
from refsim.conformance.fuzz.campaign import Campaign, Row
from refsim.conformance.fuzz.databases import database
from refsim.conformance.fuzz.evaluate import Here, Task
from refsim.conformance.fuzz.profiles import duration
from refsim.conformance.fuzz.shrink import shrink

MINE = """
import os
import numpy as np


def right(x):
    wide = x.astype(np.promote_types(x.dtype, np.float32))
    weights = np.exp(wide - wide.max(axis=-1, keepdims=True, initial=-np.inf))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(x.dtype)


def column_five(x):
    y = right(x)
    y[..., 5:6] *= x.dtype.type(1.5)
    return y


def deadly(x):
    if x.shape[-1] == 3:
        os._exit(7)
    return right(x)
"""


def right(x):
    wide = x.astype(np.promote_types(x.dtype, np.float32))
    with np.errstate(all="ignore"):
        weights = np.exp(wide - wide.max(axis=-1, keepdims=True, initial=-np.inf))
        return (weights / weights.sum(axis=-1, keepdims=True)).astype(x.dtype)


def campaign(function, dtype="float32", per_round=60, **options):
    backend = FunctionBackend(function, find_operator("softmax"), "mine")
    row = Row(Capability("softmax", function.__name__, dtype), "float32")
    made = Campaign([row], Here(backend), seed=3, per_round=per_round, **options)
    made.run()
    return made, row.result()


def fuzz(tmp_path, attribute, *options, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    words = ["fuzz", "softmax", "--backend", f"mine.py:{attribute}", "--profile", "ci", "--dtype", "float32"]
    return CliRunner().invoke(main, [*words, *options])


def test_an_honest_function_passes_and_its_margin_is_reported():
    made, result = campaign(right)
    assert result.verdict is Verdict.PASS
    assert result.cases == 60
    assert 0 < result.worst_margin <= 1
    assert "60 cases" in made.status()
    assert "1 of 1 operators, 0 failures" in made.status()


def test_equal_seeds_try_equal_cases():
    seen = []

    def recording(x):
        seen.append(x.tobytes())
        return right(x)

    campaign(recording, per_round=20)
    first, seen[:] = list(seen), []
    campaign(recording, per_round=20)
    assert first == seen


def test_a_failure_shrinks_to_the_smallest_shape_and_the_simplest_class():
    def one_column(x):
        y = right(x)
        y[..., 5:6] *= x.dtype.type(1.5)  # so nothing with fewer than six columns fails
        return y

    _, result = campaign(one_column)
    (failure,) = [failure for failure in result.failures if failure.reason == "value"]
    assert int(np.prod(list(failure.case.dims.values()))) == 6
    assert failure.case.dims["cols"] == 6
    assert (failure.case.value_class, failure.case.layout) == ("normal", "contiguous")
    assert failure.element.index[-1] == 5


def test_each_kind_of_failure_is_found_once():
    def two_faults(x):
        if x.shape[-1] % 2 == 0:
            raise RuntimeError("even")
        return right(x).astype(np.float64)

    _, result = campaign(two_faults)
    assert sorted(failure.reason for failure in result.failures) == ["dtype", "exception"]
    assert result.verdict is Verdict.FAIL


def test_what_fails_only_sometimes_is_kept():
    calls = []

    def moody(x):
        calls.append(1)
        return right(x) * (2 if len(calls) == 30 else 1)

    _, result = campaign(moody)
    assert result.verdict is Verdict.FAIL


def test_targets_lead_toward_the_bound():
    """The margin rises with the number of columns: steering finds more of it than drawing does."""

    def drifting(x):
        y = right(x)
        y[..., :1] = np.nextafter(y[..., :1], np.float32(2), dtype=np.float32)
        return y

    _, result = campaign(drifting, per_round=60)
    _, plain = campaign(right, per_round=60)
    assert plain.worst_margin < result.worst_margin


def test_sizes_that_no_recipe_draws_are_tried_when_shrinking():
    case = Case("softmax", "float32", {"d0": 7, "cols": 33}, {}, "wide", "padded", seed=99)
    smallest = shrink(case, lambda candidate: candidate.dims["cols"] >= 11)
    assert smallest.dims == {"d0": 1, "cols": 11}
    assert (smallest.value_class, smallest.layout, smallest.seed) == ("normal", "contiguous", 0)


@pytest.mark.parametrize("operator", sorted(RECIPES))
def test_every_recipe_can_be_drawn_by_hypothesis(operator):
    from hypothesis import find, settings
    from hypothesis.errors import NoSuchExample

    from refsim.conformance.fuzz.strategies import cases

    drawn = []

    def note(case):
        find_operator(operator).validate(case.inputs(), case.params)
        drawn.append(case)
        return False

    dtype = find_operator(operator).dtypes[0]
    with pytest.raises(NoSuchExample):
        find(cases(operator, dtype), note, settings=settings(max_examples=8, database=None, derandomize=True))
    assert {(case.operator, case.dtype) for case in drawn} == {(operator, dtype)}


def test_a_failure_is_explained_saved_and_replayed(tmp_path, monkeypatch):
    result = fuzz(tmp_path, "column_five", "--export-test", "test_found.py", monkeypatch=monkeypatch)
    assert result.exit_code == 1, result.output
    assert "cols=6 · normal · contiguous" in result.stdout
    for word in ("cols=6", "where     out[", "expected  ", "got       ", "rule      "):
        assert word in result.stdout
    saved = json.loads((tmp_path / "refsim-failures.json").read_text(encoding="utf-8"))
    again = CliRunner().invoke(main, ["replay", "refsim-failures.json", "--backend", "mine.py:column_five"])
    assert again.exit_code == 1
    first = next(line for line in result.stdout.splitlines() if "elements outside; rule:" in line)
    assert first in again.stdout.splitlines()  # the same numbers to the last bit
    assert {Case.from_json(case).dims["cols"] for case in saved} == {6}
    exported = runpy.run_path(str(tmp_path / "test_found.py"))
    assert len(exported["CASES"]) == len(saved)
    for name in exported["CASES"]:
        with pytest.raises(AssertionError, match="elements outside"):
            exported["test_case"](name)
    source = (tmp_path / "mine.py").read_text(encoding="utf-8")
    (tmp_path / "mine.py").write_text(source.replace("type(1.5)", "type(1)"), encoding="utf-8")
    for name in exported["CASES"]:
        exported["test_case"](name)


def test_what_ends_its_process_is_shrunk_too(tmp_path, monkeypatch):
    result = fuzz(tmp_path, "deadly", "--isolated", "--seed", "0", "--cases", "40", monkeypatch=monkeypatch)
    assert result.exit_code == 1, result.output
    assert "cols=3 · normal · contiguous · seed 0" in result.stdout
    assert "its process ended with exit status 7" in result.stdout


def test_whoever_is_not_trusted_does_not_know_the_seed(tmp_path, monkeypatch):
    words = ("right", "--isolated", "--cases", "1", "--format", "json")  # the profile's seed is 0
    seeds = {json.loads(fuzz(tmp_path, *words, monkeypatch=monkeypatch).stdout)["seed"] for _ in range(2)}
    assert len(seeds) == 2
    assert 0 not in seeds


def test_nothing_found_writes_no_file(tmp_path, monkeypatch):
    result = fuzz(tmp_path, "right", "--cases", "10", "--format", "json", monkeypatch=monkeypatch)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["results"][0]["verdict"] == "PASS"
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == ["mine.py"]


def test_without_a_database_the_folder_stays_as_it_was(tmp_path):
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    (tmp_path / "folders").mkdir()
    words = ["fuzz", "softmax", "--backend", "mine.py:right", "--dtype", "float32", "--cases", "40", "--database", ""]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "folders"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("HYPOTHESIS_STORAGE_DIRECTORY", None)
    command = [sys.executable, "-m", "refsim", *words]  # hypothesis reads a module once in a process
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["folders", "mine.py"]


def test_the_database_brings_a_failure_back_at_once(tmp_path):
    def rare(x):
        y = right(x)
        if x.shape[-1] > 60:
            y += 1
        return y

    kept = database(str(tmp_path / "examples"))
    _, result = campaign(rare, per_round=100, database=kept)
    assert result.verdict is Verdict.FAIL
    assert any((tmp_path / "examples").iterdir())
    backend = FunctionBackend(rare, find_operator("softmax"), "mine")
    verdicts = []
    for examples in (None, kept):
        row = Row(Capability("softmax", "rare", "float32"), "float32")
        Campaign([row], Here(backend), seed=77, per_round=2, database=examples).run()
        verdicts.append(row.result().verdict)
    assert verdicts == [Verdict.PASS, Verdict.FAIL]


@pytest.mark.parametrize(("text", "wanted"), [("90s", 90), ("10m", 600), ("1.5h", 5400), ("7", 7)])
def test_durations(text, wanted):
    assert duration(text) == wanted


@pytest.mark.parametrize("text", ["", "soon", "-3s", "0m", "3d"])
def test_what_is_no_duration(text):
    with pytest.raises(UsageError, match="is no duration; give for example"):
        duration(text)


@pytest.mark.parametrize(("missing", "option"), [("hypothesis", []), ("distributed", ["--workers", "2"])])
def test_a_missing_package_is_named_with_its_installation(tmp_path, monkeypatch, missing, option):
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else real(name))
    result = fuzz(tmp_path, "right", *option, monkeypatch=monkeypatch)
    assert result.exit_code == 2
    assert "python -m pip install 'refsim[" in result.output


def test_a_redis_database_without_its_client(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.delitem(sys.modules, "hypothesis.extra.redis", raising=False)
    with pytest.raises(UsageError, match="pip install redis"):
        database("redis://localhost:6379")


def test_a_task_gives_the_same_outcome_in_another_process(tmp_path):
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    row = Capability("softmax", "column_five", "float32")
    case = Case("softmax", "float32", {"cols": 6})
    outcome = Task(f"{tmp_path}/mine.py:column_five", "sim:sm_90", ("softmax",), row, case.to_json(), True).run()
    assert outcome.verdict is Verdict.FAIL
    assert outcome.failure.element.index == (5,)
