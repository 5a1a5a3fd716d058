"""Numba CUDA expressions to the kernel dialect: names, attributes, loops' ranges and calls."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from refsim.dialect import (
    COMPLEX,
    ArrayType,
    Const,
    Dim,
    Expr,
    Intrinsic,
)
from refsim.frontends import numba_api, numba_overloads, numba_reductions, numba_scalars, numba_types
from refsim.frontends.numba_arrays import UFUNC_OPERATORS
from refsim.frontends.numba_iteration import Iterations
from refsim.frontends.numba_names import (
    CudaName,
    cuda_name,
    declared_types,
    function_name,
    is_cuda_module,
    python_function,
    scalar_type,
)
from refsim.frontends.numba_operators import OPERATOR_FUNCTIONS, RELATIONS
from refsim.frontends.numba_tuples import vector_name
from refsim.frontends.numba_values import (
    Elements,
    LocalFunction,
    Method,
    Static,
    TupleValue,
    Value,
    as_tuple,
    to_expression,
)

if TYPE_CHECKING:
    pass


NO_CONTAINERS = "kernels have no {}; use a tuple, or cuda.local.array() for what changes"
REFUSED_CALLS: dict[Any, str] = {kind: NO_CONTAINERS.format(kind.__name__) for kind in (list, dict, set, frozenset)}


class Expressions(Iterations):
    """The expression half of `refsim.frontends.numba_python.Translator`."""

    def value(self, node: ast.expr, hint: str | None = None) -> Value:
        """Translate an expression; `hint` is the variable it is assigned to, which names an allocation."""
        outer = self.node
        self.node = node
        try:
            if isinstance(node, ast.Call):
                return self._call(node, hint)
            handler: Callable[[Any], Value] | None = getattr(self, "_x_" + type(node).__name__.lower(), None)
            if handler is None:
                raise self.unsupported(f"expression {ast.unparse(node)} ({type(node).__name__})")
            return handler(node)
        finally:
            self.node = outer

    def _x_constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, bytes):
            raise self.unsupported(f"{type(node.value).__name__} constant {node.value!r}")
        return Static(node.value)

    def _x_name(self, node: ast.Name) -> Value:
        value = self.read_name(node.id)
        if isinstance(value, Static) and type(value.value).__name__ == "Conflict":
            raise self.wrong(f"variable {node.id!r} stands for different things on different paths")
        return value

    def _x_tuple(self, node: ast.Tuple) -> Value:
        return TupleValue(tuple(self.value(item) for item in node.elts))

    _x_list = _x_tuple

    def _x_dict(self, node: ast.expr) -> Value:
        raise self.unsupported(f"{ast.unparse(node)}: " + NO_CONTAINERS.format("dict"))

    _x_dictcomp = _x_dict

    def _x_set(self, node: ast.expr) -> Value:
        raise self.unsupported(f"{ast.unparse(node)}: " + NO_CONTAINERS.format("set"))

    _x_setcomp = _x_set

    def _x_listcomp(self, node: ast.expr) -> Value:
        raise self.unsupported(f"{ast.unparse(node)}: " + NO_CONTAINERS.format("list"))

    def _x_generatorexp(self, node: ast.expr) -> Value:
        raise self.unsupported(f"{ast.unparse(node)}: kernels have no generators; write a loop")

    def _x_joinedstr(self, node: ast.JoinedStr) -> Value:
        raise self.unsupported("f-string in a kernel; print() takes several arguments instead")

    def _x_attribute(self, node: ast.Attribute) -> Value:
        base = self.value(node.value)
        if isinstance(base, Expr) and isinstance(base.type, ArrayType):
            return self.array_attribute(base, node.attr)
        if isinstance(base, TupleValue) and node.attr in base.names:
            return base.items[base.names.index(node.attr)]
        if isinstance(base, Static) and isinstance(base.value, np.ndarray):
            return self.array_attribute(self.constant_array(base.value, ast.unparse(node.value)), node.attr)
        number = numba_scalars.plain_number(base)
        if number is not None:
            return numba_scalars.attribute(self, number, node.attr)
        if not isinstance(base, Static):
            raise self.unsupported(f"attribute {ast.unparse(node)}")
        held = base.value
        path = held if isinstance(held, CudaName) else None
        if path is None and is_cuda_module(held):
            path = CudaName("cuda")
        if path is None and not isinstance(held, (int, float, str, tuple, np.generic, np.ndarray)):
            path = cuda_name(held)
        if path is not None:
            return numba_api.register(self, CudaName(f"{path}.{node.attr}"))
        try:
            return Static(getattr(held, node.attr))
        except AttributeError as error:
            raise self.wrong(f"{ast.unparse(node.value)} has no attribute {node.attr!r}") from error

    def _call(self, node: ast.Call, hint: str | None) -> Value:
        function = self.value(node.func)
        if not isinstance(function, Static):
            raise self.unsupported(f"call of {ast.unparse(node.func)}")
        held = function.value
        if isinstance(held, LocalFunction):
            return self.inline_local(held, *self.arguments(node))
        if any(k.arg is None for k in node.keywords):
            raise self.unsupported(f"** in the call {ast.unparse(node)}")
        if held is np.dtype and len(node.args) == 1:
            given = self.value(node.args[0])
            return Static(np.dtype(given.value if isinstance(given, Static) else None))
        if callable(held) and held in OPERATOR_FUNCTIONS and len(node.args) == 2:
            symbol, operands = OPERATOR_FUNCTIONS[held], [self.value(arg) for arg in node.args]
            combine = self.compare if symbol in RELATIONS else self.arithmetic
            return combine(symbol, operands[0], operands[1])
        if held is sum and node.args:
            return self._sum(node)
        pointer = numba_scalars.from_buffer(self, held, node)
        if pointer is not None:
            return pointer
        number = numba_scalars.number_of(held)
        if isinstance(held, Method) and number is not None:
            return numba_scalars.method_call(self, number, held.name, node)
        if isinstance(held, Method):
            return self.method_call(held, node)
        if held is np.nditer:
            return Static(Elements(self.array_value(self.value(node.args[0]), ast.unparse(node.args[0])), boxed=True))
        vector = vector_name(held)
        if vector is not None:
            return self.vector(vector, [self.value(arg) for arg in node.args])
        path = held if isinstance(held, CudaName) else cuda_name(held) if callable(held) or held is not None else None
        if path is not None:
            return numba_api.call(self, path, node, hint)
        kind = scalar_type(held) if not isinstance(held, str) else None
        name = function_name(held)
        if kind is not None and held not in (bool, int, float):
            if len(node.args) != 1:
                raise self.wrong(f"{ast.unparse(node)}: a conversion takes one value")
            return self.convert(self.scalar(self.value(node.args[0])), kind)
        inner = python_function(held)
        unknown = name is not None and name.startswith("np.") and not self.knows_numpy(name)
        if (inner is not None and name is None) or (unknown and numba_overloads.is_overloaded(held)):
            arguments, keywords = self.arguments(node)
            found = None
            if unknown or isinstance(held, FunctionType):  # a cuda.jit function has no overloads
                found = numba_overloads.function_overload(self, held, arguments, keywords)
            if found is None and inner is not None and not self._belongs_to_numba(held):
                found = inner
            if found is None:
                raise self.unsupported(f"call of {ast.unparse(node.func)}()")
            return self._as_declared(held, found, arguments, keywords)
        if name == "print":
            self.out.append(numba_api.print_statement(self, node))
            return Static(None)
        if held is tuple and len(node.args) == 1:
            items = as_tuple(self.value(node.args[0]))
            if items is None:
                raise self.unsupported(f"{ast.unparse(node)}: tuple() takes a tuple in a kernel")
            return TupleValue(items.items)
        if name == "len":
            return self._length(self.value(node.args[0]), node)
        if name is None:
            raise self.unsupported(REFUSED_CALLS.get(held, f"call of {ast.unparse(node.func)}()"))
        return self._scalar_call(name, node)

    def _as_declared(
        self, held: Any, function: FunctionType, arguments: list[Value], keywords: dict[str, Value]
    ) -> Value:
        """A call of a device function; numbers are converted to the types of its signature, if it has one."""
        declared = declared_types(held) if not keywords else None
        if declared is None or len(declared[0]) != len(arguments):
            return self.inline(function, arguments, keywords)
        given = [
            value if kind is None else self.convert(self.scalar(value), kind)
            for value, kind in zip(arguments, declared[0], strict=True)
        ]
        result = self.inline(function, list(given), keywords)
        number = to_expression(result)
        if declared[1] is None or number is None or isinstance(number.type, ArrayType):
            return result
        return self.convert(number, declared[1])

    @staticmethod
    def _belongs_to_numba(function: Any) -> bool:
        """True for a plain function of numba itself: its Python text is not what runs on a device."""
        return not hasattr(function, "py_func") and str(getattr(function, "__module__", "")).startswith("numba")

    def arguments(self, node: ast.Call) -> tuple[list[Value], dict[str, Value]]:
        """Arguments of a call by position and by name; a starred tuple is spread out."""
        by_position: list[Value] = []
        for argument in node.args:
            if not isinstance(argument, ast.Starred):
                by_position.append(self.value(argument))
                continue
            items = as_tuple(self.value(argument.value))
            if items is None:
                raise self.unsupported(f"{ast.unparse(argument)}: only a tuple is spread out")
            by_position.extend(items.items)
        by_name: dict[str, Value] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.unsupported(f"** in the call {ast.unparse(node)}")
            by_name[keyword.arg] = self.value(keyword.value)
        return by_position, by_name

    def _sum(self, node: ast.Call) -> Value:
        values = [self.value(arg) for arg in node.args]
        start = values[1] if len(values) > 1 else Static(0)
        items = as_tuple(values[0])
        if items is not None:
            total: Value = start
            for item in items.items:
                total = self.arithmetic("+", total, item)
            return total
        array = self.array_value(values[0], ast.unparse(node.args[0]))
        return self.inline(cast(FunctionType, numba_reductions.array_sum), [array, start], {})

    def _length(self, value: Value, node: ast.Call) -> Value:
        parts = as_tuple(value)
        if parts is not None:
            return Const(len(parts.items), type="int64")
        if isinstance(value, Static) and isinstance(value.value, (np.ndarray, str)):
            return Const(len(value.value), type="int64")
        if isinstance(value, Expr) and isinstance(value.type, ArrayType):
            return Dim(value, 0, type="int64")
        raise self.wrong(f"{ast.unparse(node)}: no length")

    def _scalar_call(self, name: str, node: ast.Call) -> Value:
        if name.startswith("np."):
            of_array = self.numpy_array_call(name, node) or self.elementwise(name, node)
            if of_array is not None:
                return of_array
            if name.removeprefix("np.") in UFUNC_OPERATORS:
                return self.number_function(name, [self.scalar(self.value(arg)) for arg in node.args])
        if node.keywords:
            raise self.unsupported(f"keyword arguments in {ast.unparse(node)}")
        values = [self.value(arg) for arg in node.args]
        if name in ("min", "max") and len(values) == 1:
            only = values[0]
            values = list(self.unpack(only, len(only.items))) if isinstance(only, TupleValue) else values
        args = [self.scalar(value) for value in values]
        return self.intrinsic(name, args)

    def intrinsic(self, name: str, args: list[Expr]) -> Value:
        """A function on scalars, typed by the table."""
        operator = numba_scalars.numpy_operator(self, name, args)
        if operator is not None:
            return operator
        if name == "complex":
            return numba_scalars.complex_call(self, args)
        if not numba_types.is_known_call(name):
            raise self.unsupported(f"call of {name}()")
        kinds = tuple(str(arg.type) for arg in args)
        signature = self.typed(numba_types.call, name, kinds)
        if name in ("int", "float", "bool"):
            return self.convert(args[0], signature.result)
        if name in ("min", "max"):
            return self._extreme(name, args, kinds, signature.result)
        converted = tuple(self.convert(arg, kind) for arg, kind in zip(args, signature.args, strict=True))
        results = signature.results
        if name in ("pow", "np.power") and results[0] in COMPLEX:
            raise self.unsupported("the power of complex numbers; numba-cuda has no device code for it either")
        if name == "cmath.log" and len(args) == 2:
            name = "log_base"
        if len(results) > 1:
            held = tuple(self.temporary(arg) for arg in converted)
            return TupleValue(
                tuple(
                    Intrinsic(f"{name}.{i}", signature.args[0], held, type=result) for i, result in enumerate(results)
                )
            )
        return Intrinsic(name, signature.args[0], converted, type=signature.result)

    def _extreme(self, name: str, args: list[Expr], kinds: tuple[str, ...], result: str) -> Expr:
        converted = [self.convert(arg, result) for arg in args]
        if numba_types.min_max_skips_nan(kinds):
            return Intrinsic(f"{name}.skips_nan", result, tuple(converted), type=result)
        best = converted[0]
        for candidate in converted[1:]:
            best = Intrinsic(name, result, (best, candidate), type=result)
        return best
