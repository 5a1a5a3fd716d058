"""CUDA and HIP C++ kernels, one ``.cu`` file per operator family, and the backend that runs them."""

from typing import Any

from kernels_cupy import attention, gemm, norm, reduce, rope, softmax
from kernels_cupy.source import Source
from refsim.library import Kernel

__all__ = ["KERNELS", "SOURCES", "backend"]

FAMILIES = (reduce, softmax, gemm, norm, attention, rope)

KERNELS: list[Kernel] = [kernel for family in FAMILIES for kernel in family.KERNELS]
"""Every kernel of this package, in the order of a report."""

SOURCES: list[Source] = [family.SOURCE for family in FAMILIES]
"""Every .cu file, with the instantiations that launchers use."""


def __getattr__(name: str) -> Any:
    """``backend``, made on first use: a kernel alone needs nothing of the judge."""
    if name != "backend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kernels_cupy.cupy_backend import CupyBackend

    made = CupyBackend(KERNELS)
    globals()[name] = made
    return made
