"""How far the judge can be trusted, summed up from trials: what every rule refuses, and how slack the bounds are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from oracle.variants import VARIANTS, variants_of
from refsim.conformance.mutation import Column, Trial
from refsim.conformance.rules import RULES
from refsim.conformance.verdicts import Verdict

SCHEMA = "refsim-mutants/1"
JUDGE = "refsim"
TIGHTENED = 4.0


@dataclass(frozen=True)
class Score:
    """What one rule made of all variants.

    Attributes
    ----------
    rule : str
        ``refsim``, or a name in `RULES`.
    mutants, killed : int
        How many mutants were tried (each dtype counts), and how many of them the rule refused on some case.
    controls, accused : int
        The same of controls: those accused are false alarms.
    runs, alarms : int
        Control runs, one per control and case, and how many of them the rule refused.
    """

    rule: str
    mutants: int
    killed: int
    controls: int
    accused: int
    runs: int
    alarms: int


@dataclass(frozen=True)
class Slack:
    """How far the controls of an operator stay inside what is allowed, in one dtype.

    Attributes
    ----------
    bound : float
        Guaranteed bound ÷ the worst error of a control before its last rounding. Infinite where no such error shows:
        the bounds are 0, or the last rounding hides it.
    sigma : float
        By how much the statistical tier can be tightened until a control is SUSPECT; infinite where it has no say.
    """

    operator: str
    dtype: str
    bound: float
    sigma: float


def scores(trials: Collection[Trial], classes: Collection[str] | None = None) -> list[Score]:
    """The judge's score and those of `RULES`; with ``classes``, of these value classes alone and without relations."""
    return [_score(rule, trials, classes) for rule in (JUDGE, *RULES)]


def _score(rule: str, trials: Collection[Trial], classes: Collection[str] | None) -> Score:
    mutants = controls = killed = accused = runs = alarms = 0
    for trial in trials:
        columns = [column for name, column in trial.classes.items() if classes is None or name in classes]
        refused = sum(_refused(rule, column) for column in columns)
        related = classes is None and rule == JUDGE and any(column.refused for column in trial.relations.values())
        if trial.variant.wrong:
            mutants += 1
            killed += bool(refused or related)
        else:
            controls += 1
            accused += bool(refused or related)
            runs += sum(column.cases for column in columns)
            alarms += refused
    return Score(rule, mutants, killed, controls, accused, runs, alarms)


def _refused(rule: str, column: Column) -> int:
    return column.refused_cases if rule == JUDGE else column.others[rule]


def killed_by(trial: Trial) -> str:
    """The strongest tier of the judge that refused a variant: ``bound``, ``statistics``, ``relation``, or none."""
    verdicts = {column.verdict for column in trial.classes.values()}
    if verdicts & {Verdict.FAIL, Verdict.ERROR}:
        return "bound"
    if Verdict.SUSPECT in verdicts:
        return "statistics"
    return "relation" if trial.refused else ""


def slacks(trials: Iterable[Trial]) -> list[Slack]:
    """The slack of each operator and dtype, in the order of the trials."""
    found = []
    for (operator, dtype), members in groupby(trials, key=lambda trial: (trial.variant.operator, trial.dtype)):
        columns = [c for trial in members if not trial.variant.wrong for c in trial.classes.values()]
        reach = max((column.reach for column in columns), default=0.0)
        strain = max((column.strain for column in columns), default=0.0)
        found.append(Slack(operator, dtype, _inverse(reach), _inverse(strain)))
    return found


def _inverse(share: float) -> float:
    return 1.0 / share if share else float("inf")


def as_json(trials: Sequence[Trial], seed: int, count: int) -> dict[str, Any]:
    """Scores, slack and every trial as JSON values, which ``trials_from`` reads; what is infinite is null."""
    return {
        "schema": SCHEMA,
        "seed": seed,
        "cases": count,
        "rules": {name: rule.statement for name, rule in RULES.items()},
        "scores": [vars(score) for score in scores(trials)],
        "slack": [
            {**vars(slack), "bound": _finite(slack.bound), "sigma": _finite(slack.sigma)} for slack in slacks(trials)
        ],
        "trials": [_trial(trial) for trial in trials],
    }


def _trial(trial: Trial) -> dict[str, Any]:
    variant = trial.variant
    return {
        "operator": variant.operator,
        "dtype": trial.dtype,
        "variant": variant.name,
        "wrong": variant.wrong,
        "what": variant.flaw,
        "numerics": variant.numerics,
        "refused": trial.refused,
        "by": killed_by(trial),
        "classes": {name: _column(column) for name, column in trial.classes.items()},
        "relations": {name: _column(column) for name, column in trial.relations.items()},
    }


def _column(column: Column) -> dict[str, Any]:
    return {
        "verdict": column.verdict.value,
        "cases": column.cases,
        "refused": column.refused_cases,
        "rule": column.rule,
        "margin": _finite(column.margin),
        "reach": column.reach,
        "strain": column.strain,
        "others": {name: count for name, count in column.others.items() if count},
    }


def trials_from(data: Mapping[str, Any]) -> list[Trial]:
    """The trials that ``as_json`` described.

    Raises
    ------
    KeyError
        A variant is no longer there.
    """
    variants_of("")  # registers all
    return [
        Trial(
            VARIANTS[entry["operator"], entry["variant"]],
            entry["dtype"],
            {name: _column_from(column) for name, column in entry["classes"].items()},
            {name: _column_from(column) for name, column in entry["relations"].items()},
        )
        for entry in data["trials"]
    ]


def _column_from(data: Mapping[str, Any]) -> Column:
    margin = float("inf") if data["margin"] is None else data["margin"]
    return Column(
        Verdict(data["verdict"]),
        data["cases"],
        data["refused"],
        margin,
        data["reach"],
        data["strain"],
        data["rule"],
        Counter(data["others"]),
    )


def _finite(number: float) -> float | None:
    return number if number < float("inf") else None
