"""The stand-in for ``cupy``: NumPy underneath, CuPy's rules on top."""

from __future__ import annotations

import functools
from typing import Any

from refsim.hosts.cupy_host.modules import HostModule

REFUSED = {
    "fuse": "write the kernel as cupy.ElementwiseKernel, or leave the decorator away",
    "vectorize": "write the kernel as cupy.ElementwiseKernel",
    "from_dlpack": "use cupy.asarray",
    "fft": "only array functions, linalg, random and kernels are",
}


def cupy_module() -> HostModule:
    """The module object that scripts import as ``cupy``; one per session."""
    from refsim.hosts.session import active_session

    return _module_for(active_session())


@functools.lru_cache(maxsize=1)
def _module_for(_session: Any) -> HostModule:
    from refsim.hosts.cupy_host import cuda, raw
    from refsim.hosts.cupy_host.array import ndarray
    from refsim.hosts.cupy_host.creation import CREATION
    from refsim.hosts.cupy_host.elementwise import ElementwiseKernel
    from refsim.hosts.cupy_host.functions import Ufunc, linalg_functions, numpy_functions
    from refsim.hosts.cupy_host.random import random_functions
    from refsim.hosts.cupy_host.reduction import ReductionKernel
    from refsim.hosts.cupy_host.testing import TESTING

    members: dict[str, Any] = {
        **numpy_functions(), **CREATION, "ndarray": ndarray, "ufunc": Ufunc, "RawKernel": raw.RawKernel,
        "RawModule": raw.RawModule, "ElementwiseKernel": ElementwiseKernel, "ReductionKernel": ReductionKernel,
        "cuda": cuda.cuda_module(), "is_available": lambda: True,
        "get_default_memory_pool": cuda.get_default_memory_pool,
        "get_default_pinned_memory_pool": cuda.get_default_pinned_memory_pool,
        "linalg": HostModule("cupy.linalg", "Linear algebra.", linalg_functions()),
        "random": HostModule("cupy.random", "Random numbers.", random_functions()),
        "testing": HostModule("cupy.testing", "Comparisons.", TESTING), "__version__": "13.4.0",
    }  # fmt: skip
    return HostModule("cupy", __doc__ or "", members, REFUSED)
