"""Which lanes of a write store the value that their cell holds already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from refsim.engine.lanes import LaneSet
    from refsim.engine.views import View


def keeps_value(lanes: LaneSet, view: View, address: Any, value: Any, shape: tuple[int, ...]) -> Any:
    """For each lane of a shadow's shape, whether the cell has the value that is about to be written there.

    A shape of one column in a set of several blocks stands for all of them: true where it holds in every block. A NaN
    is the same as a NaN.
    """
    data = view.data
    if data.ndim == 1:
        held = data.take(address, mode="wrap")
    elif shape == lanes.shape:
        held = data.reshape(-1).take(address * data.shape[1] + lanes.b, mode="wrap")
    else:
        held = data.take(np.asarray(address).reshape(-1), axis=0, mode="wrap")
    same = held == value
    if held.dtype.kind not in "biu":  # a NaN, also of the types that NumPy does not know
        same |= (held != held) & (value != value)
    same = np.asarray(same)
    if same.ndim == 2 and len(shape) == 2 and same.shape[1] > 1 == shape[1]:
        same = same.all(axis=1, keepdims=True)
    return np.broadcast_to(same, shape)
