"""Arguments of a launch: from numba's types to the simulator's, and from host arrays to copies on the device."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from refsim.dialect import ITEM_BYTES, ArrayType, dtype_name, numpy_dtype
from refsim.frontends.numba_names import scalar_type
from refsim.hosts.memory import allocated, device_view, uninitialized

UNKNOWN = object()


def kind_of(numba_type: Any) -> Any:
    """The simulator's type of a parameter; `UNKNOWN` if only the argument itself can tell."""
    from numba.cuda import types

    if isinstance(numba_type, types.Array):
        dtype = scalar_type(numba_type.dtype)
        return ArrayType(dtype, numba_type.ndim) if dtype in ITEM_BYTES else UNKNOWN
    if isinstance(numba_type, types.NoneType):
        return None
    if isinstance(numba_type, types.BaseTuple) and not isinstance(numba_type, types.BaseNamedTuple):
        kinds = tuple(kind_of(item) for item in numba_type)
        return UNKNOWN if UNKNOWN in kinds else kinds
    name = scalar_type(numba_type)
    return UNKNOWN if name is None else name


class Arguments:
    """The arguments of one launch, as the simulator takes them."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self._copies: list[tuple[Any, Any]] = []
        self._after: list[Any] = []

    def passed(self, numba_type: Any, value: Any, extensions: list[Any]) -> Any:
        """What the simulator takes for an argument of a type.

        Raises
        ------
        NotImplementedError, TypeError
            Where numba cannot pass such an argument.
        """
        from numba.cuda import types

        for extension in reversed(extensions):
            numba_type, value = extension.prepare_args(numba_type, value, stream=self.stream, retr=self._after)
        if isinstance(numba_type, types.Array):
            return _as_declared(numba_type, self._array(value))
        if isinstance(numba_type, types.Record):
            return self._record(value)
        if isinstance(numba_type, types.BaseTuple):
            items = [self.passed(kind, item, extensions) for kind, item in zip(numba_type, value, strict=True)]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if isinstance(numba_type, types.EnumMember):
            return self.passed(numba_type.dtype, value.value, extensions)
        return _scalar(numba_type, value)

    def _array(self, value: Any) -> Any:
        from numba.cuda.args import In, InOut, Out
        from numba.cuda.cudadrv.devicearray import auto_device, sentry_contiguous

        hint = value if isinstance(value, (In, Out, InOut)) else InOut(value)
        inner = hint.value
        if not hasattr(inner, "__refsim_array__") and not getattr(inner, "__cuda_memory__", False):
            if hasattr(inner, "__cuda_array_interface__"):
                inner = auto_device(inner, stream=self.stream)[0]
            else:
                inner = _host_array(inner)
        view = device_view(inner)
        if view is not None:
            return view
        sentry_contiguous(inner)
        warn_of_copy()
        copies_in = isinstance(hint, (In, InOut))
        if copies_in:
            device = allocated(np.array(inner, copy=True, order="K"))
        else:
            fortran = inner.flags.f_contiguous and not inner.flags.c_contiguous
            device = uninitialized(inner.shape, inner.dtype, "F" if fortran else "C")
        if isinstance(hint, Out):
            self._copies.append((device, inner))
        return device

    def _record(self, value: Any) -> Any:
        from numba.cuda.args import ArgHint, In

        inner = value.value if isinstance(value, ArgHint) else value
        view = device_view(inner)
        if view is not None:
            return view
        device = np.array(inner, copy=True)
        if not isinstance(value, In):
            self._copies.append((device, inner))
        return device

    def finish(self) -> None:
        """After the launch: copy back what the kernel may have written."""
        for device, host in self._copies:
            _copy_back(device, host)
        for action in self._after:
            action()


def _as_declared(numba_type: Any, array: Any) -> Any:
    """The array as the kernel takes it; one that a kernel with an explicit signature would misread is refused."""
    declared = kind_of(numba_type)
    if not isinstance(declared, ArrayType) or not isinstance(array, np.ndarray):
        return array
    if array.ndim == declared.ndim and dtype_name(array.dtype) == declared.dtype:
        return array
    wanted = numpy_dtype(declared.dtype)
    whole = array.dtype.kind in "iub" and wanted.kind in "iub"
    if array.ndim == declared.ndim and whole and array.dtype.itemsize == wanted.itemsize:
        return array.view(wanted)
    raise TypeError(
        f"the signature declares {numba_type.ndim}-dimensional arrays of {declared.dtype}, and the array given has "
        f"{array.ndim} dimension{'s' * (array.ndim != 1)} and dtype {array.dtype}: a GPU would misread its memory; "
        f"pass x.astype({declared.dtype!r}) or change the signature"
    )


def warn_of_copy() -> None:
    """numba's warning that a host array was copied, if it is switched on."""
    from numba.cuda.core import config
    from numba.cuda.core.errors import NumbaPerformanceWarning

    if config.CUDA_WARN_ON_IMPLICIT_COPY and not config.DISABLE_PERFORMANCE_WARNINGS:
        import warnings

        text = "Host array used in CUDA kernel will incur copy overhead to/from device."
        warnings.warn(NumbaPerformanceWarning(text), stacklevel=2)


def _host_array(value: Any) -> Any:
    return value if isinstance(value, np.ndarray) else np.asarray(value)


def _copy_back(device: Any, host: Any) -> None:
    if isinstance(host, np.void):
        for name in host.dtype.names or ():
            host[name] = device[name]
    elif host.flags.writeable:
        np.copyto(host, device)
    elif device.tobytes() != np.array(host, copy=True, order="K").tobytes():
        raise ValueError("a kernel wrote to a host array that is read-only")


def _scalar(numba_type: Any, value: Any) -> Any:
    """A number in the declared type, by numba's rules of passing arguments."""
    from numba.cuda import types

    if isinstance(numba_type, types.NoneType):
        return None
    if isinstance(numba_type, types.CPointer):
        return value
    if isinstance(numba_type, types.Boolean):
        return np.bool_(value)
    if isinstance(numba_type, types.Integer):
        return np.dtype(str(numba_type)).type(getattr(ctypes, f"c_{numba_type}")(value).value)
    if isinstance(numba_type, types.Float):
        with np.errstate(all="ignore"):
            return np.dtype(str(numba_type)).type(value)
    if isinstance(numba_type, types.Complex):
        return np.dtype(str(numba_type)).type(value)
    if isinstance(numba_type, (types.NPDatetime, types.NPTimedelta)):
        return value
    raise NotImplementedError(numba_type, value)
