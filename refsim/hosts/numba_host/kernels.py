"""A kernel for one tuple of argument types: what numba's dispatcher makes, keeps and launches, run by the simulator."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from refsim.errors import KernelTypeError, UnsupportedError
from refsim.hosts.facts import Facts
from refsim.hosts.missing import NotSimulatedError
from refsim.hosts.numba_host.arguments import UNKNOWN, Arguments, kind_of
from refsim.hosts.numba_host.compiling import NO_COMPILER, NO_LINKER
from refsim.hosts.numba_host.raised import reraise
from refsim.hosts.numba_host.typing import numba_error, typed
from refsim.hosts.session import active_session
from refsim.simulator import compiled_for


class SimulatedKernel:
    """Stands where numba's dispatcher expects a compiled kernel.

    Parameters
    ----------
    py_func
        The Python function.
    argtypes
        numba's types of the arguments.
    **options
        numba's options of the compiler; those that choose how code is compiled have no effect.
    """

    def __init__(self, py_func: Any, argtypes: tuple[Any, ...], link: Any = None, device: bool = False, **options: Any):
        from numba.cuda import types
        from numba.cuda.typing import signature

        if device:
            raise RuntimeError("Cannot compile a device function as a kernel")
        if link:
            raise NotSimulatedError("argument 'link' of numba.cuda.jit()", NO_LINKER)
        self.py_func = py_func
        self.argtypes = self.argument_types = tuple(argtypes)
        self.signature = signature(types.none, *argtypes)
        self.extensions = options.get("extensions") or []
        self.debug = bool(options.get("debug"))
        _check_launch_bounds(options.get("launch_bounds"))
        self.objectmode = False
        self.entry_point = None
        self.target_context = None
        self.launch_config_sensitive = _compiled_as_sensitive()
        self._code: Any = None
        kinds = [UNKNOWN if self.extensions else kind_of(kind) for kind in argtypes]
        if UNKNOWN not in kinds:
            self._translate(tuple(kinds))

    def _translate(self, kinds: tuple[Any, ...]) -> None:
        try:
            self._code = compiled_for(self.py_func, kinds, active_session().device)
        except UnsupportedError as error:
            raise self._explained(error) from error

    def _explained(self, error: UnsupportedError) -> Exception:
        """numba's own error, where it has one; else the simulator's, as an error of types too if it is one."""
        own = numba_error(self.py_func, self.argtypes, self.debug)
        if own is not None:
            own.add_note(str(error))
            return own
        return _as_typing_error(error) if isinstance(error, KernelTypeError) else error

    def launch(self, args: Any, griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int = 0) -> None:
        """Run the kernel to its end."""
        arguments = Arguments(stream)
        passed = tuple(
            arguments.passed(kind, value, self.extensions)
            for kind, value in zip(self.argument_types, args, strict=True)
        )
        try:
            report = active_session().launch(self.py_func, griddim, blockdim, passed, sharedmem, self._library)
        except UnsupportedError as error:
            raise self._explained(error) from error
        arguments.finish()
        if self.debug:
            reraise(report)

    @property
    def _library(self) -> str | None:
        """The file of a kernel that numba brings itself, as for ``cuda.reduce``."""
        return self.py_func.__code__.co_filename if self.py_func.__module__ == "numba.cuda.kernels.reduction" else None

    def bind(self) -> None:
        """Nothing to load."""

    # ------------------------------------------------------------------------------------------- what it takes

    def _bytes(self, space: str) -> int:
        if self._code is None:
            raise NotSimulatedError(f"memory of {self.py_func.__name__}() before it was launched")
        program = self._code.program
        if space == "const":
            return sum(np.asarray(value).nbytes for value in program.constants.values())
        return sum(
            math.prod(allocation.shape) * np.dtype(allocation.dtype).itemsize
            for allocation in program.allocations
            if allocation.space == space and not allocation.dynamic
        )

    @property
    def shared_mem_per_block(self) -> int:
        """Bytes of the shared arrays of fixed size."""
        return self._bytes("shared")

    @property
    def local_mem_per_thread(self) -> int:
        """Bytes of the local arrays."""
        return self._bytes("local")

    @property
    def const_mem_size(self) -> int:
        """Bytes of the arrays in constant memory."""
        return self._bytes("const")

    @property
    def max_threads_per_block(self) -> int:
        """The device's limit; how many registers a thread takes is not known."""
        return active_session().device.max_threads_per_block

    def max_cooperative_grid_blocks(self, blockdim: Any, dynsmemsize: int = 0) -> int:
        """Blocks that are resident at the same time: an upper bound, for registers are not counted."""
        threads = math.prod(blockdim) if isinstance(blockdim, tuple) else blockdim
        facts = Facts(active_session().device)
        return facts.resident_blocks(threads, self.shared_mem_per_block + dynsmemsize) * facts.multiprocessors

    @property
    def _codelibrary(self) -> Any:
        return SimpleNamespace(get_cufunc=lambda: self)

    @property
    def type_annotation(self) -> Any:
        """The types of all variables, as numba's own type inference has them."""
        from numba.cuda import types

        return typed(self.py_func, types.void, self.argtypes, debug=self.debug).type_annotation

    _type_annotation = type_annotation

    def inspect_types(self, file: Any = None) -> None:
        """Print the source with numba's types."""
        print(f"{self.py_func.__name__} {self.argument_types}", file=file)
        print("-" * 80, file=file)
        print(self.type_annotation, file=file)
        print("=" * 80, file=file)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotSimulatedError(f"{name} of a numba.cuda kernel", NO_COMPILER)


def _as_typing_error(error: KernelTypeError) -> Exception:
    from numba.cuda.core.errors import TypingError

    class KernelTypingError(KernelTypeError, TypingError):  # type: ignore[misc]
        """A kernel that numba would not compile; numba's class of error too."""

        def __init__(self, text: str) -> None:
            Exception.__init__(self, text)
            self.what, self.place, self.msg, self.loc = error.what, error.place, text, None

        def __str__(self) -> str:
            return str(self.msg)

    return KernelTypingError(str(error))


def _check_launch_bounds(bounds: Any) -> None:
    if isinstance(bounds, tuple) and len(bounds) > 3:
        raise ValueError(
            f"Must specify either a scalar or a tuple of 1-3 launch bounds. Got {len(bounds)} launch bounds: {bounds}"
        )


def _compiled_as_sensitive() -> bool:
    """Whether the launch that asked for this kernel marked it as depending on its configuration."""
    from numba.cuda import launchconfig

    config = launchconfig.current_launch_config()
    return bool(config is not None and config._is_kernel_launch_config_sensitive())
