"""Numba CUDA expressions to the kernel dialect, with numba-cuda's types."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.dialect import (
    Allocation,
    ArrayType,
    Assign,
    Binary,
    Compare,
    Const,
    ConstArray,
    Convert,
    Dim,
    Expr,
    If,
    Intrinsic,
    Load,
    Place,
    Select,
    Slice,
    SliceItem,
    Stmt,
    Type,
    Unary,
    Var,
    is_free,
)
from refsim.errors import KernelTypeError, UnsupportedError
from refsim.frontends import numba_api, numba_types
from refsim.frontends.numba_names import (
    CudaName,
    cuda_name,
    function_name,
    is_cuda_module,
    python_function,
    scalar_type,
)
from refsim.frontends.numba_values import Environment, Static, TupleValue, Value, to_expression

if TYPE_CHECKING:
    from types import FunctionType

    from refsim.devices import Device

BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip
COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}
COMPARISONS = frozenset(COMPARE.values())


class Expressions:
    """The expression half of `refsim.frontends.numba_python.Translator`."""

    device: Device
    types: dict[str, Type]
    allocations: dict[Any, Allocation]
    constants: dict[str, Any]
    out: list[Stmt]
    environment: Environment | None
    node: ast.AST | None
    statement_value: ast.expr | None

    if TYPE_CHECKING:

        def place(self) -> Place: ...
        def unsupported(self, what: str) -> UnsupportedError: ...
        def wrong(self, what: str) -> KernelTypeError: ...
        def fresh(self, prefix: str) -> str: ...
        def read_name(self, name: str) -> Value: ...
        def convert(self, value: Expr, kind: str) -> Expr: ...
        def inline(self, function: FunctionType, arguments: list[Value], keywords: dict[str, Value]) -> Value: ...

    # -------------------------------------------------------------------------------------------- entry

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

    def scalar(self, value: Value, what: str = "a number") -> Expr:
        """A value that must be a scalar expression."""
        expression = to_expression(value)
        if expression is None or isinstance(expression.type, ArrayType):
            raise self.wrong(f"{what} is needed here, not {describe(value)}")
        return expression

    def temporary(self, value: Expr) -> Expr:
        """The value in a variable of its own, unless it is one that cannot change."""
        if isinstance(value, Const):
            return value
        name = self.fresh("t")
        self.types[name] = value.type
        self.out.append(Assign(name, value))
        return Var(name, type=value.type)

    def typed(self, question: Callable[..., Any], *args: Any) -> Any:
        """Ask the type table; its refusal becomes an error with file and line."""
        try:
            return question(*args)
        except numba_types.TypingError as error:
            raise self.wrong(str(error)) from error

    def truth(self, value: Value) -> Expr | bool:
        """A value as a condition; a plain bool if it is known."""
        if isinstance(value, Static):
            return bool(value.value)
        if isinstance(value, TupleValue):
            return bool(value.items)
        if isinstance(value, Const):
            return bool(value.value)
        return self.convert(self.scalar(value, "a condition"), "bool")

    def unpack(self, value: Value, count: int) -> tuple[Value, ...]:
        """The items of a tuple."""
        if isinstance(value, Static) and isinstance(value.value, (tuple, list)):
            value = TupleValue(tuple(Static(item) for item in value.value))
        if not isinstance(value, TupleValue):
            raise self.unsupported(f"unpacking of {describe(value)}")
        if len(value.items) != count:
            raise self.wrong(f"{len(value.items)} values are unpacked into {count} names")
        return value.items

    # ---------------------------------------------------------------------------------------- operators

    def arithmetic(self, operator: str, left: Value, right: Value, inplace: bool = False) -> Expr | TupleValue:
        """``left operator right`` with Numba's types."""
        if operator == "+" and isinstance(left, TupleValue) and isinstance(right, TupleValue):
            return TupleValue(left.items + right.items)
        a, b = self.scalar(left), self.scalar(right)
        question = numba_types.inplace if inplace else numba_types.binary
        signature = self.typed(question, operator, str(a.type), str(b.type))
        x, y = signature.args
        a, b = self.convert(a, x), self.convert(b, y)
        result = signature.result
        if (operator in ("<<", ">>", "**") and x != y) or x != result:
            return self.convert_result(operator, a, b, x, y, result)
        return Binary(operator, a, b, type=result)

    def convert_result(self, operator: str, a: Expr, b: Expr, x: str, y: str, result: str) -> Expr:
        """Operators whose operands and result differ in type."""
        if x == y:
            return (
                self.convert(Binary(operator, a, b, type=x), result) if result != x else Binary(operator, a, b, type=x)
            )
        if operator in ("<<", ">>"):
            return Binary(operator, a, self.convert(b, "int64") if y != x else b, type=result)
        return Intrinsic(f"power.{y}", x, (a, b), type=result)

    def compare(self, operator: str, left: Value, right: Value) -> Expr:
        """A comparison with Numba's types."""
        a, b = self.scalar(left), self.scalar(right)
        signature = self.typed(numba_types.binary, operator, str(a.type), str(b.type))
        return Compare(operator, self.convert(a, signature.args[0]), self.convert(b, signature.args[1]), type="bool")

    def _x_binop(self, node: ast.BinOp) -> Value:
        left = self.value(node.left)
        right = self.value(node.right)
        if type(node.op) not in BINARY:
            raise self.unsupported(f"operator in {ast.unparse(node)}")
        return self.arithmetic(BINARY[type(node.op)], left, right)

    def _x_unaryop(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            condition = self.condition(node.operand)
            return Static(not condition) if isinstance(condition, bool) else Unary("not", condition, type="bool")
        if (
            isinstance(node.op, ast.USub)
            and isinstance(node.operand, ast.Constant)
            and type(node.operand.value) in (int, float)
        ):
            return Static(-node.operand.value)  # type: ignore[operator]
        value = self.scalar(self.value(node.operand))
        operator = UNARY[type(node.op)]
        signature = self.typed(numba_types.unary, operator, str(value.type))
        value = self.convert(value, signature.args[0])
        return self.convert(Unary(operator, value, type=signature.args[0]), signature.result)

    def _x_compare(self, node: ast.Compare) -> Value:
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            left, right = self.value(node.left), self.value(node.comparators[0])
            same = isinstance(left, Static) and isinstance(right, Static) and left.value is right.value
            return Static(same == isinstance(node.ops[0], ast.Is))
        result: Expr | None = None
        left = self.value(node.left)
        for number, (operator, comparator) in enumerate(zip(node.ops, node.comparators, strict=True)):
            if isinstance(operator, (ast.In, ast.NotIn)):
                return self._membership(node, left, self.value(comparator), isinstance(operator, ast.NotIn))
            right = self.value(comparator)
            if number + 1 < len(node.ops):
                right = self.temporary(self.scalar(right))
            if isinstance(left, Static) and isinstance(right, Static) and (left.value is None or right.value is None):
                return Static((left.value is None) == (right.value is None))
            if type(operator) not in COMPARE:
                raise self.unsupported(f"comparison {ast.unparse(node)}")
            if isinstance(left, TupleValue) or isinstance(right, TupleValue):
                raise self.unsupported(f"comparison of tuples {ast.unparse(node)}")
            part = self.compare(COMPARE[type(operator)], left, right)
            result = part if result is None else Binary("and", result, part, type="bool")
            left = right
        assert result is not None
        return result

    def _membership(self, node: ast.Compare, item: Value, items: Value, negated: bool) -> Value:
        if isinstance(items, Static) and isinstance(items.value, (tuple, list)):
            items = TupleValue(tuple(Static(part) for part in items.value))
        if not isinstance(items, TupleValue):
            raise self.unsupported(f"membership test {ast.unparse(node)}")
        needle = self.temporary(self.scalar(item))
        result: Expr = Const(False, type="bool")
        for part in items.items:
            result = Binary("or", result, self.compare("==", needle, part), type="bool")
        return Unary("not", result, type="bool") if negated else result

    # --------------------------------------------------------------------------------------- conditions

    def condition(self, node: ast.expr) -> Expr | bool:
        """An expression used as a condition, with short circuit."""
        if isinstance(node, ast.BoolOp):
            outer, self.node = self.node, node
            result = self.condition(node.values[0])
            for part in node.values[1:]:
                result = self._and_or(isinstance(node.op, ast.And), result, part)
            self.node = outer
            return result
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.condition(node.operand)
            return (not inner) if isinstance(inner, bool) else Unary("not", inner, type="bool")
        return self.truth(self.value(node))

    def _and_or(self, conjunction: bool, left: Expr | bool, node: ast.expr) -> Expr | bool:
        if isinstance(left, bool):
            return self.condition(node) if left == conjunction else left
        extra, right = self._aside(lambda: self.condition(node))
        if not extra and not isinstance(right, bool) and is_free(right):
            return Binary("and" if conjunction else "or", left, right, type="bool")
        if isinstance(right, bool) and not extra and right == conjunction:
            return left
        value = Const(right, type="bool") if isinstance(right, bool) else right
        name = self.fresh("c")
        self.types[name] = "bool"
        variable = Var(name, type="bool")
        self.out.append(Assign(name, left))
        taken: list[Stmt] = [*extra, Assign(name, value)]
        self.out.append(If(variable, taken, []) if conjunction else If(variable, [], taken))
        return variable

    def _aside(self, action: Callable[[], Any]) -> tuple[list[Stmt], Any]:
        """Run an action with its statements collected apart."""
        before, self.out = self.out, []
        try:
            result = action()
            return self.out, result
        finally:
            self.out = before

    def _x_boolop(self, node: ast.BoolOp) -> Value:
        result = self.value(node.values[0])
        for part in node.values[1:]:
            known = self.truth(result) if isinstance(result, (Static, TupleValue)) else None
            if isinstance(known, bool):
                if known == isinstance(node.op, ast.And):
                    result = self.value(part)
                continue
            first = self.temporary(self.scalar(result))
            test = self.truth(first)
            assert isinstance(test, Expr)
            conjunction = isinstance(node.op, ast.And)
            result = self._choose(
                test, (lambda part=part: self.value(part)) if conjunction else (lambda first=first: first),  # type: ignore[misc]
                (lambda first=first: first) if conjunction else (lambda part=part: self.value(part)),  # type: ignore[misc]
            )  # fmt: skip
        return result

    def _x_ifexp(self, node: ast.IfExp) -> Value:
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            return self.value(node.body if condition else node.orelse)
        return self._choose(condition, lambda: self.value(node.body), lambda: self.value(node.orelse))

    def _choose(self, condition: Expr, then: Callable[[], Value], otherwise: Callable[[], Value]) -> Value:
        """One of two values; branches unless both are free of effects."""
        then_statements, a = self._aside(then)
        other_statements, b = self._aside(otherwise)
        if isinstance(a, TupleValue) and isinstance(b, TupleValue) and len(a.items) == len(b.items):
            if not then_statements and not other_statements:
                test = self.temporary(condition)
                return TupleValue(
                    tuple(
                        self._choose(test, lambda x=x: x, lambda y=y: y)  # type: ignore[misc]
                        for x, y in zip(a.items, b.items, strict=True)
                    )
                )
            raise self.unsupported("a conditional expression of tuples with effects")
        x, y = to_expression(a), to_expression(b)
        if x is None or y is None:
            raise self.unsupported("a conditional expression between objects that are not numbers or arrays")
        if isinstance(x.type, ArrayType) or isinstance(y.type, ArrayType):
            if x.type != y.type:
                raise self.wrong(f"a conditional expression of types {x.type} and {y.type}")
            kind: Type = x.type
        else:
            kind = str(self.typed(numba_types.unify, str(x.type), str(y.type)))
            x, y = self.convert(x, kind), self.convert(y, kind)
        simple = not then_statements and not other_statements and is_free(x) and is_free(y)
        if simple and not isinstance(kind, ArrayType):
            return Select(condition, x, y, type=kind)
        name = self.fresh("c")
        self.types[name] = kind
        self.out.append(If(condition, [*then_statements, Assign(name, x)], [*other_statements, Assign(name, y)]))
        return Var(name, type=kind)

    # -------------------------------------------------------------------------------------------- names

    def _x_constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, (complex, bytes)):
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

    def _x_joinedstr(self, node: ast.JoinedStr) -> Value:
        raise self.unsupported("f-string in a kernel; print() takes several arguments instead")

    def _x_attribute(self, node: ast.Attribute) -> Value:
        base = self.value(node.value)
        if isinstance(base, Expr) and isinstance(base.type, ArrayType):
            return self._array_attribute(base, node.attr)
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

    def _array_attribute(self, array: Expr, name: str) -> Value:
        assert isinstance(array.type, ArrayType)
        if name == "shape":
            return TupleValue(tuple(Dim(array, axis, type="int64") for axis in range(array.type.ndim)))
        if name == "ndim":
            return Const(array.type.ndim, type="int64")
        if name == "size":
            size: Expr = Const(1, type="int64")
            for axis in range(array.type.ndim):
                extent = Dim(array, axis, type="int64")
                size = extent if axis == 0 else Binary("*", size, extent, type="int64")
            return size
        if name == "itemsize":
            return Const(np.dtype(array.type.dtype).itemsize, type="int64")
        if name == "dtype":
            return Static(np.dtype(array.type.dtype))
        raise self.unsupported(f"array attribute .{name}")

    # --------------------------------------------------------------------------------------- subscripts

    def element(self, node: ast.Subscript) -> tuple[Expr, tuple[Expr, ...]]:
        """Array and subscript of an element that is written or updated."""
        array = self.value(node.value)
        if not isinstance(array, Expr) or not isinstance(array.type, ArrayType):
            raise self.wrong(f"{ast.unparse(node.value)} is not an array that can be written")
        if isinstance(array, ConstArray):
            raise self.wrong("a constant array cannot be written")
        items = self._items(node)
        if len(items) > array.type.ndim:
            raise self._too_many(node, len(items), array.type.ndim)
        if any(isinstance(item, SliceItem) for item in items) or len(items) != array.type.ndim:
            raise self.unsupported(f"assignment to the slice {ast.unparse(node)}; write its elements in a loop")
        return array, tuple(item for item in items if isinstance(item, Expr))

    def _too_many(self, node: ast.Subscript, count: int, ndim: int) -> KernelTypeError:
        return self.wrong(f"{ast.unparse(node)} has {count} subscripts, the array has {ndim} dimensions")

    def _items(self, node: ast.Subscript) -> list[Expr | SliceItem]:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        items: list[Expr | SliceItem] = []
        for part in parts:
            if isinstance(part, ast.Slice):
                items.append(SliceItem(*(self._bound(bound) for bound in (part.lower, part.upper, part.step))))
                continue
            value = self.value(part)
            if isinstance(value, Static) and isinstance(value.value, (tuple, list)):
                value = TupleValue(tuple(Static(item) for item in value.value))
            items.extend(self.index(v) for v in (value.items if isinstance(value, TupleValue) else (value,)))
        return items

    def _bound(self, node: ast.expr | None) -> Expr | None:
        if node is None:
            return None
        value = self.value(node)
        return None if isinstance(value, Static) and value.value is None else self.index(value)

    def index(self, value: Value) -> Expr:
        """A value as an array index."""
        expression = self.scalar(value, "an index")
        self.typed(numba_types.index_type, str(expression.type))
        return self.convert(expression, "int64")

    def _x_subscript(self, node: ast.Subscript) -> Value:
        base = self.value(node.value)
        if isinstance(base, Static) and isinstance(base.value, (tuple, list)):
            base = TupleValue(tuple(Static(item) for item in base.value))
        if isinstance(base, Static) and isinstance(base.value, np.ndarray):
            base = self.constant_array(base.value, ast.unparse(node.value))
        if isinstance(base, TupleValue):
            return self._tuple_item(node, base)
        if not isinstance(base, Expr) or not isinstance(base.type, ArrayType):
            raise self.unsupported(f"subscript {ast.unparse(node)} of {describe(base)}")
        items = self._items(node)
        ndim = base.type.ndim
        if len(items) > ndim:
            raise self._too_many(node, len(items), ndim)
        if len(items) == ndim and all(isinstance(item, Expr) for item in items):
            index = tuple(item for item in items if isinstance(item, Expr))
            return Load(base, index, self.place(), type=base.type.dtype)
        kept = sum(isinstance(item, SliceItem) for item in items) + ndim - len(items)
        return Slice(base, tuple(items), self.place(), type=ArrayType(base.type.dtype, kept))

    def _tuple_item(self, node: ast.Subscript, items: TupleValue) -> Value:
        if isinstance(node.slice, ast.Slice):
            bounds = [
                None if part is None else self.value(part)
                for part in (node.slice.lower, node.slice.upper, node.slice.step)
            ]
            numbers = [self.known_integer(b, "a tuple slice") if b is not None else None for b in bounds]
            return TupleValue(items.items[slice(*numbers)])
        position = self.value(node.slice)
        constant = to_expression(position)
        if isinstance(constant, Const):
            try:
                return items.items[int(constant.value)]
            except IndexError as error:
                raise self.wrong(
                    f"tuple index {constant.value} is out of range for {len(items.items)} items"
                ) from error
        index = self.temporary(self.index(position))
        result = self.scalar(items.items[-1])
        for number in range(len(items.items) - 2, -1, -1):
            item = self.scalar(items.items[number])
            if item.type != result.type:
                raise self.wrong("a tuple of different types needs a constant index")
            here = Compare("==", index, Const(number, type="int64"), type="bool")
            before = Compare("==", index, Const(number - len(items.items), type="int64"), type="bool")
            result = Select(Binary("or", here, before, type="bool"), item, result, type=item.type)
        return result

    def constant_array(self, array: np.ndarray[Any, Any], name: str) -> Expr:
        """A NumPy array captured by the kernel, as read-only data."""
        kind = self.array_type(array)
        key = f"{name}@{len(self.constants)}"
        for held_key, held in self.constants.items():
            if held is array or (
                held.dtype == array.dtype and held.shape == array.shape and held.tobytes() == array.tobytes()
            ):
                key = held_key
        self.constants.setdefault(key, array.copy())
        return ConstArray(key, type=kind)

    def array_type(self, array: np.ndarray[Any, Any]) -> ArrayType:
        """Dialect type of a NumPy array."""
        if array.dtype.name not in numba_types.SCALAR_TYPES:
            raise self.unsupported(f"array of dtype {array.dtype}")
        return ArrayType(array.dtype.name, array.ndim)

    def known_integer(self, value: Value, what: str) -> int:
        """An integer that must be known when the kernel is compiled."""
        held = value.value if isinstance(value, Static) else value.value if isinstance(value, Const) else None
        if isinstance(held, (int, np.integer)) and not isinstance(held, bool):
            return int(held)
        raise self.wrong(f"{what} must be an integer literal or a global constant, as Numba demands")

    # -------------------------------------------------------------------------------------------- calls

    def iterable(self, node: ast.expr) -> TupleValue | Expr | tuple[Expr, Expr, Expr, str]:
        """What a ``for`` loop runs over: a tuple, an array, or (start, stop, step, type) of a range."""
        if isinstance(node, ast.Call):
            function = self.value(node.func)
            held = function.value if isinstance(function, Static) else None
            if held is range:
                args = [self.scalar(self.value(arg)) for arg in node.args]
                kind = str(self.typed(numba_types.range_item, tuple(str(arg.type) for arg in args)))
                args = [self.convert(arg, kind) for arg in args]
                start = args[0] if len(args) > 1 else Const(0, type=kind)
                step = args[2] if len(args) > 2 else Const(1, type=kind)
                return start, args[1] if len(args) > 1 else args[0], step, kind
            if held in (enumerate, zip):
                lists = [self.iterable(arg) for arg in node.args]
                if all(isinstance(part, TupleValue) for part in lists):
                    columns = [part.items for part in lists if isinstance(part, TupleValue)]
                    if held is enumerate:
                        return TupleValue(tuple(TupleValue((Static(i), item)) for i, item in enumerate(columns[0])))
                    return TupleValue(tuple(TupleValue(row) for row in zip(*columns, strict=False)))
                raise self.unsupported(f"{ast.unparse(node)}: only tuples can be enumerated or zipped")
            if getattr(held, "__name__", "") == "literal_unroll":
                return self.iterable(node.args[0])
        value = self.value(node)
        if isinstance(value, Static) and isinstance(value.value, (tuple, list)):
            return TupleValue(tuple(Static(item) for item in value.value))
        if isinstance(value, Static) and isinstance(value.value, np.ndarray):
            return self.constant_array(value.value, ast.unparse(node))
        if isinstance(value, TupleValue) or (isinstance(value, Expr) and isinstance(value.type, ArrayType)):
            return value
        raise self.unsupported(f"a loop over {ast.unparse(node)}")

    def _call(self, node: ast.Call, hint: str | None) -> Value:
        function = self.value(node.func)
        if any(isinstance(arg, ast.Starred) for arg in node.args) or any(k.arg is None for k in node.keywords):
            raise self.unsupported(f"* or ** in the call {ast.unparse(node)}")
        if not isinstance(function, Static):
            raise self.unsupported(f"call of {ast.unparse(node.func)}")
        held = function.value
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
        if inner is not None and name is None:
            if not hasattr(held, "py_func") and held is inner and getattr(held, "__module__", "").startswith("numba"):
                raise self.unsupported(f"call of {ast.unparse(node.func)}()")
            arguments = [self.value(arg) for arg in node.args]
            keywords = {str(k.arg): self.value(k.value) for k in node.keywords}
            return self.inline(inner, arguments, keywords)
        if name == "print":
            self.out.append(numba_api.print_statement(self, node))
            return Static(None)
        if name == "len":
            return self._length(self.value(node.args[0]), node)
        if name is None:
            raise self.unsupported(f"call of {ast.unparse(node.func)}()")
        return self._scalar_call(name, node)

    def _length(self, value: Value, node: ast.Call) -> Value:
        if isinstance(value, TupleValue):
            return Const(len(value.items), type="int64")
        if isinstance(value, Static) and isinstance(value.value, (tuple, list, np.ndarray)):
            return Const(len(value.value), type="int64")
        if isinstance(value, Expr) and isinstance(value.type, ArrayType):
            return Dim(value, 0, type="int64")
        raise self.wrong(f"{ast.unparse(node)}: no length")

    def _scalar_call(self, name: str, node: ast.Call) -> Value:
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


def describe(value: Value) -> str:
    """A value in words, for error messages."""
    if isinstance(value, TupleValue):
        return f"a tuple of {len(value.items)}"
    if isinstance(value, Static):
        return repr(value.value)
    return f"a value of type {value.type}"


__all__ = ["Convert", "Expressions", "describe"]
