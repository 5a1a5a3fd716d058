"""The command ``refsim run SCRIPT``."""

from __future__ import annotations

import sys

import click

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
@click.option("--raise", "raise_on_findings", is_flag=True, help="A launch with errors raises FindingError.")
@click.option(
    "--simulate/--no-simulate",
    default=True,
    show_default=True,
    help="Simulate also where a GPU or a real cupy is there.",
)
def run(
    script: str, arguments: tuple[str, ...], device: str, checks: str, raise_on_findings: bool, simulate: bool
) -> None:
    """Run SCRIPT, which uses numba.cuda or cupy, without a GPU and under checks.

    Findings of all launches are printed at the end, to the standard error stream. Exit status: 1 if there are errors,
    else the script's own.
    """
    if not device.startswith("sim:"):
        raise click.UsageError(f"device {device!r} is not a simulated one; give sim:NAME, for example sim:sm_90")
    try:
        session = Session(device, checks, raise_on_findings)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    status = run_script(script, arguments, session, simulate)
    sys.stdout.flush()
    click.echo(session.summary(), err=True)
    raise click.exceptions.Exit(status if session.ok else 1)
