"""What the page on PyTorch, JAX and ONNX Runtime rests on: its script, its lists of known deviations, its sessions."""

import runpy
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from refsim.conformance.known import read_known

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = ROOT / "benchmarks" / "libraries.py"
VERSIONS = {"torch": "2.14.1", "jax": "0.10.2", "onnxruntime": "1.32.0", "onnx": "1.23.2"}


def installed(name):
    try:
        return version(name).partition("+")[0]
    except PackageNotFoundError:
        return None


@pytest.fixture
def script():
    return runpy.run_path(str(LIBRARIES))


@pytest.mark.parametrize("library", ["torch", "jax", "onnxruntime"])
def test_lists_of_known_deviations_are_well_formed(library):
    entries = read_known(ROOT / "benchmarks" / "known" / f"{library}.toml")
    assert entries
    assert all(entry.reason and not entry.reason.endswith(".") for entry in entries)


def test_a_table_has_a_line_per_function_and_a_column_per_dtype(script):
    failures = [{"reason": "statistics"}, {"reason": "value"}]
    row = {"operator": "sum", "kernel": "add", "cases": 4, "verdict": "PASS", "worst_margin": 0.25, "failures": []}
    rows = [
        {**row, "dtype": "float32"},
        {**row, "dtype": "float64", "verdict": "FAIL", "worst_margin": "inf", "failures": failures},
        {**row, "dtype": "int8", "verdict": "UNSUPPORTED", "worst_margin": None},
    ]
    *_, line = script["table"](rows)
    assert line == "| sum | add |  |  | PASS 0.25 | FAIL inf (2 of 4, 1 suspect) | int8 UNSUPPORTED |"


def test_an_operator_whose_run_breaks_off_is_an_error(script, tmp_path, capsys):
    report = script["judged"]("no such backend", "sum", 1, 0, tmp_path / "sum.json")
    assert [row["verdict"] for row in report["results"]] == ["ERROR"]
    assert "no such backend" in capsys.readouterr().err


@pytest.mark.skipif(
    {name: installed(name) for name in VERSIONS} != VERSIONS,
    reason=f"the page is about {', '.join(f'{name} {number}' for name, number in VERSIONS.items())}",
)
def test_sessions_of_the_page_give_what_it_shows():
    command = [sys.executable, "-W", "ignore", "-m", "doctest", str(ROOT / "docs" / "findings.md")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout


def test_the_page_and_the_test_name_the_same_versions():
    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    words = {"torch": "PyTorch", "jax": "JAX", "onnxruntime": "ONNX Runtime", "onnx": "ONNX"}
    assert all(f"{words[name]} {number}" in page for name, number in VERSIONS.items())
