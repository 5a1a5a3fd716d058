"""Puts the simulated driver under numba's own host code, and stand-ins where that code reaches for a compiler."""

from __future__ import annotations

import contextlib
import importlib
import os
import types
from collections.abc import Iterator
from typing import Any

from refsim.hosts.missing import NotSimulatedError, refuse
from refsim.hosts.numba_host import arrays, devices, kernels, streams, typing
from refsim.hosts.numba_host.compiling import NO_LINKER
from refsim.hosts.numba_host.driver import RELEASES, simulated_driver


def _replacements(cuda: types.ModuleType) -> list[tuple[str, str, Any]]:
    """Module or class below numba.cuda, name in it, stand-in. ``cuda`` is the module that scripts see."""
    api = importlib.import_module("numba.cuda.api")
    return [
        ("cudadrv.driver", "Device", devices.device_class()),
        ("cudadrv.driver:Stream", "add_callback", streams.add_callback),
        ("cudadrv.driver:Stream", "__int__", streams.number),
        ("cudadrv.driver:Driver", "__getattr__", _refuse),
        ("cudadrv.driver:Context", "create_module_ptx", refuse("numba.cuda Context.create_module_ptx", NO_LINKER)),
        ("cudadrv.driver", "load_module_image", refuse("numba.cuda.cudadrv.driver.load_module_image", NO_LINKER)),
        ("cudadrv.driver", "Linker", refuse("cuda.core.Linker", NO_LINKER)),
        ("cudadrv.driver", "_Linker", refuse("numba.cuda.cudadrv.driver._Linker", NO_LINKER)),
        ("cudadrv.driver", "_have_nvjitlink", _no_linker),
        ("decorators", "_have_nvjitlink", _no_linker),
        ("cudadrv.devicearray", "_assign_kernel", arrays.Assignment),
        ("api", "device_array", arrays.device_array),
        ("api", "mapped_array", arrays.typed(api.mapped_array)),
        ("api", "managed_array", arrays.typed(api.managed_array)),
        ("api", "detect", devices.detect),
        ("dispatcher", "_Kernel", kernels.SimulatedKernel),
        ("dispatcher", "compile_cuda", typing.typed),
        ("dispatcher:CUDADispatcher", "enable_caching", _no_cache),
        ("cudadrv.driver", "_to_core_stream", streams.core_stream),
        ("cudadrv.driver:Context", "get_max_potential_block_size", devices.max_potential_block_size),
        ("vectorizers", "cuda", cuda),
        ("kernels.transpose", "cuda", cuda),
    ]


# Warnings of numba about speed on a GPU, which say nothing here; an environment variable switches them on.
_QUIET = ("CUDA_LOW_OCCUPANCY_WARNINGS", "CUDA_WARN_ON_IMPLICIT_COPY")


def _no_linker() -> bool:
    """Nothing is linked."""
    return False


def _no_cache(_dispatcher: Any) -> None:
    """Nothing is compiled, so nothing is kept in files."""


def _refuse(_driver: Any, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotSimulatedError(f"{name} of the CUDA driver")


@contextlib.contextmanager
def submodules(cuda: types.ModuleType) -> Iterator[None]:
    """Within the block, numba's host code works without a GPU."""
    from numba.cuda.core import config
    from numba.cuda.cudadrv import devices as runtime
    from numba.cuda.cudadrv import driver as driver_module

    driver = driver_module.driver
    if not hasattr(driver_module, "_logger"):
        driver_module._logger = driver_module.make_logger()
    with contextlib.ExitStack() as stack:
        for path, name, value in _replacements(cuda):
            module, _, inner = path.partition(":")
            target: Any = importlib.import_module(f"numba.cuda.{module}")
            stack.enter_context(_set(getattr(target, inner) if inner else target, name, value))
        simulated = simulated_driver()
        for name in dir(simulated):
            if name.startswith("cu") and name not in RELEASES:
                stack.enter_context(_set(driver, name, getattr(simulated, name)))
        for name in RELEASES:
            if not hasattr(vars(driver).get(name), "simulated"):
                setattr(driver, name, _release(driver, simulated, name, driver.initialization_error is None))
        stack.enter_context(_set(driver, "is_initialized", True))
        stack.enter_context(_set(driver, "initialization_error", None))
        stack.enter_context(_set(driver, "devices", {}))
        stack.enter_context(_set(runtime._runtime, "_tls", type(runtime._runtime._tls)()))
        for switch in _QUIET:
            if f"NUMBA_{switch}" not in os.environ:
                stack.enter_context(_set(config, switch, 0))
        runtime._DeviceList.lst.fget.cache_clear()
        stack.callback(runtime._DeviceList.lst.fget.cache_clear)
        yield


def _release(driver: Any, simulated: Any, name: str, real: bool) -> Any:
    """Releases what is simulated; anything else by the real driver, if there is one."""

    def release(handle: Any) -> Any:
        if simulated.owns(handle) or not real:
            return getattr(simulated, name)(handle)
        return driver._cuda_python_wrap_fn(name)(handle)

    release.simulated = True  # type: ignore[attr-defined]
    release.__name__ = name
    return release


@contextlib.contextmanager
def _set(target: Any, name: str, value: Any) -> Iterator[None]:
    had, before = name in vars(target), vars(target).get(name)
    setattr(target, name, value)
    try:
        yield
    finally:
        if had:
            setattr(target, name, before)
        else:
            delattr(target, name)
