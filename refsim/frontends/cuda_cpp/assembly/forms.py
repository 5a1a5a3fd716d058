"""Forms of instructions, as the table writes them: ``add[.ftz].{f32,f64}``, and what translates them.

``{a,b}`` stands for one of several words, ``[…]`` for a part that may be left out. The handler is given what stood in
each pair of braces, in order, and for each pair of brackets whether it was there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from refsim.frontends.cuda_cpp.assembly.parsing import Instruction

if TYPE_CHECKING:
    from refsim.frontends.cuda_cpp.assembly.machine import Machine

Handler = Callable[["Machine", Instruction, tuple[str, ...]], None]
PART = re.compile(r"\{([^}]*)\}|\[|\]|[^\[\]{}]+")


@dataclass(frozen=True)
class Form:
    """One or several instructions that one handler translates; `operands` as the PTX ISA writes them."""

    pattern: str
    operands: str
    handler: Handler
    capability: int = 0
    regex: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "regex", re.compile(_regex(self.pattern)))

    def match(self, name: str) -> tuple[str, ...] | None:
        """What the pattern's alternatives and options are in an instruction's name; None if it is another one."""
        found = self.regex.fullmatch(name)
        return None if found is None else tuple(part or "" for part in found.groups())


def _regex(pattern: str) -> str:
    """Braces become a group each, and so do brackets."""
    parts = []
    for match in PART.finditer(pattern):
        text = match[0]
        if match[1] is not None:
            parts.append("(" + "|".join(re.escape(word.strip()) for word in match[1].split(",")) + ")")
        elif text == "[":
            parts.append("(")
        elif text == "]":
            parts.append(")?")
        else:
            parts.append(re.escape(text))
    return "".join(parts)
