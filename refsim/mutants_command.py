"""``refsim mutants``: whether the judge can be trusted with the operators."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from oracle.operator import find_operator
from refsim.destinations import Destination
from refsim.operator_commands import all_operators

if TYPE_CHECKING:
    from refsim.conformance.mutation import Trial

WIDTH = 160


@click.command()
@click.argument("operators", nargs=-1, metavar="[OP]...")
@click.option("--dtype", "dtypes", multiple=True, help="Dtype to try; may be repeated. Default: each operator's own.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all inputs.")
@click.option("--cases", "count", type=click.IntRange(min=1), default=48, show_default=True, help="Cases per dtype.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the result.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the result to this file.")
def mutants(
    operators: tuple[str, ...], dtypes: tuple[str, ...], seed: int, count: int, form: str, output: Path | None
) -> None:
    """Try the judge on variants of operators OP (all if none is given) that are known to be right or wrong.

    One row per variant and dtype, one column per value class and relation: × refused, s refused by statistics alone,
    · accepted. A control must be accepted everywhere, a mutant refused somewhere. At the end, what rules that are
    common elsewhere make of the same answers.

    Exit status: 0 if so, 1 if not.
    """
    from oracle.variants import variants_of
    from refsim.conformance.mutation import trials
    from refsim.conformance.trust import as_json

    destination = Destination(output)
    names = list(dict.fromkeys(operators)) or [r.name for r in all_operators() if variants_of(r.name)]
    found: list[Trial] = []
    tables = []
    for name in names:
        mine = list(trials([name], dtypes or find_operator(name).dtypes, seed=seed, count=count))
        if not mine:
            raise click.UsageError(f"{name} has no variants in {', '.join(dtypes or find_operator(name).dtypes)}")
        found += mine
        tables.append(_matrix(name, mine))
    if form == "json":
        destination.write(json.dumps(as_json(found, seed, count), indent=1) + "\n")
    else:
        destination.write("\n".join([*tables, _summary(found)]) + "\n")
    raise click.exceptions.Exit(0 if all(trial.right for trial in found) else 1)


def _summary(found: Sequence[Trial]) -> str:
    """How the judge and the common rules did, and what the judge got wrong."""
    from refsim.conformance.trust import scores

    judge, *_ = rows = scores(found)
    margin = max((trial.margin for trial in found if not trial.variant.wrong), default=0.0)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("rule", no_wrap=True)
    for title in ("mutants refused", "accepted", "controls refused", "control runs refused"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        survivors = row.mutants - row.killed
        controls, runs = f"{row.accused} of {row.controls}", f"{row.alarms} of {row.runs}"
        table.add_row(row.rule, f"{row.killed} of {row.mutants}", str(survivors), controls, runs)
    lines = [
        _printed(table, WIDTH),
        "",
        f"{judge.killed} of {judge.mutants} mutants refused, {judge.accused} false alarms on {judge.controls} "
        f"controls; largest margin of a control {margin:.3g}",
    ]
    for trial in found:
        if not trial.right:
            what = "accepted" if trial.variant.wrong else "refused"
            lines.append(f"  {what}: {trial.variant.operator} {trial.dtype} {trial.variant.name}: {trial.variant.flaw}")
    return "\n".join(lines)


def _matrix(name: str, trials: Sequence[Trial]) -> str:
    """The table of one operator."""
    classes = list(dict.fromkeys(label for trial in trials for label in trial.classes))
    relations = list(dict.fromkeys(label for trial in trials for label in trial.relations))
    letters = {label: str(number) for number, label in enumerate([*classes, *relations], 1)}
    table = Table(box=None, pad_edge=False, header_style="bold", title=name, title_justify="left")
    table.add_column("dtype", no_wrap=True)
    table.add_column("variant", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("margin", justify="right", no_wrap=True)
    for label in letters.values():
        table.add_column(label, no_wrap=True)
    for trial in trials:
        marks = []
        for label in letters:
            column = trial.classes.get(label) or trial.relations.get(label)
            marks.append(
                " " if column is None else "·" if not column.refused else "s" if column.rule == "sigma" else "×"
            )
        kind = "mutant" if trial.variant.wrong else "control"
        margin = "" if trial.variant.wrong else f"{trial.margin:.3g}"
        table.add_row(trial.dtype, trial.variant.name, kind, margin, *marks)
    key = ", ".join(f"{number} {label}" for label, number in letters.items())
    return f"{_printed(table, max(WIDTH, 60 + 4 * len(letters)))}\n  {key}\n"


def _printed(table: Table, width: int) -> str:
    buffer = io.StringIO()
    Console(file=buffer, width=width, highlight=False).print(table)
    return buffer.getvalue().rstrip()
