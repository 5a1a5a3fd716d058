"""``refsim ops``: what the operators are."""

from __future__ import annotations

import json
from itertools import groupby

import click

from oracle.operator import OPERATORS, Operator, find_operator
from oracle.profiles import PROFILES
from refsim.catalogue import definition, entry, kernels_by_operator, markdown
from refsim.destinations import Destination


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
