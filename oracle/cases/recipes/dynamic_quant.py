"""Cases of operators that quantise their result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows, normal
from oracle.formats import Format
from oracle.signature import Array

CLASSES = (
    "normal", "uniform", "full_significand", "one_hot", "sparse_integers", "low_entropy", "rising", "falling",
    "all_below", "offset", "subnormals", "heavy_tail", "zeros",
)  # fmt: skip


def _inputs(x: Array, rng: np.random.Generator, shapes: Mapping[str, Shape], number_format: Format) -> Any:
    drawn = {"x": x}
    for label in ("weight", "bias"):
        if label in shapes:
            drawn[label] = normal(rng, shapes[label], number_format)
    if {"weight", "bias"} <= shapes.keys() and (np.any(x == 0.0) or np.max(np.abs(x), initial=0.0) < 2.0**-8):
        drawn["bias"] = np.zeros(shapes["bias"])  # so that results are zero or tiny, too
    if "scale" in shapes:
        drawn["scale"] = rng.uniform(0.5, 1.0, 1) / 32.0
    if "residual" in shapes:  # zero and tiny where x is
        drawn["residual"] = x * normal(rng, shapes["residual"], number_format)
    return drawn


def _class(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        drawn: dict[str, Array] = _inputs(
            draw_rows(name, rng, shapes["x"], number_format, CLASSES), rng, shapes, number_format
        )
        return drawn

    return draw


def _outlier(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """The last column is a hundred times larger, and negative: it alone makes the scale of its block."""
    x = normal(rng, shapes["x"], number_format)
    x[:, -1:] = -100.0 * (1.0 + rng.random(x[:, -1:].shape))
    half = x.shape[1] // 2
    if "pairing" in params and half:
        gate = half - 1 if params["pairing"] == "halves" else 2 * half - 2
        x[:, gate] = 3.0
    drawn: dict[str, Array] = _inputs(x, rng, shapes, number_format)
    if "weight" in drawn:
        drawn["weight"][-1:] = 1.5
    return drawn


def _some_zero(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Every second row and every second tile of 32 columns of the others are zeros."""
    x = normal(rng, shapes["x"], number_format)
    x[1::2] = 0.0
    x[:, np.arange(x.shape[1]) // 32 % 2 == 1] = 0.0
    drawn: dict[str, Array] = _inputs(x, rng, shapes, number_format)
    return drawn


def _tiny(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Numbers so small that a lower limit of the scales decides."""
    drawn: dict[str, Array] = _inputs(2.0**-12 * normal(rng, shapes["x"], number_format), rng, shapes, number_format)
    return drawn


BARE = ("bias",)
CLASS_DRAWS: dict[str, Draw] = {
    **{name: _class(name) for name in (*CLASSES, "mixed")},
    "outlier": _outlier,
    "some_zero": _some_zero,
    "tiny": _tiny,
}


def _recipe(
    dims: Callable[[int, int], dict[str, int]], variations: tuple[dict[str, Any], ...], biased: bool = False
) -> Recipe:
    """The cases of one operator; ``variations`` are the parameters that it is to be seen with, in turn."""

    def turn(number: int) -> dict[str, Any]:
        return variations[number % len(variations)]

    def random(rng: np.random.Generator) -> Structure:
        shape, params = dims(int(pick(rng, SIZES[:11])), int(pick(rng, SIZES))), pick(rng, variations)
        return Structure(shape, params=params, absent=BARE if biased and rng.random() < 0.5 else ())

    curated: tuple[Structure, ...] = (
        Structure(dims(6, 128), "normal"),
        Structure(dims(6, 96), "normal", "padded", turn(1)),
        Structure(dims(4, 160), "outlier", params=turn(2)),
        Structure(dims(5, 65), "outlier", "misaligned", turn(3)),
        Structure(dims(6, 64), "some_zero", params=turn(2)),
        Structure(dims(4, 33), "some_zero", params=turn(6)),
        Structure(dims(5, 129), "tiny", "strided", turn(4)),
        Structure(dims(4, 47), "uniform", params=turn(5)),
        Structure(dims(9, 31), "one_hot", "strided", turn(1)),
        Structure(dims(8, 47), "sparse_integers", "transposed", turn(6)),
        Structure(dims(4, 63), "low_entropy", params=turn(2)),
        Structure(dims(5, 97), "rising", "padded", turn(3)),
        Structure(dims(5, 97), "falling", params=turn(4)),
        Structure(dims(3, 31), "all_below", "misaligned", turn(5)),
        Structure(dims(4, 129), "offset", "transposed", turn(1)),
        Structure(dims(4, 17), "subnormals"),
        Structure(dims(6, 127), "heavy_tail", "strided", turn(2)),
        Structure(dims(13, 32), "mixed", params=turn(3)),
        Structure(dims(3, 16), "zeros", params=turn(4)),
        Structure(dims(3, 257), "full_significand", params=turn(5)),
        Structure(dims(5, 1), "normal", params=turn(1)),
        Structure(dims(1, 1), "full_significand", params=turn(2)),
        Structure(dims(0, 5), params=turn(3)),
        Structure(dims(2, 1021), "normal", params=turn(6)),
        Structure(dims(131, 5), "normal", params=turn(5)),
        Structure(dims(7, 128), "normal", params=turn(7)),
    )
    if biased:  # every second case without the bias
        curated = tuple(replace(one, absent=() if at % 2 else BARE) for at, one in enumerate(curated))
    return Recipe(CLASS_DRAWS, curated, random)


LEAST = {"least": 1.0 / (512.0 * 448.0), "of_zero": "least"}
COMMON: tuple[dict[str, Any], ...] = (
    {},
    {"to": "int8"},
    {"block": "1x32"},
    {"to": "int8", "block": "1x64", "quantised": "rounded"},
    LEAST,
    {"to": "float8_e4m3fnuz", "quantised": "rounded"},
    {"to": "int8", "least": 2.0**-10, "of_zero": "least"},
)

VLLM = {"rounding": "twice", "quantised": "rounded"}


def _columns(rows: int, cols: int) -> dict[str, int]:
    return {"rows": rows, "cols": cols}


def _pairs_and_scale(rows: int, cols: int) -> dict[str, int]:
    return {"rows": rows, "width": 2 * cols, "one": 1}


def _pairs(rows: int, cols: int) -> dict[str, int]:
    return {"rows": rows, "width": 2 * cols}


RECIPES = {
    "rmsnorm_dynamic_quant": _recipe(
        _columns, (*COMMON, {"gain": "one_plus_weight", "block": "1x128", "eps": 1e-3, "rounding": "twice"})
    ),
    "fused_add_rmsnorm_dynamic_quant": _recipe(
        _columns,
        (
            {}, {"to": "int8", "normalised": "unrounded"}, {"block": "1x32"},
            {"to": "int8", "block": "1x64", "quantised": "rounded"}, LEAST,
            {"to": "float8_e4m3fnuz", "normalised": "unrounded", **VLLM}, COMMON[6],
            {"gain": "one_plus_weight", "block": "1x128", "eps": 1e-3, "rounding": "twice"},
        ),
    ),
    "layernorm_dynamic_quant": _recipe(
        _columns,
        (*COMMON[:4], LEAST, COMMON[5], {**COMMON[6], "least": 2.0**-7}, {"block": "1x128", "eps": 1e-3}),
    ),
    "silu_and_mul_dynamic_quant": _recipe(
        _pairs, (*COMMON, {"pairing": "interleaved", "limit": 1.5, "block": "1x128"}), biased=True
    ),
    "act_and_mul_static_quant": _recipe(
        _pairs_and_scale,
        (
            {"activation": "silu"}, {"to": "int8"}, {"activation": "gelu"}, {"activation": "gelu_tanh", **VLLM},
            {"to": "float8_e4m3fnuz", "activation": "relu2"}, {"to": "int8", "quantised": "rounded"},
            {**VLLM, "activation": "relu2"}, {"pairing": "interleaved", "activation": "gelu_tanh"},
        ),
        biased=True,
    ),
    "gelu_and_mul_dynamic_quant": _recipe(
        _pairs,
        (
            *COMMON[:2], {"block": "1x32", "approximate": "tanh"}, *COMMON[3:5],
            {**COMMON[5], "approximate": "tanh"}, COMMON[6], {"pairing": "interleaved", "block": "1x128"},
        ),
        biased=True,
    ),
    "relu2_and_mul_dynamic_quant": _recipe(
        _pairs, (*COMMON, {"pairing": "interleaved", "block": "1x128"}), biased=True
    ),
    "swiglu_with_limit_dynamic_quant": _recipe(
        _pairs,
        (*COMMON[:5], {**COMMON[5], "limit": 1.5}, {**COMMON[6], "alpha": 1.0},
         {"pairing": "halves", "block": "1x128"}),
        biased=True,
    ),
}  # fmt: skip
