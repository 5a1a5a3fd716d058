"""What ``refsim check --isolated`` asks for."""

from __future__ import annotations

import secrets
from typing import Any

import click

from refsim.conformance.backends.backend import promised
from refsim.conformance.backends.loading import require_device
from refsim.conformance.isolation.backend import IsolatedBackend, Limits

# Cases that each row gets at its end, with inputs that none had before.
FRESH_CASES = 5


def isolation_options(command: Any) -> Any:
    """Add ``--isolated`` and what belongs to it to a command."""
    options = (
        click.option(
            "--isolated", is_flag=True, help="Run the backend in a process of its own: for code that is not trusted."
        ),
        click.option(
            "--seconds",
            type=click.FloatRange(min=0.1),
            default=10.0,
            show_default=True,
            help="Limit of a run, isolated.",
        ),
        click.option(
            "--memory",
            type=click.IntRange(min=64),
            default=2048,
            show_default=True,
            help="Limit in MiB; with --isolated.",
        ),
        click.option(
            "--numerics",
            multiple=True,
            help="Arithmetic that the backend may promise in place of the usual; with --isolated. May be repeated.",
        ),
        click.option(
            "--nondeterministic",
            is_flag=True,
            help="The backend may say that its bits differ from run to run; with --isolated.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def isolated_backend(spec: str, operators: list[str], device: str, limits: Limits) -> IsolatedBackend:
    """The backend in a process of its own, which ends with the command."""
    require_device(device)
    for name in limits.numerics:
        promised(name)  # or it is unknown
    backend = IsolatedBackend(spec, operators, device, limits)
    click.get_current_context().call_on_close(backend.close)
    return backend


def secret_seed(seed: int) -> int:
    """The seed that was given; where none was, one that nobody can know beforehand."""
    given = click.get_current_context().get_parameter_source("seed")
    return secrets.randbelow(2**31) if given is click.core.ParameterSource.DEFAULT else seed
