"""Tuples, named tuples and vectors of Numba kernels; they exist only while a kernel is translated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from refsim.dialect import ArrayType, Binary, Compare, Const, Expr, Select, Unary
from refsim.frontends.numba_values import Static, TupleValue, Value, as_tuple, to_expression

if TYPE_CHECKING:
    from refsim.errors import KernelTypeError, UnsupportedError

_ALIASES = {
    "char": "int8", "short": "int16", "int": "int32", "long": "int64", "longlong": "int64",
    "uchar": "uint8", "ushort": "uint16", "uint": "uint32", "ulong": "uint64", "ulonglong": "uint64",
    "float": "float32", "double": "float64",
}  # fmt: skip
AXES = ("x", "y", "z", "w")
# Every name of a vector type below numba.cuda, aliases such as float4 too: element type and number of elements.
VECTORS: dict[str, tuple[str, int]] = {
    f"{name}{count}": (kind, count)
    for alias, kind in _ALIASES.items()
    for name in (alias, f"{kind}x")
    for count in (1, 2, 3, 4)
}


def vector_name(value: Any) -> str | None:
    """Name of the vector type that an object of numba.cuda stands for, as the kernel's module imported it."""
    name = getattr(value, "__name__", None)
    known = isinstance(name, str) and name in VECTORS and str(getattr(value, "__module__", "")).startswith("numba")
    return name if known else None


class Tuples:
    """Operations on tuples: comparison, concatenation, items by number; construction of vectors."""

    if TYPE_CHECKING:

        def unsupported(self, what: str) -> UnsupportedError: ...
        def wrong(self, what: str) -> KernelTypeError: ...
        def scalar(self, value: Value, what: str = "a number") -> Expr: ...
        def temporary(self, value: Expr) -> Expr: ...
        def convert(self, value: Expr, kind: str) -> Expr: ...
        def compare(self, operator: str, left: Value, right: Value) -> Expr: ...
        def index(self, value: Value) -> Expr: ...
        def _choose(self, condition: Expr, then: Callable[[], Value], otherwise: Callable[[], Value]) -> Value: ...

    def vector(self, name: str, arguments: list[Value]) -> TupleValue:
        """``cuda.float32x4(...)`` from numbers and smaller vectors."""
        kind, count = VECTORS[name]
        parts: list[Expr] = []
        for argument in arguments:
            if isinstance(argument, TupleValue) and argument.vector:
                if VECTORS[argument.vector][0] != kind:
                    raise self.wrong(f"cuda.{name}() of a cuda.{argument.vector}: its elements are not {kind}")
                parts.extend(self.scalar(item) for item in argument.items)
            else:
                parts.append(self.convert(self.scalar(argument), kind))
        if len(parts) != count:
            raise self.wrong(f"cuda.{name}() takes {count} elements, not {len(parts)}")
        return TupleValue(tuple(parts), AXES[:count], f"{kind}x{count}")

    def tuple_arithmetic(self, operator: str, left: Value, right: Value) -> TupleValue | None:
        """``a + b`` of two tuples and ``a * n``; None if neither is a tuple."""
        a, b = as_tuple(left), as_tuple(right)
        if a is None and b is None:
            return None
        if operator == "+" and a is not None and b is not None:
            return TupleValue(a.items + b.items)
        count = right.value if isinstance(right, (Static, Const)) else None
        if operator == "*" and a is not None and isinstance(count, int):
            return TupleValue(a.items * count)
        raise self.wrong(f"operator {operator} between a tuple and something else; tuples are joined with +")

    def compare_tuples(self, operator: str, left: Value, right: Value) -> Expr | None:
        """A comparison of two tuples, item by item as Python compares them; None if neither is a tuple."""
        a, b = as_tuple(left), as_tuple(right)
        if a is None and b is None:
            return None
        if a is None or b is None:
            if operator in ("==", "!="):
                return Const(operator == "!=", type="bool")
            raise self.wrong(f"comparison {operator} of a tuple and something else")
        pairs = list(zip(a.items, b.items, strict=False))
        same_length = len(a.items) == len(b.items)
        if operator in ("==", "!="):
            equal: Expr = Const(same_length, type="bool")
            for x, y in pairs if same_length else ():
                equal = Binary("and", equal, self.compare("==", x, y), type="bool")
            return equal if operator == "==" else Unary("not", equal, type="bool")
        longer = len(a.items) - len(b.items)
        tie = {"<": longer < 0, "<=": longer <= 0, ">": longer > 0, ">=": longer >= 0}[operator]
        result: Expr = Const(tie, type="bool")
        for x, y in reversed(pairs):
            differ = self.compare("!=", x, y)
            result = Select(differ, self.compare(operator[0], x, y), result, type="bool")
        return result

    def item_by_number(self, items: TupleValue, index: Expr) -> Value:
        """``items[index]`` with an index that is known only when the kernel runs; all items have one type."""
        nested = [as_tuple(item) for item in items.items]
        if nested and all(part is not None for part in nested):
            rows = [part.items for part in nested if part is not None]
            if len({len(row) for row in rows}) != 1:
                raise self.wrong("a tuple of different types needs a constant index")
            return TupleValue(
                tuple(self.item_by_number(TupleValue(column), index) for column in zip(*rows, strict=True))
            )
        parts = [to_expression(item) for item in items.items]
        if not parts:
            raise self.wrong("an index into an empty tuple")
        result = parts[-1]
        for number in range(len(parts) - 2, -1, -1):
            item = parts[number]
            if item is None or result is None or item.type != result.type:
                raise self.wrong("a tuple of different types needs a constant index")
            here = Compare("==", index, Const(number, type="int64"), type="bool")
            before = Compare("==", index, Const(number - len(parts), type="int64"), type="bool")
            result = self.chosen(Binary("or", here, before, type="bool"), item, result)
        if result is None:
            raise self.wrong("a tuple of objects that are not numbers or arrays needs a constant index")
        return result

    def chosen(self, condition: Expr, then: Expr, otherwise: Expr) -> Expr:
        """One of two values that are free of effects: numbers by selection, arrays by a branch."""
        if isinstance(then.type, ArrayType):
            joined = self._choose(condition, lambda: then, lambda: otherwise)
            assert isinstance(joined, Expr)
            return joined
        return Select(condition, then, otherwise, type=then.type)


__all__ = ["AXES", "VECTORS", "Tuples", "vector_name"]
