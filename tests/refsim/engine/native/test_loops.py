"""Loops that run as machine code: one thing at a time."""

import math
import subprocess
import sys
import time

import numpy as np
import pytest
from numba import cuda, float32, float64
from same_bits import loops_of, same_bits

import refsim
from refsim.engine import run
from refsim.engine.native import calls, machine_code, running

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


@pytest.mark.parametrize(("first", "seconds"), [(1, 0.0), (1e5, 1e-4), (1e7, 0.05)])
@pytest.mark.parametrize("threads", [0, 1, 3])
def test_trips_and_rows_in_parts(monkeypatch, first, seconds, threads):
    started = []

    def start(*given):
        if len(started) % 3 >= threads:
            started.append(None)
            raise RuntimeError("can't start new thread")
        started.append(given)
        return start_new_thread(*given)

    start_new_thread = calls._thread.start_new_thread
    monkeypatch.setattr(calls, "FIRST_PART", first)
    monkeypatch.setattr(calls, "PART_SECONDS", seconds)
    monkeypatch.setattr(calls, "WORTH_A_CORE", 1)
    monkeypatch.setattr(calls._thread, "start_new_thread", start)
    monkeypatch.setattr(run, "usable_cores", lambda: 4)
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=BLOCKS * THREADS).astype(np.float32), rng.normal(size=(7, 32)).astype(np.float32)
    never, always = launched(products, a, b, np.zeros_like(a))
    assert same_bits(always, never)
    assert any(started) == (threads > 0)


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


def test_a_loop_that_lane_code_must_run_is_left_to_it(monkeypatch):
    asked = []
    run_loop = running.NativeLoop._run
    monkeypatch.setattr(running.NativeLoop, "_run", lambda *given: asked.append(given) or run_loop(*given))
    x, out = np.ones(THREADS * 4, np.float32), np.zeros(BLOCKS * THREADS, np.float32)
    (loop,) = loops_of(slopes, x, out)
    loop.compiling = 0.0
    for _ in range(2 * running.MOST_REFUSALS):
        refsim.launch(slopes, BLOCKS, THREADS, x, out)
    assert len(asked) == running.MOST_REFUSALS


def short(x, out):
    total = float32(0)
    for k in range(2):
        total += x[k]
    out[cuda.grid(1)] = total * cuda.threadIdx.x


def test_a_loop_that_is_slower_as_machine_code_is_left_to_lane_code(monkeypatch):
    x, out = np.ones(4, np.float32), np.zeros(BLOCKS * THREADS, np.float32)
    (loop,) = loops_of(short, x, out)
    loop.compiling = 1e-9
    run_loop = running.NativeLoop._run
    monkeypatch.setattr(running.NativeLoop, "_run", lambda *given: time.sleep(0.01) or run_loop(*given))
    for _ in range(running.ENOUGH + 6):
        refsim.launch(short, BLOCKS, THREADS, x, out)
    (costs,) = loop.costs.values()
    assert costs.left
    assert costs.native_runs == running.ENOUGH


@pytest.mark.parametrize("error", [ImportError("no llvmlite"), OSError("no libllvmlite.so"), MemoryError()])
def test_without_a_compiler_launches_run_as_lane_code(monkeypatch, error):
    x, out = np.ones(4, np.float32), np.zeros(BLOCKS * THREADS, np.float32)
    loops_of(short, x, out)[0].variants.clear()

    def compiled(*_):
        raise error

    monkeypatch.setattr(machine_code, "compiled", compiled)
    (loop,) = loops_of(short, x, out)
    loop.compiling, loop.costs = 0.0, {}
    for _ in range(4):
        out[:] = 0
        refsim.launch(short, BLOCKS, THREADS, x, out)
        np.testing.assert_array_equal(out, np.tile(2 * np.arange(THREADS), BLOCKS))
    assert not loop.variants


def test_ctrl_c_leaves_no_thread_that_writes_to_memory_of_others(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    interrupts, changed = map(int, done.stdout.split())
    assert interrupts > 3
    assert changed == 0


INTERRUPTED = """
import gc, random, signal, time
import numpy as np
import refsim
from numba import cuda

@cuda.jit
def decay(x, out, n):
    i = cuda.grid(1)
    total = x[i % 64] * i
    for j in range(n):
        total = total * 0.5 + x[j]
    out[i] = total

x, out = np.random.default_rng(0).random(6000), np.zeros(8192 * 4)
refsim.launch(decay, 8192, 4, x, out, 6000, native="always")
start = time.time()
refsim.launch(decay, 8192, 4, x, out, 6000, native="always")
taken = time.time() - start
signal.signal(signal.SIGALRM, signal.default_int_handler)
interrupts = changed = 0
end = time.time() + 3
while time.time() < end:
    try:
        signal.setitimer(signal.ITIMER_REAL, random.random() * taken)
        refsim.launch(decay, 8192, 4, x, out, 6000, native="always")
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupts += 1
        gc.collect()
        others = [np.ones(60000) for _ in range(4)]
        time.sleep(0.02)
        changed += sum(int((other != 1).sum()) for other in others)
print(interrupts, changed)
"""
