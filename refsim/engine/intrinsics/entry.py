"""A function on flat arrays, made one on lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from refsim.engine.intrinsics.conversion import CARRIER, Lane

_CARRIED_AS_IS = frozenset(name for name in CARRIER if "float" in name or "complex" in name)  # no Python number


@dataclass(frozen=True)
class Entry:
    """A function: name, operand types, result types, implementation, error in ulps.

    The implementation takes flat arrays of one shape, as lanes carry the types, and returns one, or a tuple of them.
    """

    name: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    function: Callable[..., Any]
    ulps: float

    def __call__(self, *values: Lane) -> Lane:
        """Apply to lane values."""
        if len(values) != len(self.operands):
            raise TypeError(f"{self.name} takes {len(self.operands)} operands, got {len(values)}")
        uniform = not any(isinstance(value, np.ndarray) for value in values)
        arrays = [np.asarray(value, CARRIER[kind]) for value, kind in zip(values, self.operands, strict=True)]
        whole = np.broadcast_arrays(*arrays)
        shape = whole[0].shape
        found = self.function(*(np.ascontiguousarray(array).reshape(-1) for array in whole))
        parts = found if isinstance(found, tuple) else (found,)
        answers = tuple(_as_lane(part, kind, shape, uniform) for part, kind in zip(parts, self.results, strict=True))
        return answers if len(answers) > 1 else answers[0]


def _as_lane(part: Any, kind: str, shape: tuple[int, ...], uniform: bool) -> Lane:
    array = np.asarray(part).astype(CARRIER[kind], copy=False)
    if not uniform:
        return array.reshape(shape)
    return array[0] if kind in _CARRIED_AS_IS else array[0].item()
