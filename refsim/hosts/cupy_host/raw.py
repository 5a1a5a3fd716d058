"""``cupy.RawKernel`` and ``cupy.RawModule``: refsim's own, launched in the session of the script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from refsim.hosts.cupy_host.origin import with_origin
from refsim.hosts.cupy_host.pointers import MemoryPointer
from refsim.hosts.facts import Facts
from refsim.hosts.memory import device_view
from refsim.hosts.missing import NotSimulatedError
from refsim.hosts.session import active_session

DEFAULT_SHARED_BYTES = 48 * 1024  # of a CUDA device, without opting in


def argument(value: Any, position: int) -> Any:
    """What a script passes to a raw kernel, as device memory or as a number.

    Raises
    ------
    TypeError
        For a NumPy array of several elements: it is not on the device.
    """
    view = device_view(value)
    if view is not None:
        return view
    if isinstance(value, np.ndarray):
        if value.size != 1:
            raise TypeError(f"argument {position} is a numpy.ndarray; a kernel takes device arrays: use cupy.asarray()")
        return value.reshape(())[()]
    return np.complex128(value) if isinstance(value, complex) and not isinstance(value, np.generic) else value


def real_pairs(value: Any) -> Any:
    """A complex array as the pairs of numbers that it consists of."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "c":
        return value
    part = np.dtype(f"f{value.dtype.itemsize // 2}")
    return np.lib.stride_tricks.as_strided(value.real, (*value.shape, 2), (*value.strides, part.itemsize))


class Function:
    """A kernel to be called as ``kernel(grid, block, args, shared_mem=0)``.

    Attributes
    ----------
    max_dynamic_shared_size_bytes
        Dynamic shared memory that a launch may ask for. As on a CUDA device, more than 48 KiB must be set first.
    """

    def __init__(self, kernel: Any, name: str) -> None:
        facts = Facts(active_session().device)
        self.kernel = kernel
        self.name = name
        limit = facts.model.shared_bytes_per_block
        self.max_dynamic_shared_size_bytes = limit if facts.is_hip else min(limit, DEFAULT_SHARED_BYTES)

    def __call__(
        self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, stream: Any = None,
        enable_cooperative_groups: bool = False,
    ) -> None:  # fmt: skip
        if shared_mem > self.max_dynamic_shared_size_bytes:
            raise RuntimeError(
                f"CUDA_ERROR_INVALID_VALUE: {self.name} asks for {shared_mem} bytes of dynamic shared memory and "
                f"may have {self.max_dynamic_shared_size_bytes}; set kernel.max_dynamic_shared_size_bytes first"
            )
        values = tuple(real_pairs(argument(arg, position)) for position, arg in enumerate(args))
        active_session().launch(self.kernel, _extents(grid), _extents(block), values, int(shared_mem))

    def compile(self, log_stream: Any = None) -> None:
        """Nothing to compile: kernels are translated when they are launched."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotSimulatedError(f"{name} of a cupy.RawKernel")


def _extents(size: Any) -> Any:
    return tuple(size) if isinstance(size, (tuple, list)) else size


class RawKernel(Function):
    """A kernel in CUDA C++.

    Parameters
    ----------
    code, name, options
        Source, name of the kernel, and options as NVRTC takes them.
    backend, translate_cucomplex, enable_cooperative_groups, jitify
        Have no effect on the simulator.
    """

    def __init__(
        self, code: str, name: str, options: tuple[str, ...] = (), backend: str = "nvrtc",
        translate_cucomplex: bool = False, *, enable_cooperative_groups: bool = False, jitify: bool = False,
    ) -> None:  # fmt: skip
        import refsim

        super().__init__(refsim.RawKernel(with_origin(code), name, options=tuple(options)), name)
        self.code = code
        self.options = options
        self.backend = backend


class RawModule:
    """A module in CUDA C++.

    Parameters
    ----------
    code, path, options, name_expressions
        Source or its file, options as NVRTC takes them, and the template instantiations that `get_function` may name.
    """

    def __init__(
        self, *, code: str | None = None, path: str | None = None, options: tuple[str, ...] = (),
        backend: str = "nvrtc", translate_cucomplex: bool = False, enable_cooperative_groups: bool = False,
        name_expressions: Any = None, jitify: bool = False,
    ) -> None:  # fmt: skip
        import refsim

        if (code is None) == (path is None):
            raise TypeError("Exactly one of `code` and `path` keyword arguments must be given.")
        if path is not None and not str(path).endswith((".cu", ".cuh", ".cpp", ".hip")):
            raise NotSimulatedError(f"cupy.RawModule(path={str(path)!r})", "compiled code needs a GPU; give the source")
        self.code: str = str(code) if path is None else Path(path).read_text(encoding="utf-8")
        self.options = options
        self.name_expressions = name_expressions
        self.module = refsim.RawModule(
            code=with_origin(self.code) if path is None else self.code,
            options=tuple(options),
            name_expressions=tuple(name_expressions or ()),
            file=None if path is None else str(path),
        )

    def get_function(self, name: str) -> Function:
        """A kernel of the module, by name or name expression."""
        return Function(self.module.get_function(name), name)

    def compile(self, log_stream: Any = None) -> None:
        """Nothing to compile: kernels are translated when they are launched."""

    def get_global(self, name: str) -> MemoryPointer:
        """Address of a ``__device__`` or ``__constant__`` variable of the module."""
        return MemoryPointer.of(self.module.get_global(name))
