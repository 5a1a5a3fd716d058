"""Cases of tables of angles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows
from oracle.formats import Format
from oracle.signature import Array

ROWS = ("normal", "uniform", "full_significand", "low_entropy", "rising", "falling", "heavy_tail", "zeros")


def _draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        half = shapes["frequencies"]
        top = 1 << 17 if name == "far" else 4096 if name in ("base_10000", "base_500000") else 64
        positions = rng.integers(0, top, shapes["positions"])
        positions[:1] = 1
        if name in ROWS:
            frequencies = draw_rows(name, rng, half, number_format)
        else:
            base = 500_000.0 if name == "base_500000" else 10_000.0
            frequencies = base ** (-np.arange(half[0]) / max(half[0], 1))
        kind = np.int32 if rng.random() < 0.5 else np.int64
        return {"frequencies": frequencies, "positions": positions.astype(kind)}

    return draw


NAMES = ("base_10000", "uniform", "base_500000", "far", *(name for name in ROWS if name != "uniform"))
LAYOUTS = ("contiguous", "padded", "strided", "transposed", "misaligned")
DIMS = (
    (7, 33), (16, 64), (5, 17), (64, 9), (1, 1), (3, 2), (0, 4), (4, 0), (129, 3), (2, 257), (31, 16), (13, 32),
)  # fmt: skip
PARAMS: tuple[dict[str, float], ...] = ({}, {"factor": 4.0}, {"factor": 3.3, "magnitude": 1.2}, {"magnitude": 0.7})


def _random(rng: np.random.Generator) -> Structure:
    dims = {"half": int(pick(rng, SIZES[:14])), "count": int(pick(rng, SIZES[:14]))}
    return Structure(dims, params=pick(rng, PARAMS))


RECIPES = {
    "rope_table": Recipe(
        {name: _draw(name) for name in NAMES},
        tuple(
            Structure(
                {"half": DIMS[at % 12][0], "count": DIMS[at % 12][1]},
                NAMES[at % len(NAMES)],
                LAYOUTS[at * 3 % 5],
                PARAMS[at * 3 % 4],
            )
            for at in range(24)
        ),
        _random,
    )
}
