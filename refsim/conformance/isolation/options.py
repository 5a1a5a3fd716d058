"""What ``refsim check --isolated`` asks for."""

from __future__ import annotations

import secrets

import click

from refsim.conformance.backends.loading import require_device
from refsim.conformance.isolation.backend import MOST_DEATHS, IsolatedBackend, Limits

# Cases that each row gets at its end, with inputs that none had before.
FRESH_CASES = 5


def isolated_backend(
    spec: str, operators: list[str], device: str, seconds: float, memory: int, deaths: int | None = MOST_DEATHS
) -> IsolatedBackend:
    """The backend in a process of its own, which ends with the command."""
    require_device(device)
    backend = IsolatedBackend(spec, operators, device, Limits(seconds, memory << 20, deaths))
    click.get_current_context().call_on_close(backend.close)
    return backend


def secret_seed(seed: int) -> int:
    """The seed that was given; where none was, one that nobody can know beforehand."""
    given = click.get_current_context().get_parameter_source("seed")
    return secrets.randbelow(2**31) if given is click.core.ParameterSource.DEFAULT else seed
