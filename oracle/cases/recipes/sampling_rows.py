"""Cases of sampling where each row has filters of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.recipes.sampling import DISTRIBUTIONS, LAYOUT_TURN, aimed, kept_by
from oracle.cases.values import Shape
from oracle.formats import Format, round_to
from oracle.signature import Array


def _draw(name: str, at: str = "anywhere") -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        rows, vocab = shapes["probs"]
        probs = round_to(DISTRIBUTIONS[name](rng, shapes["probs"], number_format), number_format)
        filters = {
            "top_k": rng.choice([0, 1, 2, 4, 7, vocab, vocab + 3], rows).astype(np.int32),
            "top_p": rng.choice([0.0, 0.25, 0.5, 0.75, 0.9, 1.0], rows),
            "min_p": rng.choice([0.0, 0.1, 0.3, 0.5, 1.0], rows),
        }
        filters = {key: values for key, values in filters.items() if key in shapes}
        weight = probs.copy()
        for row in range(rows):  # about what its filters keep, enough to aim by
            own: dict[str, Any] = {key: values[row] for key, values in filters.items()}
            if "top_k" in own:
                own["top_k"] = min(int(own["top_k"]) or vocab, vocab)
            if "top_p" in own:
                own["top_p"] = max(own["top_p"], 1e-9)
            own["order"] = "joint" if params["order"] == "joint" else "top_k_first"
            keep = kept_by(probs[row : row + 1], own)[0]
            weight[row] = np.where(keep, probs[row], 0.0)
        return {"probs": probs, "uniform": aimed(rng, weight, at), **filters}

    return draw


CLASSES: dict[str, Draw] = {
    **{name: _draw(name) for name in DISTRIBUTIONS},
    "edges": _draw("normal", "edges"),
    "middles": _draw("normal", "middles"),
    "exact_edges": _draw("halves", "edges"),
}
SHAPES = (
    (64, 33, "edges"), (48, 17, "few_values"), (40, 31, "middles"), (33, 16, "exact_edges"), (33, 17, "tenths"),
    (28, 64, "mostly_zero"), (32, 47, "normal"), (28, 129, "uniform"), (14, 32, "full_significand"),
    (9, 15, "one_hot"), (9, 63, "sparse_integers"), (14, 33, "low_entropy"), (13, 97, "rising"), (13, 97, "falling"),
    (9, 17, "all_below"), (9, 13, "offset"), (9, 16, "subnormals"), (14, 65, "heavy_tail"), (21, 31, "zeros"),
    (14, 127, "wide"), (9, 33, "huge_exact"), (9, 64, "spike"), (21, 33, "masked"), (17, 32, "halves"),
    (17, 47, "mixed"), (3, 511, "edges"), (1, 1, "zeros"), (3, 2, "normal"), (0, 5, "normal"),
)  # fmt: skip
PARAMS: tuple[dict[str, Any], ...] = ({}, {"ties": "lowest"}, {"order": "joint"}, {"order": "joint", "ties": "lowest"})
ABSENT: tuple[tuple[str, ...], ...] = ((), (), ("min_p",), (), ("top_p",), ("top_k",), ("top_k", "min_p"))


def _structure(at: int, rows: int, vocab: int, name: str) -> Structure:
    dims = {"rows": rows, "vocab": vocab}
    return Structure(dims, name, LAYOUT_TURN[at % 5], PARAMS[at % 4], ABSENT[at % 7])


RECIPES = {
    "sample_by_row": Recipe(
        CLASSES,
        tuple(_structure(at, *shape) for at, shape in enumerate(SHAPES)),
        lambda rng: _structure(
            int(rng.integers(140)), int(pick(rng, (1, 7, 16, 33))), int(pick(rng, SIZES[6:])), "normal"
        ),
    )
}
