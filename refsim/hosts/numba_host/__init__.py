"""The stand-in for ``numba.cuda``: what host code calls is here, what kernels call is the real module's."""

from __future__ import annotations

import types
from typing import Any

from refsim.frontends.numba_names import CUDA_MEMBERS
from refsim.hosts.missing import NotSimulatedError
from refsim.hosts.numba_host import arrays, compiling, devices

_HOST: dict[str, Any] = {
    **compiling.REFUSED,
    **{
        function.__name__: function
        for function in (
            devices.is_available, devices.is_supported_version, devices.cuda_error, devices.detect, arrays.device_array,
        )
    },
}  # fmt: skip
_KERNEL_SIDE = frozenset(path.partition(".")[0] for path in CUDA_MEMBERS)
# Names of the real module that are types and constants: they need no device.
_TYPES = frozenset(["types", "HAS_NUMBA", "implementation", "config", "errors", "literal_unroll"])
# Modules of numba.cuda whose functions run on the simulated driver.
_HOST_MODULES = (
    *(f"numba.cuda.{name}" for name in ("api", "api_util", "args", "decorators")),
    "numba.cuda.kernels.reduction",
    "numba.cuda.np.ufunc.decorators",
    *(f"numba.cuda.cudadrv.{name}" for name in ("devices", "driver", "linkable_code", "runtime")),
    "refsim.hosts.numba_host.arrays",
    "refsim.hosts.numba_host.devices",
)  # fmt: skip
# Modules of numba.cuda whose members stand for device functions and types of kernels.
_KERNEL_MODULES = (
    "numba.cuda.stubs", "numba.cuda.intrinsics", "numba.cuda.cache_hints", "numba.cuda.cg", "numba.cuda.libdevice",
    "numba.cuda.fp16", "numba.cuda.bf16", "numba.cuda.fp8", "numba.cuda.errors", "numba.cuda.cudadrv.error",
)  # fmt: skip


class CudaModule(types.ModuleType):
    """The module object that scripts import as ``numba.cuda``."""

    def __init__(self, real: types.ModuleType) -> None:
        super().__init__("numba.cuda", __doc__)
        self.__file__ = __file__
        self.__path__ = list(getattr(real, "__path__", []))
        self.__package__ = "numba.cuda"
        self.__spec__ = real.__spec__
        self._real = real
        vars(self).update(_HOST)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module 'numba.cuda' has no attribute {name!r}")
        if name == "random":
            from refsim.hosts.numba_host import random

            return random
        value = getattr(self._real, name, None)
        if value is None:
            raise AttributeError(f"module 'numba.cuda' has no attribute {name!r}")
        if name in _KERNEL_SIDE or name in _TYPES or _is_type(value) or isinstance(value, types.ModuleType):
            return value
        if getattr(value, "__module__", None) in (*_KERNEL_MODULES, *_HOST_MODULES):
            return getattr(self._real.api, name, value)
        raise NotSimulatedError(f"numba.cuda.{name}")


def _is_type(value: Any) -> bool:
    """Whether a name stands for a scalar or vector type."""
    return type(value).__module__.startswith(("numba.core.types", "numba.cuda.types"))
