"""Functions that CUDA and HIP provide: what each becomes in the dialect.

Each file adds its functions to the table; a function of our own headers without a body is looked up here by name.
"""

from __future__ import annotations

from refsim.frontends.cuda_cpp.intrinsics import (
    barrier_objects,
    bits,
    control,
    directed,
    fast,
    fragments,
    halves,
    mathematics,
    memory,
    rounding,
    warps,
)
from refsim.frontends.cuda_cpp.intrinsics.table import Call, Handler

TABLE: dict[str, Handler] = {
    **mathematics.TABLE, **fast.TABLE, **directed.TABLE, **rounding.TABLE, **halves.TABLE, **bits.TABLE,
    **memory.TABLE, **warps.TABLE, **control.TABLE, **fragments.TABLE,
    **barrier_objects.TABLE,
}  # fmt: skip


def find(name: str) -> Handler | None:
    """The translation of a function, or None if it is not known."""
    return TABLE.get(name) or control.by_pattern(name)


__all__ = ["TABLE", "Call", "Handler", "find"]
