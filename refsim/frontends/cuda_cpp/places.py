"""Places: the objects that C++ expressions mean."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from refsim.dialect import (
    Const,
    Expr,
)
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.operators import Operators
from refsim.frontends.cuda_cpp.tree import FUNCTIONS, Node
from refsim.frontends.cuda_cpp.types import Array, Pointer, Record, Reference, Scalar, describe, number_type
from refsim.frontends.cuda_cpp.values import (
    FunctionName,
    InMemory,
    InObject,
    LValue,
    Object,
    Value,
)

TRANSPARENT = frozenset(
    {
        "ParenExpr", "SubstNonTypeTemplateParmExpr", "CXXRewrittenBinaryOperator", "CXXDefaultInitExpr",
        "CXXBindTemporaryExpr",
    }
)  # fmt: skip
CASTS = frozenset(
    {
        "ImplicitCastExpr", "CStyleCastExpr", "CXXStaticCastExpr", "CXXFunctionalCastExpr", "CXXReinterpretCastExpr",
        "CXXConstCastExpr", "BuiltinBitCastExpr",
    }
)  # fmt: skip
CALLS = frozenset({"CallExpr", "CXXMemberCallExpr", "CXXOperatorCallExpr", "UserDefinedLiteral"})
VARIABLES = frozenset({"VarDecl", "VarTemplateSpecializationDecl"})
CONSTRUCTIONS = frozenset({"CXXConstructExpr", "CXXTemporaryObjectExpr", "CXXInheritedCtorInitExpr"})


def is_volatile(text: str) -> bool:
    """Whether an object of a type, as clang prints it, is volatile; what it points to does not count."""
    return re.search(r"\bvolatile\b", text.rsplit("*", 1)[-1]) is not None


class Places(Operators):
    """Places of a translation."""

    def lvalue(self, node: Node) -> LValue:
        """The place that an expression means."""
        place = self._lvalue(node)
        if isinstance(place, InMemory) and is_volatile(node.type_text):
            return replace(place, volatile=True)
        return place

    def _lvalue(self, node: Node) -> LValue:
        kind = node.kind
        if kind in CASTS:
            return self.cast_place(node)
        if kind in TRANSPARENT:
            return self.lvalue(last_child(node))
        if kind in CALLS:
            result = self.call(node)
            if isinstance(result, (InObject, InMemory)):
                return result
            return self.materialise(result, node)
        handler: Callable[[Node], LValue] | None = getattr(self, f"_l_{kind.lower()}", None)
        if handler is not None:
            return handler(node)
        if node.get("valueCategory") == "prvalue":
            return self.materialise(self.rvalue(node), node)
        raise self.unsupported(f"expression {kind} is not supported", node)

    def _l_exprwithcleanups(self, node: Node) -> LValue:
        with self.scope(full_expression=True) as scope:
            place = self.lvalue(last_child(node))
            return self.frozen(place) if scope.owned else place

    def _r_exprwithcleanups(self, node: Node) -> Value:
        with self.scope(full_expression=True) as scope:
            value = self.rvalue(last_child(node))
            return self.frozen(value) if scope.owned else value

    def materialise(self, value: Value, node: Node) -> LValue:
        """A temporary object with a value."""
        self.refuse_destructor(self.type_of(node), "a temporary object", node)
        return self.bound(value, self.type_of(node), "temporary", node.id, node)

    def _l_materializetemporaryexpr(self, node: Node) -> LValue:
        inner = node.inner[0]
        kind = self.type_of(node)
        if isinstance(kind, (Array, Record)):
            target = self.make(kind, "temporary", node.id, node)
            self.initialise(target, inner)
            self.own(target, node, extended="extendingDecl" in node.data)
            return target
        return self.bound(self.rvalue(inner), kind, "temporary", node.id, node)

    def initialise(self, target: LValue, node: Node) -> None:
        """Give a new object the value of an initialiser."""
        raise NotImplementedError

    def _r_materializetemporaryexpr(self, node: Node) -> Value:
        return self.rvalue(node.inner[0])

    def _l_declrefexpr(self, node: Node) -> LValue:
        declared = node.get("referencedDecl") or {}
        identity = declared.get("id", "")
        for known in (self.frames[-1].captures, self.variables):
            if identity in known:
                return known[identity]
        if identity in self.bindings:
            return self.lvalue(self.bindings[identity])
        if declared.get("kind") in FUNCTIONS:
            kind = self.type_of(node)
            return InObject(Object(kind, "", {0: self.expression(self._r_declrefexpr(node), node)}), 0, kind)
        found = self.tree.declaration(identity)
        if found is None or found.kind not in VARIABLES:
            captured = self._init_capture(declared.get("name", ""))
            if captured is not None:
                return captured
            raise self.unsupported(f"{declared.get('name')!r} is not supported here", node)
        return self.global_variable(found)

    def _init_capture(self, name: str) -> LValue | None:
        return self.frames[-1].captures.get(f"={name}")

    def _r_declrefexpr(self, node: Node) -> Value:
        declared = node.get("referencedDecl") or {}
        if declared.get("kind") in FUNCTIONS:
            found = self.tree.declaration(declared["id"])
            if found is None:
                raise self.unsupported(f"function {declared.get('name')!r} is not known", node)
            return FunctionName(self._of_closure(found, node))
        if declared.get("kind") == "EnumConstantDecl":
            return self._enumerator(node, declared)
        if declared.get("kind") == "NonTypeTemplateParmDecl":
            raise self.unsupported(f"template parameter {declared.get('name')!r} without a value", node)
        return self.load(self.lvalue(node), node)

    def _of_closure(self, function: Node, node: Node) -> Node:
        """The call operator in place of the static function by which a lambda is a function pointer."""
        if function.name != "__invoke" or not function.get("isImplicit"):
            return function
        operators = function.parent.children("CXXMethodDecl") if function.parent is not None else []
        for operator in operators:
            if operator.name == "operator()":
                return operator
        raise self.unsupported("a pointer to a generic lambda is not supported", node)

    def _enumerator(self, node: Node, declared: dict[str, Any]) -> Value:
        raise NotImplementedError

    def _l_memberexpr(self, node: Node) -> LValue:
        member = str(node.get("referencedMemberDecl"))
        found = self.tree.declaration(member)
        if found is not None and found.kind == "VarDecl":
            return self.global_variable(found)
        operand = node.inner[0]
        if node.get("isArrow"):
            kind = self.type_of(operand)
            assert isinstance(kind, Pointer)
            place = self.dereference(self.rvalue(operand), kind.pointee, node)
        elif operand.get("valueCategory") == "prvalue":
            place = self.materialise(self.rvalue(operand), operand)
        else:
            place = self.lvalue(operand)
        return self.member(place, member, node)

    def member(self, place: LValue, member: str, node: Node) -> LValue:
        """A field of an object."""
        if not isinstance(place.type, Record):
            raise self.unsupported(f"a member of {describe(place.type)}", node)
        layout = self.ask(self.kinds.layout, place.type, node=node)
        if member not in layout.fields:
            raise self.unsupported(f"member {node.name!r} of {describe(place.type)}", node)
        field = self.tree.declaration(member)
        assert field is not None
        self.kinds.scopes.append(self.kinds.record(place.type))
        try:
            kind = self.type_of(field)
        finally:
            self.kinds.scopes.pop()
        kind = layout.bits.get(member, kind)
        part = self.part(place, layout.fields[member], kind)
        return self.through_reference(part, node) if isinstance(kind, Reference) else part

    def _l_arraysubscriptexpr(self, node: Node) -> LValue:
        base, index = node.inner
        if not isinstance(self.type_of(base), Pointer):
            base, index = index, base
        pointer, position = self.ordered(lambda: self.rvalue(base), lambda: self.number(index))
        kind = self.type_of(base)
        assert isinstance(kind, Pointer)
        return self.element(pointer, position, kind.pointee, node)

    def _l_unaryoperator(self, node: Node) -> LValue:
        op, operand = node.get("opcode"), node.inner[0]
        if op == "*":
            kind = self.type_of(operand)
            assert isinstance(kind, Pointer)
            return self.dereference(self.rvalue(operand), kind.pointee, node)
        if op in ("++", "--"):
            place = self.frozen(self.lvalue(operand))
            self._step_place(node, place)
            return place  # type: ignore[no-any-return]
        if op in ("__extension__",):
            return self.lvalue(operand)
        raise self.unsupported(f"operator {op} is not supported", node)

    def _step_place(self, node: Node, place: LValue) -> None:
        old = self.expression(self.load(place, node), node)
        up = node.get("opcode") == "++"
        if isinstance(place.type, Pointer):
            moved = self.element(old, Const(1, type="int64"), place.type.pointee, node, negative=not up)
            self.store(place, self.address(moved, node), node)
            return
        number = number_type(place.type)
        assert number is not None
        one = folding.convert(Const(1, type="int32"), number.dtype)
        self.store(place, folding.binary("+" if up else "-", old, one), node)

    def _l_binaryoperator(self, node: Node) -> LValue:
        op, (left, right) = node.get("opcode"), node.inner
        if op == ",":
            self.discard(left)
            return self.lvalue(right)
        if op != "=":
            raise self.unsupported(f"operator {op} is not supported", node)
        value, place = self.ordered(lambda: self.rvalue(right), lambda: self.lvalue(left))
        if self.unused is not node:
            place = self.frozen(place)
        self.store(place, value, node)
        return place  # type: ignore[no-any-return]

    def _l_compoundassignoperator(self, node: Node) -> LValue:
        left, right = node.inner
        value, place = self.ordered(lambda: self.rvalue(right), lambda: self.lvalue(left))
        place = self.frozen(place)
        op = str(node.get("opcode")).removesuffix("=")
        old = self.load(place, node)
        if isinstance(place.type, Pointer):
            new = self._pointer_arithmetic(op, old, value, place.type, self.type_of(right), node)
        else:
            computed = node.get("computeLHSType") or {}
            kind = self.read_type(computed.get("desugaredQualType") or computed.get("qualType") or "", node)
            assert isinstance(kind, Scalar)
            number = number_type(place.type)
            assert number is not None
            widened = folding.convert(self.expression(old, node), kind.dtype)
            new = folding.convert(self.operate(op, widened, value, kind, kind, node), number.dtype)
        self.store(place, new, node)
        return place  # type: ignore[no-any-return]

    def _l_conditionaloperator(self, node: Node) -> LValue:
        condition = self.condition(node.inner[0])
        if isinstance(condition, Const):
            return self.lvalue(node.inner[1 if condition.value else 2])
        kind = self.type_of(node)

        def pointer(operand: Node) -> Expr:
            return self.expression(self.address(self.lvalue(operand), node), node)

        value = self.choose(condition, lambda: pointer(node.inner[1]), lambda: pointer(node.inner[2]), node)
        return InMemory(self.expression(value, node), 0, kind)

    def _r_cxxthisexpr(self, node: Node) -> Value:
        this = self.frames[-1].this
        if this is None:
            raise self.unsupported("'this' is not supported here", node)
        return self.address(this, node)


def last_child(node: Node) -> Node:
    """The operand of a node that only wraps it."""
    return node.inner[-1]
