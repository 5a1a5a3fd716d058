"""Constructors: they build objects in place, bases and members first."""

from __future__ import annotations

from refsim.dialect import Const
from refsim.frontends.cuda_cpp.calls import Calls
from refsim.frontends.cuda_cpp.tree import Node
from refsim.frontends.cuda_cpp.types import TABLE, Array, CType, Record, Reference
from refsim.frontends.cuda_cpp.values import LValue, Value


class Constructors(Calls):
    """Constructors of a translation."""

    def construct(self, node: Node, target: LValue | None = None) -> Value:
        """Run a constructor on an object; without one, on a temporary whose value is returned."""
        kind = self.type_of(node)
        if isinstance(kind, Array):
            if target is None:
                raise self.unsupported("an array of class objects as a value", node)
            return self._construct_array(node, kind, target)
        if not isinstance(kind, Record):
            raise self.unsupported(f"construction of {node.type_text!r}", node)
        arguments = node.inner
        constructor = self._constructor(kind, node)
        if constructor is None or self.copies(constructor):
            if len(arguments) == 1:
                value = self.rvalue(arguments[0])
                if target is not None:
                    self.store(target, value, node)
                    return None
                return value
            if constructor is None or self.tree.definition(constructor) is None or self._is_trivial_default(kind):
                zeroed = bool(node.get("zeroing")) or target is None
                value = self.zero(kind, node) if zeroed else None
                if target is not None and zeroed:
                    self.store(target, value, node)
                return value
        if node.get("zeroing") and target is not None:
            self.store(target, self.zero(kind, node), node)
        place = target if target is not None else self.make(kind, "temporary", node.id, node)
        definition = self.tree.definition(constructor)
        if definition is None:
            raise self.unsupported(f"constructor {node.get('ctorType', {}).get('qualType')} has no body", node)
        self.inline(definition, place, arguments, node)
        return self.load(place, node) if target is None else None

    def _is_trivial_default(self, kind: Record) -> bool:
        data = self.kinds.record(kind).get("definitionData") or {}
        return bool((data.get("defaultCtor") or {}).get("trivial"))

    def _construct_array(self, node: Node, kind: Array, target: LValue) -> Value:
        element = kind
        while isinstance(element.element, Array):
            element = element.element
        assert isinstance(element.element, Record)
        if self._is_trivial_default(element.element):
            return None
        constructor = self._constructor(element.element, node)
        definition = self.tree.definition(constructor) if constructor is not None else None
        if definition is None:
            raise self.unsupported(f"construction of {node.type_text!r}", node)
        size = self.kinds.bytes(element.element)
        for i in range(self.kinds.bytes(kind) // size):
            self.inline(definition, self.part(target, i * size, element.element), node.inner, node)
        return None

    def _constructor(self, kind: Record, node: Node) -> Node | None:
        """The constructor that an expression calls: that of the record with the expression's constructor type."""
        record = self.kinds.record(kind)
        text = str((node.get("ctorType") or {}).get("qualType", ""))
        found = []
        for child in record.inner:
            candidates = child.children("CXXConstructorDecl") if child.kind == "FunctionTemplateDecl" else [child]
            found += [c for c in candidates if c.kind == "CXXConstructorDecl"]
        same = [c for c in found if _without_noexcept(c.type_text) == _without_noexcept(text)]
        if not same and found and node.inner:
            self.kinds.scopes.append(record)
            try:
                wanted = self.read_type(text, node)
                same = [c for c in found if "type-parameter" not in c.type_text and self._has_type(c, wanted)]
            finally:
                self.kinds.scopes.pop()
        with_body = [c for c in same if self.tree.definition(c) is not None]
        if len({c.id for c in with_body}) > 1:
            raise self.unsupported(f"constructor {text} of {kind.name} is ambiguous", node)
        chosen = with_body or same
        return chosen[0] if chosen else None

    def _has_type(self, constructor: Node, wanted: CType) -> bool:
        try:
            return self.kinds.of(constructor) == wanted
        except Exception:  # a template's own pattern has no readable type
            return False

    def set_tables(self, place: LValue, kind: CType) -> None:
        """Make an object one of a class with virtual functions."""
        if not isinstance(kind, Record) or not self.kinds.is_polymorphic(kind):
            return
        for offset in self.ask(self.kinds.tables, kind, node=None):
            tag = Const(self.kinds.table_tag(kind, offset), type="uint64")
            self.store(self.part(place, offset, TABLE), tag, self.kinds.record(kind))

    def run_initialisers(self, function: Node, this: LValue | None, node: Node) -> None:
        """Member and base initialisers of a constructor."""
        pending = function.kind == "CXXConstructorDecl" and this is not None
        for item in function.children("CXXCtorInitializer"):
            assert this is not None
            if "anyInit" in item.data and pending:
                self.set_tables(this, this.type)
                pending = False
            operand = item.inner[0]
            if "anyInit" in item.data:
                self._initialise_member(this, item.get("anyInit"), operand, node)
            elif "baseInit" in item.data:
                text = item.get("baseInit")
                base = self.read_type(text.get("desugaredQualType") or text["qualType"], function)
                self.initialise(self.base_of(this, base, function), operand)
            else:
                self.initialise(this, operand)
                pending = False
        if pending and this is not None:
            self.set_tables(this, this.type)

    def _initialise_member(self, this: LValue, field: dict[str, object], operand: Node, node: Node) -> None:
        assert isinstance(this.type, Record)
        layout = self.ask(self.kinds.layout, this.type, node=node)
        offset = layout.fields.get(field["id"])
        if offset is None:
            raise self.unsupported(f"initialiser of {field.get('name')!r}", operand)
        declared = self.tree.declaration(str(field["id"]))
        assert declared is not None
        kind = layout.bits.get(declared.id) or self.type_of(declared)
        if isinstance(kind, Reference):
            self.bind(self.part(this, offset, kind), self.lvalue(operand), operand)
            return
        self.initialise(self.part(this, offset, kind), operand)


def _without_noexcept(text: str) -> str:
    return text.replace(" noexcept(false)", "").replace(" noexcept", "")
