"""A campaign: rounds of cases over rows (operator × kernel × dtype) until time is over, each kind of failure once."""

from __future__ import annotations

import contextlib
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings, target
from hypothesis.database import ExampleDatabase
from hypothesis.errors import Flaky

from oracle.cases import Case
from refsim.conformance.backends import Capability
from refsim.conformance.fuzz.databases import Shelf
from refsim.conformance.fuzz.evaluate import Evaluator, Lost
from refsim.conformance.fuzz.shrink import complexity, shrink
from refsim.conformance.fuzz.strategies import cases
from refsim.conformance.known import KnownDeviations
from refsim.conformance.runner import GRAVITY, Outcome, excused
from refsim.conformance.verdicts import Failure, Result, Verdict

# What makes two failures of a row the same: verdict, reason, output and rule.
Kind: TypeAlias = tuple[str, ...]
# A round of a row goes on after a failure, for others, up to so many kinds.
MOST_KINDS = 8
# Cases that hypothesis may run to make one failure smaller.
MOST_SHRINKS = 100
# The two halves of a round: the first draws at random, the second steers toward the bound.
PHASES = {
    False: (Phase.reuse, Phase.generate, Phase.shrink),
    True: (Phase.generate, Phase.target, Phase.shrink),
}


@dataclass
class Row:
    """What is known of one operator by one kernel in one dtype; ``margin`` is the largest of a case that passed."""

    capability: Capability
    numerics: str
    judged: int = 0
    refused: int = 0
    inconclusive: int = 0
    passed: int = 0
    margin: float = 0.0
    worst: float = 0.0
    note: str = ""
    found: dict[Kind, Failure] = field(default_factory=dict)
    known: dict[str, Failure] = field(default_factory=dict)

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        if outcome.refused:
            self.refused += 1
        else:
            self.judged += 1
        self.inconclusive += outcome.verdict is Verdict.INCONCLUSIVE
        self.passed += outcome.verdict is Verdict.PASS
        margin = outcome.margin or 0.0
        self.worst = max(self.worst, margin)
        if outcome.failure is None:
            self.margin = max(self.margin, margin)
        elif outcome.failure.known:
            self.known.setdefault(outcome.failure.known, outcome.failure)
        self.note = self.note or outcome.note

    def result(self) -> Result:
        """The row of the report."""
        failures = tuple(self.found.values())
        if failures:
            worst = max(failures, key=lambda failure: GRAVITY.index(failure.verdict))
            verdict, reason = worst.verdict, f"{worst.reason}: {worst.message}"
        elif self.known:
            first = next(iter(self.known.values()))
            verdict, reason = Verdict.KNOWN, f"{first.reason}: {first.known}"
        elif self.passed:
            verdict, reason = Verdict.PASS, ""
        elif self.judged:
            verdict, reason = Verdict.INCONCLUSIVE, f"no case could tell right from wrong: {self.note}"
        else:
            refused = f"every case was refused: {self.note}" if self.refused else "no case was run"
            verdict, reason = Verdict.UNSUPPORTED, refused
        return Result(
            operator=self.capability.operator,
            kernel=self.capability.kernel,
            dtype=self.capability.dtype,
            numerics=self.numerics,
            cases=self.judged,
            refused=self.refused,
            inconclusive=self.inconclusive,
            worst_margin=self.worst if self.judged else None,
            verdict=verdict,
            reason=reason,
            failures=(*failures, *self.known.values()),
        )


class _Failing(Exception):
    """What a search looks for was found."""


class Campaign:
    """Explores rows in rounds.

    Parameters
    ----------
    rows : sequence of Row
        What is explored.
    evaluator : Evaluator
        Who judges a case; as many rounds go on at once as it has threads.
    seed : int
        Seed of all rounds.
    per_round : int
        Cases that hypothesis draws for a row in a round.
    seconds : float, optional
        How long rounds go on; without, there is one.
    database : hypothesis.database.ExampleDatabase, optional
        Where hypothesis keeps failing cases and those near the bound.
    tick : function, optional
        Called after each case with the campaign.
    known : KnownDeviations, optional
        What is known not to be right, and so is not searched for.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        evaluator: Evaluator,
        *,
        seed: int,
        per_round: int,
        seconds: float | None = None,
        database: ExampleDatabase | None = None,
        tick: Callable[[Campaign], None] | None = None,
        known: KnownDeviations | None = None,
    ) -> None:
        self.rows = rows
        self.evaluator = evaluator
        self.seed = seed
        self.per_round = per_round
        self.seconds = seconds
        self.database = database
        self.tick = tick
        self.known = known or KnownDeviations(())
        for row in rows:
            self.known.ask(row.capability.operator, [row.capability.dtype])
        self.lock = threading.Lock()
        self.started = time.monotonic()
        self.stopped = False
        self.waiting = False
        self.lost = ""

    @property
    def over(self) -> bool:
        """Whether no new case is to be tried."""
        return self.stopped or (self.seconds is not None and time.monotonic() - self.started > self.seconds)

    @property
    def cases(self) -> int:
        """Cases so far."""
        return sum(row.judged + row.refused for row in self.rows)

    def status(self) -> str:
        """One line: cases, cases per second, operators covered, failures, closest margin."""
        elapsed = max(time.monotonic() - self.started, 1e-9)
        covered = {row.capability.operator for row in self.rows if row.judged}
        operators = {row.capability.operator for row in self.rows}
        closest = max(self.rows, key=lambda row: row.margin)
        failures = sum(len(row.found) for row in self.rows)
        return (
            f"{self.cases} cases, {self.cases / elapsed:.0f} per second, {len(covered)} of {len(operators)} operators, "
            f"{failures} failures, closest margin {closest.margin:.3g} ({closest.capability.operator} "
            f"{closest.capability.dtype})"
        )

    def interrupt(self) -> None:
        """Stop, as a handler of Ctrl-C. What is being written down is finished first; what runs elsewhere is not.

        Raises
        ------
        KeyboardInterrupt
            The judged code runs, or it is the second time.
        """
        again, self.stopped = self.stopped, True
        if self.waiting or again:
            raise KeyboardInterrupt

    def run(self) -> None:
        """All rounds. Ctrl-C stops them; what was found stays."""
        self.started = time.monotonic()
        tasks = self._tasks()
        if self.evaluator.threads == 1:  # Ctrl-C then ends a case that does not end by itself
            self._lane(tasks)
            return
        with ThreadPoolExecutor(self.evaluator.threads) as pool:
            lanes = [pool.submit(self._lane, tasks) for _ in range(self.evaluator.threads)]
            try:
                with self._interruptible():
                    for lane in lanes:
                        lane.result()
            except BaseException:
                self.stopped = True
                self.evaluator.stop()
                raise

    def outcome(self, row: Row, case: Case, thorough: bool) -> Outcome:
        """Judge a case and count it; what Ctrl-C has met is no evidence."""
        if self.stopped:
            raise KeyboardInterrupt
        try:
            with self._interruptible() if self.evaluator.threads == 1 else contextlib.nullcontext():
                outcome = self.evaluator(row.capability, case, thorough)
        except Lost as error:
            if not self.stopped:
                self.lost, self.stopped = str(error), True
        if self.stopped:
            raise KeyboardInterrupt
        with self.lock:
            outcome = excused(outcome, row.capability, case, self.known)
            row.add(outcome)
        if self.tick:
            self.tick(self)
        return outcome

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Inside, the main thread only waits, or runs what is judged."""
        self.waiting = True
        try:
            if self.stopped:
                raise KeyboardInterrupt
            yield
        finally:
            self.waiting = False

    def _tasks(self) -> Iterator[tuple[Row, int]]:
        rounds = [0] if self.seconds is None else count()
        for number in rounds:
            for row in self.rows:
                if self.over:
                    return
                yield row, number

    def _lane(self, tasks: Iterator[tuple[Row, int]]) -> None:
        while not self.stopped:
            with self.lock:
                task = next(tasks, None)
            if task is None:
                return
            row, number = task
            for steered in PHASES:
                for part in range(MOST_KINDS):
                    if not self._explore(row, f"{number} {part}", steered):
                        break

    def _explore(self, row: Row, part: str, steered: bool) -> bool:
        """A part of a round, up to the first failure of a kind that is new, which is shrunk; whether there was one."""
        capability = row.capability
        label = f"{capability.operator} {capability.kernel} {capability.dtype}"
        search = _Search(self, row, steered)
        try:
            self._searching(search, label, f"{self.seed} {part} {steered} {label}")()
        except (_Failing, Flaky):
            # Flaky: it failed once and not again. That is a finding too, and the smallest that failed is kept.
            search.simplify()
        finally:  # Ctrl-C too: a failure that is not yet small is one
            search.keep()
        return search.best is not None

    def _searching(self, search: _Search, label: str, seed_text: str) -> Callable[[], None]:
        """A hypothesis test that fails on what the search looks for."""

        def body(case: Case) -> None:
            if search.interesting(case):
                raise _Failing

        kept = None if self.database is None else Shelf(self.database, label)
        chosen = settings(
            max_examples=max(1, (self.per_round + (not search.steered)) // 2),
            database=kept,
            deadline=None,
            phases=PHASES[search.steered],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
        )
        drawn = cases(search.row.capability.operator, search.row.capability.dtype)
        # In this order: a seed takes the database away from the settings that it is put upon.
        test: Callable[[], None] = chosen(seed(zlib.crc32(seed_text.encode()))(given(drawn)(body)))
        return test


class _Search:
    """What one round of a row has found."""

    def __init__(self, campaign: Campaign, row: Row, steered: bool) -> None:
        self.campaign = campaign
        self.row = row
        self.steered = steered
        self.kind: Kind | None = None
        self.best: tuple[Case, Failure] | None = None
        self.seen: dict[str, bool] = {}

    def interesting(self, case: Case) -> bool:
        """Whether a case fails in the way that is looked for: any new one, until one was found."""
        if self.kind is not None:
            return self._again(case)
        if self.campaign.over and not self.campaign.stopped:
            return False
        outcome = self._outcome(case, thorough=False)
        if outcome.failure is None:
            if self.steered and outcome.verdict is Verdict.PASS:
                target(float(outcome.margin or 0.0), label="margin")
            return False
        failed = self._fails(case, outcome.failure)
        self.seen[str(case)] = failed
        return failed

    def simplify(self) -> None:
        """Shrink further what hypothesis left."""
        if self.best is not None:
            self.seen.clear()
            shrink(self.best[0], self._again, MOST_SHRINKS)

    def keep(self) -> None:
        """Write down the failure, if there is one."""
        if self.kind is None or self.best is None:
            return
        case, failure = self.best
        with self.campaign.lock:
            known = self.row.found.get(self.kind)
            if known is None or complexity(case) < complexity(known.case):
                self.row.found[self.kind] = failure

    def _again(self, case: Case) -> bool:
        """Whether a case fails as the first did; each is run once, and not more than ``MOST_SHRINKS`` are."""
        label = str(case)
        if label not in self.seen:
            if len(self.seen) > MOST_SHRINKS:
                return False
            failure = self._outcome(case, thorough=True).failure
            self.seen[label] = failure is not None and self._fails(case, failure)
        return self.seen[label]

    def _fails(self, case: Case, failure: Failure) -> bool:
        if failure.known:
            return False
        kind = kind_of(failure)
        if self.kind is None:
            with self.campaign.lock:
                if kind in self.row.found:
                    return False
            self.kind = kind
        if kind != self.kind:
            return False
        if self.best is None or complexity(case) < complexity(self.best[0]):
            self.best = case, failure
        return True

    def _outcome(self, case: Case, thorough: bool) -> Outcome:
        return self.campaign.outcome(self.row, case, thorough)


def kind_of(failure: Failure) -> Kind:
    """What makes failures the same."""
    element: Any = failure.element
    exception = failure.message.partition(":")[0] if failure.reason == "exception" else ""
    return (
        failure.verdict.value,
        failure.reason,
        element.output if element else "",
        element.rule if element else "",
        exception,
    )
