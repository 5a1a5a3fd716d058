"""The forms of a report by name, and which of them a file's name asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from refsim.conformance.backends.backend import UsageError
from refsim.conformance.reports.json_values import json_text
from refsim.conformance.reports.junit import junit_text
from refsim.conformance.reports.page import page_text
from refsim.conformance.reports.text import text
from refsim.conformance.verdicts import Report

FORMS = ("text", "json", "junit", "html")
FORM_OF_SUFFIX = {".txt": "text", ".json": "json", ".xml": "junit", ".html": "html"}


def form_for(path: Path) -> str:
    """The form that a file's name asks for.

    Raises
    ------
    UsageError
        Its ending stands for none.
    """
    if path.suffix not in FORM_OF_SUFFIX:
        known = ", ".join(f"{suffix} ({form})" for suffix, form in FORM_OF_SUFFIX.items())
        raise UsageError(f"{path} ends in {path.suffix or 'nothing'}, which is no form of a report; known: {known}")
    return FORM_OF_SUFFIX[path.suffix]


def write(
    reports: Sequence[Report], form: str, *, strict: bool = False, debug: bool = False, terminal: bool = False
) -> str:
    """Reports of one or several backends in a form of `FORMS`.

    Raises
    ------
    UsageError
        The form is JSON, which holds one report, and there are several.
    """
    if form == "text":
        return "\n".join(text(report, debug=debug, terminal=terminal) for report in reports)
    if form == "junit":
        return junit_text(reports, strict=strict)
    if form == "html":
        return page_text(reports)
    if len(reports) != 1:
        raise UsageError(f"a JSON file holds one report, and here are {len(reports)}; give html or junit")
    return json_text(reports[0])
