"""The runner: draws cases, runs a backend on them, judges each, and sums up a row per operator, kernel and dtype."""

from __future__ import annotations

import contextlib
import secrets
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np

from oracle.cases import Case, buffer_of, make_cases
from oracle.cases.recipes import recipe_of
from oracle.numerics import Numerics
from oracle.operator import find_operator
from oracle.relations import Relation, relations_of
from refsim.conformance.backends.answers import capabilities_of, numerics_of, run_of
from refsim.conformance.backends.backend import Backend, Capability, Refused, RunResult
from refsim.conformance.environment import environment
from refsim.conformance.judge import Judge, Judgement
from refsim.conformance.known import KnownDeviations
from refsim.conformance.power import Refusals, accepted_cheats, refusals
from refsim.conformance.replay_command import words_for
from refsim.conformance.sources import found
from refsim.conformance.verdicts import Failure, Report, Result, Tried, Verdict
from refsim.errors import brief, shortened, text_of

# Every how many cases a run is repeated, to see that it gives the same bits again.
REPEAT_EVERY = 5
# On how many cases of a row every relation is tried: its first, which are the ones with the most power.
RELATION_CASES = 3
# Which verdict of several outputs, or of several cases, counts.
GRAVITY = (Verdict.PASS, Verdict.UNSUPPORTED, Verdict.INCONCLUSIVE, Verdict.SUSPECT, Verdict.ERROR, Verdict.FAIL)
# Characters of a traceback that are kept.
MOST_OF_TRACEBACK = 20_000

Progress = Callable[[Capability, int, int], None]


@dataclass(frozen=True)
class Prepared:
    """A case with everything that does not depend on who runs it; judges of later stages come when asked for."""

    case: Case
    params: Mapping[str, Any]
    numerics: Numerics
    judges: tuple[Judge, ...]
    refused_cheats: Refusals
    _known: dict[tuple[bytes | None, ...], tuple[Judge, ...]] = field(default_factory=dict, repr=False, compare=False)
    _stages: dict[Any, tuple[Any, ...]] = field(default_factory=dict, repr=False, compare=False)

    def judges_of(self, outputs: Sequence[Any]) -> tuple[Judge, ...]:
        """The judges of what an implementation returned: later stages start from its own earlier outputs."""
        record = find_operator(self.case.operator)
        if not record.staged:
            return self.judges
        returned = {
            judge.expected.name: got for judge, got in zip(self.judges, outputs, strict=True) if judge.well_formed(got)
        }
        key = tuple(returned[name].tobytes() if name in returned else None for name in record.carried)
        if key not in self._known:
            expected = record.expect(self.case.inputs(), self.params, self.numerics, returned, self._stages)
            self._known[key] = tuple(Judge(part) for part in expected)
        return self._known[key]


@dataclass(frozen=True)
class Outcome:
    """What one case came to; no margin where no output was judged."""

    verdict: Verdict
    margin: float | None = None
    failure: Failure | None = None
    note: str = ""

    @property
    def refused(self) -> bool:
        """Whether the case was not served, known or not."""
        return self.verdict is Verdict.UNSUPPORTED or (self.verdict is Verdict.KNOWN and self.failure is None)


def check(
    backend: Backend,
    operators: Sequence[str],
    dtypes: Sequence[str],
    *,
    seed: int = 0,
    count: int = 48,
    required: bool = False,
    cases: Mapping[tuple[str, str], Sequence[Case]] | None = None,
    progress: Progress | None = None,
    fresh: int = 0,
    known: KnownDeviations | None = None,
    spec: str | None = None,
) -> Report:
    """Judge a backend.

    Parameters
    ----------
    backend : Backend
        Who runs.
    operators, dtypes : sequence of str
        What to judge; combinations that the backend does not serve are left out.
    required : bool
        An operator that the backend does not serve at all becomes an UNSUPPORTED row instead.
    seed, count : int
        Seed of the run, and how many cases each operator and dtype gets.
    cases : mapping, optional
        Cases to run in place of drawn ones, by operator and dtype; each runs twice and with every relation, so that
        what failed once fails again whatever its place was.
    progress : function, optional
        Called with the row, the cases done and the cases in all, after each case.
    fresh : int
        How many cases more each row gets at its end, of a seed that nobody knows.
    known : KnownDeviations, optional
        What is known not to be right: such a case is KNOWN.
    spec : str, optional
        What names the backend on the command line, where that is not its name.

    Returns
    -------
    Report
        One row per operator × kernel × dtype, operators in the order given.

    Raises
    ------
    UsageError
        The backend's name, device, ``capabilities()`` or ``numerics()`` is not what the interface says.
    """
    capabilities = capabilities_of(backend)
    known = known or KnownDeviations(())
    results = []
    for operator in operators:
        known.ask(operator, [dtype for dtype in dtypes if dtype in find_operator(operator).dtypes])
        if required and not any(row.operator == operator and row.dtype in dtypes for row in capabilities):
            results.append(_not_served(backend, operator, dtypes, known))
        for dtype in dtypes:
            rows = [row for row in capabilities if (row.operator, row.dtype) == (operator, dtype)]
            if not rows:
                continue
            drawn = make_cases(operator, dtype, count, seed) if cases is None else cases.get((operator, dtype), ())
            drawn = [*drawn, *(make_cases(operator, dtype, fresh, secrets.randbelow(2**31)) if fresh else ())]
            by_numerics: dict[str, list[Prepared]] = {}
            for row in rows:
                numerics = numerics_of(backend, row)
                prepared = by_numerics.setdefault(numerics.name, [])
                if not prepared:
                    prepared.extend(prepare(drawn, numerics))
                thorough = cases is not None
                result = check_row(backend, row, numerics, prepared, progress, thorough, known)
                results.append(replace(result, again=words_for(backend, spec)))
    return Report(backend.name, backend.device, seed, tuple(results), environment(backend), known=known.entries)


def _not_served(backend: Backend, operator: str, dtypes: Sequence[str], known: KnownDeviations) -> Result:
    why = getattr(backend, "absent", {}).get(operator)
    reason = f"backend {backend.name} serves no {operator} in {', '.join(dtypes)}" + (f": {why}" if why else "")
    entry = known.recognise_absence(operator, dtypes)
    verdict, reason = (Verdict.KNOWN, f"unsupported: {entry.told}") if entry else (Verdict.UNSUPPORTED, reason)
    return Result(operator, "–", "any", "–", 0, 0, 0, None, verdict, reason)


def prepare(cases: Sequence[Case], numerics: Numerics) -> Iterator[Prepared]:
    """Work out what each case expects, and which cheap answers it refuses."""
    previous: dict[str, np.ndarray[Any, Any]] = {}
    for case in cases:
        record = find_operator(case.operator)
        inputs = case.inputs()
        params = record.signature.complete(case.params)
        judges = tuple(Judge(expected) for expected in record.expect(inputs, params, numerics))
        yield Prepared(case, params, numerics, judges, refusals(judges, inputs, previous))
        previous = {judge.expected.name: judge.value for judge in judges}


def check_row(
    backend: Backend,
    row: Capability,
    numerics: Numerics,
    prepared: Sequence[Prepared],
    progress: Progress | None = None,
    thorough: bool = False,
    known: KnownDeviations | None = None,
) -> Result:
    """Run and judge one operator by one kernel in one dtype; ``thorough`` leaves nothing out on any case."""
    known = known or KnownDeviations(())
    outcomes = []
    judged: list[Refusals] = []
    for number, item in enumerate(prepared):
        repeat = thorough or number % REPEAT_EVERY == 0
        related = relations_of(row.operator) if thorough else relations_due(row.operator, number)
        outcome = run_case(backend, row, item, repeat, related)
        outcome = excused(outcome, row, item.case, known)
        outcomes.append(outcome)
        if outcome.verdict in (Verdict.PASS, Verdict.SUSPECT):
            judged.append(item.refused_cheats)
        if progress:
            progress(row, number + 1, len(prepared))
    verdict, reason = _sum_up(outcomes, judged)
    counted = [outcome for outcome in outcomes if not outcome.refused]
    margins = [outcome.margin for outcome in counted if outcome.margin is not None]
    return Result(
        operator=row.operator,
        kernel=row.kernel,
        dtype=row.dtype,
        numerics=numerics.name,
        cases=len(counted),
        refused=len(outcomes) - len(counted),
        inconclusive=sum(outcome.verdict is Verdict.INCONCLUSIVE for outcome in outcomes),
        worst_margin=max(margins) if margins else None,
        verdict=verdict,
        reason=reason,
        failures=tuple(outcome.failure for outcome in outcomes if outcome.failure),
        tried=tuple(
            Tried(item.case, outcome.verdict, outcome.margin, outcome.note)
            for item, outcome in zip(prepared, outcomes, strict=True)
        ),
    )


def excused(outcome: Outcome, row: Capability, case: Case, known: KnownDeviations) -> Outcome:
    """The outcome, which is KNOWN where the list says so."""
    entry = known.recognise(row, case, outcome.verdict, outcome.failure.reason if outcome.failure else "")
    if entry is None:
        return outcome
    if outcome.failure is None:
        return replace(outcome, verdict=Verdict.KNOWN, note=f"{entry.told}: {outcome.note}")
    failure = replace(outcome.failure, verdict=Verdict.KNOWN, known=entry.told)
    return replace(outcome, verdict=Verdict.KNOWN, failure=failure)


def relations_due(operator: str, number: int) -> Sequence[Relation]:
    """The relations that a row's case of this number is tried on."""
    return relations_of(operator) if number < RELATION_CASES else ()


def run_case(
    backend: Backend, row: Capability, item: Prepared, repeat: bool, relations: Sequence[Relation] = ()
) -> Outcome:
    """Run one case and judge it. Where ``repeat``, on arrays that held something else before, and once more after.

    The relations are tried last, on a case that passed.
    """
    inputs = item.case.inputs()
    if repeat:
        _run_on_others(backend, row, item, inputs)
    before = {name: _bits(array) for name, array in inputs.items() if array is not None}
    try:
        result = _run(backend, row, inputs, item.params)
        changed = [name for name, bits in before.items() if _bits(_present(inputs, name)) != bits]
        again = _run(backend, row, item.case.inputs(), item.params) if repeat and not changed else None
    except Refused as refusal:
        return _refused(backend, row, item, text_of(refusal))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever it raises, SystemExit too, is its own fault
        return _raised(item.case, error)
    problem = _conduct(item, result, again, changed)
    if problem:
        return problem
    outcome = _judged(item, result)
    if outcome.verdict is Verdict.PASS and result.deterministic:
        return _related(backend, row, item, relations) or outcome
    return outcome


def _refused(backend: Backend, row: Capability, item: Prepared, why: str) -> Outcome:
    """A case that was refused. One that is not trusted may not choose by the values which cases it is judged on."""
    if getattr(backend, "untrusted", False):
        inputs, others = item.case.inputs(), _plain(item.case).inputs()
        for name, array in inputs.items():
            other = others.get(name)
            if array is not None and other is not None and _is_float(array) and other.shape == array.shape:
                array[...] = other
        try:
            _run(backend, row, inputs, item.params)
        except Refused:
            pass
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever it raises is its own fault
            return _raised(item.case, error)
        else:
            text = f"refused ({why}), but not where the floating-point inputs of the same case hold other values"
            return _fails(item, "refusal", text)
    return Outcome(Verdict.UNSUPPORTED, note=why)


def _plain(case: Case) -> Case:
    """A case of the same structure with ordinary values."""
    return replace(case, value_class=next(iter(recipe_of(case.operator).classes)), seed=case.seed + 1)


def _is_float(array: np.ndarray[Any, Any]) -> bool:
    return np.issubdtype(array.dtype, np.floating) or array.dtype == ml_dtypes.bfloat16


def _related(backend: Backend, row: Capability, item: Prepared, relations: Sequence[Relation]) -> Outcome | None:
    """The first relation that a backend breaks on a case; None if it keeps them all.

    The arrays of its runs lie row after row, whatever the case's layout and however the relation made them: a relation
    changes values, and where an array lies may change the order of a sum.
    """

    def run(inputs: Mapping[str, Any], params: Mapping[str, Any]) -> tuple[Any, ...]:
        laid = {name: None if array is None else np.array(array, order="C") for name, array in inputs.items()}
        return tuple(np.asarray(output) for output in _run(backend, row, laid, params).outputs)

    for relation in relations:
        rng = np.random.default_rng(item.case.seed)
        try:
            with np.errstate(all="ignore"):
                broken = relation.holds(run, item.case.inputs(), dict(item.params), rng)
        except Refused:
            continue  # the other run is one that the backend does not serve
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever it raises is its own fault
            return _raised(item.case, error)
        if broken:
            text = f"{relation.name} does not hold ({relation.statement.rstrip('.')}): {broken}"
            return _fails(item, "relation", text)
    return None


def _run(backend: Backend, row: Capability, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> RunResult:
    """One run; what it prints goes to stderr, and NumPy's warnings about hard values are not its caller's concern."""
    with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return run_of(backend, row.operator, row.kernel, inputs, params)


def _run_on_others(backend: Backend, row: Capability, item: Prepared, inputs: Mapping[str, Any]) -> None:
    """Run on the same arrays while one of them holds the values of another case.

    What is kept from that run, found by an address, by a shape or by the other inputs, is wrong in the next.
    """
    names = [name for name, array in inputs.items() if array is not None and array.size]
    if not names:
        return
    name = names[item.case.seed % len(names)]  # replaying the case does the same
    array = _present(inputs, name)
    buffers = [buffer_of(held) for held in inputs.values() if held is not None]
    values = [buffer.copy() for buffer in buffers]
    array[...] = _present(replace(item.case, seed=item.case.seed + 1).inputs(), name)
    try:
        _run(backend, row, inputs, item.params)
    except KeyboardInterrupt:
        raise
    except BaseException:  # the case itself runs next, and is judged
        return
    finally:
        for buffer, content in zip(buffers, values, strict=True):
            buffer[...] = content


def _conduct(item: Prepared, result: RunResult, again: RunResult | None, changed: Sequence[str]) -> Outcome | None:
    """Everything that is wrong with a run whatever its values are."""
    if changed:
        return _fails(item, "mutated input", f"the input {changed[0]} was modified (or the memory around it)")
    if result.misconduct:
        return _fails(item, *result.misconduct)
    errors = [finding for finding in result.findings if finding.severity == "error"]
    if errors:
        more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
        first = errors[0]
        text = f"{first.kind} at {first.file}:{first.line}: {first.message}{more}"
        failure = Failure(item.case, Verdict.FAIL, "simulator finding", text, detail=str(first), findings=found(errors))
        return Outcome(Verdict.FAIL, np.inf, failure)
    if len(result.outputs) != len(item.judges):
        names = ", ".join(judge.expected.name for judge in item.judges)
        return _fails(item, "outputs", f"{len(result.outputs)} outputs in place of {len(item.judges)} ({names})")
    if again is not None and result.deterministic:
        differing = [
            judge.expected.name
            for judge, first, second in zip(item.judges, result.outputs, again.outputs, strict=False)
            if _holds_numbers(first) and _holds_numbers(second) and first.tobytes() != second.tobytes()
        ]
        if differing:
            return _fails(item, "nondeterministic", f"{differing[0]}: a second run on the same inputs gave other bits")
    return None


def _holds_numbers(output: Any) -> bool:
    """Whether an output is an array with bits to compare: those of objects are addresses."""
    return isinstance(output, np.ndarray) and not output.dtype.hasobject


def _judged(item: Prepared, result: RunResult) -> Outcome:
    judges = item.judges_of(result.outputs)
    judgements = [judge.judge(got) for judge, got in zip(judges, result.outputs, strict=True)]
    worst = max(judgements, key=lambda judgement: GRAVITY.index(judgement.verdict))
    margin = max(judgement.margin for judgement in judgements)
    if worst.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE):
        return Outcome(worst.verdict, margin, note=worst.message)
    return Outcome(worst.verdict, margin, _failure(item.case, worst))


def _failure(case: Case, judgement: Judgement) -> Failure:
    return Failure(
        case,
        judgement.verdict,
        judgement.reason,
        judgement.message,
        judgement.element,
        judgement.wrong,
        judgement.total,
    )


def _fails(item: Prepared, reason: str, message: str) -> Outcome:
    return Outcome(Verdict.FAIL, np.inf, Failure(item.case, Verdict.FAIL, reason, message))


def _raised(case: Case, error: BaseException) -> Outcome:
    trace = shortened("".join(traceback.format_exception(error)), MOST_OF_TRACEBACK)
    message = f"raised {brief(error)}"
    return Outcome(Verdict.ERROR, failure=Failure(case, Verdict.ERROR, "exception", message, detail=trace))


def _sum_up(outcomes: Sequence[Outcome], judged: Sequence[Refusals]) -> tuple[Verdict, str]:
    """The row's verdict and why."""
    failures = [outcome.failure for outcome in outcomes if outcome.failure]
    for verdict in (Verdict.FAIL, Verdict.ERROR, Verdict.SUSPECT):
        failed = [failure for failure in failures if failure.verdict is verdict]
        if verdict is Verdict.SUSPECT and failed:
            weakness = _weakness(outcomes, judged)
            if weakness:
                return weakness
        if failed:
            return verdict, f"{failed[0].reason}: {failed[0].message}"
    known = [failure for failure in failures if failure.verdict is Verdict.KNOWN]
    if known:
        return Verdict.KNOWN, f"{known[0].reason}: {known[0].known}"
    return _weakness(outcomes, judged) or (Verdict.PASS, "")


def _weakness(outcomes: Sequence[Outcome], judged: Sequence[Refusals]) -> tuple[Verdict, str] | None:
    """Why nothing wrong was seen, where that is no evidence of being right."""
    if not outcomes:
        return Verdict.INCONCLUSIVE, "no case was run"
    if all(outcome.verdict is Verdict.KNOWN for outcome in outcomes):
        return Verdict.KNOWN, f"unsupported: {outcomes[0].note}"
    if all(outcome.refused for outcome in outcomes):
        return Verdict.UNSUPPORTED, f"every case was refused: {outcomes[0].note}"
    if not judged:
        notes = [outcome.note for outcome in outcomes if outcome.verdict is Verdict.INCONCLUSIVE]
        return Verdict.INCONCLUSIVE, f"no case could tell right from wrong: {notes[0]}"
    accepted = accepted_cheats(judged)
    if accepted:
        return Verdict.INCONCLUSIVE, f"no case refuses {', '.join(accepted)}; run more cases"
    return None


def _present(inputs: Mapping[str, Any], name: str) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = inputs[name]
    return array


def _bits(array: np.ndarray[Any, Any]) -> bytes:
    """Every byte of the buffer that an array lies in, poisoned cells included."""
    return buffer_of(array).tobytes()
