"""Operators, comparisons and conditions of Numba kernels, with numba-cuda's types."""

from __future__ import annotations

import ast
import operator as operator_module
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

from refsim.dialect import (
    COMPLEX,
    Allocation,
    ArrayType,
    Assign,
    Binary,
    Compare,
    Const,
    Expr,
    If,
    Intrinsic,
    Place,
    Select,
    Stmt,
    Type,
    Unary,
    Var,
    is_free,
)
from refsim.errors import KernelTypeError, UnsupportedError
from refsim.frontends import numba_types
from refsim.frontends.numba_tuples import Tuples
from refsim.frontends.numba_values import Environment, LocalFunction, Static, TupleValue, Value, as_tuple, to_expression

if TYPE_CHECKING:
    from types import FunctionType

    from refsim.devices import Device


BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip


COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator_module.eq, "!=": operator_module.ne, "<": operator_module.lt, "<=": operator_module.le,
    ">": operator_module.gt, ">=": operator_module.ge,
}  # fmt: skip


# operator.add and its kin, which kernels may call
OPERATOR_FUNCTIONS: dict[Any, str] = {
    getattr(operator_module, name): symbol
    for name, symbol in {
        "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "lshift": "<<",
        "rshift": ">>", "and_": "&", "or_": "|", "xor": "^", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
        "ge": ">=",
    }.items()
}  # fmt: skip


UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}


class Operators(Tuples):
    """Operators, and what every part of the translator needs of values."""

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
        def value(self, node: ast.expr, hint: str | None = None) -> Value: ...
        def index(self, value: Value) -> Expr: ...
        def intrinsic(self, name: str, args: list[Expr]) -> Value: ...
        def inline_local(
            self, function: LocalFunction, arguments: list[Value], keywords: dict[str, Value]
        ) -> Value: ...
        def inline(self, function: FunctionType, arguments: list[Value], keywords: dict[str, Value]) -> Value: ...

    def scalar(self, value: Value, what: str = "a number") -> Expr:
        """A value that must be a scalar expression."""
        expression = to_expression(value)
        if expression is not None and isinstance(expression.type, ArrayType) and expression.type.ndim:
            raise self.wrong(
                f"{what} is needed here, not an array: an operation on whole arrays makes a new one, which needs the "
                "memory management that numba-cuda leaves off; write a loop over the elements"
            )
        if expression is None or isinstance(expression.type, ArrayType):
            raise self.wrong(f"{what} is needed here, not {describe(value)}")
        return expression

    def temporary(self, value: Expr) -> Expr:
        """The value in a variable of its own, unless it is one that cannot change."""
        if isinstance(value, Const):
            return value
        name = self.fresh("t")
        self.types[name] = value.type
        self.out.append(Assign(name, value, line=self.place()))
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
        if isinstance(value, TupleValue) and not value.vector:
            return bool(value.items)
        if isinstance(value, Const):
            return bool(value.value)
        return self.convert(self.scalar(value, "a condition"), "bool")

    def unpack(self, value: Value, count: int) -> tuple[Value, ...]:
        """The items of a tuple."""
        items = as_tuple(value)
        if items is None:
            raise self.unsupported(f"unpacking of {describe(value)}")
        if len(items.items) != count:
            raise self.wrong(f"{len(items.items)} values are unpacked into {count} names")
        return items.items

    def arithmetic(self, operator: str, left: Value, right: Value, inplace: bool = False) -> Expr | TupleValue:
        """``left operator right`` with Numba's types."""
        joined = self.tuple_arithmetic(operator, left, right)
        if joined is not None:
            return joined
        a, b = self.scalar(left), self.scalar(right)
        question = numba_types.inplace if inplace else numba_types.binary
        signature = self.typed(question, operator, str(a.type), str(b.type))
        x, y = signature.args
        if operator == "**" and signature.result in COMPLEX:
            raise self.unsupported("the power of complex numbers; numba-cuda has no device code for it either")
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
        absent = [isinstance(v, Static) and v.value is None for v in (left, right)]
        if any(absent) and operator in ("==", "!="):
            return Const(all(absent) == (operator == "=="), type="bool")
        known = [v.value for v in (to_expression(left), to_expression(right)) if isinstance(v, Const)]
        if len(known) == 2 and all(type(v) in (int, bool) for v in known):
            return Const(RELATIONS[operator](known[0], known[1]), type="bool")
        texts = [v.value for v in (left, right) if isinstance(v, Static) and isinstance(v.value, str)]
        if len(texts) == 2 and operator in ("==", "!="):
            return Const((texts[0] == texts[1]) == (operator == "=="), type="bool")
        members = [v.value for v in (left, right) if isinstance(v, Static) and isinstance(v.value, Enum)]
        if len(members) == 2 and operator in ("==", "!=") and not all(isinstance(m, int) for m in members):
            return Const((members[0] is members[1]) == (operator == "=="), type="bool")
        of_tuples = self.compare_tuples(operator, left, right)
        if of_tuples is not None:
            return of_tuples
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
            truth = [v for v in (left, right) if isinstance(v, Static) and isinstance(v.value, bool)]
            flag = [v for v in (left, right) if isinstance(v, Expr) and v.type == "bool"]
            if truth and flag:  # `flag is True` is a comparison for numba
                return self.compare("==" if isinstance(node.ops[0], ast.Is) else "!=", flag[0], truth[0])
            same = isinstance(left, Static) and isinstance(right, Static) and left.value is right.value
            return Static(same == isinstance(node.ops[0], ast.Is))
        result: Expr | None = None
        left = self.value(node.left)
        for number, (operator, comparator) in enumerate(zip(node.ops, node.comparators, strict=True)):
            if isinstance(operator, (ast.In, ast.NotIn)):
                return self._membership(node, left, self.value(comparator), isinstance(operator, ast.NotIn))
            right = self.value(comparator)
            if number + 1 < len(node.ops) and as_tuple(right) is None:
                right = self.temporary(self.scalar(right))
            if isinstance(left, Static) and isinstance(right, Static) and (left.value is None or right.value is None):
                return Static((left.value is None) == (right.value is None))
            if type(operator) not in COMPARE:
                raise self.unsupported(f"comparison {ast.unparse(node)}")
            part = self.compare(COMPARE[type(operator)], left, right)
            result = part if result is None else Binary("and", result, part, type="bool")
            left = right
        assert result is not None
        return result

    def _membership(self, node: ast.Compare, item: Value, items: Value, negated: bool) -> Value:
        parts = as_tuple(items)
        if parts is None:
            raise self.unsupported(f"membership test {ast.unparse(node)}")
        needle = item if as_tuple(item) is not None else self.temporary(self.scalar(item))
        result: Expr = Const(False, type="bool")
        for part in parts.items:
            result = Binary("or", result, self.compare("==", needle, part), type="bool")
        return Unary("not", result, type="bool") if negated else result

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
        self.out.append(Assign(name, left, line=self.place()))
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
                return a.having(
                    self._choose(test, lambda x=x: x, lambda y=y: y)  # type: ignore[misc]
                    for x, y in zip(a.items, b.items, strict=True)
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


def describe(value: Value) -> str:
    """A value in words, for error messages."""
    if isinstance(value, TupleValue):
        return f"a cuda.{value.vector}" if value.vector else f"a tuple of {len(value.items)}"
    if isinstance(value, Static):
        return repr(value.value)
    return f"a value of type {value.type}"
