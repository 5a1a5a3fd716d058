"""Options of a launch: which checks run, what a launch with findings gives, and what bad arguments are told."""

import time

import numpy as np
import pytest
from clean_launch import launch_clean
from numba import cuda, float32

import refsim


def four_mistakes(x, out):
    cells = cuda.shared.array(64, float32)
    i = cuda.threadIdx.x
    if i < 60:
        cells[i] = x[i]
        cuda.syncthreads()
    out[i] = cells[(i + 1) % 64]  # another thread's cell, and four of them unwritten
    if i == 63:
        out[i + 1] = 0


KINDS = {
    "memcheck": {"out_of_bounds"},
    "initcheck": {"uninitialized_read"},
    "synccheck": {"barrier_divergence"},
}


def kinds_with(checks):
    report = refsim.launch(four_mistakes, 1, 64, np.ones(64, np.float32), np.zeros(64, np.float32), checks=checks)
    return {finding.kind for finding in report.findings}


@pytest.mark.parametrize("group", KINDS)
def test_one_group_reports_its_kinds_only(group):
    assert kinds_with(group) == KINDS[group]


def test_groups_add_up():
    assert kinds_with("memcheck,initcheck") == KINDS["memcheck"] | KINDS["initcheck"]
    assert kinds_with(["synccheck", "memcheck"]) == KINDS["memcheck"] | KINDS["synccheck"]
    assert kinds_with("all") >= set.union(*KINDS.values())
    assert kinds_with("none") == set()


def race(x):
    i = cuda.grid(1)
    x[0] += i + x[i] * 0


def test_racecheck_alone_reports_races():
    assert {f.kind for f in refsim.launch(race, 1, 32, np.zeros(32), checks="racecheck").findings} == {"race"}
    assert not refsim.launch(race, 1, 32, np.zeros(32), checks="memcheck").findings


def test_kernel_with_a_finding_still_gives_its_result():
    def shift(x, out):
        i = cuda.grid(1)
        out[i] = x[i + 1]

    x, out = np.arange(40.0), np.zeros(40)
    report = refsim.launch(shift, 1, 40, x, out)
    assert not report.ok
    np.testing.assert_array_equal(out[:39], x[1:])


def test_findings_can_be_raised():
    def shift(x, out):
        i = cuda.grid(1)
        out[i] = x[i + 1]

    x = np.arange(40.0)
    with pytest.raises(refsim.FindingError, match="out of bounds") as caught:
        refsim.launch(shift, 1, 40, x, np.zeros(40), raise_on_findings=True)
    assert "test_launch_options.py" in str(caught.value)
    with pytest.raises(refsim.FindingError):
        refsim.launch(shift, 1, 40, x, np.zeros(40)).raise_if_findings()


def test_wrapped_indices_are_noted_on_request():
    def left(x, out):
        i = cuda.grid(1)
        out[i] = x[i - 1]

    x = np.arange(8.0)
    launch_clean(left, 1, 8, x, np.zeros(8))
    report = refsim.launch(left, 1, 8, x, np.zeros(8), note_negative_indices=True)
    assert report.ok
    assert [(f.severity, f.array) for f in report.findings] == [("note", "x")]


def test_results_and_findings_do_not_depend_on_the_batch_size():
    def sums(x, out):
        cells = cuda.shared.array(32, float32)
        i = cuda.threadIdx.x
        cells[i] = x[cuda.grid(1)]
        cuda.syncthreads()
        total = float32(0)
        for k in range(i + 1):
            total += cells[k]
        out[cuda.grid(1)] = total
        out[(cuda.blockIdx.x * 32 + 33) % out.size] += 1

    seen = []
    for lanes in (32, 64, 1 << 16):
        x, out = np.arange(320, dtype=np.float32), np.zeros(320, np.float32)
        report = refsim.launch(sums, 10, 32, x, out, lanes_per_batch=lanes)
        seen.append({(f.kind, f.severity, frozenset({f.line, f.other.line})) for f in report.findings})
        assert seen[-1] == seen[0]
        untouched = np.arange(320) % 32 != 1
        np.testing.assert_array_equal(out[untouched], np.cumsum(x.reshape(10, 32), axis=1).ravel()[untouched])
    assert any(kind == "race" for kind, _, _ in seen[0])


# ---- kernels that wait for other threads --------------------------------------------------------------------------


def finished_or_refused(kernel, grid, block, *arguments):
    """True if the kernel ran to its end without a finding, False if refsim said that it cannot run it."""
    started = time.monotonic()
    refusal = ""
    report = None
    try:
        report = refsim.launch(kernel, grid, block, *arguments)
    except refsim.UnsupportedError as error:
        refusal = str(error)
    assert time.monotonic() - started < 20
    if report is None:
        assert f"{__file__}:" in refusal
        return False
    assert not report.findings, report
    return True


def test_spin_lock_finishes_or_is_refused():
    def locked_add(lock, total):
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        cuda.threadfence()
        total[0] += 1
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)

    lock, total = np.zeros(1, np.int32), np.zeros(1, np.int64)
    if finished_or_refused(locked_add, 2, 32, lock, total):
        assert total[0] == 64


def test_hand_off_between_blocks_finishes_or_is_refused():
    def relay(flag, out):
        if cuda.threadIdx.x == 0:
            while cuda.atomic.add(flag, 0, 0) != cuda.blockIdx.x:
                pass
            cuda.threadfence()
            out[cuda.blockIdx.x] = out[cuda.blockIdx.x - 1] + 1 if cuda.blockIdx.x > 0 else 1
            cuda.threadfence()
            cuda.atomic.add(flag, 0, 1)

    flag, out = np.zeros(1, np.int32), np.zeros(4, np.int64)
    if finished_or_refused(relay, 4, 32, flag, out):
        assert out.tolist() == [1, 2, 3, 4]


def test_waiting_for_what_nobody_does_is_a_deadlock():
    def wait(flag, out):
        while flag[0] == 0:
            out[0] = 1

    started = time.monotonic()
    report = refsim.launch(wait, 1, 1, np.zeros(1, np.int32), np.zeros(1))
    assert time.monotonic() - started < 20
    assert [f.kind for f in report.findings] == ["deadlock"]
    assert report.findings[0].line in range(wait.__code__.co_firstlineno, wait.__code__.co_firstlineno + 3)


def test_long_loops_are_no_deadlock():
    def count(out, rounds):
        i = cuda.grid(1)
        k = 0
        while k < rounds:
            k += 1
        out[i] = k

    out = np.zeros(4, np.int64)
    launch_clean(count, 1, 4, out, 30_000)
    assert out.tolist() == [30_000] * 4


# ---- bad arguments ------------------------------------------------------------------------------------------------


def nothing(x):
    x[0] = 1


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"grid": 0}, ValueError, "grid"),
        ({"grid": (1, 2, 3, 4)}, ValueError, "grid"),
        ({"block": -3}, ValueError, "-3"),
        ({"block": 1.5}, (ValueError, TypeError), "1.5"),
        ({"checks": "rececheck"}, ValueError, "rececheck"),
        ({"device": "sim:sm_91"}, ValueError, "sm_90"),
        ({"device": "cuda:0"}, ValueError, "cuda:0"),
        ({"shared_bytes": -1}, ValueError, "-1"),
        ({"kernel": 5}, TypeError, "5"),
        ({"arguments": ("text",)}, TypeError, "text"),
        ({"arguments": (np.zeros(3, "U3"),)}, TypeError, "U3|str"),
        ({"arguments": ([1, 2],)}, TypeError, r"\[1, 2\]"),
        ({"arguments": ()}, TypeError, "nothing"),
        ({"arguments": (np.zeros(1), 2)}, TypeError, "nothing"),
    ],
)
def test_bad_arguments_are_named(options, error, words):
    given = {"kernel": nothing, "grid": 1, "block": 1, "arguments": (np.zeros(1),), **options}
    kernel, grid, block, arguments = (given.pop(name) for name in ("kernel", "grid", "block", "arguments"))
    with pytest.raises(error, match=words):
        refsim.launch(kernel, grid, block, *arguments, **given)


@pytest.mark.parametrize(
    ("array", "words"),
    [(np.zeros(4, ">f4"), r"other byte order \(>f4\)"), (np.ma.zeros(4), "masked array")],
)
def test_an_array_that_would_be_misread_is_refused(array, words):
    with pytest.raises(TypeError, match=words):
        refsim.launch(nothing, 1, 1, array)


def test_read_only_output_is_refused():
    x = np.zeros(4)
    x.flags.writeable = False
    with pytest.raises((ValueError, TypeError), match=r"read-only|writeable|writable"):
        refsim.launch(nothing, 1, 1, x)


def test_report_prints_what_and_where():
    report = refsim.launch(race, 1, 32, np.zeros(32))
    text = str(report)
    assert "race on sim:sm_90" in text
    assert f"{__file__}:{race.__code__.co_firstlineno + 2}" in text
    assert "x[0] += i" in text
