"""Profiles of a fuzzing run: how long, how many cases a round, from which seed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from refsim.conformance.backends import UsageError

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
DURATION = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")


@dataclass(frozen=True)
class Profile:
    """What a run does unless options say otherwise.

    Attributes
    ----------
    seconds : float or None
        How long rounds go on; None for a single round, so that the same seed draws the same cases.
    cases : int
        Cases per operator, kernel and dtype in a round.
    seed : int or None
        Seed of the run; None draws one, which the report names.
    database : str or None
        Folder of the examples that are tried first in the next run.
    """

    seconds: float | None
    cases: int
    seed: int | None
    database: str | None


PROFILES: dict[str, Profile] = {
    "ci": Profile(seconds=None, cases=50, seed=0, database=None),
    "dev": Profile(seconds=60.0, cases=50, seed=None, database=".refsim/examples"),
    "nightly": Profile(seconds=3600.0, cases=500, seed=None, database=".refsim/examples"),
}


def duration(text: str) -> float:
    """Seconds of a duration such as ``90s``, ``10m`` or ``1.5h``; a bare number is seconds.

    Raises
    ------
    UsageError
        It is none, or nothing.
    """
    match = DURATION.fullmatch(text.strip())
    if match is None or not 0 < float(match[1]) < math.inf:
        raise UsageError(f"time {text!r} is no duration; give for example 90s, 10m or 2h")
    return float(match[1]) * UNITS[match[2]]
