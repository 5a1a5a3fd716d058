"""Ctrl-C while fuzzing: the report of what was found, nothing half-written, the database in order."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from refsim.cli import main

MINE = """
import os
import signal
import time
import numpy as np

calls = 0


def right(x):
    wide = x.astype(np.promote_types(x.dtype, np.float32))
    weights = np.exp(wide - wide.max(axis=-1, keepdims=True, initial=-np.inf))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(x.dtype)


def column_five(x):
    y = right(x)
    y[..., 5:6] *= x.dtype.type(1.5)
    return y


def ctrl_c(x):
    global calls
    calls += x.shape[-1] > 5
    if calls == 3:  # the first failure is not yet shrunk
        signal.raise_signal(signal.SIGINT)
    return column_five(x)


def holds_on(x):
    try:
        return ctrl_c(x)
    except BaseException:
        return np.zeros_like(x)


def stuck(x):
    global calls
    calls += x.shape[-1] > 5
    if calls > 6:  # after a failure
        open("stuck", "w").close()
        time.sleep(60)
    return column_five(x)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE, encoding="utf-8")
    return tmp_path


def words(attribute, *options):
    return ["fuzz", "softmax", "--backend", f"mine.py:{attribute}", "--dtype", "float32", "--seed", "3", *options]


@pytest.mark.parametrize("attribute", ["ctrl_c", "holds_on"])
def test_what_was_found_is_reported_and_kept(folder, attribute):
    options = ["--time", "60s", "--database", "examples", "--format", "json", "-o", "report.json"]
    result = CliRunner().invoke(main, words(attribute, *options))
    assert result.exit_code == 130, result.output
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    (row,) = json.loads(Path("report.json").read_text(encoding="utf-8"))["results"]
    assert row["verdict"] == "FAIL"
    assert 0 < row["cases"] < 40
    (failure,) = row["failures"]
    assert failure["element"]["index"][-1] == 5  # not what the interrupted case gave
    saved = json.loads(Path("refsim-failures.json").read_text(encoding="utf-8"))
    assert saved == [failure["case"]]
    there = {path.name for path in folder.iterdir()} - {"__pycache__"}
    assert there == {"mine.py", "examples", "report.json", "refsim-failures.json"}
    Path("mine.py").write_text(MINE.replace("calls == 3", "False"), encoding="utf-8")
    again = words(attribute, "--cases", "1", "--seed", "77", "--database", "examples")
    assert CliRunner().invoke(main, again).exit_code == 1  # the example that was kept is tried first


def test_between_two_cases_nothing_is_torn(folder, monkeypatch):
    """A signal that comes while hypothesis is at work, or a file is written, waits until that is done."""
    from refsim.conformance.fuzz import databases

    written = []

    def save(self, key, value):
        written.append("begun")
        if len(written) == 5:
            signal.raise_signal(signal.SIGINT)
        self.whole.save(self.label + key, value)
        written.append("done")

    monkeypatch.setattr(databases.Shelf, "save", save)
    result = CliRunner().invoke(main, words("column_five", "--time", "60s", "--database", "examples"))
    assert result.exit_code == 130
    assert written.count("begun") == written.count("done")
    assert "FAIL" in result.stdout


def test_ctrl_c_in_a_terminal_ends_workers_that_are_stuck(folder):
    """A terminal sends the signal to every process of the group."""
    options = ["--time", "300s", "--workers", "2", "--format", "json", "-o", "report.json", "--database", ""]
    process = subprocess.Popen(
        [sys.executable, "-m", "refsim", *words("stuck", *options)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        while not Path("stuck").exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    (row,) = json.loads(Path("report.json").read_text(encoding="utf-8"))["results"]
    assert row["verdict"] == "FAIL"


def test_two_at_once_share_a_database(folder):
    options = ["--cases", "60", "--database", "examples", "-o", "-", "--format", "json"]
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "refsim", *words("column_five", *options, "--failures", f"{seed}.json")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in (1, 2)
    ]
    for process in both:
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 1, errors
        assert "Error" not in errors
        assert json.loads(out)["results"][0]["verdict"] == "FAIL"
    again = words("column_five", "--cases", "1", "--seed", "77", "--database", "examples")
    assert CliRunner().invoke(main, again).exit_code == 1
