"""Subscripts of arrays and tuples in Numba kernels."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.dialect import (
    ArrayType,
    Binary,
    Compare,
    Const,
    ConstArray,
    Expr,
    Load,
    Select,
    Slice,
    SliceItem,
)
from refsim.errors import KernelTypeError
from refsim.frontends import numba_types
from refsim.frontends.numba_operators import Operators, describe
from refsim.frontends.numba_values import Static, TupleValue, Value, to_expression

if TYPE_CHECKING:
    pass


class Subscripts(Operators):
    """Elements, slices and constant arrays."""

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
