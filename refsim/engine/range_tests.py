"""The condition of a loop over a range whose step is not known before the launch: it may go up or down."""

from __future__ import annotations

from typing import Any

from refsim.dialect import Binary, Compare, Const, Expr


def range_test(e: Expr) -> tuple[Compare, Expr] | None:
    """``i < stop`` and the step, of a condition ``step > 0 and i < stop or step < 0 and i > stop``; None for others."""
    if not isinstance(e, Binary) or e.op != "or":
        return None
    up, down = e.left, e.right
    if not (isinstance(up, Binary) and isinstance(down, Binary) and up.op == down.op == "and"):
        return None
    parts = [part for part in (up.left, up.right, down.left, down.right) if isinstance(part, Compare)]
    if len(parts) < 4:
        return None
    rises, below, falls, above = parts
    zero = isinstance(rises.right, Const) and rises.right.value == 0
    signs = rises.op == ">" and falls.op == "<" and rises.left == falls.left and rises.right == falls.right
    ends = below.op == "<" and above.op == ">" and below.left == above.left and below.right == above.right
    return (below, rises.left) if zero and signs and ends else None


def in_range(i: Any, stop: Any, step: Any) -> Any:
    """Whether a loop over a range goes on, by the direction of its step."""
    if type(step) is int:
        return i < stop if step > 0 else (i > stop if step < 0 else False)
    return ((step > 0) & (i < stop)) | ((step < 0) & (i > stop))
