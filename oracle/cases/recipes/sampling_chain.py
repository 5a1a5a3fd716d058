"""Cases of speculative sampling along a chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.recipes.sampling import DISTRIBUTIONS, aimed
from oracle.cases.values import Shape
from oracle.formats import Format, round_to
from oracle.signature import Array


def _chain_draw(name: str, near: float = 0.5, at: str = "middles", decision: str = "anywhere") -> Draw:
    """Drafts from a distribution near the target's; uniforms aimed at the decisions and at the last token's edges."""

    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        batch, places, vocab = shapes["target_probs"]
        rows = (batch * places, vocab)
        target = round_to(DISTRIBUTIONS[name](rng, rows, number_format), number_format).reshape(batch, places, vocab)
        other = DISTRIBUTIONS["normal"](rng, rows, number_format).reshape(batch, places, vocab)
        draft = round_to(near * target + (1 - near) * other, number_format)[:, : places - 1]
        ids = rng.integers(0, vocab, shapes["draft_ids"])
        wanted = np.take_along_axis(target[:, :-1], ids[..., np.newaxis], axis=-1)[..., 0]
        had = np.maximum(np.take_along_axis(draft, ids[..., np.newaxis], axis=-1)[..., 0], 1e-30)
        edge = np.minimum(wanted / had, 1.0)
        uniform = rng.random((batch, places))
        uniform[:, :-1] = np.where(rng.random(ids.shape) < 0.7, edge * 0.9, np.minimum(edge * 1.2 + 0.01, 1.0))
        if decision == "edges":
            uniform[:, :-1] = np.where(rng.random(ids.shape) < 0.4, edge, uniform[:, :-1])
        elif decision == "kept":
            uniform[:, :-1] = edge * 0.5
        uniform = np.clip(uniform, 0.0, 1.0 - 2.0**-24)
        single = uniform.astype(np.float32).astype(np.float64)
        refused = single[:, :-1] * np.take_along_axis(draft, ids[..., np.newaxis], axis=-1)[..., 0] >= wanted
        stop = np.where(refused.any(axis=-1), np.argmax(refused, axis=-1) if places > 1 else 0, places - 1)
        each = np.arange(batch)
        padded = np.concatenate([draft, np.zeros((batch, 1, vocab))], axis=1)
        left = np.maximum(target[each, stop] - padded[each, stop], 0.0)
        uniform[:, -1] = aimed(rng, left, at)
        return {"draft_probs": draft, "draft_ids": ids, "target_probs": target, "uniform": uniform}

    return draw


PLAIN = (
    "normal", "uniform", "full_significand", "one_hot", "sparse_integers", "low_entropy", "rising", "falling",
    "heavy_tail", "zeros", "wide", "spike", "masked", "halves", "mostly_zero",
)  # fmt: skip
LAYOUT_TURN = ("contiguous", "padded", "strided", "transposed", "misaligned")


def _dims(batch: int, drafted: int, vocab: int) -> dict[str, int]:
    return {"batch": batch, "drafted": drafted, "places": drafted + 1, "vocab": vocab}


def _random_chain(rng: np.random.Generator) -> Structure:
    return Structure(_dims(int(pick(rng, (1, 7, 16))), int(pick(rng, (0, 1, 3, 5))), int(pick(rng, (7, 16, 33, 65)))))


RECIPES = {
    "speculative_chain": Recipe(
        {
            **{name: _chain_draw(name) for name in PLAIN},
            "decisions": _chain_draw("normal", decision="edges"),
            "edges": _chain_draw("normal", at="edges"),
            "all_kept": _chain_draw("normal", decision="kept"),
        },
        (
            Structure(_dims(33, 3, 33), "edges"),
            Structure(_dims(16, 4, 17), "normal", "padded"),
            Structure(_dims(16, 3, 31), "decisions", "strided"),
            Structure(_dims(16, 5, 16), "all_kept", "transposed"),
            *(
                Structure(_dims(8 + at, 1 + at % 4, (15, 32, 47, 64, 65)[at % 5]), name, LAYOUT_TURN[at % 5])
                for at, name in enumerate(PLAIN)
            ),
            Structure(_dims(3, 2, 3), "normal"),
            Structure(_dims(9, 0, 17), "normal"),
            Structure(_dims(0, 2, 5)),
            Structure(_dims(2, 2, 1021), "normal"),
        ),
        _random_chain,
    )
}
