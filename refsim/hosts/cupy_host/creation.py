"""Functions of ``cupy`` that make arrays, and those that carry them between host and device."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from refsim.hosts.cupy_host.array import ndarray
from refsim.hosts.cupy_host.conversion import lowered
from refsim.hosts.memory import device_view, uninitialized
from refsim.hosts.missing import NotSimulatedError

Array = np.ndarray[Any, Any]


def _host(value: Any) -> Any:
    """Nested lists with device arrays in them, as lists of NumPy arrays."""
    view = device_view(value)
    if view is not None:
        return view
    return [_host(item) for item in value] if isinstance(value, (list, tuple)) else value


def array(
    obj: Any, dtype: Any = None, copy: bool = True, order: Any = "K", subok: bool = False, ndmin: int = 0,
    *, blocking: bool = False,
) -> ndarray:  # fmt: skip
    """A device array with the values of numbers, lists, NumPy arrays or device arrays."""
    view = device_view(obj)
    if view is None:
        return ndarray.of(np.array(_host(obj), dtype, order=order, ndmin=ndmin))
    made = np.array(view, dtype, copy=copy or None, order=order, ndmin=ndmin)
    return obj if made is view and isinstance(obj, ndarray) else ndarray.of(made)


def asarray(a: Any, dtype: Any = None, order: Any = None, *, blocking: bool = False) -> ndarray:
    """As `array`; a device array that fits is returned itself."""
    return array(a, dtype, copy=False, order=order or "K")


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    """A device array in row order."""
    made = asarray(a, dtype)
    return made if made.__refsim_array__.flags.c_contiguous else ndarray.of(made.get())


def asfortranarray(a: Any, dtype: Any = None) -> ndarray:
    """A device array in column order."""
    made = asarray(a, dtype)
    return made if made.__refsim_array__.flags.f_contiguous else ndarray.of(made.get(order="F"))


def copy(a: Any, order: str = "K") -> ndarray:
    """A copy on the device."""
    return array(a, order=order)


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True) -> Array:
    """A copy on the host."""
    view = device_view(a)
    if view is None:
        return np.asarray(a) if out is None else _copied(out, np.asarray(a))
    return ndarray.of(view).get(order=order, out=out)


def _copied(out: Array, source: Array) -> Array:
    np.copyto(out, source)
    return out


def get_array_module(*args: Any) -> types.ModuleType:
    """``cupy`` if an argument is its array, else ``numpy``."""
    from refsim.hosts.cupy_host import cupy_module

    return cupy_module() if any(isinstance(arg, ndarray) for arg in args) else np


def empty(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """An uninitialised array: a kernel that reads an element before it is written gets a finding."""
    return ndarray.of(uninitialized(lowered(shape), dtype, order))


def zeros(shape: Any, dtype: Any = float, order: Any = "C") -> ndarray:
    """An array of zeros."""
    return ndarray.of(np.zeros(lowered(shape), dtype, order))


def ones(shape: Any, dtype: Any = float, order: Any = "C") -> ndarray:
    """An array of ones."""
    return ndarray.of(np.ones(lowered(shape), dtype, order))


def full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C") -> ndarray:
    """An array of one value."""
    return ndarray.of(np.full(lowered(shape), lowered(fill_value), dtype, order))


def _like(a: Any, dtype: Any, order: Any, shape: Any) -> Array:
    """A NumPy array of the shape, dtype and order that ``a`` asks for; its values mean nothing."""
    return np.empty_like(lowered(a), dtype, order, shape=shape)


def empty_like(a: Any, dtype: Any = None, order: Any = "K", subok: Any = None, shape: Any = None) -> ndarray:
    """As `empty`, with the shape, dtype and order of another array."""
    made = _like(a, dtype, order, shape)
    fortran = made.flags.f_contiguous and not made.flags.c_contiguous
    return empty(made.shape, made.dtype, "F" if fortran else "C")


def zeros_like(a: Any, dtype: Any = None, order: Any = "K", subok: Any = None, shape: Any = None) -> ndarray:
    """As `zeros`, with the shape, dtype and order of another array."""
    return full_like(a, 0, dtype, order, subok, shape)


def ones_like(a: Any, dtype: Any = None, order: Any = "K", subok: Any = None, shape: Any = None) -> ndarray:
    """As `ones`, with the shape, dtype and order of another array."""
    return full_like(a, 1, dtype, order, subok, shape)


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: Any = None, shape: Any = None
) -> ndarray:
    """As `full`, with the shape, dtype and order of another array."""
    made = _like(a, dtype, order, shape)
    made[...] = lowered(fill_value)
    return ndarray.of(made)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> ndarray:
    """Evenly spaced values of a half-open interval."""
    first, last = (0, start) if stop is None else (start, stop)
    made: Array = np.arange(first, last, step, dtype=dtype)
    return ndarray.of(made)


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0,
) -> Any:  # fmt: skip
    """Evenly spaced values of an interval."""
    made, step = np.linspace(lowered(start), lowered(stop), num, endpoint, retstep=True, dtype=dtype, axis=axis)
    return (ndarray.of(made), step) if retstep else ndarray.of(made)


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: Any = None, axis: int = 0
) -> ndarray:
    """Values spaced evenly on a logarithmic scale."""
    return ndarray.of(np.logspace(start, stop, num, endpoint, base, dtype, axis))


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float, order: Any = "C") -> ndarray:
    """Ones on a diagonal."""
    return ndarray.of(np.eye(N, M, k, dtype, order))


def identity(n: int, dtype: Any = float) -> ndarray:
    """The identity matrix."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> ndarray:
    """Ones on and below a diagonal."""
    return ndarray.of(np.tri(N, M, k, dtype))


def frombuffer(*args: Any, **options: Any) -> ndarray:
    """An array with the values of a buffer."""
    return ndarray.of(np.frombuffer(*args, **options).copy())


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Set a diagonal."""
    np.fill_diagonal(lowered(a), lowered(val), wrap)


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = None) -> None:
    """Copy values within the device."""
    if where is None:
        np.copyto(lowered(dst), lowered(src), casting)
    else:
        np.copyto(lowered(dst), lowered(src), casting, lowered(where))


def from_dlpack(_array: Any) -> ndarray:
    """Refused: there is no device pointer to exchange."""
    raise NotSimulatedError("cupy.from_dlpack", "use cupy.asarray(...)")


CREATION = {
    function.__name__: function
    for function in (
        array, asarray, ascontiguousarray, asfortranarray, copy, asnumpy, get_array_module, empty, zeros, ones, full,
        empty_like, zeros_like, ones_like, full_like, arange, linspace, logspace, eye, identity, tri, frombuffer,
        fill_diagonal, copyto, from_dlpack,
    )
}  # fmt: skip
CREATION["asanyarray"] = asarray
