"""Cases of shuffles: sizes of tiles, and elements that tell where they came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.values import Shape
from oracle.formats import Format, decode
from oracle.signature import Array


def _values(number_format: Format) -> Array:
    """Every finite number of a format of at most 8 bits, or as many integers."""
    if number_format.bits > 8:
        return np.arange(-128.0, 128.0)
    values = decode(np.arange(2**number_format.bits), number_format)
    return np.unique(values[np.isfinite(values)])


def _draw(label: str, name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        shape, values = shapes[label], _values(number_format)
        place = np.indices(shape)
        index = {
            "numbered": np.arange(np.prod(shape, dtype=np.int64)).reshape(shape),
            "rows": place[0],
            "columns": place[1],
            "random": rng.integers(0, len(values), shape),
            "two_values": rng.integers(0, 2, shape) * (len(values) - 1),
        }.get(name)
        drawn = values[(place[0] + place[1] if index is None else index) % len(values)]
        if name == "not_a_number":
            drawn[::5, ::3] = np.nan if number_format.has_nan else number_format.max
        return {label: drawn}

    return draw


NAMES = ("numbered", "random", "rows", "columns", "not_a_number", "two_values", "diagonals")
LAYOUTS = ("contiguous", "padded", "strided", "transposed", "misaligned")


def _weight(rows: int, cols: int, inner: int, vector: int, name: str, layout: str) -> Structure:
    dims = {"n": 16 * rows, "k": 2 * inner * cols}
    return Structure(dims, name, layout, {"inner": inner, "vector": vector})


TILES = ((1, 1, 16, 8), (2, 3, 16, 16), (3, 2, 32, 16), (5, 1, 32, 8), (1, 7, 16, 16), (0, 2, 16, 8), (0, 0, 16, 16))
SIZES = ((1, 1), (3, 5), (256, 8), (257, 9), (33, 16), (0, 4), (2, 0), (31, 7), (100, 24), (512, 3))


def _random_weight(rng: np.random.Generator) -> Structure:
    rows, cols = int(rng.integers(0, 5)), int(rng.integers(1, 4))
    return _weight(rows, cols, pick(rng, (16, 32)), pick(rng, (8, 16)), "random", "contiguous")


PADDINGS = ("one", "any", "zero")


def _scale(rows: int, groups: int, name: str, layout: str, padding: str, tiles: str) -> Structure:
    return Structure({"rows": rows, "groups": groups}, name, layout, {"padding": padding, "layout": tiles})


def _random_scale(rng: np.random.Generator) -> Structure:
    rows, groups = int(rng.integers(0, 300)), int(rng.integers(1, 20))
    return _scale(rows, groups, "random", "contiguous", pick(rng, PADDINGS), pick(rng, ("aiter", "cublas")))


RECIPES = {
    "shuffle_weight": Recipe(
        {name: _draw("weight", name) for name in NAMES},
        tuple(
            _weight(*TILES[at % 7], NAMES[at * 3 % 7 if at < 7 else (at + at // 7) % 7], LAYOUTS[at % 5])
            for at in range(22)
        ),
        _random_weight,
    ),
    "shuffle_scale": Recipe(
        {name: _draw("scale", name) for name in NAMES},
        tuple(
            _scale(
                *SIZES[at % 10], NAMES[at % 7], LAYOUTS[at * 3 % 5], PADDINGS[at % 3], ("aiter", "cublas")[at // 3 % 2]
            )
            for at in range(24)
        ),
        _random_scale,
    ),
}
