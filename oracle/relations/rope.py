"""Relations of rotary position embedding."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.relations.relation import Run, difference, relation


@relation("rope")
def tokens_are_independent(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A token's result is the same bits when each token takes the next one's place."""
    x, positions = inputs["x"], inputs["positions"]
    if len(x) < 2:
        return None
    (straight,) = run(inputs, params)
    moved = {"x": np.roll(x, 1, axis=0), "positions": np.roll(positions, 1)}
    (turned,) = run({**inputs, **moved}, params)
    return difference(np.roll(turned, -1, axis=0), straight, "tokens in each other's places")


@relation("rope")
def heads_are_independent(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A head's result is the same bits when the heads come in reverse order."""
    x = inputs["x"]
    if x.shape[1] < 2:
        return None
    (straight,) = run(inputs, params)
    (turned,) = run({**inputs, "x": np.ascontiguousarray(x[:, ::-1])}, params)
    return difference(turned[:, ::-1], straight, "heads in reverse order")


@relation("rope_frequencies", "llama3_frequencies", "longrope_frequencies")
def pairs_in_any_place(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A pair's frequency is the same bits when each pair takes the next one's place."""
    (straight, *_) = run({name: np.array(array) for name, array in inputs.items()}, params)
    (turned, *_) = run({name: np.roll(array, 1) for name, array in inputs.items()}, params)
    return difference(np.roll(turned, -1), straight, "pairs in each other's places")


@relation("yarn_frequencies", "longrope_frequencies")
def frequencies_double(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """Frequencies that are 16 times as large have results that are 16 times as large, and the same magnitude."""
    straight, magnitude = run(inputs, params)
    kind = inputs["frequencies"].dtype.type
    larger, other = run({**inputs, "frequencies": inputs["frequencies"] * kind(16)}, params)
    return difference(larger, straight * kind(16), "16 times the frequencies") or difference(
        other, magnitude, "magnitude of 16 times the frequencies"
    )
