"""Every kernel compiles for sm_90 to PTX, and float32 kernels compute nothing in float64.

No GPU is needed, but NVVM is: `pip install "numba-cuda[cu13]"`.
"""

import re
import types
from typing import Any

import numba
import numpy as np
import pytest
from numba import cuda

from kernels_numba import KERNELS
from oracle.cases import make_cases
from oracle.operator import find_operator


def _nvvm_is_missing() -> str | None:
    def empty():
        pass

    try:
        cuda.compile_ptx(empty, (), cc=(9, 0))
    except Exception as error:  # whichever library of the toolkit is looked for first, each with its own exception
        return f"no NVVM to compile with: {type(error).__name__}"
    return None


MISSING = _nvvm_is_missing()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


class CompilingLauncher:
    """Compiles what it is asked to launch, once per kernel and argument types; every array holds zeros."""

    def __init__(self) -> None:
        self.ptx: dict[tuple[Any, ...], str] = {}

    def launch(self, kernel: Any, grid: Any, block: Any, *args: Any, shared_bytes: int = 0) -> None:
        kinds = [numba.typeof(arg) for arg in args]
        kinds = [kind.copy(layout="A") if isinstance(kind, numba.types.Array) else kind for kind in kinds]
        key = (kernel.py_func, *kinds)
        if key not in self.ptx:
            self.ptx[key], _ = cuda.compile_ptx(kernel.py_func, tuple(kinds), cc=(9, 0))

    def empty(self, shape: Any, dtype: Any) -> np.ndarray:
        return np.zeros(shape, dtype)

    def zeros(self, shape: Any, dtype: Any) -> np.ndarray:
        return np.zeros(shape, dtype)

    def array(self, host_array: np.ndarray) -> np.ndarray:
        return host_array

    def host(self, array: np.ndarray) -> np.ndarray:
        return array


@pytest.fixture(autouse=True)
def target_device(monkeypatch):
    """Device functions ask for the current device's architecture; there is none here."""
    device = types.SimpleNamespace(compute_capability=(9, 0))
    monkeypatch.setattr("numba.cuda.dispatcher.get_current_device", lambda: device)


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [pytest.param(kernel, dtype, id=f"{kernel.name}-{dtype}") for kernel in KERNELS for dtype in kernel.dtypes],
)
def test_compiles(kernel, dtype):
    launcher = CompilingLauncher()
    (operator,) = (find_operator(name) for name in kernel.operators)
    for case in make_cases(operator.name, dtype, 4, 0):
        inputs, params = case.inputs(), operator.signature.complete(case.params)
        if kernel.accepts(inputs, params) is None:
            kernel.run(launcher, inputs, params)
    assert launcher.ptx
    arithmetic = re.compile(r"\b(add|sub|mul|fma|div|max|min|sqrt)(\.\w+)*\.f64\b")
    for ptx in launcher.ptx.values():
        assert ".visible .entry" in ptx
        assert bool(arithmetic.search(ptx)) <= (dtype == "float64")
