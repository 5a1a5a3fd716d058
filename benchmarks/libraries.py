"""What the judge says of PyTorch, JAX and ONNX Runtime: every operator that their backends serve, in every dtype.

Run: ``python benchmarks/libraries.py [BACKEND …]``; it prints the tables of docs/findings.md. Each operator is judged
by a ``refsim check`` of its own, so that what a library compiled is freed, and a crash costs one operator. Deviations
that ``benchmarks/known/BACKEND.toml`` lists are KNOWN. ``--folder`` keeps the JSON reports, and takes those that it
finds there, so that what was interrupted goes on. Exit status 1 if a row is anything but PASS, KNOWN or UNSUPPORTED.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from oracle.operator import find_operator
from refsim.conformance import load_backend

KNOWN = Path(__file__).resolve().parent / "known"
BACKENDS = ("torch", "jax", "onnxruntime")
FLOATS = ("float16", "bfloat16", "float32", "float64")
CONFORMS = ("PASS", "KNOWN", "UNSUPPORTED")

Row = dict[str, Any]


def operators_of(backend: str) -> list[str]:
    """The operators that a backend serves, sorted."""
    return sorted({row.operator for row in load_backend(backend, [], "sim:sm_90").capabilities()})


def judged(backend: str, operator: str, cases: int, seed: int, report: Path) -> dict[str, Any]:
    """The JSON report of one operator, the one that is there already if so; an ERROR row where none came of it."""
    if report.exists():
        return _read(report)
    known = KNOWN / f"{backend}.toml"
    command = [sys.executable, "-m", "refsim", "check", operator, "--backend", backend, "--format", "json"]
    command += ["--cases", str(cases), "--seed", str(seed), "--output", str(report)]
    command += [word for dtype in find_operator(operator).dtypes for word in ("--dtype", dtype)]
    command += ["--known", str(known)] if known.exists() else []
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if report.exists():
        return _read(report)
    last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
    print(f"{backend} {operator}: exit status {ended.returncode}: {last}", file=sys.stderr)
    lost = {"cases": 0, "worst_margin": None, "verdict": "ERROR", "failures": []}
    return {"results": [{"operator": operator, "kernel": "–", "dtype": "any", **lost}], "environment": {}, "known": []}


def _read(report: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return read


def cell(row: Row) -> str:
    """Verdict, worst margin, and how many cases deviate; those that are only SUSPECT apart."""
    text = str(row["verdict"])
    if row["worst_margin"] is not None:
        text += f" {float(row['worst_margin']):.3g}"
    if row["failures"]:
        suspect = sum(failure["reason"] == "statistics" for failure in row["failures"])
        text += f" ({len(row['failures'])} of {row['cases']}{f', {suspect} suspect' * bool(suspect)})"
    return text


def table(rows: list[Row]) -> Iterator[str]:
    """Markdown: a line per operator × function, a column per dtype."""
    yield f"| operator | function | {' | '.join(FLOATS)} | other dtypes |"
    yield "| --- " * (len(FLOATS) + 3) + "|"
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        lines.setdefault((row["operator"], row["kernel"]), {})[row["dtype"]] = cell(row)
    for (operator, kernel), cells in lines.items():
        others = "; ".join(f"{dtype} {text}" for dtype, text in cells.items() if dtype not in FLOATS)
        yield f"| {operator} | {kernel} | {' | '.join(cells.get(dtype, '') for dtype in FLOATS)} | {others} |"


def survey(backend: str, cases: int, seed: int, folder: Path) -> bool:
    """Judge one backend and print its table; whether it conforms but for what is known."""
    rows: list[Row] = []
    untrue: list[str] = []
    environment: dict[str, str] = {}
    for operator in operators_of(backend):
        report = judged(backend, operator, cases, seed, folder / f"{backend}-{operator}.json")
        rows += report["results"]
        environment = environment or report["environment"]
        untrue += [f"{entry['where']}: {entry['problem']}" for entry in report["known"] if entry["problem"]]
        print(f"{backend} {operator}: {', '.join(row['verdict'] for row in report['results'])}", file=sys.stderr)
    suspect = sum(failure["reason"] == "statistics" for row in rows for failure in row["failures"])
    print(f"\n## {backend}: {', '.join(f'{name} {version}' for name, version in environment.items())}\n")
    print(*table(rows), sep="\n")
    verdicts = [row["verdict"] for row in rows]
    counted = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in sorted(set(verdicts)))
    print(f"\n{len(rows)} rows: {counted}; {sum(row['cases'] for row in rows)} cases, {suspect} of them suspect.")
    print(*(f"\nknown deviation {line}" for line in untrue), sep="")
    return not untrue and all(verdict in CONFORMS for verdict in verdicts)


def main() -> None:
    """Judge the backends named, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("backends", nargs="*", metavar="BACKEND", help=f"default: {' '.join(BACKENDS)}")
    parser.add_argument("--cases", type=int, default=48, help="per operator and dtype (default: 48)")
    parser.add_argument("--seed", type=int, default=0, help="of all inputs (default: 0)")
    parser.add_argument("--folder", type=Path, help="where the JSON reports are kept")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        conform = [survey(backend, given.cases, given.seed, folder) for backend in given.backends or BACKENDS]
    sys.exit(0 if all(conform) else 1)


if __name__ == "__main__":
    main()
