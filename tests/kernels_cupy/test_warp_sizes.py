"""Rehearsing a port: the sources fit warps of any size; a copy made for 32 lanes fails where there are 16."""

import numpy as np
import pytest

import kernels_cupy.source
from kernels_cupy.norm import run_rmsnorm
from kernels_cupy.source import FOLDER
from refsim.library import SimulatedLauncher

ROW = np.ones((1, 1024), np.float32)


@pytest.fixture
def thirty_two_lanes(tmp_path, monkeypatch):
    """Let the launchers compile sources in which ``warpSize`` is the number 32."""
    for path in [*FOLDER.glob("*.cu"), *FOLDER.glob("*.cuh")]:
        text = path.read_text(encoding="utf-8").replace("warpSize", "32")
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(kernels_cupy.source, "FOLDER", tmp_path)
    monkeypatch.setattr(kernels_cupy.source, "OPTIONS", ("--std=c++17", f"-I{tmp_path}"))


def _normalised(device):
    launcher = SimulatedLauncher(device)
    (out,) = run_rmsnorm(launcher, {"x": ROW, "weight": ROW[0]}, {"eps": 0.0})
    return out, launcher.findings


@pytest.mark.parametrize("device", ["sim:sm_90", "sim:gfx942", "sim:gfx1100", "sim:warp16"])
def test_sources_fit_any_warp(device):
    out, findings = _normalised(device)
    assert findings == []
    np.testing.assert_array_equal(out, ROW)


@pytest.mark.parametrize("device", ["sim:sm_90", "sim:gfx1100"])
def test_the_copy_is_right_on_32_lanes(thirty_two_lanes, device):
    out, findings = _normalised(device)
    assert findings == []
    np.testing.assert_array_equal(out, ROW)


def test_the_copy_is_found_out_on_16_lanes(thirty_two_lanes):
    out, findings = _normalised("sim:warp16")
    assert findings or not np.array_equal(out, ROW)
