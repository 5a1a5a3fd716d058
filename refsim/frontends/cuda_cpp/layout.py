"""Sizes, alignments and offsets of C++ types, by the rules of the Itanium C++ ABI."""

from __future__ import annotations

from refsim.dialect import ITEM_BYTES, Type
from refsim.frontends.cuda_cpp.packing import Packing
from refsim.frontends.cuda_cpp.tree import Node
from refsim.frontends.cuda_cpp.type_names import TypeNames, constant_value
from refsim.frontends.cuda_cpp.types import (
    TABLE,
    Array,
    BitField,
    CType,
    Function,
    Layout,
    Leaf,
    Pointer,
    Record,
    Reference,
    Scalar,
    UnknownTypeError,
    describe,
    pointer_to,
)


class Types(TypeNames):
    """Reads type texts and lays out records."""

    def bytes(self, kind: CType) -> int:
        """``sizeof``."""
        if isinstance(kind, Scalar):
            return ITEM_BYTES[kind.dtype]
        if isinstance(kind, Pointer | Reference):
            return 8
        if isinstance(kind, Array):
            return self.bytes(kind.element) * (kind.count or 0)
        if isinstance(kind, Record):
            return self.layout(kind).size
        return 1

    def align(self, kind: CType) -> int:
        """``alignof``."""
        if isinstance(kind, Array):
            return self.align(kind.element)
        return self.layout(kind).align if isinstance(kind, Record) else self.bytes(kind)

    def layout(self, kind: Record) -> Layout:
        """Layout of a record by the rules of the Itanium C++ ABI."""
        if kind.id not in self._layouts:
            node = self.record(kind)
            self.scopes.append(node)
            try:
                self._layouts[kind.id] = self._lay_out(node)
            finally:
                self.scopes.pop()
        return self._layouts[kind.id]

    def _lay_out(self, node: Node) -> Layout:
        data = node.get("definitionData") or {}
        if node.has("PackedAttr", "MaxFieldAlignmentAttr"):
            raise UnknownTypeError(f"{self.record_name(node)} is packed, which is not supported")
        layout = Layout(0, 1, 0, is_union=node.get("tagUsed") == "union")
        end = 0
        bases: list[Record] = []
        for base in node.get("bases") or ():
            if base.get("isVirtual"):
                raise UnknownTypeError(f"{self.record_name(node)} has a virtual base, which is not supported")
            kind = self.read(base["type"].get("desugaredQualType") or base["type"]["qualType"])
            assert isinstance(kind, Record)
            bases.append(kind)
        if data.get("isPolymorphic"):
            # the first base with a table lends it, and lies at the front
            primary = [kind for kind in bases if (self.record(kind).get("definitionData") or {}).get("isPolymorphic")]
            bases = [*primary[:1], *(kind for kind in bases if kind not in primary[:1])]
            if not primary:
                layout.members.append(("", 0, TABLE))
                layout.align = end = 8
        for kind in bases:
            inner = self.layout(kind)
            empty = self.is_empty(kind)
            offset = 0 if empty else -(-end // inner.align) * inner.align
            layout.bases[kind.id] = offset
            layout.members.append(("", offset, kind))
            layout.align = max(layout.align, inner.align)
            end = end if empty else offset + (inner.size if self._is_pod(kind) else inner.data_size)
        packed = Packing()
        for child in node.children("FieldDecl"):
            kind_of = self.of(child)
            if child.get("isBitfield"):
                assert isinstance(kind_of, Scalar)
                end = max(end, packed.add(child, kind_of, 0 if layout.is_union else end))
                if child.name:
                    layout.align = max(layout.align, self.align(kind_of))
                continue
            packed.finish()
            align = max(self.align(kind_of), _alignment(child))
            offset = 0 if layout.is_union else -(-end // align) * align
            layout.fields[child.id] = offset
            layout.members.append((child.name, offset, kind_of))
            layout.align = max(layout.align, align)
            end = max(end, offset + self.bytes(kind_of))
        layout.align = max(layout.align, _alignment(node))
        packed.give(layout)
        layout.data_size = end
        layout.size = max(1, -(-max(end, 1) // layout.align) * layout.align)
        return layout

    def is_empty(self, kind: Record) -> bool:
        """True for a record without fields."""
        node = self.record(kind)
        return not node.children("FieldDecl") and all(
            isinstance(base, Record) and self.is_empty(base) for _, _, base in self.layout(kind).members
        )

    def _is_pod(self, kind: Record) -> bool:
        return bool((self.record(kind).get("definitionData") or {}).get("isPOD"))

    def leaves(self, kind: CType) -> tuple[Leaf, ...]:
        """The numbers, pointers and references that an object consists of, in order of their offsets."""
        if kind not in self._leaves:
            self._leaves[kind] = tuple(self._find_leaves(kind, 0, ""))
        return self._leaves[kind]

    def _find_leaves(self, kind: CType, offset: int, path: str) -> list[Leaf]:
        if isinstance(kind, Array):
            size = self.bytes(kind.element)
            count = kind.count or 0
            return [
                leaf
                for i in range(count)
                for leaf in self._find_leaves(kind.element, offset + i * size, f"{path}[{i}]")
            ]
        if isinstance(kind, Record):
            layout = self.layout(kind)
            return [
                *(
                    leaf
                    for name, inner, part in layout.members
                    if not isinstance(part, BitField)
                    for leaf in self._find_leaves(part, offset + inner, f"{path}.{name}" if name else path)
                ),
                *(Leaf(offset + inner, word, f"{path}.bits{inner}") for inner, word in layout.words),
            ]
        return [Leaf(offset, kind, path)]

    def has_words(self, kind: CType) -> bool:
        """True if the object holds bit-fields."""
        if isinstance(kind, Array):
            return self.has_words(kind.element)
        if isinstance(kind, Record):
            layout = self.layout(kind)
            return bool(layout.words) or any(self.has_words(part) for _, _, part in layout.members)
        return False

    def overlaps(self, kind: CType) -> bool:
        """True if the object is or holds a union."""
        if isinstance(kind, Array):
            return self.overlaps(kind.element)
        if isinstance(kind, Record):
            layout = self.layout(kind)
            return layout.is_union or any(self.overlaps(part) for _, _, part in layout.members)
        return False

    def main_dtype(self, kind: CType) -> str:
        """Scalar type that an object mostly consists of: what findings about it name."""
        if isinstance(kind, Scalar):
            return kind.dtype
        if isinstance(kind, Array):
            return self.main_dtype(kind.element)
        if isinstance(kind, Pointer | Reference):
            return "uint64"
        if isinstance(kind, Record):
            names = [leaf.type.dtype if isinstance(leaf.type, Scalar) else "uint64" for leaf in self.leaves(kind)]
            return max(set(names), key=names.count) if names else "uint8"
        return "uint8"

    def dialect(self, kind: CType) -> Type:
        """Dialect type of a number or pointer."""
        if isinstance(kind, Scalar):
            return kind.dtype
        if is_function(kind):
            return "uint64"
        if isinstance(kind, Pointer):
            return pointer_to(self.main_dtype(kind.pointee))
        raise UnknownTypeError(f"a value of type {describe(kind)} where a number or pointer is needed")


def is_function(kind: CType) -> bool:
    """True for a function, or a pointer to one, whose value is a number that stands for the function."""
    return isinstance(kind, Function) or (isinstance(kind, Pointer) and isinstance(kind.pointee, Function))


def _alignment(node: Node) -> int:
    values = [constant_value(child) or 1 for child in node.children("AlignedAttr")]
    return max(values, default=1)
