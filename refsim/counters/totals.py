"""Counters of many launches, added up by kernel."""

from __future__ import annotations

from collections import Counter

from refsim.checks.findings import Report
from refsim.counters.record import Counters
from refsim.counters.table import per_line, table


class Totals:
    """Counters by the kernel's name, in the order of first launches.

    Attributes
    ----------
    kernels
        What was counted.
    uncounted
        Numbers of launches beyond the limits of the device, which ran no thread.
    """

    def __init__(self) -> None:
        self.kernels: dict[str, Counters] = {}
        self.uncounted: Counter[str] = Counter()

    def add(self, report: Report) -> None:
        """Add a launch."""
        if report.counters is None:
            self.uncounted[report.kernel] += 1
        elif report.kernel in self.kernels:
            self.kernels[report.kernel].add_launch(report.counters)
        else:
            self.kernels[report.kernel] = report.counters

    def text(self, lines: bool = False) -> str:
        """Tables of all kernels; with `lines` also their source, annotated."""
        parts = []
        for counters in self.kernels.values():
            parts.append(table(counters))
            if lines:
                parts.append(per_line(counters))
        for kernel, launches in self.uncounted.items():
            parts.append(f"no counters of {kernel}: {launches} launch{'es' if launches > 1 else ''} beyond the limits")
        return "\n".join(parts)
