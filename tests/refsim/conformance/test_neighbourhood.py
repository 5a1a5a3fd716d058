"""The piece of an output around an element: in the middle where there is room, at the edge where there is not."""

import numpy as np
import pytest

from refsim.conformance.neighbourhood import COLUMNS, ROWS, around


def near(index, shape):
    got = np.arange(np.prod(shape, dtype=int), dtype=np.float64).reshape(shape)
    return around(index, got, got - 1, got + 1, got % 2 == 1)


def test_in_the_middle_of_a_matrix():
    piece = near((10, 20), (40, 50))
    assert piece.start == (8, 16)
    assert piece.got == tuple(tuple(float(50 * row + column) for column in range(16, 25)) for row in range(8, 13))
    assert piece.low[2][4] == 519
    assert piece.high[2][4] == 521
    assert piece.outside[2][:3] == (False, True, False)
    assert (len(piece.got), len(piece.got[0])) == (ROWS, COLUMNS)


@pytest.mark.parametrize(
    ("index", "shape", "start", "rows", "columns"),
    [
        ((0, 0), (40, 50), (0, 0), 5, 9),
        ((39, 49), (40, 50), (35, 41), 5, 9),
        ((1, 2), (2, 3), (0, 0), 2, 3),
        ((6,), (7,), (0,), 1, 7),
        ((60,), (70,), (56,), 1, 9),
        ((), (), (), 1, 1),
        ((2, 3, 4), (3, 4, 5), (2, 0, 0), 4, 5),
    ],
)
def test_at_edges_and_in_other_dimensions(index, shape, start, rows, columns):
    piece = near(index, shape)
    assert piece.start == start
    assert (len(piece.got), {len(row) for row in piece.got}) == (rows, {columns})
    first = np.arange(np.prod(shape, dtype=int)).reshape(shape)[start]
    assert piece.got[0][0] == first
