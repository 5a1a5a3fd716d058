"""Integer functions: counting and moving bits, wide products, packed dot products."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refsim.dialect import Expr, Intrinsic
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.intrinsics.table import Call, Handler, numbers
from refsim.frontends.cuda_cpp.values import Value

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.declarations import Declarations

COUNTS = {
    "__popc": ("popc", "uint32"), "__popcll": ("popc", "uint64"), "__clz": ("clz", "uint32"),
    "__clzll": ("clz", "uint64"), "__ffs": ("ffs", "uint32"), "__ffsll": ("ffs", "uint64"),
    "__brev": ("brev", "uint32"), "__brevll": ("brev", "uint64"), "__builtin_popcount": ("popc", "uint32"),
    "__builtin_popcountll": ("popc", "uint64"), "__builtin_clz": ("clz", "uint32"),
}  # fmt: skip
CHANGED_TYPE = ("popc", "clz", "brev")


def _count(name: str, kind: str) -> Handler:
    def translate(t: Declarations, call: Call) -> Value:
        value = numbers(t, call, kind)[0]
        result = kind if name in CHANGED_TYPE else "int64"
        return folding.convert(Intrinsic(name, kind, (value,), type=result), call.dtype)

    return translate


def high_product(a: Expr, b: Expr) -> Expr:
    """Upper half of a 32-bit by 32-bit product."""
    kind = str(a.type)
    wide = "int64" if kind == "int32" else "uint64"
    product = folding.binary("*", folding.convert(a, wide), folding.convert(b, wide))
    return folding.convert(folding.binary(">>", product, folding.integer(32, wide)), kind)


def _high_product(kind: str) -> Handler:
    return lambda t, call: high_product(*numbers(t, call, kind, kind))


def high_product_64(a: Expr, b: Expr) -> Expr:
    """Upper half of an unsigned 64-bit by 64-bit product, from four 32-bit ones."""
    low = folding.integer(0xFFFFFFFF, "uint64")
    shift = folding.integer(32, "uint64")

    def split(x: Expr) -> tuple[Expr, Expr]:
        return folding.binary("&", x, low), folding.binary(">>", x, shift)

    def add(x: Expr, y: Expr) -> Expr:
        return folding.binary("+", x, y)

    def mul(x: Expr, y: Expr) -> Expr:
        return folding.binary("*", x, y)

    a0, a1 = split(a)
    b0, b1 = split(b)
    middle = add(mul(a1, b0), folding.binary(">>", mul(a0, b0), shift))
    carry = add(mul(a0, b1), folding.binary("&", middle, low))
    return add(add(mul(a1, b1), folding.binary(">>", middle, shift)), folding.binary(">>", carry, shift))


def _high_product_64(t: Declarations, call: Call) -> Value:
    a, b = (t.temporary(x) for x in numbers(t, call, "uint64", "uint64"))
    high = t.temporary(high_product_64(a, b))
    if call.name == "__umul64hi":
        return high
    zero = folding.integer(0, "uint64")
    for x, y in ((a, b), (b, a)):
        negative = folding.compare("<", folding.convert(x, "int64"), folding.integer(0, "int64"))
        high = folding.binary("-", high, folding.select(negative, y, zero))
    return folding.convert(high, "int64")


def _mul24(t: Declarations, call: Call) -> Value:
    kind = call.dtype
    eight = folding.integer(8, kind)

    def low(x: Expr) -> Expr:
        return folding.binary(">>", folding.binary("<<", x, eight), eight)

    a, b = numbers(t, call, kind, kind)
    return folding.binary("*", low(a), low(b))


def _sad(t: Declarations, call: Call) -> Value:
    kind = "int32" if call.name == "__sad" else "uint32"
    a, b, c = numbers(t, call, kind, kind, "uint32")
    wide = folding.binary("-", folding.convert(a, "int64"), folding.convert(b, "int64"))
    distance = Intrinsic("abs", "int64", (wide,), type="int64")
    return folding.binary("+", folding.convert(distance, "uint32"), c)


def _average(t: Declarations, call: Call) -> Value:
    """``(a + b) >> 1`` without overflow, for int; ``__hadd`` of halves has a body in its header."""
    a, b = numbers(t, call, "int64", "int64")
    total = folding.binary("+", a, b)
    if call.name == "__rhadd":
        total = folding.binary("+", total, folding.integer(1, "int64"))
    return folding.convert(folding.binary(">>", total, folding.integer(1, "int64")), call.dtype)


def _byte(value: Expr, position: int, kind: str) -> Expr:
    shifted = folding.binary(">>", value, folding.integer(8 * position, str(value.type)))
    return folding.convert(folding.convert(shifted, "uint8" if kind == "uint32" else "int8"), kind)


def _dot_product(t: Declarations, call: Call) -> Value:
    kind = call.dtype
    a, b, total = (t.temporary(x) for x in numbers(t, call, kind, kind, kind))
    for i in range(4):
        total = folding.binary("+", total, folding.binary("*", _byte(a, i, kind), _byte(b, i, kind)))
    return total


def _byte_permutation(t: Declarations, call: Call) -> Value:
    return byte_permutation(t, *numbers(t, call, "uint32", "uint32", "uint32"))


def byte_permutation(t: Declarations, x: Expr, y: Expr, selector: Expr) -> Expr:
    """Four of the eight bytes of two words, by the nibbles of a selector."""
    x, y, selector = (t.temporary(v) for v in (x, y, selector))
    shift = folding.integer(32, "uint64")
    both = folding.binary("|", folding.binary("<<", folding.convert(y, "uint64"), shift), folding.convert(x, "uint64"))
    both = t.temporary(both)
    result: Expr = folding.integer(0, "uint32")
    for i in range(4):
        nibble = folding.binary(">>", selector, folding.integer(4 * i, "uint32"))
        which = folding.binary("&", nibble, folding.integer(7, "uint32"))
        amount = folding.convert(folding.binary("*", which, folding.integer(8, "uint32")), "uint64")
        byte = folding.convert(folding.binary(">>", both, amount), "uint8")
        sign = folding.select(
            folding.compare(">=", byte, folding.integer(128, "uint8")),
            folding.integer(255, "uint32"),
            folding.integer(0, "uint32"),
        )
        replicate = folding.convert(folding.binary("&", nibble, folding.integer(8, "uint32")), "bool")
        chosen = folding.select(replicate, sign, folding.convert(byte, "uint32"))
        result = folding.binary("|", result, folding.binary("<<", chosen, folding.integer(8 * i, "uint32")))
    return result


def _funnel_shift(left: bool) -> Handler:
    def translate(t: Declarations, call: Call) -> Value:
        low, high, amount = numbers(t, call, "uint32", "uint32", "uint32")
        both = folding.binary("<<", folding.convert(high, "uint64"), folding.integer(32, "uint64"))
        both = folding.binary("|", both, folding.convert(low, "uint64"))
        steps = folding.convert(folding.binary("&", amount, folding.integer(31, "uint32")), "uint64")
        shifted = folding.binary("<<" if left else ">>", both, steps)
        if left:
            shifted = folding.binary(">>", shifted, folding.integer(32, "uint64"))
        return folding.convert(shifted, "uint32")

    return translate


TABLE: dict[str, Handler] = {
    **{name: _count(*spec) for name, spec in COUNTS.items()},
    "__mulhi": _high_product("int32"),
    "__umulhi": _high_product("uint32"),
    **dict.fromkeys(("__umul64hi", "__mul64hi"), _high_product_64),
    **dict.fromkeys(("__mul24", "__umul24"), _mul24),
    **dict.fromkeys(("__sad", "__usad"), _sad),
    **dict.fromkeys(("__hadd", "__rhadd"), _average),
    "__dp4a": _dot_product,
    "__byte_perm": _byte_permutation,
    "__funnelshift_l": _funnel_shift(True),
    "__funnelshift_r": _funnel_shift(False),
}
