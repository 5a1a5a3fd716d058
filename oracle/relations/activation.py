"""Relations of the gated activations."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.relations.relation import Run, difference, relation
from oracle.relations.rows import VECTOR
from oracle.signature import Array


def _turned(array: Array, pairing: str) -> Array:
    """The pairs of columns in reverse order."""
    half = array.shape[-1] // 2
    columns = np.arange(2 * half)
    columns = columns.reshape((2, half) if pairing == "halves" else (half, 2))
    columns = columns[:, ::-1] if pairing == "halves" else columns[::-1]
    return np.array(array[..., columns.reshape(-1)], order="C")


@relation("silu_and_mul", "gelu_and_mul", "relu2_and_mul", "swiglu_with_limit")
def columns_are_independent(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """A pair's result is the same bits when the pairs of columns come in reverse order, in rows of whole vectors."""
    x = inputs["x"]
    if x.shape[-1] % (2 * VECTOR):
        return None
    given = {name: array for name, array in inputs.items() if array is not None}
    pairing = params.get("pairing", "halves")
    (straight,) = run({**inputs, **{name: np.array(array, order="C") for name, array in given.items()}}, params)
    (turned,) = run({**inputs, **{name: _turned(array, pairing) for name, array in given.items()}}, params)
    return difference(turned[:, ::-1], straight, "columns in reverse order")
