"""Kernels of ``numba.cuda``: what `jit` returns, and how a launch passes its arguments to the simulator."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from refsim.frontends.numba_names import python_function
from refsim.hosts.memory import device_view, uninitialized
from refsim.hosts.missing import NotSimulatedError
from refsim.hosts.numba_host.raised import reraise
from refsim.hosts.numba_host.signatures import Signature, converted, is_signature, signature_of
from refsim.hosts.session import active_session

FORALL_THREADS = 256
# Options that choose how code is compiled, not what it does.
COMPILER_OPTIONS = frozenset(
    ["inline", "forceinline", "debug", "opt", "lineinfo", "cache", "fastmath", "max_registers", "launch_bounds", "lto",
     "shared_memory_carveout", "nopython", "boundscheck", "nogil"]
)  # fmt: skip
UNCONFIGURED = (
    "Kernel launch configuration was not specified. Use the syntax:\n\n"
    "kernel_function[blockspergrid, threadsperblock](arg0, arg1, ..., argn)"
)


class ArgHint:
    """An argument of a launch, with the directions in which it is copied."""

    copies_in = True
    copies_out = True

    def __init__(self, value: Any) -> None:
        self.value = value


class In(ArgHint):
    """A host array that is copied to the device before the launch only."""

    copies_out = False


class Out(ArgHint):
    """A host array that is copied from the device after the launch only: it starts uninitialised."""

    copies_in = False


class InOut(ArgHint):
    """A host array that is copied both ways; what a plain host array means."""


class Dispatcher:
    """A function that `jit` decorated: a kernel to be launched as ``kernel[grid, block, stream, shared](...)``,
    or a device function."""

    def __init__(
        self, function: types.FunctionType, signatures: list[Signature], device: bool, debug: bool = False
    ) -> None:
        self.py_func = function
        self.signatures = signatures
        self.device = device
        self.debug = debug
        functools.update_wrapper(self, function)

    def __getitem__(self, configuration: Any) -> Launch:
        parts = configuration if isinstance(configuration, tuple) else (configuration,)
        if not 2 <= len(parts) <= 4:
            raise ValueError("must specify at least the griddim and blockdim")
        return self.configure(*parts)

    def configure(self, griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int = 0) -> Launch:
        """Bind grid, block, stream and bytes of dynamic shared memory."""
        if self.device:
            raise TypeError(f"{self.__name__}() is a device function (device=True) and cannot be launched")
        return Launch(self, griddim, blockdim, operator.index(sharedmem))

    def forall(self, ntasks: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0) -> Callable[..., None]:
        """A launch with at least ``ntasks`` threads along x, ``tpb`` per block (256 if it is 0)."""
        if ntasks < 0:
            raise ValueError(f"Can't create ForAll with negative task count: {ntasks}")
        if ntasks == 0:
            return lambda *_args: None
        block = tpb or min(FORALL_THREADS, active_session().device.max_threads_per_block)
        return self.configure(-(-ntasks // block), block, stream, sharedmem)

    def specialize(self, *_args: Any) -> Dispatcher:
        """The same kernel: the simulator specialises when it launches."""
        return self

    @property
    def specialized(self) -> bool:
        """Whether the kernel was declared with one signature."""
        return len(self.signatures) == 1

    def __call__(self, *_args: Any, **_keywords: Any) -> Any:
        if self.device:
            raise NotSimulatedError(f"calling device function {self.__name__}() from the host")
        raise ValueError(UNCONFIGURED)

    __name__: str

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotSimulatedError(f"{name} of a numba.cuda kernel")


class Launch:
    """A kernel with grid and block, ready to be called."""

    def __init__(self, dispatcher: Dispatcher, grid: Any, block: Any, shared_bytes: int) -> None:
        self.dispatcher = dispatcher
        self.grid = grid
        self.block = block
        self.shared_bytes = shared_bytes

    def __call__(self, *args: Any) -> None:
        values = tuple(arg.value if isinstance(arg, ArgHint) else arg for arg in args)
        if self.dispatcher.signatures:
            scalars = converted(self.dispatcher.__name__, self.dispatcher.signatures, values)
            args = tuple(arg if isinstance(arg, ArgHint) else scalar for arg, scalar in zip(args, scalars, strict=True))
        copies: list[tuple[Any, Any]] = []
        passed = tuple(_passed(arg, copies) for arg in args)
        session = active_session()
        report = session.launch(self.dispatcher, self.grid, self.block, passed, self.shared_bytes)
        for device, host in copies:
            _copy_back(device, host)
        if self.dispatcher.debug:
            reraise(report)


def _passed(arg: Any, copies: list[tuple[Any, Any]]) -> Any:
    """What the simulator takes for an argument; host arrays become copies, as on a GPU."""
    hint = arg if isinstance(arg, ArgHint) else InOut(arg)
    value = hint.value
    view = device_view(value)
    if view is not None:
        return view
    if isinstance(value, tuple):
        items = [_passed(item, copies) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, np.void) and value.dtype.names is not None:
        record = np.array(value)
        if hint.copies_out:
            copies.append((record, value))
        return record
    if not isinstance(value, np.ndarray):
        return value
    if hint.copies_in:
        device = np.array(value, copy=True, order="K")
    else:
        fortran = value.flags.f_contiguous and not value.flags.c_contiguous
        device = uninitialized(value.shape, value.dtype, "F" if fortran else "C")
    if hint.copies_out:
        copies.append((device, value))
    return device


def _copy_back(device: Any, host: Any) -> None:
    if isinstance(host, np.void):
        for name in host.dtype.names or ():
            host[name] = device[name]
    elif host.flags.writeable:
        np.copyto(host, device)
    elif device.tobytes() != np.array(host, copy=True, order="K").tobytes():
        raise ValueError("a kernel wrote to a host array that is read-only")


def jit(func_or_sig: Any = None, device: bool = False, link: Any = (), **options: Any) -> Any:
    """Make a kernel or, with ``device=True``, a device function; nothing is compiled.

    Parameters
    ----------
    func_or_sig
        The function; or a signature or a list of them, to which arguments of launches are converted.
    device
        Whether it is a device function.
    link
        Not simulated: foreign code.
    **options
        Options of the compiler have no effect, but for ``debug``: exceptions of the kernel are raised on the host.

    Raises
    ------
    NotSimulatedError
        For linked code, and for an option that refsim does not know.
    """
    if link:
        raise NotSimulatedError("argument 'link' of numba.cuda.jit()", "foreign device code cannot run without a GPU")
    for name in options:
        if name not in COMPILER_OPTIONS:
            raise NotSimulatedError(f"argument {name!r} of numba.cuda.jit()")
    debug = bool(options.get("debug"))
    if func_or_sig is None:
        return lambda function: _dispatcher(function, [], device, debug)
    if is_signature(func_or_sig) or isinstance(func_or_sig, list):
        given = func_or_sig if isinstance(func_or_sig, list) else [func_or_sig]
        signatures = [signature_of(signature, device) for signature in given]
        return lambda function: _dispatcher(function, signatures, device, debug)
    return _dispatcher(func_or_sig, [], device, debug)


def _dispatcher(function: Any, signatures: list[Signature], device: bool, debug: bool) -> Dispatcher:
    inner = python_function(function)
    if inner is None:
        raise TypeError(f"numba.cuda.jit() takes a Python function, not {function!r}")
    for signature in signatures:
        if len(signature.args) != inner.__code__.co_argcount:
            raise TypeError(
                f"the signature {signature} has {len(signature.args)} arguments; "
                f"{inner.__name__}() takes {inner.__code__.co_argcount}"
            )
    return Dispatcher(inner, signatures, device, debug)
