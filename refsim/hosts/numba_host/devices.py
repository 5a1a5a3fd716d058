"""The device and the switches of ``numba.cuda`` that need no driver: one device, with the numbers of its model."""

from __future__ import annotations

from functools import cache
from typing import Any

from refsim.hosts.facts import Facts
from refsim.hosts.numba_host.driver import CONTEXT
from refsim.hosts.session import active_session


@cache
def device_class() -> type[Any]:
    """numba's device, without cuda.core beneath it."""
    from cuda.bindings import driver as binding
    from numba.cuda.cudadrv import driver

    class SimulatedDevice(driver.Device):  # type: ignore[misc]
        """The simulated device as numba's host code sees it."""

        def __init__(self, number: int) -> None:
            facts = Facts(active_session().device)
            self.id = number
            self.compute_capability = facts.compute_capability
            self.name = facts.name
            self.uuid = "GPU-00000000-0000-0000-0000-000000000000"
            self.primary_context = None

        def get_primary_context(self) -> Any:
            """The one context."""
            import weakref

            if self.primary_context is None:
                self.primary_context = driver.Context(weakref.proxy(self), binding.CUcontext(CONTEXT))
            return self.primary_context

    return SimulatedDevice


def max_potential_block_size(_context: Any, **_options: Any) -> tuple[Any, int]:
    """As many threads as the device allows: what numba 0.30 takes for ``forall`` without a block size."""
    return None, active_session().device.max_threads_per_block


def is_available() -> bool:
    """True: the simulator is there."""
    return True


def is_supported_version() -> bool:
    """True."""
    return True


def cuda_error() -> None:
    """None: there was no error."""


def detect() -> bool:
    """Print the device; True."""
    from numba.cuda import api

    device = api.get_current_device()
    print("Found 1 CUDA devices")
    print(f"id {device.id}    {device.name:>20} {'[SUPPORTED]':>40}")
    print(f"{'Compute Capability':>40}: {device.compute_capability[0]}.{device.compute_capability[1]}")
    print("Summary:")
    print("\t1/1 devices are supported")
    return True
