"""Findings as data, and the report of a launch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from refsim.errors import FindingError

if TYPE_CHECKING:
    from refsim.counters.record import Counters

KINDS = (
    "race",
    "out_of_bounds",
    "uninitialized_read",
    "barrier_divergence",
    "warp_divergence",
    "misaligned",
    "launch_limit",
    "deadlock",
    "assertion",
)

CHECK_GROUPS: dict[str, frozenset[str]] = {
    "memcheck": frozenset({"out_of_bounds", "misaligned", "launch_limit", "assertion"}),
    "racecheck": frozenset({"race"}),
    "initcheck": frozenset({"uninitialized_read"}),
    "synccheck": frozenset({"barrier_divergence", "warp_divergence", "deadlock"}),
}


def check_groups(checks: str | list[str] | tuple[str, ...]) -> frozenset[str]:
    """Names of the check groups that are on.

    Parameters
    ----------
    checks
        ``"all"``, ``"none"``, a group name, several separated by commas, or a list of names.

    Raises
    ------
    ValueError
        For a name that is no group.
    """
    if isinstance(checks, str):
        names = [part.strip() for part in checks.split(",")]
    elif isinstance(checks, Iterable):
        names = list(checks)
    else:
        raise ValueError(f"checks must be names of check groups, not {checks!r}")
    on: set[str] = set()
    for name in names:
        if name == "all":
            on.update(CHECK_GROUPS)
        elif name in CHECK_GROUPS:
            on.add(name)
        elif name not in ("none", ""):
            raise ValueError(f"unknown check {name!r}; checks are all, none, {', '.join(CHECK_GROUPS)}")
    return frozenset(on)


@dataclass(frozen=True)
class Access:
    """One side of a finding: which thread did what where."""

    file: str
    line: int
    source: str
    action: str
    array: str | None
    index: tuple[int, ...] | None
    block: tuple[int, int, int] | None
    thread: tuple[int, int, int] | None
    value: Any = None

    def where(self) -> str:
        """One line: action, thread, block, file and line."""
        who = f" by thread {_triple(self.thread)} in block {_triple(self.block)}" if self.thread is not None else ""
        return f"{self.action.removesuffix(' of').removesuffix(' on')}{who} at {self.file}:{self.line}"


@dataclass(frozen=True)
class Finding:
    """Something wrong (`severity` error) or worth knowing (note) that a launch did.

    `kind` is one of `KINDS`; `file` and `line` are those of the access; `index` is the subscript, `block` and
    `thread` the three-dimensional coordinates of one offender; `other` is the second access of a race, and `witness`
    the schedule that shows it, if one was asked for; `count` says how many further lanes did the same at the same line.
    """

    kind: str
    kernel: str
    message: str
    severity: str
    file: str
    line: int
    source: str
    array: str | None = None
    index: tuple[int, ...] | None = None
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    dtype: str | None = None
    space: str | None = None
    other: Access | None = None
    witness: str | None = None

    def __str__(self) -> str:
        lines = [f"{self.severity}: {self.kind.replace('_', ' ')}: {self.message}"]
        who = f", thread {_triple(self.thread)} in block {_triple(self.block)}" if self.thread is not None else ""
        lines.append(f"    at {self.file}:{self.line} in {self.kernel}{who}")
        if self.source:
            lines.append(f"        {self.source.strip()}")
        if self.other is not None:
            lines.append(f"    and {self.other.where()}")
            if self.other.source:
                lines.append(f"        {self.other.source.strip()}")
        if self.witness is not None:
            lines.append(f"    {self.witness}")
        return "\n".join(lines)


def _triple(coordinates: tuple[int, int, int] | None) -> str:
    return "?" if coordinates is None else "(" + ",".join(str(c) for c in coordinates) + ")"


@dataclass
class Raised:
    """An exception that a kernel raised: the first in the order of the launch."""

    kind: Any
    args: tuple[Any, ...]
    function: str
    file: str
    line: int
    block: tuple[int, int, int]
    thread: tuple[int, int, int]


@dataclass
class Report:
    """What a launch found.

    Attributes
    ----------
    kernel, device
        Names of the kernel and of the simulated device.
    findings
        In the order in which they were met; one per kind and source line (pair of lines for races).
    processes, why_one_process
        In how many processes the blocks ran, and where it was one, why.
    counters
        `refsim.counters.Counters`, if the launch was asked to count, and within the limits of the device.
    raised
        The first exception that a thread raised with ``raise`` or ``assert``; else None.
    """

    kernel: str
    device: str
    findings: list[Finding] = field(default_factory=list)
    processes: int = 1
    why_one_process: str = ""
    counters: Counters | None = None
    raised: Raised | None = None

    @property
    def ok(self) -> bool:
        """True if no finding is an error."""
        return not self.errors

    @property
    def errors(self) -> list[Finding]:
        """Findings of severity error."""
        return [finding for finding in self.findings if finding.severity == "error"]

    def raise_if_findings(self) -> None:
        """Raise `FindingError` with all errors if there are any."""
        if not self.ok:
            raise FindingError("\n".join(str(finding) for finding in self.errors))

    def __str__(self) -> str:
        head = f"{self.kernel} on {self.device}: "
        if not self.findings:
            return head + "no findings"
        errors, notes = len(self.errors), len(self.findings) - len(self.errors)
        counted = [f"{n} {word}{'s' if n != 1 else ''}" for n, word in ((errors, "error"), (notes, "note")) if n]
        return "\n".join([head + ", ".join(counted), *(str(finding) for finding in self.findings)])
