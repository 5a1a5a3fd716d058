"""Cases of operators along a sequence: causal convolutions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows, full_significand, hot_mask, normal
from oracle.formats import Format
from oracle.signature import Array

CLASSES = (
    "normal", "uniform", "full_significand", "one_hot", "sparse_integers", "low_entropy", "rising", "falling",
    "all_below", "offset", "subnormals", "cancelling", "heavy_tail", "zeros", "not_a_number", "infinities",
)  # fmt: skip


def drawn_slots(rng: np.random.Generator, batch: int, slots: int, holes: float) -> Array:
    """Different slots in random order, some of the sequences padding."""
    order = rng.permutation(max(slots, batch))[:batch]
    elsewhere = (order >= slots) | (rng.random(batch) < holes)
    return np.where(elsewhere, -1, order)


def _conv_draw(name: str, holes: float = 0.3, poisoned: bool = False) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        batch, dim, length = shapes["x"]
        past = shapes["state"][-1]
        # a row is a whole history: what went before stands in the state
        owners = max(batch, shapes["state"][0])
        rows = draw_rows(name, rng, (owners, dim, past + length), number_format, CLASSES)
        inputs = {"x": rows[:batch, :, past:], "state": rows[: shapes["state"][0], :, :past]}
        inputs["weight"] = normal(rng, shapes["weight"], number_format)
        if "fresh" in shapes:
            fresh = (np.arange(batch) % 2 == 0).astype(np.int64)
            inputs["fresh"] = fresh
            if poisoned:
                inputs["state"] = np.where(fresh[:, np.newaxis, np.newaxis] == 1, np.nan, inputs["state"])
        if "slots" in shapes:
            inputs["slots"] = drawn_slots(rng, batch, shapes["state"][0], holes)
            if poisoned:
                inputs["x"] = np.where(inputs["slots"][:, np.newaxis, np.newaxis] < 0, np.nan, inputs["x"])
        if "bias" in shapes:
            inputs["bias"] = normal(rng, shapes["bias"], number_format)
        return inputs

    return draw


def selecting(drawn: Draw) -> Draw:
    """One tap of each channel is 1, the others 0: each output is an input, bit for bit."""

    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        inputs = drawn(rng, shapes, params, number_format)
        inputs["weight"] = hot_mask(rng, shapes["weight"])
        if "bias" in shapes:
            inputs["bias"] = np.zeros(shapes["bias"])
        return inputs

    return draw


def full_taps(drawn: Draw) -> Draw:
    """Taps with full significands, on inputs that have them."""

    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        inputs = drawn(rng, shapes, params, number_format)
        inputs["weight"] = full_significand(rng, shapes["weight"], number_format)
        return inputs

    return draw


CONV_CLASSES: dict[str, Draw] = {
    **{name: _conv_draw(name) for name in (*CLASSES, "mixed")},
    "selecting": selecting(_conv_draw("full_significand")),
    "full_taps": full_taps(_conv_draw("full_significand")),
    "nan_unread": _conv_draw("normal", poisoned=True),
}


def _dims(batch: int, dim: int, length: int, width: int) -> dict[str, int]:
    return {"batch": batch, "dim": dim, "length": length, "width": width, "past": width - 1}


SILU = {"activation": "silu"}
BARE, CONTINUED, BEGUN = ("bias", "fresh"), ("fresh",), ("bias",)
LAYOUT_TURN = ("contiguous", "padded", "strided", "transposed", "misaligned")


def _random_conv(rng: np.random.Generator) -> Structure:
    dims = _dims(
        int(pick(rng, (1, 2, 3))), int(pick(rng, (1, 3, 8, 16))), int(pick(rng, (1, 2, 5, 16, 31, 64, 65))),
        int(pick(rng, (1, 2, 3, 4, 4, 5))),
    )  # fmt: skip
    return Structure(dims, params=pick(rng, ({}, SILU)), absent=pick(rng, (BARE, CONTINUED, BEGUN, ())))


CAUSAL_CONV1D = Recipe(
    CONV_CLASSES,
    curated=(
        Structure(_dims(3, 8, 33, 4), "normal", params=SILU),
        Structure(_dims(4, 5, 17, 4), "nan_unread", "padded"),
        Structure(_dims(2, 16, 65, 4), "normal", "strided", SILU, BARE),
        Structure(_dims(2, 7, 31, 3), "normal", "transposed", absent=CONTINUED),
        Structure(_dims(2, 3, 2, 4), "normal", "misaligned", absent=CONTINUED),
        Structure(_dims(2, 4, 16, 4), "selecting", absent=CONTINUED),
        Structure(_dims(2, 4, 15, 4), "full_taps", params=SILU),
        *(
            Structure(
                _dims(2, 4, 13 + 2 * at, 4), name, LAYOUT_TURN[at % 5], (SILU, {})[at % 2], (BARE, CONTINUED)[at % 2]
            )
            for at, name in enumerate((*CLASSES[1:], "mixed"))
        ),
        Structure(_dims(1, 1, 1, 1), "normal", absent=BARE),
        Structure(_dims(1, 3, 1, 2), "normal", params=SILU, absent=BEGUN),
        Structure(_dims(0, 4, 5, 4)),
        Structure(_dims(2, 3, 0, 4), absent=CONTINUED),
        Structure(_dims(1, 2, 257, 4), "normal", params=SILU),
        Structure(_dims(1, 129, 5, 4), "normal", absent=BARE),
    ),
    random=_random_conv,
)


def _update(batch: int, dim: int, steps: int, width: int, slots: int) -> dict[str, int]:
    return {"batch": batch, "dim": dim, "steps": steps, "width": width, "past": width - 1, "slots": slots}


ALONE = ("bias",)


def _random_update(rng: np.random.Generator) -> Structure:
    batch = int(pick(rng, (1, 3, 8)))
    dims = _update(
        batch, int(pick(rng, (1, 3, 16, 33))), int(pick(rng, (1, 1, 2, 4))), int(pick(rng, (1, 2, 3, 4))),
        batch + int(pick(rng, (0, 1, 3))),
    )  # fmt: skip
    return Structure(dims, params=pick(rng, ({}, SILU)), absent=pick(rng, (ALONE, ())))


CAUSAL_CONV1D_UPDATE = Recipe(
    CONV_CLASSES,
    curated=(
        Structure(_update(7, 33, 1, 4, 9), "normal", params=SILU),
        Structure(_update(8, 16, 1, 4, 8), "nan_unread", "padded", absent=ALONE),
        Structure(_update(5, 17, 3, 4, 6), "normal", "strided", SILU),
        Structure(_update(5, 15, 2, 3, 7), "normal", "transposed", absent=ALONE),
        Structure(_update(3, 8, 5, 4, 3), "normal", "misaligned"),
        Structure(_update(6, 16, 1, 4, 6), "selecting", absent=ALONE),
        Structure(_update(6, 16, 1, 4, 6), "full_taps", params=SILU),
        *(
            Structure(
                _update(5, 9 + at, 1 + at % 3, 4, 6), name, LAYOUT_TURN[at % 5], (SILU, {})[at % 2], (ALONE, ())[at % 2]
            )
            for at, name in enumerate((*CLASSES[1:], "mixed"))
        ),
        Structure(_update(1, 1, 1, 1, 1), "normal", absent=ALONE),
        Structure(_update(2, 3, 1, 2, 3), "normal", params=SILU),
        Structure(_update(0, 4, 1, 4, 3)),
        Structure(_update(2, 4, 0, 4, 3)),
        Structure(_update(3, 4, 1, 4, 0)),
        Structure(_update(33, 5, 1, 4, 65), "normal", params=SILU),
    ),
    random=_random_update,
)

RECIPES = {"causal_conv1d": CAUSAL_CONV1D, "causal_conv1d_update": CAUSAL_CONV1D_UPDATE}
