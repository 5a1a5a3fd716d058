"""Every kernel on a real GPU, through CuPy, judged against the oracle; and the launcher's arrays keep their layout.

Skipped where there is no CuPy or no GPU. CuPy compiles raw kernels with ``-ftz=true``, whatever the options say, so the
kernels promise there that subnormals may be flushed to zero.
"""

import os

import numpy as np
import pytest

from kernels_cupy import KERNELS
from oracle.cases import make_cases
from oracle.numerics import NUMERICS
from oracle.operator import find_operator
from refsim.conformance.judge import Judge
from refsim.conformance.verdicts import Verdict

CASES = 16
INCLUDE = os.path.join(os.environ.get("CUDA_PATH", "/usr/local/cuda"), "include")


def _why_not():
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no GPU: {error}"
    return "" if count else "no GPU"


MISSING = _why_not()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@pytest.fixture(scope="module")
def launcher():
    from kernels_cupy.cupy_launcher import CupyLauncher

    return CupyLauncher(include=(INCLUDE,))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_conforms(launcher, kernel, dtype):
    (operator,) = (find_operator(name) for name in kernel.operators)
    numerics = NUMERICS[kernel.numerics[dtype]].with_changes(flush_to_zero=True)
    for case in make_cases(operator.name, dtype, CASES, 0):
        params = operator.signature.complete(case.params)
        outputs = kernel.run(launcher, case.inputs(), params)
        for output, expected in zip(outputs, operator.expect(case.inputs(), params, numerics), strict=True):
            judgement = Judge(expected).judge(launcher.host(output))
            assert judgement.verdict is Verdict.PASS, f"{case}: {judgement.message}"


@pytest.mark.parametrize("cut", [np.s_[:], np.s_[1:, 3:], np.s_[::-1, ::-2], np.s_[:, 4:4]], ids=str)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_arrays_keep_values_strides_and_alignment(launcher, dtype, cut):
    array = np.arange(35, dtype=dtype).reshape(5, 7)[cut]
    there = launcher.array(array)
    np.testing.assert_array_equal(launcher.host(there), array, strict=True)
    assert there.strides == array.strides
    assert array.size == 0 or (there.address - array.ctypes.data) % 256 == 0


def test_empty_is_poisoned_and_zeros_are_not(launcher):
    assert np.isnan(launcher.host(launcher.empty((3, 2), np.float16))).all()
    np.testing.assert_array_equal(launcher.host(launcher.zeros(4, np.float32)), np.zeros(4, np.float32), strict=True)
