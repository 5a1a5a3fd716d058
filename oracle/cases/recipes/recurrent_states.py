"""Cases of the gated delta rule and the selective scan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows, normal
from oracle.formats import Format
from oracle.signature import Array

CLASSES = (
    "normal", "uniform", "full_significand", "one_hot", "sparse_integers", "low_entropy", "rising", "falling",
    "subnormals", "cancelling", "heavy_tail", "zeros", "not_a_number", "infinities",
)  # fmt: skip
LAYOUT_TURN = ("contiguous", "padded", "strided", "transposed", "misaligned")


def _delta_draw(name: str, decay: float = 1.0) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        size = np.sqrt(max(shapes["k"][-1], 1))
        keys = normal(rng, shapes["k"], number_format) / size
        return {
            "q": normal(rng, shapes["q"], number_format),
            "k": keys,
            "v": draw_rows(name, rng, shapes["v"], number_format, CLASSES),
            "g": -decay * rng.random(shapes["g"]),
            "beta": rng.random(shapes["beta"]),
            "state": normal(rng, shapes["state"], number_format),
        }

    return draw


def _orthogonal(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Keys are axes, nothing decays, updates are whole: the state holds values bit for bit."""
    inputs = _delta_draw("full_significand")(rng, shapes, params, number_format)
    axis = rng.integers(0, max(shapes["k"][-1], 1), shapes["g"])
    inputs["k"] = (np.arange(shapes["k"][-1]) == axis[..., np.newaxis]).astype(np.float64)
    inputs["q"] = 2.0 * inputs["k"]
    inputs["g"], inputs["beta"] = np.zeros(shapes["g"]), np.ones(shapes["beta"])
    inputs["state"] = np.zeros(shapes["state"])
    return inputs


def _delta(batch: int, heads: int, steps: int, key_dim: int, v_dim: int) -> dict[str, int]:
    return {"batch": batch, "heads": heads, "steps": steps, "key_dim": key_dim, "v_dim": v_dim}


UNIT = {"normalise": True}


def _random_delta(rng: np.random.Generator) -> Structure:
    dims = _delta(
        int(pick(rng, (1, 2))), int(pick(rng, (1, 2, 3))), int(pick(rng, (1, 2, 5))),
        int(pick(rng, (1, 7, 16, 17))), int(pick(rng, (1, 8, 15, 33))),
    )  # fmt: skip
    return Structure(dims, params=pick(rng, ({}, UNIT)))


GATED_DELTA_RULE = Recipe(
    {
        **{name: _delta_draw(name) for name in (*CLASSES, "mixed")},
        "orthogonal": _orthogonal,
        "forgetting": _delta_draw("normal", 40.0),
    },
    curated=(
        Structure(_delta(3, 2, 5, 16, 15), "normal"),
        Structure(_delta(2, 3, 4, 17, 8), "normal", "padded", UNIT),
        Structure(_delta(2, 2, 6, 16, 16), "orthogonal", "strided"),
        Structure(_delta(2, 1, 5, 15, 9), "forgetting", "transposed", UNIT),
        *(
            Structure(_delta(1 + at % 2, 2, 2 + at % 4, 7 + at, 5 + at), name, LAYOUT_TURN[at % 5], (UNIT, {})[at % 2])
            for at, name in enumerate((*CLASSES[1:], "mixed"))
        ),
        Structure(_delta(1, 1, 1, 1, 1), "normal"),
        Structure(_delta(0, 1, 2, 3, 4)),
        Structure(_delta(2, 2, 0, 3, 4)),
        Structure(_delta(1, 2, 3, 4, 0)),
        Structure(_delta(1, 1, 1, 128, 33), "normal"),
        Structure(_delta(1, 1, 13, 8, 8), "normal"),
        Structure(_delta(1, 2, 37, 8, 5), "normal", params=UNIT),
        Structure(_delta(1, 1, 66, 4, 3), "normal"),
    ),
    random=_random_delta,
)


def _scan_draw(name: str, rate: float = 1.0) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        inputs = {
            "x": draw_rows(name, rng, shapes["x"], number_format, CLASSES),
            "dt": normal(rng, shapes["dt"], number_format) if params["dt_softplus"] else rng.random(shapes["dt"]),
            "a": -rate * (0.1 + rng.random(shapes["a"])),
        }
        for other in ("b", "c", "state", "d", "z"):
            if other in shapes:
                inputs[other] = normal(rng, shapes[other], number_format)
        if "dt_bias" in shapes:
            inputs["dt_bias"] = rng.random(shapes["dt_bias"])
        return inputs

    return draw


def standing(drawn: Draw) -> Draw:
    """Nothing decays and every step is 1: sums of small integers, exact in any order."""

    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        inputs = drawn(rng, shapes, params, number_format)
        inputs["x"] = np.clip(inputs["x"], -8, 8)
        inputs["a"], inputs["dt"] = np.zeros(shapes["a"]), np.ones(shapes["dt"])
        for other in ("b", "c", "state"):
            inputs[other] = rng.integers(-3, 4, shapes[other]).astype(np.float64)
        for other in ("d", "dt_bias"):
            if other in shapes:
                inputs[other] = np.zeros(shapes[other])
        return inputs

    return draw


def _scan(batch: int, dim: int, length: int, n: int) -> dict[str, int]:
    return {"batch": batch, "dim": dim, "length": length, "n": n}


SOFT = {"dt_softplus": True}
BARE = ("d", "dt_bias", "z")


def _random_scan(rng: np.random.Generator) -> Structure:
    dims = _scan(
        int(pick(rng, (1, 2))), int(pick(rng, (1, 3, 8, 17))), int(pick(rng, (1, 2, 5))), int(pick(rng, (1, 7, 16)))
    )
    return Structure(dims, params=pick(rng, ({}, SOFT)), absent=pick(rng, (BARE, ("z",), ("d",), ("dt_bias",), ())))


SELECTIVE_SCAN = Recipe(
    {
        **{name: _scan_draw(name) for name in (*CLASSES, "mixed")},
        "standing": standing(_scan_draw("sparse_integers")),
        "forgetting": _scan_draw("normal", 60.0),
    },
    curated=(
        Structure(_scan(3, 8, 7, 16), "normal", params=SOFT),
        Structure(_scan(2, 17, 5, 16), "normal", "padded", absent=BARE),
        Structure(_scan(2, 9, 6, 15), "standing", "strided", absent=BARE),
        Structure(_scan(2, 8, 5, 7), "forgetting", "transposed", SOFT),
        Structure(_scan(2, 8, 5, 16), "normal", params=SOFT, absent=("z", "d")),
        *(
            Structure(
                _scan(1 + at % 2, 5 + at, 2 + at % 5, 8 + at % 9), name, LAYOUT_TURN[at % 5], (SOFT, {})[at % 2],
                (("z",), ("d",), ("dt_bias",), ())[at % 4],
            )
            for at, name in enumerate((*CLASSES[1:], "mixed"))
        ),
        Structure(_scan(1, 1, 1, 1), "normal", absent=BARE),
        Structure(_scan(0, 3, 2, 4)),
        Structure(_scan(2, 3, 0, 4), absent=BARE),
        Structure(_scan(2, 3, 2, 0), absent=("z",)),
        Structure(_scan(1, 129, 2, 4), "normal"),
        Structure(_scan(1, 3, 17, 16), "normal", params=SOFT),
    ),
    random=_random_scan,
)  # fmt: skip

RECIPES = {"gated_delta_rule": GATED_DELTA_RULE, "selective_scan": SELECTIVE_SCAN}
