"""Cases of attention over quantised pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from oracle.cases.recipes.attention_paged import DECODE, PREFILL, laid_out
from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.values import Shape
from oracle.formats import Format, cast, format_of
from oracle.ops.attention_paged import plain_keys, plain_values
from oracle.ops.attention_paged_quantised import CODES
from oracle.signature import Array

GRANULARITIES = ("tensor", "head", "token")
ROUNDED = ("compute", "compute", "bfloat16", "float16")
CLASSES = (
    "normal", "uniform", "peaky", "low_entropy", "heavy_tail", "one_hot", "rising", "falling", "sparse_integers",
    "full_significand", "not_a_number", "uniform_weights", "all_below", "far_below", "climbing", "sinking", "last_key",
    "zeros",
)  # fmt: skip


def _quantised(plain: Array, scales: str, codes: Format) -> tuple[Array, Array]:
    """Cells over their scales, not yet rounded, and the scales; cells that hold NaN stay unreadable, scales and all."""
    size = np.abs(np.where(np.isnan(plain), 0.0, plain))
    axes = {"tensor": None, "head": (0, 1, 3), "token": 3}[scales]
    largest = size.max(axis=axes, initial=0.0) / codes.max
    scale = np.where(largest > 0, largest, 1.0).astype(np.float32)
    spread = scale if scales == "tensor" else scale[np.newaxis, np.newaxis] if scales == "head" else scale
    divided = plain / (spread if scales == "tensor" else spread[..., np.newaxis])
    if not codes.has_nan:
        divided = np.where(np.isnan(divided), codes.max, divided)
    if scales == "token":
        scale = np.where(np.isnan(plain).any(axis=3), np.float32(np.nan), scale)
    return divided, scale.reshape(1) if scales == "tensor" else scale


def _draw(recipe: Recipe, name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        inputs = recipe.classes[name](rng, shapes, params, number_format)
        codes, layout = format_of(str(pick(rng, CODES))), params["layout"]
        for what, scale, plain in (("key_cache", "k_scale", plain_keys), ("value_cache", "v_scale", plain_values)):
            divided, inputs[scale] = _quantised(plain(inputs[what], layout), params["scales"], codes)
            inputs[what] = cast(
                np.ascontiguousarray(laid_out(divided, shapes[what], layout, what)), codes, saturate=True
            )
        return inputs

    return draw


def _structure(number: int, given: Structure) -> Structure:
    """A structure of the cache that is not quantised, with scales of each granularity in turn, and roundings."""
    params = {name: value for name, value in given.params.items() if name != "alibi"}
    params |= {"scales": GRANULARITIES[number % 3], "dequantised": ROUNDED[number % 4]}
    dims = dict(given.dims) | ({"groups": 1} if params["scales"] == "tensor" else {})
    return replace(given, dims=dims, params=params, absent=tuple(name for name in given.absent if name == "sinks"))


def _of(recipe: Recipe) -> Recipe:
    """Cases over codes from those over numbers."""
    return Recipe(
        classes={name: _draw(recipe, name) for name in CLASSES},
        curated=tuple(
            _structure(number, given)
            for number, given in enumerate(recipe.curated)
            if given.value_class in CLASSES and given.dims["pages"] < 100
        ),
        random=lambda rng: _structure(int(rng.integers(12)), recipe.random(rng)),
        unread=("key_cache", "value_cache", "k_scale", "v_scale"),
    )


RECIPES = {"paged_attention_decode_quantised": _of(DECODE), "paged_attention_prefill_quantised": _of(PREFILL)}
