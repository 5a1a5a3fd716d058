"""What stands around one element of an output: a small piece of its last two axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from refsim.conformance.verdicts import Neighbourhood

ROWS = 5
COLUMNS = 9


def around(
    index: tuple[int, ...],
    got: np.ndarray[Any, Any],
    low: np.ndarray[Any, Any],
    high: np.ndarray[Any, Any],
    outside: np.ndarray[Any, Any],
) -> Neighbourhood:
    """At most `ROWS` × `COLUMNS` elements of arrays of one shape, with the element at ``index`` in their middle."""
    shape = (1, 1, *got.shape)[-2:]
    row, column = (0, 0, *index)[-2:]
    rows, columns = _span(row, shape[0], ROWS), _span(column, shape[1], COLUMNS)
    leading = index[:-2]

    def cut(array: np.ndarray[Any, Any], kind: type) -> tuple[tuple[Any, ...], ...]:
        plane = array[leading].reshape(shape)[rows, columns]
        return tuple(tuple(kind(cell) for cell in line) for line in plane)

    start = (*leading, rows.start, columns.start)[-len(index) :] if index else ()
    return Neighbourhood(start, cut(got, float), cut(low, float), cut(high, float), cut(outside, bool))


def _span(at: int, size: int, most: int) -> slice:
    """At most ``most`` indices of an axis, ``at`` as close to their middle as the ends allow."""
    start = max(0, min(at - most // 2, size - most))
    return slice(start, min(size, start + most))
