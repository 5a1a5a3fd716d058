"""What an operation of a plan is in LLVM's code, for as many lanes as are worked on at once."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from refsim.dialect import INTEGERS, ITEM_BYTES
from refsim.engine.native.layouts import carrier
from refsim.engine.native.plans import Operation

I1, I8, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
FLOAT_TYPES = {"float32": ir.FloatType(), "float64": ir.DoubleType()}
HALF_TYPES = dict.fromkeys(("float16", "bfloat16"), ir.IntType(16))  # their bits
TYPES = {**FLOAT_TYPES, **HALF_TYPES, **{kind: ir.IntType(8 * ITEM_BYTES[kind]) for kind in INTEGERS}, "bool": I1}
ORDERED = {"==", "<", "<=", ">", ">="}
OF_FLOATS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv", "negate": "fneg"}
OF_INTEGERS = {"+": "add", "-": "sub", "*": "mul", "negate": "neg", "&": "and_", "|": "or_", "^": "xor", "<<": "shl"}
OF_BITS = {"and": "and_", "or": "or_", "not": "not_", "select": "select"}


def is_signed(kind: str) -> bool:
    """True for an integer type with a sign."""
    return kind.startswith("int")


class VectorCode:
    """Writes arithmetic with a builder, on vectors of `width` lanes, or on one value where that is 1."""

    b: Any
    module: Any
    width = 1

    def of(self, scalar: Any) -> Any:
        """The type of a value of every lane."""
        return ir.VectorType(scalar, self.width) if self.width > 1 else scalar

    def constant(self, value: Any, kind: str) -> Any:
        """One number for every lane."""
        return self._number(value, TYPES[kind])

    def _number(self, value: Any, scalar: Any) -> Any:
        return ir.Constant(self.of(scalar), [value] * self.width if self.width > 1 else value)

    def splat(self, value: Any) -> Any:
        """A value that all lanes share."""
        if self.width == 1:
            return value
        nothing = ir.Constant(ir.VectorType(value.type, self.width), ir.Undefined)
        first = self.b.insert_element(nothing, value, ir.Constant(I32, 0))
        return self.b.shuffle_vector(first, nothing, self._number(0, I32))

    def carried(self, value: Any, kind: str) -> Any:
        """A value of a type as lane values travel."""
        if kind not in INTEGERS or kind == carrier(kind):
            return value
        return (self.b.sext if is_signed(kind) else self.b.zext)(value, self.of(I64))

    def from_carrier(self, value: Any, kind: str) -> Any:
        """A value of a type from how it travels."""
        if kind not in INTEGERS or kind == carrier(kind):
            return value
        return self.b.trunc(value, self.of(TYPES[kind]))

    def applied(self, o: Operation, sources: list[str], x: Any, *more: Any) -> Any:
        """The result of an operation; `sources` are the types of its operands."""
        b, kind, source = self.b, o.kind, sources[0]
        if kind in OF_BITS:
            return getattr(b, OF_BITS[kind])(x, *more)
        if kind == "compare":
            return self._compare(str(o.detail), source, x, *more)
        if kind == "convert":
            return self._converted(x, source, o.type)
        if kind == "widen":
            return self._widened(x, str(o.detail))
        if kind == "copy":
            return x
        if kind in ("max", "min"):  # as Python compares
            return b.select(self._compare(">" if kind == "max" else "<", source, more[0], x), more[0], x)
        if o.type in INTEGERS:
            return self._of_integers(kind, o.type, x, *more)
        if kind in OF_FLOATS:
            return getattr(b, OF_FLOATS[kind])(x, *more)
        if kind in ("fmax", "fmin"):
            return self._extreme(kind, o.type, x, *more)
        return self._llvm(kind, o.type, x, *more)

    def _of_integers(self, kind: str, dtype: str, x: Any, *more: Any) -> Any:
        b = self.b
        if kind == ">>":
            return (b.ashr if is_signed(dtype) else b.lshr)(x, *more)
        if kind == "not":
            return b.not_(x)
        return getattr(b, OF_INTEGERS[kind])(x, *more)

    def _compare(self, op: str, kind: str, x: Any, y: Any) -> Any:
        b = self.b
        if kind in INTEGERS:
            return (b.icmp_signed if is_signed(kind) else b.icmp_unsigned)(op, x, y)
        return b.fcmp_ordered(op, x, y) if op in ORDERED else b.fcmp_unordered(op, x, y)

    def _converted(self, x: Any, source: str, target: str) -> Any:
        b, to = self.b, self.of(TYPES[target])
        if target in FLOAT_TYPES:
            if source in FLOAT_TYPES:
                return (b.fpext if target == "float64" else b.fptrunc)(x, to)
            return (b.sitofp if is_signed(source) else b.uitofp)(x, to)
        if TYPES[target].width < TYPES[source].width:
            return b.trunc(x, to)
        if TYPES[target].width == TYPES[source].width:
            return x
        return (b.sext if is_signed(source) else b.zext)(x, to)

    def _widened(self, bits: Any, dtype: str) -> Any:
        """float16 or bfloat16 as float32, which holds all of their values."""
        b, to = self.b, self.of(FLOAT_TYPES["float32"])
        wide = b.zext(bits, self.of(I32))
        if dtype == "bfloat16":
            return b.bitcast(b.shl(wide, self._number(16, I32)), to)
        magnitude = b.shl(b.and_(wide, self._number(0x7FFF, I32)), self._number(13, I32))
        scaled = b.bitcast(b.fmul(b.bitcast(magnitude, to), self.constant(2.0**112, "float32")), self.of(I32))
        infinite = b.icmp_unsigned(">=", magnitude, self._number(0x7C00 << 13, I32))
        scaled = b.select(infinite, b.or_(magnitude, self._number(0x7F800000, I32)), scaled)
        sign = b.shl(b.and_(wide, self._number(0x8000, I32)), self._number(16, I32))
        return b.bitcast(b.or_(scaled, sign), to)

    def _extreme(self, kind: str, dtype: str, x: Any, y: Any) -> Any:
        """``fmax`` or ``fmin``: a NaN gives way, and +0 is greater than -0."""
        b = self.b
        first = b.or_(b.fcmp_ordered(">" if kind == "fmax" else "<", x, y), b.fcmp_unordered("uno", y, y))
        result = b.select(first, x, y)
        zeros = b.and_(b.fcmp_ordered("==", x, y), b.fcmp_ordered("==", result, self.constant(0.0, dtype)))
        both = b.fadd(x, y) if kind == "fmax" else b.fneg(b.fadd(b.fneg(x), b.fneg(y)))
        return b.select(zeros, both, result)

    def _llvm(self, name: str, dtype: str, *arguments: Any) -> Any:
        """A function of LLVM's own: ``sqrt``, ``fabs`` or ``fma``."""
        vector = f"v{self.width}" if self.width > 1 else ""
        full = f"llvm.{name}.{vector}f{8 * ITEM_BYTES[dtype]}"
        if full not in self.module.globals:
            of = self.of(FLOAT_TYPES[dtype])
            ir.Function(self.module, ir.FunctionType(of, [of] * len(arguments)), full)
        return self.b.call(self.module.globals[full], arguments)
