"""Blocks spread over processes: results and findings of one process, and nothing left behind."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from numba import cuda, float32

import refsim
from refsim.engine import launch as engine

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def matmul(a, b, out):
    tile_a = cuda.shared.array((8, 8), float32)
    tile_b = cuda.shared.array((8, 8), float32)
    row, column = cuda.grid(2)
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for k in range(0, a.shape[1], 8):
        tile_a[i, j] = a[row, k + j] if row < a.shape[0] and k + j < a.shape[1] else float32(0)
        tile_b[i, j] = b[k + i, column] if k + i < b.shape[0] and column < b.shape[1] else float32(0)
        cuda.syncthreads()
        for m in range(8):
            total += tile_a[i, m] * tile_b[m, j]
        cuda.syncthreads()
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = total


@pytest.mark.parametrize("processes", [2, 3])
@pytest.mark.parametrize("checks", ["all", "none"])
@pytest.mark.parametrize("size", [64, 61])
def test_a_product_is_that_of_one_process(size, checks, processes):
    random = np.random.default_rng(1)
    a, b = random.random((size, size), np.float32), random.random((size, size), np.float32)
    one, many = np.zeros_like(a), np.zeros_like(a)
    blocks = -(-size // 8)
    refsim.launch(matmul, (blocks, blocks), (8, 8), a, b, one, checks=checks)
    report = refsim.launch(matmul, (blocks, blocks), (8, 8), a, b, many, checks=checks, processes=processes)
    assert not report.findings
    assert (report.processes, report.why_one_process) == (processes, "")
    np.testing.assert_array_equal(many.view(np.uint32), one.view(np.uint32))
    np.testing.assert_allclose(many, a.astype(np.float64) @ b, rtol=1e-5)


def in_place(x, y):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        if i % 3 != 1:
            x[i] = 2 * x[i] + y[i]


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.float64, np.complex64])
def test_scattered_writes_of_views_come_together(dtype):
    backing = np.arange(4000).astype(dtype)
    x, y = backing[5::3], np.ones(5000, dtype)
    expected = backing.copy()
    part = expected[5::3]
    chosen = np.arange(part.size) % 3 != 1
    part[chosen] = 2 * part[chosen] + 1
    report = refsim.launch(in_place, 8, 64, x, y, processes=2)
    assert not report.findings
    assert report.processes == 2
    np.testing.assert_array_equal(backing, expected)


def halves(out):
    out[cuda.grid(1)] = 1


def sums(x, out):
    out[cuda.grid(1)] = x[cuda.grid(1)] + x[0]


def test_what_processes_wrote_is_initialised_for_the_next_launch():
    x, out = refsim.empty(256, np.float32), np.zeros(256, np.float32)
    assert refsim.launch(halves, 4, 64, x, processes=2).processes == 2
    assert refsim.launch(sums, 4, 64, x, out, processes=2).ok
    np.testing.assert_array_equal(out, np.full(256, 2))


def one_for_all(x, out):
    if cuda.threadIdx.x == 0 and cuda.blockIdx.x % 2 == 0:
        out[0] = x[cuda.grid(1)]


def neighbours_output(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    cuda.syncthreads()
    out[i] += out[(i + 128) % 256]


def past_the_end(x, out):
    out[cuda.grid(1) + 1] = x[cuda.grid(1)]


def counted(x, out):
    cuda.atomic.add(out, 0, x[cuda.grid(1)])


def published(x, out):
    out[cuda.grid(1)] = x[cuda.grid(1)]
    cuda.threadfence()


def printed(x, out):
    if cuda.grid(1) < 2:
        print(x[cuda.grid(1)])


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (one_for_all, "its blocks touch what others write"),
        (neighbours_output, "its blocks touch what others write"),
        (past_the_end, "something was found"),
        (counted, "the order of its atomic operations on global memory may matter"),
        (published, "it has a fence between blocks"),
        (printed, "it prints"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_blocks_that_meet_run_in_one_process_with_the_same_findings(kernel, why):
    x = np.arange(256, dtype=np.float32)
    one, many = np.zeros(256, np.float32), np.zeros(256, np.float32)
    first = refsim.launch(kernel, 4, 64, x, one)
    second = refsim.launch(kernel, 4, 64, x, many, processes=2)
    assert second.findings == first.findings
    assert (second.processes, second.why_one_process) == (1, why)
    np.testing.assert_array_equal(many, one)


def histogram(x, out):
    i = cuda.grid(1)
    cuda.atomic.add(out, x[i] % out.size, 1)
    if i % 7 == 0:
        cuda.atomic.sub(out, x[i] % 5, 3)


def largest(x, out):
    cuda.atomic.max(out, x[cuda.grid(1)] % 16, x[cuda.grid(1)])


def smallest(x, out):
    cuda.atomic.min(out, x[cuda.grid(1)] % 16, x[cuda.grid(1)])


def toggled(x, out):
    cuda.atomic.xor(out, x[cuda.grid(1)] % 16, x[cuda.grid(1)])


def marked(x, out):
    cuda.atomic.or_(out, x[cuda.grid(1)] % 16, x[cuda.grid(1)])


def masked(x, out):
    cuda.atomic.and_(out, x[cuda.grid(1)] % 16, x[cuda.grid(1)] | 1024)


@pytest.mark.parametrize("checks", ["all", "none"])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("kernel", [histogram, largest, smallest, toggled, marked, masked])
def test_integers_are_counted_in_processes_where_the_order_does_not_matter(kernel, dtype, checks):
    random = np.random.default_rng(3)
    x = random.integers(0, 4096, 4 * 64).astype(dtype)
    start = random.integers(0, 4096, 40).astype(dtype)
    if kernel is histogram and dtype in (np.uint32, np.uint64):
        start[:5] = 1  # goes through zero
    one, many = start.copy(), start.copy()
    refsim.launch(kernel, 4, 64, x, one[4:36:2], checks=checks)
    report = refsim.launch(kernel, 4, 64, x, many[4:36:2], checks=checks, processes=2)
    assert not report.findings
    assert (report.processes, report.why_one_process) == (2, "")
    np.testing.assert_array_equal(many, one)
    assert (many != start).any()


def test_a_counter_in_cuda_is_counted_in_processes():
    code = """
    extern "C" __global__ void count(const unsigned* x, unsigned* bins, unsigned long long* total) {
        const unsigned value = x[blockIdx.x * blockDim.x + threadIdx.x];
        atomicAdd(&bins[value % 8], 1u);
        atomicAdd(total, (unsigned long long)value);
    }
    """
    kernel = refsim.RawKernel(code, "count")
    x = np.arange(512, dtype=np.uint32) * 2654435761 % 1000
    x, bins, total = x.astype(np.uint32), np.zeros(8, np.uint32), np.zeros(1, np.uint64)
    report = refsim.launch(kernel, 8, 64, x, bins, total, processes=2)
    assert (report.findings, report.processes) == ([], 2)
    np.testing.assert_array_equal(bins, np.bincount(x % 8, minlength=8))
    assert total[0] == x.sum()


def numbered(x, out):
    out[cuda.atomic.add(x, 0, 1)] = cuda.grid(1)


def counted_and_read(x, out):
    cuda.atomic.add(x, 0, 1)
    out[cuda.grid(1)] = x[1]


def added_and_raised(x, out):
    cuda.atomic.add(x, 0, 1)
    cuda.atomic.max(x, 1, 5)


@pytest.mark.parametrize("kernel", [numbered, counted_and_read, added_and_raised])
def test_where_the_order_of_atomic_operations_may_matter_one_process_does_all(kernel):
    x, out = np.zeros(4, np.int64), np.zeros(256, np.int64)
    report = refsim.launch(kernel, 4, 64, x, out, processes=2)
    assert report.why_one_process == "the order of its atomic operations on global memory may matter"
    assert x[0] == 256


def counted_beside(x, out):
    cuda.atomic.add(out, 0, 1)
    if x[1] > 5:
        cuda.atomic.add(out, 1, 1)


def test_counters_that_overlap_what_is_read_are_left_to_one_process():
    x = np.zeros(8, np.int64)
    report = refsim.launch(counted_beside, 4, 64, x, x, processes=2)
    assert report.why_one_process == "an array of its atomic operations overlaps another"
    assert x[0] == 256


def test_a_counter_that_nobody_initialised_is_found():
    one, many = refsim.empty(8, np.int64), refsim.empty(8, np.int64)
    x = np.arange(256, dtype=np.int64)
    first = refsim.launch(histogram, 4, 64, x, one)
    second = refsim.launch(histogram, 4, 64, x, many, processes=2)
    assert second.findings == first.findings
    assert second.why_one_process == "something was found"


def test_an_array_in_a_file_is_left_to_one_process(tmp_path):
    out = np.memmap(tmp_path / "out", np.float32, "w+", shape=256)
    report = refsim.launch(halves, 4, 64, out, processes=2)
    assert report.why_one_process == "an array lies in a file or in shared memory"
    assert (out == 1).all()


def children():
    """Processes that this one started and has not waited for."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if int(entry.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(entry.parent.name)
    return found


def test_a_worker_that_dies_is_an_error_and_the_arguments_stay(monkeypatch):
    parent, run = os.getpid(), engine.run_lockstep

    def dies(of, values, lanes, first, last):
        run(of, values, lanes, first, last)
        if os.getpid() != parent and first > 0:
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(engine, "run_lockstep", dies)
    out = np.zeros(256, np.float32)
    before = children()
    with pytest.raises(refsim.RefsimError, match="blocks 2 to 3 ended with signal 9"):
        refsim.launch(halves, 4, 64, out, processes=2)
    assert not out.any()
    assert children() <= before  # no worker is left, running or not


def test_an_error_of_a_worker_is_the_error_of_the_launch(monkeypatch):
    def fails(of, values, lanes, first, last):
        raise refsim.UnsupportedError("not today")

    monkeypatch.setattr(engine, "run_lockstep", fails)
    with pytest.raises(refsim.UnsupportedError, match="not today"):
        refsim.launch(halves, 4, 64, np.zeros(256, np.float32), processes=2)


def test_an_interrupted_launch_leaves_no_process_behind(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import os, numpy as np, refsim
        from refsim.engine import launch as engine
        from numba import cuda
        import time

        def halves(out):
            out[cuda.grid(1)] = 1

        def sleeps(*args):
            os.write(1, b"x")
            time.sleep(60)

        engine.run_lockstep = sleeps
        refsim.launch(halves, 4, 64, np.zeros(256, np.float32), processes=2)
    """)
    )
    child = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert child.stdout.read(2) == b"xx"  # both workers are at it
    child.send_signal(signal.SIGINT)  # to the parent alone
    _, errors = child.communicate(timeout=30)
    assert b"KeyboardInterrupt" in errors
    with pytest.raises(ProcessLookupError):
        os.killpg(child.pid, 0)


def test_wrong_numbers_are_refused():
    for processes in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="processes"):
            refsim.launch(halves, 4, 64, np.zeros(256, np.float32), processes=processes)


def test_libraries_that_warn_of_forks_are_not_heard(tmp_path):
    """JAX does, of every fork after it was imported."""
    (tmp_path / "script.py").write_text(
        textwrap.dedent("""
        import os, warnings
        import numpy as np
        from numba import cuda
        import refsim

        os.register_at_fork(before=lambda: warnings.warn("os.fork() was called", RuntimeWarning))

        def ones(out):
            out[cuda.grid(1)] = 1

        out = np.zeros(256)
        report = refsim.launch(ones, 4, 64, out, processes=2)
        print(report.processes, out.sum())
        """)
    )
    root = str(Path(refsim.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "error", "script.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": root},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("2 256.0\n", "")
