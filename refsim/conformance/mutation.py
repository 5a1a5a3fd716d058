"""Is the judge itself right? Honest and wrong variants of an operator, on every value class and relation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from oracle.cases import Case, make_cases
from oracle.numerics import NUMERICS
from oracle.operator import find_operator
from oracle.relations import relations_of
from oracle.variants import Variant, variants_of
from refsim.conformance.judge import Judge
from refsim.conformance.verdicts import Verdict

Drawn = tuple[dict[str, Any], dict[str, Any]]
Judged = dict[tuple[Any, ...], tuple[Judge, ...]]
RELATION_CASES = 3
WORST = (Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.SUSPECT, Verdict.ERROR, Verdict.FAIL)


@dataclass
class Column:
    """What one value class, or one relation, made of a variant.

    Attributes
    ----------
    verdict : Verdict
        The gravest of its cases.
    margin : float
        The largest distance from the definition, in bounds.
    rule : str
        The judge's rule that refused it first; empty if none did.
    """

    verdict: Verdict = Verdict.PASS
    margin: float = 0.0
    rule: str = ""

    @property
    def refused(self) -> bool:
        """Whether the judge did not accept the variant here."""
        return self.verdict in (Verdict.FAIL, Verdict.SUSPECT, Verdict.ERROR)


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
    from oracle.cases.recipes import recipe_of

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
    progress: Callable[[Trial], None] | None = None,
) -> Iterator[Trial]:
    """Run every variant of the operators in the dtypes, each judged under the numerics that it claims to keep.

    Parameters
    ----------
    operators, dtypes
        What to try; dtypes that an operator or a variant does not have are left out.
    seed, count
        Seed and number of the cases.
    progress
        Called after each variant.
    """
    for operator in operators:
        record = find_operator(operator)
        for dtype in (name for name in dtypes if name in record.dtypes):
            cases = trial_cases(operator, dtype, seed, count)
            drawn = [_drawn(case) for case in cases]
            prepared: dict[str, list[tuple[Judge, ...]]] = {}
            judged: dict[str, Judged] = {}
            for variant in variants_of(operator):
                if variant.dtypes and dtype not in variant.dtypes:
                    continue
                numerics = "float64" if dtype == "float64" else variant.numerics
                if numerics not in prepared:
                    prepared[numerics] = [_judges(case, *given, numerics) for case, given in zip(cases, drawn)]
                trial = Trial(variant, dtype)
                _on_cases(trial, cases, drawn, prepared[numerics], numerics, judged.setdefault(numerics, {}))
                _on_relations(trial, cases)
                if progress:
                    progress(trial)
                yield trial


def _drawn(case: Case) -> Drawn:
    """A case's inputs, which no variant may write to, and its complete parameters."""
    inputs = case.inputs()
    for array in inputs.values():
        if array is not None:
            array.flags.writeable = False
    return inputs, find_operator(case.operator).signature.complete(case.params)


def _judges(case: Case, inputs: dict[str, Any], params: dict[str, Any], numerics: str) -> tuple[Judge, ...]:
    expected = find_operator(case.operator).expect(inputs, params, NUMERICS[numerics])
    return tuple(Judge(part) for part in expected)


def _run(variant: Variant, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    with np.errstate(all="ignore"):
        return variant.run(inputs, params)


def _on_cases(
    trial: Trial,
    cases: Sequence[Case],
    drawn: Sequence[Drawn],
    prepared: Sequence[tuple[Judge, ...]],
    numerics: str,
    judged: Judged,
) -> None:
    """``judged`` keeps the judges of later stages, which are the same for variants that returned the same before."""
    record = find_operator(trial.variant.operator)
    taken = {name for stage in record.stages[1:] for name in stage.arrays}
    for at, (case, (inputs, params), judges) in enumerate(zip(cases, drawn, prepared, strict=True)):
        column = trial.classes.setdefault(case.value_class, Column())
        try:
            outputs = _run(trial.variant, inputs, params)
        except Exception as error:
            _note(column, Verdict.ERROR, np.inf, type(error).__name__)
            continue
        if record.staged:
            formed = {j.expected.name: out for j, out in zip(judges, outputs, strict=True) if j.well_formed(out)}
            key = at, *((name, out.tobytes()) for name, out in formed.items() if name in taken)
            if key not in judged:
                expected = record.expect(inputs, params, NUMERICS[numerics], formed)
                judged[key] = tuple(Judge(part) for part in expected)
            judges = judged[key]
        for judge, output in zip(judges, outputs, strict=True):
            judgement = judge.judge(output)
            rule = judgement.element.rule if judgement.element else judgement.reason
            _note(column, judgement.verdict, judgement.margin, rule)


def _on_relations(trial: Trial, cases: Sequence[Case]) -> None:
    for relation in relations_of(trial.variant.operator):
        column = trial.relations.setdefault(relation.name, Column())
        for case in cases[:RELATION_CASES]:
            params = find_operator(case.operator).signature.complete(case.params)

            def run(inputs: Any, params: Any) -> tuple[Any, ...]:
                return _run(trial.variant, dict(inputs), dict(params))

            try:
                broken = relation.holds(run, case.inputs(), params, np.random.default_rng(case.seed))
            except Exception as error:
                broken = f"raised {type(error).__name__}"
            if broken:
                _note(column, Verdict.FAIL, np.inf, "relation")


def _note(column: Column, verdict: Verdict, margin: float, rule: str) -> None:
    if WORST.index(verdict) > WORST.index(column.verdict):
        column.verdict = verdict
        column.rule = rule if verdict not in (Verdict.PASS, Verdict.INCONCLUSIVE) else ""
    column.margin = max(column.margin, margin)
