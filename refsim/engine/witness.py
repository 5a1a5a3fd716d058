"""Witnesses of races: schedules under which the result of a launch is another one.

A race is decided by what orders two accesses, whether it showed or not. Here the launch is run again, on the same
inputs: with either of the two accesses held back until the other has been made, then under schedules drawn from seeds.
The first that changes an argument is the witness, and can be replayed by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from refsim.checks.findings import Report
from refsim.checks.spots import Spot
from refsim.engine.turns import Delayed, Seeded, Turns
from refsim.errors import UnsupportedError

MOST_FINDINGS = 4
SEEDS = 8
MOST_SEEDED_THREADS = 4096

Racing = dict[int, tuple[Spot, Spot]]


class Inputs:
    """The array arguments of a launch as they are now, to be put back."""

    def __init__(self, named: list[tuple[str, Any]]) -> None:
        self.arrays = [(name, value) for name, value in named if isinstance(value, np.ndarray)]
        self.contents = [value.copy() for _, value in self.arrays]

    def restore(self) -> None:
        """Put the contents back."""
        for (_, array), content in zip(self.arrays, self.contents, strict=True):
            if array.flags.writeable:
                array[...] = content

    def difference(self) -> str:
        """The first element that is not what it was, as text; empty if there is none."""
        for (name, array), content in zip(self.arrays, self.contents, strict=True):
            if array.tobytes() == content.tobytes():
                continue
            now, before = array.reshape(-1), content.reshape(-1)
            for position in range(before.size):
                if now[position].tobytes() != before[position].tobytes():
                    index = ", ".join(str(int(i)) for i in np.unravel_index(position, content.shape))
                    return f"{name}[{index}] from {before[position]} to {now[position]}"
        return ""


def add_witnesses(
    report: Report,
    racing: Racing,
    threads: int,
    inputs: Inputs,
    named: list[tuple[str, Any]],
    again: Callable[..., Any],
) -> None:
    """Give the races of a report their witnesses.

    Parameters
    ----------
    racing
        The two accesses of each finding, by its position in the report.
    threads
        Threads of the whole launch.
    inputs
        The arguments before the launch; they hold its results now, and will again.
    again
        ``again(turns)`` runs the launch on the arguments as they are, and returns its report.
    """
    results = Inputs(named)
    tried: dict[str, str] = {}
    try:
        for number, (position, spots) in enumerate(racing.items()):
            finding = report.findings[position]
            if number == MOST_FINDINGS:
                break
            said = ""
            for turns in _candidates(*spots, threads):
                if turns.name not in tried:
                    inputs.restore()
                    tried[turns.name] = _outcome(turns, results, again)
                said = tried[turns.name]
                if said:
                    break
            report.findings[position] = replace(finding, witness=said or "no schedule tried changed the result")
    finally:
        results.restore()


def _candidates(one: Spot, other: Spot, threads: int) -> Iterator[Turns]:
    yield Delayed(one, other)
    yield Delayed(other, one)
    if threads <= MOST_SEEDED_THREADS:
        for seed in range(SEEDS):
            yield Seeded(seed)


def _outcome(turns: Turns, results: Inputs, again: Callable[[Turns], Report]) -> str:
    """What a schedule changes, as text; empty if nothing, or if there are too many groups to take turns."""
    try:
        report = again(turns)
    except UnsupportedError:
        return ""
    if any(finding.kind == "deadlock" for finding in report.findings):
        return f"schedule {turns.name} ends in a deadlock"
    change = results.difference()
    return f"schedule {turns.name} changes {change}" if change else ""
