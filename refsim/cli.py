"""The command line: ``refsim check`` and ``refsim replay``, and where the other commands are."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from oracle.cases import Case, far_cases
from oracle.operator import Operator, UnknownOperatorError, find_operator
from oracle.profiles import PROFILES
from oracle.signature import InputError
from refsim.backend_commands import backend as backend_group
from refsim.backend_commands import backends
from refsim.command_arguments import backend_on, chosen_dtypes, chosen_operators, reported
from refsim.conformance.backends import Backend, Capability, UsageError
from refsim.conformance.backends.answers import capabilities_of
from refsim.conformance.backends.kernels import KernelBackend
from refsim.conformance.isolation import Limits
from refsim.conformance.isolation.options import (
    FRESH_CASES,
    isolated_backend,
    isolation_options,
    require_isolated,
    secret_seed,
)
from refsim.conformance.known import KnownDeviations, read_lists
from refsim.conformance.reading import parse_json, read_json
from refsim.conformance.reports import FORMS, from_json, write
from refsim.conformance.runner import check as run_check
from refsim.conformance.standing import standings
from refsim.conformance.verdicts import Cost, Report, Verdict
from refsim.counters.table import per_line, table
from refsim.counters.totals import Totals
from refsim.destinations import UNWRITABLE, Destination, discard, kept_clean
from refsim.export_command import export
from refsim.fuzz_command import fuzz
from refsim.hosts.command import run as run_command
from refsim.hosts.lane_options import chosen_lanes, lane_options
from refsim.mutants_command import mutants
from refsim.operator_commands import ops
from refsim.report_commands import diff, report
from refsim.translate_command import translate

INTERRUPTED = 130
DEFAULT_CASES = 48
FAR_CASES = 6


class _Interruptible(click.Group):
    """A group of commands that end as other programs do: on Ctrl-C with status 130, on a full disk with one line."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the command line, on a standard output that takes any text."""
        if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
            sys.stdout.reconfigure(errors=UNWRITABLE)
        try:
            return super().main(*arguments, **options)
        except OSError as error:
            if error.filename is not None or not error.strerror:
                raise
            discard(1)  # what is left in the buffer would raise again when Python ends
            click.echo(f"Error: standard output cannot be written to: {error.strerror}", err=True)
            sys.exit(2)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (UsageError, UnknownOperatorError, InputError) as error:
            raise click.UsageError(str(error)) from error
        except (KeyboardInterrupt, click.Abort):
            click.echo("\ninterrupted", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None


@click.group(cls=_Interruptible, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="refsim")
def main() -> None:
    """Judge GPU kernels against NumPy definitions, on a machine without a GPU."""


main.add_command(run_command, "run")
main.add_command(translate)
main.add_command(ops)
main.add_command(mutants)
main.add_command(report)
main.add_command(diff)
main.add_command(fuzz)
main.add_command(export)
main.add_command(backends)
main.add_command(backend_group, "backend")


def _backend_options(command: Any) -> Any:
    """Options that say who is judged, and how the report is written."""
    options = (
        click.option(
            "--backend",
            default="numba",
            show_default=True,
            help="An installed backend (numba, torch), file.py:attribute or module:attribute.",
        ),
        click.option(
            "--device",
            default="sim:sm_90",
            show_default=True,
            help="Device that kernels run on: sim:NAME, or cuda:NUMBER for a real one.",
        ),
        click.option("--strict", is_flag=True, help="A SUSPECT row does not conform."),
        click.option(
            "--format",
            "form",
            type=click.Choice(FORMS),
            default="text",
            show_default=True,
            help="Form of the report.",
        ),
        click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the report to this file."),
        click.option("--debug", is_flag=True, help="Show tracebacks."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@main.command()
@click.argument("operators", nargs=-1, metavar="[OP]...")
@_backend_options
@click.option("--dtype", "dtypes", multiple=True, help="Dtype to judge; may be repeated. Default: all but bfloat16.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all inputs.")
@click.option(
    "--cases",
    "count",
    type=click.IntRange(min=1),
    default=DEFAULT_CASES,
    show_default=True,
    help="Cases per operator and dtype.",
)
@click.option("--far", is_flag=True, help="Cases with elements past the 2^31st, in sparse memory, in place of others.")
@click.option("--counters", is_flag=True, help="Print what all cases together cost, by kernel, to standard error.")
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    type=click.Choice(sorted(PROFILES)),
    help="The operators of a profile; may be repeated. Says which can be claimed, and what is next.",
)
@click.option(
    "--known",
    "known_files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="List of known deviations (TOML), which do not fail; may be repeated.",
)
@isolation_options
@lane_options
def check(
    operators: tuple[str, ...],
    backend: str,
    device: str,
    strict: bool,
    form: str,
    output: Path | None,
    debug: bool,
    dtypes: tuple[str, ...],
    seed: int,
    count: int,
    far: bool,
    counters: bool,
    profiles: tuple[str, ...],
    known_files: tuple[Path, ...],
    isolated: bool,
    seconds: float,
    memory: int,
    numerics: tuple[str, ...],
    nondeterministic: bool,
    lanes: str,
    schedule: str | None,
    witness: bool,
    processes: int,
    native: str,
) -> None:
    """Judge a backend on operators OP (all of them if none is given).

    Exit status: 0 conforms, 1 does not, 2 wrong usage, 3 inconclusive or nothing ran.
    """
    with reported(debug):
        require_isolated()
        if profiles and operators:
            raise UsageError(f"--profile {profiles[0]} names the operators; leave out {', '.join(operators)}")
        if far and isolated:
            raise UsageError("--far and --isolated exclude each other: sparse memory is not copied to another process")
        asked = [name for profile in profiles for name in PROFILES[profile]] or operators
        records = chosen_operators(asked)
        chosen = chosen_dtypes(dtypes, records)
        destination = Destination(output)
        known = KnownDeviations(read_lists(known_files), complete=not far)
        names = [record.name for record in records]
        with kept_clean(), chosen_lanes(lanes, schedule, witness, processes, native):
            judged: Backend
            if isolated:
                limits = Limits(seconds, memory << 20, numerics=numerics, nondeterministic=nondeterministic)
                judged = isolated_backend(backend, names, device, limits)
                seed = secret_seed(seed)
            else:
                judged = backend_on(backend, records, device)
            totals = _counted(judged) if counters else None
            with _progress(judged, names, chosen, count) as progress:
                report = run_check(
                    judged,
                    names,
                    chosen,
                    seed=seed,
                    count=count,
                    required=bool(asked),
                    cases=_far(records, chosen, count, seed) if far else None,
                    progress=progress,
                    fresh=FRESH_CASES if isolated else 0,
                    known=known,
                    spec=backend,
                )
        progress_lines = "\n".join(map(str, standings(report, profiles, strict))) if profiles else ""
        _finish(report, strict, form, destination, debug, totals, progress_lines)


@main.command()
@click.argument("source", metavar="FILE|JSON")
@_backend_options
@isolation_options
@lane_options
def replay(
    source: str,
    backend: str,
    device: str,
    strict: bool,
    form: str,
    output: Path | None,
    debug: bool,
    isolated: bool,
    seconds: float,
    memory: int,
    numerics: tuple[str, ...],
    nondeterministic: bool,
    lanes: str,
    schedule: str | None,
    witness: bool,
    processes: int,
    native: str,
) -> None:
    """Run cases again: one case as JSON text, or a file with a case, a list of them, or a report, of which those run
    that failed. Without --backend or --device, a report's own are taken."""
    with reported(debug):
        require_isolated()
        cases, reported_by = _cases(source)
        if reported_by is not None:
            backend, device = _as_reported(reported_by, backend, device, isolated)
        records = [find_operator(name) for name in dict.fromkeys(case.operator for case in cases)]
        for case in cases:
            _require_drawable(case)
        destination = Destination(output)
        grouped: dict[tuple[str, str], list[Case]] = {}
        for case in cases:
            grouped.setdefault((case.operator, case.dtype), []).append(case)
        dtypes = list(dict.fromkeys(case.dtype for case in cases))
        with kept_clean(), chosen_lanes(lanes, schedule, witness, processes, native):
            names = [record.name for record in records]
            judged: Backend
            if isolated:
                limits = Limits(seconds, memory << 20, numerics=numerics, nondeterministic=nondeterministic)
                judged = isolated_backend(backend, names, device, limits)
            else:
                judged = backend_on(backend, records, device)
            report = run_check(judged, names, dtypes, cases=grouped, spec=backend)
        _finish(report, strict, form, destination, debug)


def _far(
    records: Sequence[Operator], dtypes: Sequence[str], count: int, seed: int
) -> dict[tuple[str, str], list[Case]]:
    """Cases in sparse memory for every operator in each of its dtypes."""
    return {
        (record.name, dtype): far_cases(record.name, dtype, min(count, FAR_CASES), seed)
        for record in records
        for dtype in dtypes
        if dtype in record.dtypes
    }


def _require_drawable(case: Case) -> None:
    """Refuse a case whose values are well-formed but impossible: an axis that is not there, more elements than fit."""
    try:
        case.inputs()
    except (ValueError, LookupError, ArithmeticError, MemoryError) as error:
        text = json.dumps(case.to_json())
        raise UsageError(f"the inputs of the case cannot be made: {error}; case {text}") from error


def _counted(backend: Backend) -> Totals:
    """Where a backend's launches are counted from now on."""
    if not isinstance(backend, KernelBackend) or not backend.device.startswith("sim:"):
        raise UsageError(f"--counters counts kernels on a simulated device; backend {backend.name} launches none there")
    backend.totals = Totals()
    return backend.totals


def _cases(source: str) -> tuple[list[Case], Report | None]:
    """The cases in a file, or in JSON text (which starts with a brace), and the report that they come from, if any."""
    given = source if source.lstrip().startswith("{") else None
    what = "the text" if given else source
    data = parse_json(given, what) if given else read_json(Path(source))
    report = None
    if isinstance(data, dict) and ("results" in data or "schema" in data):
        report = from_json(data, what)
        failures = [failure for result in report.results for failure in result.failures]
        cases = [failure.case for failure in failures if failure.verdict is not Verdict.KNOWN]
    elif isinstance(data, list):
        cases = [_case(entry, f"{what}, case {number} of {len(data)}") for number, entry in enumerate(data, 1)]
    else:
        cases = [_case(data, what)]
    if not cases:
        raise UsageError(f"{what} holds no failing case, so there is nothing to run again")
    return cases, report


def _case(data: Any, where: str) -> Case:
    try:
        return Case.from_json(data)
    except (UnknownOperatorError, InputError) as error:
        raise UsageError(f"{where}: {error}") from error


def _as_reported(report: Report, backend: str, device: str, isolated: bool) -> tuple[str, str]:
    """Backend and device as given on the command line, or else as in the commands that the report names."""
    words = next((result.again for result in report.results if result.failures), ())

    def chosen(name: str, value: str, otherwise: str) -> str:
        if click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT:
            return value
        option = f"--{name}"
        return words[words.index(option) + 1] if option in words[:-1] else otherwise

    named = chosen("backend", backend, report.backend)
    if named != backend and "--isolated" in words and not isolated:
        raise UsageError(f"the report is of an isolated run of {named}: give --isolated too, or --backend {named}")
    return named, chosen("device", device, device)


@contextlib.contextmanager
def _progress(backend: Backend, operators: Sequence[str], dtypes: Sequence[str], count: int) -> Iterator[Any]:
    """A progress bar on stderr where that is a terminal; otherwise nothing."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    rows = [row for row in capabilities_of(backend) if row.operator in operators and row.dtype in dtypes]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=len(rows) * count)

        def advance(row: Capability, done: int, total: int) -> None:
            bar.update(task, advance=1, description=escape(f"{row.operator} {row.kernel} {row.dtype}"))

        yield advance


def _finish(
    report: Report,
    strict: bool,
    form: str,
    destination: Destination,
    debug: bool,
    totals: Totals | None = None,
    closing: str = "",
) -> None:
    """Write the report, and counters if there are any, and leave with its exit status.

    The closing lines follow a report for people, and go to standard error beside one for programs.
    """
    if totals is not None:
        costs = tuple(Cost(name, table(one), per_line(one)) for name, one in totals.kernels.items())
        report = replace(report, costs=costs)
    content = write([report], form, strict=strict, debug=debug, terminal=destination.is_terminal)
    if closing and form == "text":
        content += f"\n{closing}\n"
    destination.write(content)
    if closing and form != "text":
        click.echo(closing, err=True)
    if totals is not None:
        click.echo(totals.text(), err=True)
    raise click.exceptions.Exit(report.exit_code(strict))
