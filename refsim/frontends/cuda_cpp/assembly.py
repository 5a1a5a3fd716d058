"""Inline PTX: a named list of instructions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refsim.dialect import Barrier, Expr, Fence, WarpBarrier
from refsim.frontends.cuda_cpp import folding
from refsim.frontends.cuda_cpp.intrinsics.warps import lane_number
from refsim.frontends.cuda_cpp.tree import Node
from refsim.frontends.cuda_cpp.types import Scalar

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.declarations import Declarations

OPERATORS = {
    "add": "+", "sub": "-", "mul.lo": "*", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>",
}  # fmt: skip
TYPES = {
    "u32": "uint32", "s32": "int32", "b32": "uint32", "u64": "uint64", "s64": "int64", "b64": "uint64",
    "f32": "float32", "f64": "float64", "u16": "uint16", "s16": "int16",
}  # fmt: skip


def translate(t: Declarations, node: Node) -> None:
    """One ``asm`` statement."""
    begin, end = node.offset, node.end
    text = t.tree.source.between(begin or 0, end or 0)
    parts = _sections(text[text.index("(") + 1 :])
    template = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', parts[0])).encode().decode("unicode_escape")
    for instruction in filter(None, (part.strip() for part in template.replace("\n", " ").split(";"))):
        _instruction(t, node, instruction, node.inner)


def _sections(text: str) -> list[str]:
    """Template, outputs, inputs and clobbers: separated by colons outside of strings and parentheses."""
    parts, depth, quoted, start, position = [], 0, False, 0, 0
    while position < len(text):
        char = text[position]
        if quoted:
            position += char == "\\"
            quoted = char != '"'
        elif char == '"':
            quoted = True
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
            if depth < 0:
                break
        elif char == ":" and depth == 0:
            parts.append(text[start:position])
            start = position + 1
        position += 1
    parts.append(text[start:position])
    return parts


def _instruction(t: Declarations, node: Node, text: str, operands: list[Node]) -> None:
    name, _, rest = text.partition(" ")
    arguments = [part.strip() for part in rest.split(",")] if rest.strip() else []
    place = t.place(node)
    if name in ("bar.sync", "barrier.sync") and arguments == ["0"]:
        t.out.append(Barrier(place))
    elif name.startswith(("membar.", "fence.")):
        scope = {"cta": "block", "gl": "device", "gpu": "device", "sys": "system"}.get(name.rsplit(".", 1)[-1])
        if scope is None:
            raise t.unsupported(f"PTX instruction {name} is not supported", node)
        t.out.append(Fence(scope, place))
    elif name == "bar.warp.sync":
        mask = folding.convert(_operand(t, node, arguments[0], operands, "uint32"), "int64")
        t.out.append(WarpBarrier(t.temporary(mask), place))
    else:
        _arithmetic(t, node, name, arguments, operands)


def _arithmetic(t: Declarations, node: Node, name: str, arguments: list[str], operands: list[Node]) -> None:
    base, _, suffix = name.rpartition(".")
    kind = TYPES.get(suffix)
    if kind is None or not arguments:
        raise t.unsupported(f"PTX instruction {name} is not supported", node)
    values = [_operand(t, node, argument, operands, kind) for argument in arguments[1:]]
    if base == "mov" and len(values) == 1:
        result = values[0]
    elif base in OPERATORS and len(values) == 2:
        result = folding.binary(OPERATORS[base], *values)
    else:
        raise t.unsupported(f"PTX instruction {name} is not supported", node)
    match = re.fullmatch(r"%(\d+)", arguments[0])
    if match is None:
        raise t.unsupported(f"PTX register {arguments[0]!r} is not supported", node)
    target = t.lvalue(operands[int(match[1])])
    assert isinstance(target.type, Scalar)
    t.store(target, folding.convert(result, target.type.dtype), node)


def _operand(t: Declarations, node: Node, text: str, operands: list[Node], kind: str) -> Expr:
    match = re.fullmatch(r"%(\d+)", text)
    if match:
        return t.scalar(t.rvalue(operands[int(match[1])]), kind, node)
    if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", text):
        return folding.integer(int(text, 0), kind)
    if text.replace("%%", "%") == "%laneid":
        return folding.convert(lane_number(t), kind)
    raise t.unsupported(f"PTX operand {text!r} is not supported", node)
