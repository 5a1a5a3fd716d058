"""How large the value of an integer expression can be, as far as its form tells, and byte offsets in elements."""

from __future__ import annotations

from refsim.dialect import INDICES, INTEGERS, Binary, Const, Convert, Dim, Expr, Var, walk_expressions

MAGNITUDE_BITS = {"int8": 7, "uint8": 8, "int16": 15, "uint16": 16, "int32": 31, "uint32": 32, "bool": 1}
BLOCK_BITS = 11  # of a number of threads of a block
GRID_BITS = 31  # of a number of blocks
UNKNOWN = 63


def bit_width(e: Expr) -> int:
    """A number of bits b such that an integer expression's magnitude is at most 2**b; 63 where unknown."""
    return min(_unwrapped_bits(e), MAGNITUDE_BITS.get(str(e.type), UNKNOWN))


def _unwrapped_bits(e: Expr) -> int:
    if isinstance(e, Const):
        return int(e.value).bit_length()
    if isinstance(e, Var):
        if e.name.startswith(("threadIdx.", "blockDim.")) or e.name == "laneid":
            return BLOCK_BITS
        return GRID_BITS if e.name in INDICES else e.bits
    if isinstance(e, Convert):
        known = e.value.type in MAGNITUDE_BITS or e.value.type == "int64"
        return bit_width(e.value) if known and (_is_signed(str(e.type)) or is_natural(e.value)) else UNKNOWN
    if isinstance(e, Dim):
        return 40
    if isinstance(e, Binary):
        left, right = bit_width(e.left), bit_width(e.right)
        if e.op == "-" and not _is_signed(str(e.type)):
            return UNKNOWN  # less than zero is a large number
        if e.op in ("+", "-", "*"):
            return combined_bits(e.op, left, right)
        if e.op in ("//", ">>", "div"):
            return left
        if e.op in ("%", "&", "rem"):
            return max(left, right) if e.op == "&" else right
    return UNKNOWN


def combined_bits(op: str, left: int, right: int) -> int:
    """Bits of a sum, difference or product from those of its operands."""
    return left + right if op == "*" else max(left, right) + 1


def may_overflow(e: Expr) -> bool:
    """True if an int32 sum, difference or product in an expression may leave its type."""
    return any(
        isinstance(part, Binary) and part.op in ("+", "-", "*") and part.type == "int32" and _unwrapped_bits(part) >= 31
        for part in walk_expressions(e)
    )


def _is_signed(kind: str) -> bool:
    return kind.startswith("int")


def is_natural(e: Expr) -> bool:
    """True if an integer expression is known not to be negative."""
    if not _is_signed(str(e.type)):
        return True
    if isinstance(e, Const):
        return int(e.value) >= 0
    if isinstance(e, Var):
        return e.name in INDICES or e.name == "laneid"
    return isinstance(e, Convert) and is_natural(e.value) and keeps_number(e)


def keeps_number(e: Convert) -> bool:
    """True if a conversion between integers is known to change no number."""
    source, target = str(e.value.type), str(e.type)
    if source not in INTEGERS or target not in INTEGERS or "uint64" in (source, target):
        return False
    fits = bit_width(e.value) < MAGNITUDE_BITS.get(target, UNKNOWN)
    return fits and (_is_signed(target) or is_natural(e.value))


def multiples(offset: Expr, size: int) -> list[tuple[Expr | None, int]] | None:
    """A byte offset as terms (index or None for 1, factor in elements); None if it has no such form."""
    if isinstance(offset, Const):
        return [(None, offset.value // size)] if offset.value % size == 0 else None
    if isinstance(offset, Binary) and offset.op == "+":
        left, right = multiples(offset.left, size), multiples(offset.right, size)
        return None if left is None or right is None else left + right
    if isinstance(offset, Binary) and offset.op == "*":
        for index, factor in ((offset.left, offset.right), (offset.right, offset.left)):
            if isinstance(factor, Const) and factor.value % size == 0 and bit_width(index) + 8 < UNKNOWN:
                return [(index, factor.value // size)]
    return None
