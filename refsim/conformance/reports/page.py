"""Reports as one HTML page that holds everything: the JSON values, and a script that shows them. No network is asked.

A template language has nothing to do here: three files of ours and one JSON object are put into one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files

from refsim.conformance.reports.json_values import to_json
from refsim.conformance.verdicts import Report

PARTS = files("refsim.conformance.reports") / "html"


def page_text(reports: Sequence[Report]) -> str:
    """The page that shows the reports side by side."""
    page = _part("page.html")
    data = json.dumps({"reports": [to_json(report) for report in reports]}, allow_nan=False, separators=(",", ":"))
    # Within a script element only "<" could end it or begin a comment.
    holes = {"style": _part("page.css"), "script": _part("page.js"), "data": data.replace("<", "\\u003c")}
    start, *rest = page.split("{{")
    pieces = [start]
    for piece in rest:
        name, _, after = piece.partition("}}")
        pieces += [holes[name], after]
    return "".join(pieces)


def _part(name: str) -> str:
    return (PARTS / name).read_text(encoding="utf-8")
