"""Initialisers: lists, constructors, strings, zeros."""

from __future__ import annotations

from refsim.dialect import (
    Assign,
    Binary,
    Compare,
    Const,
    Expr,
    Loop,
    NullPointer,
    StoreAt,
)
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.constructors import Constructors
from refsim.frontends.cuda_cpp.places import CONSTRUCTIONS, TRANSPARENT
from refsim.frontends.cuda_cpp.tree import Node
from refsim.frontends.cuda_cpp.types import Array, CType, Pointer, Record, Reference, Scalar
from refsim.frontends.cuda_cpp.values import Aggregate, LValue, Text, Value

UNROLLED = 64


class Initialisers(Constructors):
    """Initialisers of a translation."""

    def initialise(self, target: LValue, node: Node) -> None:
        """Give a new object the value of an initialiser."""
        if node.kind == "ExprWithCleanups":
            with self.scope(full_expression=True):
                self.initialise(target, node.inner[-1])
            return
        while node.kind in TRANSPARENT or node.kind in ("ConstantExpr", "CXXDefaultInitExpr"):
            if not node.inner:
                break
            node = node.inner[-1]
        kind = target.type
        if node.kind in ("InitListExpr", "CXXParenListInitExpr"):
            self._initialise_list(target, node)
        elif node.kind in CONSTRUCTIONS:
            self.construct(node, target)
        elif isinstance(kind, Array):
            self._initialise_array(target, kind, node)
        else:
            self.store(target, self.no_text(self.rvalue(node), node), node)

    def _initialise_list(self, target: LValue, node: Node) -> None:
        kind = target.type
        if not isinstance(kind, (Array, Record)):
            value = self.rvalue(node.inner[0]) if node.inner else self.zero(kind, node)
            self.store(target, value, node)
            return
        items = self.items(kind, node)
        filler = items[-1][2] if items else None
        repeated = [item for item in items if item[2] is filler and filler is not None]
        if isinstance(kind, Array) and len(repeated) > UNROLLED and filler is not None:
            self._fill(target, kind, repeated[0][1], filler)
            items = items[: len(items) - len(repeated)]
        for part, offset, operand in items:
            place = self.part(target, offset, part)
            if isinstance(part, Reference):
                self.bind(place, self.lvalue(operand), operand)
            else:
                self.initialise(place, operand)

    def items(self, kind: Array | Record, node: Node) -> list[tuple[CType, int, Node]]:
        """Type, offset and initialiser of every element or member that an initialiser list covers."""
        operands = list(node.inner)
        if isinstance(kind, Array):
            size = self.kinds.bytes(kind.element)
            count = kind.count or 0
            if "array_filler" in node.data:
                operands = operands[1:] + [operands[0]] * (count - len(operands) + 1)
            if count and len(operands) == 1 and operands[0].kind == "StringLiteral":
                raise self.unsupported("a string in braces", node)
            return [(kind.element, i * size, operand) for i, operand in enumerate(operands)]
        layout = self.ask(self.kinds.layout, kind, node=node)
        if layout.is_union:
            field = node.get("field") or {}
            chosen = [(t, o) for (name, o, t) in layout.members if name == field.get("name")]
            return [(chosen[0][0], chosen[0][1], operands[0])] if operands and chosen else []
        members = [(part, offset) for _, offset, part in layout.members]
        return [(part, offset, operand) for (part, offset), operand in zip(members, operands)]

    def _initialise_array(self, target: LValue, kind: Array, node: Node) -> None:
        if node.kind == "StringLiteral":
            for position, code in enumerate(characters(node, kind)):
                self.store(self.part(target, position, kind.element), Const(code, type="int8"), node)
        elif node.kind in ("ImplicitValueInitExpr", "CXXScalarValueInitExpr"):
            self._fill(target, kind, 0, node)
        elif node.kind == "ArrayInitLoopExpr":
            self.copy_array(target, self.lvalue(node.inner[0].inner[0]), kind, node)
        else:
            raise self.unsupported(f"initialiser {node.kind} of an array is not supported", node)

    def copy_array(self, target: LValue, source: LValue, kind: Array, node: Node) -> None:
        """Copy an array element by element."""
        size = self.kinds.bytes(kind.element)
        for i in range(kind.count or 0):
            from_, to = self.part(source, i * size, kind.element), self.part(target, i * size, kind.element)
            if isinstance(kind.element, Array):
                self.copy_array(to, from_, kind.element, node)
            else:
                self.store(to, self.load(from_, node), node)

    def _fill(self, target: LValue, kind: Array, start: int, node: Node) -> None:
        """Give all elements from a byte offset on one value: a loop if there are many."""
        element: CType = kind
        while isinstance(element, Array):
            element = element.element
        size = self.kinds.bytes(element)
        count = (self.kinds.bytes(kind) - start) // size
        inner = node
        while inner.kind == "InitListExpr" and inner.inner:
            inner = inner.inner[0]
        zeros = ("ImplicitValueInitExpr", "CXXScalarValueInitExpr")
        if node.kind not in zeros and inner.kind not in zeros:
            if count > 16 * UNROLLED:
                raise self.unsupported(f"an array of {count} elements with one initial value", node)
            step = self.kinds.bytes(kind.element)
            for offset in range(start, self.kinds.bytes(kind), step):
                self.initialise(self.part(target, offset, kind.element), node)
            return
        value = self.zero(element, node)
        if count <= UNROLLED or not isinstance(value, Expr) or isinstance(value, NullPointer):
            for i in range(count):
                self.store(self.part(target, start + i * size, element), value, node)
            return
        place = self.memory(target, node)
        counter = self.variable("i@", "int64")
        label = self.fresh("fill")
        self.assign(counter, Const(0, type="int64"))
        moved = folding.binary("*", counter, Const(size, type="int64"))
        pointer = folding.advance(folding.advance(place.pointer, place.offset + start), moved)
        limit = Compare("<", counter, Const(count, type="int64"), type="bool")
        step_ = Assign(counter.name, Binary("+", counter, Const(1, type="int64"), type="int64"))
        self.out.append(Loop(label, limit, [StoreAt(pointer, value, self.place(node))], [step_], self.place(node)))

    def _r_cxxstdinitializerlistexpr(self, node: Node) -> Value:
        """A list in braces as a ``std::initializer_list``: a pointer to an array, and its length."""
        array = self.memory(self.lvalue(node.inner[0]), node)
        assert isinstance(array.type, Array)
        count = Const(array.type.count or 0, type="uint64")
        return Aggregate(self.type_of(node), {0: self.pointer_to(array), 8: count})

    def _r_cxxnewexpr(self, node: Node) -> Value:
        """``new (place) Type(...)``: an object in memory that is there."""
        if not node.get("isPlacement") or node.get("isArray"):
            raise self.unsupported("new: memory allocated by a kernel is not supported", node)
        kind = self.type_of(node)
        assert isinstance(kind, Pointer)
        place = self.frozen(self.dereference(self.rvalue(node.inner[-1]), kind.pointee, node))
        if node.get("initStyle") or len(node.inner) > 1:
            self.initialise(place, node.inner[0])
        return self.address(place, node)

    def _r_cxxdeleteexpr(self, node: Node) -> Value:
        raise self.unsupported("delete: memory allocated by a kernel is not supported", node)

    def _r_initlistexpr(self, node: Node) -> Value:
        kind = self.type_of(node)
        if isinstance(kind, (Scalar, Pointer)):
            return self.rvalue(node.inner[0]) if node.inner else self.zero(kind, node)
        target = self.make(kind, "temporary", node.id, node)
        self._initialise_list(target, node)
        return self.load(target, node)

    _r_cxxparenlistinitexpr = _r_initlistexpr

    def no_text(self, value: Value, node: Node) -> Value:
        if isinstance(value, Text):
            raise self.unsupported("a pointer to a string literal is not supported", node)
        return value


def characters(node: Node, kind: Array) -> list[int]:
    """Codes of a string literal, filled up with zeros."""
    text = str(node.get("value"))
    body = text[text.index('"') + 1 : text.rindex('"')].encode().decode("unicode_escape").encode("latin-1")
    count = kind.count if kind.count is not None else len(body) + 1
    return [(code if code < 128 else code - 256) for code in (body + bytes(count))[:count]]
