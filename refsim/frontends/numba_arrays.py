"""Attributes and methods of arrays in Numba kernels."""

from __future__ import annotations

import ast
from types import FunctionType
from typing import Any, cast

import numpy as np

from refsim.dialect import (
    ArrayType,
    Binary,
    Compare,
    Const,
    Dim,
    Expr,
    Field,
    Load,
    Rearranged,
    RecordType,
    Select,
    Slice,
    Stride,
    Unary,
    item_bytes,
    numpy_dtype,
)
from refsim.frontends import numba_overloads, numba_reductions, numba_types
from refsim.frontends.numba_names import scalar_type
from refsim.frontends.numba_operators import describe
from refsim.frontends.numba_records import is_record
from refsim.frontends.numba_subscripts import Subscripts
from refsim.frontends.numba_values import Elements, Method, Static, TupleValue, Value, as_tuple

REDUCTIONS = {
    name: getattr(numba_reductions, f"array_{name}")
    for name in ("sum", "prod", "mean", "var", "std", "min", "max", "argmin", "argmax", "all", "any", "ptp",
                 "count_nonzero", "nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmin", "nanmax")
} | {"amin": numba_reductions.array_min, "amax": numba_reductions.array_max}  # fmt: skip
ARRAY_EQUAL = cast(FunctionType, numba_reductions.array_array_equal)
METHODS = ("sum", "prod", "mean", "var", "std", "min", "max", "argmin", "argmax", "all", "any", "ptp")
ARRAY_FUNCTIONS = ("shape", "size", "ndim", "array_equal")
VIEWS = ("reshape", "ravel", "transpose", "view", "item")
ALLOCATING = (
    "copy", "astype", "flatten", "cumsum", "cumprod", "sort", "repeat", "take", "nonzero", "dot", "empty", "zeros",
    "ones", "full", "empty_like", "zeros_like", "ones_like", "full_like", "arange", "array", "linspace", "concatenate",
    "stack", "where", "diff", "asarray", "ascontiguousarray", "identity", "eye", "nancumsum", "nancumprod",
)  # fmt: skip


UFUNC_LOGICAL = ("and", "or", "xor", "not")
# NumPy functions that numba-cuda has for kernels as operators; it has none for arithmetic, such as np.add
UFUNC_OPERATORS = {
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "left_shift": "<<",
    "right_shift": ">>", "invert": "~", "bitwise_not": "~", "equal": "==", "not_equal": "!=", "less": "<",
    "less_equal": "<=", "greater": ">", "greater_equal": ">=", "logical_and": "and", "logical_or": "or",
    "logical_xor": "xor", "logical_not": "not",
}  # fmt: skip


def no_memory(name: str) -> str:
    """Why a kernel cannot call a function that makes an array."""
    return (
        f"{name}() makes a new array, which needs the memory management of numba-cuda (CUDA_ENABLE_NRT), off by "
        "default; declare the array with cuda.local.array() or cuda.shared.array()"
    )


class Arrays(Subscripts):
    """What arrays have beside elements."""

    def array_attribute(self, array: Expr, name: str) -> Value:
        """``array.name``."""
        assert isinstance(array.type, ArrayType)
        if is_record(array):
            if not self.has_field(array, name):
                raise self.wrong(f"{array.type.dtype} has no field {name!r}")
            return self.read(self.field(array, name))
        ndim, size = array.type.ndim, item_bytes(array.type.dtype)
        if name == "shape":
            return TupleValue(tuple(Dim(array, axis, type="int64") for axis in range(ndim)))
        if name == "strides":
            return TupleValue(tuple(Stride(array, axis, type="int64") for axis in range(ndim)))
        if name == "ndim":
            return Const(ndim, type="int64")
        if name == "size":
            return self._size(array)
        if name == "nbytes":
            return Binary("*", self._size(array), Const(size, type="int64"), type="int64")
        if name == "itemsize":
            return Const(size, type="int64")
        if name == "dtype":
            return Static(numpy_dtype(array.type.dtype))
        if name == "T":
            return self._transposed(array, list(range(ndim))[::-1])
        if name in ("real", "imag") and array.type.dtype.startswith("complex"):
            part = "float32" if array.type.dtype == "complex64" else "float64"
            return Field(array, name, type=ArrayType(part, ndim))
        if name == "flat":
            return Static(Elements(array))
        if name in METHODS or name in VIEWS or name in ALLOCATING:
            return Static(Method(array, name))
        if self.has_field(array, name):
            return self.read(self.field(array, name))
        method = numba_overloads.is_method(cast(Any, self), array, name)
        if method:
            return Static(Method(array, name))
        found = None if method is None else numba_overloads.member_overload(cast(Any, self), array, name, [], {})
        if found is not None:
            return self.inline(found, [array], {})
        raise self.unsupported(f"array attribute .{name}")

    def _size(self, array: Expr) -> Expr:
        assert isinstance(array.type, ArrayType)
        size: Expr = Const(1, type="int64")
        for axis in range(array.type.ndim):
            extent = Dim(array, axis, type="int64")
            size = extent if axis == 0 else Binary("*", size, extent, type="int64")
        return size

    def _transposed(self, array: Expr, axes: list[int]) -> Expr:
        assert isinstance(array.type, ArrayType)
        order = tuple(Const(axis, type="int64") for axis in axes)
        return Rearranged(array, "transpose", order, self.place(), type=array.type)

    # --------------------------------------------------------------------------------------------- methods

    def method_call(self, method: Method, node: ast.Call) -> Value:
        """A call of a method of an array."""
        arguments = [self.value(argument) for argument in node.args]
        keywords = {str(k.arg): self.value(k.value) for k in node.keywords}
        if method.name not in METHODS and method.name not in VIEWS:
            found = numba_overloads.member_overload(cast(Any, self), method.owner, method.name, arguments, keywords)
            if found is not None and method.name not in ALLOCATING:
                return self.inline(found, [method.owner, *arguments], keywords)
        return self.array_function(method.name, method.owner, arguments, keywords, f"array.{method.name}")

    def knows_numpy(self, name: str) -> bool:
        """Whether a NumPy function is translated by its name."""
        short = name.removeprefix("np.")
        known = short in REDUCTIONS or short in VIEWS or short in ALLOCATING or short in ARRAY_FUNCTIONS
        return known or numba_types.is_known_call(name)

    def numpy_array_call(self, name: str, node: ast.Call) -> Value | None:
        """A call such as ``np.sum(a)``; None if the function takes numbers and got some."""
        short = name.removeprefix("np.")
        if short in ALLOCATING and short != "where":
            raise self.unsupported(no_memory(name))
        known = short in REDUCTIONS or short in VIEWS or short in ARRAY_FUNCTIONS
        if not node.args or not known:
            return None
        first = self.value(node.args[0])
        if isinstance(first, Static) and isinstance(first.value, np.ndarray):
            first = self.constant_array(first.value, ast.unparse(node.args[0]))
        if not isinstance(first, Expr) or not isinstance(first.type, ArrayType):
            raise self.unsupported(f"{ast.unparse(node)}: {name}() of {describe(first)}")
        if short in ("shape", "size", "ndim"):
            return self.array_attribute(first, short)
        arguments = [self.value(argument) for argument in node.args[1:]]
        keywords = {str(k.arg): self.value(k.value) for k in node.keywords}
        return self.array_function(short, first, arguments, keywords, name)

    def elementwise(self, name: str, node: ast.Call) -> Value | None:
        """``np.cos(x, out)``: a NumPy function of numbers, element by element into its last argument."""
        ufunc = getattr(np, name.removeprefix("np."), None)
        if not isinstance(ufunc, np.ufunc) or not node.args:
            return None
        values = [self.value(argument) for argument in node.args]
        values = [
            self.constant_array(v.value, name) if isinstance(v, Static) and isinstance(v.value, np.ndarray) else v
            for v in values
        ]
        if not any(isinstance(v, Expr) and isinstance(v.type, ArrayType) for v in values):
            return None
        out = [self.value(k.value) for k in node.keywords if k.arg == "out"]
        if len(out) != len(node.keywords):
            raise self.unsupported(f"keyword arguments of {name}()")
        *inputs, target = [*values, *out]
        if len(inputs) != ufunc.nin or not isinstance(target, Expr) or not isinstance(target.type, ArrayType):
            raise self.unsupported(no_memory(name) + ", and give it as the last argument")
        inputs = [self.held(v) if isinstance(v, Expr) and isinstance(v.type, ArrayType) else v for v in inputs]
        inputs = [self.temporary(v) if isinstance(v, Expr) and not isinstance(v.type, ArrayType) else v for v in inputs]
        target = self.held(target)

        def store(index: tuple[Expr, ...]) -> None:
            args = [self._aligned(value, index) for value in inputs]
            self.assign_view(
                Slice(target, index, self.place(), type=ArrayType(target.type.dtype, 0)),  # type: ignore[union-attr]
                self.number_function(name, args),
            )

        self.each_index(target, store)
        return target

    def _aligned(self, value: Value, index: tuple[Expr, ...]) -> Expr:
        """The element of an input that goes with a subscript of the output; extents of one are stretched."""
        if not isinstance(value, Expr) or not isinstance(value.type, ArrayType):
            return self.scalar(value)
        own = index[len(index) - value.type.ndim :]
        zero = Const(0, type="int64")
        stretched: list[Expr] = []
        for axis, i in enumerate(own):
            one = Compare("==", Dim(value, axis, type="int64"), Const(1, type="int64"), type="bool")
            stretched.append(Select(one, zero, i, type="int64"))
        return Load(value, tuple(stretched), self.place(), type=value.type.dtype)

    def number_function(self, name: str, args: list[Expr]) -> Value:
        """A NumPy function of numbers."""
        operator = UFUNC_OPERATORS.get(name.removeprefix("np."))
        if operator in ("==", "!=", "<", "<=", ">", ">="):
            return self.compare(operator, *args)
        if operator in UFUNC_LOGICAL:
            a, *rest = [self.convert(arg, "bool") for arg in args]
            if operator == "not":
                return Unary("not", a, type="bool")
            if operator == "xor":
                return Compare("!=", a, rest[0], type="bool")
            return Binary(operator, a, rest[0], type="bool")
        if operator == "~":
            return Unary("~", args[0], type=args[0].type)
        if operator is not None and not numba_types.is_known_call(name):
            return self.arithmetic(operator, args[0], args[1])
        return self.intrinsic(name, args)

    def array_function(
        self, name: str, array: Value, arguments: list[Value], keywords: dict[str, Value], what: str
    ) -> Value:
        """A function or method of an array by its name."""
        assert isinstance(array, Expr)
        assert isinstance(array.type, ArrayType)
        if name in ALLOCATING:
            raise self.unsupported(no_memory(what))
        if name == "array_equal" and len(arguments) == 1:
            return self.inline(ARRAY_EQUAL, [array, arguments[0]], {})
        if name in REDUCTIONS:
            return self._reduced(name, array, arguments, keywords, what)
        if keywords:
            raise self.unsupported(f"keyword arguments of {what}()")
        if name == "item":
            if array.type.ndim:
                raise self.unsupported("item() of an array with dimensions; write a subscript")
            return self.read(array)
        if name == "transpose":
            ndim = array.type.ndim
            given = as_tuple(arguments[0]) if len(arguments) == 1 else TupleValue(tuple(arguments))
            axes = [self.known_integer(item, "an axis of transpose()") for item in given.items] if given else []
            axes = axes or list(range(ndim))[::-1]
            if sorted(axis % ndim for axis in axes) != list(range(ndim)):
                raise self.wrong(f"transpose() of an array of {ndim} dimensions with axes {tuple(axes)}")
            return self._transposed(array, [axis % ndim for axis in axes])
        if name == "ravel":
            kind = ArrayType(array.type.dtype, 1)
            return Rearranged(array, "reshape", (Const(-1, type="int64"),), self.place(), type=kind)
        if name == "reshape":
            given = as_tuple(arguments[0]) if len(arguments) == 1 else None
            parts = given.items if given is not None else tuple(arguments)
            kind = ArrayType(array.type.dtype, len(parts))
            return Rearranged(array, "reshape", tuple(self.index(p) for p in parts), self.place(), type=kind)
        dtype = scalar_type(arguments[0].value) if len(arguments) == 1 and isinstance(arguments[0], Static) else None
        if dtype is None or isinstance(array.type.dtype, RecordType):
            raise self.unsupported("view() of an array other than of numbers as other numbers")
        return Rearranged(array, "view", (), self.place(), type=ArrayType(dtype, array.type.ndim))

    def _reduced(self, name: str, array: Expr, arguments: list[Value], keywords: dict[str, Value], what: str) -> Value:
        assert isinstance(array.type, ArrayType)
        dtype = array.type.dtype
        if dtype not in numba_types.SCALAR_TYPES:
            raise self.unsupported(f"{what}() of an array of {dtype}")
        wanted = keywords.pop("dtype", None)
        if arguments or keywords:
            raise self.unsupported(f"arguments of {what}(): a reduction along an axis makes an array")
        kind = accumulator(name, dtype)
        if isinstance(wanted, Static):
            kind = scalar_type(wanted.value) or kind
        one = name in ("prod", "nanprod")
        value = numpy_dtype(kind).type(one)
        start = Const(value.item() if kind != "float16" else value, type=kind)
        result = self.inline(REDUCTIONS[name], [array, start], {})
        return self.convert(result, kind) if name == "sum" and isinstance(result, Expr) else result


def accumulator(name: str, dtype: str) -> str:
    """Type of the number in which a reduction of elements of a type is collected."""
    if name == "sum" and (dtype == "bool" or "int" in dtype):
        return "uint64" if dtype.startswith("uint") else "int64"
    if name in ("nansum", "nanprod") and "int" in dtype:
        return "int64"
    if name in ("nanmean", "nanvar", "nanstd"):
        return "float64"
    if name in ("mean", "var", "std") and (dtype == "bool" or "int" in dtype):
        return "float64"
    return dtype
