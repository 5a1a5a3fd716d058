"""Cases of attention with all options, and of packed sequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.attention import Builder, builder_of, dense_dims, scale_of
from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, vanishing
from oracle.formats import Format
from oracle.signature import Array

# Scores that are exact stay so: nothing inexact is added to them.
EXACT = ("uniform_weights", "all_below", "far_below", "huge_exact", "climbing", "sinking", "last_key", "zeros")


def added_inputs(rng: np.random.Generator, shapes: Mapping[str, Shape], exact: bool) -> dict[str, Array]:
    """Bias, slopes and sinks, those of them that there are."""
    inputs = {}
    if "bias" in shapes:
        inputs["bias"] = np.zeros(shapes["bias"]) if exact else rng.standard_normal(shapes["bias"])
    if "alibi_slopes" in shapes:
        inputs["alibi_slopes"] = 2.0 ** -np.arange(1.0, shapes["alibi_slopes"][0] + 1)
    if "sinks" in shapes:
        inputs["sinks"] = 2.0 * rng.standard_normal(shapes["sinks"])
    return inputs


def _flash_draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        scale = scale_of(shapes, params)
        q, k, v = builder_of(name, params)(rng, shapes["q"], shapes["k"], shapes["v"], scale, number_format)
        return {"q": q, "k": k, "v": v, **added_inputs(rng, shapes, name in EXACT)}

    return draw


def _bias_hides(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Half of the bias is -inf, and all of it in every third row."""
    inputs = _flash_draw("normal")(rng, shapes, params, number_format)
    if "bias" in inputs:
        hidden = rng.random(shapes["bias"]) < 0.5
        hidden[..., ::3, :] = True
        inputs["bias"] = np.where(hidden, -np.inf, inputs["bias"])
    return inputs


def _sink_extremes(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Sinks that take all the weight, and sinks of -inf, which take none."""
    inputs = _flash_draw("normal")(rng, shapes, params, number_format)
    if "sinks" in inputs:
        inputs["sinks"] = np.where(np.arange(shapes["sinks"][0]) % 2, 4.0 * vanishing(number_format), -np.inf)
    return inputs


def _capped(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Scores up to a few times the soft cap, where there is one."""
    inputs = _flash_draw("normal")(rng, shapes, params, number_format)
    return {**inputs, "q": inputs["q"] * (params["softcap"] or 1.0)}


CLASSES = (
    "normal", "uniform", "peaky", "low_entropy", "heavy_tail", "one_hot", "rising", "falling", "subnormals", "offset",
    "sparse_integers", "full_significand", "not_a_number", "infinities", *EXACT,
)  # fmt: skip
TOP, BOTTOM = {"causal": "top_left"}, {"causal": "bottom_right"}
APART = {"sink_in_lse": False}
BIAS, SLOPES, SINKS = ("bias",), ("alibi_slopes",), ("sinks",)
NONE = BIAS + SLOPES + SINKS


def _window(left: int, right: int) -> dict[str, int]:
    return {"window_left": left, "window_right": right}


def _random_flash(rng: np.random.Generator) -> Structure:
    kv_heads, group = int(pick(rng, (1, 2))), int(pick(rng, (1, 2, 3)))
    lengths = (1, 5, 13, 16, 17, 31, 33)
    dims = dense_dims(
        int(pick(rng, (1, 2))), kv_heads * group, kv_heads, int(pick(rng, lengths)), int(pick(rng, lengths)),
        int(pick(rng, (1, 8, 16, 33))), int(pick(rng, (8, 16, 7))),
    )  # fmt: skip
    params: dict[str, Any] = {
        "causal": pick(rng, ("none", "top_left", "bottom_right")),
        **_window(int(pick(rng, (-1, 0, 3, 9))), int(pick(rng, (-1, 0, 2)))),
        "alibi": pick(rng, ("distance", "last_key")),
        "sink_in_lse": pick(rng, (True, False)),
    }
    if rng.random() < 0.4:
        params["softcap"] = pick(rng, (1.0, 5.0, 30.0))
    return Structure(dims, params=params, absent=tuple(name for name in NONE if rng.random() < 0.5))


FLASH = Recipe(
    classes={
        **{name: _flash_draw(name) for name in CLASSES},
        "bias_hides": _bias_hides,
        "sink_extremes": _sink_extremes,
        "capped": _capped,
    },
    curated=(
        Structure(dense_dims(2, 4, 2, 13, 32, 16, 16), "normal", params=_window(7, -1)),
        Structure(dense_dims(1, 4, 2, 17, 33, 16, 16), "normal", "padded", BOTTOM | {"softcap": 1.5}, BIAS),
        Structure(dense_dims(2, 2, 1, 17, 16, 16, 16), "normal", "strided", TOP | _window(5, -1), SLOPES),
        Structure(dense_dims(1, 2, 2, 13, 31, 16, 16), "uniform_weights", params=_window(6, 3), absent=NONE),
        Structure(dense_dims(1, 2, 1, 33, 17, 16, 8), "uniform_weights", "transposed", _window(4, 0), NONE),
        Structure(dense_dims(1, 4, 1, 9, 33, 16, 16), "uniform", params={"alibi": "last_key"}, absent=BIAS + SINKS),
        Structure(dense_dims(1, 2, 2, 9, 17, 16, 8), "bias_hides", "misaligned", absent=SLOPES),
        Structure(dense_dims(1, 4, 4, 5, 33, 16, 16), "sink_extremes", params=APART, absent=BIAS + SLOPES),
        Structure(dense_dims(1, 2, 1, 7, 31, 16, 16), "capped", params={"softcap": 2.0}, absent=NONE),
        Structure(dense_dims(1, 2, 1, 7, 33, 16, 16), "all_below", absent=NONE),
        Structure(dense_dims(1, 2, 1, 5, 33, 16, 16), "far_below", params=BOTTOM, absent=NONE),
        Structure(dense_dims(1, 2, 1, 5, 47, 16, 16), "huge_exact", "padded", absent=SLOPES + SINKS),
        Structure(dense_dims(1, 1, 1, 3, 65, 16, 8), "climbing", absent=NONE),
        Structure(dense_dims(1, 1, 1, 3, 65, 16, 8), "sinking", absent=SINKS),
        Structure(dense_dims(1, 2, 1, 5, 31, 16, 8), "last_key", absent=BIAS),
        Structure(dense_dims(1, 2, 1, 9, 17, 16, 8), "peaky", "strided", BOTTOM | {"scale": 0.3}, SLOPES),
        Structure(dense_dims(1, 2, 1, 5, 17, 8, 8), "low_entropy", params={"softcap": 30.0} | APART),
        Structure(dense_dims(1, 1, 1, 7, 17, 16, 16), "sparse_integers", absent=NONE),
        Structure(dense_dims(1, 2, 1, 5, 17, 16, 8), "subnormals", absent=SINKS),
        Structure(dense_dims(1, 1, 1, 7, 33, 16, 8), "offset", absent=NONE),
        Structure(dense_dims(1, 1, 1, 6, 17, 33, 5), "heavy_tail", params=_window(0, 0)),
        Structure(dense_dims(1, 2, 2, 5, 17, 16, 17), "one_hot", params=TOP, absent=BIAS),
        Structure(dense_dims(1, 1, 1, 5, 33, 24, 8), "rising", params={"alibi": "last_key"}),
        Structure(dense_dims(1, 1, 1, 5, 33, 24, 8), "falling", absent=BIAS),
        Structure(dense_dims(1, 2, 1, 7, 17, 8, 8), "full_significand", "transposed", _window(3, 2)),
        Structure(dense_dims(1, 2, 1, 7, 9, 8, 8), "not_a_number", absent=BIAS),
        Structure(dense_dims(2, 2, 1, 9, 17, 8, 8), "infinities"),
        Structure(dense_dims(1, 2, 1, 9, 17, 8, 8), "infinities", "padded", _window(3, 2), BIAS),
        Structure(dense_dims(1, 2, 2, 3, 5, 8, 8), "zeros"),
        Structure(dense_dims(1, 1, 1, 1, 1, 1, 1), "normal"),
        Structure(dense_dims(1, 2, 1, 3, 0, 8, 8)),
        Structure(dense_dims(1, 2, 1, 3, 0, 8, 8), absent=NONE),
        Structure(dense_dims(1, 2, 1, 0, 5, 8, 8)),
    ),
    random=_random_flash,
)


def packed_heads(
    build: Builder, rng: np.random.Generator, q: Shape, k: Shape, v: Shape, scale: float, number_format: Format
) -> tuple[Array, Array, Array]:
    """q, k and v of shape (tokens, heads, …), drawn as one sequence."""

    def one(shape: Shape) -> Shape:
        return 1, shape[1], shape[0], shape[2]

    q_rows, k_rows, v_rows = build(rng, one(q), one(k), one(v), scale, number_format)
    return np.swapaxes(q_rows[0], 0, 1), np.swapaxes(k_rows[0], 0, 1), np.swapaxes(v_rows[0], 0, 1)


def boundaries(rng: np.random.Generator, count: int, tokens: int) -> Array:
    """Boundaries that rise from 0 to the number of tokens, some sequences empty."""
    if count < 2:
        return np.zeros(count, np.int32)
    inner = np.sort(rng.integers(0, tokens + 1, count - 2))
    return np.concatenate([[0], inner, [tokens]]).astype(np.int32)


def _varlen_draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        scale = scale_of(shapes, params)
        build = builder_of(name, params)
        q, k, v = packed_heads(build, rng, shapes["q"], shapes["k"], shapes["v"], scale, number_format)
        count = shapes["cu_seqlens_q"][0]
        inputs = {"q": q, "k": k, "v": v, **added_inputs(rng, shapes, name in EXACT)}
        for side, tokens in (("cu_seqlens_q", len(q)), ("cu_seqlens_k", len(k))):
            inputs[side] = boundaries(rng, count, tokens)
        edges = inputs["cu_seqlens_k"]
        used = np.diff(edges)
        if "seqused_k" in shapes:
            used = rng.integers(0, used + 1)
            inputs["k"], inputs["v"] = np.array(k, np.float64), np.array(v, np.float64)
            for first, last, keys in zip(edges[:-1], edges[1:], used, strict=True):
                for array in (inputs["k"], inputs["v"]):
                    array[first + keys : last] = np.nan
            inputs["seqused_k"] = used.astype(np.int32)
        if "bias" in shapes:
            for first, last, keys in zip(inputs["cu_seqlens_q"][:-1], inputs["cu_seqlens_q"][1:], used, strict=True):
                inputs["bias"][first:last, keys:] = np.nan
        return inputs

    return draw


def _varlen_bias_hides(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Half of the bias is -inf, and all of it in every third row."""
    inputs = _varlen_draw("normal")(rng, shapes, params, number_format)
    if "bias" in inputs:
        hidden = rng.random(shapes["bias"]) < 0.5
        hidden[::3] = True
        inputs["bias"] = np.where(hidden & ~np.isnan(inputs["bias"]), -np.inf, inputs["bias"])
    return inputs


def _varlen_dims(
    sequences: int, tokens_q: int, tokens_k: int, heads: int, kv_heads: int, head_dim: int, v_dim: int
) -> dict[str, int]:
    return {
        "boundaries": sequences + 1, "sequences": sequences, "tokens_q": tokens_q, "tokens_k": tokens_k,
        "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "v_dim": v_dim, "max_keys": tokens_k,
    }  # fmt: skip


USED = ("seqused_k",)
PLAIN = USED + NONE


def _random_varlen(rng: np.random.Generator) -> Structure:
    kv_heads, group, sequences = int(pick(rng, (1, 2))), int(pick(rng, (1, 2, 3))), int(pick(rng, (1, 2, 3, 4)))
    lengths = (5, 16, 33, 47, 64)
    dims = _varlen_dims(
        sequences, int(pick(rng, lengths)), int(pick(rng, lengths)), kv_heads * group, kv_heads,
        int(pick(rng, (8, 16, 33))), int(pick(rng, (8, 16, 7))),
    )  # fmt: skip
    params: dict[str, Any] = {
        "causal": pick(rng, ("none", "top_left", "bottom_right")),
        **_window(int(pick(rng, (-1, 0, 3, 9))), int(pick(rng, (-1, 0, 2)))),
        "alibi": pick(rng, ("distance", "last_key")),
        "sink_in_lse": pick(rng, (True, False)),
    }
    if rng.random() < 0.3:
        params["softcap"] = pick(rng, (1.0, 30.0))
    return Structure(dims, params=params, absent=tuple(name for name in PLAIN if rng.random() < 0.6))


VARLEN = Recipe(
    classes={**{name: _varlen_draw(name) for name in CLASSES}, "bias_hides": _varlen_bias_hides},
    curated=(
        Structure(_varlen_dims(3, 40, 64, 2, 1, 16, 16), "normal", absent=PLAIN),
        Structure(_varlen_dims(2, 31, 47, 4, 2, 16, 16), "normal", "padded", BOTTOM, BIAS),
        Structure(_varlen_dims(3, 48, 48, 2, 2, 16, 16), "normal", "strided", TOP, PLAIN),
        Structure(_varlen_dims(4, 33, 63, 2, 1, 16, 8), "uniform_weights", params=BOTTOM, absent=NONE),
        Structure(_varlen_dims(3, 47, 31, 2, 1, 16, 8), "uniform_weights", "transposed", TOP, PLAIN),
        Structure(_varlen_dims(2, 33, 33, 2, 1, 16, 8), "uniform", "misaligned", _window(5, 2), USED + SINKS),
        Structure(_varlen_dims(2, 17, 33, 2, 1, 16, 8), "peaky", params=BOTTOM | {"softcap": 5.0}, absent=SINKS),
        Structure(_varlen_dims(3, 17, 33, 4, 2, 16, 8), "normal", params={"alibi": "last_key"}, absent=BIAS + SINKS),
        Structure(_varlen_dims(3, 13, 17, 2, 1, 16, 8), "bias_hides", "padded", absent=SLOPES),
        Structure(_varlen_dims(2, 9, 65, 2, 1, 16, 8), "all_below", absent=NONE),
        Structure(_varlen_dims(2, 9, 65, 2, 1, 16, 8), "far_below", absent=PLAIN),
        Structure(_varlen_dims(2, 9, 65, 2, 1, 16, 8), "huge_exact", "padded", absent=NONE),
        Structure(_varlen_dims(1, 5, 65, 1, 1, 16, 8), "climbing", absent=PLAIN),
        Structure(_varlen_dims(1, 5, 65, 1, 1, 16, 8), "sinking", absent=USED + SINKS),
        Structure(_varlen_dims(2, 9, 31, 2, 1, 16, 8), "last_key", absent=PLAIN),
        Structure(_varlen_dims(2, 9, 17, 2, 1, 8, 8), "low_entropy", params={"scale": 0.3} | APART, absent=BIAS),
        Structure(_varlen_dims(2, 9, 17, 1, 1, 16, 8), "sparse_integers", absent=PLAIN),
        Structure(_varlen_dims(2, 9, 17, 2, 1, 16, 8), "subnormals", absent=SINKS),
        Structure(_varlen_dims(2, 9, 33, 1, 1, 16, 8), "offset", absent=NONE),
        Structure(_varlen_dims(2, 9, 33, 1, 1, 33, 5), "heavy_tail", "strided"),
        Structure(_varlen_dims(2, 9, 17, 2, 1, 16, 17), "one_hot", params=BOTTOM, absent=PLAIN),
        Structure(_varlen_dims(2, 7, 33, 1, 1, 24, 8), "rising"),
        Structure(_varlen_dims(2, 7, 33, 1, 1, 24, 8), "falling", absent=PLAIN),
        Structure(_varlen_dims(3, 13, 33, 2, 1, 16, 8), "full_significand", params=_window(0, 3), absent=NONE),
        Structure(_varlen_dims(2, 9, 17, 2, 1, 8, 8), "not_a_number", absent=BIAS),
        Structure(_varlen_dims(2, 9, 33, 2, 1, 8, 8), "infinities", "strided", absent=SINKS),
        Structure(_varlen_dims(2, 17, 33, 2, 1, 8, 8), "infinities", params=BOTTOM),
        Structure(_varlen_dims(2, 9, 17, 2, 2, 8, 8), "zeros"),
        Structure(_varlen_dims(1, 1, 1, 1, 1, 1, 1), "normal", absent=PLAIN),
        Structure(_varlen_dims(0, 0, 0, 2, 1, 8, 8)),
        Structure(_varlen_dims(3, 7, 0, 2, 1, 8, 8)),
        Structure(_varlen_dims(3, 0, 7, 2, 1, 8, 8)),
        Structure(_varlen_dims(8, 33, 33, 1, 1, 8, 8), "normal", params=BOTTOM, absent=PLAIN),
    ),
    random=_random_varlen,
    unread=("k", "v", "bias"),
)

RECIPES = {"flash_attention": FLASH, "attention_varlen": VARLEN}
