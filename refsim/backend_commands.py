"""``refsim backends``: what is installed and what it covers; ``refsim backend init``: a new one to begin with."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import click

from oracle.cases import LAYOUTS
from refsim.conformance.backends import UsageError, load_backend
from refsim.conformance.backends.loading import GROUP
from refsim.conformance.backends.skeleton import write_skeleton
from refsim.destinations import Destination


@click.command()
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form of the list."
)
def backends(form: str) -> None:
    """List the installed backends: which operators each serves, by which kernels, in which dtypes and layouts.

    A layout that is not named is refused; one that cannot be loaded is listed with the reason.
    """
    found = [_described(name) for name in sorted({entry.name for entry in entry_points(group=GROUP)})]
    text = json.dumps({"backends": found}, indent=2) if form == "json" else "\n\n".join(map(_text, found))
    Destination(None).write(text + "\n")


@click.group()
def backend() -> None:
    """Make a backend of one's own."""


@backend.command()
@click.argument("name")
@click.option(
    "--folder", type=click.Path(path_type=Path), default=Path(), help="Where the files go; here, if not given."
)
def init(name: str, folder: Path) -> None:
    """Write NAME.py, an adapter with softmax filled in, and test_NAME.py; nothing is overwritten."""
    adapter, test = write_skeleton(name, folder)
    click.echo(
        f"wrote {adapter} and {test}\n"
        f"judge it:  refsim check softmax --backend {adapter}:backend\n"
        f"progress:  refsim check --profile core --profile dense-llm --backend {adapter}:backend\n"
        f'install:   [project.entry-points."{GROUP}"] {name} = "{name}:backend"'
    )


def _described(name: str) -> dict[str, Any]:
    try:
        loaded = load_backend(name, [], "sim:sm_90")
    except UsageError as error:
        return {"name": name, "available": False, "reason": str(error), "operators": []}
    rows: dict[tuple[str, str], list[str]] = {}
    for row in loaded.capabilities():
        rows.setdefault((row.operator, row.kernel), []).append(row.dtype)
    layouts = list(getattr(loaded, "layouts", LAYOUTS))
    operators = [
        {"operator": operator, "kernel": kernel, "dtypes": dtypes, "layouts": layouts}
        for (operator, kernel), dtypes in rows.items()
    ]
    return {"name": name, "available": True, "device": loaded.device, "operators": operators}


def _text(found: dict[str, Any]) -> str:
    if not found["available"]:
        return f"{found['name']}: not available: {found['reason']}"
    lines = [f"{found['name']} on {found['device']}"]
    for one in found["operators"]:
        layouts = "" if one["layouts"] == list(LAYOUTS) else f"; {', '.join(one['layouts'])}"
        lines.append(f"  {one['operator']:28} {one['kernel']:32} {', '.join(one['dtypes'])}{layouts}")
    return "\n".join(lines)
