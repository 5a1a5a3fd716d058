"""Cases of operators whose sequences have their states in slots: packed convolutions, and one step of a scan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from oracle.cases.recipes.recipe import Draw, Recipe, Structure, pick
from oracle.cases.recipes.recurrent import CLASSES, LAYOUT_TURN, drawn_slots, full_taps, selecting
from oracle.cases.recipes.recurrent_states import standing
from oracle.cases.values import Shape, draw_rows, normal
from oracle.formats import Format
from oracle.signature import Array


def _boundaries(rng: np.random.Generator, count: int, tokens: int) -> Array:
    """Edges of sequences, some of them empty or short."""
    edges = np.sort(rng.integers(0, tokens + 1, count))
    edges[:1], edges[-1:] = 0, tokens
    return edges


def _packed_draw(name: str, holes: float = 0.25, poisoned: bool = False) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        (dim, tokens), (kept, _, past), (batch,) = shapes["x"], shapes["state"], shapes["slots"]
        edges = _boundaries(rng, batch + 1, tokens)
        if not batch:
            edges = np.zeros(1, np.int64)
        inputs = {
            "x": draw_rows(name, rng, (dim, tokens), number_format, CLASSES),
            "state": draw_rows(name, rng, (kept, dim, past), number_format, CLASSES),
            "weight": normal(rng, shapes["weight"], number_format),
            "cu_seqlens": edges,
            "slots": drawn_slots(rng, batch, kept, holes),
        }
        if "fresh" in shapes:
            inputs["fresh"] = (np.arange(batch) % 2 == 0).astype(np.int64)
        if "bias" in shapes:
            inputs["bias"] = normal(rng, shapes["bias"], number_format)
        if poisoned:  # states of sequences that begin, and of slots that nobody has; tokens of padding
            read = np.zeros(kept, np.bool_)
            for s, slot in enumerate(inputs["slots"]):
                if slot < 0:
                    inputs["x"][:, edges[s] : edges[s + 1]] = np.nan
                elif "fresh" not in inputs or not inputs["fresh"][s]:
                    read[slot] = True
            inputs["state"][~read] = np.nan
        return inputs

    return draw


def _packed(batch: int, dim: int, tokens: int, width: int, slots: int) -> dict[str, int]:
    sizes = {"batch": batch, "boundaries": batch + 1, "dim": dim, "tokens": tokens}
    return {**sizes, "width": width, "past": width - 1, "slots": slots}


SILU = {"activation": "silu"}
ABSENT: tuple[tuple[str, ...], ...] = ((), ("bias",), ("fresh",), ("bias", "fresh"))


def _random_packed(rng: np.random.Generator) -> Structure:
    batch = int(pick(rng, (1, 2, 5)))
    tokens, width = int(pick(rng, (0, 1, 7, 16, 33, 65))), int(pick(rng, (1, 2, 4, 4, 5)))
    dims = _packed(batch, int(pick(rng, (1, 3, 16))), tokens, width, batch + int(pick(rng, (0, 1, 3))))
    return Structure(dims, params=pick(rng, ({}, SILU)), absent=pick(rng, ABSENT))


CAUSAL_CONV1D_VARLEN = Recipe(
    {
        **{name: _packed_draw(name) for name in (*CLASSES, "mixed")},
        "selecting": selecting(_packed_draw("full_significand")),
        "full_taps": full_taps(_packed_draw("full_significand")),
        "nan_unread": _packed_draw("normal", poisoned=True),
    },
    curated=(
        Structure(_packed(4, 8, 33, 4, 6), "normal", params=SILU),
        Structure(_packed(5, 5, 41, 4, 5), "nan_unread", "padded"),
        Structure(_packed(3, 7, 29, 4, 3), "selecting", "strided", absent=("fresh",)),
        Structure(_packed(6, 4, 13, 4, 8), "full_taps", "transposed", SILU, ("bias",)),
        Structure(_packed(7, 3, 5, 5, 9), "normal", "misaligned", absent=("fresh",)),
        *(
            Structure(
                _packed(2 + at % 3, 3 + at % 4, 17 + 2 * at, 4, 5 + at % 2), name, LAYOUT_TURN[at % 5],
                (SILU, {})[at % 2], ABSENT[at % 4],
            )
            for at, name in enumerate((*CLASSES[1:], "mixed"))
        ),
        Structure(_packed(1, 1, 1, 1, 1), "normal", absent=("bias", "fresh")),
        Structure(_packed(1, 1, 2, 2, 1), "normal", absent=("bias",)),
        Structure(_packed(0, 2, 0, 4, 3)),
        Structure(_packed(2, 3, 0, 4, 2), absent=("fresh",)),
        Structure(_packed(3, 2, 257, 4, 4), "normal", params=SILU),
        Structure(_packed(2, 129, 9, 4, 2), "normal"),
    ),
    random=_random_packed,
)  # fmt: skip


def _step_draw(name: str, rate: float = 1.0, state_class: str = "normal", poisoned: bool = False) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        kept, batch = shapes["state"][0], shapes["slots"][0]
        inputs: dict[str, Array] = {
            "x": draw_rows(name, rng, shapes["x"], number_format, CLASSES),
            "dt": normal(rng, shapes["dt"], number_format) if params["dt_softplus"] else rng.random(shapes["dt"]),
            "a": -rate * (0.1 + rng.random(shapes["a"])),
            "slots": drawn_slots(rng, batch, kept, 0.25),
        }
        for other in ("b", "c", "d", "z"):
            if other in shapes:
                inputs[other] = normal(rng, shapes[other], number_format)
        if "dt_bias" in shapes:
            inputs["dt_bias"] = rng.random(shapes["dt_bias"])
        state = draw_rows(state_class, rng, shapes["state"], number_format)
        if poisoned:
            state[~np.isin(np.arange(kept), inputs["slots"])] = np.nan
            inputs["x"][inputs["slots"] < 0] = np.nan
        inputs["state"] = state.astype((np.float32, ml_dtypes.bfloat16, np.float16)[int(rng.integers(3))])
        return inputs

    return draw


def _step(batch: int, groups: int, heads: int, head_dim: int, n: int, slots: int) -> dict[str, int]:
    sizes = {"batch": batch, "groups": groups, "heads": groups * heads, "head_dim": head_dim}
    return {**sizes, "n": n, "slots": slots}


SOFT = {"dt_softplus": True}
LEFT_OUT: tuple[tuple[str, ...], ...] = ((), ("z",), ("d", "dt_bias"), ("d", "dt_bias", "z"))


def _random_step(rng: np.random.Generator) -> Structure:
    batch = int(pick(rng, (1, 2, 5)))
    dims = _step(
        batch, int(pick(rng, (1, 2))), int(pick(rng, (1, 2, 3))), int(pick(rng, (1, 7, 16))),
        int(pick(rng, (1, 5, 16))), batch + int(pick(rng, (0, 1, 3))),
    )  # fmt: skip
    return Structure(dims, params=pick(rng, ({}, SOFT)), absent=pick(rng, LEFT_OUT))


SELECTIVE_STATE_UPDATE = Recipe(
    {
        **{name: _step_draw(name) for name in (*CLASSES, "mixed")},
        "standing": standing(_step_draw("sparse_integers")),
        "forgetting": _step_draw("normal", 60.0),
        "states_full": _step_draw("normal", 1.0, "full_significand"),
        "nan_unread": _step_draw("normal", poisoned=True),
    },
    curated=(
        Structure(_step(4, 2, 2, 8, 16, 6), "normal", params=SOFT),
        Structure(_step(5, 2, 3, 5, 7, 5), "nan_unread", "padded"),
        Structure(_step(3, 1, 2, 9, 15, 4), "standing", "strided", absent=LEFT_OUT[3]),
        Structure(_step(3, 2, 1, 8, 16, 3), "forgetting", "transposed", SOFT),
        Structure(_step(4, 2, 2, 4, 16, 5), "states_full", "misaligned", absent=("z",)),
        *(
            Structure(
                _step(2 + at % 3, 1 + at % 2, 2, 4 + at % 5, 8 + at % 9, 5 + at % 2), name, LAYOUT_TURN[at % 5],
                (SOFT, {})[at % 2], LEFT_OUT[at % 4],
            )
            for at, name in enumerate((*CLASSES[1:], "mixed"))
        ),
        Structure(_step(1, 1, 1, 1, 1, 1), "normal", absent=LEFT_OUT[3]),
        Structure(_step(2, 1, 2, 3, 3, 3), "states_full", params=SOFT),
        Structure(_step(0, 1, 2, 3, 4, 2)),
        Structure(_step(2, 1, 2, 3, 0, 2), absent=("z",)),
        Structure(_step(33, 1, 1, 2, 4, 65), "normal", params=SOFT),
        Structure(_step(1, 1, 1, 129, 8, 1), "normal"),
    ),
    random=_random_step,
)  # fmt: skip


def _scan_draw(name: str, rate: float = 1.0, poisoned: bool = False) -> Draw:
    def draw(
        rng: np.random.Generator, shapes: Mapping[str, Shape], params: Mapping[str, Any], number_format: Format
    ) -> dict[str, Array]:
        tokens, kept, batch = shapes["x"][1], shapes["state"][0], shapes["slots"][0]
        edges = _boundaries(rng, batch + 1, tokens) if batch else np.zeros(1, np.int64)
        inputs: dict[str, Array] = {
            "x": draw_rows(name, rng, shapes["x"], number_format, CLASSES),
            "dt": normal(rng, shapes["dt"], number_format) if params["dt_softplus"] else rng.random(shapes["dt"]),
            "a": -rate * (0.1 + rng.random(shapes["a"])),
            "cu_seqlens": edges,
            "slots": drawn_slots(rng, batch, kept, 0.25),
        }
        for other in ("b", "c", "d", "z"):
            if other in shapes:
                inputs[other] = normal(rng, shapes[other], number_format)
        if "dt_bias" in shapes:
            inputs["dt_bias"] = rng.random(shapes["dt_bias"])
        if "fresh" in shapes:
            inputs["fresh"] = (np.arange(batch) % 2 == 0).astype(np.int64)
        state = normal(rng, shapes["state"], number_format)
        if poisoned:
            inputs["x"] = np.array(inputs["x"])
            read = np.zeros(kept, np.bool_)
            for s, slot in enumerate(inputs["slots"]):
                if slot < 0:
                    inputs["x"][:, edges[s] : edges[s + 1]] = np.nan
                elif "fresh" not in inputs or not inputs["fresh"][s]:
                    read[slot] = True
            state[~read] = np.nan
        inputs["state"] = state.astype((np.float32, ml_dtypes.bfloat16, np.float16)[int(rng.integers(3))])
        return inputs

    return draw


def _scan(batch: int, dim: int, tokens: int, n: int, slots: int) -> dict[str, int]:
    return {"batch": batch, "boundaries": batch + 1, "dim": dim, "tokens": tokens, "n": n, "slots": slots}


SCAN_ABSENT: tuple[tuple[str, ...], ...] = ((), ("z",), ("d", "fresh"), ("d", "dt_bias", "z", "fresh"))


def _random_scan(rng: np.random.Generator) -> Structure:
    batch = int(pick(rng, (1, 2, 3)))
    dims = _scan(
        batch, int(pick(rng, (1, 3, 8))), int(pick(rng, (1, 3, 7, 13))), int(pick(rng, (1, 5, 16))),
        batch + int(pick(rng, (0, 1, 3))),
    )  # fmt: skip
    return Structure(dims, params=pick(rng, ({}, SOFT)), absent=pick(rng, SCAN_ABSENT))


SELECTIVE_SCAN_VARLEN = Recipe(
    {
        **{name: _scan_draw(name) for name in (*CLASSES, "mixed")},
        "forgetting": _scan_draw("normal", 60.0),
        "nan_unread": _scan_draw("normal", poisoned=True),
    },
    curated=(
        Structure(_scan(3, 8, 13, 16, 5), "normal", params=SOFT),
        Structure(_scan(4, 5, 11, 7, 4), "nan_unread", "padded"),
        Structure(_scan(3, 6, 9, 15, 3), "forgetting", "strided", SOFT),
        Structure(_scan(5, 4, 7, 16, 6), "normal", "transposed", absent=SCAN_ABSENT[3]),
        Structure(_scan(3, 3, 5, 8, 4), "nan_unread", "misaligned", SOFT, ("fresh",)),
        *(
            Structure(
                _scan(2 + at % 2, 3 + at % 4, 5 + at % 6, 8 + at % 9, 4 + at % 2), name, LAYOUT_TURN[at % 5],
                (SOFT, {})[at % 2], SCAN_ABSENT[at % 4],
            )
            for at, name in enumerate((*CLASSES[1:], "mixed"))
        ),
        Structure(_scan(1, 1, 1, 1, 1), "normal", absent=SCAN_ABSENT[3]),
        Structure(_scan(1, 2, 3, 3, 2), "normal", params=SOFT),
        Structure(_scan(0, 3, 0, 4, 2)),
        Structure(_scan(2, 3, 0, 4, 2), absent=("z",)),
        Structure(_scan(2, 3, 4, 0, 2), absent=("z",)),
        Structure(_scan(1, 129, 3, 4, 1), "normal"),
    ),
    random=_random_scan,
)  # fmt: skip

RECIPES = {
    "causal_conv1d_varlen": CAUSAL_CONV1D_VARLEN,
    "selective_state_update": SELECTIVE_STATE_UPDATE,
    "selective_scan_varlen": SELECTIVE_SCAN_VARLEN,
}
