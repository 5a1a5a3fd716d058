"""Cases of matrix multiplication."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.values import ROWS, Shape, draw_rows, full_significand, hot_mask
from oracle.formats import Format
from oracle.signature import Array

# Rows of both factors lie along k, the axis that is summed.
Factors: TypeAlias = Callable[[np.random.Generator, Shape, Shape, Format], tuple[Array, Array]]
MIXED = ("normal", "uniform", "one_hot", "sparse_integers", "rising", "falling", "heavy_tail", "zeros")


def _both(name: str) -> Factors:
    def factors(rng: np.random.Generator, a: Shape, b: Shape, number_format: Format) -> tuple[Array, Array]:
        return draw_rows(name, rng, a, number_format, MIXED), draw_rows(name, rng, b, number_format, MIXED)

    return factors


def _against(left: str, right: str) -> Factors:
    def factors(rng: np.random.Generator, a: Shape, b: Shape, number_format: Format) -> tuple[Array, Array]:
        return draw_rows(left, rng, a, number_format, MIXED), draw_rows(right, rng, b, number_format, MIXED)

    return factors


def _select_right(rng: np.random.Generator, a: Shape, b: Shape, number_format: Format) -> tuple[Array, Array]:
    """Each row of a picks one row of b, all of whose significand bits must arrive."""
    return hot_mask(rng, a), full_significand(rng, b, number_format)


def _select_left(rng: np.random.Generator, a: Shape, b: Shape, number_format: Format) -> tuple[Array, Array]:
    """Each column of b picks one column of a, all of whose significand bits must arrive."""
    return full_significand(rng, a, number_format), hot_mask(rng, b)


FACTORS: dict[str, Factors] = {
    **{name: _both(name) for name in ("normal", "uniform", "sparse_integers", "low_entropy", "heavy_tail", "mixed")},
    "select_right": _select_right,
    "select_left": _select_left,
    "rising": _against("rising", "normal"),
    "falling": _against("falling", "normal"),
    "cancelling": _against("cancelling", "uniform"),
    "subnormals": _against("subnormals", "normal"),
    "offset": _against("offset", "normal"),
    "not_a_number": _both("not_a_number"),
}
EXACT = ("select_right", "select_left")


def _matmul_draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        a_shape = shapes["a"][::-1] if params["transpose_a"] else shapes["a"]
        b_shape = shapes["b"] if params["transpose_b"] else shapes["b"][::-1]
        a, b = FACTORS[name](rng, a_shape, b_shape, number_format)
        inputs = {"a": a.T if params["transpose_a"] else a, "b": b if params["transpose_b"] else b.T}
        if "bias" in shapes:
            bias = "zeros" if name in EXACT else "sparse_integers" if name == "sparse_integers" else "normal"
            inputs["bias"] = ROWS[bias](rng, shapes["bias"], number_format)
        return inputs

    return draw


def _dims(m: int, n: int, k: int) -> dict[str, int]:
    return {"m": m, "n": n, "k": k}


A, B = {"transpose_a": True}, {"transpose_b": True}
WITHOUT = ("bias",)


def _random_matmul(rng: np.random.Generator) -> Structure:
    dims = _dims(int(pick(rng, SIZES[:16])), int(pick(rng, SIZES[:16])), int(pick(rng, SIZES)))
    params = {name: True for name in ("transpose_a", "transpose_b") if rng.random() < 0.5}
    return Structure(dims, params=params, absent=WITHOUT if rng.random() < 0.5 else ())


MATMUL = Recipe(
    classes={name: _matmul_draw(name) for name in FACTORS},
    curated=(
        Structure(_dims(33, 17, 65), "normal", absent=WITHOUT),
        Structure(_dims(17, 33, 47), "normal", "padded", A),
        Structure(_dims(16, 31, 64), "uniform", "transposed", B, WITHOUT),
        Structure(_dims(31, 16, 33), "normal", "strided", A | B),
        Structure(_dims(15, 33, 63), "select_right", "misaligned", absent=WITHOUT),
        Structure(_dims(33, 15, 65), "select_left", "padded", B, WITHOUT),
        Structure(_dims(17, 17, 127), "sparse_integers"),
        Structure(_dims(13, 7, 129), "sparse_integers", "transposed", A, WITHOUT),
        Structure(_dims(16, 16, 16), "low_entropy"),
        Structure(_dims(5, 7, 97), "rising", absent=WITHOUT),
        Structure(_dims(7, 5, 97), "falling", "strided"),
        Structure(_dims(8, 9, 64), "cancelling", absent=WITHOUT),
        Structure(_dims(9, 8, 31), "heavy_tail", "misaligned", B),
        Structure(_dims(16, 3, 17), "subnormals", "padded", absent=WITHOUT),
        Structure(_dims(3, 16, 33), "offset"),
        Structure(_dims(33, 32, 31), "mixed", "transposed"),
        Structure(_dims(1, 1, 1), "normal", absent=WITHOUT),
        Structure(_dims(1, 65, 13), "normal", params=A),
        Structure(_dims(65, 1, 5), "normal", "padded", B),
        Structure(_dims(4, 5, 0)),
        Structure(_dims(4, 5, 0), absent=WITHOUT),
        Structure(_dims(0, 5, 3)),
        Structure(_dims(5, 0, 3), absent=WITHOUT),
        Structure(_dims(2, 2, 1021), "uniform", absent=WITHOUT),
        Structure(_dims(17, 18, 33), "not_a_number"),
        Structure(_dims(131, 3, 5), "normal", absent=WITHOUT),
        Structure(_dims(3, 131, 5), "normal"),
        Structure(_dims(24, 16, 24), "normal", params=A | B),
    ),
    random=_random_matmul,
)

RECIPES = {"matmul": MATMUL}
