"""Fuzzing with what is elsewhere: a Dask scheduler and workers as processes of their own, and Redis servers."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from click.testing import CliRunner

from oracle.operator import find_operator
from refsim.cli import main
from refsim.conformance import Capability, FunctionBackend, UsageError, Verdict
from refsim.conformance.fuzz import cluster
from refsim.conformance.fuzz.campaign import Campaign, Row
from refsim.conformance.fuzz.cluster import OnDask, connected
from refsim.conformance.fuzz.databases import database
from refsim.conformance.fuzz.evaluate import Here

MINE = """
import numpy as np


def softmax(x):
    wide = x.astype(np.promote_types(x.dtype, np.float32))
    weights = np.exp(wide - wide.max(axis=-1, keepdims=True, initial=-np.inf))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(x.dtype)
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def started(*words):
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, "-m", "dask", *words, "--no-dashboard"], **quiet)


def ended(processes):
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def scheduler():
    """Address and process of a scheduler without workers."""
    port = free_port()
    process = started("scheduler", "--host", "127.0.0.1", "--port", str(port))
    until = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
    yield f"tcp://127.0.0.1:{port}", process
    ended([process])


@pytest.fixture
def workers(scheduler, monkeypatch):
    """Two workers of it, which may take their time to come."""
    monkeypatch.setattr(cluster, "PATIENCE", 60.0)
    made = [started("worker", scheduler[0], "--no-nanny", "--nthreads", "1") for _ in range(2)]
    yield made
    ended(made)


@pytest.fixture
def rows():
    return [Row(Capability("softmax", "softmax", dtype), "float32") for dtype in ("float16", "float32")]


def explored(rows, address, tmp_path, tick, per_round=20):
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    with connected(address, 1) as client:
        client.wait_for_workers(2, timeout=60)
        judge = OnDask(client, f"{tmp_path}/mine.py:softmax", "sim:sm_90", ["softmax"])
        campaign = Campaign(rows, judge, seed=1, per_round=per_round, tick=tick)
        try:
            campaign.run()
        except KeyboardInterrupt:
            assert campaign.lost
    return campaign


def test_a_scheduler_that_does_not_answer_is_wrong_usage(monkeypatch, tmp_path):
    monkeypatch.setattr(cluster, "PATIENCE", 0.3)
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    nobody = f"tcp://127.0.0.1:{free_port()}"
    for address, words in (
        (nobody, "Timed out"),
        ("localhost", "missing port"),
        ("foo://x:1", "unknown address scheme"),
    ):
        options = ["--backend", f"{tmp_path}/mine.py:softmax", "--dask", address, "--database", ""]
        result = CliRunner().invoke(main, ["fuzz", "softmax", *options])
        output = " ".join(result.output.split())
        assert result.exit_code == 2, output
        assert f"no Dask scheduler answers at {address}: " in output
        assert words in output
        assert "start one with: dask scheduler" in output


def test_a_scheduler_without_workers_is_wrong_usage(monkeypatch, scheduler):
    monkeypatch.setattr(cluster, "PATIENCE", 1.0)
    with (
        pytest.raises(UsageError, match="has no workers; start one with: dask worker tcp://127"),
        connected(scheduler[0], 1),
    ):
        pass


@pytest.mark.filterwarnings("ignore")
def test_one_of_two_remote_workers_is_killed_and_nothing_is_lost(scheduler, workers, rows, tmp_path):
    killed = []

    def kill_one(campaign):
        if campaign.cases >= 10 and not killed:
            killed.append(workers[0].pid)
            os.kill(workers[0].pid, signal.SIGKILL)

    campaign = explored(rows, scheduler[0], tmp_path, kill_one)
    assert killed
    assert not campaign.lost
    for row in rows:
        assert (row.result().verdict, row.judged) == (Verdict.PASS, 20)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "what", ["workers", "scheduler"]
)  # in this order, and at the end: no test has a scheduler after
def test_where_all_are_gone_what_was_judged_stays(monkeypatch, scheduler, workers, rows, tmp_path, what):
    monkeypatch.setattr(cluster, "DESERTED", 0.5)
    killed = []

    def kill(campaign):
        if campaign.cases >= 5 and not killed:
            killed.extend(workers if what == "workers" else [scheduler[1]])
            ended(killed)

    campaign = explored(rows, scheduler[0], tmp_path, kill, per_round=2000)
    assert ("no worker is left" if what == "workers" else "was lost") in campaign.lost
    assert 5 <= campaign.cases < 2000
    assert {row.result().verdict for row in rows if row.judged} == {Verdict.PASS}


# ---- Redis


@contextmanager
def redis_server(port):
    """The real one."""
    process = subprocess.Popen(
        ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""], stdout=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < until
                time.sleep(0.05)
        yield lambda: ended([process])
    finally:
        ended([process])


@contextmanager
def redis_in_python(port):
    """One that speaks its protocol over TCP."""
    fakeredis = pytest.importorskip("fakeredis")
    server = fakeredis.TcpFakeServer(("127.0.0.1", port))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield None
    finally:
        server.shutdown()
        server.server_close()


SERVERS = {"redis-server": redis_server, "fakeredis": redis_in_python}


@pytest.fixture(params=SERVERS)
def redis(request):
    """A URL, and what ends the server."""
    pytest.importorskip("redis")
    if request.param == "redis-server" and shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed: apt-get install redis-server")
    port = free_port()
    with SERVERS[request.param](port) as end:
        yield f"redis://127.0.0.1:{port}/0", end


def rare(x):
    """Wrong where a row has more than 60 elements."""
    wide = x.astype(np.promote_types(x.dtype, np.float32))
    with np.errstate(all="ignore"):
        weights = np.exp(wide - wide.max(axis=-1, keepdims=True, initial=-np.inf))
        y = (weights / weights.sum(axis=-1, keepdims=True)).astype(x.dtype)
    return y + 1 if x.shape[-1] > 60 else y


def verdict(examples, seed, per_round, tick=None):
    row = Row(Capability("softmax", "rare", "float32"), "float32")
    judge = Here(FunctionBackend(rare, find_operator("softmax"), "mine"))
    Campaign([row], judge, seed=seed, per_round=per_round, database=examples, tick=tick).run()
    return row.result().verdict


def test_redis_brings_a_failure_back_on_another_machine(redis):
    url, _ = redis
    assert verdict(database(url), 3, 100) is Verdict.FAIL
    assert verdict(None, 77, 2) is Verdict.PASS
    assert verdict(database(url), 77, 2) is Verdict.FAIL


def test_a_redis_server_that_goes_away_costs_its_examples_only(redis, capsys):
    url, end = redis
    if end is None:
        pytest.skip("ends with its process")
    ends = [end]
    assert verdict(
        database(url), 3, 100, tick=lambda campaign: ends.pop()() if campaign.cases > 5 and ends else None
    ) is (Verdict.FAIL)
    assert not ends
    told = capsys.readouterr().err
    assert told.count(f"database {url} was lost, and keeps no examples any more") == 1


@pytest.mark.parametrize("where", ["redis://:secret@127.0.0.1:{port}", "redis://127.0.0.1:port/0"])
def test_a_redis_server_that_does_not_answer_is_wrong_usage(where):
    pytest.importorskip("redis")
    with pytest.raises(UsageError, match="cannot be used: ") as error:
        database(where.format(port=free_port()))
    assert "secret" not in str(error.value)


def test_a_folder_that_cannot_be_written_to_is_wrong_usage(tmp_path):
    (tmp_path / "file").touch()
    for where, words in (
        (tmp_path / "file", "is not a folder"),
        (tmp_path / "file" / "x", "nothing can be written there"),
    ):
        with pytest.raises(UsageError, match=words):
            database(str(where))
