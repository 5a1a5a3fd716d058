"""``refsim ops`` and ``refsim mutants``: what the operators are, and whether the judge can be trusted with them."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from itertools import groupby

import click
from rich.console import Console
from rich.table import Table

from oracle.operator import OPERATORS, Operator, find_operator
from oracle.profiles import PROFILES
from refsim.catalogue import definition, entry, kernels_by_operator, markdown
from refsim.destinations import Destination

WIDTH = 160


def all_operators() -> list[Operator]:
    """Every operator, by name."""
    import oracle.ops  # noqa: F401  registers every family

    return [OPERATORS[name] for name in sorted(OPERATORS)]


@click.command()
@click.argument("name", required=False)
@click.option("--profile", type=click.Choice(sorted(PROFILES)), help="Only the operators of this profile.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="Form of the list; markdown is docs/operators.md.",
)
def ops(name: str | None, profile: str | None, form: str) -> None:
    """List the operators by family, or print one in full: formula, shapes, value classes, relations, kernels."""
    kernels = kernels_by_operator()
    if name:
        record = find_operator(name)
        text = json.dumps(entry(record, kernels), indent=2) if form == "json" else definition(record, kernels)
        Destination(None).write(text + "\n")
        return
    records = [record for record in all_operators() if profile is None or record.name in PROFILES[profile]]
    if form == "json":
        text = json.dumps({"operators": [entry(record, kernels) for record in records]}, indent=2)
    elif form == "markdown":
        text = markdown(records, kernels)
    else:
        lines = []
        ordered = sorted(records, key=lambda record: (record.family, record.name))
        for family, members in groupby(ordered, key=lambda record: record.family):
            lines.append(family)
            lines += [f"  {record.name:28} {record.summary}" for record in members]
        text = "\n".join(lines)
    Destination(None).write(text.rstrip("\n") + "\n")


@click.command()
@click.argument("operators", nargs=-1, metavar="[OP]...")
@click.option("--dtype", "dtypes", multiple=True, help="Dtype to try; may be repeated. Default: each operator's own.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all inputs.")
@click.option("--cases", "count", type=click.IntRange(min=1), default=48, show_default=True, help="Cases per dtype.")
def mutants(operators: tuple[str, ...], dtypes: tuple[str, ...], seed: int, count: int) -> None:
    """Try the judge on variants of operators OP (all if none is given) that are known to be right or wrong.

    One row per variant and dtype, one column per value class and relation: × refused, s refused by statistics alone,
    · accepted. A control must be accepted everywhere, a mutant refused somewhere.

    Exit status: 0 if so, 1 if not.
    """
    from oracle.variants import variants_of
    from refsim.conformance.mutation import Trial, trials

    names = list(dict.fromkeys(operators)) or [r.name for r in all_operators() if variants_of(r.name)]
    found: list[Trial] = []
    for name in names:
        record = find_operator(name)
        mine = list(trials([name], dtypes or record.dtypes, seed=seed, count=count))
        if not mine:
            raise click.UsageError(f"{name} has no variants in {', '.join(dtypes or record.dtypes)}")
        found += mine
        click.echo(_matrix(name, mine))
    wrong = [trial for trial in found if not trial.right]
    score = sum(trial.right for trial in found if trial.variant.wrong)
    mutated = sum(trial.variant.wrong for trial in found)
    alarms = sum(not trial.right for trial in found if not trial.variant.wrong)
    click.echo(
        f"{score} of {mutated} mutants refused, {alarms} false alarms on {len(found) - mutated} controls; "
        f"largest margin of a control {max((t.margin for t in found if not t.variant.wrong), default=0.0):.3g}"
    )
    for trial in wrong:
        what = "accepted" if trial.variant.wrong else "refused"
        click.echo(f"  {what}: {trial.variant.operator} {trial.dtype} {trial.variant.name}: {trial.variant.flaw}")
    raise click.exceptions.Exit(1 if wrong else 0)


def _matrix(name: str, found: Sequence[object]) -> str:
    """The table of one operator."""
    from refsim.conformance.mutation import Trial

    trials = [trial for trial in found if isinstance(trial, Trial)]
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
    buffer = io.StringIO()
    console = Console(file=buffer, width=max(WIDTH, 60 + 4 * len(letters)), highlight=False)
    console.print(table)
    key = ", ".join(f"{number} {label}" for label, number in letters.items())
    return f"{buffer.getvalue().rstrip()}\n  {key}\n"
