"""The stand-in for ``numba.cuda``: what host code calls is here, what kernels call is the real module's."""

from __future__ import annotations

import types
from typing import Any

from refsim.frontends.numba_names import CUDA_MEMBERS
from refsim.hosts.missing import NotSimulatedError
from refsim.hosts.numba_host import arrays, devices, kernels, reduction, streams

_HOST: dict[str, Any] = {
    "jit": kernels.jit,
    "In": kernels.In,
    "Out": kernels.Out,
    "InOut": kernels.InOut,
    "reduce": reduction.Reduce,
    "Reduce": reduction.Reduce,
    "gpus": devices.gpus,
    **{
        function.__name__: function
        for function in (
            arrays.to_device, arrays.device_array, arrays.device_array_like, arrays.pinned_array,
            arrays.pinned_array_like, arrays.mapped_array, arrays.mapped_array_like, arrays.managed_array,
            arrays.as_cuda_array, arrays.is_cuda_array, streams.stream, streams.default_stream,
            streams.legacy_default_stream, streams.per_thread_default_stream, streams.external_stream, streams.event,
            streams.event_elapsed_time, streams.synchronize, devices.list_devices, devices.get_current_device,
            devices.current_context, devices.select_device, devices.close, devices.is_available,
            devices.is_supported_version, devices.cuda_error, devices.is_float16_supported, devices.detect,
            devices.defer_cleanup, devices.profile_start, devices.profile_stop, devices.profiling,
        )
    },
}  # fmt: skip
_KERNEL_SIDE = frozenset(path.partition(".")[0] for path in CUDA_MEMBERS)
# Names of the real module that are types and constants: they need no device.
_TYPES = frozenset(["types", "HAS_NUMBA", "implementation", "config", "errors"])


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
        if name in _KERNEL_SIDE or name in _TYPES or _is_type(value):
            return value
        raise NotSimulatedError(f"numba.cuda.{name}")


def _is_type(value: Any) -> bool:
    """Whether a name stands for a scalar or vector type."""
    return type(value).__module__.startswith(("numba.core.types", "numba.cuda.types"))
