"""The tests that numba-cuda ships, run on the simulator: a part of them, with the list of known failures honoured."""

import importlib.metadata
import subprocess
import sys

import pytest

pytest.importorskip("filecheck", reason="numba.cuda.testing needs filecheck")
from refsim.compat.numba_tests.known import Known, load, reason_of, save
from refsim.compat.numba_tests.outcomes import Outcomes
from refsim.compat.numba_tests.runner import judge
from refsim.compat.numba_tests.table import table

FILES = (
    "core", "cudadrv/test_cuda_array_slicing.py", "cudadrv/test_cuda_ndarray.py", "cudadrv/test_events.py",
    "cudadrv/test_streams.py", "cudapy/test_forall.py", "cudapy/test_sync.py", "cudapy/test_warp_ops.py",
)  # fmt: skip


@pytest.mark.skipif(
    importlib.metadata.version("numba-cuda") != load().version, reason="the list is of another version of numba-cuda"
)
def test_a_part_of_the_shipped_tests():
    command = [sys.executable, "-m", "refsim.compat.numba_tests", *FILES]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    total = next(line for line in done.stdout.splitlines() if line.startswith("total")).split()
    assert int(total[1]) >= 150


def outcomes_of(**states):
    found = Outcomes()
    for test, state in states.items():
        found.add(test, state, "")
    return found


def test_new_failures_and_stale_lines_are_told():
    known = Known("1", {"fails": "links", "heals": "links", "skipped": "links"})
    found = outcomes_of(fails="failed", heals="passed", skipped="skipped", breaks="failed", fine="passed")
    assert judge(found, known) == ["failed and not in the list: breaks", "passed but in the list: heals"]
    last = table(found, known).splitlines()[-1].split()
    assert last == ["total", "2", "1", "1", "1"]


def test_a_test_fails_if_a_part_of_it_fails():
    found = Outcomes()
    for state in ("passed", "failed", "passed"):
        found.add("test", state, state)
    assert found.of["test"].state == "failed"


def test_the_list_is_sorted_by_reason_and_read_back(tmp_path):
    known = Known("1.2", {"b::x": "links", "a::x": "links", "c::x": "inspects"})
    save(known, tmp_path / "list.toml")
    again = load(tmp_path / "list.toml")
    assert again == known
    assert list(again.by_reason()) == ["inspects", "links"]
    assert again.by_reason()["links"] == ["a::x", "b::x"]


def test_reasons_are_read_from_the_error():
    assert "PTX" in reason_of("t", "NotSimulatedError: inspect_asm of a numba.cuda kernel is not simulated")
    assert "links" in reason_of("t", "NotSimulatedError: argument 'link' of numba.cuda.jit() is not simulated")
