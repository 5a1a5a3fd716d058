"""How far a port is: which profiles a report lets it claim, and what is next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oracle.profiles import PROFILES
from refsim.conformance.verdicts import Report, Verdict


@dataclass(frozen=True)
class Standing:
    """One profile: operators that conform, that do not, that were not served or not judged, and known deviations."""

    profile: str
    conforming: tuple[str, ...]
    failing: tuple[str, ...]
    missing: tuple[str, ...]
    known: tuple[str, ...] = ()

    @property
    def claimed(self) -> bool:
        """Whether every operator conforms; one that deviates in a known way does not."""
        return not self.failing and not self.missing and not self.known

    def __str__(self) -> str:
        count = len(self.conforming) + len(self.failing) + len(self.missing) + len(self.known)
        done = f"profile {self.profile}: {len(self.conforming)} of {count} operators conform"
        if self.claimed:
            return f"{done}: it can be claimed"
        parts = {
            "conform": self.conforming,
            "do not conform": self.failing,
            "deviate in known ways": self.known,
            "not served": self.missing,
        }
        lines = [f"  {name}: {', '.join(operators)}" for name, operators in parts.items() if operators]
        following = (self.failing or self.missing or self.known)[0]
        return "\n".join([done, *lines, f"  next: {following} (what it is: refsim ops {following})"])


def standing(report: Report, profile: str, strict: bool = False) -> Standing:
    """Where a report's backend stands in a profile; an operator conforms if each of its rows does."""
    accepted = {Verdict.PASS} if strict else {Verdict.PASS, Verdict.SUSPECT}
    conforming: list[str] = []
    failing: list[str] = []
    missing: list[str] = []
    known: list[str] = []
    for operator in PROFILES[profile]:
        verdicts = [row.verdict for row in report.results if row.operator == operator]
        judged = {verdict for verdict in verdicts if verdict is not Verdict.UNSUPPORTED}
        if not judged:
            missing.append(operator)
        elif judged <= accepted:
            conforming.append(operator)
        else:
            (known if judged <= accepted | {Verdict.KNOWN} else failing).append(operator)
    return Standing(profile, tuple(conforming), tuple(failing), tuple(missing), tuple(known))


def standings(report: Report, profiles: Sequence[str], strict: bool = False) -> Sequence[Standing]:
    """The profiles that were asked for, and every other one that the same report lets the backend claim."""
    others = (standing(report, name, strict) for name in PROFILES if name not in profiles)
    return [*(standing(report, name, strict) for name in profiles), *(other for other in others if other.claimed)]
