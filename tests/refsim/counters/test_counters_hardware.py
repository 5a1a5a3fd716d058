"""Counters of an NVIDIA H200 under Nsight Compute against the simulator's, for kernels_cupy and for access patterns.

The data were recorded by benchmarks/nsight.py; where the two differ, the data name the reason, and
benchmarks/nsight_compare.py checks it against the machine instructions that were executed.
"""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))

from measured_launches import SUITES, Counting  # noqa: E402
from nsight_compare import REASONS, UNEXPLAINED, counts_of, reasons_for  # noqa: E402

import kernels_cupy  # noqa: E402

DATA = json.loads((ROOT / "tests" / "refsim" / "data" / "nsight_h200.json").read_text(encoding="utf-8"))
MEASURED = {}
for launch in DATA["launches"]:
    MEASURED.setdefault(launch["job"], []).append(launch)
FAMILIES = sorted({kernel.name for kernel in kernels_cupy.KERNELS})
JOBS = {job.name: job for make in SUITES.values() for job in make()}


def counted(name):
    """Counters of each launch of a job, with what was measured."""
    launcher = Counting()
    JOBS[name].run(launcher)
    return zip(launcher.counters, MEASURED[name], strict=True)


@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_cupy(family):
    names = [name for name in JOBS if name.startswith(f"{family} ")]
    assert names
    for name in names:
        for counters, measured in counted(name):
            assert reasons_for(counters, measured) == measured.get("differs", {}), (name, measured["kernel"])


@pytest.mark.parametrize(
    "kernels", ["transpose", "load_shared", "store_shared", "load_global", "store_global", "add_", "fetch_", "local_"]
)
def test_access_patterns_are_equal(kernels):
    names = [name for name in JOBS if name.startswith(kernels)]
    assert names
    for name in names:
        for counters, measured in counted(name):
            if name in UNEXPLAINED:
                assert measured["differs"] == {UNEXPLAINED[name]: "unknown"}
                assert counts_of(counters) != measured["counted"], f"{name} is explained now"
            else:
                assert counts_of(counters) == measured["counted"], name


def test_every_instantiation_was_measured():
    measured = {launch["kernel"] for launch in DATA["launches"]}
    assert {name for source in kernels_cupy.SOURCES for name in source.instantiations} <= measured
    assert set(MEASURED) == set(JOBS)


def test_reasons_are_known_and_few():
    differing = [launch for launch in DATA["launches"] if "differs" in launch]
    assert {reason for launch in differing for reason in launch["differs"].values()} == set(REASONS)
    assert {launch["job"] for launch in differing if launch["suite"] != "kernels_cupy"} == set(UNEXPLAINED)
    # loads and stores of global memory, the traffic that matters most, are equal but for these kernels
    moved = {launch["kernel"].split("<")[0] for launch in differing if launch["suite"] == "kernels_cupy"
             for name in launch["differs"] if name.startswith("global")}  # fmt: skip
    assert moved == {"rope", "rmsnorm", "softmax_block", "sum_atomic", "sum_chunks"}


@pytest.mark.parametrize("name", [name for name in JOBS if name.startswith("matmul_") and "float32" in name])
def test_floating_point_operations_of_matmul(name):
    """The compiler contracts a product and a sum to an fma; the operations are the same."""
    for counters, measured in counted(name):
        flops = measured["flops"]
        assert counters.flops == flops.get("fadd", 0) + flops.get("fmul", 0) + 2 * flops["ffma"], flops
