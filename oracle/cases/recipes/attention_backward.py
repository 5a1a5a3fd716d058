"""Cases of attention's gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.attention import BUILDERS, dense_dims, scale_of
from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.values import ROWS, Shape
from oracle.formats import Format, round_to
from oracle.ops.attention_parts import attended
from oracle.signature import Array

# What the gradient of the result is drawn from, where that is not normal numbers.
GRADIENTS = {"one_hot": "one_hot", "sparse_integers": "sparse_integers", "zeros": "zeros", "subnormals": "subnormals",
             "heavy_tail": "heavy_tail", "uniform": "uniform", "low_entropy": "low_entropy", "rising": "rising",
             "falling": "falling", "full_significand": "full_significand"}  # fmt: skip
CLASSES = (
    "normal", "uniform", "peaky", "low_entropy", "heavy_tail", "one_hot", "rising", "falling", "subnormals", "offset",
    "sparse_integers", "full_significand", "not_a_number", "uniform_weights", "zeros", "all_below", "huge_exact",
    "climbing", "last_key",
)  # fmt: skip


def _draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        drawn = BUILDERS[name](rng, shapes["q"], shapes["k"], shapes["v"], scale_of(shapes, params), number_format)
        q, k, v = (round_to(x, number_format) for x in drawn)
        with np.errstate(all="ignore"):
            out, lse = attended(q, k, v, params)
        dout = ROWS[GRADIENTS.get(name, "normal")](rng, shapes["dout"], number_format)
        return {"dout": dout, "q": q, "k": k, "v": v, "out": out, "lse": lse}

    return draw


TOP, BOTTOM = {"causal": "top_left"}, {"causal": "bottom_right"}


def _random(rng: np.random.Generator) -> Structure:
    kv_heads, group = int(pick(rng, (1, 2))), int(pick(rng, (1, 2, 3)))
    lengths = (1, 5, 13, 16, 17, 31)
    dims = dense_dims(
        int(pick(rng, (1, 2))), kv_heads * group, kv_heads, int(pick(rng, lengths)), int(pick(rng, lengths)),
        int(pick(rng, (1, 8, 16, 33))), int(pick(rng, (8, 16, 7))),
    )  # fmt: skip
    params = {
        "causal": pick(rng, ("none", "top_left", "bottom_right")),
        "window_left": int(pick(rng, (-1, -1, 0, 5))),
        "window_right": int(pick(rng, (-1, -1, 0, 3))),
    }
    return Structure(dims, params=params)


BACKWARD = Recipe(
    classes={name: _draw(name) for name in CLASSES},
    curated=(
        Structure(dense_dims(2, 4, 2, 16, 32, 16, 16), "normal"),
        Structure(dense_dims(1, 4, 2, 17, 33, 16, 16), "normal", "padded", BOTTOM),
        Structure(dense_dims(2, 2, 1, 17, 16, 16, 16), "normal", "strided", TOP),
        Structure(dense_dims(1, 2, 1, 33, 17, 16, 8), "normal", "transposed", BOTTOM),
        Structure(dense_dims(1, 2, 2, 13, 31, 16, 16), "uniform_weights", params={"window_left": 6, "window_right": 3}),
        Structure(dense_dims(1, 3, 1, 33, 17, 16, 8), "uniform_weights", "misaligned", BOTTOM),
        Structure(dense_dims(1, 2, 1, 9, 33, 16, 16), "uniform", params={"scale": 0.3}),
        Structure(dense_dims(1, 2, 1, 9, 17, 16, 8), "peaky", "strided", BOTTOM),
        Structure(dense_dims(1, 2, 1, 7, 33, 16, 16), "all_below"),
        Structure(dense_dims(1, 2, 1, 5, 31, 16, 16), "huge_exact"),
        Structure(dense_dims(1, 1, 1, 3, 65, 16, 8), "climbing"),
        Structure(dense_dims(1, 2, 1, 5, 31, 16, 8), "last_key"),
        Structure(dense_dims(1, 2, 1, 5, 17, 8, 8), "low_entropy"),
        Structure(dense_dims(1, 1, 1, 7, 17, 16, 16), "sparse_integers"),
        Structure(dense_dims(1, 2, 1, 5, 17, 16, 8), "subnormals"),
        Structure(dense_dims(1, 1, 1, 7, 33, 16, 8), "offset"),
        Structure(dense_dims(1, 1, 1, 6, 17, 33, 5), "heavy_tail"),
        Structure(dense_dims(1, 2, 2, 5, 17, 16, 17), "one_hot", params=TOP),
        Structure(dense_dims(1, 1, 1, 5, 33, 24, 8), "rising", params={"window_left": 0}),
        Structure(dense_dims(1, 1, 1, 5, 33, 24, 8), "falling"),
        Structure(dense_dims(1, 2, 1, 7, 17, 8, 8), "full_significand"),
        Structure(dense_dims(1, 2, 1, 7, 9, 8, 8), "not_a_number"),
        Structure(dense_dims(1, 2, 2, 3, 5, 8, 8), "zeros"),
        Structure(dense_dims(1, 1, 1, 1, 1, 1, 1), "normal"),
        Structure(dense_dims(1, 2, 1, 1, 1, 16, 16), "normal", params=BOTTOM),
        Structure(dense_dims(1, 2, 1, 3, 0, 8, 8)),
        Structure(dense_dims(1, 2, 1, 0, 5, 8, 8)),
    ),
    random=_random,
)

RECIPES = {"attention_backward": BACKWARD}
