"""Conversions: the cast kinds of clang's tree."""

from __future__ import annotations

from refsim.dialect import Bitcast, Const, Expr, NullPointer, PointerCompare, PointerDifference, PointerType
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.layout import is_function
from refsim.frontends.cuda_cpp.lifetimes import Lifetimes
from refsim.frontends.cuda_cpp.tree import Node
from refsim.frontends.cuda_cpp.types import CType, Pointer, Record, Reference, Scalar
from refsim.frontends.cuda_cpp.values import (
    AddressOf,
    Aggregate,
    FunctionName,
    InMemory,
    InObject,
    LValue,
    Text,
    Value,
)

NUMERIC = frozenset(
    {
        "IntegralCast", "IntegralToBoolean", "IntegralToFloating", "FloatingToIntegral", "FloatingCast",
        "FloatingToBoolean", "BooleanToSignedIntegral",
    }
)  # fmt: skip
SAME = frozenset({"NoOp", "ConstructorConversion", "UserDefinedConversion", "AddressSpaceConversion"})
TO_BASE = frozenset({"DerivedToBase", "UncheckedDerivedToBase"})


class Casts(Lifetimes):
    """Conversions of values and of places."""

    def cast(self, node: Node) -> Value:
        """The value of a cast expression."""
        kind, operand = node.get("castKind"), node.inner[0]
        if kind == "LValueToRValue":
            chosen = operand
            while chosen.kind == "ParenExpr":
                chosen = chosen.inner[0]
            if chosen.kind == "ConditionalOperator" and not isinstance(self.type_of(node), Record):
                return self.choose_loaded(chosen)
            return self.load(self.lvalue(operand), node)
        if kind in NUMERIC:
            return self._numeric(node, operand)
        if kind in SAME:
            return self.rvalue(operand)
        if kind == "ToVoid":
            self.discard(operand)
            return None
        if kind == "ArrayToPointerDecay":
            return self._decay(node, operand)
        if kind in ("FunctionToPointerDecay", "BuiltinFnToFnPtr"):
            return self.rvalue(operand)
        if kind == "BitCast":
            return self._pointer_cast(node, operand)
        if kind == "NullToPointer" and is_function(self.type_of(node)):
            return Const(0, type="uint64")
        if kind == "NullToPointer":
            return NullPointer(type=self._dialect_type(node))
        if kind == "PointerToBoolean":
            return self.is_not_null(self.rvalue(operand), operand)
        if kind in TO_BASE:
            return self._pointer_to_base(node, operand)
        if kind == "BaseToDerived":
            return self._pointer_to_derived(node, operand)
        if kind == "PointerToIntegral":
            return folding.convert(self.integer_address(self.rvalue(operand), node), self._integer_type(node))
        if kind == "LValueToRValueBitCast":
            return self._bit_cast(node, operand)
        raise self.unsupported(f"conversion {kind} to {node.type_text!r} is not supported", node)

    def integer_address(self, pointer: Value, node: Node) -> Expr:
        """The address that a pointer holds: its distance from the null pointer, int64."""
        value = self.expression(pointer, node)
        return PointerDifference(value, NullPointer(type=value.type), type="int64")

    def _integer_type(self, node: Node) -> str:
        kind = self.type_of(node)
        assert isinstance(kind, Scalar)
        return kind.dtype

    def discard(self, node: Node) -> None:
        """Evaluate an expression for its effects."""
        raise NotImplementedError

    def _dialect_type(self, node: Node) -> PointerType:
        kind = self.ask(self.kinds.dialect, self.type_of(node), node=node)
        assert isinstance(kind, PointerType)
        return kind

    def _numeric(self, node: Node, operand: Node) -> Expr:
        target = self.type_of(node)
        if not isinstance(target, Scalar):
            raise self.unsupported(f"conversion to {node.type_text!r} is not supported", node)
        return folding.convert(self.expression(self.rvalue(operand), node), target.dtype)

    def is_not_null(self, value: Value, node: Node) -> Expr:
        """A pointer as a condition."""
        if isinstance(value, (AddressOf, Text, FunctionName)):
            return Const(True, type="bool")
        pointer = self.expression(value, node)
        if pointer.type == "uint64":
            return folding.convert(pointer, "bool")
        return PointerCompare("!=", pointer, NullPointer(type=pointer.type), type="bool")

    def _decay(self, node: Node, operand: Node) -> Value:
        place = self.lvalue_or_text(operand)
        return place if isinstance(place, Text) else self.address(place, node)

    def lvalue_or_text(self, node: Node) -> LValue | Text:
        """A place, or a string literal."""
        inner = node
        while inner.kind in ("ParenExpr", "ImplicitCastExpr") and inner.inner:
            inner = inner.inner[0]
        if inner.kind == "StringLiteral":
            return Text(_unquoted(str(inner.get("value", '""'))))
        if inner.kind == "PredefinedExpr":
            return Text(self.frames[-1].node.name)
        return self.lvalue(node)

    def _pointer_cast(self, node: Node, operand: Node) -> Value:
        """A pointer to another type: the same address, and the same object where the types fit."""
        value = self.rvalue(operand)
        target = self.type_of(node)
        if isinstance(value, AddressOf) and isinstance(target, Pointer):
            fitting = self.refit(value.place, target.pointee, node)
            if fitting is not None:
                return AddressOf(fitting, target)
        if isinstance(value, (Text, FunctionName)):
            raise self.unsupported(f"conversion to {node.type_text!r} is not supported", node)
        return self.expression(value, node)

    def _pointer_to_base(self, node: Node, operand: Node) -> Value:
        if node.get("valueCategory") != "prvalue" or isinstance(self.type_of(node), Record):
            return self.load(self.lvalue(node), node)
        source, target = self.type_of(operand), self.type_of(node)
        assert isinstance(source, Pointer)
        assert isinstance(target, Pointer)
        value = self.rvalue(operand)
        place = self.dereference(value, source.pointee, node)
        return self.address(self.base_of(place, target.pointee, node), node)

    def _pointer_to_derived(self, node: Node, operand: Node) -> Value:
        source, target = self.type_of(operand), self.type_of(node)
        assert isinstance(source, Pointer)
        assert isinstance(target, Pointer)
        place = self.dereference(self.rvalue(operand), source.pointee, node)
        return self.address(self._derived_of(place, target.pointee, node), node)

    def _derived_of(self, place: LValue, derived: CType, node: Node) -> LValue:
        """The object of which a place is a base class."""
        offset = self._base_offset(derived, place.type, node)
        if offset is None:
            raise self.unsupported(f"conversion to {node.type_text!r} is not supported", node)
        return self.part(place, -offset, derived)

    def base_of(self, place: LValue, base: CType, node: Node) -> LValue:
        """The part of an object that is one of its base classes."""
        offset = self._base_offset(place.type, base, node)
        if offset is None:
            raise self.unsupported(f"conversion to base {node.type_text!r} is not supported", node)
        return self.part(place, offset, base)

    def _base_offset(self, kind: CType, base: CType, node: Node) -> int | None:
        if kind == base:
            return 0
        if not isinstance(kind, Record):
            return None
        layout = self.ask(self.kinds.layout, kind, node=node)
        for name, offset, member in layout.members:
            if not name and isinstance(member, Record) and member.id in layout.bases:
                inner = self._base_offset(member, base, node)
                if inner is not None:
                    return int(offset + inner)
        return None

    def cast_place(self, node: Node) -> LValue:
        """The place that a cast of a place means."""
        kind, operand = node.get("castKind"), node.inner[0]
        if kind == "NoOp":
            return self.lvalue(operand)
        if kind in TO_BASE:
            return self.base_of(self.lvalue(operand), self.type_of(node), node)
        if kind == "BaseToDerived":
            return self._derived_of(self.lvalue(operand), self.type_of(node), node)
        if kind == "LValueBitCast":
            place, target = self.lvalue(operand), self.type_of(node)
            if isinstance(place, InObject):
                fitting = self.refit(place, target, node)
                if fitting is not None:
                    return fitting
            there = self.memory(place, node)
            return InMemory(there.pointer, there.offset, target)
        if kind in ("UserDefinedConversion", "ConstructorConversion"):
            return self.lvalue(operand)
        raise self.unsupported(f"conversion {kind} to {node.type_text!r} is not supported", node)

    def _bit_cast(self, node: Node, operand: Node) -> Value:
        """``__builtin_bit_cast`` between numbers."""
        value = self.load(self.lvalue(operand), node)
        return self.bits(value, self.type_of(node), node)

    def bits(self, value: Value, target: CType, node: Node) -> Expr:
        """The bits of a number as another type of the same size."""
        source = self.expression(value, node)
        if not isinstance(target, Scalar) or isinstance(source.type, PointerType):
            raise self.unsupported("a bit cast of something else than a number", node)
        return source if source.type == target.dtype else Bitcast(source, type=target.dtype)

    def converted(self, value: Value, target: CType, node: Node) -> Expr:
        """A number as a C++ type."""
        expression = self.expression(value, node)
        if isinstance(target, Reference):
            target = target.target
        if isinstance(target, Scalar) and not isinstance(expression.type, PointerType):
            return folding.convert(expression, target.dtype)
        return expression

    def scalar(self, value: Value, dtype: str, node: Node) -> Expr:
        """A number of a dialect type."""
        if isinstance(value, Aggregate) and len(value.leaves) == 1:
            value = next(iter(value.leaves.values()))
        return folding.convert(self.expression(value, node), dtype)


def _unquoted(text: str) -> str:
    """The characters of a string literal as clang prints it."""
    body = text[text.index('"') + 1 : text.rindex('"')] if '"' in text else text
    return body.encode().decode("unicode_escape")
