"""C++ expressions: values and places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from refsim.dialect import (
    Assign,
    Binary,
    Const,
    Effect,
    Expr,
    If,
    Intrinsic,
    NullPointer,
    PointerCompare,
    PointerDifference,
    PointerType,
    Stmt,
    is_free,
)
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.casts import Casts
from refsim.frontends.cuda_cpp.tree import FUNCTIONS, Node
from refsim.frontends.cuda_cpp.types import Array, CType, Pointer, Record, Reference, Scalar, describe
from refsim.frontends.cuda_cpp.values import (
    AddressOf,
    Aggregate,
    FunctionName,
    InMemory,
    InObject,
    LValue,
    Value,
)

INTEGER_OPERATORS = {"+": "+", "-": "-", "*": "*", "/": "div", "%": "rem", "&": "&", "|": "|", "^": "^"}
FLOAT_OPERATORS = {"+": "+", "-": "-", "*": "*", "/": "/"}
TRANSPARENT = frozenset(
    {
        "ParenExpr", "ExprWithCleanups", "SubstNonTypeTemplateParmExpr", "CXXRewrittenBinaryOperator",
        "CXXDefaultInitExpr",
    }
)  # fmt: skip
CASTS = frozenset(
    {
        "ImplicitCastExpr", "CStyleCastExpr", "CXXStaticCastExpr", "CXXFunctionalCastExpr", "CXXReinterpretCastExpr",
        "CXXConstCastExpr", "BuiltinBitCastExpr",
    }
)  # fmt: skip
CALLS = frozenset({"CallExpr", "CXXMemberCallExpr", "CXXOperatorCallExpr", "UserDefinedLiteral"})
CONSTRUCTIONS = frozenset({"CXXConstructExpr", "CXXTemporaryObjectExpr", "CXXInheritedCtorInitExpr"})


class Expressions(Casts):
    """Expressions of a translation."""

    # --------------------------------------------------------------------------------------------- values

    def rvalue(self, node: Node) -> Value:
        """Value of an expression; a class's value is its leaves."""
        kind = node.kind
        if kind in CASTS:
            if node.get("valueCategory") != "prvalue" and node.get("castKind") != "LValueToRValue":
                return self.load(self.cast_place(node), node)
            return self.cast(node)
        if kind in TRANSPARENT:
            return self.rvalue(_last(node))
        if kind in CALLS:
            result = self.call(node)
            return self.load(result, node) if isinstance(result, (InObject, InMemory)) else result
        if kind in CONSTRUCTIONS:
            return self.construct(node)
        handler: Callable[[Node], Value] | None = getattr(self, f"_r_{kind.lower()}", None)
        if handler is not None:
            return handler(node)
        if node.get("valueCategory") in ("lvalue", "xvalue"):
            return self.load(self.lvalue(node), node)
        raise self.unsupported(f"expression {kind} is not supported", node)

    def number(self, node: Node) -> Expr:
        """Value of an expression that must be a number or pointer."""
        return self.expression(self.rvalue(node), node)

    def condition(self, node: Node) -> Expr:
        """Value of an expression of type bool."""
        return folding.convert(self.number(node), "bool")

    def discard(self, node: Node) -> None:
        """Evaluate an expression for its effects."""
        inner = node
        while inner.kind in ("ParenExpr", "ExprWithCleanups"):
            inner = _last(inner)
        if inner.kind in CASTS and inner.get("castKind") in ("ToVoid", "NoOp"):
            self.discard(inner.inner[0])
            return
        outer, self.unused = self.unused, inner
        try:
            if inner.kind in CALLS:
                self.call(inner)
            elif inner.kind == "UnaryOperator" and inner.get("opcode") in ("++", "--"):
                self._step(inner)
            elif inner.kind == "ConditionalOperator" and inner.type_text == "void":
                self._choose_effect(inner)
            elif inner.kind == "BinaryOperator" and inner.get("opcode") == ",":
                self.discard(inner.inner[0])
                self.discard(inner.inner[1])
            elif inner.get("valueCategory") in ("lvalue", "xvalue"):
                self.lvalue(inner)
            else:
                value = self.rvalue(inner)
                if isinstance(value, Expr) and not is_free(value):
                    self.out.append(Effect(value))
        finally:
            self.unused = outer

    def _choose_effect(self, node: Node) -> None:
        condition = self.condition(node.inner[0])
        then, _ = self.aside(lambda: self.discard(node.inner[1]))
        other, _ = self.aside(lambda: self.discard(node.inner[2]))
        self.branch(condition, then, other)

    def branch(self, condition: Expr, then: list[Stmt], otherwise: list[Stmt]) -> None:
        """An `If`, or one of its sides if the condition is known."""
        if isinstance(condition, Const):
            self.out.extend(then if condition.value else otherwise)
        elif then or otherwise:
            self.out.append(If(condition, then, otherwise))

    # ------------------------------------------------------------------------------------------- literals

    def _scalar_type(self, node: Node) -> str:
        kind = self.type_of(node)
        if not isinstance(kind, Scalar):
            raise self.unsupported(f"a number of type {node.type_text!r}", node)
        return kind.dtype

    def _r_integerliteral(self, node: Node) -> Value:
        return folding.integer(int(node.get("value")), self._scalar_type(node))

    def _r_characterliteral(self, node: Node) -> Value:
        return folding.integer(int(node.get("value")), self._scalar_type(node))

    def _r_floatingliteral(self, node: Node) -> Value:
        dtype = self._scalar_type(node)
        text = str(node.get("value")).replace("+Inf", "inf").replace("-Inf", "-inf")
        if dtype in folding.NATIVE:
            return Const(np.dtype(dtype).type(text), type=dtype)
        return folding.convert(Const(np.float64(text), type="float64"), dtype)

    def _r_cxxboolliteralexpr(self, node: Node) -> Value:
        return Const(bool(node.get("value")), type="bool")

    def _r_cxxnullptrliteralexpr(self, node: Node) -> Value:
        return NullPointer(type=PointerType("uint8"))

    def _r_gnunullexpr(self, node: Node) -> Value:
        return folding.integer(0, self._scalar_type(node))

    def _r_constantexpr(self, node: Node) -> Value:
        kind = self.type_of(node)
        text = str(node.get("value", ""))
        if isinstance(kind, Scalar) and (text in ("true", "false") or text.lstrip("-").isdigit()):
            number = {"true": 1, "false": 0}.get(text)
            return self.constant(int(text) if number is None else number, kind)
        return self.rvalue(node.inner[0])

    @staticmethod
    def constant(value: int, kind: Scalar) -> Const:
        """An integer constant of a C++ type."""
        if kind.dtype == "bool":
            return Const(bool(value), type="bool")
        return folding.integer(value, kind.dtype)

    def _r_implicitvalueinitexpr(self, node: Node) -> Value:
        return self.zero(self.type_of(node), node)

    _r_cxxscalarvalueinitexpr = _r_implicitvalueinitexpr

    def _r_unaryexprortypetraitexpr(self, node: Node) -> Value:
        argument = node.get("argType")
        text = (argument.get("desugaredQualType") or argument["qualType"]) if argument else node.inner[0].type_text
        kind = self.read_type(text, node)
        if isinstance(kind, Reference):
            kind = kind.target
        if node.name == "sizeof":
            return folding.integer(self.ask(self.kinds.bytes, kind, node=node), self._scalar_type(node))
        if node.name in ("alignof", "__alignof", "_Alignof"):
            return folding.integer(self.ask(self.kinds.align, kind, node=node), self._scalar_type(node))
        raise self.unsupported(f"{node.name} is not supported", node)

    def _r_sizeofpackexpr(self, node: Node) -> Value:
        function = self.frames[-1].node
        parameters = [p for p in function.children("ParmVarDecl") if p.name == node.name]
        if parameters:
            return folding.integer(len(parameters), self._scalar_type(node))
        for scope in (function, *function.ancestors()):
            packs = [p for p in scope.children("TemplateArgument") if p.get("isPack")]
            if len(packs) == 1:
                return folding.integer(len(packs[0].inner), self._scalar_type(node))
        names = {p.name for p in function.children("ParmVarDecl")}
        raise self.unsupported(f"sizeof...({node.name}) among parameters {sorted(names)}", node)

    def _r_typetraitexpr(self, node: Node) -> Value:
        if "value" not in node.data:
            raise self.unsupported("this type trait is not supported", node)
        return Const(bool(node.get("value")), type="bool")

    _r_cxxnoexceptexpr = _r_typetraitexpr

    # ------------------------------------------------------------------------------------------ operators

    def _r_binaryoperator(self, node: Node) -> Value:
        op, (left, right) = node.get("opcode"), node.inner
        if op in ("&&", "||"):
            return self._short_circuit(node, op)
        if op == ",":
            self.discard(left)
            return self.rvalue(right)
        if op == "=":
            return self.load(self.lvalue(node), node)
        if op in (".*", "->*"):
            raise self.unsupported("a pointer to member is not supported", node)
        a, b = self.ordered(lambda: self.rvalue(left), lambda: self.rvalue(right))
        return self.operate(op, a, b, self.type_of(left), self.type_of(right), node)

    def operate(self, op: str, a: Value, b: Value, left: CType, right: CType, node: Node) -> Expr:
        """``a op b`` for operands of the types that C++'s conversions gave them."""
        if isinstance(left, Pointer) or isinstance(right, Pointer):
            return self._pointer_arithmetic(op, a, b, left, right, node)
        x, y = self.expression(a, node), self.expression(b, node)
        if op in folding.COMPARE:
            return folding.compare(op, x, y)
        if op in ("<<", ">>"):
            return folding.binary(op, x, folding.convert(y, str(x.type)))
        if op == "<=>":
            raise self.unsupported("operator <=> is not supported", node)
        if "float" in str(x.type):
            if op not in FLOAT_OPERATORS:
                raise self.unsupported(f"operator {op} on {x.type}", node)
            return self._fused(op, x, y) or folding.binary(op, x, y)
        return folding.binary(INTEGER_OPERATORS[op], x, y)

    def _fused(self, op: str, x: Expr, y: Expr) -> Expr | None:
        """``a * b + c`` rounded once, where the options ask for it."""
        kind = str(x.type)
        if not self.options.fmad or op not in ("+", "-") or kind not in ("float32", "float64"):
            return None
        for product, other, first in ((x, y, True), (y, x, False)):
            if isinstance(product, Binary) and product.op == "*":
                a, b, c = product.left, product.right, other
                if op == "-":
                    a, c = (a, folding.unary("-", c)) if first else (folding.unary("-", a), c)
                return Intrinsic("fma", kind, (a, b, c), type=kind)
        return None

    def _pointer_arithmetic(self, op: str, a: Value, b: Value, left: CType, right: CType, node: Node) -> Expr:
        if op in folding.COMPARE:
            x, y = self.expression(a, node), self.expression(b, node)
            return PointerCompare(op, x, y, type="bool")
        if op == "-" and isinstance(left, Pointer) and isinstance(right, Pointer):
            size = self.ask(self.kinds.bytes, left.pointee, node=node)
            difference = PointerDifference(self.expression(a, node), self.expression(b, node), type="int64")
            return folding.binary("div", difference, Const(size, type="int64"))
        if op == "+" and not isinstance(left, Pointer):
            a, b, left = b, a, right
        if op not in ("+", "-") or not isinstance(left, Pointer):
            raise self.unsupported(f"operator {op} on pointers", node)
        place = self.element(a, self.expression(b, node), left.pointee, node, negative=op == "-")
        return self.expression(self.address(place, node), node)

    def element(self, pointer: Value, index: Expr, kind: CType, node: Node, negative: bool = False) -> LValue:
        """The object a number of elements after a pointer."""
        if isinstance(pointer, AddressOf):
            part = self._element_of_object(pointer, index, kind, node, negative)
            if part is not None:
                return part
        base = self.expression(pointer, node)
        wide = folding.convert(index, "int64")
        size = self.ask(self.kinds.bytes, kind, node=node)
        offset = folding.binary("*", wide, Const(size, type="int64"))
        if negative:
            offset = folding.unary("-", offset)
        if isinstance(offset, Const):
            return InMemory(base, int(offset.value), kind)
        return InMemory(folding.advance(base, offset, PointerType(self.kinds.main_dtype(kind))), 0, kind)

    def _element_of_object(
        self, pointer: AddressOf, index: Expr, kind: CType, node: Node, negative: bool
    ) -> InObject | None:
        if not isinstance(index, Const):
            return None
        place = pointer.place
        steps = -int(index.value) if negative else int(index.value)
        moved = InObject(place.object, place.offset + steps * self.kinds.bytes(kind), kind)
        return self.refit(moved, kind, node)

    def _short_circuit(self, node: Node, op: str) -> Expr:
        left = self.condition(node.inner[0])
        conjunction = op == "&&"
        if isinstance(left, Const):
            return self.condition(node.inner[1]) if bool(left.value) == conjunction else left
        extra, right = self.aside(lambda: self.condition(node.inner[1]))
        if not extra and is_free(right):
            return folding.binary("and" if conjunction else "or", left, right)
        variable = self.variable("c@", "bool")
        self.assign(variable, left)
        taken: list[Stmt] = [*extra, Assign(variable.name, right)]
        self.out.append(If(variable, taken, []) if conjunction else If(variable, [], taken))
        self.stable.add(variable.name)
        return variable

    def _r_conditionaloperator(self, node: Node) -> Value:
        condition = self.condition(node.inner[0])
        if isinstance(condition, Const):
            return self.rvalue(node.inner[1 if condition.value else 2])
        return self.choose(
            condition, lambda: self.rvalue(node.inner[1]), lambda: self.rvalue(node.inner[2]), node
        )

    def choose(self, condition: Expr, then: Callable[[], Value], otherwise: Callable[[], Value], node: Node) -> Value:
        """One of two values, of which only the chosen one is evaluated if that matters."""
        first, a = self.aside(then)
        second, b = self.aside(otherwise)
        if a is None or b is None:
            self.branch(condition, first, second)
            return None
        if isinstance(a, Aggregate) and isinstance(b, Aggregate):
            return self._choose_aggregate(condition, first, a, second, b, node)
        x, y = self.expression(a, node), self.expression(b, node)
        if not first and not second and is_free(x) and is_free(y) and not isinstance(x.type, PointerType):
            return folding.select(condition, x, y)
        variable = self.variable("s@", x.type)
        self.out.append(
            If(condition, [*first, Assign(variable.name, x)], [*second, Assign(variable.name, y)])
        )
        self.stable.add(variable.name)
        return variable

    def _choose_aggregate(
        self, condition: Expr, first: list[Stmt], a: Aggregate, second: list[Stmt], b: Aggregate, node: Node
    ) -> Value:
        if a.references or b.references:
            raise self.unsupported("a choice between objects with references", node)
        result: dict[int, Expr] = {}
        for offset, x in a.leaves.items():
            variable = self.variable("s@", x.type)
            first.append(Assign(variable.name, x))
            second.append(Assign(variable.name, b.leaves[offset]))
            result[offset] = variable
            self.stable.add(variable.name)
        self.out.append(If(condition, first, second))
        return Aggregate(a.type, result)

    def _r_unaryoperator(self, node: Node) -> Value:
        op, operand = node.get("opcode"), node.inner[0]
        if op in ("++", "--"):
            return self._step(node)
        if op == "&":
            if self._names_function(operand):
                return self.rvalue(operand)
            return self.address(self.lvalue(operand), node)
        if op == "*":
            return self.load(self.lvalue(node), node)
        if op in ("+", "__extension__"):
            return self.rvalue(operand)
        value = self.number(operand)
        if op == "!":
            return folding.not_(folding.convert(value, "bool"))
        if op in ("-", "~"):
            return folding.unary(op, value)
        raise self.unsupported(f"operator {op} is not supported", node)

    @staticmethod
    def _names_function(node: Node) -> bool:
        while node.kind in ("ParenExpr", "ImplicitCastExpr"):
            node = node.inner[0]
        return node.kind == "DeclRefExpr" and (node.get("referencedDecl") or {}).get("kind") in FUNCTIONS

    def _step(self, node: Node) -> Value:
        """``++`` and ``--``; the value of the postfix forms is the old one."""
        place = self.frozen(self.lvalue(node.inner[0]))
        old = self.expression(self.load(place, node), node)
        kind = place.type
        postfix = bool(node.get("isPostfix")) and self.unused is not node
        if postfix:
            # the variable changes next: its old value needs a name of its own
            kept = self.variable("t@", old.type)
            self.assign(kept, old)
            self.stable.add(kept.name)
            old = kept
        up = node.get("opcode") == "++"
        if isinstance(kind, Pointer):
            moved = self.element(old, Const(1, type="int64"), kind.pointee, node, negative=not up)
            new = self.expression(self.address(moved, node), node)
        else:
            assert isinstance(kind, Scalar)
            one = folding.convert(Const(1, type="int32"), kind.dtype)
            new = folding.binary("+" if up else "-", old, one)
        self.store(place, new, node)
        if self.unused is node:
            return None
        return old if postfix else self.load(place, node)

    # --------------------------------------------------------------------------------------------- places

    def lvalue(self, node: Node) -> LValue:
        """The place that an expression means."""
        kind = node.kind
        if kind in CASTS:
            return self.cast_place(node)
        if kind in TRANSPARENT:
            return self.lvalue(_last(node))
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

    def materialise(self, value: Value, node: Node) -> LValue:
        """A temporary object with a value."""
        return self.bound(value, self.type_of(node), "temporary", node.id, node)

    def _l_materializetemporaryexpr(self, node: Node) -> LValue:
        inner = node.inner[0]
        kind = self.type_of(node)
        if isinstance(kind, (Array, Record)):
            target = self.make(kind, "temporary", node.id, node)
            self.initialise(target, inner)
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
        found = self.tree.declaration(identity)
        if found is None or found.kind != "VarDecl":
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
            return FunctionName(found)
        if declared.get("kind") == "EnumConstantDecl":
            return self._enumerator(node, declared)
        if declared.get("kind") == "NonTypeTemplateParmDecl":
            raise self.unsupported(f"template parameter {declared.get('name')!r} without a value", node)
        return self.load(self.lvalue(node), node)

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
        part = self.part(place, layout.fields[member], kind)
        return self.through_reference(part, node) if isinstance(kind, Reference) else part

    def through_reference(self, place: LValue, node: Node | None) -> LValue:
        """What a reference inside an object is bound to."""
        if isinstance(place, InObject) and place.offset in place.object.references:
            return place.object.references[place.offset]
        raise self.unsupported("a reference kept in memory", node)

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
        assert isinstance(place.type, Scalar)
        one = folding.convert(Const(1, type="int32"), place.type.dtype)
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
            assert isinstance(place.type, Scalar)
            widened = folding.convert(self.expression(old, node), kind.dtype)
            new = folding.convert(self.operate(op, widened, value, kind, kind, node), place.type.dtype)
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

    # ----------------------------------------------------------------------------------------------- this

    def _r_cxxthisexpr(self, node: Node) -> Value:
        this = self.frames[-1].this
        if this is None:
            raise self.unsupported("'this' is not supported here", node)
        return self.address(this, node)


def _last(node: Node) -> Node:
    return node.inner[-1]
