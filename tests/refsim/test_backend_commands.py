"""``refsim backends``, ``refsim backend init``, and profiles as a measure of progress."""

import json
import shlex
import subprocess
import sys

import pytest
from click.testing import CliRunner

from oracle.profiles import PROFILES
from refsim.cli import main
from refsim.conformance import Report, Result, Verdict
from refsim.conformance.standing import standing, standings


def test_installed_backends_are_listed_with_what_they_cover():
    listed = json.loads(CliRunner().invoke(main, ["backends", "--format", "json"]).stdout)["backends"]
    by_name = {one["name"]: one for one in listed}
    assert {"numba", "cupy", "torch"} <= set(by_name)
    row = next(one for one in by_name["numba"]["operators"] if one["operator"] == "softmax")
    assert "float32" in row["dtypes"]
    assert row["layouts"] == ["contiguous", "transposed", "padded", "strided", "misaligned"]
    text = CliRunner().invoke(main, ["backends"]).stdout
    assert "numba on sim:sm_90" in text
    if not by_name["torch"]["available"]:
        assert "pip install" in by_name["torch"]["reason"]


def test_the_skeleton_conforms_and_its_test_passes(tmp_path):
    result = CliRunner().invoke(main, ["backend", "init", "my_device", "--folder", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert f"wrote {tmp_path}/my_device.py and {tmp_path}/test_my_device.py" in result.stdout
    judged = CliRunner().invoke(main, ["check", "softmax", "--backend", f"{tmp_path}/my_device.py:backend"])
    assert judged.exit_code == 0, judged.output
    assert judged.stdout.count("PASS") == 3
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_device.py"]
    tested = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert "1 passed" in tested.stdout, tested.stdout


def test_a_skeleton_by_its_bare_name_is_found_as_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(main, ["backend", "init", "my_device"])
    result = CliRunner().invoke(main, ["check", "--profile", "dense-llm", "--backend", "my_device"])
    assert result.exit_code == 2
    assert "unknown backend 'my_device'; did you mean 'my_device.py:backend'?" in " ".join(result.output.split())


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "test_mine.py").write_text("kept", encoding="utf-8")
    result = CliRunner().invoke(main, ["backend", "init", "mine", "--folder", str(tmp_path)])
    assert result.exit_code == 2
    assert "exists already and is not overwritten" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["test_mine.py"]
    assert (tmp_path / "test_mine.py").read_text(encoding="utf-8") == "kept"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("class", "is a keyword of Python; choose another, such as my_class"),
        ("None", "is a keyword of Python"),
        ("conftest", "pytest or Python takes for a file of its own kind"),
        ("test_x", "pytest or Python takes for a file of its own kind"),
        ("__init__", "pytest or Python takes for a file of its own kind; choose another, such as my_init"),
        ("json", "a module that Python finds already"),
        ("numpy", "a module that Python finds already"),
        ("refsim", "a module that Python finds already"),
        ("sys", "a module that Python finds already (built-in)"),
        ("numba", "that of an installed backend"),
    ],
)
def test_a_name_that_means_something_else_already(tmp_path, name, why):
    result = CliRunner().invoke(main, ["backend", "init", name, "--folder", str(tmp_path)])
    assert result.exit_code == 2
    assert why in " ".join(result.output.split())
    assert not list(tmp_path.iterdir())


def test_files_that_cannot_be_written_are_wrong_usage(tmp_path):
    (tmp_path / "mine.py").symlink_to(tmp_path / "nowhere")
    for name, folder, why in (
        ("mine", str(tmp_path), "exists already and is not overwritten"),
        ("a" * 300, str(tmp_path), "cannot be written to"),
        ("a" * 248, str(tmp_path), "cannot be written to"),  # the adapter can be; its test cannot
        ("other", "/proc", "cannot be written to /proc"),
        ("other", str(tmp_path / "mine.py"), "no such folder"),
        ("other", "", "'' names no folder"),
    ):
        result = CliRunner().invoke(main, ["backend", "init", name, "--folder", folder])
        assert result.exit_code == 2, (name, folder, result.output)
        assert why in " ".join(result.output.split())
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]


def test_the_commands_can_be_pasted_from_any_folder(tmp_path):
    folder = tmp_path / "sp ace"
    folder.mkdir()
    result = CliRunner().invoke(main, ["backend", "init", "mine", "--folder", str(folder)])
    line = next(line for line in result.stdout.splitlines() if line.startswith("judge it:"))
    words = shlex.split(line.removeprefix("judge it:"))
    assert words == ["refsim", "check", "softmax", "--backend", f"{folder}/mine.py:backend"]
    judged = CliRunner().invoke(main, [*words[1:], "--dtype", "float32", "--cases", "8"])
    assert judged.exit_code == 0, judged.output


@pytest.mark.parametrize("name", ["my-device", "1st", "a.b"])
def test_a_name_that_python_does_not_know(tmp_path, name):
    result = CliRunner().invoke(main, ["backend", "init", name, "--folder", str(tmp_path)])
    assert result.exit_code == 2
    assert "must be a Python name" in result.output


def row(operator, verdict):
    return Result(operator, "mine", "float32", "float32", 1, 0, 0, 0.5, verdict)


def test_a_profile_is_claimed_where_every_operator_conforms():
    complete = Report("mine", "host", 0, tuple(row(name, Verdict.PASS) for name in PROFILES["core"]))
    assert [str(one) for one in standings(complete, ["core"])] == [
        f"profile core: {len(PROFILES['core'])} of {len(PROFILES['core'])} operators conform: it can be claimed"
    ]


def test_what_fails_comes_before_what_is_missing():
    results = (row("softmax", Verdict.PASS), row("softmax", Verdict.FAIL), row("sum", Verdict.UNSUPPORTED))
    found = standing(Report("mine", "host", 0, (*results, row("matmul", Verdict.SUSPECT))), "core")
    assert (found.conforming, found.failing) == (("matmul",), ("softmax",))
    assert "sum" in found.missing
    assert str(found).endswith("\n  next: softmax (what it is: refsim ops softmax)")
    assert standing(Report("mine", "host", 0, (row("matmul", Verdict.SUSPECT),)), "core", strict=True).failing == (
        "matmul",
    )


def test_check_shows_the_progress_of_a_port(tmp_path):
    CliRunner().invoke(main, ["backend", "init", "mine", "--folder", str(tmp_path)])
    words = [
        "check",
        "--profile",
        "core",
        "--backend",
        f"{tmp_path}/mine.py:backend",
        "--dtype",
        "float32",
        "--cases",
        "12",
    ]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 3, result.output
    assert (
        f"profile core: 1 of {len(PROFILES['core'])} operators conform\n  conform: softmax\n  not served: sum, mean"
        in (result.output)
    )
    assert "\n  next: sum (what it is: refsim ops sum)" in result.output
    assert "not served at all: sum, mean, max" in result.output
    two = CliRunner().invoke(main, [*words, "--profile", "collective"])
    assert "profile core: 1 of" in two.output
    assert f"profile collective: 0 of {len(PROFILES['collective'])} operators conform" in two.output
    both = CliRunner().invoke(main, [*words, "softmax"])
    assert both.exit_code == 2
    assert "--profile" in both.output
