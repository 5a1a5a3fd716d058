"""Every barrier is needed: without it, the simulator reports a race in the file where it stood."""

import re
from pathlib import Path

import pytest

import kernels_cupy.source
import refsim
from kernels_cupy import KERNELS
from kernels_cupy.source import FOLDER
from oracle.cases import Case
from oracle.operator import find_operator
from refsim.library import SimulatedLauncher

BARRIER = "__syncthreads();"

BARRIERS = [
    (path.name, number)
    for path in sorted([*FOLDER.glob("*.cu"), *FOLDER.glob("*.cuh")])
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines())
    if BARRIER in line
]

HEADS = {"batch": 1, "heads": 1, "kv_heads": 1, "queries": 1, "keys": 40, "v_dim": 17}

CASES = {
    "gemm.cu": [Case("matmul", "float32", {"m": 1, "k": 40, "n": 17})],
    "attention.cu": [
        Case("attention", "float32", HEADS | {"head_dim": 40}),
        Case("attention", "float32", HEADS | {"head_dim": 0}, {"scale": 1.0}),
    ],
    "fold.cuh": [Case("softmax", "float32", {"d0": 1, "cols": 300})],
}


def module_of_float(code, options, instantiations):
    """The module without the instantiations that no case here launches."""
    launched = tuple(name for name in instantiations if not re.search("Half|BFloat16|double", name))
    return refsim.RawModule(code=code, options=options, name_expressions=launched)


@pytest.fixture
def findings_without(tmp_path, monkeypatch):
    """``findings_without(file, line)``: of the first kernel that has any, over sources that lack one barrier."""

    def findings(file, number):
        for path in [*FOLDER.glob("*.cu"), *FOLDER.glob("*.cuh")]:
            lines = path.read_text(encoding="utf-8").splitlines()
            if path.name == file:
                lines[number] = lines[number].replace(BARRIER, ";")
            (tmp_path / path.name).write_text("\n".join(lines), encoding="utf-8")
        monkeypatch.setattr(kernels_cupy.source, "FOLDER", tmp_path)
        monkeypatch.setattr(kernels_cupy.source, "_module", module_of_float)
        monkeypatch.setattr(kernels_cupy.source, "OPTIONS", ("--std=c++17", f"-I{tmp_path}"))
        launcher = SimulatedLauncher()
        for case in CASES[file]:
            params = find_operator(case.operator).signature.complete(case.params)
            for kernel in KERNELS:
                if case.operator in kernel.operators and not launcher.findings:
                    kernel.run(launcher, case.inputs(), params)
        return launcher.findings

    return findings


@pytest.mark.parametrize(("file", "number"), BARRIERS, ids=lambda value: str(value))
def test_without_it_there_is_a_race(findings_without, file, number):
    errors = [finding for finding in findings_without(file, number) if finding.severity == "error"]
    assert {finding.kind for finding in errors} == {"race"}
    assert {Path(finding.file).name for finding in errors} <= {file, "tile.cuh"}  # tile.cuh writes the tiles
