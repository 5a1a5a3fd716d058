"""One case, judged: in this process, or as a task that another process can run."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from oracle.cases import Case
from oracle.operator import find_operator
from oracle.relations import Relation, relations_of
from refsim.conformance.backends import Backend, Capability, load_backend
from refsim.conformance.backends.answers import numerics_of
from refsim.conformance.judge import Judge
from refsim.conformance.runner import REPEAT_EVERY, Outcome, Prepared, run_case


class Lost(RuntimeError):
    """Whoever judged is gone, and nothing can be judged any more; the message says who."""


class Evaluator(Protocol):
    """Judges cases; may be called from several threads."""

    threads: int

    def __call__(self, row: Capability, case: Case, thorough: bool) -> Outcome:
        """The outcome of one case. ``thorough`` runs it twice and tries every relation. May raise Lost."""

    def stop(self) -> None:
        """Let go of whoever waits for an outcome."""


class Here:
    """Judges in this process."""

    threads = 1

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def __call__(self, row: Capability, case: Case, thorough: bool) -> Outcome:
        """The outcome of one case."""
        return evaluate(self.backend, row, case, thorough)

    def stop(self) -> None:
        """Nobody waits."""


@dataclass(frozen=True)
class Task:
    """What another process needs to judge one case."""

    spec: str
    device: str
    operators: tuple[str, ...]
    row: Capability
    case: Mapping[str, Any]
    thorough: bool

    def run(self) -> Outcome:
        """The outcome, worked out in the process that this is called in."""
        backend = _loaded(self.spec, self.operators, self.device)
        with _one_at_a_time:
            return evaluate(backend, self.row, Case.from_json(self.case), self.thorough)


# Neither what is judged nor the capture of what it prints is made for several threads.
_one_at_a_time = threading.Lock()


@lru_cache
def _loaded(spec: str, operators: tuple[str, ...], device: str) -> Backend:
    return load_backend(spec, [find_operator(name) for name in operators], device)


def evaluate(backend: Backend, row: Capability, case: Case, thorough: bool) -> Outcome:
    """Run a case and judge it. What is not run on every case (a second run, a relation) is chosen by its seed."""
    record = find_operator(case.operator)
    numerics = numerics_of(backend, row)
    params = record.signature.complete(case.params)
    judges = tuple(Judge(expected) for expected in record.expect(case.inputs(), params, numerics))
    item = Prepared(case, params, numerics, judges, {})
    repeat = thorough or case.seed % REPEAT_EVERY == 0
    return run_case(backend, row, item, repeat, _relations(case, thorough))


def _relations(case: Case, thorough: bool) -> Sequence[Relation]:
    relations = relations_of(case.operator)
    if thorough or not relations:
        return relations
    chosen, turn = divmod(case.seed, REPEAT_EVERY)
    return [relations[chosen % len(relations)]] if turn == 1 else []
