"""The campaign's cases on Dask: cases are sent, verdicts come back, and a worker that dies loses nothing."""

from __future__ import annotations

import contextlib
import logging
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from multiprocessing import resource_tracker

from distributed import Client, Future, KilledWorker, LocalCluster

from oracle.cases import Case
from refsim.conformance.backends import Capability, UsageError
from refsim.conformance.fuzz.evaluate import Lost, Task
from refsim.conformance.runner import Outcome
from refsim.conformance.verdicts import Failure, Verdict

# Rounds in flight per worker thread: while one case is on its way, another runs.
IN_FLIGHT = 2
# Seconds within which a scheduler has to answer, and a worker to be there.
PATIENCE = 5.0
# How often it is asked whether there are workers, in seconds; when there are none twice, none will come.
DESERTED = 15.0


class OnDask:
    """Judges on the workers of a cluster, each of which loads the backend itself.

    The scheduler gives the cases of a worker that died to another one. A case on which several workers died, one after
    the other, is what killed them: its verdict is ERROR.
    """

    def __init__(self, client: Client, spec: str, device: str, operators: Sequence[str]) -> None:
        self.client = client
        self.spec, self.device, self.operators = spec, device, tuple(operators)
        self.threads = IN_FLIGHT * max(sum(client.nthreads().values()), 1)
        self.sent: set[Future] = set()
        self.stopped = False

    def __call__(self, row: Capability, case: Case, thorough: bool) -> Outcome:
        """The outcome of one case, once a worker has it."""
        task = Task(self.spec, self.device, self.operators, row, case.to_json(), thorough)
        future = self.client.submit(Task.run, task, pure=False)
        self.sent.add(future)
        try:
            if self.stopped:  # after what was sent was taken back
                raise Lost("stopped")
            return self._result(future)
        except KilledWorker as error:
            text = f"the worker process died on this case {error.allowed_failures + 1} times"
            return Outcome(Verdict.ERROR, failure=Failure(case, Verdict.ERROR, "exception", text))
        except (CancelledError, OSError) as error:  # the task itself raises neither
            raise Lost(f"the connection to the Dask scheduler at {self.client.scheduler.address} was lost") from error
        finally:
            self.sent.discard(future)

    def _result(self, future: Future) -> Outcome:
        """What a worker made of a case; Lost where none is left to do it."""
        deserted = False
        while True:
            try:
                outcome: Outcome = future.result(timeout=DESERTED)
                return outcome
            except TimeoutError:
                empty = not self.client.nthreads()
                if empty and deserted:
                    raise Lost(f"no worker is left at the Dask scheduler at {self.client.scheduler.address}") from None
                deserted = empty

    def stop(self) -> None:
        """Take back what was sent; those who wait for it get a CancelledError."""
        self.stopped = True
        self.client.cancel(list(self.sent), force=True)


@contextlib.contextmanager
def connected(address: str | None, workers: int) -> Iterator[Client]:
    """A client of the scheduler at ``address``, or of a cluster of ``workers`` processes on this machine."""
    for name in ("distributed", "distributed.client"):  # what goes wrong is told as an error of ours
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if address is not None:
        with _remote(address) as client:
            yield client
        return
    with _without_ctrl_c():
        cluster = LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        )
    with cluster, Client(cluster) as client:
        client.wait_for_workers(workers)
        yield client


def _remote(address: str) -> Client:
    """A client of a scheduler that answers and has workers. Raises UsageError where it does not."""
    try:
        client = Client(address, timeout=PATIENCE, name="refsim fuzz")
    except (OSError, ValueError) as error:  # TimeoutError among them
        reason = str(error) or type(error).__name__
        text = f"no Dask scheduler answers at {address}: {reason}; start one with: dask scheduler"
        raise UsageError(text) from error
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError as error:
        client.close()
        text = f"the Dask scheduler at {address} has no workers; start one with: dask worker {address}"
        raise UsageError(text) from error
    return client


@contextlib.contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Threads and processes that are started inside, and theirs, do not see Ctrl-C: this process ends them.

    A terminal sends it to all of them, and workers would die of it before they could be asked for anything.
    """
    resource_tracker.ensure_running()  # or else the first process that is started would start it, and clear the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
