"""Cases of the matrix product with an epilogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.gemm import EXACT, FACTORS
from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.values import ROWS, Shape
from oracle.formats import Format
from oracle.signature import Array


def _draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        a_shape = shapes["a"][::-1] if params["transpose_a"] else shapes["a"]
        b_shape = shapes["b"] if params["transpose_b"] else shapes["b"][::-1]
        a, b = FACTORS.get(name, FACTORS["normal"])(rng, a_shape, b_shape, number_format)
        inputs = {"a": a.T if params["transpose_a"] else a, "b": b if params["transpose_b"] else b.T}
        kind = "zeros" if name in EXACT else "sparse_integers" if name == "sparse_integers" else "normal"
        for added in ("c", "bias"):
            if added in shapes:
                inputs[added] = ROWS[kind](rng, shapes[added], number_format)
        if name == "small":  # where activations bend
            inputs["a"] = inputs["a"] / max(a_shape[-1], 1) ** 0.5
        if name == "unread" and "c" in shapes and not params["beta"]:
            inputs["c"] = np.full(shapes["c"], np.nan)
        return inputs

    return draw


def _dims(m: int, n: int, k: int) -> dict[str, int]:
    return {"m": m, "n": n, "k": k}


A, B = {"transpose_a": True}, {"transpose_b": True}
RELU, GELU, TANH, SILU = ({"activation": name} for name in ("relu", "gelu", "gelu_tanh", "silu"))
BOTH, HALF = {"alpha": -1.7, "beta": 0.3}, {"alpha": 0.5, "beta": 2.0}
ADD = {"beta": 1.0}
NO_C, NO_BIAS, NEITHER = ("c",), ("bias",), ("c", "bias")


def _random(rng: np.random.Generator) -> Structure:
    dims = _dims(int(pick(rng, SIZES[:14])), int(pick(rng, SIZES[:14])), int(pick(rng, SIZES)))
    params: dict[str, Any] = {name: True for name in ("transpose_a", "transpose_b") if rng.random() < 0.5}
    params |= pick(rng, ({}, BOTH, HALF, ADD, {"alpha": 3.0}))
    params |= pick(rng, ({}, RELU, GELU, TANH, SILU))
    return Structure(dims, params=params, absent=pick(rng, ((), NO_C, NO_BIAS, NEITHER)))


GEMM_EPILOGUE = Recipe(
    classes={name: _draw(name) for name in (*FACTORS, "small", "unread")},
    curated=(
        Structure(_dims(17, 15, 33), "normal", params=BOTH),
        Structure(_dims(15, 17, 31), "normal", "padded", A | HALF),
        Structure(_dims(16, 15, 47), "uniform", "transposed", B | BOTH, NO_BIAS),
        Structure(_dims(9, 16, 33), "small", params=GELU),
        Structure(_dims(9, 16, 33), "small", "strided", TANH | ADD),
        Structure(_dims(16, 9, 33), "small", "misaligned", SILU, NEITHER),
        Structure(_dims(16, 9, 33), "small", params=SILU | BOTH),
        Structure(_dims(9, 9, 17), "small", params=RELU | HALF),
        Structure(_dims(15, 9, 17), "small", params=GELU | {"alpha": 3.0}, absent=NO_C),
        Structure(_dims(13, 9, 17), "small", "padded", TANH | B, NO_C),
        Structure(_dims(13, 9, 17), "unread", "padded"),
        Structure(_dims(9, 13, 17), "unread", params=RELU | {"alpha": 2.0}),
        Structure(_dims(15, 13, 63), "select_right", "misaligned", {"alpha": 2.0}, NEITHER),
        Structure(_dims(13, 15, 65), "select_left", "padded", B, NEITHER),
        Structure(_dims(9, 17, 127), "sparse_integers", params=HALF),
        Structure(_dims(13, 7, 129), "sparse_integers", "transposed", A | RELU),
        Structure(_dims(16, 16, 16), "low_entropy", params=BOTH),
        Structure(_dims(5, 7, 97), "rising", params=BOTH, absent=NO_C),
        Structure(_dims(7, 5, 97), "falling", "strided", ADD),
        Structure(_dims(8, 9, 64), "cancelling", params=SILU),
        Structure(_dims(9, 8, 31), "heavy_tail", "misaligned", B | BOTH),
        Structure(_dims(16, 3, 17), "subnormals", "padded", HALF, NEITHER),
        Structure(_dims(3, 16, 33), "offset", params=RELU),
        Structure(_dims(17, 9, 31), "mixed", "transposed", ADD),
        Structure(_dims(17, 9, 33), "not_a_number", params=RELU),
        Structure(_dims(12, 9, 33), "not_a_number", params=GELU),
        Structure(_dims(1, 1, 1), "normal", absent=NEITHER),
        Structure(_dims(4, 5, 0), params=BOTH),
        Structure(_dims(0, 5, 3)),
        Structure(_dims(5, 0, 3), params=ADD),
    ),
    unread=("c",),
    random=_random,
)

RECIPES = {"gemm_epilogue": GEMM_EPILOGUE}
