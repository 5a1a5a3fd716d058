"""What the words share: their operands, plain or error-bounded."""

from __future__ import annotations

from typing import Any, TypeVar

from oracle.error.array import ErrorBounded
from oracle.numerics import Numerics

Operand = TypeVar("Operand")


def arithmetic_of(*inputs: Any) -> Numerics | None:
    """The Numerics of the error-bounded arrays among the inputs, None on a plain run."""
    return next((x.numerics for x in inputs if isinstance(x, ErrorBounded)), None)


def value_of(x: Any) -> Any:
    return x.value if isinstance(x, ErrorBounded) else x
