"""Cases of frequencies for rotary position embedding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows
from oracle.formats import Format
from oracle.signature import Array

LAYOUTS = ("contiguous", "padded", "strided", "transposed", "misaligned")
HALVES = (16, 64, 32, 7, 33, 5, 1, 129, 2, 31, 13, 0)


def _pairs(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        count, all_pairs = shapes["pairs"][0], params["rotary_dim"] // 2
        if name == "all":
            return {"pairs": np.arange(count, dtype=np.float64) % all_pairs}
        if name == "last":
            return {"pairs": all_pairs - 1 - np.arange(count, dtype=np.float64) % min(all_pairs, 3)}
        if name == "between":  # a pair's number need not be whole
            return {"pairs": rng.random(count) * all_pairs}
        return {"pairs": rng.integers(0, all_pairs, count).astype(np.float64)}

    return draw


PAIRS = ("all", "shuffled", "between", "last")
BASES = (10_000.0, 500_000.0, 1_000_000.0, 5.0e6, 100.0)
SCALINGS: tuple[dict[str, Any], ...] = (
    {"scaling": "none"},
    {"scaling": "linear", "factor": 3.3},
    {"scaling": "ntk", "factor": 4.0},
    {"scaling": "shifted_ntk", "factor": 2.5},
    {"scaling": "dynamic_ntk", "factor": 2.0, "length": 9000, "original_length": 2048},
    {"scaling": "dynamic_ntk", "factor": 8.0, "length": 100, "original_length": 4096},
)


def _made(half: int, at: int, name: str, layout: str) -> Structure:
    scaling = SCALINGS[at % len(SCALINGS)]
    dim = 2 * max(half, 2) if at % 2 else 2 * half + 16
    return Structure({"half": half}, name, layout, {**scaling, "base": BASES[at % 5], "rotary_dim": dim})


ROPE_FREQUENCIES = Recipe(
    {name: _pairs(name) for name in PAIRS},
    tuple(_made(HALVES[at % 12], at, PAIRS[at * 3 % 4], LAYOUTS[at * 3 % 5]) for at in range(30)),
    lambda rng: _made(int(pick(rng, HALVES)), int(rng.integers(0, 60)), "all", "contiguous"),
)

ROWS = ("uniform", "full_significand", "low_entropy", "rising", "falling")
NAMES = ("base_10000", "base_500000", "uniform", "full_significand", "base_1000000", "low_entropy", "rising", "falling")


def _given(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        half = shapes["frequencies"][0]
        if name in ROWS:
            frequencies = np.abs(draw_rows(name, rng, (half,), number_format))
        else:
            frequencies = float(name[5:]) ** (-np.arange(half) / max(half, 1))
        drawn = {"frequencies": frequencies}
        if "short_factors" in shapes:
            drawn["short_factors"] = 1.0 + 0.5 * rng.random(half)
            drawn["long_factors"] = 1.0 + 60.0 * np.sort(rng.random(half)) + rng.random(half)
        return drawn

    return draw


YARN: tuple[dict[str, Any], ...] = (
    {"base": 10_000.0, "factor": 40.0, "mscale": 1.0, "mscale_all_dim": 0.0},
    {"base": 500_000.0, "factor": 3.3, "original_length": 8192, "whole_ends": False},
    {"base": 1_000_000.0, "factor": 4.0, "original_length": 32_768, "mscale": 0.707, "mscale_all_dim": 0.5},
    {"base": 150_000.0, "factor": 32.0, "whole_ends": False, "beta_fast": 16.0, "beta_slow": 2.0},
    {"base": 100.0, "factor": 1.7, "original_length": 100, "beta_fast": 8.0, "beta_slow": 0.5},
    {"factor": 1.0, "original_length": 50, "mscale_all_dim": 1.0},
)
LLAMA: tuple[dict[str, Any], ...] = (
    {"factor": 8.0},
    {"factor": 32.0, "original_length": 8192},
    {"factor": 3.3, "original_length": 500, "low_turns": 0.5, "high_turns": 9.0},
    {"factor": 1.0, "original_length": 40, "low_turns": 1.5, "high_turns": 2.0},
    {"factor": 16.0, "original_length": 100, "low_turns": 0.1, "high_turns": 3.0},
)
LONG: tuple[dict[str, Any], ...] = (
    {"length": 131_072},
    {"length": 4096, "longest": 131_072},
    {"length": 4097, "original_length": 4096},
    {"length": 100, "longest": 8192, "original_length": 2048},
    {"length": 9000, "longest": 1024, "original_length": 2048},
    {"length": 7, "longest": 6, "original_length": 7},
)


def _recipe(params: tuple[dict[str, Any], ...]) -> Recipe:
    def structure(at: int) -> Structure:
        place = {"half": HALVES[at % 12]}
        return Structure(place, NAMES[at * 3 % len(NAMES)], LAYOUTS[at * 3 % 5], params[(at + at // 12) % len(params)])

    return Recipe(
        {name: _given(name) for name in NAMES},
        tuple(structure(at) for at in range(30)),
        lambda rng: structure(int(rng.integers(0, 1000))),
    )


RECIPES = {
    "rope_frequencies": ROPE_FREQUENCIES,
    "yarn_frequencies": _recipe(YARN),
    "llama3_frequencies": _recipe(LLAMA),
    "longrope_frequencies": _recipe(LONG),
}
