"""Is the judge itself right? Honest and wrong variants of an operator, on every value class, relation and rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from oracle.cases import Case, make_cases
from oracle.cases.recipes import recipe_of
from oracle.formats import round_to
from oracle.numerics import NUMERICS
from oracle.operator import Expected, find_operator
from oracle.signature import Array
from oracle.variants import Variant, variants_of
from refsim.conformance.judge import Judge
from refsim.conformance.rules import RULES
from refsim.conformance.runner import Prepared, relations_due
from refsim.conformance.verdicts import Verdict

WORST = (Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.SUSPECT, Verdict.ERROR, Verdict.FAIL)
REFUSED = (Verdict.FAIL, Verdict.SUSPECT, Verdict.ERROR)


@dataclass
class Column:
    """What one value class, or one relation, made of a variant.

    Attributes
    ----------
    verdict : Verdict
        The gravest of its cases.
    cases, refused_cases : int
        How many cases it was tried on, and how many of them the judge refused.
    margin, reach, strain : float
        The largest of any judgement.
    rule : str
        The judge's rule that refused it first; empty if none did.
    others : counter of str
        How many cases each rule of `RULES` refused.
    """

    verdict: Verdict = Verdict.PASS
    cases: int = 0
    refused_cases: int = 0
    margin: float = 0.0
    reach: float = 0.0
    strain: float = 0.0
    rule: str = ""
    others: Counter[str] = field(default_factory=Counter)

    @property
    def refused(self) -> bool:
        """Whether the judge did not accept the variant here."""
        return self.verdict in REFUSED

    def note(
        self, verdict: Verdict, rule: str, margin: float = np.inf, reach: float = 0.0, strain: float = 0.0
    ) -> None:
        """Take account of one judgement."""
        if WORST.index(verdict) > WORST.index(self.verdict):
            self.verdict = verdict
            self.rule = rule if verdict in REFUSED else ""
        self.margin, self.reach, self.strain = (
            max(self.margin, margin),
            max(self.reach, reach),
            max(self.strain, strain),
        )


@dataclass
class Trial:
    """One variant in one dtype: a column per value class and per relation."""

    variant: Variant
    dtype: str
    classes: dict[str, Column] = field(default_factory=dict)
    relations: dict[str, Column] = field(default_factory=dict)

    @property
    def refused(self) -> bool:
        """Whether anything refused the variant."""
        return any(column.refused for column in (*self.classes.values(), *self.relations.values()))

    @property
    def right(self) -> bool:
        """Whether the judge did what it must: refuse a mutant, accept a control."""
        return self.refused == self.variant.wrong

    @property
    def margin(self) -> float:
        """The largest margin over all value classes."""
        return max((column.margin for column in self.classes.values()), default=0.0)


def trial_cases(operator: str, dtype: str, seed: int, count: int) -> list[Case]:
    """Cases for variants: what a run holds, and every value class in at least two shapes."""
    cases = make_cases(operator, dtype, count, seed)
    seen = {case.value_class for case in cases}
    small = [case for case in cases if 0 < np.prod(list(case.dims.values()) or [1]) <= 1 << 16] or cases
    for number, name in enumerate(sorted(set(recipe_of(operator).classes) - seen)):
        cases.append(replace(small[number % len(small)], value_class=name, seed=seed + number))
    return cases


def trials(
    operators: Sequence[str],
    dtypes: Sequence[str],
    *,
    seed: int = 0,
    count: int = 48,
    quick: bool = False,
) -> Iterator[Trial]:
    """Run every variant of the operators in the dtypes, each judged under the numerics that it claims to keep.

    Parameters
    ----------
    operators, dtypes
        What to try; dtypes that an operator or a variant does not have are left out.
    seed, count
        Seed and number of the cases.
    quick
        Leave out the common rules; and once a case has refused a mutant that no relation is named for, all others.
    """
    for operator in operators:
        record = find_operator(operator)
        for dtype in (name for name in dtypes if name in record.dtypes):
            cases = trial_cases(operator, dtype, seed, count)
            drawn = [_untouchable(case) for case in cases]
            prepared: dict[str, list[Prepared]] = {}
            for variant in variants_of(operator):
                if variant.dtypes and dtype not in variant.dtypes:
                    continue
                numerics = "float64" if dtype == "float64" else variant.numerics
                if numerics not in prepared:
                    prepared[numerics] = [_prepared(case, numerics) for case in cases]
                trial = Trial(variant, dtype)
                for number, (item, inputs) in enumerate(zip(prepared[numerics], drawn, strict=True)):
                    outputs = _on_case(trial, item, inputs)
                    if not quick:
                        trial.classes[item.case.value_class].others.update(_refusing(item.judges, outputs))
                    elif variant.wrong and not variant.relation and trial.refused:
                        break
                    _on_relations(trial, item, number)
                yield trial


def _untouchable(case: Case) -> dict[str, Any]:
    """A case's inputs, which no variant may write to."""
    inputs = case.inputs()
    for array in inputs.values():
        if array is not None:
            array.flags.writeable = False
    return inputs


def _prepared(case: Case, numerics: str) -> Prepared:
    record = find_operator(case.operator)
    params = record.signature.complete(case.params)
    stages: dict[Any, tuple[Any, ...]] = {}
    expected = record.expect(case.inputs(), params, NUMERICS[numerics], None, stages)
    return Prepared(case, params, NUMERICS[numerics], tuple(Judge(part) for part in expected), {}, _stages=stages)


def _run(variant: Variant, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    with np.errstate(all="ignore"):
        return variant.run(inputs, params)


def _on_case(trial: Trial, item: Prepared, inputs: dict[str, Any]) -> tuple[Any, ...] | None:
    """Judge a variant on a case; its outputs, or None if it raised."""
    column = trial.classes.setdefault(item.case.value_class, Column())
    column.cases += 1
    try:
        outputs = _run(trial.variant, inputs, dict(item.params))
    except Exception as error:
        column.note(Verdict.ERROR, type(error).__name__)
        column.refused_cases += 1
        return None
    verdicts = []
    for judge, output in zip(item.judges_of(outputs), outputs, strict=True):
        judgement = judge.judge(output)
        rule = judgement.element.rule if judgement.element else judgement.reason
        column.note(judgement.verdict, rule, judgement.margin, judgement.reach, judgement.strain)
        verdicts.append(judgement.verdict)
    column.refused_cases += any(verdict in REFUSED for verdict in verdicts)
    return outputs


def _refusing(judges: Sequence[Judge], outputs: Sequence[Any] | None) -> set[str]:
    """The common rules that refuse some output, which they compare with what the definition itself gives."""
    if outputs is None:
        return set(RULES)
    refusing: set[str] = set()
    for judge, output in zip(judges, outputs, strict=True):
        if not judge.well_formed(output):
            return set(RULES)
        want, got = _rounded(judge.expected), np.asarray(output).astype(np.float64)
        open_to_all = getattr(judge.choice, "free", None)
        if open_to_all is not None:
            got = np.where(open_to_all, want, got)
        refusing |= {name for name, rule in RULES.items() if not rule.accepts(got, want, judge.expected.format)}
    return refusing


def _rounded(expected: Expected) -> Array:
    """The definition's value as an implementation would store it."""
    value = np.asarray(expected.value, np.float64)
    return value if expected.choice is not None else round_to(value, expected.format)


def _on_relations(trial: Trial, item: Prepared, number: int) -> None:
    for relation in relations_due(item.case.operator, number):
        column = trial.relations.setdefault(relation.name, Column())
        column.cases += 1

        def run(inputs: Any, params: Any) -> tuple[Any, ...]:
            return _run(trial.variant, dict(inputs), dict(params))

        try:
            broken = relation.holds(run, item.case.inputs(), dict(item.params), np.random.default_rng(item.case.seed))
        except Exception as error:
            broken = f"raised {type(error).__name__}"
        if broken:
            column.note(Verdict.FAIL, "relation")
            column.refused_cases += 1
