"""Loops as machine code under every way to launch: processes, counters, schedules, checks, threads, sizes."""

import gc
import os
import threading
import time
import warnings

import numpy as np
import pytest
from numba import cuda, float32
from same_bits import loops_of, same_bits

import refsim
from refsim.engine.native import machine_code, running
from refsim.engine.options import launch_options

SIZE = 64


def fresh_product():
    """A kernel of its own, whose loops have not run: products of tiles, and the largest factor."""

    def product(a, b, out):
        tile_a = cuda.shared.array((8, 8), float32)
        tile_b = cuda.shared.array((8, 8), float32)
        row, column = cuda.grid(2)
        i, j = cuda.threadIdx.x, cuda.threadIdx.y
        total, largest = float32(0), float32(-1)
        for k in range(0, a.shape[1], 8):
            tile_a[i, j] = a[row, k + j]
            tile_b[i, j] = b[k + i, column]
            cuda.syncthreads()
            for m in range(8):
                total += tile_a[i, m] * tile_b[m, j]
                largest = max(largest, tile_a[i, m])
            cuda.syncthreads()
        out[row, column] = total - largest

    return product


def arguments(rows=SIZE, columns=SIZE):
    rng = np.random.default_rng(rows * columns)
    a, b = rng.normal(size=(rows, SIZE)).astype(np.float32), rng.normal(size=(SIZE, columns)).astype(np.float32)
    return a, b, np.zeros((rows, columns), np.float32)


def launched(kernel, values, native, **options):
    """The report, and a copy of what the last argument holds afterwards."""
    values = [value.copy() for value in values]
    rows, columns = values[-1].shape
    report = refsim.launch(kernel, (rows // 8, columns // 8), (8, 8), *values, native=native, **options)
    return report, values[-1]


def variants(kernel, values):
    return sum(len(loop.variants) for loop in loops_of(kernel, *values))


@pytest.mark.parametrize(
    "options",
    [
        {"lanes": "block"},
        {"lanes": "warp"},
        {"lanes": "thread"},
        {"schedule": "seed:1"},
        {"schedule": "seed:2", "lanes": "block"},
        {"checks": "none"},
        {"checks": "racecheck"},
        {"checks": "initcheck,memcheck"},
        {"witness": True},
        {"lanes_per_batch": 1},
        {"lanes_per_batch": 64 * 5},
        {"note_negative_indices": True},
        {"device": "sim:gfx942"},
        {"counters": True},
    ],
    ids=str,
)
def test_results_and_reports_are_those_of_lane_code(options):
    in_turns = options.keys() & {"lanes", "schedule"}
    kernel, values = fresh_product(), arguments(8, 16) if in_turns else arguments()
    expected, never = launched(kernel, values, "never", **options)
    report, always = launched(kernel, values, "always", **options)
    assert same_bits(always, never)
    assert not report.findings
    assert str(report) == str(expected)
    assert repr(report.counters) == repr(expected.counters)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("processes", [2, 3])
def test_what_processes_compiled_is_known_to_the_next_launch(processes):
    kernel, values = fresh_product(), arguments()
    _, never = launched(kernel, values, "never", processes=processes)
    assert variants(kernel, values) == 0
    for _ in range(2):
        report, always = launched(kernel, values, "always", processes=processes)
        assert (report.processes, report.findings) == (processes, [])
        assert same_bits(always, never)
        assert variants(kernel, values) >= 1
    known = variants(kernel, values)
    launched(kernel, values, "always", processes=processes)
    assert variants(kernel, values) == known


@pytest.mark.parametrize("value", ["sometimes", "", "Always", True, 1])
def test_an_unknown_mode_is_refused(value):
    with pytest.raises(ValueError, match=r"unknown native .*; give auto, never, always"):
        launched(fresh_product(), arguments(), value)
    with pytest.raises(ValueError, match="unknown native"), launch_options(native=value):
        pass


def test_launches_within_take_the_mode_that_was_chosen_for_all():
    kernel, values = fresh_product(), arguments()
    with launch_options(native="always"):
        launched(kernel, values, "never")
        assert variants(kernel, values) == 0
        launched(kernel, values, None)
    assert variants(kernel, values) == 1
    other = fresh_product()
    launched(other, values, None)
    assert variants(other, values) == 0


def test_a_loop_is_compiled_when_it_has_cost_enough():
    kernel, values = fresh_product(), arguments(32, 32)
    (loop,) = loops_of(kernel, *values)
    assert 0.01 < loop.compiling < 1
    _, never = launched(kernel, values, "never")
    assert not loop.costs
    seconds = []
    while len(seconds) < 500 and not loop.variants:
        _, auto = launched(kernel, values, "auto")
        assert same_bits(auto, never)
        (costs,) = loop.costs.values()
        seconds.append(costs.lane_seconds)
    assert seconds == sorted(seconds)
    assert seconds[-1] >= loop.compiling
    assert len(seconds) > 1
    _, auto = launched(kernel, values, "auto")
    assert same_bits(auto, never)


def test_each_number_of_blocks_has_code_of_its_own_up_to_a_limit():
    kernel = fresh_product()
    sizes = [(8, 8 * n) for n in range(1, running.MOST_VARIANTS + 5)]
    for count, size in enumerate(sizes, start=1):
        values = arguments(*size)
        report, always = launched(kernel, values, "always")
        assert same_bits(always, launched(kernel, values, "never")[1])
        assert not report.findings
        assert variants(kernel, values) == min(count, running.MOST_VARIANTS)


def test_launches_of_one_kernel_from_several_threads():
    kernel, together = fresh_product(), threading.Barrier(4)
    cases = [arguments(8 * n, 8 * n) for n in (1, 5, 5, 6)]
    expected = [launched(kernel, values, "never")[1] for values in cases]
    got = {}

    def work(number):
        together.wait()
        got[number] = [launched(kernel, cases[number], "always") for _ in range(3)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(cases))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, want in enumerate(expected):
        for report, result in got[number]:
            assert not report.findings
            assert same_bits(result, want)
    assert variants(kernel, cases[0]) >= 3


def test_code_that_is_no_longer_needed_leaves_other_code_alone():
    for _ in range(3):
        kernel, values = fresh_product(), arguments()
        _, always = launched(kernel, values, "always")
        assert same_bits(always, launched(kernel, values, "never")[1])
        del kernel
        gc.collect()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_waits_until_nobody_compiles(monkeypatch):
    begun = threading.Event()

    def slow(plan, layout):
        begun.set()
        time.sleep(0.3)

    monkeypatch.setattr(machine_code, "_compiled", slow)
    compiling = threading.Thread(target=machine_code.compiled, args=(None, None))
    compiling.start()
    begun.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python and of JAX, which warn of threads
        pid = os.fork()
    if not pid:
        os._exit(0 if machine_code._compiling.acquire(timeout=5) else 1)
    assert os.waitpid(pid, 0)[1] == 0
    compiling.join()
    assert not machine_code._compiling.locked()
