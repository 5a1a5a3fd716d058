"""The campaign's cases on Dask: cases are sent, verdicts come back, and a worker that dies loses nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from distributed import Client, KilledWorker, LocalCluster

from oracle.cases import Case
from refsim.conformance.backends import Capability
from refsim.conformance.fuzz.evaluate import Task
from refsim.conformance.runner import Outcome
from refsim.conformance.verdicts import Failure, Verdict

# Rounds in flight per worker thread: while one case is on its way, another runs.
IN_FLIGHT = 2


class OnDask:
    """Judges on the workers of a cluster, each of which loads the backend itself.

    The scheduler gives the cases of a worker that died to another one. A case on which several workers died, one after
    the other, is what killed them: its verdict is ERROR.
    """

    def __init__(self, client: Client, spec: str, device: str, operators: Sequence[str]) -> None:
        self.client = client
        self.spec, self.device, self.operators = spec, device, tuple(operators)
        self.threads = IN_FLIGHT * max(sum(client.nthreads().values()), 1)

    def __call__(self, row: Capability, case: Case, thorough: bool) -> Outcome:
        """The outcome of one case, once a worker has it."""
        task = Task(self.spec, self.device, self.operators, row, case.to_json(), thorough)
        try:
            outcome: Outcome = self.client.submit(Task.run, task, pure=False).result()
        except KilledWorker as error:
            text = f"the worker process died on this case {error.allowed_failures + 1} times"
            return Outcome(Verdict.ERROR, failure=Failure(case, Verdict.ERROR, "exception", text))
        return outcome


@contextlib.contextmanager
def connected(address: str | None, workers: int) -> Iterator[Client]:
    """A client of the scheduler at ``address``, or of a cluster of ``workers`` processes on this machine."""
    if address is not None:
        with Client(address) as client:
            yield client
        return
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    )
    with cluster, Client(cluster) as client:
        client.wait_for_workers(workers)
        yield client
