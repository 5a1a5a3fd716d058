"""``refsim fuzz``: look for cases on which a backend is wrong, until time is over."""

from __future__ import annotations

import contextlib
import importlib.util
import secrets
import shlex
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from refsim.command_arguments import NOTHING_JUDGED, backend_on, chosen_dtypes, chosen_operators, reported
from refsim.conformance.backends import Backend, UsageError
from refsim.conformance.backends.answers import capabilities_of, numerics_of
from refsim.conformance.environment import environment
from refsim.conformance.fuzz.profiles import PROFILES, duration
from refsim.conformance.isolation import Limits
from refsim.conformance.isolation.options import isolated_backend, isolation_options, require_isolated
from refsim.conformance.known import KnownDeviations, read_lists
from refsim.conformance.replay_command import CASE, words_for
from refsim.conformance.reports import FORMS, write
from refsim.conformance.verdicts import Report
from refsim.destinations import Destination, kept_clean

if TYPE_CHECKING:
    from refsim.conformance.fuzz.campaign import Campaign
    from refsim.conformance.fuzz.evaluate import Evaluator

INSTALL = {
    "hypothesis": "refsim fuzz needs hypothesis; install it with: python -m pip install 'refsim[fuzz]'",
    "distributed": "--dask and --workers need Dask; install it with: python -m pip install 'refsim[dask]'",
}
INTERRUPTED = 130
FAILURES = "refsim-failures.json"
# Back to the start of the line, which is wiped.
CLEAR = "\r\033[K"
# How often the progress line is written, in seconds: on a terminal, and elsewhere.
ON_TERMINAL, ELSEWHERE = 0.5, 10.0


@click.command()
@click.argument("operators", nargs=-1, metavar="[OP]...")
@click.option("--backend", default="numba", show_default=True, help="As for refsim check.")
@click.option("--device", default="sim:sm_90", show_default=True, help="As for refsim check.")
@click.option("--dtype", "dtypes", multiple=True, help="Dtype to judge; may be repeated. Default: all but bfloat16.")
@click.option(
    "--profile",
    type=click.Choice(sorted(PROFILES)),
    default="dev",
    show_default=True,
    help="ci: one round from seed 0; dev: a minute; nightly: an hour.",
)
@click.option("--time", "time_limit", help="How long, such as 90s, 10m or 2h, in place of the profile's.")
@click.option(
    "--cases", "per_round", type=click.IntRange(min=1), help="Cases per row and round; one round without --time."
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the run, in place of the profile's.")
@click.option("--database", help="Folder or Redis URL of hypothesis's examples; an empty text for none.")
@click.option("--dask", metavar="ADDRESS", help="Address of a Dask scheduler whose workers judge the cases.")
@click.option("--workers", type=click.IntRange(min=1), help="Judge on so many processes of this machine (Dask).")
@click.option("--known", "known_files", multiple=True, type=click.Path(path_type=Path), help="As for refsim check.")
@isolation_options
@click.option("--strict", is_flag=True, help="A SUSPECT row does not conform.")
@click.option("--format", "form", type=click.Choice(FORMS), default="text", show_default=True, help="Of the report.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the report to this file.")
@click.option(
    "--failures",
    type=click.Path(path_type=Path),
    default=FAILURES,
    show_default=True,
    help="Where failing cases go, if there are any; refsim replay runs them.",
)
@click.option("--export-test", type=click.Path(path_type=Path), help="Write failing cases as a pytest file.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def fuzz(
    operators: tuple[str, ...],
    backend: str,
    device: str,
    dtypes: tuple[str, ...],
    profile: str,
    time_limit: str | None,
    per_round: int | None,
    seed: int | None,
    database: str | None,
    dask: str | None,
    workers: int | None,
    known_files: tuple[Path, ...],
    isolated: bool,
    seconds: float,
    memory: int,
    numerics: tuple[str, ...],
    nondeterministic: bool,
    strict: bool,
    form: str,
    output: Path | None,
    failures: Path,
    export_test: Path | None,
    debug: bool,
) -> None:
    """Look for cases of operators OP (all if none is given) on which a backend is wrong.

    Hypothesis draws them, steers them toward the bound, and shrinks what fails; each kind of failure of a row is
    reported once.

    Exit status: 0 nothing was found, 1 something was, 2 wrong usage, 3 nothing could be judged.
    """
    with reported(debug):
        require_isolated()
        _require("hypothesis")
        if dask or workers:
            _require("distributed")
        if dask and workers:
            raise UsageError("--dask and --workers exclude each other: give an address, or a number of processes")
        if isolated and export_test:
            raise UsageError("--export-test writes a test that is not isolated; leave out one of the two")
        if isolated and (dask or workers):
            raise UsageError("--isolated is for one process: Dask's workers are processes of their own already")
        from refsim.conformance.fuzz.campaign import Campaign, Row
        from refsim.conformance.fuzz.databases import database as database_at
        from refsim.conformance.fuzz.databases import nothing_else_kept
        from refsim.conformance.fuzz.evaluate import Here
        from refsim.conformance.fuzz.explain import explain
        from refsim.conformance.fuzz.exports import cases_text, test_text

        chosen = PROFILES[profile]
        span = duration(time_limit) if time_limit else None if per_round else chosen.seconds
        examples = database_at(chosen.database if database is None else database)
        destination, kept = Destination(output), Destination(failures)
        exported = Destination(export_test) if export_test else None
        # What chance does not draw says nothing of an entry.
        known = KnownDeviations(read_lists(known_files), complete=False)
        records = chosen_operators(operators)
        names = [record.name for record in records]
        wanted = chosen_dtypes(dtypes, records)
        # Whoever is not trusted shall not know the cases.
        drawn = secrets.randbelow(2**31) if chosen.seed is None or isolated else chosen.seed
        with contextlib.ExitStack() as stack:
            with kept_clean():
                judged: Backend
                if isolated:
                    limits = Limits(seconds, memory << 20, None, numerics, nondeterministic)
                    judged = isolated_backend(backend, names, device, limits)
                else:
                    judged = backend_on(backend, records, device)
                rows = [
                    Row(row, numerics_of(judged, row).name)
                    for name in names
                    for dtype in wanted
                    for row in capabilities_of(judged)
                    if (row.operator, row.dtype) == (name, dtype)
                ]
                if not rows:
                    raise UsageError(f"backend {backend} serves none of {', '.join(names)} in {', '.join(wanted)}")
                evaluator: Evaluator = Here(judged)
                if dask or workers:
                    from refsim.conformance.fuzz.cluster import OnDask, connected

                    # Hypothesis watches the `random` module, which other threads use.
                    stack.enter_context(warnings.catch_warnings())
                    warnings.filterwarnings("ignore", "Do not use the `random` module inside strategies")
                    client = stack.enter_context(connected(dask, workers or 1))
                    evaluator = OnDask(client, _absolute(backend), device, names)
                campaign = Campaign(
                    rows,
                    evaluator,
                    seed=drawn if seed is None else seed,
                    per_round=per_round or chosen.cases,
                    seconds=span,
                    database=examples,
                    tick=_Ticker(),
                    known=known,
                )
                with nothing_else_kept(), _summary(campaign), _stopped_by_ctrl_c(campaign):
                    campaign.run()
            # Before a cluster is closed, which takes its time: a second Ctrl-C shall not cost the report.
            again = words_for(judged, backend)
            results = tuple(replace(row.result(), again=again) for row in rows)
            report = Report(
                judged.name, judged.device, campaign.seed, results, environment(judged), known=known.entries
            )
            found = [failure for result in report.results for failure in result.failures if not failure.known]
            content = write([report], form, strict=strict, debug=debug, terminal=destination.is_terminal)
            if found and form == "text":
                content += "\nsmallest case of each kind of failure:\n\n" + "\n\n".join(map(explain, found)) + "\n"
            destination.write(content)
            if found:
                kept.write(cases_text(found))
                words = [str(failures) if word == CASE else word for word in again]
                click.echo(f"again: {shlex.join(words)}", err=True)
                if exported is not None and export_test is not None:
                    exported.write(test_text(found, export_test, backend, device))
        code = report.exit_code(strict)
        if campaign.lost:
            click.echo(f"Error: {campaign.lost}; what was found until then is reported", err=True)
            raise click.exceptions.Exit(code or NOTHING_JUDGED)
        raise click.exceptions.Exit(INTERRUPTED if campaign.stopped else code)


@contextlib.contextmanager
def _stopped_by_ctrl_c(campaign: Campaign) -> Iterator[None]:
    """End what runs inside on Ctrl-C, the campaign unharmed: what was found until then is worth its report."""
    usual = signal.getsignal(signal.SIGINT)
    mine = usual is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if mine:
        signal.signal(signal.SIGINT, lambda number, frame: campaign.interrupt())
    try:
        yield
    except KeyboardInterrupt:
        campaign.stopped = True
    finally:
        if mine:
            signal.signal(signal.SIGINT, usual)


class _Ticker:
    """Writes the progress line to standard error now and then."""

    def __init__(self) -> None:
        self.terminal = sys.stderr is not None and sys.stderr.isatty()
        self.last = time.monotonic()
        self.lock = threading.Lock()

    def __call__(self, campaign: Campaign) -> None:
        now = time.monotonic()
        with self.lock:
            if now - self.last < (ON_TERMINAL if self.terminal else ELSEWHERE):
                return
            self.last = now
        click.echo(f"{CLEAR if self.terminal else ''}{campaign.status()}", err=True, nl=not self.terminal)


@contextlib.contextmanager
def _summary(campaign: Any) -> Iterator[None]:
    """The progress line once more at the end."""
    yield
    start = CLEAR if sys.stderr is not None and sys.stderr.isatty() else ""
    click.echo(f"{start}{campaign.status()}", err=True)


def _require(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise UsageError(INSTALL[module])


def _absolute(spec: str) -> str:
    """The same backend from any folder."""
    module, colon, attribute = spec.rpartition(":")
    return f"{Path(module).resolve()}{colon}{attribute}" if module.endswith(".py") else spec
