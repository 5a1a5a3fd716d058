"""Cases of batched and grouped matrix products."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.gemm import EXACT, FACTORS
from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.values import ROWS, Shape
from oracle.formats import Format
from oracle.signature import Array

WITHOUT = ("bias",)


def _bias(name: str, rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    kind = "zeros" if name in EXACT else "sparse_integers" if name == "sparse_integers" else "normal"
    return ROWS[kind](rng, shape, number_format)


def _batched_draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        batch, k, n = shapes["b"]
        a, b = FACTORS[name](rng, shapes["a"], (batch, n, k), number_format)
        inputs = {"a": a, "b": np.swapaxes(b, -1, -2)}
        if "bias" in shapes:
            inputs["bias"] = _bias(name, rng, shapes["bias"], number_format)
        return inputs

    return draw


def _dims(batch: int, m: int, n: int, k: int) -> dict[str, int]:
    return {"batch": batch, "m": m, "n": n, "k": k}


def _random_batched(rng: np.random.Generator) -> Structure:
    m, n, k = int(pick(rng, SIZES[:14])), int(pick(rng, SIZES[:14])), int(pick(rng, SIZES))
    dims = _dims(int(pick(rng, (1, 2, 3, 5))), m, n, k)
    return Structure(dims, absent=WITHOUT if rng.random() < 0.5 else ())


BATCHED = Recipe(
    classes={name: _batched_draw(name) for name in FACTORS},
    curated=(
        Structure(_dims(3, 17, 15, 65), "normal", absent=WITHOUT),
        Structure(_dims(2, 15, 17, 33), "normal", "padded"),
        Structure(_dims(3, 9, 16, 31), "uniform", "transposed"),
        Structure(_dims(5, 7, 5, 47), "select_right", "misaligned", absent=WITHOUT),
        Structure(_dims(4, 5, 7, 63), "select_left", "strided", absent=WITHOUT),
        Structure(_dims(2, 17, 9, 127), "sparse_integers"),
        Structure(_dims(3, 13, 7, 129), "sparse_integers", "transposed", absent=WITHOUT),
        Structure(_dims(2, 16, 16, 16), "low_entropy"),
        Structure(_dims(3, 5, 7, 97), "rising", absent=WITHOUT),
        Structure(_dims(3, 7, 5, 97), "falling", "strided"),
        Structure(_dims(2, 8, 9, 64), "cancelling", absent=WITHOUT),
        Structure(_dims(3, 9, 8, 31), "heavy_tail", "misaligned"),
        Structure(_dims(2, 16, 3, 17), "subnormals", "padded", absent=WITHOUT),
        Structure(_dims(3, 3, 16, 33), "offset"),
        Structure(_dims(4, 17, 8, 31), "mixed", "transposed"),
        Structure(_dims(1, 1, 1, 1), "normal", absent=WITHOUT),
        Structure(_dims(7, 1, 13, 13), "normal", "padded"),
        Structure(_dims(2, 33, 1, 5), "normal"),
        Structure(_dims(3, 4, 5, 0)),
        Structure(_dims(0, 4, 5, 3)),
        Structure(_dims(2, 0, 5, 3), absent=WITHOUT),
        Structure(_dims(2, 5, 0, 3)),
        Structure(_dims(3, 9, 10, 33), "not_a_number"),
        Structure(_dims(33, 3, 2, 5), "normal", absent=WITHOUT),
        Structure(_dims(2, 2, 2, 1021), "uniform", absent=WITHOUT),
    ),
    random=_random_batched,
)

Ends = Callable[[np.random.Generator, int, int], Array]


def _any_ends(rng: np.random.Generator, rows: int, groups: int) -> Array:
    """Groups of any size, empty ones among them; about as many rows for a group as for none."""
    return np.sort(rng.integers(0, rows + 1, groups))


def _all_rows(rng: np.random.Generator, rows: int, groups: int) -> Array:
    """Every row belongs to some group."""
    ends = _any_ends(rng, rows, groups)
    ends[-1:] = rows
    return ends


def _one_group(rng: np.random.Generator, rows: int, groups: int) -> Array:
    """All rows belong to one group, those before and after it are empty."""
    owner = int(rng.integers(0, max(groups, 1)))
    return np.where(np.arange(groups) < owner, 0, rows)


def _no_rows(rng: np.random.Generator, rows: int, groups: int) -> Array:
    """No row belongs to any group."""
    return np.zeros(groups, np.int64)


def _grouped_draw(name: str, where: Ends = _all_rows, unowned: float | None = None) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        groups, k, n = shapes["b"]
        a, b = FACTORS[name](rng, shapes["a"], (groups, n, k), number_format)
        ends = where(rng, len(a), groups).astype(np.int32)
        if unowned is not None:
            a[int(ends[-1]) if groups else 0 :] = unowned
        inputs = {"a": a, "b": np.swapaxes(b, -1, -2), "ends": ends}
        if "bias" in shapes:
            inputs["bias"] = _bias(name, rng, shapes["bias"], number_format)
        return inputs

    return draw


def _grouped_dims(rows: int, groups: int, n: int, k: int) -> dict[str, int]:
    return {"rows": rows, "groups": groups, "n": n, "k": k}


def _random_grouped(rng: np.random.Generator) -> Structure:
    n, k = int(pick(rng, SIZES[:14])), int(pick(rng, SIZES))
    dims = _grouped_dims(int(pick(rng, SIZES[:18])), int(pick(rng, (1, 2, 3, 5, 8))), n, k)
    return Structure(dims, absent=WITHOUT if rng.random() < 0.5 else ())


GROUPED = Recipe(
    classes={
        **{name: _grouped_draw(name) for name in FACTORS},
        "unowned_rows": _grouped_draw("normal", _any_ends, np.nan),
        "one_group": _grouped_draw("normal", _one_group),
        "no_rows": _grouped_draw("normal", _no_rows, np.nan),
    },
    curated=(
        Structure(_grouped_dims(33, 3, 17, 31), "normal", absent=WITHOUT),
        Structure(_grouped_dims(29, 4, 15, 33), "normal", "padded"),
        Structure(_grouped_dims(37, 5, 9, 16), "unowned_rows", "transposed"),
        Structure(_grouped_dims(17, 5, 8, 31), "one_group", absent=WITHOUT),
        Structure(_grouped_dims(13, 3, 5, 17), "no_rows"),
        Structure(_grouped_dims(31, 4, 9, 47), "select_right", "misaligned", absent=WITHOUT),
        Structure(_grouped_dims(16, 3, 7, 63), "select_left", "strided", absent=WITHOUT),
        Structure(_grouped_dims(17, 2, 9, 127), "sparse_integers"),
        Structure(_grouped_dims(16, 8, 7, 129), "sparse_integers", "transposed", absent=WITHOUT),
        Structure(_grouped_dims(16, 3, 16, 16), "low_entropy"),
        Structure(_grouped_dims(15, 3, 7, 97), "rising", absent=WITHOUT),
        Structure(_grouped_dims(13, 2, 5, 97), "falling", "strided"),
        Structure(_grouped_dims(8, 2, 9, 64), "cancelling", absent=WITHOUT),
        Structure(_grouped_dims(19, 3, 8, 31), "heavy_tail", "misaligned"),
        Structure(_grouped_dims(16, 3, 3, 17), "subnormals", "padded", absent=WITHOUT),
        Structure(_grouped_dims(9, 2, 16, 33), "offset"),
        Structure(_grouped_dims(14, 3, 9, 33), "uniform"),
        Structure(_grouped_dims(33, 4, 8, 31), "mixed", "transposed"),
        Structure(_grouped_dims(1, 1, 1, 1), "normal", absent=WITHOUT),
        Structure(_grouped_dims(3, 16, 5, 13), "normal"),
        Structure(_grouped_dims(7, 0, 5, 13), "normal"),
        Structure(_grouped_dims(0, 3, 5, 13), "normal"),
        Structure(_grouped_dims(6, 2, 5, 0)),
        Structure(_grouped_dims(6, 2, 0, 3), absent=WITHOUT),
        Structure(_grouped_dims(24, 3, 10, 33), "not_a_number"),
        Structure(_grouped_dims(129, 2, 3, 5), "unowned_rows", "strided"),
    ),
    unread=("a",),
    random=_random_grouped,
)

RECIPES = {"batched_matmul": BATCHED, "grouped_matmul": GROUPED}
