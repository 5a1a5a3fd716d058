"""NumPy arrays as JAX's and back, with 64-bit types only while one is judged; and functions under ``jax.jit``."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from oracle.operator import find_operator
from refsim.conformance.backends.backend import UsageError
from refsim.conformance.backends.library import Inputs, Served, not_installed

try:
    import jax
except ImportError as error:
    raise not_installed("JAX", "python -m pip install 'refsim[jax]'", error) from error


class JaxArrays:
    """Arrays on one of JAX's devices; every input is copied, so any layout is served."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        kind, _, number = device.partition(":")
        try:
            self.place = jax.devices("gpu" if kind == "cuda" else kind)[int(number or 0)]
        except (RuntimeError, IndexError) as error:
            raise UsageError(f"device {device!r} cannot be used by JAX: {error}") from error

    def on(self, device: str) -> JaxArrays:
        """Arrays on another device."""
        return JaxArrays(device)

    @contextlib.contextmanager
    def scope(self, inputs: Inputs) -> Iterator[None]:
        """64-bit types exist while an input is float64, and nowhere else."""
        wide = any(array is not None and array.dtype == np.float64 for array in inputs.values())
        with jax.enable_x64(wide), jax.default_device(self.place):
            yield

    def load(self, array: np.ndarray[Any, Any]) -> Any:
        """A copy on the device; integers of 64 bits become 32 bits wide where 64-bit types are off."""
        return jax.device_put(np.array(array), self.place)

    def store(self, output: Any) -> Any:
        """A copy on the host."""
        return np.array(output) if isinstance(output, jax.Array) else output


def jitted(row: Served) -> Callable[..., Any]:
    """A function under ``jax.jit``, the operator's parameters static."""
    params = set(inspect.signature(row.call).parameters) & set(find_operator(row.operator).params)
    compiled: Callable[..., Any] = jax.jit(row.call, static_argnames=sorted(params))
    return compiled
