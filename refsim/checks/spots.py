"""Where in a launch an access was made, as schedules name it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Spot:
    """The first access of one thread in a source line."""

    block: int
    thread: int
    line: int

    def __str__(self) -> str:
        return f"{self.block}/{self.thread}@{self.line}"
