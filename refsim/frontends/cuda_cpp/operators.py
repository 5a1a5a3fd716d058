"""C++ operators: arithmetic, pointers, short circuit, choices, steps."""

from __future__ import annotations

from collections.abc import Callable

from refsim.dialect import (
    Assign,
    Const,
    Expr,
    If,
    Intrinsic,
    PointerCompare,
    PointerDifference,
    PointerType,
    Stmt,
    is_free,
)
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.layout import is_function
from refsim.frontends.cuda_cpp.literals import Literals
from refsim.frontends.cuda_cpp.tree import FUNCTIONS, Node
from refsim.frontends.cuda_cpp.types import CType, Pointer, number_type, pointer_to
from refsim.frontends.cuda_cpp.values import (
    AddressOf,
    Aggregate,
    InMemory,
    InObject,
    LValue,
    Value,
)

INTEGER_OPERATORS = {"+": "+", "-": "-", "*": "*", "/": "div", "%": "rem", "&": "&", "|": "|", "^": "^"}
FLOAT_OPERATORS = {"+": "+", "-": "-", "*": "*", "/": "/"}


class Operators(Literals):
    """Operators of a translation."""

    def branch(self, condition: Expr, then: list[Stmt], otherwise: list[Stmt]) -> None:
        """An `If`, or one of its sides if the condition is known."""
        if isinstance(condition, Const):
            self.out.extend(then if condition.value else otherwise)
        elif then or otherwise:
            self.out.append(If(condition, then, otherwise, self.place(self.current)))

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
            if op == "/" and x.type == "float32" and not self.options.prec_div:
                name = "div_approx" if self.options.fast_math else "div_full"
                return Intrinsic(name, "float32", (x, y), type="float32")
            return folding.binary(op, x, y)
        return folding.binary(INTEGER_OPERATORS[op], x, y)

    def _pointer_arithmetic(self, op: str, a: Value, b: Value, left: CType, right: CType, node: Node) -> Expr:
        if op in folding.COMPARE:
            x, y = self.expression(a, node), self.expression(b, node)
            if is_function(left):
                return folding.compare(op, x, y)
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
        return InMemory(folding.advance(base, offset, pointer_to(self.kinds.main_dtype(kind))), 0, kind)

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
        return self.choose(condition, lambda: self.rvalue(node.inner[1]), lambda: self.rvalue(node.inner[2]), node)

    def choose_loaded(self, node: Node) -> Value:
        """Value of the object that a condition chooses: no object needs an address for that."""
        condition = self.condition(node.inner[0])
        first, second = node.inner[1:]
        if isinstance(condition, Const):
            return self.load(self.lvalue(first if condition.value else second), node)
        return self.choose(
            condition, lambda: self.load(self.lvalue(first), node), lambda: self.load(self.lvalue(second), node), node
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
        self.out.append(If(condition, [*first, Assign(variable.name, x)], [*second, Assign(variable.name, y)]))
        self.stable.add(variable.name)
        return variable

    def _choose_aggregate(
        self, condition: Expr, first: list[Stmt], a: Aggregate, second: list[Stmt], b: Aggregate, node: Node
    ) -> Value:
        result: dict[int, Expr] = {}
        bound: dict[int, LValue] = {}
        for offset, target in a.references.items():
            variable = self.variable("s@", pointer_to(self.kinds.main_dtype(target.type)))
            first.append(Assign(variable.name, self.expression(self.address(target, node), node)))
            other = self.address(b.references[offset], node)
            second.append(Assign(variable.name, self.expression(other, node)))
            bound[offset] = InMemory(variable, 0, target.type)
            self.stable.add(variable.name)
        for offset, x in a.leaves.items():
            variable = self.variable("s@", x.type)
            first.append(Assign(variable.name, x))
            second.append(Assign(variable.name, b.leaves[offset]))
            result[offset] = variable
            self.stable.add(variable.name)
        self.out.append(If(condition, first, second))
        return Aggregate(a.type, result, bound)

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
            number = number_type(kind)
            assert number is not None
            one = folding.convert(Const(1, type="int32"), number.dtype)
            new = folding.binary("+" if up else "-", old, one)
        self.store(place, new, node)
        if self.unused is node:
            return None
        return old if postfix else self.load(place, node)
