"""Subscripts of arrays and tuples in Numba kernels."""

from __future__ import annotations

import ast
from enum import EnumType
from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.dialect import (
    ArrayType,
    Const,
    ConstArray,
    Expr,
    Load,
    RecordType,
    Slice,
    SliceItem,
    dtype_name,
)
from refsim.errors import KernelTypeError
from refsim.frontends import numba_types
from refsim.frontends.numba_operators import describe
from refsim.frontends.numba_records import Records, is_record
from refsim.frontends.numba_values import Elements, Static, TupleValue, Value, as_tuple, to_expression


class Subscripts(Records):
    """Elements, slices and constant arrays."""

    if TYPE_CHECKING:

        def subscript_of(self, array: Expr, number: Expr) -> tuple[Expr, ...]: ...

    def target(self, node: ast.Subscript | ast.Attribute) -> Expr:
        """What is written or updated: part of an array or of a record, as a view."""
        if isinstance(node, ast.Attribute):
            base = self.value(node.value)
            if not isinstance(base, Expr) or not self.has_field(base, node.attr):
                raise self.unsupported(f"assignment to {ast.unparse(node)}")
            return self.field(base, node.attr)
        array = self.value(node.value)
        if not isinstance(array, Expr) or not isinstance(array.type, ArrayType):
            raise self.wrong(f"{ast.unparse(node.value)} is not an array that can be written")
        if isinstance(array, ConstArray):
            raise self.wrong("a constant array cannot be written")
        name = self._field_name(array, node)
        if name is not None:
            return self.field(array, name)
        return self._part(array, self._items(node, array.type.ndim), node)

    def _field_name(self, array: Expr, node: ast.Subscript) -> str | None:
        """The field that ``a['x']`` names."""
        if not isinstance(node.slice, (ast.Constant, ast.Name, ast.Attribute, ast.Subscript)):
            return None
        key = self.value(node.slice)
        names = array.type.dtype.dtype.names if isinstance(array.type.dtype, RecordType) else None  # type: ignore[union-attr]
        if is_record(array) and names and isinstance(key, Static) and isinstance(key.value, int):
            return names[key.value] if -len(names) <= key.value < len(names) else None
        if not isinstance(key, Static) or not isinstance(key.value, str):
            return None
        if not self.has_field(array, key.value):
            raise self.wrong(f"{ast.unparse(node.value)} has no field {key.value!r}")
        return key.value

    def _part(self, array: Expr, items: list[Expr | SliceItem], node: ast.expr) -> Expr:
        assert isinstance(array.type, ArrayType)
        ndim = array.type.ndim
        if len(items) > ndim:
            raise self._too_many(node, len(items), ndim)
        if not items:
            return array
        kept = sum(isinstance(item, SliceItem) for item in items) + ndim - len(items)
        return Slice(array, tuple(items), self.place(), type=ArrayType(array.type.dtype, kept))

    def _too_many(self, node: ast.expr, count: int, ndim: int) -> KernelTypeError:
        return self.wrong(f"{ast.unparse(node)} has {count} subscripts, the array has {ndim} dimensions")

    def _items(self, node: ast.Subscript, ndim: int) -> list[Expr | SliceItem]:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        items: list[Expr | SliceItem] = []
        for number, part in enumerate(parts):
            if isinstance(part, ast.Constant) and part.value is Ellipsis:
                missing = ndim - len(items) - (len(parts) - number - 1)
                items.extend(SliceItem(None, None, None) for _ in range(missing))
                continue
            if isinstance(part, ast.Slice):
                items.append(SliceItem(*(self._bound(bound) for bound in (part.lower, part.upper, part.step))))
                continue
            value = self.value(part)
            if isinstance(value, Static) and value.value is None:
                raise self.unsupported(f"a new axis in {ast.unparse(node)}; use reshape()")
            several = as_tuple(value)
            items.extend(self.index(v) for v in (several.items if several is not None else (value,)))
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
        several = as_tuple(base)
        if several is not None:
            return self._tuple_item(node, several)
        if isinstance(base, Static) and isinstance(base.value, EnumType):
            key = self.value(node.slice)
            try:
                return Static(base.value[key.value if isinstance(key, Static) else ""])
            except KeyError as error:
                raise self.wrong(f"{ast.unparse(node)}: no such member") from error
        if isinstance(base, Static) and isinstance(base.value, np.ndarray):
            base = self.constant_array(base.value, ast.unparse(node.value))
        if isinstance(base, Static) and isinstance(base.value, Elements):
            array = self.held(base.value.array)
            assert isinstance(array.type, ArrayType)
            index = self.subscript_of(array, self.index(self.value(node.slice)))
            return Load(array, index, self.place(), type=array.type.dtype)
        if not isinstance(base, Expr) or not isinstance(base.type, ArrayType):
            raise self.unsupported(f"subscript {ast.unparse(node)} of {describe(base)}")
        name = self._field_name(base, node)
        if name is not None:
            return self.read(self.field(base, name))
        return self.read(self._part(base, self._items(node, base.type.ndim), node))

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
        return self.item_by_number(items, self.temporary(self.index(position)))

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
        name = dtype_name(array.dtype)
        if name not in numba_types.SCALAR_TYPES and not isinstance(name, RecordType):
            raise self.unsupported(f"array of dtype {array.dtype}")
        return ArrayType(name, array.ndim)

    def known_integer(self, value: Value, what: str) -> int:
        """An integer that must be known when the kernel is compiled."""
        held = value.value if isinstance(value, Static) else value.value if isinstance(value, Const) else None
        if isinstance(held, (int, np.integer)) and not isinstance(held, bool):
            return int(held)
        raise self.wrong(f"{what} must be an integer literal or a global constant, as Numba demands")
