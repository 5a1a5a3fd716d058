"""The Backend interface: what the judge asks of an implementation, and what it gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from oracle.numerics import Numerics


class UsageError(ValueError):
    """The caller asked for something that does not exist or does not fit; the message says what to give instead."""


class Refused(Exception):
    """Raised by a backend's ``run``: it does not serve this case; the message says why."""


@dataclass(frozen=True)
class Capability:
    """An operator that a backend serves, by which kernel, in which dtype of the floating-point inputs."""

    operator: str
    kernel: str
    dtype: str


@dataclass(frozen=True)
class RunResult:
    """What one run gave.

    Attributes
    ----------
    outputs : sequence
        In the operator's order; anything an implementation may return, right or wrong.
    findings : sequence of refsim.Finding
        What the simulator's checks found; empty where nothing was simulated.
    deterministic : bool
        Whether a second run is promised to give the same bits.
    misconduct : tuple of str, optional
        Reason and message of what was wrong with the run itself, where whoever ran it saw something.
    """

    outputs: Sequence[Any]
    findings: Sequence[Any] = ()
    deterministic: bool = True
    misconduct: tuple[str, str] | None = None


@runtime_checkable
class Backend(Protocol):
    """An implementation of some operators. Its ``run`` may raise Refused, or anything else where it is broken."""

    name: str
    device: str

    def capabilities(self) -> list[Capability]:
        """Everything it serves, in the order of the report."""

    def numerics(self, operator: str, kernel: str, dtype: str) -> Numerics:
        """The arithmetic it promises."""

    def run(
        self,
        operator: str,
        kernel: str,
        inputs: Mapping[str, np.ndarray[Any, Any] | None],
        params: Mapping[str, Any],
    ) -> RunResult:
        """Run one case: every input of the operator (None where left out), and every parameter."""


def promised(name: str) -> Numerics:
    """The numerics preset called ``name``.

    Raises
    ------
    UsageError
        No preset has that name.
    """
    from oracle.numerics import NUMERICS

    if name not in NUMERICS:
        raise UsageError(f"unknown numerics {name!r}; known: {', '.join(NUMERICS)}")
    return NUMERICS[name]


def usual_numerics(dtype: str) -> str:
    """What an implementation promises that says nothing: float64 in float64, everything else with float32 inside."""
    return "float64" if dtype == "float64" else "float32"
