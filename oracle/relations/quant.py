"""Relations of quantisation to 8 bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.formats import format_of
from oracle.relations.relation import Run, difference, relation


@relation("quantise")
def rows_share_nothing(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """Rows that change places take their codes along, and their scales where a block lies in one row."""
    x, block = inputs["x"], params["block"]
    if len(x) < 2 or block == "128x128":
        return None
    scale, codes = run(inputs, params)
    moved_scale, moved_codes = run({**inputs, "x": np.roll(x, 1, axis=0)}, params)
    if block not in ("tensor", "channel"):
        moved_scale = np.roll(moved_scale, -1, axis=0)
    return difference(moved_scale, scale, "scale of rows in each other's places") or difference(
        np.roll(moved_codes, -1, axis=0), codes, "codes of rows in each other's places"
    )


@relation("quantise")
def signs_turn_codes(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """Where every element changes its sign, so does every code, and the scales stay."""
    scale, codes = run(inputs, params)
    turned_scale, turned_codes = run({**inputs, "x": -inputs["x"]}, params)
    return difference(turned_scale, scale, "scale of -x") or difference(-turned_codes, codes, "codes of -x")


@relation("quantise")
def powers_of_two_only_scale(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """Elements that are 16 times as large have the same codes, with scales that are 16 times as large."""
    x = inputs["x"]
    size = np.abs(x.astype(np.float64))
    low, high = 2.0**-90, format_of(x.dtype).max / 2.0**6  # neither a quotient nor a scale is subnormal
    if params["least"] or not ((size > low) & (size < high)).all():
        return None
    scale, codes = run(inputs, params)
    larger_scale, larger_codes = run({**inputs, "x": (x * x.dtype.type(16)).astype(x.dtype)}, params)
    return difference(larger_scale, scale * np.float32(16), "scale of 16 x") or difference(
        larger_codes, codes, "codes of 16 x"
    )
