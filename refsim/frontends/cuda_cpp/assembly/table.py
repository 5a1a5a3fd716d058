"""All instructions that inline PTX may use."""

from __future__ import annotations

from refsim.frontends.cuda_cpp.assembly import arithmetic, barriers, conversion, cooperation, matrices, transfers
from refsim.frontends.cuda_cpp.assembly.forms import Form

GROUPS: dict[str, tuple[Form, ...]] = {
    "Matrices": matrices.TABLE,
    "Memory": transfers.TABLE,
    "Barriers": barriers.TABLE,
    "Warps": cooperation.TABLE,
    "Arithmetic, logic, comparison, moves": arithmetic.TABLE,
    "Conversion": conversion.TABLE,
}
INSTRUCTIONS: tuple[Form, ...] = tuple(form for group in GROUPS.values() for form in group)
