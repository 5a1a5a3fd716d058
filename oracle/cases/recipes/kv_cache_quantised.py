"""Cases of the paged cache in 8 bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes import kv_cache
from oracle.cases.recipes.quant import midpoints
from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows
from oracle.formats import Format, cast, decode, format_of
from oracle.ops.quant_blocks import scale_shape
from oracle.signature import Array

KINDS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "int8")
CLASSES = ("normal", "uniform", "full_significand", "heavy_tail", "rising", "zeros", "low_entropy")


def _draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        target = format_of(params["to"])
        drawn: dict[str, Array] = {}
        for label in (label for label in ("key", "value", "latents", "rotated") if label in shapes):
            if name == "ties":
                drawn[label] = midpoints(rng, shapes[label], target) * 0.25
                drawn[label][..., :1] = target.max * 0.25
            else:
                rows = "normal" if name in ("nan_before", "all_skipped", "zero_tokens") else name
                drawn[label] = draw_rows(rows, rng, shapes[label], number_format, CLASSES)
            if name == "zero_tokens":
                drawn[label][::2] = 0.0
        for label in (label for label in ("key_cache", "value_cache", "cache", "code_cache") if label in shapes):
            codes = decode(rng.integers(0, 2**target.bits, shapes[label]), target)
            if name == "nan_before" and target.has_nan:
                codes = np.full(shapes[label], np.nan)
            drawn[label] = cast(np.where(np.isfinite(codes) | (name == "nan_before"), codes, 1.0), target)
        for label in ("k_scale", "v_scale", "scale"):
            if label in shapes:
                scale = 4.0 / target.max * rng.uniform(0.5, 1.5, shapes[label])
                drawn[label] = np.full(shapes[label], 0.25) if name == "ties" else scale
        for label in ("k_scales", "v_scales", "scale_cache", "rope_cache"):
            if label in shapes:
                drawn[label] = np.full(shapes[label], np.nan) if name == "nan_before" else rng.random(shapes[label])
        return {**drawn, **kv_cache.slots_of(rng, shapes, name)}

    return draw


OWN = ("mixed", "ties", "nan_before", "all_skipped", "zero_tokens")


NAMES = (
    "normal", "ties", "nan_before", "zero_tokens", "heavy_tail", "full_significand", "all_skipped", "rising",
    "uniform", "low_entropy", "zeros", "mixed",
)  # fmt: skip
LAYOUTS = ("contiguous", "padded", "strided", "transposed", "misaligned")
Dims = Callable[[tuple[int, int, int, int, int], Mapping[str, Any]], dict[str, int]]


def _draw_filling(name: str) -> Draw:
    """As `_draw`, for scales per block: tokens that fill blocks in order, after those that blocks hold already."""

    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        drawn = _draw(name)(rng, shapes, params, number_format)
        (tokens,), (blocks, size) = shapes["slots"], shapes["key_cache"][:2]
        slots, kept = np.full(tokens, -1), np.flatnonzero(rng.random(tokens) < 0.8)
        for block in rng.permutation(blocks):
            start = 0 if name == "nan_before" or rng.random() < 0.4 else int(rng.integers(0, size))
            count = min(int(rng.integers(1, size - start + 1)), len(kept))
            slots[kept[:count]] = block * size + start + np.arange(count)
            kept = kept[count:]
        if name != "nan_before":  # some grow, some do not
            for label in ("k_scales", "v_scales"):
                drawn[label] = 3.0 / format_of(params["to"]).max * rng.uniform(0.2, 2.0, shapes[label])
        drawn["slots"] = (np.full(tokens, -1) if name == "all_skipped" else slots).astype(drawn["slots"].dtype)
        return drawn

    return draw


def _recipe(
    dims: Dims, variations: tuple[Mapping[str, Any], ...] = ({},), draw: Callable[[str], Draw] = _draw
) -> Recipe:
    """The cases of one operator; ``variations`` are the parameters besides the format that it is seen with, in turn."""

    def case(sizes: tuple[int, int, int, int, int], name: str, layout: str, to: str, at: int) -> Structure:
        params = {"to": to, **variations[at % len(variations)]}
        return Structure(dims(sizes, params), name, layout, params)

    curated = tuple(
        case(kv_cache.SIZES[at % len(kv_cache.SIZES)], NAMES[at * 5 % 12], LAYOUTS[at * 3 % 5], KINDS[at % 4], at)
        for at in range(24)
    )

    def random(rng: np.random.Generator) -> Structure:
        size, heads = int(pick(rng, (1, 2, 3, 8))), int(pick(rng, (1, 2, 3)))
        sizes = int(rng.integers(0, 30)), int(rng.integers(1, 9)), size, heads, int(pick(rng, (1, 2, 8, 17)))
        return case(sizes, "normal", "contiguous", pick(rng, KINDS), int(rng.integers(0, len(variations))))

    return Recipe({name: draw(name) for name in (*CLASSES, *OWN)}, curated, random)


def _by_head(sizes: tuple[int, int, int, int, int], params: Mapping[str, Any]) -> dict[str, int]:
    return kv_cache.flash_dims(*sizes)


def _by_cell(sizes: tuple[int, int, int, int, int], params: Mapping[str, Any]) -> dict[str, int]:
    return {**kv_cache.flash_dims(*sizes), "cells": sizes[1] * sizes[2]}


def _entries(sizes: tuple[int, int, int, int, int], params: Mapping[str, Any]) -> dict[str, int]:
    return {**kv_cache.mla_dims(*sizes), "one": 1}


def _tiles(sizes: tuple[int, int, int, int, int], params: Mapping[str, Any]) -> dict[str, int]:
    dims = kv_cache.mla_dims(*sizes)
    del dims["entry"]
    return {**dims, "tiles": scale_shape(params.get("tile", "1x128"), 1, dims["latent"])[1]}


POWERS = {"scales": "power_of_two"}
TILES: tuple[dict[str, Any], ...] = (
    {"tile": "1x32"}, {}, {"tile": "token", "least": 1e-4 / 448.0}, {"tile": "1x32", **POWERS}, {"tile": "1x64"},
)  # fmt: skip

RECIPES = {
    "reshape_and_cache_quantised": _recipe(_by_head),
    "reshape_and_cache_per_token": _recipe(_by_cell, ({"least": 1e-6}, {}, {})),
    "reshape_and_cache_per_block": _recipe(_by_head, ({}, {}, {"least": 1e-3}), _draw_filling),
    "concat_and_cache_mla_quantised": _recipe(_entries),
    "concat_and_cache_mla_per_tile": _recipe(_tiles, TILES),
}
