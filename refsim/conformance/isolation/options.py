"""What ``refsim check --isolated`` asks for."""

from __future__ import annotations

import math
import secrets
from typing import Any

import click

from refsim.conformance.backends.backend import UsageError, promised
from refsim.conformance.backends.loading import require_device
from refsim.conformance.isolation.backend import LOADING, IsolatedBackend, Limits

# Cases that each row gets at its end, with inputs that none had before.
FRESH_CASES = 5
# The most that can be asked for: a day, and a tebibyte.
MOST_SECONDS, MOST_MEMORY = 86400.0, 1 << 20
# What says nothing without ``--isolated``.
BELONGING = ("seconds", "memory", "numerics", "nondeterministic")


class _Seconds(click.FloatRange):
    """A range that does not hold the float that is no number either."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or an error that names the option and its range."""
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not in the range {self.min:g}<=x<={self.max:g}.", param, ctx)
        return number


def isolation_options(command: Any) -> Any:
    """Add ``--isolated`` and what belongs to it to a command."""
    options = (
        click.option(
            "--isolated", is_flag=True, help="Run the backend in a process of its own: for code that is not trusted."
        ),
        click.option(
            "--seconds",
            type=_Seconds(min=0.1, max=MOST_SECONDS),
            default=10.0,
            show_default=True,
            help=f"Limit of a run, with --isolated; loading may take {LOADING:g} s more.",
        ),
        click.option(
            "--memory",
            type=click.IntRange(min=64, max=MOST_MEMORY),
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


def require_isolated() -> None:
    """Raise UsageError where an option that belongs to ``--isolated`` was given to the command without it."""
    context = click.get_current_context()
    for name in BELONGING:
        given = context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
        if given and not context.params["isolated"]:
            raise UsageError(f"--{name} does nothing without --isolated; add that, or leave --{name} out")


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
