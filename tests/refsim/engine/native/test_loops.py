"""Loops that run as machine code: one thing at a time."""

import math

import numpy as np
import pytest
from numba import cuda, float32, float64
from same_bits import loops_of, same_bits

import refsim
from refsim.engine import run
from refsim.engine.native import calls, running

BLOCKS, THREADS = 33, 32


def launched(kernel, *arguments, grid=BLOCKS, block=THREADS, **options):
    """What a kernel leaves in its last argument, as lane code and as machine code, which must have run."""
    never, always = (np.array(arguments[-1]) for _ in range(2))
    reports = [
        refsim.launch(kernel, grid, block, *arguments[:-1], out, native=native, **options)
        for native, out in (("never", never), ("always", always))
    ]
    assert all(loop.variants for loop in loops_of(kernel, *arguments))
    assert not reports[0].findings
    assert not reports[1].findings
    return never, always


def rooted(x, out):
    cells = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    cells[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    total = float32(0)
    for k in range(32):
        total = cuda.fma(math.sqrt(cells[k]), total, abs(cells[k] - total))
    out[cuda.grid(1)] = total


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_the_processor_on_vectors(dtype):
    x = np.random.default_rng(0).random(BLOCKS * THREADS).astype(dtype)
    never, always = launched(rooted, x, np.zeros(x.size))
    assert same_bits(always, never)


def two_types(x, out):
    cells = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    cells[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    least, total = x[0], float64(x[1])
    for k in range(32):
        least = min(least, cells[k])
        total += cells[k]
    out[cuda.grid(1), 0] = least
    out[cuda.grid(1), 1] = total


def test_states_of_both_types_keep_what_they_held_before():
    x = np.random.default_rng(1).random(BLOCKS * THREADS).astype(np.float32) + np.float32(1)
    for _ in range(5):
        never, always = launched(two_types, x, np.zeros((x.size, 2)))
        assert same_bits(always, never)


def products(a, b, out):
    cells = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    cells[t] = a[i]
    cuda.syncthreads()
    total, decayed = float32(0), float32(1)
    for k in range(32):
        total += cells[k] * b[i % 7, k]
        decayed = math.exp(-abs(decayed * cells[k]))
    out[i] = total - decayed


@pytest.mark.parametrize("most_at_once", [1, 1e5, 2e9])
@pytest.mark.parametrize("threads", [0, 1, 3])
def test_trips_and_rows_in_parts(monkeypatch, most_at_once, threads):
    class Fewer(calls.Thread):
        started = 0

        def start(self):
            if Fewer.started == threads:
                raise RuntimeError("can't start new thread")
            Fewer.started += 1
            super().start()

    monkeypatch.setattr(calls, "MOST_AT_ONCE", most_at_once)
    monkeypatch.setattr(calls, "WORTH_A_CORE", 1)
    monkeypatch.setattr(calls, "Thread", Fewer)
    monkeypatch.setattr(run, "usable_cores", lambda: 4)
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=BLOCKS * THREADS).astype(np.float32), rng.normal(size=(7, 32)).astype(np.float32)
    never, always = launched(products, a, b, np.zeros_like(a))
    assert same_bits(always, never)
    assert Fewer.started == threads


def strided(x, out, step):
    t = cuda.threadIdx.x
    total = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i]
    for i in range(x.size - 1 - t, t, step):
        total = total * float32(0.5) + x[i]
    for i in range(0, x.size, 1 - step):
        total = total * float32(0.5) + x[i] * float32(t)
    out[cuda.grid(1)] = total


@pytest.mark.parametrize("size", [BLOCKS * THREADS * 3, BLOCKS * THREADS * 3 + 17, 40])
@pytest.mark.parametrize("step", [-1, -7])
def test_steps_that_are_known_at_the_launch(size, step):
    x = np.random.default_rng(3).normal(size=size).astype(np.float32)
    out = {native: np.zeros(BLOCKS * THREADS, np.float32) for native in ("never", "always")}
    for native, results in out.items():
        assert not refsim.launch(strided, BLOCKS, THREADS, x, results, step, native=native).findings
    assert same_bits(*out.values())
    assert all(loop.variants for loop in loops_of(strided, x, out["never"], step)[size == 40 :])


@pytest.mark.parametrize("step", [0, 1])
def test_steps_that_lead_nowhere_are_left_to_lane_code(step):
    x = np.ones(BLOCKS * THREADS, np.float32)
    out = {native: np.zeros_like(x) for native in ("never", "always")}
    for native, results in out.items():
        refsim.launch(downwards, BLOCKS, THREADS, x, results, step, native=native)
    assert same_bits(*out.values())


def downwards(x, out, step):
    total = float32(1)
    for i in range(5, 0, step):
        total += x[i]
    out[cuda.grid(1)] = total


def slopes(x, out):
    t = cuda.threadIdx.x
    total = float32(0)
    for k in range(x.size // THREADS):
        total += x[k * t]
    out[cuda.grid(1)] = total


def test_a_loop_that_lane_code_must_run_is_seldom_asked_again(monkeypatch):
    monkeypatch.setattr(running, "WORTH_RUNNING", 1)
    monkeypatch.setattr(running, "WORTH_COMPILING", 0)
    monkeypatch.setattr(running, "WORTH_OPERATION", 0)
    asked = []
    run_loop = running.NativeLoop._run
    monkeypatch.setattr(running.NativeLoop, "_run", lambda *given: asked.append(given) or run_loop(*given))
    x, out = np.ones(THREADS * 4, np.float32), np.zeros(BLOCKS * THREADS, np.float32)
    for _ in range(200):
        refsim.launch(slopes, BLOCKS, THREADS, x, out)
    assert len(asked) == running.MOST_REFUSALS + 200 // running.ASKED_AGAIN
