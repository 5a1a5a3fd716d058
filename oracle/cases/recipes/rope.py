"""Cases of rotary position embedding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows
from oracle.formats import Format
from oracle.signature import Array

CLASSES = (
    "normal",
    "uniform",
    "full_significand",
    "sparse_integers",
    "low_entropy",
    "subnormals",
    "heavy_tail",
    "not_a_number",
)
BASE = 10_000.0


def _positions(rng: np.random.Generator, shape: Shape, rows: int) -> Array:
    """Random rows of the tables, the last one and the first among them; int32 or int64."""
    positions = rng.integers(0, max(rows, 1), shape)
    positions[:1] = max(rows - 1, 0)
    positions[1:2] = 0
    return positions.astype(np.int32 if rng.random() < 0.5 else np.int64)


def _angles(rows: int, half: int) -> Array:
    """Angles of the original embedding: position / BASE**(j / half)."""
    return np.arange(rows)[:, np.newaxis] * BASE ** (-np.arange(half) / max(half, 1))


def _rope_draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        angles = _angles(*shapes["cos"])
        return {
            "x": draw_rows(name, rng, shapes["x"], number_format, CLASSES),
            "positions": _positions(rng, shapes["positions"], shapes["cos"][0]),
            "cos": np.cos(angles),
            "sin": np.sin(angles),
        }

    return draw


def _quarter_turns(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Turns by multiples of 90°, different per pair: each result is ± one element, bit for bit."""
    turns = rng.integers(0, 4, shapes["cos"])
    return {
        "x": draw_rows("full_significand", rng, shapes["x"], number_format),
        "positions": _positions(rng, shapes["positions"], shapes["cos"][0]),
        "cos": np.array([1.0, 0.0, -1.0, 0.0])[turns],
        "sin": np.array([0.0, 1.0, 0.0, -1.0])[turns],
    }


def _cancelling(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Nearly equal elements turned by nearly 45°: the two products cancel."""
    angles = np.pi / 4 + 1e-3 * rng.standard_normal(shapes["cos"])
    return {
        "x": 1.0 + 1e-2 * rng.standard_normal(shapes["x"]),
        "positions": _positions(rng, shapes["positions"], shapes["cos"][0]),
        "cos": np.cos(angles),
        "sin": np.sin(angles),
    }


def _dims(tokens: int, heads: int, head_dim: int, half: int, max_position: int) -> dict[str, int]:
    return {"tokens": tokens, "heads": heads, "head_dim": head_dim, "max_position": max_position, "half": half}


GPTJ = {"pairing": "gptj"}


def _random_rope(rng: np.random.Generator) -> Structure:
    head_dim = int(pick(rng, (2, 3, 8, 16, 33, 64, 128)))
    half = int(pick(rng, (head_dim // 2, head_dim // 2, max(head_dim // 4, 1))))
    dims = _dims(int(pick(rng, SIZES[:14])), int(pick(rng, (1, 2, 3, 8))), head_dim, half, int(pick(rng, SIZES)))
    return Structure(dims, params=GPTJ if rng.random() < 0.5 else {})


ROPE = Recipe(
    classes={
        **{name: _rope_draw(name) for name in (*CLASSES, "mixed")},
        "quarter_turns": _quarter_turns,
        "cancelling": _cancelling,
    },
    curated=(
        Structure(_dims(7, 3, 64, 32, 129), "normal"),
        Structure(_dims(7, 3, 64, 32, 129), "normal", "padded", GPTJ),
        Structure(_dims(5, 2, 33, 8, 17), "normal", "strided"),
        Structure(_dims(5, 2, 33, 8, 17), "full_significand", "transposed", GPTJ),
        Structure(_dims(9, 2, 16, 8, 31), "quarter_turns", "misaligned"),
        Structure(_dims(9, 2, 16, 8, 31), "quarter_turns", "padded", GPTJ),
        Structure(_dims(4, 3, 32, 16, 8), "cancelling"),
        Structure(_dims(6, 2, 24, 12, 7), "low_entropy", "strided", GPTJ),
        Structure(_dims(6, 1, 16, 4, 13), "subnormals"),
        Structure(_dims(8, 2, 30, 15, 65), "heavy_tail", "transposed"),
        Structure(_dims(8, 2, 30, 10, 65), "sparse_integers", params=GPTJ),
        Structure(_dims(13, 5, 20, 10, 47), "mixed", "misaligned"),
        Structure(_dims(31, 1, 128, 64, 97), "uniform"),
        Structure(_dims(1, 1, 2, 1, 1), "normal"),
        Structure(_dims(1, 1, 3, 1, 5), "full_significand", params=GPTJ),
        Structure(_dims(3, 2, 7, 0, 4), "full_significand"),
        Structure(_dims(0, 3, 8, 4, 5)),
        Structure(_dims(3, 0, 8, 4, 5)),
        Structure(_dims(33, 4, 64, 16, 33), "normal", "padded"),
        Structure(_dims(5, 3, 16, 6, 9), "not_a_number"),
        Structure(_dims(261, 1, 4, 2, 5), "normal"),
        Structure(_dims(2, 65, 8, 4, 1031), "normal", params=GPTJ),
    ),
    random=_random_rope,
)

RECIPES = {"rope": ROPE}
