"""Devices of ``numba.cuda``: one, with the numbers of the simulated model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from refsim.hosts.facts import DEVICE_MEMORY, Facts
from refsim.hosts.missing import NotSimulatedError
from refsim.hosts.numba_host.streams import Stream, default_stream
from refsim.hosts.session import active_session


class MemoryInfo(NamedTuple):
    """Free and total bytes of device memory."""

    free: int
    total: int


class Device:
    """The simulated device; also the context manager that ``cuda.gpus[0]`` is."""

    id = 0
    KERNEL_EXEC_TIMEOUT = 0

    def __init__(self) -> None:
        model = active_session().device
        facts = Facts(model)
        self.name = facts.name
        self.compute_capability = facts.compute_capability
        self.uuid = "GPU-00000000-0000-0000-0000-000000000000"
        self.MAX_THREADS_PER_BLOCK = model.max_threads_per_block
        self.MAX_BLOCK_DIM_X, self.MAX_BLOCK_DIM_Y, self.MAX_BLOCK_DIM_Z = model.max_block
        self.MAX_GRID_DIM_X, self.MAX_GRID_DIM_Y, self.MAX_GRID_DIM_Z = model.max_grid
        self.MAX_SHARED_MEMORY_PER_BLOCK = model.shared_bytes_per_block
        self.MULTIPROCESSOR_COUNT = facts.multiprocessors
        self.WARP_SIZE = model.warp_size

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotSimulatedError(f"{name} of a numba.cuda device")

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_error: Any) -> None:
        return None

    def reset(self) -> None:
        """Nothing to reset."""

    def get_primary_context(self) -> Context:
        """The one context."""
        return Context()


class Context:
    """The one context of the device."""

    @property
    def device(self) -> Device:
        """The device."""
        return Device()

    def get_memory_info(self) -> MemoryInfo:
        """Free and total bytes; nothing is counted."""
        return MemoryInfo(DEVICE_MEMORY, DEVICE_MEMORY)

    def get_default_stream(self) -> Stream:
        """The default stream."""
        return default_stream()

    def create_stream(self) -> Stream:
        """A new stream."""
        return Stream()

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def reset(self) -> None:
        """Nothing to reset."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotSimulatedError(f"{name} of a numba.cuda context")


class DeviceList:
    """``cuda.gpus``: a list of one."""

    @property
    def lst(self) -> list[Device]:
        """The devices."""
        return [Device()]

    @property
    def current(self) -> Device:
        """The device."""
        return Device()

    def __getitem__(self, number: Any) -> Any:
        return self.lst[number]

    def __iter__(self) -> Iterator[Device]:
        return iter(self.lst)

    def __len__(self) -> int:
        return 1

    def __str__(self) -> str:
        return "<Managed Device 0>"


gpus = DeviceList()


def list_devices() -> DeviceList:
    """All devices."""
    return gpus


def get_current_device() -> Device:
    """The device."""
    return Device()


def current_context(devnum: int | None = None) -> Context:
    """The one context."""
    return Context()


def select_device(device_id: int) -> Device:
    """The device with a number; there is only 0.

    Raises
    ------
    IndexError
        For another number.
    """
    if device_id != 0:
        raise IndexError(f"device {device_id} does not exist: one device is simulated, number 0")
    return Device()


def close() -> None:
    """Nothing to close."""


def is_available() -> bool:
    """True: the simulator is there."""
    return True


def is_supported_version() -> bool:
    """True."""
    return True


def cuda_error() -> None:
    """None: there was no error."""


def is_float16_supported() -> bool:
    """True."""
    return True


def detect() -> bool:
    """Print the device; True."""
    device = Device()
    print("Found 1 CUDA devices")
    print(f"id {device.id}    {device.name:>20} {'[SUPPORTED]':>40}")
    print(f"{'Compute Capability':>40}: {device.compute_capability[0]}.{device.compute_capability[1]}")
    print("Summary:")
    print("\t1/1 devices are supported")
    return True


@contextlib.contextmanager
def defer_cleanup() -> Iterator[None]:
    """Nothing is cleaned up late or early."""
    yield


def profile_start() -> None:
    """No profiler listens."""


def profile_stop() -> None:
    """No profiler listens."""


@contextlib.contextmanager
def profiling() -> Iterator[None]:
    """No profiler listens."""
    yield
