"""C++ expressions: their values, or only their effects."""

from __future__ import annotations

from collections.abc import Callable

from refsim.dialect import (
    Effect,
    Expr,
    is_free,
)
from refsim.frontends.cuda_cpp.places import CALLS, CASTS, CONSTRUCTIONS, TRANSPARENT, Places, last_child
from refsim.frontends.cuda_cpp.tree import Node
from refsim.frontends.cuda_cpp.values import (
    InMemory,
    InObject,
    Value,
)

# prvalues of class type that are dropped: the object lives to the end of the full expression
OWNERS = frozenset({"CXXBindTemporaryExpr", "CXXFunctionalCastExpr", "CXXTemporaryObjectExpr"})


class Expressions(Places):
    """Expressions of a translation."""

    def rvalue(self, node: Node) -> Value:
        """Value of an expression; a class's value is its leaves."""
        kind = node.kind
        if kind in CASTS:
            if node.get("valueCategory") != "prvalue" and node.get("castKind") != "LValueToRValue":
                return self.load(self.cast_place(node), node)
            return self.cast(node)
        if kind in TRANSPARENT:
            return self.rvalue(last_child(node))
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

    def discard(self, node: Node) -> None:
        """Evaluate an expression for its effects."""
        inner = node
        while inner.kind == "ParenExpr":
            inner = last_child(inner)
        if inner.kind == "ExprWithCleanups":
            with self.scope(full_expression=True):
                self.discard(last_child(inner))
            return
        if inner.kind in OWNERS and self.has_destructor(self.type_of(inner)):
            temporary = self.make(self.type_of(inner), "temporary", inner.id, inner)
            self.initialise(temporary, inner)
            self.own(temporary, inner)
            return
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
