"""The command: runs the tests, compares with the list of known failures, and prints a table by file."""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
from pathlib import Path

import click
import pytest

from refsim.compat.numba_tests.collection import Collection, tests_folder
from refsim.compat.numba_tests.known import KNOWN_FILE, MAY_PASS, Known, classified, load, save
from refsim.compat.numba_tests.outcomes import Outcomes
from refsim.compat.numba_tests.subprocesses import simulated_subprocesses
from refsim.compat.numba_tests.table import table
from refsim.hosts.generated import kept_sources
from refsim.hosts.session import Session, activate
from refsim.hosts.stand_ins import stand_ins

# Folders of the tests; benchmarks measure a GPU with a plugin of their own.
FOLDERS = ("core", "cudadrv", "cudapy", "cudasim", "doc_examples", "nocuda", "nrt")


def run(files: tuple[str, ...], device: str, checks: str, keyword: str, verbose: bool) -> Outcomes:
    """Run test files, relative to the folder of the tests, on a simulated device."""
    os.environ["NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS"] = os.environ["NUMBA_CUDA_WARN_ON_IMPLICIT_COPY"] = "1"
    outcomes = Outcomes()
    folder = tests_folder()
    arguments = [
        "-c", os.devnull, f"--rootdir={folder}", "-p", "no:cacheprovider", "-p", "no:faulthandler",
        "--assert=plain", "--no-header", "--continue-on-collection-errors", "-q",
        *(["--tb=native"] if verbose else ["--tb=native", "--show-capture=no", "-r", "N", "--no-summary"]),
        *(["-k", keyword] if keyword else []), *files,
    ]  # fmt: skip
    with stand_ins(), kept_sources(), simulated_subprocesses(device):
        before = activate(Session(device, checks))
        where = os.getcwd()
        os.chdir(folder)
        try:
            pytest.main(arguments, plugins=[Collection(outcomes)])
        finally:
            os.chdir(where)
            activate(before)
    return outcomes


def judge(outcomes: Outcomes, known: Known) -> list[str]:
    """What is wrong: failures that are not in the list, and tests in the list that pass, but for those that may."""
    failed, passed = outcomes.names("failed"), outcomes.names("passed")
    lines = [f"failed and not in the list: {test}" for test in sorted(failed - set(known.reason_of))]
    stale = sorted(test for test in passed & set(known.reason_of) if known.reason_of[test] not in MAY_PASS)
    lines += [f"passed but in the list: {test}" for test in stale]
    return lines


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--device", default="sim:sm_90", show_default=True, help="Simulated device.")
@click.option("--checks", default="none", show_default=True, help="Checks of every launch, as for refsim run.")
@click.option("-k", "keyword", default="", help="Only tests whose names contain this, as for pytest.")
@click.option("-v", "--verbose", is_flag=True, help="Print the traceback of every failure.")
@click.option("--report", type=click.Path(dir_okay=False), help="Write how every test ended to a JSON file.")
@click.option("--update", is_flag=True, help="Write the list anew: new failures are sorted by their error.")
def main(
    files: tuple[str, ...], device: str, checks: str, keyword: str, verbose: bool, report: str | None, update: bool
) -> None:
    """Run the tests of the installed numba-cuda on the simulator; FILEs are relative to numba.cuda.tests.

    Exit status: 1 if a test fails that is not in the list of known failures, or one in the list passes; 2 if the list
    was made for another version of numba-cuda.
    """
    installed = importlib.metadata.version("numba-cuda")
    known = load()
    if installed != known.version and not update:
        click.echo(f"the list {KNOWN_FILE.name} is of numba-cuda {known.version}; installed is {installed}", err=True)
        raise click.exceptions.Exit(2)
    outcomes = run(files or FOLDERS, device, checks, keyword, verbose)
    if report:
        ends = {test: {"state": end.state, "text": end.text} for test, end in sorted(outcomes.of.items())}
        Path(report).write_text(json.dumps(ends, indent=1), encoding="utf-8")
    if update:
        known = classified(outcomes, known, installed)
        save(known)
    sys.stdout.flush()
    click.echo(table(outcomes, known))
    wrong = judge(outcomes, known)
    for line in wrong:
        click.echo(line)
    raise click.exceptions.Exit(1 if wrong else 0)
