"""Cases of the normalisations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows, normal
from oracle.formats import Format
from oracle.signature import Array

CLASSES = (
    "normal", "uniform", "full_significand", "one_hot", "sparse_integers", "low_entropy", "rising", "falling",
    "all_below", "offset", "subnormals", "heavy_tail", "zeros", "not_a_number", "infinities",
)  # fmt: skip


def _rmsnorm_draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        x = draw_rows(name, rng, shapes["x"], number_format, CLASSES)
        return {"x": x, "weight": normal(rng, shapes["weight"], number_format)}

    return draw


def _near_eps(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Mean squares about as large as eps: where eps goes, and whether it goes in at all, decides the result."""
    x = np.sqrt(params["eps"]) * normal(rng, shapes["x"], number_format)
    return {"x": x, "weight": normal(rng, shapes["weight"], number_format)}


def _dims(rows: int, cols: int) -> dict[str, int]:
    return {"rows": rows, "cols": cols}


def _random_rmsnorm(rng: np.random.Generator) -> Structure:
    dims = _dims(int(pick(rng, SIZES[:11])), int(pick(rng, SIZES)))
    eps = pick(rng, (1e-6, 1e-5, 1e-3, 1.0))
    return Structure(dims, params={} if eps == 1e-6 else {"eps": eps})


RMSNORM = Recipe(
    classes={**{name: _rmsnorm_draw(name) for name in (*CLASSES, "mixed")}, "near_eps": _near_eps},
    curated=(
        Structure(_dims(7, 129), "normal"),
        Structure(_dims(5, 65), "near_eps", "padded"),
        Structure(_dims(6, 64), "near_eps", params={"eps": 1e-3}),
        Structure(_dims(3, 257), "uniform", "misaligned"),
        Structure(_dims(9, 33), "one_hot", "strided"),
        Structure(_dims(8, 47), "sparse_integers", "transposed"),
        Structure(_dims(4, 63), "low_entropy"),
        Structure(_dims(5, 97), "rising", "padded"),
        Structure(_dims(5, 97), "falling"),
        Structure(_dims(3, 31), "all_below", "misaligned"),
        Structure(_dims(4, 128), "offset", "transposed"),
        Structure(_dims(4, 17), "subnormals"),
        Structure(_dims(6, 127), "heavy_tail", "strided"),
        Structure(_dims(13, 32), "mixed"),
        Structure(_dims(3, 16), "zeros"),
        Structure(_dims(2, 1021), "full_significand"),
        Structure(_dims(5, 1), "normal"),
        Structure(_dims(1, 1), "full_significand"),
        Structure(_dims(0, 5)),
        Structure(_dims(33, 13), "normal", "transposed", {"eps": 1.0}),
        Structure(_dims(7, 33), "not_a_number"),
        Structure(_dims(4, 65), "infinities", "padded"),
        Structure(_dims(2, 2053), "normal"),
        Structure(_dims(261, 5), "normal"),
    ),
    random=_random_rmsnorm,
)

RECIPES = {"rmsnorm": RMSNORM}
