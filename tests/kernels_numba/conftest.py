"""Running a kernel on the simulated device, with every check on, and judging it against the oracle's NumPy."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import kernels_numba
from oracle.cases import Case
from oracle.numerics import NUMERICS
from oracle.operator import find_operator
from refsim.conformance.judge import Judge
from refsim.conformance.verdicts import Verdict
from refsim.library import Kernel, SimulatedLauncher

KERNELS = {kernel.name: kernel for kernel in kernels_numba.KERNELS}


def run_kernel(name: str, inputs: Mapping[str, Any], **params: Any) -> tuple[np.ndarray, ...]:
    """Outputs of a kernel on the given arrays; fails on any finding."""
    kernel = KERNELS[name]
    complete = find_operator(kernel.operators[0]).signature.complete(params)
    launcher = SimulatedLauncher()
    assert kernel.accepts(dict(inputs), complete) is None
    outputs = kernel.run(launcher, dict(inputs), complete)
    assert launcher.findings == []
    return tuple(launcher.host(output) for output in outputs)


def judge_case(kernel: Kernel, case: Case) -> None:
    """Run a case; fails on a finding, on a changed input, and on an output where no honest kernel can put it."""
    operator = find_operator(case.operator)
    params = operator.signature.complete(case.params)
    inputs, untouched = case.inputs(), case.inputs()
    outputs = run_kernel(kernel.name, inputs, **params)
    for name, array in inputs.items():
        np.testing.assert_array_equal(array, untouched[name], err_msg=f"{kernel.name} changed its input {name}")
    assert len(outputs) == len(operator.outputs)
    returned = {output.name: array for output, array in zip(operator.outputs, outputs)}
    expected = operator.expect(untouched, params, NUMERICS[kernel.numerics[case.dtype]], returned)
    for output, wanted in zip(outputs, expected):
        judgement = Judge(wanted).judge(output)
        assert judgement.verdict is Verdict.PASS, f"{kernel.name}, {case}: {judgement.message}"


@pytest.fixture(scope="session")
def run() -> Callable[..., tuple[np.ndarray, ...]]:
    """``run(kernel_name, inputs, **params)`` gives the outputs on the host, after checking that nothing was found."""
    return run_kernel


@pytest.fixture(scope="session")
def judge() -> Callable[[str, Case], None]:
    """``judge(kernel_name, case)`` asserts that the kernel conforms on the case."""
    return lambda name, case: judge_case(KERNELS[name], case)
