"""Fuzzing on a real local cluster of two processes: one is killed on the way, and nothing is lost."""

import os
import signal

import pytest

from oracle.cases import Case
from refsim.conformance import Capability, Verdict
from refsim.conformance.fuzz.campaign import Campaign, Row
from refsim.conformance.fuzz.cluster import OnDask, connected
from refsim.conformance.fuzz.evaluate import Task

MINE = """
import os
import numpy as np


def right(x):
    wide = x.astype(np.promote_types(x.dtype, np.float32))
    weights = np.exp(wide - wide.max(axis=-1, keepdims=True, initial=-np.inf))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(x.dtype)


def column_five(x):
    y = right(x)
    y[..., 5:6] *= x.dtype.type(1.5)
    return y


def deadly(x):
    os._exit(7)
"""
DTYPES = ("float16", "float32", "float64")


def rows(kernel):
    numerics = {"float16": "float32", "float32": "float32", "float64": "float64"}
    return [Row(Capability("softmax", kernel, dtype), numerics[dtype]) for dtype in DTYPES]


@pytest.fixture(scope="module")
def client():
    with connected(None, 2) as made:
        yield made


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    return lambda attribute: f"{tmp_path}/mine.py:{attribute}"


@pytest.mark.filterwarnings("ignore")
def test_a_killed_worker_loses_nothing(client, spec):
    workers = client.run(os.getpid)
    assert len(set(workers.values())) == 2
    killed = []

    def kill_once(campaign):
        if campaign.cases >= 10 and not killed:
            killed.append(next(iter(workers.values())))
            os.kill(killed[0], signal.SIGKILL)

    explored = rows("right")
    Campaign(
        explored, OnDask(client, spec("right"), "sim:sm_90", ["softmax"]), seed=1, per_round=20, tick=kill_once
    ).run()
    assert killed
    assert killed[0] not in client.run(os.getpid).values()
    for row in explored:
        assert row.result().verdict is Verdict.PASS
        assert row.judged == 20


@pytest.mark.filterwarnings("ignore")
def test_one_report_with_the_failures_that_one_process_finds(client, spec):
    remote, local = rows("column_five")[:2], rows("column_five")[:2]
    where = spec("column_five")
    Campaign(remote, OnDask(client, where, "sim:sm_90", ["softmax"]), seed=1, per_round=8).run()

    class InThisProcess:
        threads = 1

        def __call__(self, row, case, thorough):
            return Task(where, "sim:sm_90", ("softmax",), row, case.to_json(), thorough).run()

    Campaign(local, InThisProcess(), seed=1, per_round=8).run()
    for far, near in zip(remote, local):
        assert far.result().verdict is Verdict.FAIL
        assert far.result() == near.result()


@pytest.mark.filterwarnings("ignore")
def test_a_case_that_kills_every_worker_is_an_error(client, spec):
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 1))
    judge = OnDask(client, spec("deadly"), "sim:sm_90", ["softmax"])
    outcome = judge(Capability("softmax", "deadly", "float32"), Case("softmax", "float32", {"cols": 3}), False)
    assert outcome.verdict is Verdict.ERROR
    assert "the worker process died on this case" in outcome.failure.message
