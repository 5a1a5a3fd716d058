"""Cases of attention of codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from oracle.cases.recipes.attention import BUILDERS, dense_dims, scale_of
from oracle.cases.recipes.attention_flash import added_inputs
from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.values import Shape
from oracle.formats import Format, format_of
from oracle.signature import Array

CLASSES = (
    "normal", "uniform", "peaky", "low_entropy", "heavy_tail", "one_hot", "rising", "falling", "sparse_integers",
    "full_significand", "not_a_number", "uniform_weights", "all_below", "far_below", "climbing", "sinking", "last_key",
    "zeros",
)  # fmt: skip


def _quantised(numbers: Array, kv_heads: int, scales: str, codes: Format) -> tuple[Array, Array]:
    """Numbers (batch, heads, …) over their scales, not yet rounded, and the scales."""
    batch, heads = numbers.shape[:2]
    size = np.abs(np.where(np.isnan(numbers), 0.0, numbers))
    if scales == "tensor":
        largest = size.max(initial=0.0).reshape(1)
    else:
        largest = (
            size.reshape(batch, kv_heads, -1).max(axis=-1, initial=0.0) if size.size else np.zeros((batch, kv_heads))
        )
    scale = np.where(largest > 0, largest / codes.max, 1.0).astype(np.float32)
    spread = scale if scales == "tensor" else np.repeat(scale, heads // max(kv_heads, 1), axis=1)[..., None, None]
    return numbers / spread, scale


def _draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        wide, kv_heads = format_of("float32"), shapes["k"][1]
        drawn = BUILDERS[name](rng, shapes["q"], shapes["k"], shapes["v"], scale_of(shapes, params), wide)
        inputs = added_inputs(rng, shapes, exact=True)
        for what, numbers in zip(("q", "k", "v"), drawn, strict=True):
            inputs[what], inputs[f"{what}_scale"] = _quantised(numbers, kv_heads, params["scales"], number_format)
        return inputs

    return draw


Given: TypeAlias = dict[str, Any]
BOTTOM: Given = {"causal": "bottom_right"}
TOP: Given = {"causal": "top_left"}
CODES: Given = {"weights": "codes"}
APART: Given = {"sink_in_lse": False}
HEAD: Given = {"scales": "head"}
NO_SINKS = ("sinks",)


def _case(
    value_class: str, *sizes: int, layout: str = "contiguous", absent: Any = NO_SINKS, **params: Any
) -> Structure:
    """A structure of (batch, heads, kv_heads, queries, keys, head_dim, v_dim)."""
    dims = dense_dims(*sizes) | ({} if params.get("scales") == "head" else {"groups": 1})
    return Structure(dims, value_class, layout, params, absent)


def _random(rng: np.random.Generator) -> Structure:
    kv_heads, group = int(pick(rng, (1, 2))), int(pick(rng, (1, 2, 3)))
    lengths = (1, 5, 13, 16, 17, 31, 33)
    params: dict[str, Any] = {
        "scales": pick(rng, ("tensor", "head")), "weights": pick(rng, ("compute", "codes")),
        "causal": pick(rng, ("none", "top_left", "bottom_right")), "window_left": int(pick(rng, (-1, 0, 9))),
        "window_right": int(pick(rng, (-1, 0, 2))), "sink_in_lse": pick(rng, (True, False)),
        "out_dtype": pick(rng, ("bfloat16", "float16", "float32")),
    }  # fmt: skip
    if rng.random() < 0.3:
        params["softcap"] = pick(rng, (1.0, 30.0))
    sizes = (int(pick(rng, choices)) for choices in (lengths, lengths, (8, 16, 33), (8, 16, 7)))
    absent = NO_SINKS if rng.random() < 0.5 else ()
    return _case("normal", int(pick(rng, (1, 2))), kv_heads * group, kv_heads, *sizes, absent=absent, **params)


FULL: Given = {"out_dtype": "float32"}
RECIPES = {
    "attention_quantised": Recipe(
        classes={name: _draw(name) for name in CLASSES},
        curated=(
            _case("normal", 2, 4, 2, 13, 32, 16, 16, **HEAD, **FULL),
            _case("normal", 1, 4, 2, 17, 33, 16, 16, layout="padded", **BOTTOM, **CODES),
            _case("normal", 2, 2, 1, 17, 16, 16, 16, layout="strided", absent=(), **TOP, **HEAD),
            _case("normal", 2, 4, 2, 9, 47, 16, 8, absent=(), softcap=1.5, **FULL),
            _case("uniform_weights", 1, 2, 2, 13, 31, 16, 16, window_left=6, window_right=3, **FULL),
            _case("uniform_weights", 1, 4, 2, 33, 17, 16, 8, layout="transposed", **BOTTOM, **HEAD),
            _case("uniform", 1, 4, 2, 9, 33, 16, 16, absent=(), **APART, **FULL, **HEAD),
            _case("peaky", 1, 2, 1, 9, 17, 16, 8, layout="misaligned", scale=0.3, **BOTTOM),
            _case("peaky", 1, 2, 1, 9, 33, 16, 8, **CODES, **FULL),
            _case("all_below", 1, 2, 1, 7, 33, 16, 16),
            _case("far_below", 1, 2, 1, 5, 33, 16, 16, **BOTTOM),
            _case("climbing", 1, 1, 1, 3, 65, 16, 8, **FULL),
            _case("sinking", 1, 1, 1, 3, 65, 16, 8, out_dtype="float16"),
            _case("last_key", 1, 2, 1, 5, 31, 16, 8, **FULL),
            _case("low_entropy", 1, 4, 2, 5, 17, 8, 8, absent=(), **HEAD, **FULL),
            _case("heavy_tail", 1, 1, 1, 6, 17, 33, 5, layout="strided", **FULL),
            _case("one_hot", 1, 2, 2, 5, 17, 16, 17, **TOP),
            _case("rising", 1, 1, 1, 5, 33, 24, 8, **FULL),
            _case("falling", 1, 1, 1, 5, 33, 24, 8, **HEAD),
            _case("sparse_integers", 1, 1, 1, 7, 17, 16, 16, **FULL),
            _case("full_significand", 1, 2, 1, 7, 17, 8, 8, **FULL),
            _case("not_a_number", 1, 2, 1, 7, 9, 8, 8, absent=()),
            _case("zeros", 1, 2, 2, 3, 5, 8, 8, absent=()),
            _case("normal", 1, 1, 1, 1, 1, 1, 1),
            _case("normal", 1, 2, 1, 3, 0, 8, 8, absent=()),
            _case("normal", 1, 2, 1, 0, 5, 8, 8, **HEAD),
            _case("normal", 0, 2, 1, 3, 5, 8, 8),
        ),
        random=_random,
    )
}
