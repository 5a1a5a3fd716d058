"""Cases of sampling: distributions, and uniform numbers aimed at the edges of their cumulative sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows
from oracle.formats import Format, round_to
from oracle.signature import Array

LOGITS = (
    "normal", "uniform", "full_significand", "one_hot", "sparse_integers", "low_entropy", "rising", "falling",
    "all_below", "offset", "subnormals", "heavy_tail", "zeros", "wide", "huge_exact", "spike", "masked",
)  # fmt: skip


# Distributions.


def _softmax_of(name: str) -> Callable[[np.random.Generator, Shape, Format], Array]:
    def rows(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
        logits = draw_rows(name, rng, shape, number_format, LOGITS)
        weight: Array = np.exp(logits - logits.max(axis=-1, keepdims=True))
        share: Array = weight / weight.sum(axis=-1, keepdims=True)
        return share

    return rows


def _halves(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Powers of two from 1/2 on, the last one twice: every sum is exact, and every edge a number that u can be."""
    count = min(shape[-1], 12)
    exponents = np.minimum(np.arange(1, count + 1), max(count - 1, 0))
    rows = np.zeros(shape)
    for row in rows:
        row[rng.permutation(shape[-1])[:count]] = 2.0**-exponents
    return rows


def _few_values(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Probabilities that are 1, 2 or 4 sixty-fourths (or so): ties at every threshold."""
    parts = 2.0 ** rng.integers(0, 3, shape)
    size = 2.0 ** np.ceil(np.log2(np.maximum(parts.sum(axis=-1, keepdims=True), 1.0)))
    scaled: Array = parts / size
    return scaled


def _mostly_zero(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Most tokens, the first and the last among them, have probability 0: they must never be drawn."""
    weight = rng.random(shape) * (rng.random(shape) < 0.3)
    if shape[-1] > 2:
        weight[..., [0, -1]] = 0.0
    middle = shape[-1] // 2
    weight[..., middle : middle + 1] += 0.5
    rows: Array = weight / weight.sum(axis=-1, keepdims=True)
    return rows


def _tenths(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """The first tokens have 0.4, 0.3, 0.2 and 0.1: thresholds lie on sums that float32 only nearly holds."""
    rows = np.zeros(shape)
    count = min(shape[-1], 4)
    for row in rows:
        row[rng.permutation(shape[-1])[:count]] = (np.array([0.4, 0.3, 0.2, 0.1]) / sum((0.4, 0.3, 0.2, 0.1)[:count]))[
            :count
        ]
    return rows


DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, Shape, Format], Array]] = {
    **{name: _softmax_of(name) for name in (*LOGITS, "mixed")},
    "halves": _halves,
    "few_values": _few_values,
    "mostly_zero": _mostly_zero,
    "tenths": _tenths,
}


# Uniform numbers.


def kept_by(probs: Array, params: Mapping[str, Any]) -> Array:
    """About what the filters keep, enough to aim by."""
    keep = np.ones(probs.shape, bool)
    falling = -np.sort(-probs, axis=-1)
    if "min_p" in params:
        keep &= probs >= params["min_p"] * falling[:, :1]
    if "top_k" in params:
        keep &= probs >= falling[:, params["top_k"] - 1 : params["top_k"]]
    if "top_p" in params:
        inside = np.where(keep, probs, 0.0) if params.get("order") == "top_k_first" else probs
        inside = inside / np.maximum(inside.sum(axis=-1, keepdims=True), 1e-300)
        larger = probs[:, np.newaxis, :] > probs[:, :, np.newaxis]
        keep &= np.sum(np.where(larger, inside[:, np.newaxis, :], 0.0), axis=-1) < params["top_p"]
    return keep


def aimed(rng: np.random.Generator, weight: Array, at: str) -> Array:
    """Uniform numbers for rows of weights: in the middles of their parts, on their edges, or next to them."""
    total = np.maximum(weight.sum(axis=-1, keepdims=True), 1e-300)
    edges = np.cumsum(weight / total, axis=-1)
    rows = np.arange(len(weight))
    there = np.argsort(np.where(weight > 0, rng.random(weight.shape), 2.0), axis=-1)
    hits = there[rows, rng.integers(0, np.maximum((weight > 0).sum(axis=-1), 1))]
    upper = edges[rows, hits]
    middle = upper - weight[rows, hits] / total[:, 0] / 2
    steps = rng.choice([-64, -2, -1, 0, 0, 1, 2, 64], len(weight)) * 2.0**-24
    if at == "middles":
        goal = middle
    elif at == "edges":
        goal = upper + steps
    else:
        goal = np.where(rng.random(len(weight)) < 0.5, middle, upper + steps)
        goal[rows % 7 == 3], goal[rows % 7 == 5] = 0.0, 1.0
    clipped: Array = np.clip(goal, 0.0, 1.0 - 2.0**-24)
    return clipped


def _draw(name: str, at: str = "anywhere") -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        probs = round_to(DISTRIBUTIONS[name](rng, shapes["probs"], number_format), number_format)
        weight = np.where(kept_by(probs, params), probs, 0.0)
        return {"probs": probs, "uniform": aimed(rng, weight, at)}

    return draw


CLASSES: dict[str, Draw] = {
    **{name: _draw(name) for name in DISTRIBUTIONS},
    "edges": _draw("normal", "edges"),
    "middles": _draw("normal", "middles"),
    "exact_edges": _draw("halves", "edges"),
}


def _dims(rows: int, vocab: int) -> dict[str, int]:
    return {"rows": rows, "vocab": vocab}


LAYOUT_TURN = ("contiguous", "padded", "strided", "transposed", "misaligned")


def _curated(params: tuple[dict[str, Any], ...]) -> tuple[Structure, ...]:
    """The same structures for every sampler, its parameters in turn; those that draw from few tokens need few."""
    shapes = (
        (64, 33, "edges"), (33, 65, "middles"), (48, 17, "few_values"), (40, 31, "exact_edges"), (33, 16, "tenths"),
        (28, 64, "mostly_zero"), (32, 47, "normal"), (28, 129, "uniform"), (14, 32, "full_significand"),
        (9, 15, "one_hot"), (9, 63, "sparse_integers"), (14, 33, "low_entropy"), (13, 97, "rising"),
        (13, 97, "falling"), (9, 17, "all_below"), (9, 13, "offset"), (9, 16, "subnormals"), (14, 65, "heavy_tail"),
        (21, 31, "zeros"), (14, 127, "wide"), (9, 33, "huge_exact"), (9, 64, "spike"), (21, 33, "masked"),
        (17, 32, "halves"), (17, 47, "mixed"), (3, 1021, "edges"),
    )  # fmt: skip
    structures = [
        Structure(_dims(rows, vocab), name, LAYOUT_TURN[at % 5], params[at % len(params)])
        for at, (rows, vocab, name) in enumerate(shapes)
    ]
    least = {key: 1 if key == "top_k" else value for key, value in params[-1].items()}
    return (
        *structures,
        Structure(_dims(1, 1), "zeros", params=least),
        Structure(_dims(3, 2), "normal", params=least),
        Structure(_dims(0, 5), params=least),
    )


def _recipe(params: tuple[dict[str, Any], ...]) -> Recipe:
    def random(rng: np.random.Generator) -> Structure:
        vocab = int(pick(rng, SIZES[6:]))
        return Structure(_dims(int(pick(rng, (1, 7, 16, 33))), vocab), params=pick(rng, params))

    return Recipe(CLASSES, _curated(params), random)


ALL, LOWEST = {"ties": "all"}, {"ties": "lowest"}
JOINT, FIRST = {"order": "joint"}, {"order": "top_k_first"}
TOP_K = ({"top_k": 4}, {"top_k": 7, **LOWEST}, {"top_k": 3, **LOWEST}, {"top_k": 1})
TOP_P = ({"top_p": 0.7}, {"top_p": 0.5, **LOWEST}, {"top_p": 0.9, **LOWEST}, {"top_p": 1.0}, {"top_p": 0.25})
MIN_P = ({"min_p": 0.5}, {"min_p": 0.1}, {"min_p": 0.0}, {"min_p": 1.0}, {"min_p": 0.3})
BOTH = (
    {"top_k": 4, "top_p": 0.7, **FIRST},
    {"top_k": 5, "top_p": 0.5, **LOWEST},
    {"top_k": 3, "top_p": 0.75, **FIRST, **LOWEST},
    {"top_k": 6, "top_p": 0.4},
    {"top_k": 2, "top_p": 0.9, **FIRST},
)


# Logits.


def _ties(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Small integers: the largest is there several times."""
    values: Array = rng.integers(-3, 2, shape).astype(np.float64)
    return values


def _near_ties(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Numbers one step of the dtype apart."""
    values: Array = 1.0 + rng.integers(0, 3, shape) * 2.0 ** (1 - number_format.precision)
    return values


OWN = {"ties": _ties, "near_ties": _near_ties}


def _logits(name: str) -> Callable[[np.random.Generator, Shape, Format], Array]:
    return OWN.get(name) or (lambda rng, shape, number_format: draw_rows(name, rng, shape, number_format, LOGITS))


def _greedy_draw(name: str) -> Draw:
    return lambda rng, shapes, params, number_format: {"logits": _logits(name)(rng, shapes["logits"], number_format)}


def _temperature_draw(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        temperature = rng.choice([0.0, 0.3, 0.7, 1.0, 1.3], shapes["temperature"])
        return {"logits": _logits(name)(rng, shapes["logits"], number_format), "temperature": temperature}

    return draw


def _tables(names: tuple[str, ...]) -> tuple[Structure, ...]:
    sizes = (33, 65, 17, 129, 31, 64, 47, 16, 97, 127, 15, 32, 63, 13, 128, 5, 2, 257, 7, 1021, 3, 48)
    rows = (13, 9, 16, 7)
    listed = [
        Structure(_dims(rows[at % 4], sizes[at % len(sizes)]), name, LAYOUT_TURN[at % 5])
        for at, name in enumerate(names)
    ]
    return (
        *listed,
        Structure(_dims(1, 1), "normal"),
        Structure(_dims(3, 3), "normal"),
        Structure(_dims(0, 4)),
        Structure(_dims(131, 5), "normal"),
    )


def _random_table(rng: np.random.Generator) -> Structure:
    return Structure(_dims(int(pick(rng, SIZES[:11])), int(pick(rng, SIZES))))


TABLE = ("normal", "near_ties", "ties", *LOGITS[1:], "mixed")
RECIPES = {
    "greedy": Recipe(
        {name: _greedy_draw(name) for name in (*TABLE, "not_a_number", "infinities")},
        _tables((*TABLE, "not_a_number", "infinities")),
        _random_table,
    ),
    "temperature_softmax": Recipe({name: _temperature_draw(name) for name in TABLE}, _tables(TABLE), _random_table),
    "sample_top_k": _recipe(TOP_K),
    "sample_top_p": _recipe(TOP_P),
    "sample_min_p": _recipe(MIN_P),
    "sample_top_k_top_p": _recipe(BOTH),
}
