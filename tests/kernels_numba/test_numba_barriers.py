"""Every barrier is needed: without it, the simulator reports a race in the file where it stood."""

import importlib
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import cuda, float64

import kernels_numba
import refsim
from oracle.cases import Case
from oracle.operator import find_operator
from refsim.library import SimulatedLauncher

SOURCES = Path(kernels_numba.__file__).parent
BARRIER = "cuda.syncthreads()"

BARRIERS = [
    (source.stem, number)
    for source in sorted(SOURCES.glob("*.py"))
    for number, line in enumerate(source.read_text(encoding="utf-8").splitlines())
    if BARRIER in line
]

HEADS = {"batch": 1, "heads": 1, "kv_heads": 1, "queries": 17, "keys": 40, "v_dim": 17}

CASES = {
    "reduce": [Case("sum", "float32", {"d0": 70})],
    "gemm": [Case("matmul", "float32", {"m": 17, "k": 40, "n": 17})],
    "attention": [Case("attention", "float32", HEADS | {"head_dim": 40})],
    "moe": [Case("moe_gate", "float32", {"tokens": 2, "experts": 140}, {"top_k": 3})],
    "attention_fused": [
        Case("attention", "float32", HEADS | {"head_dim": 40}),
        Case("attention", "float32", HEADS | {"head_dim": 0}, {"scale": 1.0}),
    ],
}


@pytest.fixture
def without(tmp_path, monkeypatch):
    """``without(file, line)`` imports a copy of the package that lacks one barrier; None drops nothing."""
    monkeypatch.syspath_prepend(str(tmp_path))
    names = []

    def load(stem, number):
        name = f"kernels_without_{stem}_{number}"
        shutil.copytree(SOURCES, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        for path in (tmp_path / name).glob("*.py"):
            lines = path.read_text(encoding="utf-8").replace("from kernels_numba", f"from {name}").splitlines()
            if path.stem == stem and number is not None:
                lines[number] = lines[number].replace(BARRIER, "pass")
            path.write_text("\n".join(lines), encoding="utf-8")
        names.append(name)
        return importlib.import_module(f"{name}.{stem}")

    yield load
    for loaded in [module for module in sys.modules if module.partition(".")[0] in names]:
        del sys.modules[loaded]


def _findings(module, stem):
    if stem == "block_tree":
        return _findings_of_reductions(module)
    launcher = SimulatedLauncher()
    for case in CASES[stem]:
        params = find_operator(case.operator).signature.complete(case.params)
        for kernel in module.KERNELS:
            kernel.run(launcher, case.inputs(), params)
    return launcher.findings


def _findings_of_reductions(module):
    block_sum, block_max, threads = module.block_sum, module.block_max, module.THREADS

    @cuda.jit
    def one_after_the_other(x, out):
        cells = cuda.shared.array(threads, float64)
        thread = cuda.threadIdx.x
        total = block_sum(cells, thread, x[thread])
        largest = block_max(cells, thread, x[thread])
        out[thread] = block_sum(cells, thread, total + largest)

    x = np.random.default_rng(0).standard_normal(threads)
    return refsim.launch(one_after_the_other, 1, threads, x, np.zeros(threads)).findings


@pytest.mark.parametrize(("stem", "number"), BARRIERS, ids=lambda value: str(value))
def test_without_it_there_is_a_race(without, stem, number):
    findings = _findings(without(stem, number), stem)
    assert {(finding.kind, Path(finding.file).stem) for finding in findings if finding.severity == "error"} == {
        ("race", stem)
    }


@pytest.mark.parametrize("stem", sorted({stem for stem, _ in BARRIERS}))
def test_with_all_of_them_there_is_none(without, stem):
    assert _findings(without(stem, None), stem) == []
