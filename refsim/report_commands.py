"""``refsim report`` and ``refsim diff``: reports that were made before, in another form or against each other."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from refsim.conformance.reading import read_json
from refsim.conformance.reports import FORMS, from_json, write
from refsim.conformance.reports.differences import Difference, comparable, differences
from refsim.conformance.reports.text import shown
from refsim.conformance.verdicts import Report, Result
from refsim.destinations import Destination

STYLES = {"worse": "red", "better": "green", "changed": "yellow", "new": "cyan"}
WIDTH = 120


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "--format", "form", type=click.Choice(FORMS), default="text", show_default=True, help="Form of the report."
)
@click.option("--strict", is_flag=True, help="A SUSPECT row does not conform.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the report to this file.")
def report(sources: tuple[Path, ...], form: str, strict: bool, output: Path | None) -> None:
    """Write JSON reports FILE in another form; several stand side by side, one backend each.

    Exit status: the gravest that refsim check gave for any of them.
    """
    destination = Destination(output)
    reports = [_read(source) for source in sources]
    destination.write(write(reports, form, strict=strict, terminal=destination.is_terminal))
    codes = {one.exit_code(strict) for one in reports}
    raise click.exceptions.Exit(1 if 1 in codes else max(codes))


@click.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the comparison to this file.")
def diff(old: Path, new: Path, output: Path | None) -> None:
    """Say what got better or worse from one JSON report to another, row by row.

    Exit status: 0 nothing got worse, 1 something did, 2 a file that is no report.
    """
    destination = Destination(output)
    before, after = _read(old), _read(new)
    found = differences(before, after)
    destination.write(_shown(found, comparable(before, after), destination.is_terminal))
    raise click.exceptions.Exit(1 if any(one.kind == "worse" for one in found) else 0)


def _read(source: Path) -> Report:
    return from_json(read_json(source), str(source))


def _shown(found: Sequence[Difference], notes: Sequence[str], terminal: bool) -> str:
    buffer = io.StringIO()
    console = Console(file=buffer, width=None if terminal else WIDTH, force_terminal=terminal, highlight=False)
    for note in notes:
        console.print(shown(note), soft_wrap=True)
    if found:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("", "operator", "kernel", "dtype", "before", "now"):
            table.add_column(heading, no_wrap=True)
        for one in found:
            kind = f"[{STYLES[one.kind]}]{one.kind}[/]"
            table.add_row(kind, *map(shown, one.row), _verdict(one.old), _verdict(one.new))
        measured = table.__rich_measure__(console, console.options.update(width=10_000)).maximum
        console.width = max(console.width, measured)
        console.print(table)
        for one in found:
            if one.why:
                console.print(f"{one.kind}: {shown(' × '.join(one.row))}: {shown(one.why)}", soft_wrap=True)
    counts = {kind: sum(one.kind == kind for one in found) for kind in STYLES}
    told = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    console.print(told or "no row changed")
    return buffer.getvalue()


def _verdict(result: Result | None) -> str:
    return "–" if result is None else result.verdict.value
