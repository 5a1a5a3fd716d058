"""A report as a table, with a paragraph for each row that did not pass."""

from __future__ import annotations

import io

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from refsim.conformance.replay_command import command
from refsim.conformance.verdicts import Report, Result, Verdict
from refsim.errors import printable

WIDTH = 120
STYLES = {
    Verdict.PASS: "green",
    Verdict.SUSPECT: "yellow",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.UNSUPPORTED: "yellow",
    Verdict.KNOWN: "cyan",
    Verdict.FAIL: "red",
    Verdict.ERROR: "red",
}


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
            shown(result.operator),
            shown(result.kernel),
            shown(result.dtype),
            f"{result.cases} of {result.cases + result.refused}" if result.refused else str(result.cases),
            "–" if result.worst_margin is None else f"{result.worst_margin:.3g}",
            f"[{style}]{result.verdict.value}[/{style}]",
        )
    title = f"backend {shown(report.backend)} on {shown(report.device)}, seed {report.seed}"
    console.print(title, soft_wrap=True)
    # A narrow terminal wraps the lines; cut-off names and verdicts would say nothing.
    console.width = max(console.width, table.__rich_measure__(console, console.options.update(width=10_000)).maximum)
    console.print(table)
    absent = [result.operator for result in report.results if _not_served(result)]
    for result in report.results:
        if result.verdict is not Verdict.PASS and (len(absent) == 1 or not _not_served(result)):
            console.print(_paragraph(result, debug), soft_wrap=True)
    if len(absent) > 1:
        console.print(f"\n[bold]not served at all:[/bold] {shown(', '.join(absent))}", soft_wrap=True)
    if report.outdated:
        console.print("\n[bold]The list of known deviations is not true any more:[/bold]")
    for entry in report.outdated:
        console.print(f"  {shown(entry.advice)}", soft_wrap=True)
    if not report.results:
        console.print("nothing ran: the backend serves none of the operators and dtypes asked for")
    return buffer.getvalue()


def shown(text: str) -> str:
    """What may come from the judged, so that it is neither markup nor moves the cursor nor begins a line."""
    return escape(printable(text))


def _not_served(result: Result) -> bool:
    """Whether the backend has nothing for the operator."""
    return result.verdict is Verdict.UNSUPPORTED and not result.cases and not result.refused


def _paragraph(result: Result, debug: bool) -> str:
    title = f"{result.operator} × {result.kernel} × {result.dtype}"
    lines = ["", f"[bold]{shown(title)}: {result.verdict.value}[/bold]  {shown(result.reason)}"]
    if result.failures:
        first = result.failures[0]
        count = len(result.failures)
        lines.append(f"  {count} of {result.cases} cases; the first: {shown(str(first.case))}")
        lines.append(f"  again: {shown(command(result.again, first.case))}")
        if first.detail and (debug or first.verdict is not Verdict.ERROR):
            lines.extend(f"    {shown(line)}" for line in first.detail.rstrip().splitlines())
    return "\n".join(lines)
