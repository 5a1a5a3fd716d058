"""Attributes and methods of numbers, NumPy's operators by name, and functions that are declared for one signature."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from refsim.dialect import COMPLEX, ArrayType, Atomic, Binary, Compare, Const, Expr, Intrinsic, Unary
from refsim.frontends import numba_types
from refsim.frontends.numba_values import Buffer, Method, Static, Value

if TYPE_CHECKING:
    from refsim.frontends.numba_expressions import Expressions

METHODS = ("conjugate", "bit_count", "item")
COMPARISONS = {
    "np.greater": ">", "np.greater_equal": ">=", "np.less": "<", "np.less_equal": "<=", "np.equal": "==",
    "np.not_equal": "!=",
}  # fmt: skip
LOGIC = {"np.logical_and": "and", "np.logical_or": "or", "np.logical_xor": "^"}
OPERATORS = {
    "np.bitwise_and": "&", "np.bitwise_or": "|", "np.bitwise_xor": "^", "np.left_shift": "<<", "np.right_shift": ">>",
    "np.divide": "/",
}  # fmt: skip

# conversions of half types: ``float2half_rd``, ``half2int_rz``, ``bfloat16_to_int8_rz``, ``float32_to_bfloat16``
_C_TYPES = {
    "half": "float16", "float": "float32", "double": "float64", "char": "int8", "uchar": "uint8", "short": "int16",
    "ushort": "uint16", "int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64",
}  # fmt: skip
_CONVERSION = re.compile(r"([a-z0-9]+?)(?:2|_to_)([a-z0-9]+?)(?:_(r[nduz]))?")
_REREAD = re.compile(r"([a-z0-9]+)_as_([a-z0-9]+)")


def attribute(t: Expressions, value: Expr, name: str) -> Value:
    """``x.real``, ``x.imag``, or a method about to be called."""
    if name in METHODS:
        return Static(Method(value, name))
    kind = str(t.typed(numba_types.attribute, name, str(value.type)))
    if value.type in COMPLEX:
        return Intrinsic(name, str(value.type), (value,), type=kind)
    return value if name == "real" else t.convert(Const(0, type="int64"), kind)


def plain_number(value: Value) -> Expr | None:
    """A value that is a number when the kernel runs, or None."""
    found = value if isinstance(value, Expr) else None
    return found if found is not None and isinstance(found.type, str) else None


def number_of(method: object) -> Expr | None:
    """The number that a method belongs to; None for one of an array, and for anything else."""
    return plain_number(method.owner) if isinstance(method, Method) else None


def method_call(t: Expressions, value: Expr, name: str, node: ast.Call) -> Value:
    """A method of a number."""
    if node.args or node.keywords:
        raise t.wrong(f"{ast.unparse(node)}: {name}() takes no argument")
    kind = str(t.typed(numba_types.attribute, name, str(value.type)))
    if name == "bit_count":
        return Intrinsic("popc", kind, (value,), type=kind)  # of a negative number too, as numba-cuda compiles it
    if name == "conjugate" and value.type in COMPLEX:
        return Intrinsic(name, kind, (value,), type=kind)
    return value


def numpy_operator(t: Expressions, name: str, args: list[Expr]) -> Expr | None:
    """A NumPy function that is an operator; None for any other."""
    kinds = [str(arg.type) for arg in args]
    if name in COMPARISONS:
        t.typed(numba_types.call, name, tuple(kinds))
        kind = numba_types.promoted(*kinds)
        left, right = (t.convert(arg, kind) for arg in args)
        return Compare(COMPARISONS[name], left, right, type="bool")
    if name in LOGIC:
        t.typed(numba_types.call, name, tuple(kinds))
        left, right = (t.convert(arg, "bool") for arg in args)
        return Binary(LOGIC[name], left, right, type="bool")
    if name == "np.logical_not":
        return Unary("not", t.convert(args[0], "bool"), type="bool")
    if name in OPERATORS:
        signature = t.typed(numba_types.call, name, tuple(kinds))
        left, right = (t.convert(arg, signature.result) for arg in args)
        return Binary(OPERATORS[name], left, right, type=signature.result)
    if name == "np.invert":
        signature = t.typed(numba_types.call, name, tuple(kinds))
        return Unary("~", t.convert(args[0], signature.result), type=signature.result)
    if name == "np.conjugate" and kinds[0] not in COMPLEX:
        signature = t.typed(numba_types.call, name, tuple(kinds))
        return t.convert(args[0], signature.result)
    return None


def half_call(t: Expressions, module: str, name: str, values: list[Value]) -> Value:
    """A function of ``cuda.fp16`` or ``cuda.bf16``."""
    path = f"cuda.{module}.{name}"
    if name == "atomicAdd":
        return _atomic_add(t, path, values)
    args = [t.scalar(value) for value in values]
    signature = t.typed(numba_types.call, path, tuple(str(arg.type) for arg in args))
    converted = tuple(t.convert(arg, kind) for arg, kind in zip(args, signature.args, strict=True))
    result, base = signature.result, name.removeprefix("__")
    reread = _REREAD.fullmatch(base)
    conversion = _CONVERSION.fullmatch(base)
    if reread:
        engine = f"as_{result}"
    elif conversion:
        if {signature.args[0], result} in ({"float16", "float32"}, {"bfloat16", "float32"}) and result == "float32":
            return t.convert(converted[0], result)
        engine = f"to_{result}_{conversion[3] or 'rn'}"
    else:
        engine = base
    produced = "bool" if engine == "hisnan" else result
    return t.convert(Intrinsic(engine, signature.args[0], converted, type=produced), result)


def from_buffer(t: Expressions, function: object, node: ast.Call) -> Value | None:
    """``ffi.from_buffer(array)``; None for any other call."""
    owner = getattr(function, "__self__", None)
    if getattr(function, "__name__", "") != "from_buffer" or type(owner).__module__.partition(".")[0] != "cffi":
        return None
    if len(node.args) != 1:
        raise t.wrong(f"{ast.unparse(node)}: from_buffer() takes one array")
    array = t.value(node.args[0])
    if not isinstance(array, Expr) or not isinstance(array.type, ArrayType):
        raise t.wrong(f"{ast.unparse(node)}: from_buffer() takes an array")
    return Static(Buffer(array))


def _atomic_add(t: Expressions, path: str, values: list[Value]) -> Value:
    """On the first element of an array, to which cffi makes the pointer."""
    held = values[0].value if values and isinstance(values[0], Static) else None
    array = held.array if isinstance(held, Buffer) else None
    if array is None or not isinstance(array.type, ArrayType) or array.type.dtype != "float16" or len(values) != 2:
        raise t.wrong(f"{path}() takes a pointer to float16, such as ffi.from_buffer(array[i:]), and a value")
    first = tuple(Const(0, type="int64") for _ in range(array.type.ndim))
    value = t.convert(t.scalar(values[1]), "float16")
    return t.temporary(Atomic("add", array, first, (value,), t.place(), type="float16"))


def complex_call(t: Expressions, args: list[Expr]) -> Value:
    """``complex(x)`` and ``complex(real, imaginary)``."""
    signature = t.typed(numba_types.call, "complex", tuple(str(arg.type) for arg in args))
    if len(args) == 1:
        return t.convert(args[0], signature.result)
    part = "float32" if signature.result == "complex64" else "float64"
    real, imaginary = (t.convert(arg, part) for arg in args)
    return Intrinsic("complex", part, (real, imaginary), type=signature.result)
