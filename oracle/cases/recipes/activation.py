"""Cases of the gated activations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oracle.cases.recipes.recipe import SIZES, Draw, Recipe, Structure, pick
from oracle.cases.values import Shape, draw_rows, full_significand, normal
from oracle.formats import Format
from oracle.signature import Array

FINITE = (
    "normal", "uniform", "full_significand", "one_hot", "sparse_integers", "low_entropy", "rising", "falling",
    "all_below", "offset", "subnormals", "heavy_tail", "wide", "zeros",
)  # fmt: skip


def _with_bias(x: Array, rng: np.random.Generator, shapes: Mapping[str, Shape], number_format: Format) -> Any:
    drawn = {"x": x}
    if "bias" in shapes:
        drawn["bias"] = normal(rng, shapes["bias"], number_format)
    return drawn


def _rows(name: str) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        drawn: dict[str, Array] = _with_bias(
            draw_rows(name, rng, shapes["x"], number_format, FINITE), rng, shapes, number_format
        )
        return drawn

    return draw


def _nan_gates(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Normal numbers, every third row with a NaN somewhere, the second with one as its first gate."""
    drawn = _rows("not_a_number")(rng, shapes, params, number_format)
    drawn["x"][1:2, :1] = np.nan
    return drawn


def _falling_gates(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Gates from 0 down to -12 before values with full significands: a gate's small results keep their digits."""
    rows, width = shapes["x"]
    x = full_significand(rng, shapes["x"], number_format)
    gates = -12.0 * rng.random((rows, width // 2))
    if params["pairing"] == "halves":
        x[:, : width // 2] = gates
    else:
        x[:, 0::2] = gates
    drawn: dict[str, Array] = _with_bias(x, rng, shapes, number_format)
    return drawn


def _at_the_limit(
    rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
) -> dict[str, Array]:
    """Gates and values around the limits, at them, and far beyond them on both sides."""
    limit = params.get("limit") or 7.0
    x = limit * rng.choice([-4.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 4.0], shapes["x"])
    drawn: dict[str, Array] = _with_bias(x, rng, shapes, number_format)
    return drawn


def _dims(rows: int, width: int) -> dict[str, int]:
    return {"rows": rows, "width": width}


def _random(options: Mapping[str, tuple[Any, ...]]) -> Callable[[np.random.Generator], Structure]:
    def random(rng: np.random.Generator) -> Structure:
        dims = _dims(int(pick(rng, SIZES[:11])), 2 * int(pick(rng, SIZES)))
        params = {name: pick(rng, values) for name, values in options.items()}
        absent = ("bias",) if rng.random() < 0.5 else ()
        return Structure(dims, params={name: value for name, value in params.items() if value}, absent=absent)

    return random


def _recipe(options: Mapping[str, tuple[Any, ...]], variations: tuple[dict[str, Any], ...]) -> Recipe:
    """The cases of one activation; ``variations`` are the parameters that it is to be seen with, in turn."""

    def turn(number: int) -> dict[str, Any]:
        return variations[number % len(variations)]

    bare = ("bias",)
    return Recipe(
        classes={
            **{name: _rows(name) for name in (*FINITE, "infinities", "mixed")},
            "not_a_number": _nan_gates,
            "falling_gates": _falling_gates,
            "at_the_limit": _at_the_limit,
        },
        curated=(
            Structure(_dims(6, 96), "normal", absent=bare),
            Structure(_dims(5, 64), "falling_gates", "padded", absent=bare),
            Structure(_dims(7, 66), "at_the_limit", params=turn(1)),
            Structure(_dims(4, 34), "normal", "transposed", turn(2)),
            Structure(_dims(5, 62), "at_the_limit", "strided", turn(3), bare),
            Structure(_dims(4, 130), "wide", "misaligned", absent=bare),
            Structure(_dims(3, 94), "all_below", params=turn(1), absent=bare),
            Structure(_dims(9, 32), "full_significand", params=turn(2), absent=bare),
            Structure(_dims(5, 48), "normal", params=turn(4)),
            Structure(_dims(8, 26), "one_hot", "padded", absent=bare),
            Structure(_dims(5, 40), "sparse_integers", params=turn(1), absent=bare),
            Structure(_dims(4, 64), "low_entropy", "strided"),
            Structure(_dims(4, 66), "rising", "transposed", turn(3), bare),
            Structure(_dims(4, 66), "falling", params=turn(5)),
            Structure(_dims(3, 128), "offset", "misaligned", absent=bare),
            Structure(_dims(4, 34), "subnormals", absent=bare),
            Structure(_dims(6, 126), "heavy_tail", "padded", turn(2), bare),
            Structure(_dims(13, 32), "mixed", params=turn(5), absent=bare),
            Structure(_dims(3, 16), "zeros", absent=bare),
            Structure(_dims(7, 32), "not_a_number", params=turn(1), absent=bare),
            Structure(_dims(7, 30), "infinities", "strided", turn(3), bare),
            Structure(_dims(3, 256), "uniform", params=turn(4), absent=bare),
            Structure(_dims(2, 2), "normal"),
            Structure(_dims(1, 2), "full_significand", params=turn(1), absent=bare),
            Structure(_dims(3, 0)),
            Structure(_dims(0, 6), params=turn(1), absent=bare),
            Structure(_dims(2, 2062), "normal", absent=bare),
            Structure(_dims(257, 6), "normal", "transposed", turn(2)),
        ),
        random=_random(options),
    )


PAIRINGS = ("halves", "interleaved")
HALVES, INTERLEAVED, TWICE = {"pairing": "halves"}, {"pairing": "interleaved"}, {"rounding": "twice"}
LIMIT, TANH = {"limit": 3.0}, {"approximate": "tanh"}

RECIPES = {
    "silu_and_mul": _recipe(
        {"pairing": PAIRINGS, "limit": (None, 0.5, 7.0), "rounding": ("once", "twice")},
        ({}, LIMIT, INTERLEAVED, {**LIMIT, **INTERLEAVED}, TWICE, {**TWICE, **INTERLEAVED}),
    ),
    "gelu_and_mul": _recipe(
        {"pairing": PAIRINGS, "approximate": ("none", "tanh"), "rounding": ("once", "twice")},
        ({}, TANH, INTERLEAVED, {**TANH, **INTERLEAVED}, TWICE, {**TWICE, **TANH}),
    ),
    "relu2_and_mul": _recipe(
        {"pairing": PAIRINGS, "rounding": ("once", "twice")},
        ({}, INTERLEAVED, TWICE, {}, TWICE, {**TWICE, **INTERLEAVED}),
    ),
    "swiglu_with_limit": _recipe(
        {"pairing": PAIRINGS, "alpha": (1.702, 1.0), "limit": (7.0, 0.5)},
        ({}, {"alpha": 1.0}, HALVES, {"limit": 3.0}, {}, {**HALVES, "limit": 3.0, "alpha": 1.0}),
    ),
}
