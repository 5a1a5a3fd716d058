"""Cases of attention's gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from oracle.cases.recipes.attention import BUILDERS, dense_dims, scale_of
from oracle.cases.recipes.attention_flash import EXACT, added_inputs
from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.values import ROWS, Shape, vanishing
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


def _draw(name: str, sunk: bool = False) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        drawn = BUILDERS[name](rng, shapes["q"], shapes["k"], shapes["v"], scale_of(shapes, params), number_format)
        q, k, v = (round_to(x, number_format) for x in drawn)
        added = {what: round_to(x, number_format) for what, x in added_inputs(rng, shapes, name in EXACT).items()}
        sinks = rng.standard_normal(shapes["q"][1]) if sunk else None
        with np.errstate(all="ignore"):
            out, lse = attended(q, k, v, params, sinks=sinks, **added)
        dout = ROWS[GRADIENTS.get(name, "normal")](rng, shapes["dout"], number_format)
        return {"dout": dout, "q": q, "k": k, "v": v, "out": out, "lse": lse, **added}

    return draw


def _bias_hides(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Half of the bias is -inf, and all of it in every third row."""
    inputs = _draw("normal")(rng, shapes, params, number_format)
    if "bias" in inputs:
        hidden = rng.random(shapes["bias"]) < 0.5
        hidden[..., ::3, :] = True
        inputs["bias"] = np.where(hidden, -np.inf, inputs["bias"])
        added = {what: inputs[what] for what in ("bias", "alibi_slopes") if what in inputs}
        with np.errstate(all="ignore"):
            inputs["out"], inputs["lse"] = attended(inputs["q"], inputs["k"], inputs["v"], params, **added)
    return inputs


ALL = {
    **{name: _draw(name) for name in CLASSES},
    "sunk": _draw("normal", sunk=True),
    "bias_hides": _bias_hides,
}


TOP, BOTTOM = {"causal": "top_left"}, {"causal": "bottom_right"}


def _random(rng: np.random.Generator) -> Structure:
    kv_heads, group = int(pick(rng, (1, 2))), int(pick(rng, (1, 2, 3)))
    lengths = (1, 5, 13, 16, 17, 31)
    dims = dense_dims(
        int(pick(rng, (1, 2))), kv_heads * group, kv_heads, int(pick(rng, lengths)), int(pick(rng, lengths)),
        int(pick(rng, (1, 8, 16, 33))), int(pick(rng, (8, 16, 7))),
    )  # fmt: skip
    params: dict[str, Any] = {
        "causal": pick(rng, ("none", "top_left", "bottom_right")),
        "window_left": int(pick(rng, (-1, -1, 0, 5))),
        "window_right": int(pick(rng, (-1, -1, 0, 3))),
        "alibi": pick(rng, ("distance", "last_key")),
    }
    if rng.random() < 0.4:
        params["softcap"] = pick(rng, (1.0, 30.0))
    return Structure(dims, params=params, absent=tuple(name for name in NONE if rng.random() < 0.6))


BIAS, SLOPES = ("bias",), ("alibi_slopes",)
NONE = BIAS + SLOPES
LAST = {"alibi": "last_key"}


BACKWARD = Recipe(
    classes=ALL,
    curated=(
        Structure(dense_dims(2, 4, 2, 16, 32, 16, 16), "normal", absent=NONE),
        Structure(dense_dims(1, 4, 2, 17, 33, 16, 16), "normal", "padded", BOTTOM | {"softcap": 1.5}),
        Structure(dense_dims(2, 2, 1, 17, 16, 16, 16), "normal", "strided", TOP, BIAS),
        Structure(dense_dims(1, 2, 1, 33, 17, 16, 8), "normal", "transposed", BOTTOM, NONE),
        Structure(
            dense_dims(1, 2, 2, 13, 31, 16, 16),
            "uniform_weights",
            "contiguous",
            {"window_left": 6, "window_right": 3},
            NONE,
        ),
        Structure(dense_dims(1, 3, 1, 33, 17, 16, 8), "uniform_weights", "misaligned", BOTTOM, NONE),
        Structure(dense_dims(1, 2, 1, 9, 33, 16, 16), "uniform", params={"scale": 0.3} | LAST, absent=BIAS),
        Structure(dense_dims(1, 2, 1, 9, 17, 16, 8), "peaky", "strided", BOTTOM | {"softcap": 4.0}, SLOPES),
        Structure(dense_dims(2, 4, 2, 9, 17, 16, 8), "sunk", "padded", {"softcap": 5.0}, BIAS),
        Structure(dense_dims(1, 2, 1, 9, 17, 16, 8), "bias_hides", "misaligned", BOTTOM),
        Structure(dense_dims(1, 2, 1, 7, 33, 16, 16), "all_below", absent=NONE),
        Structure(dense_dims(1, 2, 1, 5, 31, 16, 16), "huge_exact", absent=NONE),
        Structure(dense_dims(1, 1, 1, 3, 65, 16, 8), "climbing", absent=BIAS),
        Structure(dense_dims(1, 2, 1, 5, 31, 16, 8), "last_key", absent=NONE),
        Structure(dense_dims(1, 2, 1, 5, 17, 8, 8), "low_entropy", params={"softcap": 30.0}),
        Structure(dense_dims(1, 1, 1, 7, 17, 16, 16), "sparse_integers", absent=NONE),
        Structure(dense_dims(1, 2, 1, 5, 17, 16, 8), "subnormals", absent=BIAS),
        Structure(dense_dims(1, 1, 1, 7, 33, 16, 8), "offset", absent=NONE),
        Structure(dense_dims(1, 1, 1, 6, 17, 33, 5), "heavy_tail"),
        Structure(dense_dims(1, 2, 2, 5, 17, 16, 17), "one_hot", params=TOP, absent=NONE),
        Structure(dense_dims(1, 1, 1, 5, 33, 24, 8), "rising", params={"window_left": 0}, absent=NONE),
        Structure(dense_dims(1, 1, 1, 5, 33, 24, 8), "falling", absent=SLOPES),
        Structure(dense_dims(1, 2, 1, 7, 17, 8, 8), "full_significand", absent=NONE),
        Structure(dense_dims(1, 2, 1, 7, 9, 8, 8), "not_a_number", absent=BIAS),
        Structure(dense_dims(1, 2, 2, 3, 5, 8, 8), "zeros"),
        Structure(dense_dims(1, 1, 1, 1, 1, 1, 1), "normal", absent=NONE),
        Structure(dense_dims(1, 2, 1, 1, 1, 16, 16), "normal", params=BOTTOM, absent=NONE),
        Structure(dense_dims(1, 2, 1, 3, 0, 8, 8)),
        Structure(dense_dims(1, 2, 1, 0, 5, 8, 8), absent=NONE),
    ),
    random=_random,
)

BIAS_BACKWARD = Recipe(
    classes=ALL,
    curated=tuple(
        replace(structure, absent=tuple(name for name in structure.absent if name not in BIAS))
        for structure in BACKWARD.curated
    ),
    random=lambda rng: replace(_random(rng), absent=() if rng.random() < 0.5 else SLOPES),
)


def _sinks_draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        sinks = rng.standard_normal(shapes["sinks"])
        lse = sinks[:, np.newaxis] + 3.0 * rng.random(shapes["lse"])  # a sink's weight is at most 1
        dout, out = (ROWS[name](rng, shapes["dout"], number_format) for _ in range(2))
        return {"dout": dout, "out": out, "lse": lse, "sinks": sinks}

    return draw


def _sinks_extremes(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """No sink in every second head; in the others one that takes all the weight, and rows where it vanishes."""
    inputs = _sinks_draw("full_significand")(rng, shapes, params, number_format)
    inputs["sinks"] = np.where(np.arange(shapes["sinks"][0]) % 2, -np.inf, 8.0)
    lse = np.where(rng.random(shapes["lse"]) < 0.5, 8.0, 8.0 + 2.0 * vanishing(number_format))
    inputs["lse"] = np.where(np.isneginf(inputs["sinks"])[:, np.newaxis], rng.choice([-np.inf, 2.0], lse.shape), lse)
    return inputs


SINKS_CLASSES = (
    "normal", "uniform", "full_significand", "one_hot", "sparse_integers", "low_entropy", "rising", "falling", "offset",
    "subnormals", "cancelling", "heavy_tail", "zeros", "not_a_number",
)  # fmt: skip


def _sinks_dims(batch: int, heads: int, queries: int, v_dim: int) -> dict[str, int]:
    return {"batch": batch, "heads": heads, "queries": queries, "v_dim": v_dim}


def _random_sinks(rng: np.random.Generator) -> Structure:
    sizes = (int(pick(rng, choices)) for choices in ((1, 2, 3), (1, 2, 5), (1, 13, 33), (1, 8, 16, 33)))
    return Structure(_sinks_dims(*sizes))


SINKS_BACKWARD = Recipe(
    classes={**{name: _sinks_draw(name) for name in SINKS_CLASSES}, "sink_extremes": _sinks_extremes},
    curated=(
        Structure(_sinks_dims(2, 3, 17, 16), "normal"),
        Structure(_sinks_dims(2, 2, 33, 16), "normal", "padded"),
        Structure(_sinks_dims(3, 4, 16, 33), "sink_extremes", "strided"),
        Structure(_sinks_dims(1, 2, 65, 8), "uniform"),
        Structure(_sinks_dims(2, 2, 9, 33), "full_significand", "transposed"),
        Structure(_sinks_dims(2, 2, 9, 17), "one_hot", "misaligned"),
        Structure(_sinks_dims(2, 2, 9, 17), "sparse_integers"),
        Structure(_sinks_dims(1, 2, 31, 16), "low_entropy", "padded"),
        Structure(_sinks_dims(1, 2, 31, 16), "rising"),
        Structure(_sinks_dims(1, 2, 31, 16), "falling", "strided"),
        Structure(_sinks_dims(1, 2, 17, 16), "offset"),
        Structure(_sinks_dims(1, 2, 17, 16), "subnormals"),
        Structure(_sinks_dims(1, 2, 17, 16), "cancelling", "transposed"),
        Structure(_sinks_dims(1, 2, 17, 16), "heavy_tail"),
        Structure(_sinks_dims(1, 2, 17, 16), "zeros"),
        Structure(_sinks_dims(2, 4, 5, 8), "not_a_number", "misaligned"),
        Structure(_sinks_dims(1, 1, 1, 1), "normal"),
        Structure(_sinks_dims(1, 2, 129, 5), "normal"),
        Structure(_sinks_dims(0, 2, 3, 8)),
        Structure(_sinks_dims(2, 2, 0, 8)),
        Structure(_sinks_dims(2, 2, 3, 0)),
    ),
    random=_random_sinks,
)

RECIPES = {
    "attention_backward": BACKWARD,
    "attention_bias_backward": BIAS_BACKWARD,
    "attention_sinks_backward": SINKS_BACKWARD,
}
