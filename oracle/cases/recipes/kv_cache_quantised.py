"""Cases of the paged cache in 8 bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes import kv_cache
from oracle.cases.recipes.quant import midpoints
from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows
from oracle.formats import Format, cast, decode, format_of
from oracle.signature import Array

KINDS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "int8")
CLASSES = ("normal", "uniform", "full_significand", "heavy_tail", "rising", "zeros", "low_entropy")


def _draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        target = format_of(params["to"])
        drawn: dict[str, Array] = {}
        for label in ("key", "value"):
            if name == "ties":
                drawn[label] = midpoints(rng, shapes[label], target) * 0.25
                drawn[label][..., :1] = target.max * 0.25
            else:
                rows = "normal" if name in ("nan_before", "all_skipped", "zero_tokens") else name
                drawn[label] = draw_rows(rows, rng, shapes[label], number_format, CLASSES)
            if name == "zero_tokens":
                drawn[label][::2] = 0.0
        for label in ("key_cache", "value_cache"):
            codes = decode(rng.integers(0, 2**target.bits, shapes[label]), target)
            if name == "nan_before" and target.has_nan:
                codes = np.full(shapes[label], np.nan)
            drawn[label] = cast(np.where(np.isfinite(codes) | (name == "nan_before"), codes, 1.0), target)
        for label in ("k_scale", "v_scale"):
            if label in shapes:
                scale = 4.0 / target.max * rng.uniform(0.5, 1.5, shapes[label])
                drawn[label] = np.full(shapes[label], 0.25) if name == "ties" else scale
        for label in ("k_scales", "v_scales"):
            if label in shapes:
                drawn[label] = np.full(shapes[label], np.nan) if name == "nan_before" else rng.random(shapes[label])
        return {**drawn, **kv_cache.slots_of(rng, shapes, name)}

    return draw


OWN = ("mixed", "ties", "nan_before", "all_skipped", "zero_tokens")


def _recipe(scales: str) -> Recipe:
    def dims(tokens: int, blocks: int, size: int, heads: int, head: int) -> dict[str, int]:
        shape = kv_cache.flash_dims(tokens, blocks, size, heads, head)
        return {**shape, "cells": blocks * size} if scales == "cells" else shape

    names = (
        "normal", "ties", "nan_before", "zero_tokens", "heavy_tail", "full_significand", "all_skipped", "rising",
        "uniform", "low_entropy", "zeros", "mixed",
    )  # fmt: skip
    layouts = ("contiguous", "padded", "strided", "transposed", "misaligned")
    curated = tuple(
        Structure(
            dims(*kv_cache.SIZES[at % len(kv_cache.SIZES)]),
            names[at * 5 % len(names)],
            layouts[at * 3 % 5],
            {"to": KINDS[at % 4], **({"least": 1e-6} if scales == "cells" and at % 3 == 0 else {})},
        )
        for at in range(24)
    )

    def random(rng: np.random.Generator) -> Structure:
        size, heads = int(pick(rng, (1, 2, 3, 8))), int(pick(rng, (1, 2, 3)))
        shape = dims(int(rng.integers(0, 30)), int(rng.integers(1, 9)), size, heads, int(pick(rng, (1, 2, 8, 17))))
        return Structure(shape, params={"to": pick(rng, KINDS)})

    return Recipe({name: _draw(name) for name in (*CLASSES, *OWN)}, curated, random)


RECIPES = {
    "reshape_and_cache_quantised": _recipe("heads"),
    "reshape_and_cache_per_token": _recipe("cells"),
}
