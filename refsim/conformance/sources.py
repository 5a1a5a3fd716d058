"""Findings of the simulator with the source lines around each of their places."""

from __future__ import annotations

import linecache
from collections.abc import Sequence

from refsim.checks.findings import Finding
from refsim.conformance.verdicts import Found, Place

MARGIN = 4  # lines shown before and after


def found(findings: Sequence[Finding]) -> tuple[Found, ...]:
    """The findings as a report keeps them: the source may have changed, or be gone, when it is read."""
    return tuple(Found(one.kind, one.severity, one.message, _places(one)) for one in findings)


def _places(finding: Finding) -> tuple[Place, ...]:
    what = f"here, in {finding.kernel}"
    if finding.thread is not None:
        what += f", thread {_triple(finding.thread)} in block {_triple(finding.block)}"
    places = [_place(finding.file, finding.line, finding.source, what)]
    other = finding.other
    if other is not None:
        what = f"and {other.action.removesuffix(' of').removesuffix(' on')}"
        if other.thread is not None:
            what += f" by thread {_triple(other.thread)} in block {_triple(other.block)}"
        places.append(_place(other.file, other.line, other.source, what))
    return tuple(places)


def _place(file: str, line: int, source: str, what: str) -> Place:
    """A place with the lines around it; its own line alone where the file cannot be read."""
    read = linecache.getlines(file)
    if not 0 < line <= len(read):
        return Place(file, line, what, ((line, source.rstrip()),) if source else ())
    first, last = max(1, line - MARGIN), min(len(read), line + MARGIN)
    return Place(file, line, what, tuple((number, read[number - 1].rstrip()) for number in range(first, last + 1)))


def _triple(coordinates: tuple[int, int, int] | None) -> str:
    return "?" if coordinates is None else f"({','.join(map(str, coordinates))})"
