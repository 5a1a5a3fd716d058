"""The table that the command prints: one line per test file, and the total."""

from __future__ import annotations

from collections import Counter

from refsim.compat.numba_tests.known import Known
from refsim.compat.numba_tests.outcomes import Outcomes

COLUMNS = ("passed", "failed", "listed", "skipped")


def table(outcomes: Outcomes, known: Known) -> str:
    """Counts by file; ``listed`` are failures that are in the list, ``failed`` those that are not."""
    counts: dict[str, Counter[str]] = {}
    for test, outcome in outcomes.of.items():
        file = test.partition("::")[0]
        state = "listed" if outcome.state == "failed" and test in known.reason_of else outcome.state
        counts.setdefault(file, Counter())[state] += 1
    counts = dict(sorted(counts.items()))
    counts["total"] = sum(counts.values(), Counter())
    width = max(len(file) for file in counts)
    lines = [f"{'file':<{width}}" + "".join(f"{name:>9}" for name in COLUMNS)]
    lines += [f"{file:<{width}}" + "".join(f"{row[name]:>9}" for name in COLUMNS) for file, row in counts.items()]
    return "\n".join(lines)
