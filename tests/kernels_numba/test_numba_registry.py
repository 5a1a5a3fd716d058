"""What the package registers: every operator in every dtype, and a backend that is made on first use."""

import subprocess
import sys

import pytest

import kernels_numba
from kernels_numba import KERNELS
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
        "layernorm",
        "fused_add_rmsnorm",
        "silu_and_mul",
        "quantise",
        "reshape_and_cache_flash",
        "moe_gate",
    }
    for kernel in KERNELS:
        (operator,) = kernel.operators
        known = find_operator(operator).dtypes  # numba has no bfloat16
        assert kernel.dtypes == tuple(dtype for dtype in known if dtype != "bfloat16")


def test_names_are_unique_and_records_resolve():
    assert len({kernel.name for kernel in KERNELS}) == len(KERNELS)
    for kernel in KERNELS:
        assert kernel.doc
        for operator in kernel.operators:
            find_operator(operator)
        for dtype in kernel.dtypes:
            assert kernel.numerics[dtype] in NUMERICS


def test_backend_offers_every_kernel():
    offered = {(capability.kernel, capability.dtype) for capability in kernels_numba.backend.capabilities()}
    assert offered == {(kernel.name, dtype) for kernel in KERNELS for dtype in kernel.dtypes}
    assert kernels_numba.backend is kernels_numba.backend


def test_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'frontend'"):
        _ = kernels_numba.frontend


def test_kernels_alone_need_nothing_of_the_judge():
    code = "import sys, kernels_numba; sys.exit('refsim.conformance' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
