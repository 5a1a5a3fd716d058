"""Blocks that share a scale: how large they are, and how scales are spread over the elements."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

Block: TypeAlias = Literal["tensor", "token", "channel", "1x16", "1x32", "1x64", "1x128", "128x128"]


def block_shape(block: str, rows: int, cols: int) -> tuple[int, int]:
    """Rows and columns of a block of a matrix; at least 1 each."""
    whole_rows, whole_cols = max(rows, 1), max(cols, 1)
    named = {"tensor": (whole_rows, whole_cols), "token": (1, whole_cols), "channel": (whole_rows, 1)}
    if block in named:
        return named[block]
    high, wide = block.split("x")
    return int(high), int(wide)


def scale_shape(block: str, rows: int, cols: int) -> tuple[int, int]:
    """How many blocks a matrix has along rows and columns; the last ones may be smaller."""
    high, wide = block_shape(block, rows, cols)
    blocks = -(-rows // high), -(-cols // wide)
    return {"tensor": (1, 1), "token": (rows, 1), "channel": (1, cols)}.get(block, blocks)


def in_blocks(x: Any, block: str, fill: float = 0.0) -> Any:
    """A matrix as (block rows, rows, block columns, columns), filled up at its ends."""
    rows, cols = x.shape
    high, wide = block_shape(block, rows, cols)
    down, across = scale_shape(block, rows, cols)
    x = np.pad(x, ((0, down * high - rows), (0, across * wide - cols)), constant_values=fill)
    return x.reshape(down, high, across, wide)


def over_blocks(scale: Any, block: str, rows: int, cols: int) -> Any:
    """The scale of each element: (rows, cols)."""
    high, wide = block_shape(block, rows, cols)
    return scale[np.arange(rows) // high][:, np.arange(cols) // wide]


def scales_fit(sizes: dict[str, int], block: str) -> str | None:
    """What is wrong with the dimensions scale_rows and scale_cols, or None."""
    rows, cols = sizes["rows"], sizes["cols"]
    wanted, given = scale_shape(block, rows, cols), (sizes["scale_rows"], sizes["scale_cols"])
    if wanted == given:
        return None
    return f"scale has shape {given}, but block={block!r} of a {rows}×{cols} matrix needs {wanted}"
