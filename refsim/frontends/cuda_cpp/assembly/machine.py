"""One ``asm`` statement while it is translated: its registers, and the values that go into and out of them.

A register holds an expression of its width; an instruction reads it as the type that it works on. Each register that
is written has one program variable, whose type the constraint or the declaration gives; one that holds a pointer has a
variable of its own for that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from refsim.dialect import (
    FLOATS,
    ITEM_BYTES,
    Bitcast,
    Const,
    Expr,
    Intrinsic,
    NullPointer,
    Place,
    PointerDifference,
    PointerType,
    SharedPointer,
    Stmt,
    Var,
)
from refsim.errors import UnsupportedError
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.assembly.parsing import Address, Instruction, Operand
from refsim.frontends.cuda_cpp.assembly.special import special_register
from refsim.frontends.cuda_cpp.tree import Node
from refsim.frontends.cuda_cpp.types import Pointer, Scalar, describe
from refsim.frontends.cuda_cpp.values import AddressOf, LValue

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.declarations import Declarations

# PTX types and constraint letters: the dialect type that a register is read as
TYPES = {
    "pred": "bool", "b8": "uint8", "u8": "uint8", "s8": "int8", "b16": "uint16", "u16": "uint16", "s16": "int16",
    "b32": "uint32", "u32": "uint32", "s32": "int32", "b64": "uint64", "u64": "uint64", "s64": "int64",
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "f16x2": "uint32", "bf16x2": "uint32",
}  # fmt: skip
LETTERS = {"h": "uint16", "r": "uint32", "l": "uint64", "f": "float32", "d": "float64", "n": "int64"}
NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|\d+)[uU]?")
FLOAT_BITS = re.compile(r"0([fFdD])([0-9a-fA-F]+)")


@dataclass
class Register:
    """A register: what it holds, and the variable for what is written to it."""

    type: str
    value: Expr | None = None
    variable: Var | None = None
    place: LValue | None = None
    written: bool = False


@dataclass
class Machine:
    """State of the translation of one ``asm`` statement."""

    t: Declarations
    node: Node
    registers: dict[str, Register] = field(default_factory=dict)
    conditional: bool = False
    name: str = ""

    @property
    def where(self) -> Place:
        """Where findings point."""
        return self.t.place(self.node)

    def unsupported(self, what: str) -> UnsupportedError:
        """The error for what is not supported; names the instruction."""
        about = f"PTX instruction {self.name}: " if self.name else "PTX: "
        return self.t.unsupported(f"{about}{what}", self.node)

    def emit(self, statement: Stmt) -> None:
        """Append a statement."""
        self.t.out.append(statement)

    def keep(self, value: Expr) -> Expr:
        """The value in a variable of its own, unless it cannot change."""
        return self.t.temporary(value)

    # ------------------------------------------------------------------------------------- C++ operands

    def bind(self, number: int, constraint: str, operand: Node, *, output: bool) -> None:
        """Make a C++ operand a register ``%number``."""
        letter = constraint.strip("=+&")
        if letter not in LETTERS:
            raise self.t.unsupported(f"asm constraint {constraint!r} is not supported", self.node)
        register = Register(LETTERS[letter])
        if output:
            register.place = self.t.frozen(self.t.lvalue(operand))
            kind = register.place.type
            if not isinstance(kind, (Scalar, Pointer)):
                raise self.t.unsupported(f"an asm operand of type {describe(kind)} is not supported", self.node)
            if "+" in constraint:
                register.value = self._held(self.t.expression(self.t.load(register.place, operand), operand), letter)
        else:
            value = self.t.rvalue(operand)
            if isinstance(value, AddressOf):
                value = self.t.expression(value, operand)
            register.value = self._held(self.t.expression(value, operand), letter)
        self.registers[f"%{number}"] = register

    def _held(self, value: Expr, letter: str) -> Expr:
        """A C++ value as a register of a constraint holds it; an address keeps the pointer it was made from."""
        pointer = _address_of(value)
        if pointer is not None:
            return self.t.frozen(pointer)  # type: ignore[no-any-return]
        if letter == "n":
            if not isinstance(value, Const):
                raise self.t.unsupported('an asm operand "n" must be known at translation', self.node)
            return folding.convert(value, "int64")
        kind, source = LETTERS[letter], str(value.type)
        if isinstance(value.type, PointerType):
            raise self.t.unsupported(f'a pointer takes the asm constraint "l", not "{letter}"', self.node)
        if (source in FLOATS) != (kind in FLOATS) or (source in FLOATS and ITEM_BYTES[source] != ITEM_BYTES[kind]):
            if ITEM_BYTES[source] != ITEM_BYTES[kind]:
                raise self.t.unsupported(f'an asm operand of type {source} with constraint "{letter}"', self.node)
            return self.t.frozen(value)  # type: ignore[no-any-return]
        if ITEM_BYTES[source] != ITEM_BYTES[kind]:
            value = folding.convert(value, kind)
        return self.t.frozen(value)  # type: ignore[no-any-return]

    def store_outputs(self) -> None:
        """Give the C++ objects what their registers hold at the end."""
        for register in self.registers.values():
            if register.place is None or not register.written or register.value is None:
                continue
            kind, value = register.place.type, register.value
            if isinstance(kind, Pointer):
                if not isinstance(value.type, PointerType):
                    raise self.t.unsupported("a number becomes a pointer in asm", self.node)
            else:
                assert isinstance(kind, Scalar)
                if isinstance(value.type, PointerType):
                    value = PointerDifference(value, NullPointer(type=value.type), type="int64")
                value = self._to_scalar(value, kind.dtype)
            self.t.store(register.place, value, self.node)

    def _to_scalar(self, value: Expr, dtype: str) -> Expr:
        source = str(value.type)
        if source == dtype:
            return value
        if source in FLOATS or dtype in FLOATS:
            if ITEM_BYTES[source] != ITEM_BYTES[dtype]:
                raise self.t.unsupported(f"an asm result of type {source} for a variable of type {dtype}", self.node)
            return Bitcast(value, type=dtype)
        return folding.convert(value, dtype)

    # ----------------------------------------------------------------------------------------- operands

    def register(self, text: str) -> Register:
        """A register by its name."""
        if text not in self.registers:
            raise self.unsupported(f"register {text!r} is not declared")
        return self.registers[text]

    def raw(self, text: Operand) -> Expr:
        """What a register holds, or a number."""
        if not isinstance(text, str):
            raise self.unsupported(f"operand {text!r} where a register is expected")
        if NUMBER.fullmatch(text):
            value = int(text.rstrip("uU"), 0)
            return folding.integer(value, "int64" if value < 1 << 63 else "uint64")
        bits = FLOAT_BITS.fullmatch(text)
        if bits:
            single = bits[1] in "fF"
            number = folding.integer(int(bits[2], 16), "uint32" if single else "uint64")
            return Bitcast(number, type="float32" if single else "float64")
        found = special_register(self.t, text)
        if found is not None:
            return found
        register = self.register(text)
        if register.value is None:
            return folding.convert(folding.integer(0, "int64"), register.type)
        return register.value

    def read(self, text: Operand, kind: str) -> Expr:
        """An operand as a dialect type: bits of the same width, a number as what it says."""
        value = self.raw(text)
        if isinstance(value.type, PointerType):
            if ITEM_BYTES[kind] != 8:
                raise self.unsupported(f"operand {text} is a pointer")
            value = PointerDifference(value, NullPointer(type=value.type), type="int64")
        source = str(value.type)
        if source == kind:
            return value
        if isinstance(value, Const) and kind not in FLOATS:
            return folding.convert(value, kind)
        if isinstance(text, str) and (text.startswith("%%") or (text.startswith("%") and not text[1:].isdigit())):
            return folding.convert(value, kind)  # a special register
        if ITEM_BYTES[source] != ITEM_BYTES[kind]:
            raise self.unsupported(f"operand {text} has {8 * ITEM_BYTES[source]} bits, {8 * ITEM_BYTES[kind]} are read")
        if source == "bool" or kind == "bool":
            raise self.unsupported(f"operand {text} is {'no' if kind == 'bool' else 'a'} predicate")
        return Bitcast(value, type=kind) if source in FLOATS or kind in FLOATS else folding.convert(value, kind)

    def known(self, text: Operand) -> int:
        """An operand that must be a number."""
        value = self.raw(text)
        if not isinstance(value, Const):
            raise self.unsupported(f"operand {text} must be a constant")
        return int(value.value)

    def predicate(self, text: str) -> Expr:
        """A predicate register, negated by ``!``."""
        value = self.read(text.lstrip("!"), "bool")
        return folding.not_(value) if text.startswith("!") else value

    def write(self, text: Operand, value: Expr) -> None:
        """Set a register; ``_`` drops the value."""
        if text == "_":
            return
        if not isinstance(text, str) or NUMBER.fullmatch(text):
            raise self.unsupported(f"operand {text!r} where a register is expected")
        register = self.register(text)
        if register.place is None and text.startswith("%") and text[1:].isdigit():
            raise self.unsupported(f"operand {text} is an input")
        register.written = True
        if isinstance(value.type, PointerType):
            if self.conditional:
                raise self.unsupported("a pointer that only some threads take is not supported")
            register.value = self.keep(value)
            return
        source, kind = str(value.type), register.type
        if source != kind:
            if ITEM_BYTES[source] != ITEM_BYTES[kind] or "bool" in (source, kind):
                raise self.unsupported(f"a result of type {source} for register {text} of type {kind}")
            value = Bitcast(value, type=kind) if source in FLOATS or kind in FLOATS else folding.convert(value, kind)
        if not self.conditional:
            register.value = self.keep(value)
            return
        self.t.assign(self.variable(register), value)

    def variable(self, register: Register) -> Var:
        """The variable of a register that is written in some threads or several times, with its value so far."""
        assert register.variable is not None
        return register.variable

    def settle(self, names: set[str]) -> None:
        """Before a part that not all threads run: registers that it writes move to variables."""
        for name in names:
            register = self.registers.get(name)
            if register is None:
                continue
            if register.value is not None and isinstance(register.value.type, PointerType):
                raise self.unsupported(f"register {name}, which holds a pointer, is written by some threads only")
            if register.variable is None:
                register.variable = self.t.variable("r@", register.type)
            value = register.value
            if value is register.variable:
                continue
            if value is None:
                value = folding.convert(folding.integer(0, "int64"), register.type)
            elif value.type != register.type:
                value = self._to_scalar(value, register.type)
            self.t.assign(register.variable, value)
            register.value = register.variable
            register.written = True

    def pointer(self, operand: Operand, space: str, dtype: str) -> Expr:
        """The pointer that an address operand stands for, in a state space: ``shared``, ``global`` or generic."""
        if not isinstance(operand, Address):
            raise self.unsupported(f"operand {operand!r} where an address is expected")
        kind = PointerType(dtype)
        offset: Expr = folding.integer(0, "int64")
        if operand.offset:
            offset = folding.convert(self.raw(operand.offset), "int64")
        value = self.raw(operand.base)
        if not isinstance(value.type, PointerType):
            if space != "shared":
                raise self.unsupported(f"the address in {operand.base} is a number: pass the pointer itself")
            value = SharedPointer(folding.convert(value, "uint32"), type=kind)
        return folding.advance(value, offset, kind)


def _address_of(value: Expr) -> Expr | None:
    """The pointer whose address a number is, if it was made from one here."""
    if isinstance(value.type, PointerType):
        return value
    while not isinstance(value, PointerDifference):
        inner = getattr(value, "value", None)
        if not isinstance(inner, Expr) or isinstance(value, Intrinsic) or ITEM_BYTES.get(str(value.type)) != 8:
            return None
        value = inner
    return value.left if isinstance(value.right, NullPointer) else None


__all__ = ["TYPES", "Instruction", "Machine", "Register"]
