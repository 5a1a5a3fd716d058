"""A CUDA driver without a GPU: what numba.cuda asks of libcuda, answered with host memory and the simulated device.

numba's own host code (device arrays, contexts, memory managers, streams and events) runs unmodified on top of it.
Work on streams is done when the call that enqueued it returns, so every wait is over when it begins.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import threading
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from refsim.engine import buffers
from refsim.hosts.clock import Mark
from refsim.hosts.facts import CUDA_VERSION, DEVICE_MEMORY
from refsim.hosts.memory import POISON, TRACKED, allocated, owner_at
from refsim.hosts.missing import NotSimulatedError
from refsim.hosts.numba_host.attributes import attribute

CONTEXT = 0x5EF51A  # the handle of the one context


# What finalizers of numba's objects call: objects may outlive the script, so these stay when the script has ended.
RELEASES = ("cuMemFree", "cuMemFreeHost", "cuMemHostUnregister", "cuStreamDestroy", "cuEventDestroy")


@cache
def simulated_driver() -> SimulatedDriver:
    """The one driver of this process."""
    return SimulatedDriver()


class SimulatedDriver:
    """The functions of the driver API, by their names, without their error codes: numba's wrappers raise instead."""

    def __init__(self) -> None:
        from cuda.bindings import driver as binding
        from numba.cuda.cudadrv.driver import CudaAPIError

        self._binding = binding
        self._error_class = CudaAPIError
        self._memory: dict[int, np.ndarray[Any, Any]] = {}
        self._sizes: dict[int, int] = {}
        self._thread = threading.local()
        self._handles = itertools.count(16)
        self._events: dict[int, Mark] = {}
        self._untimed: set[int] = set()
        self._streams: set[int] = set()

    def owns(self, handle: Any) -> bool:
        """Whether memory, a stream or an event is of this driver."""
        return any(int(handle) in known for known in (self._memory, self._events, self._streams))

    def _error(self, function: str, code: str) -> Exception:
        result = getattr(self._binding.CUresult, code)
        error: Exception = self._error_class(result, f"Call to {function} results in {code}")
        return error

    # ------------------------------------------------------------------------------------------- devices, contexts

    def cuInit(self, flags: int) -> None:
        """Nothing to start."""

    def cuDriverGetVersion(self) -> int:
        """Version of the CUDA that is simulated."""
        return CUDA_VERSION

    def cuDeviceGetCount(self) -> int:
        """One device."""
        return 1

    def cuDeviceGetAttribute(self, code: Any, device: Any) -> int:
        """A number of the device model."""
        return attribute(code.name.removeprefix("CU_DEVICE_ATTRIBUTE_"))

    def cuDeviceCanAccessPeer(self, device: Any, peer: Any) -> int:
        """A device is no peer of itself."""
        return 0

    def _stack(self) -> list[Any]:
        if not hasattr(self._thread, "stack"):
            self._thread.stack = []
        stack: list[Any] = self._thread.stack
        return stack

    def cuCtxGetCurrent(self) -> Any:
        """The context of this thread, or a null handle."""
        stack = self._stack()
        return stack[-1] if stack else self._binding.CUcontext(0)

    def cuCtxGetDevice(self) -> int:
        """Device of the current context."""
        return 0

    def cuCtxPushCurrent(self, context: Any) -> None:
        """Make a context current in this thread."""
        self._stack().append(context)

    def cuCtxPopCurrent(self) -> Any:
        """Make the context before it current again."""
        if not self._stack():
            raise self._error("cuCtxPopCurrent", "CUDA_ERROR_INVALID_CONTEXT")
        return self._stack().pop()

    def cuCtxSynchronize(self) -> None:
        """Nothing to wait for."""

    def cuDevicePrimaryCtxRelease(self, device: Any) -> None:
        """Nothing to release."""

    def cuDevicePrimaryCtxReset(self, device: Any) -> None:
        """Nothing to reset."""

    def cuProfilerStart(self) -> None:
        """No profiler listens."""

    def cuProfilerStop(self) -> None:
        """No profiler listens."""

    # ------------------------------------------------------------------------------------------- memory

    def _allocate(self, function: str, size: int) -> int:
        if size <= 0:
            raise self._error(function, "CUDA_ERROR_INVALID_VALUE")
        if sum(self._sizes.values()) + size > DEVICE_MEMORY:
            raise self._error(function, "CUDA_ERROR_OUT_OF_MEMORY")
        array = _fresh(size)
        address = array.ctypes.data
        self._memory[address], self._sizes[address] = array, size
        allocated(array)
        return address

    def _free(self, function: str, pointer: Any) -> None:
        address = int(pointer)
        if address and self._memory.pop(address, None) is None:
            raise self._error(function, "CUDA_ERROR_INVALID_VALUE")
        self._sizes.pop(address, None)

    def cuMemAlloc(self, size: int) -> Any:
        """Fresh device memory."""
        return self._binding.CUdeviceptr(self._allocate("cuMemAlloc", size))

    def cuMemAllocManaged(self, size: int, flags: int) -> Any:
        """Memory of host and device: there is only one."""
        return self._binding.CUdeviceptr(self._allocate("cuMemAllocManaged", size))

    def cuMemHostAlloc(self, size: int, flags: int) -> int:
        """Host memory, which the device addresses too."""
        return self._allocate("cuMemHostAlloc", size)

    def cuMemHostGetDevicePointer(self, pointer: Any, flags: int) -> Any:
        """The same address."""
        return self._binding.CUdeviceptr(int(pointer))

    def cuMemHostRegister(self, pointer: Any, size: int, flags: int) -> None:
        """Let the device address memory that the host has."""
        address = int(pointer)
        if address in self._memory:
            raise self._error("cuMemHostRegister", "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED")
        self._memory[address] = allocated(_at(address, size))

    def cuMemHostUnregister(self, pointer: Any) -> None:
        """The end of it."""
        if self._memory.pop(int(pointer), None) is None:
            raise self._error("cuMemHostUnregister", "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED")

    def cuMemFree(self, pointer: Any) -> None:
        """Give device memory back."""
        self._free("cuMemFree", pointer)

    def cuMemFreeHost(self, pointer: Any) -> None:
        """Give host memory back."""
        self._free("cuMemFreeHost", pointer)

    def cuMemGetInfo(self) -> tuple[int, int]:
        """Free and total bytes."""
        return DEVICE_MEMORY - sum(self._sizes.values()), DEVICE_MEMORY

    def cuMemGetAddressRange(self, pointer: Any) -> tuple[Any, int]:
        """The allocation that holds an address."""
        owner = self._owner("cuMemGetAddressRange", pointer, 1)
        return self._binding.CUdeviceptr(owner.ctypes.data), owner.nbytes

    def cuPointerGetAttribute(self, code: Any, pointer: Any) -> Any:
        """The address as the device sees it."""
        if code != self._binding.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            raise NotSimulatedError(f"cuPointerGetAttribute({code.name}) of the CUDA driver")
        return pointer

    def _owner(self, function: str, pointer: Any, size: int) -> np.ndarray[Any, Any]:
        address = int(pointer)
        owner = owner_at(address)
        if owner is None or address + size > owner.ctypes.data + owner.nbytes:
            raise self._error(function, "CUDA_ERROR_INVALID_VALUE")
        return owner

    def cuMemcpyHtoD(self, target: Any, source: Any, size: int) -> None:
        """Copy to the device."""
        if size:
            self._owner("cuMemcpyHtoD", target, size)
            ctypes.memmove(int(target), int(source), size)

    def cuMemcpyDtoH(self, target: Any, source: Any, size: int) -> None:
        """Copy from the device."""
        if size:
            self._owner("cuMemcpyDtoH", source, size)
            ctypes.memmove(int(target), int(source), size)

    def cuMemcpyDtoD(self, target: Any, source: Any, size: int) -> None:
        """Copy on the device."""
        if size:
            self._owner("cuMemcpyDtoD", target, size)
            self._owner("cuMemcpyDtoD", source, size)
            ctypes.memmove(int(target), int(source), size)

    def cuMemsetD8(self, target: Any, value: int, count: int) -> None:
        """Set bytes."""
        self._owner("cuMemsetD8", target, count)
        ctypes.memset(int(target), value, count)

    def cuMemcpyHtoDAsync(self, target: Any, source: Any, size: int, stream: Any) -> None:
        """Copy to the device."""
        self.cuMemcpyHtoD(target, source, size)

    def cuMemcpyDtoHAsync(self, target: Any, source: Any, size: int, stream: Any) -> None:
        """Copy from the device."""
        self.cuMemcpyDtoH(target, source, size)

    def cuMemcpyDtoDAsync(self, target: Any, source: Any, size: int, stream: Any) -> None:
        """Copy on the device."""
        self.cuMemcpyDtoD(target, source, size)

    def cuMemsetD8Async(self, target: Any, value: int, count: int, stream: Any) -> None:
        """Set bytes."""
        self.cuMemsetD8(target, value, count)

    # ------------------------------------------------------------------------------------------- streams, events

    def cuStreamCreate(self, flags: int) -> Any:
        """A new stream."""
        handle = next(self._handles)
        self._streams.add(handle)
        return self._binding.CUstream(handle)

    def cuStreamDestroy(self, stream: Any) -> None:
        """The end of it."""
        self._streams.discard(int(stream))

    def cuStreamSynchronize(self, stream: Any) -> None:
        """Nothing to wait for."""

    def cuStreamWaitEvent(self, stream: Any, event: Any, flags: int) -> None:
        """Nothing to wait for."""

    def cuEventCreate(self, flags: int) -> Any:
        """A new event."""
        handle = next(self._handles)
        self._events[handle] = Mark()
        if flags & int(self._binding.CUevent_flags.CU_EVENT_DISABLE_TIMING):
            self._untimed.add(handle)
        return self._binding.CUevent(handle)

    def _event(self, function: str, event: Any) -> Mark:
        mark = self._events.get(int(event))
        if mark is None:
            raise self._error(function, "CUDA_ERROR_INVALID_HANDLE")
        return mark

    def cuEventDestroy(self, event: Any) -> None:
        """The end of it."""
        self._event("cuEventDestroy", event)
        del self._events[int(event)]

    def cuEventRecord(self, event: Any, stream: Any) -> None:
        """Remember the present moment."""
        self._event("cuEventRecord", event).record()

    def cuEventQuery(self, event: Any) -> None:
        """All work is done."""
        self._event("cuEventQuery", event)

    def cuEventSynchronize(self, event: Any) -> None:
        """Nothing to wait for."""
        self._event("cuEventSynchronize", event)

    def cuEventElapsedTime(self, start: Any, end: Any) -> float:
        """Milliseconds of host time."""
        first, last = self._event("cuEventElapsedTime", start), self._event("cuEventElapsedTime", end)
        if first.moment is None or last.moment is None or {int(start), int(end)} & self._untimed:
            raise self._error("cuEventElapsedTime", "CUDA_ERROR_INVALID_HANDLE")
        return first.milliseconds_until(last)


# ------------------------------------------------------------------------------------------------- fresh memory

_intended = threading.local()


@contextlib.contextmanager
def elements_of(dtype: np.dtype[Any]) -> Iterator[None]:
    """Within the block, fresh memory is meant for elements of a type, by which reads before writes are known."""
    _intended.dtype = dtype if dtype.name in TRACKED else None
    try:
        yield
    finally:
        _intended.dtype = None


def _fresh(size: int) -> np.ndarray[Any, Any]:
    dtype = getattr(_intended, "dtype", None)
    if dtype is not None and size % dtype.itemsize == 0:
        return buffers.empty((size // dtype.itemsize,), dtype)
    return np.full(size, POISON, np.uint8)


def _at(address: int, size: int) -> np.ndarray[Any, Any]:
    """Host memory by its address; it lives as long as its owner does."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
