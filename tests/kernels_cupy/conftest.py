"""Running a kernel on a simulated device, with every check on, and judging it against the oracle's NumPy."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import kernels_cupy
from oracle.cases import Case
from oracle.numerics import NUMERICS
from oracle.operator import find_operator
from refsim.conformance.judge import Judge
from refsim.conformance.verdicts import Verdict
from refsim.library import SimulatedLauncher

KERNELS = {kernel.name: kernel for kernel in kernels_cupy.KERNELS}


def run_kernel(
    name: str, inputs: Mapping[str, Any], device: str = "sim:sm_90", **params: Any
) -> tuple[np.ndarray, ...]:
    """Outputs of a kernel on the given arrays; fails on any finding."""
    kernel = KERNELS[name]
    complete = find_operator(kernel.operators[0]).signature.complete(params)
    launcher = SimulatedLauncher(device)
    assert kernel.accepts(dict(inputs), complete) is None
    outputs = kernel.run(launcher, dict(inputs), complete)
    assert launcher.findings == []
    return tuple(launcher.host(output) for output in outputs)


def judge_case(name: str, case: Case, device: str = "sim:sm_90") -> None:
    """Run a case; fails on a finding, on a changed input, and on an output where no honest kernel can put it."""
    kernel, operator = KERNELS[name], find_operator(case.operator)
    params = operator.signature.complete(case.params)
    inputs, untouched = case.inputs(), case.inputs()
    outputs = run_kernel(name, inputs, device, **params)
    for input_name, array in inputs.items():
        np.testing.assert_array_equal(array, untouched[input_name], err_msg=f"{name} changed its input {input_name}")
    expected = operator.expect(untouched, params, NUMERICS[kernel.numerics[case.dtype]])
    for output, wanted in zip(outputs, expected, strict=True):
        judgement = Judge(wanted).judge(output)
        assert judgement.verdict is Verdict.PASS, f"{name} on {device}, {case}: {judgement.message}"


@pytest.fixture(scope="session")
def run() -> Callable[..., tuple[np.ndarray, ...]]:
    """``run(kernel_name, inputs, device, **params)`` gives the outputs; fails on any finding."""
    return run_kernel


@pytest.fixture(scope="session")
def judge() -> Callable[..., None]:
    """``judge(kernel_name, case, device)`` asserts that the kernel conforms on the case."""
    return judge_case
