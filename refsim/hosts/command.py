"""The command ``refsim run SCRIPT``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from refsim.counters.picture import html, pictures, svg
from refsim.counters.totals import Totals
from refsim.hosts.lane_options import chosen_lanes, lane_options
from refsim.hosts.script import run_script
from refsim.hosts.session import Session


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGUMENT]...")
@click.option("--device", default="sim:sm_90", show_default=True, help="Simulated device that kernels run on.")
@click.option(
    "--checks",
    default="all",
    show_default=True,
    help="all, none, or some of memcheck, racecheck, initcheck, synccheck, separated by commas.",
)
@click.option("--counters", is_flag=True, help="Print memory traffic, bank conflicts and instructions by kernel.")
@click.option("--per-line", is_flag=True, help="Print the kernels' source with counters beside each line.")
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the kernels' shared arrays with their bank conflicts into this file: .svg or .html.",
)
@click.option("--raise", "raise_on_findings", is_flag=True, help="A launch with errors raises FindingError.")
@lane_options
@click.option(
    "--simulate/--no-simulate",
    default=True,
    show_default=True,
    help="Simulate also where a GPU or a real cupy is there.",
)
def run(
    script: str,
    arguments: tuple[str, ...],
    device: str,
    checks: str,
    counters: bool,
    per_line: bool,
    picture: Path | None,
    raise_on_findings: bool,
    lanes: str,
    schedule: str | None,
    witness: bool,
    processes: int,
    native: str,
    simulate: bool,
) -> None:
    """Run SCRIPT, which uses numba.cuda or cupy, without a GPU and under checks.

    Findings and counters of all launches are printed at the end, to the standard error stream. Exit status: 1 if there
    are errors, else the script's own.
    """
    if not device.startswith("sim:"):
        raise click.UsageError(f"device {device!r} is not a simulated one; give sim:NAME, for example sim:sm_90")
    if picture is not None and picture.suffix not in (".svg", ".html"):
        raise click.UsageError(f"--picture takes a file that ends in .svg or .html, not {str(picture)!r}")
    try:
        session = Session(device, checks, raise_on_findings, counters or per_line or picture is not None)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    with chosen_lanes(lanes, schedule, witness, processes, native):
        status = run_script(script, arguments, session, simulate)
    sys.stdout.flush()
    if session.totals is not None:
        if counters or per_line:
            click.echo(session.totals.text(per_line), err=True)
        if picture is not None:
            _draw(session.totals, picture)
    click.echo(session.summary(), err=True)
    raise click.exceptions.Exit(status if session.ok else 1)


def _draw(totals: Totals, file: Path) -> None:
    """Write the picture of all shared arrays."""
    arrays = pictures(list(totals.kernels.values()))
    if not arrays:
        click.echo(f"no picture in {file}: no kernel accessed shared memory", err=True)
        return
    try:
        file.write_text(html(arrays) if file.suffix == ".html" else svg(arrays), encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"{file} cannot be written: {error.strerror}") from error
