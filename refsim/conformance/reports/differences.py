"""What got better or worse between two reports, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from refsim.conformance.backends.backend import UsageError
from refsim.conformance.verdicts import Report, Result, Verdict

Row = tuple[str, str, str]

# The further down, the worse. What raises is no better than what is wrong.
RANKS: dict[Verdict, int] = {
    Verdict.PASS: 0,
    Verdict.SUSPECT: 1,
    Verdict.INCONCLUSIVE: 2,
    Verdict.UNSUPPORTED: 3,
    Verdict.KNOWN: 4,
    Verdict.ERROR: 5,
    Verdict.FAIL: 5,
}
# By what factor a worst margin must have moved to be told of.
NOTICEABLE = 1.25
# In the order in which they are told.
KINDS = ("worse", "better", "changed", "new")


@dataclass(frozen=True)
class Difference:
    """How one row changed.

    Attributes
    ----------
    kind : {"worse", "better", "changed", "new"}
        ``changed``: neither better nor worse as far as a verdict goes; ``new``: there was no such row.
    old, new : Result or None
        The row before and after; None where there is none.
    why : str
        In what, in a few words.
    """

    kind: str
    row: Row
    old: Result | None
    new: Result | None
    why: str


def differences(old: Report, new: Report) -> list[Difference]:
    """The rows that changed: worse ones first, in the order of the reports within a kind.

    Rows are told apart by operator, kernel and dtype, so that reports of two versions of one backend can be compared,
    and of two devices.

    Raises
    ------
    UsageError
        A report has two rows of one name.
    """
    before, after = _rows(old, "the old report"), _rows(new, "the new report")
    found = []
    for row in dict.fromkeys((*before, *after)):
        difference = _difference(row, before.get(row), after.get(row))
        if difference:
            found.append(difference)
    return sorted(found, key=lambda difference: KINDS.index(difference.kind))


def comparable(old: Report, new: Report) -> list[str]:
    """What the two reports do not have in common, beside what was judged: one line each."""
    notes = []
    for name, before, after in (
        ("backend", old.backend, new.backend),
        ("device", old.device, new.device),
        ("seed", old.seed, new.seed),
    ):
        if before != after:
            notes.append(f"{name}: {before} before, {after} now")
    for name in dict.fromkeys((*old.environment, *new.environment)):
        before, after = old.environment.get(name, "none"), new.environment.get(name, "none")
        if before != after:
            notes.append(f"{name}: {before} before, {after} now")
    return notes


def _rows(report: Report, what: str) -> dict[Row, Result]:
    rows: dict[Row, Result] = {}
    for result in report.results:
        row = (result.operator, result.kernel, result.dtype)
        if rows.setdefault(row, result) is not result:
            raise UsageError(f"{what} has two rows {' × '.join(row)}, so rows cannot be compared by name")
    return rows


def _difference(row: Row, old: Result | None, new: Result | None) -> Difference | None:
    if new is None:
        return Difference("worse", row, old, None, "is no longer judged")
    if old is None:
        return Difference("new", row, None, new, new.reason)
    moved = _moved(old.verdict, new.verdict)
    if moved:
        return Difference("worse" if moved > 0 else "better", row, old, new, new.reason or old.reason)
    if old.verdict is not new.verdict:
        return Difference("changed", row, old, new, new.reason)
    changes = _by_cases(old, new) or _by_margin(old, new)
    return Difference(changes[0], row, old, new, changes[1]) if changes else None


def _moved(before: Verdict, after: Verdict) -> int:
    """Above 0 where it got worse, below 0 where it got better. A failure that became a known one is still there."""
    if after is Verdict.KNOWN and RANKS[before] >= RANKS[Verdict.UNSUPPORTED]:
        return 0
    return RANKS[after] - RANKS[before]


def _by_cases(old: Result, new: Result) -> tuple[str, str] | None:
    """By the cases that failed, were refused, or could not tell; only those that both reports ran are compared."""
    both = _same_cases(old, new)
    if both is None:
        if old.tried == new.tried:
            return None
        return "changed", f"{len(old.tried)} cases before, {len(new.tried)} others now"
    worse = sum(_moved(before, after) > 0 for before, after in both)
    better = sum(_moved(before, after) < 0 for before, after in both)
    if worse:
        return "worse", f"{worse} of {len(both)} cases are worse" + (f", {better} better" if better else "")
    if better:
        return "better", f"{better} of {len(both)} cases are better"
    return None


def _same_cases(old: Result, new: Result) -> Sequence[tuple[Verdict, Verdict]] | None:
    """Verdicts before and now of each case; None where other cases were run."""
    if [tried.case for tried in old.tried] != [tried.case for tried in new.tried]:
        return None
    return [(before.verdict, after.verdict) for before, after in zip(old.tried, new.tried, strict=True)]


def _by_margin(old: Result, new: Result) -> tuple[str, str] | None:
    before, after = old.worst_margin or 0.0, new.worst_margin or 0.0
    if max(before, after) <= NOTICEABLE * min(before, after):
        return None
    return "changed", f"worst margin {before:.3g} before, {after:.3g} now"
