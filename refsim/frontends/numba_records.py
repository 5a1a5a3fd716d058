"""Records of Numba kernels: fields by name, and assignment to records, fields and parts of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.dialect import (
    ArrayType,
    Assert,
    Assign,
    Binary,
    Compare,
    Const,
    ConstArray,
    Dim,
    Expr,
    Field,
    Load,
    Loop,
    Rearranged,
    RecordType,
    Slice,
    SliceItem,
    Stmt,
    Store,
    Var,
    dtype_name,
)
from refsim.frontends import numba_types
from refsim.frontends.numba_operators import Operators, describe
from refsim.frontends.numba_values import Static, Value, as_tuple, to_expression


def record_type(value: Any) -> RecordType | None:
    """The record type that a NumPy type or a numba type stands for."""
    if type(value).__name__ == "Record" and type(value).__module__.split(".")[0] in ("numba", "numba_cuda"):
        value = value.dtype
    if isinstance(value, np.dtype) and value.names is not None:
        name = dtype_name(value)
        return name if isinstance(name, RecordType) else None
    return None


def _alignment(element: np.dtype[Any]) -> int:
    """Bytes that a field must be a multiple of; records may lie anywhere, their own fields are checked."""
    if element.names is not None:
        return 1
    return element.itemsize // 2 if element.kind == "c" else element.itemsize


def is_record(value: Value) -> bool:
    """True for one record: an array of records without dimensions."""
    if not isinstance(value, Expr) or not isinstance(value.type, ArrayType):
        return False
    return value.type.ndim == 0 and isinstance(value.type.dtype, RecordType)


def _spelled(view: Expr) -> str:
    """How the source calls the array behind a view."""
    if isinstance(view, (Var, ConstArray)):
        return view.name.split("@")[0]
    if isinstance(view, Field):
        return f"{_spelled(view.array)}.{view.name}"
    return _spelled(view.array) if isinstance(view, (Slice, Rearranged)) else "array"


class Records(Operators):
    """Fields, and stores of more than one number."""

    if TYPE_CHECKING:
        counter: int

        def constant_array(self, array: np.ndarray[Any, Any], name: str) -> Expr: ...

    def has_field(self, value: Value, name: Any) -> bool:
        """True if a value is a record, or an array of them, with a field of this name."""
        if not isinstance(value, Expr) or not isinstance(value.type, ArrayType):
            return False
        kind = value.type.dtype
        return isinstance(kind, RecordType) and isinstance(name, str) and name in (kind.dtype.names or ())

    def field(self, base: Expr, name: str) -> Expr:
        """A field of a record or of every record of an array, as a view."""
        assert isinstance(base.type, ArrayType)
        assert isinstance(base.type.dtype, RecordType)
        kind = base.type.dtype.dtype[name]
        element, extents = kind.subdtype or (kind, ())
        dtype = dtype_name(element)
        if dtype not in numba_types.SCALAR_TYPES and not isinstance(dtype, RecordType) and element.kind != "c":
            raise self.unsupported(f"field {name!r} of type {element}")
        start, alignment = base.type.dtype.dtype.fields[name][1], _alignment(element)  # type: ignore[index]
        if start % alignment:
            raise self.wrong(
                f"field {name!r} of type {element} lies at byte {start}, which is not aligned to {alignment} bytes, as "
                "numba-cuda demands; make the dtype with align=True"
            )
        if isinstance(base, Slice):  # the field of all records first: an index then is the element's own
            whole = self.field(base.array, name)
            return Slice(whole, base.items, base.place, type=ArrayType(dtype, base.type.ndim + len(extents)))
        return Field(base, name, type=ArrayType(dtype, base.type.ndim + len(extents)))

    def read(self, view: Expr) -> Value:
        """The value of a view: the number in it if it has no dimensions, itself otherwise."""
        if not isinstance(view.type, ArrayType) or view.type.ndim or isinstance(view.type.dtype, RecordType):
            return view
        array, index = self.cell(view)
        return Load(array, index, self.place(), type=view.type.dtype)

    @staticmethod
    def cell(view: Expr) -> tuple[Expr, tuple[Expr, ...]]:
        """Array and subscript of the one element of a view without dimensions."""
        if isinstance(view, Slice) and all(isinstance(item, Expr) for item in view.items):
            ndim = view.array.type.ndim if isinstance(view.array.type, ArrayType) else -1
            if len(view.items) == ndim:
                return view.array, tuple(item for item in view.items if isinstance(item, Expr))
        return view, ()

    # ------------------------------------------------------------------------------------------ assignment

    def assign_view(self, target: Expr, value: Value, combine: Callable[[Expr, Value], Value] | None = None) -> None:
        """Store a number, a record or an array into a view; with `combine`, of what was there and the value."""
        assert isinstance(target.type, ArrayType)
        if isinstance(value, Static) and isinstance(value.value, np.ndarray):
            value = self.constant_array(value.value, "array")
        if isinstance(target.type.dtype, RecordType):
            self._assign_records(target, value)
            return
        if target.type.ndim == 0:
            array, index = self.cell(target)
            self._store_number(array, index, value, combine)
            return
        parts = as_tuple(value)
        if parts is not None:
            raise self.unsupported("assignment of a tuple to part of an array; assign its elements one by one")
        extent = target.type.ndim
        target = self.held(target)
        source = to_expression(value)
        if source is None:
            raise self.wrong(f"{describe(value)} cannot be stored in an array")
        if not isinstance(source.type, ArrayType):
            number = self.temporary(source)
            self.each_index(target, lambda index: self._store_number(target, index, number, combine))
            return
        assert isinstance(source.type, ArrayType)
        ndim = source.type.ndim
        missing = extent - ndim
        if missing < 0:
            raise self.wrong(f"an array of {ndim} dimensions is stored in one of {extent}")
        source = self.held(source)
        for axis in range(ndim):
            extents = Dim(source, axis, type="int64"), Dim(target, axis + missing, type="int64")
            same = Compare("==", *extents, type="bool")
            self.out.append(Assert(same, "cannot assign slice of shape from input of different shape", self.place()))

        def store(index: tuple[Expr, ...]) -> None:
            assert isinstance(source.type, ArrayType)
            item = Load(source, index[missing:], self.place(), type=source.type.dtype)
            self._store_number(target, index, self.temporary(item), combine)

        self.each_index(target, store)

    def _assign_records(self, target: Expr, value: Value) -> None:
        assert isinstance(target.type, ArrayType)
        assert isinstance(target.type.dtype, RecordType)
        kind = value.type if isinstance(value, Expr) else None
        if not isinstance(kind, ArrayType) or not isinstance(kind.dtype, RecordType):
            raise self.wrong(f"{describe(value)} cannot be stored in a record; assign its fields")
        names = target.type.dtype.dtype.names or ()
        if names != kind.dtype.dtype.names:
            raise self.wrong(f"{kind.dtype} cannot be stored in {target.type.dtype}")
        assert isinstance(value, Expr)
        for name in names:
            item = self.read(self.field(value, name))
            held = self.temporary(item) if isinstance(item, Expr) and not isinstance(item.type, ArrayType) else item
            self.assign_view(self.field(target, name), held)

    def _store_number(
        self, array: Expr, index: tuple[Expr, ...], value: Value, combine: Callable[[Expr, Value], Value] | None
    ) -> None:
        assert isinstance(array.type, ArrayType)
        if combine is not None:
            index = tuple(self.temporary(i) for i in index)
            old = self.temporary(Load(array, index, self.place(), type=array.type.dtype))
            value = combine(old, value)
        if isinstance(value, Expr) and isinstance(value.type, ArrayType) and value.type.ndim == 0:
            value = self.read(value)
        expression = to_expression(value)
        if expression is None or isinstance(expression.type, ArrayType):
            raise self.wrong("only a scalar can be stored in an array element")
        kind = self.typed(numba_types.setitem, array.type.dtype, str(expression.type))
        self.out.append(Store(array, index, self.convert(expression, kind), self.place()))

    def held(self, view: Expr) -> Expr:
        """A view in a variable of its own, unless it is one already; findings call it by the array's name."""
        if isinstance(view, Var):
            return view
        self.counter += 1
        name = f"{_spelled(view)}@{self.counter}"
        self.types[name] = view.type
        self.out.append(Assign(name, view))
        return Var(name, type=view.type)

    def each_index(self, array: Expr, action: Callable[[tuple[Expr, ...]], None]) -> None:
        """Loops over all subscripts of an array, in C order; the action emits the body."""
        assert isinstance(array.type, ArrayType)
        counters = [Var(self.fresh("i"), type="int64") for _ in range(array.type.ndim)]
        outer, self.out = self.out, []
        action(tuple(counters))
        body: list[Stmt] = self.out
        self.out = outer
        place = self.place()
        for axis in range(array.type.ndim - 1, -1, -1):
            counter = counters[axis]
            self.types[counter.name] = "int64"
            inside = Compare("<", counter, Dim(array, axis, type="int64"), type="bool")
            step: list[Stmt] = [Assign(counter.name, Binary("+", counter, Const(1, type="int64"), type="int64"))]
            loop = Loop(self.fresh("loop"), inside, body, step, place)
            body = [Assign(counter.name, Const(0, type="int64")), loop]
        self.out.extend(body)

    @staticmethod
    def whole(items: list[Expr | SliceItem], ndim: int) -> bool:
        """True if subscripts name one element."""
        return len(items) == ndim and all(isinstance(item, Expr) for item in items)
