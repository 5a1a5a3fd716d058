"""Reports: a table for people, and versioned JSON."""

from __future__ import annotations

import io
import json
import math
import shlex
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from refsim.conformance.verdicts import Failure, Report, Result, Verdict

SCHEMA = "refsim-check/1"
WIDTH = 120
STYLES = {
    Verdict.PASS: "green",
    Verdict.SUSPECT: "yellow",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.UNSUPPORTED: "yellow",
    Verdict.FAIL: "red",
    Verdict.ERROR: "red",
}


def to_json(report: Report) -> dict[str, Any]:
    """A report as JSON values.

    ``schema`` names the version; a NaN or an infinity is the string "nan", "inf" or "-inf". Each entry of
    ``failures`` holds the case, which `oracle.cases.Case.from_json` reads, and what went wrong.
    """
    return {
        "schema": SCHEMA,
        "backend": report.backend,
        "device": report.device,
        "seed": report.seed,
        "results": [_result(result) for result in report.results],
    }


def json_text(report: Report) -> str:
    """A report as JSON text, ending in a newline."""
    return json.dumps(to_json(report), indent=2, allow_nan=False) + "\n"


def text(report: Report, *, debug: bool = False, terminal: bool = False) -> str:
    """A report as a table, with a paragraph per row that did not pass; ``debug`` adds tracebacks."""
    buffer = io.StringIO()
    console = Console(file=buffer, width=None if terminal else WIDTH, force_terminal=terminal, highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("operator", "kernel", "dtype"):
        table.add_column(heading, no_wrap=True)
    table.add_column("cases", justify="right", no_wrap=True)
    table.add_column("worst margin", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for result in report.results:
        style = STYLES[result.verdict]
        table.add_row(
            escape(result.operator),
            escape(result.kernel),
            result.dtype,
            f"{result.cases} of {result.cases + result.refused}" if result.refused else str(result.cases),
            "–" if result.worst_margin is None else f"{result.worst_margin:.3g}",
            f"[{style}]{result.verdict.value}[/{style}]",
        )
    title = f"backend {escape(report.backend)} on {escape(report.device)}, seed {report.seed}"
    console.print(title, soft_wrap=True)
    # A narrow terminal wraps the lines; cut-off names and verdicts would say nothing.
    console.width = max(console.width, table.__rich_measure__(console, console.options.update(width=10_000)).maximum)
    console.print(table)
    for result in report.results:
        if result.verdict is not Verdict.PASS:
            console.print(_paragraph(result, report, debug), soft_wrap=True)
    if not report.results:
        console.print("nothing ran: the backend serves none of the operators and dtypes asked for")
    return buffer.getvalue()


def _command(failure: Failure, report: Report) -> str:
    """The command that runs a failing case again."""
    words = ["refsim", "replay", json.dumps(failure.case.to_json()), "--backend", report.backend]
    if report.device.startswith("sim:"):
        words += ["--device", report.device]
    return shlex.join(words)


def _paragraph(result: Result, report: Report, debug: bool) -> str:
    title = f"{result.operator} × {result.kernel} × {result.dtype}"
    lines = ["", f"[bold]{escape(title)}: {result.verdict.value}[/bold]  {escape(result.reason)}"]
    if result.failures:
        first = result.failures[0]
        count = len(result.failures)
        lines.append(f"  {count} of {result.cases} cases; the first: {escape(str(first.case))}")
        lines.append(f"  again: {escape(_command(first, report))}")
        if first.detail and (debug or first.verdict is not Verdict.ERROR):
            lines.extend(f"    {escape(line)}" for line in first.detail.rstrip().splitlines())
    return "\n".join(lines)


def _result(result: Result) -> dict[str, Any]:
    return {
        "operator": result.operator,
        "kernel": result.kernel,
        "dtype": result.dtype,
        "numerics": result.numerics,
        "cases": result.cases,
        "refused": result.refused,
        "inconclusive": result.inconclusive,
        "worst_margin": _number(result.worst_margin),
        "verdict": result.verdict.value,
        "reason": result.reason,
        "failures": [_failure(failure) for failure in result.failures],
    }


def _failure(failure: Failure) -> dict[str, Any]:
    record: dict[str, Any] = {
        "case": failure.case.to_json(),
        "verdict": failure.verdict.value,
        "reason": failure.reason,
        "message": failure.message,
        "wrong": failure.wrong,
        "total": failure.total,
    }
    if failure.element:
        element = failure.element
        record["element"] = {
            "output": element.output,
            "index": list(element.index),
            "low": _number(element.low),
            "high": _number(element.high),
            "got": _number(element.got),
            "rule": element.rule,
        }
    return record


def _number(value: float | None) -> float | str | None:
    """A number that JSON can hold; others by name."""
    return value if value is None or math.isfinite(value) else str(value)
