"""Lambdas: closures, what they capture, and what their bodies see."""

from __future__ import annotations

from refsim.frontends.cuda_cpp.core import Frame
from refsim.frontends.cuda_cpp.expressions import Expressions
from refsim.frontends.cuda_cpp.tree import Node
from refsim.frontends.cuda_cpp.type_names import split_list
from refsim.frontends.cuda_cpp.types import Array, CType, Pointer, Record, Reference
from refsim.frontends.cuda_cpp.values import Aggregate, InObject, Object, Value


class Lambdas(Expressions):
    """Lambdas of a translation."""

    def _r_lambdaexpr(self, node: Node) -> Value:
        record = node.inner[0]
        self.tree.add_type(record)
        self.tree.add_function(record)
        fields = record.children("FieldDecl")
        initialisers = [child for child in node.inner[1:] if child.kind and child.kind != "CompoundStmt"]
        kind = Record(record.id, "lambda")
        layout = self.ask(self.kinds.layout, kind, node=node)
        names = self._introducer(node)
        closure = Object(kind, node.id)
        captured: list[tuple[int, str]] = []
        for number, (field, operand) in enumerate(zip(fields, initialisers)):
            offset = layout.fields[field.id]
            captured.append((offset, names.get(number) or _captured(operand)))
            self._capture(closure, offset, self.type_of(field), operand)
        self.lambdas[record.id] = captured
        return Aggregate(kind, closure.leaves, closure.references)

    def _capture(self, closure: Object, offset: int, kind: CType, operand: Node) -> None:
        inner = operand
        while inner.kind in ("ImplicitCastExpr", "ParenExpr", "UnaryOperator") and inner.inner:
            inner = inner.inner[0]
        if inner.kind == "CXXThisExpr":
            this = self.frames[-1].this
            if this is None:
                raise self.unsupported("'this' is not supported here", operand)
            closure.references[offset] = this
        elif isinstance(kind, Reference):
            closure.references[offset] = self.frozen(self.lvalue(operand))
        elif isinstance(kind, Array):
            source = self.lvalue(operand.inner[0].inner[0] if operand.kind == "ArrayInitLoopExpr" else operand)
            for leaf in self.ask(self.kinds.leaves, kind, node=operand):
                value = self.load(self.part(source, leaf.offset, leaf.type), operand)
                closure.leaves[offset + leaf.offset] = self.temporary(self.expression(value, operand))
        else:
            value = self.rvalue(operand)
            if isinstance(value, Aggregate):
                closure.leaves.update({offset + at: self.temporary(leaf) for at, leaf in value.leaves.items()})
                closure.references.update({offset + at: bound for at, bound in value.references.items()})
            else:
                closure.leaves[offset] = self.temporary(self.expression(value, operand))

    def _introducer(self, node: Node) -> dict[int, str]:
        """Names of init-captures by position, read from the text: they are not in the tree."""
        begin, end = node.offset, node.end
        if begin is None or end is None:
            return {}
        text = self.tree.source.between(begin, end)
        inside, depth = "", 0
        for position, char in enumerate(text):
            depth += (char == "[") - (char == "]")
            if depth == 0:
                inside = text[1:position]
                break
        items = [item.strip() for item in split_list(inside) if item.strip() not in ("", "=", "&")]
        names: dict[int, str] = {}
        for number, item in enumerate(items):
            name = item.lstrip("&. ")
            for mark in ("=", "{", "("):
                if mark in name:
                    names[number] = "=" + name.split(mark)[0].strip()
                    break
        return names

    def enter(self, frame: Frame) -> None:
        """What the body of a lambda sees: captured variables, and the captured ``this``."""
        record = frame.node.parent
        while record is not None and record.kind == "FunctionTemplateDecl":
            record = record.parent
        if record is None or record.id not in self.lambdas or frame.this is None:
            return
        closure, frame.this = frame.this, None
        for offset, name in self.lambdas[record.id]:
            field = next(leaf for leaf in record.children("FieldDecl") if self._field_offset(record, leaf) == offset)
            kind = self.type_of(field)
            place = self.part(closure, offset, kind)
            if isinstance(closure, InObject) and closure.offset + offset in closure.object.references:
                place = closure.object.references[closure.offset + offset]
            elif name == "this" and isinstance(kind, Pointer):
                place = self.dereference(self.load(place, frame.node), kind.pointee, frame.node)
            elif isinstance(kind, Reference):
                place = self.through_reference(place, frame.node)
            if name == "this":
                frame.this = place
            else:
                frame.captures[name] = place

    def _field_offset(self, record: Node, field: Node) -> int:
        layout = self.ask(self.kinds.layout, Record(record.id, self.kinds.record_name(record)), node=record)
        return int(layout.fields[field.id])


def _captured(operand: Node) -> str:
    """Id of the variable that a capture's initialiser copies or refers to."""
    for part in operand.walk():
        if part.kind == "DeclRefExpr":
            return str((part.get("referencedDecl") or {}).get("id", ""))
        if part.kind == "CXXThisExpr":
            return "this"
    return ""
