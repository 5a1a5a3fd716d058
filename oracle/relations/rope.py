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
