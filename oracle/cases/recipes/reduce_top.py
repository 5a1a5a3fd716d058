"""Cases of the k largest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows
from oracle.formats import Format
from oracle.signature import Array

CLASSES = (
    "normal", "uniform", "full_significand", "one_hot", "sparse_integers", "low_entropy", "rising", "falling",
    "all_below", "far_below", "offset", "subnormals", "heavy_tail", "zeros", "infinities", "masked", "huge_exact",
)  # fmt: skip


def _class(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        return {"x": draw_rows(name, rng, shapes["x"], number_format, CLASSES)}

    return draw


def _ties(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Integers from -2 to 2: most numbers are there several times, and the k-th largest more often than it fits."""
    return {"x": rng.integers(-2, 3, shapes["x"]).astype(np.float64)}


def _near_ties(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Neighbours in the dtype: what rounds them to fewer bits cannot tell them apart."""
    steps = rng.permuted(np.broadcast_to(np.arange(shapes["x"][1]), shapes["x"]), axis=1)
    return {"x": 1.0 + (steps % 2 ** (number_format.precision - 1)) * 2.0 ** (1 - number_format.precision)}


def _last_largest(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """The last column is the largest of each row."""
    x = rng.standard_normal(shapes["x"])
    x[:, -1:] = 100.0
    return {"x": x}


def _dims(rows: int, cols: int) -> dict[str, int]:
    return {"rows": rows, "cols": cols}


def _with(k: int, **params: Any) -> dict[str, Any]:
    return {"k": k, **params}


ANY, UNORDERED = {"ties": "any"}, {"ordered": False}


def _random(rng: np.random.Generator) -> Structure:
    cols = int(pick(rng, SIZES))
    params = _with(int(rng.integers(1, min(cols, 20) + 1)), **pick(rng, ({}, ANY, UNORDERED, {**ANY, **UNORDERED})))
    return Structure(_dims(int(pick(rng, SIZES[:11])), cols), params=params)


TOPK = Recipe(
    classes={
        **{name: _class(name) for name in (*CLASSES, "mixed")},
        "ties": _ties,
        "near_ties": _near_ties,
        "last_largest": _last_largest,
    },
    curated=(
        Structure(_dims(7, 129), "normal", params=_with(8)),
        Structure(_dims(5, 65), "ties", "padded", _with(4)),
        Structure(_dims(6, 64), "ties", params=_with(16, **ANY)),
        Structure(_dims(4, 127), "near_ties", "strided", _with(5)),
        Structure(_dims(4, 33), "last_largest", "misaligned", _with(3, **UNORDERED)),
        Structure(_dims(5, 128), "ties", "transposed", _with(7, **UNORDERED)),
        Structure(_dims(4, 47), "all_below", params=_with(2)),
        Structure(_dims(4, 31), "far_below", params=_with(2, **ANY)),
        Structure(_dims(9, 32), "one_hot", "strided", _with(3)),
        Structure(_dims(8, 97), "sparse_integers", "transposed", _with(6)),
        Structure(_dims(4, 63), "low_entropy", params=_with(9)),
        Structure(_dims(5, 97), "rising", "padded", _with(10, **ANY)),
        Structure(_dims(5, 97), "falling", params=_with(10)),
        Structure(_dims(3, 257), "full_significand", params=_with(17)),
        Structure(_dims(4, 129), "offset", params=_with(5)),
        Structure(_dims(4, 17), "subnormals", params=_with(4)),
        Structure(_dims(6, 127), "heavy_tail", "strided", _with(8, **UNORDERED)),
        Structure(_dims(13, 33), "mixed", params=_with(5)),
        Structure(_dims(3, 16), "zeros", params=_with(4)),
        Structure(_dims(4, 31), "infinities", "padded", _with(3)),
        Structure(_dims(4, 65), "masked", params=_with(50)),
        Structure(_dims(3, 47), "huge_exact", params=_with(6)),
        Structure(_dims(5, 13), "normal", params=_with(13)),
        Structure(_dims(5, 7), "ties"),
        Structure(_dims(1, 1), "normal"),
        Structure(_dims(0, 5), params=_with(2)),
        Structure(_dims(2, 2053), "uniform", params=_with(3)),
        Structure(_dims(131, 5), "uniform", params=_with(2)),
    ),
    random=_random,
)


def _plain(options: tuple[dict[str, Any], ...]) -> Recipe:
    """The same rows, without k; NaN besides."""

    def random(rng: np.random.Generator) -> Structure:
        return replace(_random(rng), params=pick(rng, options))

    curated = [replace(one, params=options[at % len(options)]) for at, one in enumerate(TOPK.curated)]
    curated.insert(8, Structure(_dims(7, 33), "not_a_number"))
    named = [replace(one, dims={"d0": one.dims["rows"], "cols": one.dims["cols"]}) for one in curated]

    def leading(rng: np.random.Generator) -> Structure:
        drawn = random(rng)
        return replace(drawn, dims={"d0": drawn.dims["rows"], "cols": drawn.dims["cols"]})

    classes = {**TOPK.classes, "not_a_number": _class("not_a_number")}
    return Recipe(classes=classes, curated=tuple(named), random=leading)


RECIPES = {"topk": TOPK, "max": _plain(({},)), "argmax": _plain(({}, {"ties": "highest"}))}
