"""Relations of the sums.

max, argmax, topk and greedy have none: the definition says which element it is, bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.formats import cast, format_of
from oracle.relations.relation import Run, difference, relation
from oracle.signature import Array

# Both runs of a relation are given arrays of one layout: a kernel may add up another one in another order.

LEAST = 2.0**-100  # of numbers that are larger no partial sum is subnormal in float32, which kernels may flush


def _stored(values: Array, like: Array) -> Array:
    return np.array(cast(values, like.dtype.name), order="C")


@relation("sum")
def sum_of_opposites(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """The sum of the opposite numbers is the opposite sum."""
    x = np.array(inputs["x"], order="C")
    (straight,) = run({**inputs, "x": x}, params)
    (opposite,) = run({**inputs, "x": -x}, params)
    return difference(opposite, -straight, "sum of the opposite numbers")


@relation("sum")
def sum_scales(run: Run, inputs: dict[str, Any], params: dict[str, Any], rng: np.random.Generator) -> Any:
    """The sum of numbers times a power of two is the sum times that power, as far as neither leaves the range."""
    x = np.array(inputs["x"], order="C")
    wide = np.abs(x.astype(np.float64))
    total = wide.sum()
    if not 0 < total < np.inf or wide[wide > 0].min() < LEAST:
        return None
    limit = min(format_of(x.dtype).max, format_of("float32").max) if x.dtype != np.float64 else format_of(x.dtype).max
    scale = 2.0 ** np.floor(np.log2(limit / total) - 2)
    if scale < 1:
        return None
    (straight,) = run({**inputs, "x": x}, params)
    (scaled,) = run({**inputs, "x": _stored(x.astype(np.float64) * scale, x)}, params)
    return difference(scaled, _stored(straight.astype(np.float64) * scale, x), f"sum of the numbers times {scale:g}")
