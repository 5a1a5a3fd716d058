"""How launches run where they do not say it themselves: a command sets it for everything that it runs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from refsim.engine.turns import LANES, turns_named

NATIVE = ("auto", "never", "always")  # when loops run as machine code


@dataclass(frozen=True)
class LaunchOptions:
    """Groups of lanes, schedule, witnesses, processes and machine code, as in `refsim.launch`.

    Raises
    ------
    ValueError
        For an unknown name.
    """

    lanes: str = "auto"
    schedule: str | None = None
    witness: bool = False
    processes: int = 1
    native: str = "auto"

    def __post_init__(self) -> None:
        if self.lanes not in ("auto", *LANES):
            raise ValueError(f"unknown lanes {self.lanes!r}; give auto, {', '.join(LANES)}")
        turns_named(self.schedule)
        if self.native not in NATIVE:
            raise ValueError(f"unknown native {self.native!r}; give {', '.join(NATIVE)}")
        if type(self.processes) is not int or self.processes < 1:
            raise ValueError(f"processes must be a number of at least 1, not {self.processes!r}")
        if self.processes > 1 and not hasattr(os, "fork"):
            raise ValueError("processes need fork, which this system does not have; give processes=1")

    def but(self, **given: Any) -> LaunchOptions:
        """These options with those that were given, None standing for none."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})


_current = LaunchOptions()


def current_options() -> LaunchOptions:
    """What launches do if nobody says otherwise."""
    return _current


@contextlib.contextmanager
def launch_options(**given: Any) -> Iterator[None]:
    """Have all launches within use these options where they give none."""
    global _current
    before = _current
    _current = before.but(**given)
    try:
        yield
    finally:
        _current = before
