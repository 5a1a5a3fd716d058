"""Relations of the normalisations."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.relations.relation import Run, difference, relation


@relation("rmsnorm")
def rows_are_independent(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A row's result is the same bits when the rows come in reverse order."""
    x = inputs["x"]
    if len(x) < 2:
        return None
    (straight,) = run(inputs, params)
    (turned,) = run({**inputs, "x": np.ascontiguousarray(x[::-1])}, params)
    return difference(turned[::-1], straight, "rows in reverse order")
