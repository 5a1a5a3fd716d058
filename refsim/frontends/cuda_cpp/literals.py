"""Literals, and other expressions whose value is known from the tree."""

from __future__ import annotations

import numpy as np

from refsim.dialect import (
    Const,
    Expr,
    NullPointer,
    PointerType,
)
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.casts import Casts
from refsim.frontends.cuda_cpp.tree import Node
from refsim.frontends.cuda_cpp.types import Reference, Scalar
from refsim.frontends.cuda_cpp.values import (
    Value,
)


class Literals(Casts):
    """Literals of a translation."""

    def number(self, node: Node) -> Expr:
        """Value of an expression that must be a number or pointer."""
        return self.expression(self.rvalue(node), node)

    def condition(self, node: Node) -> Expr:
        """Value of an expression of type bool."""
        return folding.convert(self.number(node), "bool")

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
