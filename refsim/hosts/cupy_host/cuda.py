"""``cupy.cuda``: one device, streams in order, events in host time, and a memory pool that holds nothing back."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from refsim.hosts.clock import Mark
from refsim.hosts.cupy_host.modules import HostModule
from refsim.hosts.cupy_host.pointers import MemoryPointer
from refsim.hosts.facts import CUDA_VERSION, DEVICE_MEMORY, Facts
from refsim.hosts.memory import POISON
from refsim.hosts.missing import NotSimulatedError
from refsim.hosts.session import active_session

_pointers = itertools.count(3)


class CUDARuntimeError(RuntimeError):
    """As `cupy.cuda.runtime.CUDARuntimeError`."""


class Device:
    """The simulated device; a context manager, as CuPy's."""

    id: int

    def __init__(self, device: int | Device | None = None) -> None:
        number = device.id if isinstance(device, Device) else device or 0
        if number != 0:
            raise CUDARuntimeError(f"cudaErrorInvalidDevice: device {number}; one device is simulated, number 0")
        self.id = number

    @property
    def compute_capability(self) -> str:
        """Major and minor number without a point: ``"90"``."""
        return "".join(str(part) for part in Facts(active_session().device).compute_capability)

    @property
    def attributes(self) -> dict[str, int]:
        """Numbers of the device model, by CUDA's names."""
        model = active_session().device
        return {
            "MaxThreadsPerBlock": model.max_threads_per_block,
            **{f"MaxBlockDim{axis}": size for axis, size in zip("XYZ", model.max_block, strict=True)},
            **{f"MaxGridDim{axis}": size for axis, size in zip("XYZ", model.max_grid, strict=True)},
            "MaxSharedMemoryPerBlockOptin": model.shared_bytes_per_block,
            "WarpSize": model.warp_size,
            "MultiProcessorCount": Facts(model).multiprocessors,
        }

    @property
    def mem_info(self) -> tuple[int, int]:
        """Free and total bytes."""
        return DEVICE_MEMORY, DEVICE_MEMORY

    @property
    def pci_bus_id(self) -> str:
        """An address that no device has."""
        return "0000:00:00.0"

    def use(self) -> None:
        """There is only this device."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_error: Any) -> None:
        return None

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return "<CUDA Device 0>"


class Event:
    """A point in a stream; times are host times."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self.disable_timing = disable_timing
        self._mark = Mark()

    @property
    def done(self) -> bool:
        """True: all work is done."""
        return True

    def record(self, stream: Any = None) -> None:
        """Remember the present moment."""
        self._mark.record()

    def synchronize(self) -> None:
        """Nothing to wait for."""


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Milliseconds of host time between two events."""
    if start_event.disable_timing or end_event.disable_timing:
        raise CUDARuntimeError("cudaErrorInvalidResourceHandle: events were created with disable_timing=True")
    return start_event._mark.milliseconds_until(end_event._mark)


class Stream:
    """A stream; what is enqueued is done at once."""

    null: Stream
    ptds: Stream
    _current: list[Stream]

    def __init__(
        self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: int | None = None
    ) -> None:
        self.ptr = 0 if null else 2 if ptds else next(_pointers)

    @property
    def done(self) -> bool:
        """True: all work is done."""
        return True

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def use(self) -> Stream:
        """Make this the current stream."""
        Stream._current[-1] = self
        return self

    def record(self, event: Event | None = None) -> Event:
        """Record an event, a new one if none is given."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Nothing to wait for."""

    def add_callback(self, callback: Callable[[Stream, int, Any], None], arg: Any) -> None:
        """Call ``callback(stream, 0, arg)``: the stream is idle."""
        callback(self, 0, arg)

    def launch_host_func(self, callback: Callable[[Any], None], arg: Any) -> None:
        """Call ``callback(arg)``: the stream is idle."""
        callback(arg)

    def __enter__(self) -> Stream:
        Stream._current.append(self)
        return self

    def __exit__(self, *_error: Any) -> None:
        Stream._current.pop()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotSimulatedError(f"cupy.cuda.Stream.{name}")


Stream.null = Stream(null=True)
Stream.ptds = Stream(ptds=True)
Stream._current = [Stream.null]


class ExternalStream(Stream):
    """A stream that another library made."""

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        super().__init__()
        self.ptr = ptr


def get_current_stream(device_id: int | None = None) -> Stream:
    """The stream of the innermost ``with``, or the one last used."""
    return Stream._current[-1]


class MemoryPool:
    """A pool that allocates nothing: arrays are NumPy's, and freed when they are forgotten."""

    def used_bytes(self) -> int:
        """0: nothing is counted."""
        return 0

    def free_bytes(self) -> int:
        """0: nothing is held back."""
        return 0

    def total_bytes(self) -> int:
        """0: nothing is held back."""
        return 0

    def n_free_blocks(self) -> int:
        """0: nothing is held back."""
        return 0

    def free_all_blocks(self, stream: Any = None) -> None:
        """Nothing to free."""

    def free_all_free(self) -> None:
        """Nothing to free."""

    def get_limit(self) -> int:
        """0: no limit."""
        return 0

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Refused, since nothing would keep to it."""
        raise NotSimulatedError("cupy.cuda.MemoryPool.set_limit")

    def malloc(self, size: int) -> MemoryPointer:
        """So many bytes of device memory, poisoned."""
        return alloc(size)


def alloc(size: int) -> MemoryPointer:
    """So many bytes of device memory, poisoned."""
    return MemoryPointer(np.full(max(size, 1), POISON, np.uint8))


_POOL = MemoryPool()


def get_default_memory_pool() -> MemoryPool:
    """The pool of device memory."""
    return _POOL


def get_default_pinned_memory_pool() -> MemoryPool:
    """The pool of pinned memory."""
    return _POOL


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """No profiler listens."""
    yield


def _properties(device: int = 0) -> dict[str, Any]:
    """``getDeviceProperties``."""
    model = active_session().device
    facts = Facts(model)
    major, minor = facts.compute_capability
    return {
        "name": facts.name.encode(), "major": major, "minor": minor, "warpSize": model.warp_size,
        "multiProcessorCount": facts.multiprocessors, "maxThreadsPerBlock": model.max_threads_per_block,
        "maxThreadsDim": model.max_block, "maxGridSize": model.max_grid,
        "sharedMemPerBlock": min(model.shared_bytes_per_block, 48 * 1024) if not facts.is_hip
        else model.shared_bytes_per_block,
        "sharedMemPerBlockOptin": model.shared_bytes_per_block, "totalGlobalMem": DEVICE_MEMORY,
        **({"gcnArchName": model.name.encode()} if facts.is_hip else {}),
    }  # fmt: skip


def _set_device(device: int) -> None:
    Device(device)


def _nothing(*_args: Any) -> None:
    """Nothing to wait for, and nobody listens."""


def _runtime() -> HostModule:
    facts = Facts(active_session().device)
    members = {
        "getDeviceCount": lambda: 1, "getDevice": lambda: 0, "setDevice": _set_device,
        "getDeviceProperties": _properties, "deviceSynchronize": _nothing, "streamSynchronize": _nothing,
        "runtimeGetVersion": lambda: CUDA_VERSION, "driverGetVersion": lambda: CUDA_VERSION,
        "memGetInfo": lambda: (DEVICE_MEMORY, DEVICE_MEMORY), "is_hip": facts.is_hip,
        "CUDARuntimeError": CUDARuntimeError,
    }  # fmt: skip
    return HostModule("cupy.cuda.runtime", "The runtime of a simulated device.", members)


def cuda_module() -> HostModule:
    """``cupy.cuda``."""
    from refsim.hosts.cupy_host.raw import Function, RawKernel, RawModule

    nvtx = {"RangePush": _nothing, "RangePop": _nothing, "Mark": _nothing}
    members = {
        "Device": Device, "Event": Event, "Stream": Stream, "ExternalStream": ExternalStream,
        "get_current_stream": get_current_stream, "get_elapsed_time": get_elapsed_time, "MemoryPool": MemoryPool,
        "MemoryPointer": MemoryPointer, "PinnedMemoryPool": MemoryPool, "is_available": lambda: True,
        "get_device_id": lambda: 0, "profile": profile, "runtime": _runtime(), "Function": Function,
        "RawKernel": RawKernel, "RawModule": RawModule,
        "alloc": alloc,
        "nvtx": HostModule("cupy.cuda.nvtx", "Ranges that nobody records.", nvtx),
    }  # fmt: skip
    return HostModule("cupy.cuda", "The simulated device.", members)
