"""Bit-fields: reading and writing some bits of the words that several of them share."""

from __future__ import annotations

from refsim.dialect import Const, Expr
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.core import Core
from refsim.frontends.cuda_cpp.tree import Node
from refsim.frontends.cuda_cpp.types import BitField, CType, Scalar
from refsim.frontends.cuda_cpp.values import LValue, Value

MOST_WORDS = 1024


class BitFields(Core):
    """Bit-fields of a translation."""

    def clear_words(self, place: LValue, kind: CType, node: Node | None) -> None:
        """Give the words of a new object's bit-fields a value, because a write to one field reads its word."""
        if not self.kinds.has_words(kind):
            return
        words = [leaf for leaf in self.ask(self.kinds.leaves, kind, node=node) if _is_word(leaf.type)]
        if len(words) > MOST_WORDS:
            raise self.unsupported(f"an object with {len(words)} words of bit-fields", node)
        for leaf in words:
            self.store(self.part(place, leaf.offset, leaf.type), Const(0, type=leaf.type.dtype), node)

    def load_bits(self, place: LValue, field: BitField, node: Node | None) -> Expr:
        """Value of a bit-field, as its declared type."""
        wide = _wide(field)
        value: Expr | None = None
        position = 0
        for piece in field.pieces:
            word = self.load(self.part(place, piece.offset, Scalar("bits", piece.dtype)), node)
            part = folding.convert(self.expression(word, node), wide)
            part = folding.binary(">>", part, Const(piece.shift, type=wide))
            part = folding.binary("&", part, Const((1 << piece.width) - 1, type=wide))
            part = folding.binary("<<", part, Const(position, type=wide))
            value = part if value is None else folding.binary("|", value, part)
            position += piece.width
        assert value is not None
        if field.scalar.dtype.startswith("int"):
            unused = Const(int(wide[4:]) - position, type=wide)
            signed = folding.convert(folding.binary("<<", value, unused), wide[1:])
            value = folding.binary(">>", signed, Const(unused.value, type=wide[1:]))
        return folding.convert(value, field.scalar.dtype)

    def store_bits(self, place: LValue, field: BitField, value: Value, node: Node | None) -> None:
        """Write a bit-field; the other bits of its words stay."""
        wide = _wide(field)
        bits = self.temporary(folding.convert(self.expression(value, node), wide))
        position = 0
        for piece in field.pieces:
            mask = (1 << piece.width) - 1
            part = folding.binary(">>", bits, Const(position, type=wide))
            part = folding.binary("&", part, Const(mask, type=wide))
            part = folding.binary("<<", part, Const(piece.shift, type=wide))
            target = self.part(place, piece.offset, Scalar("bits", piece.dtype))
            if piece.width < int(piece.dtype[4:]):
                word = folding.convert(self.expression(self.load(target, node), node), wide)
                others = folding.binary("&", word, folding.integer(~(mask << piece.shift), wide))
                part = folding.binary("|", others, part)
            self.store(target, folding.convert(part, piece.dtype), node)
            position += piece.width


def _wide(field: BitField) -> str:
    return "uint64" if field.scalar.dtype in ("int64", "uint64") else "uint32"


def _is_word(kind: CType) -> bool:
    return isinstance(kind, Scalar) and kind.name == "bits"
