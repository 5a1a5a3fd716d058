"""What the package registers: every operator in every dtype, its sources, and a backend that is made on first use."""

import re
import subprocess
import sys

import pytest

import kernels_cupy
from kernels_cupy import KERNELS, SOURCES
from kernels_cupy.source import FOLDER, instantiation
from oracle.numerics import NUMERICS
from oracle.operator import find_operator


def test_every_operator_has_kernels_for_every_dtype():
    assert {operator for kernel in KERNELS for operator in kernel.operators} == {
        "sum",
        "softmax",
        "matmul",
        "rmsnorm",
        "attention",
        "rope",
    }
    for kernel in KERNELS:
        assert kernel.dtypes == ("float16", "bfloat16", "float32", "float64")


def test_names_are_unique_and_records_resolve():
    assert len({kernel.name for kernel in KERNELS}) == len(KERNELS)
    for kernel in KERNELS:
        assert kernel.doc
        for operator in kernel.operators:
            find_operator(operator)
        for dtype in kernel.dtypes:
            assert kernel.numerics[dtype] in NUMERICS


def test_backend_offers_every_kernel():
    offered = {(capability.kernel, capability.dtype) for capability in kernels_cupy.backend.capabilities()}
    assert offered == {(kernel.name, dtype) for kernel in KERNELS for dtype in kernel.dtypes}
    assert kernels_cupy.backend is kernels_cupy.backend


def test_only_float32_on_a_real_gpu_may_flush_subnormals(monkeypatch):
    monkeypatch.setattr("kernels_cupy.cupy_backend.CupyLauncher", lambda number: None)
    real, simulated = kernels_cupy.backend.on("cuda:0"), kernels_cupy.backend.on("sim:gfx942")
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        assert real.numerics("sum", "sum_shuffle", dtype).flush_to_zero == (dtype != "float64")
        assert not simulated.numerics("sum", "sum_shuffle", dtype).flush_to_zero


def test_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'frontend'"):
        _ = kernels_cupy.frontend


def test_kernels_alone_need_neither_the_judge_nor_cupy():
    code = "import sys, kernels_cupy; sys.exit(bool({'refsim.conformance', 'cupy', 'numba'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_source_file_and_every_kernel_in_it_is_instantiated():
    assert {source.file for source in SOURCES} == {path.name for path in FOLDER.glob("*.cu")}
    for source in SOURCES:
        defined = re.findall(r"__global__ void __launch_bounds__\([^)]*\) (\w+)\(", source.code)
        assert set(defined) == {name.partition("<")[0] for name in source.instantiations}
        assert len(set(source.instantiations)) == len(source.instantiations)


def test_an_instantiation_outside_the_list_is_refused():
    norm = next(source for source in SOURCES if source.file == "norm.cu")
    with pytest.raises(KeyError, match=r"rmsnorm<int> is not among the instantiations of norm\.cu"):
        norm.kernel("rmsnorm", "int")


def test_instantiation_spells_a_name_expression():
    assert instantiation("sum_chunks", "Half", "float") == "sum_chunks<Half, float>"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.file)
def test_lines_of_the_code_are_those_of_the_file(source):
    path = FOLDER / source.file
    first, rest = source.code.split("\n", 1)
    assert first == f'#line 1 "{path.as_posix()}"'
    assert rest == path.read_text(encoding="utf-8")
