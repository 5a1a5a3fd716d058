"""Scales of blocks in rows, or padded to tiles and shuffled: their shapes, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np

ScaleTiles: TypeAlias = Literal["aiter", "cublas"]
ScaleLayout: TypeAlias = Literal["rows", "aiter", "cublas"]
TILES = {"aiter": (256, 8), "cublas": (128, 4)}
"""Rows and groups that scales are padded to a multiple of, by layout."""


def tile_axes(layout: str, m: int, g: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Axes of (m, g) scales, and the order that they are laid out in."""
    if layout == "aiter":
        return (m // 32, 2, 16, g // 8, 2, 4), (0, 3, 5, 2, 4, 1)
    return (m // 128, 4, 32, g // 4, 4), (0, 3, 2, 1, 4)


def unshuffled_scale(shuffled: Any, layout: str) -> Any:
    """Scales of one of the layouts in `TILES` as rows, padding and all."""
    m, g = shuffled.shape
    shape, order = tile_axes(layout, m, g)
    return np.transpose(shuffled.reshape([shape[axis] for axis in order]), np.argsort(order)).reshape(m, g)


def scale_dims(side: str) -> dict[str, str]:
    """Dimensions of the scales of m or n rows, by layout."""
    padded = f"{side}_padded k_blocks_padded"
    return {"rows": f"{side} k_blocks", "aiter": padded, "cublas": padded}


def scales_fit(sizes: Mapping[str, int], layout: str, k: int, block: int) -> str | None:
    """What is wrong with the dimensions of scales for ``block`` elements along k, or None."""
    blocks = -(-k // block)
    if layout == "rows":
        given = sizes["k_blocks"]
        return None if given == blocks else f"k = {k} has {blocks} blocks of {block}, but the scales have {given}"
    high, wide = TILES[layout]
    wanted = {f"{dim}_padded": -(-sizes[dim] // high) * high for dim in ("m", "n")}
    wanted["k_blocks_padded"] = -(-blocks // wide) * wide
    for name, size in wanted.items():
        if sizes[name] != size:
            shape = f"m = {sizes['m']}, n = {sizes['n']}, k = {k}"
            return f"{shape} need {name} = {size} in layout {layout!r}, not {sizes[name]}"
    return None


def factors(scale: Any, layout: str, rows: int, k: int, block: int) -> Any:
    """A scale for each of k elements of each row."""
    plain = scale if layout == "rows" else unshuffled_scale(scale, layout)[:rows]
    return np.repeat(plain, block, axis=1)[:, :k]
