"""Classes with virtual functions: where their tables lie, what stands in for them, and which function overrides which.

In place of a pointer to a table, an object holds a number: its class, and which of its tables it is.
"""

from __future__ import annotations

import hashlib

from refsim.frontends.cuda_cpp.layout import Types
from refsim.frontends.cuda_cpp.tree import Node
from refsim.frontends.cuda_cpp.types import Function, Record


class ClassTypes(Types):
    """Reads type texts, lays out records, and knows their virtual functions."""

    def is_polymorphic(self, kind: Record) -> bool:
        """True for a class with virtual functions."""
        return bool((self.record(kind).get("definitionData") or {}).get("isPolymorphic"))

    def bases(self, kind: Record) -> list[tuple[int, Record]]:
        """Direct bases and their offsets."""
        layout = self.layout(kind)
        return [
            (offset, part)
            for name, offset, part in layout.members
            if not name and isinstance(part, Record) and part.id in layout.bases
        ]

    def subobjects(self, kind: Record) -> list[tuple[int, Record]]:
        """The class itself and all its bases, with their offsets."""
        inner = [(start + at, part) for start, base in self.bases(kind) for at, part in self.subobjects(base)]
        return [(0, kind), *inner]

    def tables(self, kind: Record) -> list[int]:
        """Offsets of the numbers that stand for tables."""
        return sorted({offset for offset, part in self.subobjects(kind) if self.is_polymorphic(part)})

    def table_tag(self, kind: Record, offset: int) -> int:
        """The number of a class's table at an offset."""
        node = self.record(kind)
        where = self.tree.place(node)
        path = "::".join(part.name for part in node.ancestors() if part.name)
        return _number(f"{self.record_name(node)} {path} {where} {kind.id if not node.name else ''} {offset}")

    def derived_from(self, kind: Record) -> list[tuple[Record, int]]:
        """All classes that have a class as a base, or are it, and where in them it lies."""
        found = []
        for node in {node.id: node for nodes in self.tree.type_names.values() for node in nodes}.values():
            if not (node.get("definitionData") or {}).get("isPolymorphic"):
                continue
            derived = Record(node.id, self.record_name(node))
            found += [(derived, offset) for offset, part in self.subobjects(derived) if part.id == kind.id]
        return found

    def is_virtual(self, function: Node) -> bool:
        """True for a function that is declared virtual or overrides one that is."""
        if function.get("virtual"):
            return True
        owner = function.parent
        if owner is None or not (owner.get("definitionData") or {}).get("isPolymorphic"):
            return False
        parts = self.subobjects(Record(owner.id, self.record_name(owner)))[1:]
        return any(
            other.get("virtual") for _, part in parts if (other := self._same_method(part, function)) is not None
        )

    def overrider(self, kind: Record, function: Node) -> tuple[Node, Record, int] | None:
        """The function that an object of a class has for a virtual one: it, its class, and where that lies."""
        own = self._same_method(kind, function)
        if own is not None:
            return own, kind, 0
        assert function.parent is not None
        for offset, base in self.bases(kind):
            if any(part.id == function.parent.id for _, part in self.subobjects(base)):
                found = self.overrider(base, function)
                if found is not None:
                    return found[0], found[1], offset + found[2]
        return None

    def _same_method(self, kind: Record, function: Node) -> Node | None:
        for method in self.record(kind).children("CXXMethodDecl"):
            if method.name == function.name and self._shape(method) == self._shape(function):
                return method
        return None

    def _shape(self, method: Node) -> tuple[object, str]:
        """Parameters and qualifiers of a method."""
        self.scopes.append(method)
        try:
            signature = self.of(method)
        finally:
            self.scopes.pop()
        assert isinstance(signature, Function)
        return signature.parameters, method.type_text.rpartition(")")[2].replace("noexcept", "").strip()


def tag_of(function: Node) -> int:
    """The number that a pointer to a function holds."""
    return _number(str(function.get("mangledName") or function.id))


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "little") | 1
