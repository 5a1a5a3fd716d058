"""Cases of sum and softmax."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows
from oracle.formats import Format
from oracle.signature import Array

SUM_CLASSES = (
    "normal", "uniform", "full_significand", "one_hot", "sparse_integers", "low_entropy", "rising", "falling",
    "all_below", "offset", "subnormals", "cancelling", "heavy_tail", "zeros", "not_a_number", "infinities",
    "overflowing",
)  # fmt: skip
SOFTMAX_CLASSES = (
    "normal", "uniform", "full_significand", "one_hot", "sparse_integers", "low_entropy", "rising", "falling",
    "offset", "subnormals", "all_below", "far_below", "wide", "huge_exact", "spike", "heavy_tail", "zeros",
    "not_a_number", "infinities", "masked",
)  # fmt: skip


def _sum_draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        """Rows lie along the axis that is summed; over all axes, the whole array is one row."""
        shape, axis = shapes["x"], params["axis"]
        if axis is None or not shape:
            size = int(np.prod(shape))
            return {"x": draw_rows(name, rng, (size,), number_format, SUM_CLASSES).reshape(shape)}
        moved = (*np.delete(shape, axis), shape[axis])
        return {"x": np.moveaxis(draw_rows(name, rng, moved, number_format, SUM_CLASSES), -1, axis)}

    return draw


def _softmax_draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        return {"x": draw_rows(name, rng, shapes["x"], number_format, SOFTMAX_CLASSES)}

    return draw


def _shape(*sizes: int) -> dict[str, int]:
    return {f"d{axis}": size for axis, size in enumerate(sizes)}


def _rows(*sizes: int) -> dict[str, int]:
    return {**_shape(*sizes[:-1]), "cols": sizes[-1]}


def _random_sum(rng: np.random.Generator) -> Structure:
    rank = int(rng.integers(1, 4))
    sizes = [int(pick(rng, SIZES[: (20, 20, 14, 8)[rank]])) for _ in range(rank)]
    axis = pick(rng, (None, *range(-rank, rank)))
    return Structure(_shape(*sizes), params={} if axis is None else {"axis": axis})


def _random_softmax(rng: np.random.Generator) -> Structure:
    rank = int(rng.integers(1, 4))
    sizes = [int(pick(rng, SIZES[:8])) for _ in range(rank - 1)]
    return Structure(_rows(*sizes, int(pick(rng, SIZES))))


SUM = Recipe(
    classes={name: _sum_draw(name) for name in (*SUM_CLASSES, "mixed")},
    curated=(
        Structure(_shape(7, 129), "normal", params={"axis": 1}),
        Structure(_shape(65, 17), "uniform", "transposed", {"axis": 0}),
        Structure(_shape(13, 64), "one_hot", "padded", {"axis": 1}),
        Structure(_shape(257), "sparse_integers"),
        Structure(_shape(5, 33, 7), "low_entropy", "strided", {"axis": 1}),
        Structure(_shape(9, 97), "rising", params={"axis": -1}),
        Structure(_shape(9, 97), "falling", "misaligned", {"axis": -1}),
        Structure(_shape(1021), "uniform", "misaligned"),
        Structure(_shape(6, 128), "offset", params={"axis": 1}),
        Structure(_shape(31, 31), "subnormals", "strided"),
        Structure(_shape(8, 63), "cancelling", params={"axis": 1}),
        Structure(_shape(4, 127), "heavy_tail", "transposed", {"axis": 1}),
        Structure(_shape(11, 47), "mixed", "padded", {"axis": -1}),
        Structure(_shape(3, 5, 65), "full_significand", "transposed"),
        Structure(_shape(3, 0), params={"axis": 1}),
        Structure(_shape(0, 3), params={"axis": 1}),
        Structure(_shape(0)),
        Structure(_shape(1), "full_significand"),
        Structure(_shape(1, 1, 1), "full_significand", params={"axis": 0}),
        Structure(_shape(), "full_significand"),
        Structure(_shape(2, 3, 4, 5), "sparse_integers", "padded", {"axis": -2}),
        Structure(_shape(33, 2), "heavy_tail", params={"axis": 1}),
        Structure(_shape(3, 65), "all_below", params={"axis": 1}),
        Structure(_shape(5, 16), "zeros", params={"axis": 1}),
        Structure(_shape(9, 33), "not_a_number", params={"axis": 1}),
        Structure(_shape(33, 9), "infinities", params={"axis": 0}),
        Structure(_shape(9, 33), "overflowing", "padded", {"axis": 1}),
        Structure(_shape(2, 2053), "normal", params={"axis": 1}),
        Structure(_shape(5, 261), "normal", params={"axis": 0}),
    ),
    random=_random_sum,
)

SOFTMAX = Recipe(
    classes={name: _softmax_draw(name) for name in (*SOFTMAX_CLASSES, "mixed")},
    curated=(
        Structure(_rows(8, 128), "normal"),
        Structure(_rows(5, 65), "all_below", "padded"),
        Structure(_rows(6, 64), "wide", "transposed"),
        Structure(_rows(3, 4, 33), "huge_exact", "strided"),
        Structure(_rows(9, 97), "spike", "misaligned"),
        Structure(_rows(5, 127), "rising"),
        Structure(_rows(5, 63), "falling", "padded"),
        Structure(_rows(4, 257), "uniform"),
        Structure(_rows(4, 64), "low_entropy", "strided"),
        Structure(_rows(8, 31), "one_hot"),
        Structure(_rows(8, 47), "sparse_integers", "transposed"),
        Structure(_rows(3, 129), "offset"),
        Structure(_rows(2, 2, 33), "far_below"),
        Structure(_rows(3, 17), "subnormals", "padded"),
        Structure(_rows(6, 32), "heavy_tail"),
        Structure(_rows(13, 33), "mixed", "misaligned"),
        Structure(_rows(2, 1021), "full_significand"),
        Structure(_rows(5, 1), "normal"),
        Structure(_rows(1), "normal"),
        Structure(_rows(0, 5)),
        Structure(_rows(3, 0)),
        Structure(_rows(2, 2, 2, 16), "normal", "transposed"),
        Structure(_rows(7, 33), "not_a_number"),
        Structure(_rows(4, 31), "infinities", "strided"),
        Structure(_rows(5, 65), "masked"),
        Structure(_rows(3, 47), "zeros"),
        Structure(_rows(2, 2053), "normal"),
        Structure(_rows(261, 5), "normal"),
        Structure(_rows(1, 128_256), "uniform"),  # logits of a large vocabulary: float16 cannot hold the sum
    ),
    random=_random_softmax,
)


def _random_scan(rng: np.random.Generator) -> Structure:
    return replace(_random_softmax(rng), params={"exclusive": True} if rng.random() < 0.5 else {})


def _not_empty(recipe: Recipe) -> Recipe:
    return replace(recipe, curated=tuple(one for one in recipe.curated if one.dims["cols"]))


def _short(recipe: Recipe) -> Recipe:
    """Without the longest rows, and every second case with exclusive sums."""
    kept = (one for one in recipe.curated if one.dims["cols"] < 512)
    curated = tuple(replace(one, params={"exclusive": True} if at % 2 else {}) for at, one in enumerate(kept))
    return replace(recipe, curated=curated, random=_random_scan)


ROWS = replace(
    SOFTMAX,
    classes={name: _softmax_draw(name) for name in (*SOFTMAX_CLASSES, "mixed", "cancelling")},
    curated=(
        *SOFTMAX.curated,
        Structure(_rows(8, 63), "cancelling"),
        Structure(_rows(5, 33), "full_significand", "padded"),
    ),
)

RECIPES = {
    "sum": SUM,
    "softmax": SOFTMAX,
    "mean": _not_empty(ROWS),
    "cumsum": _short(ROWS),
    "logsumexp": SOFTMAX,
    "log_softmax": SOFTMAX,
}
