"""``cupy.ndarray``: a NumPy array underneath that is never handed out implicitly."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from refsim.hosts.cupy_host.conversion import SCALARS, lowered, operand, raised
from refsim.hosts.memory import device_view, interface_of, uninitialized
from refsim.hosts.missing import NotSimulatedError, only

Array = np.ndarray[Any, Any]
NO_CONVERSION = (
    "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly."
)

# Methods that NumPy's array has too, with the keyword arguments that CuPy's takes.
METHODS: dict[str, tuple[str, ...]] = {
    "all": ("axis", "out", "keepdims"),
    "any": ("axis", "out", "keepdims"),
    "argmax": ("axis", "out", "keepdims"),
    "argmin": ("axis", "out", "keepdims"),
    "argpartition": ("kth", "axis"),
    "argsort": ("axis", "kind"),
    "astype": ("dtype", "order", "casting", "copy"),
    "clip": ("min", "max", "out"),
    "conj": ("out",),
    "conjugate": ("out",),
    "copy": ("order",),
    "cumprod": ("axis", "dtype", "out"),
    "cumsum": ("axis", "dtype", "out"),
    "diagonal": ("offset", "axis1", "axis2"),
    "dot": ("b", "out"),
    "fill": ("value",),
    "flatten": ("order",),
    "max": ("axis", "out", "keepdims"),
    "mean": ("axis", "dtype", "out", "keepdims"),
    "min": ("axis", "out", "keepdims"),
    "nonzero": (),
    "prod": ("axis", "dtype", "out", "keepdims"),
    "ravel": ("order",),
    "repeat": ("repeats", "axis"),
    "reshape": ("order",),
    "round": ("decimals", "out"),
    "searchsorted": ("v", "side", "sorter"),
    "sort": ("axis", "kind"),
    "squeeze": ("axis",),
    "std": ("axis", "dtype", "out", "ddof", "keepdims"),
    "sum": ("axis", "dtype", "out", "keepdims"),
    "swapaxes": (),
    "take": ("indices", "axis", "out"),
    "trace": ("offset", "axis1", "axis2", "dtype", "out"),
    "transpose": (),
    "var": ("axis", "dtype", "out", "ddof", "keepdims"),
    "view": ("dtype",),
}
_UNARY: dict[str, Any] = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}
_BINARY: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": np.power, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.left_shift, "rshift": np.right_shift, "divmod": np.divmod, "matmul": np.matmul,
}  # fmt: skip
_COMPARISONS: dict[str, Any] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


class MemoryPointer:
    """Address of device memory: ``array.data``."""

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr

    def __int__(self) -> int:
        return self.ptr


class ndarray:
    """An array on the simulated device.

    Parameters
    ----------
    shape, dtype, order
        Of an uninitialised array, as `cupy.ndarray` takes them.
    """

    __refsim_array__: Array
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C"
    ) -> None:
        if memptr is not None or strides is not None:
            raise NotSimulatedError("arguments 'memptr' and 'strides' of cupy.ndarray()")
        self.__refsim_array__ = uninitialized(shape, dtype, order)
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
        return MemoryPointer(self.__refsim_array__.ctypes.data)

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


def _method(name: str, keywords: tuple[str, ...]) -> Callable[..., Any]:
    def method(self: ndarray, *args: Any, **options: Any) -> Any:
        only(f"cupy.ndarray.{name}", options, keywords)
        result = getattr(self.__refsim_array__, name)(
            *lowered(args), **{key: lowered(value) for key, value in options.items()}
        )
        out = options.get("out")
        return raised(result) if out is None else out

    method.__name__ = name
    method.__qualname__ = f"ndarray.{name}"
    return method


def _unary(function: Any) -> Callable[[ndarray], Any]:
    return lambda self: raised(function(self.__refsim_array__))


def _accepts(value: Any) -> bool:
    """Whether a value can be an operand; a NumPy array or a list cannot, and that is an error at once."""
    if device_view(value) is not None or isinstance(value, SCALARS):
        return True
    if isinstance(value, (np.ndarray, list, tuple)):
        raise TypeError(f"Unsupported type {type(value)}")
    return False


def _binary(function: Any, reflected: bool) -> Callable[[ndarray, Any], Any]:
    def method(self: ndarray, other: Any) -> Any:
        if not _accepts(other):
            return NotImplemented
        left, right = self.__refsim_array__, operand(other)
        with np.errstate(all="ignore"):
            return raised(function(right, left) if reflected else function(left, right))

    return method


def _in_place(function: Any) -> Callable[[ndarray, Any], Any]:
    def method(self: ndarray, other: Any) -> Any:
        if not _accepts(other):
            return NotImplemented
        with np.errstate(all="ignore"):
            function(self.__refsim_array__, operand(other), out=self.__refsim_array__)
        return self

    return method


def _attribute(name: str) -> property:
    return property(lambda self: getattr(self.__refsim_array__, name), doc=f"As `numpy.ndarray.{name}`.")


for _name in ("dtype", "ndim", "size", "itemsize", "nbytes", "strides", "flags"):
    setattr(ndarray, _name, _attribute(_name))
for _name, _keywords in METHODS.items():
    setattr(ndarray, _name, _method(_name, _keywords))
for _name, _function in _UNARY.items():
    setattr(ndarray, f"__{_name}__", _unary(_function))
for _name, _function in _COMPARISONS.items():
    setattr(ndarray, f"__{_name}__", _binary(_function, False))
for _name, _function in _BINARY.items():
    setattr(ndarray, f"__{_name}__", _binary(_function, False))
    setattr(ndarray, f"__r{_name}__", _binary(_function, True))
    if _name != "divmod":
        setattr(ndarray, f"__i{_name}__", _in_place(_function))
