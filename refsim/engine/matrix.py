"""Matrix instructions of a warp: registers of lanes to matrices, their product, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.dialect import Fragment
from refsim.engine import matrix_units
from refsim.engine.fragments import LANES, REGISTER_BYTES, positions
from refsim.engine.lane_types import lane_dtype, to_lane
from refsim.engine.lanes import LaneSet
from refsim.engine.warp import Dense, check_whole_warps

if TYPE_CHECKING:
    from refsim.engine.batch import Batch

WARPS_AT_ONCE = 64  # so that their products stay in the cache
Spec = tuple[str, tuple[Fragment, Fragment, Fragment, Fragment], bool]
NUMPY_NAME = {"tfloat32": "float32"}


def register_type(fragment: Fragment) -> str:
    """Dialect type of a register of a fragment."""
    if fragment.packed > 1 or fragment.dtype in ("float8_e4m3fn", "float8_e5m2"):
        return "uint32"
    return NUMPY_NAME.get(fragment.dtype, fragment.dtype)


def register_types(spec: Spec) -> list[str]:
    """Dialect types of the registers that an instruction takes, in order."""
    _, fragments, _ = spec
    return [
        register_type(fragment)
        for fragment in fragments[:3]
        for _ in range(len(positions(fragment).row) // fragment.packed)
    ]


def multiply(batch: Batch, lanes: LaneSet, site: int, spec: Spec, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Perform ``d = a × b + c`` for every warp of a set; the registers of d, as lane values of the set."""
    name, (of_a, of_b, of_c, of_d), saturate = spec
    dense = Dense(batch, lanes)
    check_whole_warps(batch, dense, site, name)
    registers = iter(args)
    a, b, c = (_matrix(dense, fragment, registers) for fragment in (of_a, of_b, of_c))
    columns = max(x.shape[3] for x in (a, b, c))
    a, b, c = (np.broadcast_to(x, (*x.shape[:3], columns)).reshape(*x.shape[:2], -1) for x in (a, b, c))
    unit = matrix_units.UNITS[batch.run.device.name]
    parts = [
        matrix_units.multiply(unit, of_a.dtype, a[..., some], b[..., some], c[..., some], saturate)
        for some in (slice(w, w + WARPS_AT_ONCE) for w in range(0, c.shape[2], WARPS_AT_ONCE))
    ]
    return _registers(dense, of_d, np.concatenate(parts, axis=2), columns)


def _matrix(dense: Dense, fragment: Fragment, registers: Any) -> Any:
    """``(rows, columns, warps, columns of blocks)`` from the next registers."""
    where = positions(fragment)
    kind = register_type(fragment)
    values = [dense.spread(next(registers), lane_dtype(kind)) for _ in range(len(where.row) // fragment.packed)]
    width = max(value.shape[1] for value in values)
    whole = [np.broadcast_to(value, (dense.batch.threads, width)) for value in values]
    raw = np.stack([dense.by_warp(value) for value in whole]).astype(kind)  # register, warp, lane, column
    if fragment.packed > 1:
        raw = np.ascontiguousarray(np.moveaxis(raw, 0, -1))[..., None].view(fragment.dtype)
        raw = np.moveaxis(raw.reshape(*raw.shape[:3], -1), -1, 0)
    return raw[where.slot, :, where.lane]


def _registers(dense: Dense, fragment: Fragment, matrices: Any, columns: int) -> tuple[Any, ...]:
    where = positions(fragment)
    elements = matrices[where.row, where.column]  # slot, lane, warp × column
    slots = len(where.row)
    elements = elements.reshape(slots, LANES, -1, columns).swapaxes(1, 2).reshape(slots, -1, columns)
    elements = elements[:, : dense.batch.threads]
    if fragment.packed > 1:
        pairs = np.moveaxis(elements.reshape(slots // fragment.packed, fragment.packed, *elements.shape[1:]), 1, -1)
        elements = np.ascontiguousarray(pairs).view(f"u{REGISTER_BYTES}")[..., 0]
    kind = register_type(fragment)
    return tuple(dense.collect(to_lane(np.ascontiguousarray(part), kind)) for part in elements)
