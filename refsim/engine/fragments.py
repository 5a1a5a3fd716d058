"""Where the elements of matrix fragments lie in the lanes of a warp.

The layouts are those of ``mma.sync`` in the PTX ISA ("Matrix Fragments for mma.m16n8k16" and its siblings), which
follow one rule for all element types: lane ``4 g + t`` holds, of each 8 × 4-register piece of A or B, row (or column)
``g`` and the elements along the depth that fill its ``t``-th register; of the result, two neighbours of row ``g``.
Larger matrices are pieces after one another, rows before depth.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from refsim.dialect import Fragment
from refsim.engine.lanes import Ints

LANES = 32
REGISTER_BYTES = 4
ELEMENT_BYTES = {
    "float16": 2, "bfloat16": 2, "tfloat32": 4, "float32": 4, "float64": 8, "int8": 1, "uint8": 1, "int32": 4,
    "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Positions:
    """Row and column of each element: ``[slot, lane]``, slots being the elements of a lane in order.

    `slot` and `lane` say where each element is found: ``[row, column]``.
    """

    row: Ints
    column: Ints
    slot: Ints
    lane: Ints


@cache
def positions(fragment: Fragment) -> Positions:
    """Positions of the elements of a fragment."""
    along = max(1, REGISTER_BYTES // ELEMENT_BYTES[fragment.dtype])
    build = _result if fragment.role == "c" else _operand
    row, column = build(fragment, along)
    slot = np.zeros((fragment.rows, fragment.columns), np.int64)
    lane = np.zeros_like(slot)
    slots, lanes = np.indices(row.shape)
    slot[row, column], lane[row, column] = slots, lanes
    return Positions(row, column, slot, lane)


def _operand(fragment: Fragment, along: int) -> tuple[Ints, Ints]:
    """A: outer dimension the rows; B: the columns. Pieces of 8 × depth, in pairs of 8 rows for A."""
    outer, depth = (fragment.rows, fragment.columns) if fragment.role == "a" else (fragment.columns, fragment.rows)
    high = 2 if fragment.role == "a" and outer > 8 else 1
    group, thread = np.divmod(np.arange(LANES), 4)
    outers, depths = [], []
    for first in range(0, outer, 8 * high):
        for k in range(0, depth, 4 * along):
            for half in range(high):
                for element in range(along):
                    outers.append(first + 8 * half + group)
                    depths.append(k + along * thread + element)
    o, d = np.array(outers), np.array(depths)
    return (o, d) if fragment.role == "a" else (d, o)


def _result(fragment: Fragment, along: int) -> tuple[Ints, Ints]:
    """Pieces of 16 (or 8) × 8."""
    group, thread = np.divmod(np.arange(LANES), 4)
    high = 2 if fragment.rows > 8 else 1
    rows, columns = [], []
    for first in range(0, fragment.rows, 8 * high):
        for left in range(0, fragment.columns, 8):
            for half in range(high):
                for element in range(2):
                    rows.append(first + 8 * half + group)
                    columns.append(left + 2 * thread + element)
    return np.array(rows), np.array(columns)
