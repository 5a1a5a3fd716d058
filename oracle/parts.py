"""Large inputs cut along dimensions on which results do not depend: the analysis of a part stays in the caches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.signature import Array, Signature

PART = 1 << 17
"""Elements of inputs above which they are cut."""


@dataclass(frozen=True)
class Cut:
    """Parts of some inputs, and along which axis of every output the results of the parts are put together."""

    parts: tuple[dict[str, Array | None], ...]
    axis: int


def cut(
    signature: Signature,
    inputs: Mapping[str, Array | None],
    sizes: Mapping[str, int],
    params: Mapping[str, Any],
    separable: tuple[str, ...],
) -> Cut | None:
    """Parts of inputs that are too large, cut along the first separable dimension that has more than one element.

    Parameters
    ----------
    separable : tuple of str
        Dimensions such that an output's element at one place of them depends on the inputs at that place only. Every
        output has each of them at the place where the first input that has it has it. ``"kv_heads heads"``: both are
        cut together, into as many parts; the first one's size divides the others'.
    """
    given = signature.given(inputs)
    count = -(-sum(array.size for array in given.values()) // PART)
    names = next((entry.split() for entry in separable if sizes[entry.split()[0]] > 1), None)
    if count < 2 or names is None:
        return None
    places = np.array_split(np.arange(sizes[names[0]]), min(count, sizes[names[0]]))
    orders = {name: signature.inputs[name].order(params) for name in given}

    def part(place: Array) -> dict[str, Array | None]:
        taken: dict[str, Array | None] = dict(inputs)
        for name, array in given.items():
            for dim in set(names).intersection(orders[name]):
                each = sizes[dim] // sizes[names[0]]
                rows = slice(int(place[0]) * each, (int(place[-1]) + 1) * each)
                taken[name] = array[(slice(None),) * orders[name].index(dim) + (rows,)]
        return taken

    axis = next(order.index(names[0]) for order in orders.values() if names[0] in order)
    return Cut(tuple(part(place) for place in places), axis)
