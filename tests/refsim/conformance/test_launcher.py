"""The simulated launcher: what a kernel's host code may expect of it."""

import numpy as np
import pytest
from numba import cuda

from refsim.library import SimulatedLauncher


def scale(x, factor, out):
    at = cuda.grid(1)
    if at < x.size:
        out[at] = x[at] * factor


def past_the_end(x, out):
    at = cuda.grid(1)
    out[at] = x[at]


@pytest.mark.parametrize("device", ["sim:sm_90", "sim:gfx942"])
def test_a_launch_fills_an_output(device):
    launcher = SimulatedLauncher(device)
    x = np.arange(10, dtype=np.float32)
    out = launcher.empty(10, np.float32)
    launcher.launch(scale, 1, 64, launcher.array(x), np.float32(3), out)
    host = launcher.host(out)
    assert type(host) is np.ndarray
    assert np.array_equal(host, 3 * x)
    assert launcher.findings == []


def test_findings_of_all_launches_are_kept():
    launcher = SimulatedLauncher()
    x, out = np.ones(10, np.float32), launcher.zeros(10, np.float32)
    assert not launcher.host(out).any()
    launcher.launch(past_the_end, 1, 32, launcher.array(x), out)
    once = len(launcher.findings)
    assert {finding.kind for finding in launcher.findings} == {"out_of_bounds"}
    launcher.launch(past_the_end, 1, 32, launcher.array(x), out)
    assert len(launcher.findings) == 2 * once


def test_reading_an_empty_array_is_a_finding():
    launcher = SimulatedLauncher()
    out = launcher.zeros(8, np.float32)
    launcher.launch(scale, 1, 8, launcher.empty(8, np.float32), np.float32(1), out)
    assert [finding.kind for finding in launcher.findings] == ["uninitialized_read"]


def test_checks_can_be_chosen():
    launcher = SimulatedLauncher(checks="memcheck")
    launcher.launch(scale, 1, 8, launcher.empty(8, np.float32), np.float32(1), launcher.zeros(8, np.float32))
    assert launcher.findings == []
