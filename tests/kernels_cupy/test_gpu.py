"""Every kernel on a real GPU, through CuPy, judged against the oracle; and the launcher's arrays keep their layout.

Skipped where there is no CuPy or no GPU.
"""

import numpy as np
import pytest

import kernels_cupy
from refsim.conformance import check
from refsim.conformance.verdicts import Verdict

OPERATORS = list(dict.fromkeys(kernel.operators[0] for kernel in kernels_cupy.KERNELS))


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

    return CupyLauncher()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_conforms(operator, dtype):
    report = check(kernels_cupy.backend.on("cuda:0"), [operator], [dtype], count=24)
    assert report.results
    for result in report.results:
        assert result.verdict is Verdict.PASS, f"{result.kernel}: {result.failures}"


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
