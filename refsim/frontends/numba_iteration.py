"""What loops of Numba kernels run over: ranges, arrays, tuples, and combinations of them."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

import numpy as np

from refsim.dialect import ArrayType, Binary, Compare, Const, Dim, Expr, Load, RecordType, Select, Slice
from refsim.frontends import numba_types
from refsim.frontends.numba_arrays import Arrays
from refsim.frontends.numba_values import Elements, Iteration, Static, TupleValue, Value, as_tuple


class Iterations(Arrays):
    """Things to iterate over."""

    def iterable(self, node: ast.expr) -> TupleValue | Iteration | tuple[Expr, Expr, Expr, str]:
        """What a ``for`` loop runs over: a tuple, (start, stop, step, type) of a range, or anything else by number."""
        if isinstance(node, ast.Call):
            function = self.value(node.func)
            held = function.value if isinstance(function, Static) else None
            if held is range:
                return self._range(node)
            if held in (enumerate, zip, reversed):
                return self._combined(held, node)
            if getattr(held, "__name__", "") == "literal_unroll":
                return self.iterable(node.args[0])
            if held is np.ndindex:
                return self._subscripts_of(node)
            if held is np.ndenumerate:
                array = self.array_value(self.value(node.args[0]), ast.unparse(node.args[0]))
                length = self.temporary(self._size(array))

                def numbered(i: Expr) -> Value:
                    index = self.subscript_of(array, i)
                    return TupleValue((TupleValue(index), self._element(array, index)))

                return Iteration(length, numbered)
        return self._over(self.value(node), node)

    def _over(self, value: Value, node: ast.expr) -> TupleValue | Iteration:
        parts = as_tuple(value)
        if parts is not None:
            return parts
        if isinstance(value, Static) and isinstance(value.value, Elements):
            array, boxed = value.value.array, value.value.boxed
            held = self.held(array)
            length = self.temporary(self._size(held))
            return Iteration(length, lambda i: self._element(held, self.subscript_of(held, i), boxed))
        if isinstance(value, Static) and isinstance(value.value, np.ndarray):
            value = self.constant_array(value.value, ast.unparse(node))
        if isinstance(value, Expr) and isinstance(value.type, ArrayType) and value.type.ndim:
            rows = self.held(value)
            return Iteration(Dim(rows, 0, type="int64"), lambda i: self._element(rows, (i,)))
        raise self.unsupported(f"a loop over {ast.unparse(node)}")

    def array_value(self, value: Value, name: str) -> Expr:
        """A value that must be an array."""
        if isinstance(value, Static) and isinstance(value.value, np.ndarray):
            return self.constant_array(value.value, name)
        if isinstance(value, Expr) and isinstance(value.type, ArrayType):
            return self.held(value)
        raise self.wrong(f"{name} is not an array")

    def _element(self, array: Expr, index: tuple[Expr, ...], boxed: bool = False) -> Value:
        assert isinstance(array.type, ArrayType)
        left = array.type.ndim - len(index)
        if left or boxed or isinstance(array.type.dtype, RecordType):
            return Slice(array, index, self.place(), type=ArrayType(array.type.dtype, left))
        return Load(array, index, self.place(), type=array.type.dtype)

    def subscript_of(self, array: Expr, number: Expr) -> tuple[Expr, ...]:
        """Subscript of the element that comes so many elements after the first, in C order."""
        assert isinstance(array.type, ArrayType)
        extents: list[Expr] = [Dim(array, axis, type="int64") for axis in range(array.type.ndim)]
        return self._digits(number, extents)

    def _digits(self, number: Expr, extents: list[Expr]) -> tuple[Expr, ...]:
        index: list[Expr] = []
        for axis in range(len(extents) - 1, 0, -1):
            index.insert(0, self.temporary(Binary("%", number, extents[axis], type="int64")))
            number = self.temporary(Binary("//", number, extents[axis], type="int64"))
        return (number, *index) if extents else ()

    def _subscripts_of(self, node: ast.Call) -> Iteration:
        """``np.ndindex(shape)``."""
        values = [self.value(argument) for argument in node.args]
        given = as_tuple(values[0]) if len(values) == 1 else TupleValue(tuple(values))
        items = given.items if given is not None else tuple(values)
        extents = [self.temporary(self.index(item)) for item in items]
        length: Expr = Const(1, type="int64")
        for extent in extents:
            length = Binary("*", length, extent, type="int64")
        return Iteration(self.temporary(length), lambda i: TupleValue(self._digits(i, extents)))

    def _range(self, node: ast.Call) -> tuple[Expr, Expr, Expr, str]:
        args = [self.scalar(self.value(arg)) for arg in node.args]
        kind = str(self.typed(numba_types.range_item, tuple(str(arg.type) for arg in args)))
        args = [self.convert(arg, kind) for arg in args]
        start = args[0] if len(args) > 1 else Const(0, type=kind)
        step = args[2] if len(args) > 2 else Const(1, type=kind)
        return start, args[1] if len(args) > 1 else args[0], step, kind

    def _numbered(self, bounds: tuple[Expr, Expr, Expr, str]) -> Iteration:
        """A range as a number of trips; `bounds` are what `_range` gives."""
        start, stop, step, kind = (*(self.temporary(part) for part in bounds[:3]), bounds[3])
        zero, one = Const(0, type=kind), Const(1, type=kind)
        up = Compare(">", step, zero, type="bool")
        span = Select(up, *(Binary("-", a, b, type=kind) for a, b in ((stop, start), (start, stop))), type=kind)
        size = Select(up, step, Binary("-", zero, step, type=kind), type=kind)
        rounded = Binary("-", Binary("+", span, size, type=kind), one, type=kind)
        count = Binary("//", rounded, size, type=kind)
        length = Select(Compare(">", span, zero, type="bool"), count, zero, type=kind)

        def item(i: Expr) -> Value:
            return Binary("+", start, Binary("*", self.convert(i, kind), step, type=kind), type=kind)

        return Iteration(self.temporary(self.convert(length, "int64")), item)

    def _combined(self, function: Any, node: ast.Call) -> TupleValue | Iteration:
        """``enumerate``, ``zip`` or ``reversed`` of things to iterate over."""
        nodes = node.args if function is zip else node.args[:1]
        found = [self.iterable(argument) for argument in nodes]
        parts = [self._numbered(part) if isinstance(part, tuple) else part for part in found]
        tuples = [part for part in parts if isinstance(part, TupleValue)]
        if len(tuples) == len(parts):
            if function is reversed:
                return TupleValue(tuples[0].items[::-1])
            if function is zip:
                return TupleValue(tuple(TupleValue(row) for row in zip(*(t.items for t in tuples), strict=False)))
        trips = [
            Iteration(Const(len(part.items), type="int64"), partial(self.item_by_number, part))
            if isinstance(part, TupleValue)
            else part
            for part in parts
        ]
        if function is zip:
            length = trips[0].length
            for other in trips[1:]:
                shorter = Compare("<", other.length, length, type="bool")
                length = Select(shorter, other.length, length, type="int64")
            return Iteration(self.temporary(length), lambda i: TupleValue(tuple(trip.item(i) for trip in trips)))
        only = trips[0]
        if function is reversed:
            last = self.temporary(Binary("-", only.length, Const(1, type="int64"), type="int64"))
            return Iteration(only.length, lambda i: only.item(Binary("-", last, i, type="int64")))
        first = [self.value(argument) for argument in node.args[1:]] + [self.value(k.value) for k in node.keywords]
        start = self.temporary(self.index(first[0])) if first else Const(0, type="int64")
        if tuples:
            return TupleValue(
                tuple(
                    TupleValue((self.arithmetic("+", start, Static(i)), item)) for i, item in enumerate(tuples[0].items)
                )
            )
        return Iteration(
            only.length, lambda i: TupleValue((Binary("+", i, start, type="int64") if first else i, only.item(i)))
        )
