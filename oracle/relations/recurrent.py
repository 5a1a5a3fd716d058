"""Relations of operators with a state."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.relations.relation import Run, difference, relation


@relation("causal_conv1d_update", "causal_conv1d_varlen", "selective_state_update", "selective_scan_varlen")
def steps_in_any_slot(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A sequence's result is the same bits when its state lies one slot further."""
    state, slots = inputs["state"], inputs["slots"]
    if len(state) < 2:
        return None
    straight = run({**inputs, "state": np.array(state, order="C")}, params)
    moved = np.where(slots < 0, slots, (slots + 1) % len(state)).astype(slots.dtype)
    turned = run({**inputs, "state": np.roll(state, 1, axis=0), "slots": moved}, params)
    return difference(turned[0], straight[0], "out with states one slot further") or difference(
        np.roll(turned[1], -1, axis=0), straight[1], "states one slot further"
    )


PER_SEQUENCE = {
    "gated_delta_rule": ("q", "k", "v", "g", "beta", "state"),
    "selective_scan": ("x", "dt", "b", "c", "state", "z"),
}
"""Inputs whose first axis holds the sequences."""


@relation(*PER_SEQUENCE)
def sequences_in_any_place(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A sequence's result is the same bits when each sequence takes the next one's place."""
    names = PER_SEQUENCE["gated_delta_rule" if "beta" in inputs else "selective_scan"]
    moved = {name: inputs[name] for name in names if inputs.get(name) is not None}
    if len(inputs["state"]) < 2:
        return None
    straight = run({**inputs, **{name: np.array(array, order="C") for name, array in moved.items()}}, params)
    turned = run({**inputs, **{name: np.roll(array, 1, axis=0) for name, array in moved.items()}}, params)
    for one, other in zip(turned, straight, strict=True):
        broken = difference(np.roll(one, -1, axis=0), other, "sequences in each other's places")
        if broken:
            return broken
    return None
