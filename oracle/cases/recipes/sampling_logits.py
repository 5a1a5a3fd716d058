"""Cases of what is done to logits: penalties, bias, and the mask of a grammar."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.recipes.sampling import LAYOUT_TURN
from oracle.cases.values import Shape, draw_rows
from oracle.formats import Format
from oracle.signature import Array

CLASSES = (
    "normal", "uniform", "full_significand", "one_hot", "sparse_integers", "low_entropy", "rising", "falling",
    "all_below", "offset", "subnormals", "cancelling", "heavy_tail", "zeros", "wide", "huge_exact", "spike",
    "not_a_number", "infinities", "masked",
)  # fmt: skip
NAMES = (*CLASSES, "mixed")
Fill = Callable[[np.random.Generator, Mapping[str, Shape]], dict[str, Array]]


def _counts(rng: np.random.Generator, shape: Shape) -> Array:
    """Most tokens never, a few often."""
    return rng.geometric(0.3, shape) * (rng.random(shape) < 0.4)


def _penalties(rng: np.random.Generator, shapes: Mapping[str, Shape]) -> dict[str, Array]:
    rows, kind = shapes["logits"][0], np.int32 if rng.random() < 0.5 else np.int64
    return {
        "prompt_counts": _counts(rng, shapes["logits"]).astype(kind),
        "output_counts": _counts(rng, shapes["logits"]).astype(kind),
        "repetition": rng.choice([1.0, 1.1, 1.3, 2.0, 0.7], rows),
        "frequency": rng.choice([0.0, 0.1, 0.5, -0.3, 1.7], rows),
        "presence": rng.choice([0.0, 0.3, 1.0, -0.6], rows),
    }


def _bias(rng: np.random.Generator, shapes: Mapping[str, Shape]) -> dict[str, Array]:
    (rows, vocab), count = shapes["logits"], shapes["bias"][0]
    place = rng.permutation(rows * vocab)[:count]
    bias = 3.0 * rng.standard_normal(count)
    bias[1::7], bias[3::7] = -100.0, 100.0
    return {"bias_rows": place // max(vocab, 1), "bias_tokens": place % max(vocab, 1), "bias": bias}


def _forbidding(rng: np.random.Generator, shapes: Mapping[str, Shape]) -> dict[str, Array]:
    inputs = _bias(rng, shapes)
    inputs["bias"][::2] = -np.inf
    return inputs


def _bits(rng: np.random.Generator, shapes: Mapping[str, Shape]) -> dict[str, Array]:
    words = rng.integers(-(2**31), 2**31, shapes["bitmask"])
    words[:, ::5] = rng.choice([0, -1, 1, -(2**31)], words[:, ::5].shape)
    return {"bitmask": words, "mask_of_row": rng.integers(-1, shapes["bitmask"][0], shapes["mask_of_row"])}


def _draw(name: str, fill: Fill) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        return {"logits": draw_rows(name, rng, shapes["logits"], number_format, CLASSES), **fill(rng, shapes)}

    return draw


Sizes = Callable[[int, int, int], dict[str, int]]
SHAPES = (
    (9, 33), (5, 65), (7, 31), (3, 129), (6, 64), (4, 32), (2, 97), (8, 17), (1, 1), (2, 3), (0, 5), (3, 0), (3, 1021),
)  # fmt: skip


def _recipe(classes: dict[str, Draw], sizes: Sizes) -> Recipe:
    names = tuple(classes)
    own = names[len(NAMES) :]  # classes of the operator's own come early
    turn = (names[0], *own, *names[1 : len(NAMES)])

    def structure(at: int, rows: int, vocab: int) -> Structure:
        return Structure(sizes(rows, vocab, at), turn[at % len(turn)], LAYOUT_TURN[at * 3 % 5])

    return Recipe(
        classes,
        tuple(structure(at, *SHAPES[at % len(SHAPES)]) for at in range(26)),
        lambda rng: structure(int(rng.integers(26)), int(pick(rng, (1, 4, 9))), int(pick(rng, SIZES))),
    )


def _plain(rows: int, vocab: int, at: int) -> dict[str, int]:
    return {"rows": rows, "vocab": vocab}


def _with_entries(rows: int, vocab: int, at: int) -> dict[str, int]:
    return {"rows": rows, "vocab": vocab, "entries": min(rows * vocab, (7, 5, 40, 0, 16)[at % 5])}


def _with_masks(rows: int, vocab: int, at: int) -> dict[str, int]:
    return {"rows": rows, "vocab": vocab, "words": -(-vocab // 32) + at % 3 // 2, "masks": (rows, 2, 5, 0)[at % 4]}


def _of(fill: Fill, **own: Draw) -> dict[str, Draw]:
    return {**{name: _draw(name, fill) for name in NAMES}, **own}


RECIPES = {
    "apply_penalties": _recipe(_of(_penalties), _plain),
    "apply_logit_bias": _recipe(_of(_bias, forbidding=_draw("normal", _forbidding)), _with_entries),
    "apply_token_bitmask": _recipe(_of(_bits), _with_masks),
}
