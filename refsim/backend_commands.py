"""``refsim backends``: what is installed and what it covers; ``refsim backend init``: a new one to begin with."""

from __future__ import annotations

import json
import shlex
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import click

from oracle.cases import LAYOUTS
from refsim.command_arguments import folder_named
from refsim.conformance.backends import UsageError, load_backend
from refsim.conformance.backends.answers import capabilities_of
from refsim.conformance.backends.library import DEVICES, LibraryBackend
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
    found = [described(name, name) for name in sorted({entry.name for entry in entry_points(group=GROUP)})]
    text = json.dumps({"backends": found}, indent=2) if form == "json" else "\n\n".join(map(text_of, found))
    Destination(None).write(text + "\n")


@click.group()
def backend() -> None:
    """Make a backend of one's own."""


@backend.command()
@click.argument("name")
@click.option(
    "--folder", type=folder_named, metavar="FOLDER", default=".", help="Where the files go; here, if not given."
)
def init(name: str, folder: Path) -> None:
    """Write NAME.py, an adapter with softmax filled in, and test_NAME.py; nothing is overwritten."""
    adapter, test = write_skeleton(name, folder)
    spec = shlex.quote(f"{adapter}:backend")
    click.echo(
        f"wrote {adapter} and {test}\n"
        f"judge it:  refsim check softmax --backend {spec}\n"
        f"progress:  refsim check --profile core --profile dense-llm --backend {spec}\n"
        f'install:   [project.entry-points."{GROUP}"] {name} = "{name}:backend"'
    )


def described(name: str, spec: str) -> dict[str, Any]:
    """What a backend covers, as JSON values."""
    try:
        loaded = load_backend(spec, [], "sim:sm_90")
        served = capabilities_of(loaded)
    except UsageError as error:
        return {"name": name, "available": False, "reason": str(error), "operators": []}
    if isinstance(loaded, LibraryBackend):
        operators = [
            {"operator": row.operator, "kernel": row.function, "dtypes": list(row.dtypes), **row.limits()}
            for row in loaded.rows.values()
        ]
    else:
        rows: dict[tuple[str, str], list[str]] = {}
        for one in served:
            rows.setdefault((one.operator, one.kernel), []).append(one.dtype)
        layouts = list(getattr(loaded, "layouts", LAYOUTS))
        operators = [
            {"operator": operator, "kernel": kernel, "dtypes": dtypes, "layouts": layouts}
            for (operator, kernel), dtypes in rows.items()
        ]
    absent = dict(getattr(loaded, "absent", {}))
    return {"name": name, "available": True, "device": loaded.device, "operators": operators, "absent": absent}


def text_of(found: dict[str, Any]) -> str:
    """The same as text."""
    if not found["available"]:
        return f"{found['name']}: not available: {found['reason']}"
    lines = [f"{found['name']} on {found['device']}"]
    for one in found["operators"]:
        layouts = "" if one["layouts"] == list(LAYOUTS) else f"; {', '.join(one['layouts'])}"
        limits = dict(one.get("only", {}))
        if len(one.get("devices", DEVICES)) < len(DEVICES):
            limits["on"] = one["devices"]
        only = "".join(f"; {name} {' or '.join(map(str, values))} only" for name, values in limits.items())
        lines.append(f"  {one['operator']:28} {one['kernel']:32} {', '.join(one['dtypes'])}{layouts}{only}")
    for why in dict.fromkeys(found["absent"].values()):
        names = [name for name, reason in found["absent"].items() if reason == why]
        lines.append(f"  not served: {', '.join(names)}: {why}")
    return "\n".join(lines)
