"""``cupy.ndarray``: a NumPy array underneath that is never handed out implicitly."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from refsim.hosts.cupy_host.conversion import operand
from refsim.hosts.cupy_host.methods import with_methods
from refsim.hosts.cupy_host.pointers import MemoryPointer
from refsim.hosts.memory import device_view, interface_of, uninitialized
from refsim.hosts.missing import NotSimulatedError

Array = np.ndarray[Any, Any]
NO_CONVERSION = (
    "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly."
)


class ndarray:
    """An array on the simulated device.

    Parameters
    ----------
    shape, dtype, order
        As `numpy.ndarray` takes them.
    memptr, strides
        The memory of the array, a `MemoryPointer`; without it the array is uninitialised.
    """

    __refsim_array__: Array
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C"
    ) -> None:
        if memptr is None and strides is not None:
            raise ValueError("strides of a cupy.ndarray need its memory: give memptr too")
        if memptr is None:
            self.__refsim_array__ = uninitialized(shape, dtype, order)
        else:
            self.__refsim_array__ = memptr.view(shape, dtype, strides, order)
        self.base: ndarray | None = None

    @classmethod
    def of(cls, array: Array, base: ndarray | None = None) -> ndarray:
        """The device array that a NumPy array stands for; no copy is made."""
        if array.dtype.kind not in "biufc":
            raise ValueError(f"Unsupported dtype {array.dtype}")
        made = cls.__new__(cls)
        made.__refsim_array__ = array
        made.base = base
        return made

    # ------------------------------------------------------------------------------------------- description

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents; may be set, if no copy is needed."""
        return tuple(self.__refsim_array__.shape)

    @shape.setter
    def shape(self, shape: Any) -> None:
        changed = self.__refsim_array__.reshape(shape)
        if changed.size and not np.shares_memory(changed, self.__refsim_array__):
            raise AttributeError("incompatible shape for a non-contiguous array")
        self.__refsim_array__ = changed

    @property
    def T(self) -> ndarray:
        """The transposed view."""
        return ndarray.of(self.__refsim_array__.T, self)

    @property
    def real(self) -> ndarray:
        """View of the real part."""
        return ndarray.of(self.__refsim_array__.real, self)

    @real.setter
    def real(self, value: Any) -> None:
        self.__refsim_array__.real = operand(value)

    @property
    def imag(self) -> ndarray:
        """View of the imaginary part."""
        return ndarray.of(self.__refsim_array__.imag, self)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.__refsim_array__.imag = operand(value)

    @property
    def data(self) -> MemoryPointer:
        """Address of the first element."""
        return MemoryPointer.of(self.__refsim_array__)

    @property
    def device(self) -> Any:
        """The simulated device."""
        from refsim.hosts.cupy_host.cuda import Device

        return Device(0)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return interface_of(self.__refsim_array__)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"'ndarray' object has no attribute {name!r}")
        if hasattr(np.ndarray, name) or name in ("toDlpack", "reduced_view", "scatter_add", "cstruct"):
            raise NotSimulatedError(f"cupy.ndarray.{name}")
        raise AttributeError(f"'ndarray' object has no attribute {name!r}")

    # ------------------------------------------------------------------------------------------------ copies

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Array:
        """Copy to a NumPy array: ``out`` if given, else a new one."""
        if out is None:
            return np.array(self.__refsim_array__, copy=True, order="F" if order == "F" else "C")
        if not isinstance(out, np.ndarray):
            raise TypeError(f"Only numpy.ndarray can be obtained from cupy.ndarray, not {type(out)}")
        if out.dtype != self.dtype or out.shape != self.shape:
            raise TypeError(f"out has {out.dtype}{out.shape}, the array has {self.dtype}{self.shape}")
        np.copyto(out, self.__refsim_array__)
        return out

    def set(self, arr: Any, stream: Any = None) -> None:
        """Copy from a NumPy array of the same shape and dtype."""
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if arr.dtype != self.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if arr.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        np.copyto(self.__refsim_array__, arr)

    def item(self, *index: Any) -> Any:
        """One element as a Python number."""
        return self.__refsim_array__.item(*index)

    def tolist(self) -> Any:
        """All elements as nested lists."""
        return self.__refsim_array__.tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """The bytes of all elements."""
        return self.__refsim_array__.tobytes(order)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        raise TypeError(NO_CONVERSION)

    def __copy__(self) -> ndarray:
        return self.copy()  # type: ignore[no-any-return]

    def __deepcopy__(self, _memo: Any) -> ndarray:
        return self.copy()  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        return _rebuilt, (self.get(),)

    # ------------------------------------------------------------------------------------------ single values

    def __bool__(self) -> bool:
        return bool(self.__refsim_array__)

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        return operator.index(self.__refsim_array__[()])

    def __len__(self) -> int:
        return len(self.__refsim_array__)

    def __iter__(self) -> Iterator[ndarray]:
        if not self.__refsim_array__.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        return bool((self.__refsim_array__ == operand(value)).any())

    def __repr__(self) -> str:
        return repr(self.__refsim_array__)

    def __str__(self) -> str:
        return str(self.__refsim_array__)

    def __format__(self, spec: str) -> str:
        return format(self.item() if spec and not self.shape else str(self), spec)

    # ---------------------------------------------------------------------------------------------- indexing

    def __getitem__(self, key: Any) -> ndarray:
        parts = tuple(_index(part) for part in (key if isinstance(key, tuple) else (key,)))
        if not any(part is Ellipsis for part in parts):
            parts = (*parts, Ellipsis)  # so that one element is a view without axes, not a NumPy scalar
        return ndarray.of(self.__refsim_array__[parts], self)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.ndim and device_view(value) is None:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill; use cupy.asarray() or .set()")
        parts = tuple(_index(part) for part in (key if isinstance(key, tuple) else (key,)))
        self.__refsim_array__[parts] = value if isinstance(value, np.ndarray) else operand(value)

    # --------------------------------------------------------------------------------------- NumPy's functions

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        from refsim.hosts.cupy_host import cupy_module

        if method != "__call__":
            raise NotSimulatedError(f"numpy.{ufunc.__name__}.{method}() of a cupy.ndarray")
        return getattr(cupy_module(), ufunc.__name__)(*inputs, **options)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        from refsim.hosts.cupy_host import cupy_module

        found: Any = cupy_module()
        for part in func.__module__.split(".")[1:]:
            found = getattr(found, part)
        return getattr(found, func.__name__)(*args, **kwargs)


def _rebuilt(array: Array) -> ndarray:
    return ndarray.of(array)


def _index(part: Any) -> Any:
    """One subscript; lists and NumPy arrays of integers are copied to the device, as in CuPy."""
    view = device_view(part)
    if view is not None:
        return view[()] if not view.ndim else view
    return [_index(item) for item in part] if isinstance(part, list) else part


with_methods(ndarray)
