"""What commands are given, as records: operators, dtypes and a backend, and errors as an exit status."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import click

from oracle.operator import Operator, UnknownOperatorError, find_operator
from oracle.signature import FLOAT_DTYPES, InputError
from oracle.suggestions import suggestion
from refsim.conformance.backends import Backend, UsageError, load_backend
from refsim.conformance.backends.loading import require_device
from refsim.errors import brief
from refsim.operator_commands import all_operators

NOTHING_JUDGED = 3
# bfloat16 is judged where it is asked for: neither NumPy nor Numba has it as a type of its own.
DEFAULT_DTYPES = ("float16", "float32", "float64")


def folder_named(text: str) -> Path:
    """The folder that an option names, there or not; an empty text would be the current one, and ``-`` is no folder."""
    if text in ("", "-"):
        raise click.BadParameter(f"{text!r} names no folder; give its path (./- for one called -)")
    return Path(text)


def chosen_operators(names: Sequence[str]) -> list[Operator]:
    """The operators of the names given; all of them if none is."""
    if not names:
        return all_operators()
    return [find_operator(name) for name in dict.fromkeys(names)]


def chosen_dtypes(names: Sequence[str], records: Sequence[Operator]) -> list[str]:
    """The dtypes asked for; without any, all but bfloat16."""
    known = list(dict.fromkeys((*FLOAT_DTYPES, *(dtype for record in all_operators() for dtype in record.dtypes))))
    for name in names:
        if name not in known:
            raise UsageError(f"unknown dtype {name!r}; {suggestion(name, known, 'known dtypes')}")
    if names:
        return list(dict.fromkeys(names))
    narrow = (dtype for record in records for dtype in record.dtypes if dtype not in FLOAT_DTYPES)
    return list(dict.fromkeys((*DEFAULT_DTYPES, *narrow)))


def backend_on(spec: str, records: Sequence[Operator], device: str) -> Backend:
    """The backend, on a device that exists."""
    require_device(device)
    return load_backend(spec, records, device)


@contextlib.contextmanager
def reported(debug: bool) -> Iterator[None]:
    """Turn errors into one paragraph and an exit status; with ``debug``, the traceback too."""
    try:
        with _hard_exits_raise():
            yield
    except (UsageError, UnknownOperatorError, InputError) as error:
        if debug:
            traceback.print_exc()
        raise click.UsageError(str(error)) from error
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too, whose status would be taken for a verdict
        if debug:
            traceback.print_exc()
        advice = "" if debug else "; run again with --debug"
        click.echo(f"Error: refsim itself failed: {brief(error)}{advice}", err=True)
        raise click.exceptions.Exit(NOTHING_JUDGED) from error


@contextlib.contextmanager
def _hard_exits_raise() -> Iterator[None]:
    """Make ``os._exit`` raise SystemExit in this process, so that what is judged does not end its judge."""
    leave, judge = os._exit, os.getpid()

    def raising(status: int) -> NoReturn:
        if os.getpid() != judge:  # a fork ends as it wants to
            leave(status)
        raise SystemExit(f"os._exit({status!r}) was called")

    vars(os)["_exit"] = raising
    try:
        yield
    finally:
        vars(os)["_exit"] = leave
