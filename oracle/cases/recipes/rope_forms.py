"""Cases of the other forms of rotary position embedding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows
from oracle.formats import Format
from oracle.signature import Array

CLASSES = (
    "normal", "uniform", "full_significand", "sparse_integers", "low_entropy", "subnormals", "heavy_tail",
    "not_a_number",
)  # fmt: skip
INDICES = {
    "positions": ("cos", 1), "offsets": ("cos", 1), "rows": ("cos_rows", 1), "columns": ("cos_columns", 1),
}  # fmt: skip


def _angles(name: str, rng: np.random.Generator, shape: Shape) -> Array:
    if name == "quarter_turns":
        return np.pi / 2 * rng.integers(0, 4, shape)
    if name == "cancelling":
        return np.pi / 4 + 1e-3 * rng.standard_normal(shape)
    return np.arange(shape[0])[:, np.newaxis] * 10_000.0 ** (-np.arange(shape[1]) / max(shape[1], 1))


def _draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        drawn: dict[str, Array] = {}
        for label, shape in shapes.items():
            if label in INDICES:
                last = shapes[INDICES[label][0]][0] - 1
                below = last // 2 + 1 if "offsets" in shapes else last + 1
                index = rng.integers(0, max(below, 1), shape)
                index.reshape(-1)[:1] = max(below - 1, 0)
                drawn[label] = index.astype(np.int32 if rng.random() < 0.5 else np.int64)
            elif label.startswith("cos"):
                angles = _angles(name, rng, shape)
                round_off = np.rint if name == "quarter_turns" else np.array
                drawn[label], drawn[label.replace("cos", "sin")] = round_off(np.cos(angles)), round_off(np.sin(angles))
            elif not label.startswith("sin"):
                rows = {"quarter_turns": "full_significand"}.get(name, name)
                if name == "cancelling":
                    drawn[label] = 1.0 + 1e-2 * rng.standard_normal(shape)
                else:
                    drawn[label] = draw_rows(rows, rng, shape, number_format, CLASSES)
        return drawn

    return draw


NAMES = ("normal", "full_significand", "quarter_turns", "cancelling", "low_entropy", "subnormals", "heavy_tail",
         "sparse_integers", "mixed", "uniform", "not_a_number")  # fmt: skip
LAYOUTS = ("contiguous", "padded", "strided", "transposed", "misaligned")
SIZES = (
    # tokens, heads, a quarter of the turned elements, elements that are not turned, positions
    (7, 3, 6, 5, 129), (5, 2, 3, 1, 17), (9, 2, 4, 0, 31), (4, 3, 9, 2, 9), (6, 1, 1, 3, 5), (13, 5, 3, 0, 47),
    (1, 1, 1, 0, 1), (0, 3, 3, 1, 5), (33, 2, 2, 4, 300), (31, 1, 12, 0, 97), (3, 4, 3, 3, 33), (8, 2, 5, 7, 65),
    (3, 2, 0, 3, 3),
)  # fmt: skip
Describe = Callable[[int, int, int, int, int, int], tuple[dict[str, int], dict[str, Any], tuple[str, ...]]]


def _qk(tokens: int, heads: int, quarter: int, rest: int, top: int, at: int) -> Any:
    dims = {"tokens": tokens, "heads": heads, "kv_heads": max(heads // 2, 1), "head_dim": 4 * quarter + rest}
    params = {"plain_first": at % 3 == 0, "pairing": ("neox", "gptj")[at % 2]}
    return {**dims, "max_position": top, "half": 2 * quarter}, params, (() if at % 4 < 2 else ("offsets",))


def _three(tokens: int, heads: int, quarter: int, rest: int, top: int, at: int) -> Any:
    half = 2 * quarter
    height = half // 3
    params = {"height": height, "width": height, "temporal": half - 2 * height, "interleaved": at % 3 != 0}
    dims = {"tokens": tokens, "heads": heads, "head_dim": 2 * half + rest, "max_position": top, "half": half}
    return {**dims, "three": 3}, {**params, "pairing": ("neox", "gptj")[at // 2 % 2]}, ()


def _image(tokens: int, heads: int, quarter: int, rest: int, top: int, at: int) -> Any:
    dims = {"tokens": tokens, "heads": heads, "head_dim": 4 * quarter, "quarter": quarter}
    return {**dims, "height": top, "width": top // 2 + 1}, {"pairing": ("neox", "gptj")[at % 2]}, ()


def _back(tokens: int, heads: int, quarter: int, rest: int, top: int, at: int) -> Any:
    dims = {"tokens": tokens, "heads": heads, "head_dim": 4 * quarter + rest, "max_position": top, "half": 2 * quarter}
    return dims, {"pairing": ("neox", "gptj")[at % 2]}, ()


def _recipe(describe: Describe) -> Recipe:
    def structure(sizes: tuple[int, ...], at: int, name: str = "normal", layout: str = "contiguous") -> Structure:
        tokens, heads, quarter, rest, top = sizes
        dims, params, absent = describe(tokens, heads, quarter, rest, top, at)
        return Structure(dims, name, layout, params, absent)

    def random(rng: np.random.Generator) -> Structure:
        sizes = (
            int(rng.integers(0, 20)), int(pick(rng, (1, 2, 3, 5))), int(rng.integers(1, 9)), int(rng.integers(0, 5)),
            int(rng.integers(1, 70)),
        )  # fmt: skip
        return structure(sizes, int(rng.integers(0, 12)))

    curated = tuple(
        structure(SIZES[at % len(SIZES)], at, NAMES[at * 4 % len(NAMES)], LAYOUTS[at * 3 % 5]) for at in range(26)
    )
    return Recipe({name: _draw(name) for name in NAMES}, curated, random)


RECIPES = {
    "rope_qk": _recipe(_qk),
    "mrope": _recipe(_three),
    "rope_2d": _recipe(_image),
    "rope_backward": _recipe(_back),
}
