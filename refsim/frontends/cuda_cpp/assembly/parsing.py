"""The text of an ``asm`` statement as PTX statements: labels, register declarations, instructions."""

from __future__ import annotations

import re
from dataclasses import dataclass

STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
LABEL = re.compile(r"\s*([A-Za-z_$%][\w$%]*)\s*:(?!:)")
GUARD = re.compile(r"@(!?)\s*([%\w$]+)\s+")
CONSTRAINT = re.compile(r'"([^"]*)"')


@dataclass(frozen=True)
class Address:
    """``[base + offset]``; each a register, a number or nothing."""

    base: str
    offset: str


Operand = str | Address | tuple[str, ...]


@dataclass(frozen=True)
class Instruction:
    """One instruction: opcode with its modifiers, operands, and the predicate that guards it (negated or not)."""

    name: str
    operands: tuple[Operand, ...]
    guard: str | None = None
    negated: bool = False


@dataclass(frozen=True)
class Registers:
    """``.reg .type a, b<4>;``"""

    type: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Label:
    """A place that branches go to."""

    name: str


Statement = Instruction | Registers | Label


def sections(text: str) -> list[str]:
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
            separate = 2 if text[position : position + 2] == "::" else 1
            parts.append(text[start:position])
            if separate == 2:
                parts.append("")
            position += separate - 1
            start = position + 1
        position += 1
    parts.append(text[start:position])
    return parts


def template(section: str) -> str:
    """The instruction text that a sequence of string literals spells."""
    return "".join(STRING.findall(section)).encode().decode("unicode_escape")


def constraints(section: str) -> list[str]:
    """Constraint letters of a section of operands, such as ``=r`` and ``+f``."""
    found, depth = [], 0
    for part in re.split(r'("(?:[^"\\]|\\.)*"|[()\[\]{}])', section):
        if part and part in "([{":
            depth += 1
        elif part and part in ")]}":
            depth -= 1
        elif depth == 0 and part.startswith('"'):
            found.append(part.strip('"'))
    return found


def statements(text: str) -> list[Statement]:
    """Statements of a template, in order; the braces of scopes are dropped.

    Raises
    ------
    ValueError
        For text that is no statement; the message quotes it.
    """
    result: list[Statement] = []
    for chunk in COMMENT.sub(" ", text).split(";"):
        rest = chunk.strip()
        while rest:
            if rest[0] in "{}":
                rest = rest[1:].strip()
                continue
            label = LABEL.match(rest)
            if label:
                result.append(Label(label[1]))
                rest = rest[label.end() :].strip()
                continue
            result.append(_statement(rest))
            break
    return result


def _statement(text: str) -> Statement:
    if text.startswith(".reg"):
        match = re.fullmatch(r"\.reg\s+\.(\w+)\s+(.*)", text, re.DOTALL)
        if match is None:
            raise ValueError(f"declaration {text!r}")
        return Registers(match[1], tuple(_declared(match[2])))
    guard = GUARD.match(text)
    if guard:
        text = text[guard.end() :]
    match = re.fullmatch(r"([A-Za-z][\w.:]*)(?:\s+(.*))?", text, re.DOTALL)
    if match is None:
        raise ValueError(f"{text!r}")
    operands = tuple(_operand(part) for part in _split(match[2] or ""))
    return Instruction(match[1], operands, guard[2] if guard else None, bool(guard and guard[1]))


def _declared(text: str) -> list[str]:
    names: list[str] = []
    for part in text.split(","):
        match = re.fullmatch(r"([\w$%]+)(?:<(\d+)>)?", part.strip())
        if match is None:
            raise ValueError(f"register {part.strip()!r}")
        names += [f"{match[1]}{i}" for i in range(int(match[2]))] if match[2] else [match[1]]
    return names


def _split(text: str) -> list[str]:
    """Operands, separated by commas outside of braces and brackets, and by ``|`` between two results."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char in "{[") - (char in "}]")
        if char in ",|" and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    return [*parts, current.strip()] if current.strip() or parts else []


def _operand(text: str) -> Operand:
    if text.startswith("{") and text.endswith("}"):
        return tuple(part.strip() for part in text[1:-1].split(","))
    if text.startswith("[") and text.endswith("]"):
        match = re.fullmatch(r"\s*([^\s+]+)\s*(?:\+\s*([^\s]+))?\s*", text[1:-1])
        if match is None:
            raise ValueError(f"address {text!r}")
        return Address(match[1], match[2] or "")
    return text
