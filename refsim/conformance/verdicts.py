"""Verdicts and the records that carry them: one failure, one row of the report, the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from oracle.cases import Case


class Verdict(Enum):
    """What the judge says of a case or of a row of the report.

    PASS : every output lies where an honest implementation can put it.
    SUSPECT : inside the guaranteed bound, but further out than independent roundings get; fails in strict mode.
    FAIL : wrong; the reason says in which way.
    ERROR : the implementation raised.
    INCONCLUSIVE : the bound is too wide, or the cases too weak, to tell right from wrong.
    UNSUPPORTED : the implementation refuses the case and says why.
    KNOWN : not right, in a way that the list of known deviations names; the reason is the list's.
    """

    PASS = "PASS"
    SUSPECT = "SUSPECT"
    FAIL = "FAIL"
    ERROR = "ERROR"
    INCONCLUSIVE = "INCONCLUSIVE"
    UNSUPPORTED = "UNSUPPORTED"
    KNOWN = "KNOWN"


@dataclass(frozen=True)
class Neighbourhood:
    """The piece of an output around one element: rows of its last two axes, all other indices those of the element.

    Attributes
    ----------
    start : tuple of int
        Where the first element of the first row stands.
    got, low, high : tuple of tuple of float
        What was returned, and the interval that is accepted, row by row.
    outside : tuple of tuple of bool
        Which elements are not accepted.
    """

    start: tuple[int, ...]
    got: tuple[tuple[float, ...], ...]
    low: tuple[tuple[float, ...], ...]
    high: tuple[tuple[float, ...], ...]
    outside: tuple[tuple[bool, ...], ...]


@dataclass(frozen=True)
class Place:
    """A line of a kernel where something happened, with the lines around it.

    Attributes
    ----------
    what : str
        What happened there, and which thread did it.
    lines : tuple of (int, str)
        Numbers and texts; empty where the source cannot be had.
    """

    file: str
    line: int
    what: str
    lines: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Found:
    """A finding of the simulator with its source: one place, or the two of a race."""

    kind: str
    severity: str
    message: str
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Element:
    """The worst element of an output that failed.

    Attributes
    ----------
    output : str
        Name of the output.
    index : tuple of int
        Where it stands.
    low, high : float
        The interval that is accepted there.
    got : float
        What was returned.
    rule : {"exact", "bound", "choice", "sigma", "nan", "infinity"}
        ``exact``: one value only is accepted; ``bound``: the guaranteed bound; ``choice``: integers of which several
        may be right; ``sigma``: the statistical tier;
        ``nan``, ``infinity``: which of the two was expected or not.
    around : Neighbourhood
        What stands next to it.
    """

    output: str
    index: tuple[int, ...]
    low: float
    high: float
    got: float
    rule: str
    around: Neighbourhood


@dataclass(frozen=True)
class Failure:
    """One case that did not pass, with what it takes to run it again.

    Attributes
    ----------
    reason : str
        ``value``, ``exact value``, ``choice``, ``nan``, ``shape``, ``dtype``, ``outputs``, ``mutated input``,
        ``out of bounds``, ``alias``,
        ``nondeterministic``, ``relation``, ``simulator finding``, ``statistics``, ``exception``,
        ``refusal``.
    message : str
        One paragraph.
    wrong, total : int
        Elements that lie outside, of how many; 0 where elements were not looked at.
    detail : str
        Several lines: an exception's traceback, or the simulator's finding in full; empty otherwise.
    findings : tuple of Found
        What the simulator found, each with its source.
    known : str
        Reason and link of the known deviation that it is; then the verdict is KNOWN. Empty otherwise.
    """

    case: Case
    verdict: Verdict
    reason: str
    message: str
    element: Element | None = None
    wrong: int = 0
    total: int = 0
    detail: str = ""
    findings: tuple[Found, ...] = ()
    known: str = ""


@dataclass(frozen=True)
class Tried:
    """What one case came to; of one that did not pass, a Failure says more.

    Attributes
    ----------
    margin : float or None
        Largest ratio of an element's error to what is allowed there; None where no output was judged.
    note : str
        Why it was refused, or can tell nothing; empty otherwise.
    """

    case: Case
    verdict: Verdict
    margin: float | None
    note: str = ""


@dataclass(frozen=True)
class Result:
    """One row of the report: one operator by one kernel in one dtype.

    Attributes
    ----------
    cases : int
        Cases that were run and judged.
    refused, inconclusive : int
        Cases that the kernel refused, and of the judged ones those that could not tell.
    worst_margin : float or None
        Largest ratio of an element's error to what is allowed there; at most 1 where everything passes, None where
        nothing was judged.
    verdict : Verdict
        Of the row.
    reason : str
        Why, in one sentence; empty for PASS.
    tried : tuple of Tried
        Every case, in the order of the run.
    again : tuple of str
        Words of the command that runs one case again; ``{case}`` stands for the case.
    """

    operator: str
    kernel: str
    dtype: str
    numerics: str
    cases: int
    refused: int
    inconclusive: int
    worst_margin: float | None
    verdict: Verdict
    reason: str = ""
    failures: tuple[Failure, ...] = ()
    tried: tuple[Tried, ...] = ()
    again: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cost:
    """What all launches of a kernel cost together.

    Attributes
    ----------
    table, lines : str
        The counters as a table of text, and the source with counters beside each line.
    """

    kernel: str
    table: str
    lines: str


@dataclass(frozen=True)
class Deviation:
    """An entry of the list of known deviations, and what became of it in a run.

    Attributes
    ----------
    where : str
        File, entry and line.
    operator, kernel, dtype, value_class, layout, case : tuple of str
        Patterns, one of which has to fit each; ``*`` stands for any text, and nothing else is special.
    kind : str
        In what way the cases fail: one of `refsim.conformance.known.KINDS`.
    expires : str
        Last day on which the entry holds, YYYY-MM-DD.
    expired : bool
        Whether that day is over; then the entry excuses nothing.
    asked : bool
        Whether the run judged its operator in a dtype of its own; other entries are set aside.
    cases, deviating : int
        Cases of the run that fit the patterns and were judged, and of those the ones that failed in this way.
    """

    where: str
    operator: tuple[str, ...]
    kind: str
    reason: str
    link: str
    expires: str
    kernel: tuple[str, ...] = ("*",)
    dtype: tuple[str, ...] = ("*",)
    value_class: tuple[str, ...] = ("*",)
    layout: tuple[str, ...] = ("*",)
    case: tuple[str, ...] = ("*",)
    expired: bool = False
    asked: bool = False
    cases: int = 0
    deviating: int = 0

    @property
    def told(self) -> str:
        """Reason and link, for whoever reads of one of its cases."""
        return f"{self.reason} ({self.link}, until {self.expires})"

    @property
    def problem(self) -> str:
        """Why the list is no longer true here: ``expired``, ``matches nothing`` or ``passes again``; or nothing."""
        if not self.asked:
            return ""
        if self.expired:
            return "expired"
        if not self.cases:
            return "matches nothing"
        return "" if self.deviating else "passes again"

    @property
    def advice(self) -> str:
        """One sentence for an entry that has a problem."""
        about = f"{self.where}: {', '.join(self.operator)}, {self.kind}, {self.reason!r}"
        if self.problem == "expired":
            return f"{about}: expired on {self.expires}; mend what deviates, or look at {self.link} and set a new date"
        if self.problem == "matches nothing":
            return f"{about}: matches none of the cases that were judged; loosen its patterns, or delete it"
        return f"{about}: passes again on all of its {self.cases} cases; delete it"


@dataclass(frozen=True)
class Report:
    """Everything one run found.

    Attributes
    ----------
    environment : mapping of str to str
        Versions of what ran, and the machine.
    costs : tuple of Cost
        Counters by kernel, where they were asked for.
    known : tuple of Deviation
        The list of known deviations, where there was one.
    """

    backend: str
    device: str
    seed: int
    results: tuple[Result, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    costs: tuple[Cost, ...] = ()
    known: tuple[Deviation, ...] = ()

    @property
    def outdated(self) -> list[Deviation]:
        """Known deviations that are none any more, or that fit nothing."""
        return [entry for entry in self.known if entry.problem]

    def exit_code(self, strict: bool = False) -> int:
        """0 conforms but for what is known, 1 does not (or the list is not true), 3 inconclusive or nothing ran."""
        verdicts = {result.verdict for result in self.results}
        wrong = {Verdict.FAIL, Verdict.ERROR} | ({Verdict.SUSPECT} if strict else set())
        if verdicts & wrong or self.outdated:
            return 1
        if not verdicts or verdicts & {Verdict.INCONCLUSIVE, Verdict.UNSUPPORTED}:
            return 3
        return 0
