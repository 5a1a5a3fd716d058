"""Arrays of ``numba.cuda``: device arrays that are host arrays, and host arrays that a device may address."""

from __future__ import annotations

from typing import Any

import numpy as np

from refsim.hosts.memory import allocated, device_view, interface_of, uninitialized
from refsim.hosts.missing import NotSimulatedError

Array = np.ndarray[Any, Any]


class DeviceNDArray:
    """A device array: no arithmetic, explicit copies, and views by basic indexing, as numba.cuda has it."""

    __cuda_memory__ = True
    __cuda_ndarray__ = True

    def __init__(self, array: Array, stream: Any = 0) -> None:
        self.__refsim_array__ = array
        self.stream = stream

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return interface_of(self.__refsim_array__)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return tuple(self.__refsim_array__.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, per axis."""
        return self.__refsim_array__.strides

    @property
    def dtype(self) -> Any:
        """Element type."""
        return self.__refsim_array__.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.__refsim_array__.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.__refsim_array__.size

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.__refsim_array__.nbytes

    alloc_size = nbytes

    @property
    def flags(self) -> Any:
        """Layout flags."""
        return self.__refsim_array__.flags

    @property
    def T(self) -> DeviceNDArray:
        """The transposed view."""
        return self.transpose()

    def transpose(self, axes: Any = None) -> DeviceNDArray:
        """A view with the axes in another order."""
        return DeviceNDArray(self.__refsim_array__.transpose(axes), self.stream)

    def is_c_contiguous(self) -> bool:
        """Whether elements lie in row order without gaps."""
        return bool(self.__refsim_array__.flags.c_contiguous)

    def is_f_contiguous(self) -> bool:
        """Whether elements lie in column order without gaps."""
        return bool(self.__refsim_array__.flags.f_contiguous)

    def copy_to_host(self, ary: Any = None, stream: Any = 0) -> Array:
        """Copy to a new host array, or to ``ary`` of the same shape and dtype."""
        if ary is None:
            return np.array(self.__refsim_array__, copy=True, order="K")
        _check_compatible(self.__refsim_array__, ary)
        np.copyto(ary, self.__refsim_array__)
        return ary  # type: ignore[no-any-return]

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Copy from a host or device array of the same shape and dtype."""
        view = device_view(ary)
        source = np.asarray(ary) if view is None else view
        _check_compatible(self.__refsim_array__, source)
        np.copyto(self.__refsim_array__, source)

    def bind(self, stream: Any = 0) -> DeviceNDArray:
        """The same memory on another stream."""
        return DeviceNDArray(self.__refsim_array__, stream)

    def split(self, section: int, stream: Any = 0) -> Any:
        """Views of ``section`` elements each of an array with one axis; the last may be shorter."""
        if self.ndim != 1:
            raise ValueError("only support 1d array")
        for start in range(0, self.size, section):
            yield DeviceNDArray(self.__refsim_array__[start : start + section], stream or self.stream)

    def reshape(self, *newshape: Any, order: str = "C") -> DeviceNDArray:
        """A view in another shape.

        Raises
        ------
        NotImplementedError
            If the elements would have to be copied.
        """
        shape = newshape[0] if len(newshape) == 1 and isinstance(newshape[0], (tuple, list)) else newshape
        return self._without_copy(self.__refsim_array__.reshape(shape, order=order))  # type: ignore[call-overload]

    def ravel(self, order: str = "C", stream: Any = 0) -> DeviceNDArray:
        """A flat view."""
        return self._without_copy(self.__refsim_array__.reshape(-1, order=order))  # type: ignore[call-overload]

    def _without_copy(self, array: Array) -> DeviceNDArray:
        if array.size and not np.shares_memory(array, self.__refsim_array__):
            raise NotImplementedError("operation requires copying")
        return DeviceNDArray(array, self.stream)

    def squeeze(self, axis: Any = None, stream: Any = 0) -> DeviceNDArray:
        """A view without axes of extent 1."""
        return DeviceNDArray(self.__refsim_array__.squeeze(axis), self.stream)

    def view(self, dtype: Any) -> DeviceNDArray:
        """The same bytes as another element type."""
        return DeviceNDArray(self.__refsim_array__.view(dtype), self.stream)

    def __getitem__(self, item: Any) -> Any:
        _check_basic(item)
        found = self.__refsim_array__[item]
        return DeviceNDArray(found, self.stream) if isinstance(found, np.ndarray) else found

    def __setitem__(self, key: Any, value: Any) -> None:
        _check_basic(key)
        view = device_view(value)
        self.__refsim_array__[key] = value if view is None else view

    def getitem(self, item: Any, stream: Any = 0) -> Any:
        """As ``array[item]``, on a stream."""
        return self[item]

    def setitem(self, key: Any, value: Any, stream: Any = 0) -> None:
        """As ``array[key] = value``, on a stream."""
        self[key] = value

    def __len__(self) -> int:
        return len(self.__refsim_array__)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("`copy=False` is not supported. A copy is always created.")
        return np.array(self.__refsim_array__, dtype=dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(_numba_array(), name):
            raise AttributeError(f"'DeviceNDArray' object has no attribute {name!r}")
        raise NotSimulatedError(f"numba.cuda DeviceNDArray.{name}")


def _numba_array() -> Any:
    from numba.cuda.cudadrv.devicearray import DeviceNDArray as real

    return real


def _check_basic(key: Any) -> None:
    for part in key if isinstance(key, tuple) else (key,):
        if not isinstance(part, (int, np.integer, slice, type(Ellipsis))):
            raise NotImplementedError(f"a device array takes integers and slices as index, not {part!r}")


def _check_compatible(one: Array, other: Any) -> None:
    if one.dtype != other.dtype:
        raise TypeError(f"incompatible dtype: {one.dtype} vs. {other.dtype}")
    if one.shape != other.shape:
        raise ValueError(f"incompatible shape: {one.shape} vs. {other.shape}")


class MappedNDArray(np.ndarray[Any, Any]):
    """A host array that the device addresses too (mapped or managed memory): a launch copies nothing."""

    __cuda_memory__ = True
    __cuda_ndarray__ = True

    @property
    def __refsim_array__(self) -> Array:
        return self.view(np.ndarray)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return interface_of(self.__refsim_array__)

    def copy_to_host(self, ary: Any = None, stream: Any = 0) -> Array:
        """Copy to a new host array, or to ``ary``."""
        return DeviceNDArray(self.__refsim_array__).copy_to_host(ary)

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Copy from a host or device array."""
        DeviceNDArray(self.__refsim_array__).copy_to_device(ary)


def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: Any = None) -> DeviceNDArray:
    """Copy a host array to the device, into ``to`` if that is given; a device array stays where it is."""
    if to is not None:
        if copy:
            to.copy_to_device(obj, stream=stream)
        return to  # type: ignore[no-any-return]
    view = device_view(obj)
    if view is not None:
        return obj if isinstance(obj, DeviceNDArray) else DeviceNDArray(view, stream)
    if isinstance(obj, np.void):
        raise NotSimulatedError("numba.cuda.to_device() of a record")
    host = np.asarray(obj)
    if not copy:
        return device_array_like(host, stream)
    return DeviceNDArray(allocated(np.array(host, copy=True, order="K")), stream)


def device_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", stream: Any = 0
) -> DeviceNDArray:
    """An uninitialised device array: a kernel that reads an element before it is written gets a finding."""
    if strides is not None:
        raise NotSimulatedError("argument 'strides' of numba.cuda.device_array()")
    return DeviceNDArray(uninitialized(shape, dtype, order), stream)


def device_array_like(ary: Any, stream: Any = 0) -> DeviceNDArray:
    """An uninitialised device array of the same shape, dtype and order."""
    return device_array(ary.shape, ary.dtype, order=_order(ary), stream=stream)


def pinned_array(shape: Any, dtype: Any = np.float64, strides: Any = None, order: Any = "C") -> Array:
    """A host array."""
    if strides is not None:
        raise NotSimulatedError("argument 'strides' of numba.cuda.pinned_array()")
    return np.empty(shape, dtype, order)


def pinned_array_like(ary: Any) -> Array:
    """A host array of the same shape, dtype and order."""
    return pinned_array(ary.shape, ary.dtype, order=_order(ary))


def mapped_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: Any = "C", stream: Any = 0,
    portable: bool = False, wc: bool = False,
) -> MappedNDArray:  # fmt: skip
    """An uninitialised host array that kernels read and write in place."""
    if strides is not None:
        raise NotSimulatedError("argument 'strides' of numba.cuda.mapped_array()")
    return uninitialized(shape, dtype, order).view(MappedNDArray)


def mapped_array_like(ary: Any, stream: Any = 0, portable: bool = False, wc: bool = False) -> MappedNDArray:
    """As `mapped_array`, with the shape, dtype and order of another array."""
    return mapped_array(ary.shape, ary.dtype, order=_order(ary))


def managed_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: Any = "C", stream: Any = 0,
    attach_global: bool = True,
) -> MappedNDArray:  # fmt: skip
    """As `mapped_array`: there is one memory."""
    return mapped_array(shape, dtype, strides, order)


def as_cuda_array(obj: Any, sync: bool = True) -> DeviceNDArray:
    """A device array on the memory of an object with ``__cuda_array_interface__``.

    Raises
    ------
    TypeError
        If it has none.
    """
    view = device_view(obj)
    if view is None:
        raise TypeError("*obj* doesn't implement the cuda array interface.")
    return DeviceNDArray(view)


def is_cuda_array(obj: Any) -> bool:
    """Whether an object has ``__cuda_array_interface__``."""
    return hasattr(obj, "__cuda_array_interface__")


def _order(ary: Any) -> str:
    flags = ary.flags
    return "F" if flags["F_CONTIGUOUS"] and not flags["C_CONTIGUOUS"] else "C"
