"""Values of template arguments that clang prints as they were written: ``std::is_pointer_v<int *> && !B``."""

from __future__ import annotations

from collections.abc import Callable

OPENING, CLOSING = "<([{", ">)]}"


def value_of(text: str, name_value: Callable[[str], int | None]) -> int | None:
    """Value of an expression of names, integers, ``!``, ``&&`` and ``||``; None if it is not known."""
    text = text.strip()
    for op in ("||", "&&"):
        parts = _split(text, op)
        if len(parts) > 1:
            values = [value_of(part, name_value) for part in parts]
            decided = [value for value in values if value is not None and bool(value) == (op == "||")]
            if decided:
                return int(op == "||")
            return None if None in values else int(op == "&&")
    if text.startswith("!"):
        value = value_of(text[1:], name_value)
        return None if value is None else int(not value)
    if text.startswith("(") and text.endswith(")") and len(_split(text, ")")) == 2:
        return value_of(text[1:-1], name_value)
    if text in ("true", "false"):
        return int(text == "true")
    bare = text.rstrip("uUlL")
    if bare.removeprefix("-").isdigit():
        return int(bare)
    return name_value(text)


def _split(text: str, op: str) -> list[str]:
    """Parts of an expression at an operator outside of brackets."""
    parts, depth, start = [], 0, 0
    for position, char in enumerate(text):
        depth += (char in OPENING) - (char in CLOSING)
        if depth == 0 and text.startswith(op, position):
            parts.append(text[start:position])
            start = position + len(op)
    parts.append(text[start:])
    return parts
