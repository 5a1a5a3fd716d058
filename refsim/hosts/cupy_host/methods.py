"""Methods and operators of ``cupy.ndarray`` that NumPy's array has too, by table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from refsim.hosts.cupy_host.conversion import SCALARS, lowered, operand, raised
from refsim.hosts.memory import device_view
from refsim.hosts.missing import only

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


def _method(name: str, keywords: tuple[str, ...]) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **options: Any) -> Any:
        only(f"cupy.ndarray.{name}", options, keywords)
        result = getattr(self.__refsim_array__, name)(
            *lowered(args), **{key: lowered(value) for key, value in options.items()}
        )
        out = options.get("out")
        return raised(result) if out is None else out

    method.__name__ = name
    method.__qualname__ = f"ndarray.{name}"
    return method


def _unary(function: Any) -> Callable[[Any], Any]:
    return lambda self: raised(function(self.__refsim_array__))


def _accepts(value: Any) -> bool:
    """Whether a value can be an operand; a NumPy array or a list cannot, and that is an error at once."""
    if device_view(value) is not None or isinstance(value, SCALARS):
        return True
    if isinstance(value, (np.ndarray, list, tuple)):
        raise TypeError(f"Unsupported type {type(value)}")
    return False


def _binary(function: Any, reflected: bool) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if not _accepts(other):
            return NotImplemented
        left, right = self.__refsim_array__, operand(other)
        with np.errstate(all="ignore"):
            return raised(function(right, left) if reflected else function(left, right))

    return method


def _in_place(function: Any) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if not _accepts(other):
            return NotImplemented
        with np.errstate(all="ignore"):
            function(self.__refsim_array__, operand(other), out=self.__refsim_array__)
        return self

    return method


def _attribute(name: str) -> property:
    return property(lambda self: getattr(self.__refsim_array__, name), doc=f"As `numpy.ndarray.{name}`.")


def with_methods(array: type) -> type:
    """Give the array class its attributes, methods and operators."""
    for name in ("dtype", "ndim", "size", "itemsize", "nbytes", "strides", "flags"):
        setattr(array, name, _attribute(name))
    for name, keywords in METHODS.items():
        setattr(array, name, _method(name, keywords))
    for name, function in _UNARY.items():
        setattr(array, f"__{name}__", _unary(function))
    for name, function in _COMPARISONS.items():
        setattr(array, f"__{name}__", _binary(function, False))
    for name, function in _BINARY.items():
        setattr(array, f"__{name}__", _binary(function, False))
        setattr(array, f"__r{name}__", _binary(function, True))
        if name != "divmod":
            setattr(array, f"__i{name}__", _in_place(function))
    return array
