"""Relations of the collectives.

all_gather and all_to_all have none: they copy, and the definition judges every copy bit for bit, whichever ranks hold
what. Sums of ranks in another order are other sums, so that ranks may not change places there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.relations.relation import Run, difference, relation


@relation("all_reduce")
def ranks_agree(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """All ranks hold the same bits."""
    (out,) = run(inputs, params)
    return difference(out, np.repeat(out[:1], len(out), axis=0), "other ranks against the first")


@relation("all_reduce", "reduce_scatter")
def sums_of_opposites(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """The opposite numbers have the opposite sums."""
    x = np.array(inputs["x"], order="C")
    (straight,) = run({**inputs, "x": x}, params)
    (opposite,) = run({**inputs, "x": -x}, params)
    return difference(opposite, -straight, "sums of the opposite numbers")


@relation("all_reduce_rmsnorm")
def tokens_in_any_place(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A row's result is the same bits when each row takes the next one's place."""
    x, residual = inputs["x"], inputs["residual"]
    if len(residual) < 2:
        return None
    packed = {"x": np.array(x, order="C"), "residual": np.array(residual, order="C")}
    straight = run({**inputs, **packed}, params)
    moved = {"x": np.roll(x, 1, axis=1), "residual": np.roll(residual, 1, axis=0)}
    turned = run({**inputs, **moved}, params)
    for one, other in zip(turned, straight, strict=True):
        broken = difference(np.roll(one, -1, axis=0), other, "rows in each other's places")
        if broken:
            return broken
    return None
