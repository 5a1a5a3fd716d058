"""Points in time on streams that run in order: work is done when the call that enqueued it returns."""

from __future__ import annotations

import time


class Mark:
    """The moment at which an event was recorded, in host time."""

    def __init__(self) -> None:
        self.moment: float | None = None

    def record(self) -> None:
        """Everything enqueued so far is done: now."""
        self.moment = time.perf_counter()

    def milliseconds_until(self, end: Mark) -> float:
        """Host time between two recorded marks; simulated launches take host time, not device time.

        Raises
        ------
        RuntimeError
            If one of them has not been recorded.
        """
        if self.moment is None or end.moment is None:
            raise RuntimeError("elapsed time between events of which one has not been recorded")
        return (end.moment - self.moment) * 1e3
