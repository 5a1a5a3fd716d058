"""Cases of absorbed latent attention over a quantised cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from oracle.cases.recipes.attention_mla import DECODE
from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.values import Shape
from oracle.formats import Format, cast, format_of
from oracle.ops.attention_mla_quantised import CODES
from oracle.signature import Array

CLASSES = (
    "normal", "uniform", "peaky", "low_entropy", "heavy_tail", "one_hot", "rising", "falling", "sparse_integers",
    "full_significand", "not_a_number", "uniform_weights", "all_below", "far_below", "climbing", "sinking", "last_key",
    "zeros",
)  # fmt: skip
ROUNDED = ("compute", "bfloat16", "compute", "float16")


def _scales(rows: Array, tiles: int, codes: Format) -> Array:
    """A scale per row and tile: the largest magnitude over the format's; NaN where the row is not to be read."""
    size = np.abs(rows).reshape(*rows.shape[:-1], tiles, rows.shape[-1] // tiles).max(axis=-1, initial=0.0) / codes.max
    return np.where(size == 0, 1.0, size).astype(np.float32)


def _coded(numbers: Array, scale: Array, codes: Format) -> Array:
    ratio = numbers / scale.astype(np.float64)
    ratio = ratio if codes.has_nan else np.where(np.isnan(ratio), codes.max, ratio)
    return cast(ratio, codes, saturate=True)


def _draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        latent = shapes["latent_cache"][2]
        size = latent + shapes["rope_cache"][2]
        whole = {**shapes, "cache": (*shapes["latent_cache"][:2], size)}
        inputs = DECODE.classes[name](rng, whole, {**params, "latent_dim": latent}, number_format)
        cache, codes = inputs.pop("cache"), format_of(str(pick(rng, CODES)))
        if params["scales"] == "tensor":
            scale = _scales(np.nan_to_num(cache).reshape(1, -1), 1, codes).reshape(1)
            inputs["latent_cache"] = _coded(cache[..., :latent], scale, codes)
            inputs["rope_cache"] = _coded(cache[..., latent:], scale, codes)
        else:
            tiles = shapes["latent_scale"][2]
            scale = _scales(cache[..., :latent], tiles, codes)
            spread = np.repeat(scale, latent // tiles, axis=-1)
            inputs["latent_cache"] = _coded(cache[..., :latent], spread, codes)
            inputs["rope_cache"] = cast(cache[..., latent:], "bfloat16")
        return {**inputs, "latent_scale": scale}

    return draw


def _structure(number: int, given: Structure) -> Structure:
    """A structure of the cache that is not quantised, with scales of each granularity in turn, and roundings."""
    params = {name: value for name, value in given.params.items() if name != "latent_dim"}
    params |= {"scales": ("tile", "tensor")[number % 2], "dequantised": ROUNDED[number // 2 % 4]}
    dims = dict(given.dims)
    latent = int(given.params.get("latent_dim", 512))
    dims |= {"latent_dim": latent, "rope_dim": dims["qk_dim"] - latent}
    tiles = next(tiles for tiles in (4, 3, 2, 1) if latent % tiles == 0)
    dims |= {"tiles": tiles} if params["scales"] == "tile" else {"groups": 1}
    return replace(given, dims=dims, params=params)


RECIPES = {
    "mla_decode_quantised": Recipe(
        classes={name: _draw(name) for name in CLASSES},
        curated=tuple(
            _structure(number, given)
            for number, given in enumerate(DECODE.curated)
            if given.value_class in CLASSES and given.dims["pages"] < 100
        ),
        random=lambda rng: _structure(int(rng.integers(8)), DECODE.random(rng)),
        unread=("latent_cache", "rope_cache", "latent_scale"),
    )
}
