"""Where the bit-fields of a record lie, by the rules of the Itanium C++ ABI."""

from __future__ import annotations

from dataclasses import dataclass, field

from refsim.dialect import ITEM_BYTES
from refsim.frontends.cuda_cpp.tree import Node
from refsim.frontends.cuda_cpp.type_names import constant_value
from refsim.frontends.cuda_cpp.types import BitField, Layout, Piece, Scalar, UnknownTypeError


@dataclass
class Packing:
    """The bit-fields of one record: declaration, type, first bit and width of each that has a name."""

    fields: list[tuple[Node, Scalar, int, int]] = field(default_factory=list)
    _end: int | None = None

    def add(self, node: Node, kind: Scalar, end: int) -> int:
        """Place a bit-field after the bytes that are taken; the number of bytes that are taken then."""
        width, unit = constant_value(node) or 0, 8 * ITEM_BYTES[kind.dtype]
        if width > unit:
            raise UnknownTypeError(f"bit-field {node.name!r} is wider than its type, which is not supported")
        start = 8 * end if self._end is None or -(-self._end // 8) != end else self._end
        if width == 0 or start % unit + width > unit:
            start = -(-start // unit) * unit
        if node.name:
            self.fields.append((node, kind, start, width))
        self._end = start + width
        return -(-self._end // 8)

    def finish(self) -> None:
        """The next bit-field begins at a byte of its own."""
        self._end = None

    def give(self, layout: Layout) -> None:
        """Tell a layout its bit-fields, and the words that hold them."""
        for start, stop in self._runs():
            while start < stop:
                size = next(s for s in (4, 2, 1) if s <= layout.align and start % s == 0 and start + s <= stop)
                layout.words.append((start, Scalar("bits", f"uint{8 * size}")))
                start += size
        for node, kind, first, width in self.fields:
            pieces = []
            for offset, word in layout.words:
                low, high = 8 * offset, 8 * (offset + ITEM_BYTES[word.dtype])
                begin, end = max(low, first), min(high, first + width)
                if begin < end:
                    pieces.append(Piece(offset - first // 8, word.dtype, begin - low, end - begin))
            layout.bits[node.id] = BitField(kind, tuple(pieces))
            layout.fields[node.id] = first // 8
            layout.members.append((node.name, first // 8, layout.bits[node.id]))
        if self.fields:
            order = {node.name: place for place, node in enumerate(self._declared())}
            layout.members.sort(key=lambda member: order.get(member[0], -1))

    def _declared(self) -> list[Node]:
        record = self.fields[0][0].parent
        return record.children("FieldDecl") if record is not None else []

    def _runs(self) -> list[tuple[int, int]]:
        """Bytes that bit-fields take, as first and last plus one, joined where they touch."""
        runs: list[tuple[int, int]] = []
        for _, _, first, width in sorted(self.fields, key=lambda one: one[2]):
            start, stop = first // 8, -(-(first + width) // 8)
            if runs and start <= runs[-1][1]:
                runs[-1] = runs[-1][0], max(stop, runs[-1][1])
            else:
                runs.append((start, stop))
        return runs
