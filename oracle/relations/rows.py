"""Relations of everything that works row by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.relations.relation import Run, difference, relation

VECTOR = 16  # rows of a multiple of this many elements all begin at a multiple of a vector, or none does
ROW_INPUTS = ("x", "residual")  # inputs that hold one row each per row of the result


@relation("rmsnorm", "softmax")
def rows_are_independent(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A row's result is the same bits when the rows come in reverse order, where rows are whole vectors.

    A kernel that reads a row of any length in vectors adds it up by where in memory the row begins.
    """
    x = inputs["x"]
    if x.ndim < 2 or len(x) < 2 or x.shape[-1] % VECTOR:
        return None
    rows = {name: inputs[name] for name in ROW_INPUTS if inputs.get(name) is not None}
    straight = run({**inputs, **{name: np.array(array, order="C") for name, array in rows.items()}}, params)
    turned = run({**inputs, **{name: np.array(array[::-1], order="C") for name, array in rows.items()}}, params)
    for one, other in zip(turned, straight, strict=True):
        broken = difference(one[::-1], other, "rows in reverse order")
        if broken:
            return broken
    return None
