"""Atomic read-modify-write operations of many lanes, applied in lane order (thread after thread)."""

from __future__ import annotations

from typing import Any

import numpy as np

from refsim.engine.lane_types import NARROW, lane_dtype, to_lane
from refsim.engine.lanes import LaneSet

FEW_CELLS = 64


# Operations that a NumPy ufunc performs, so that a run on one cell is `ufunc.accumulate`.
UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "max": np.fmax,
    "min": np.fmin,
    "nanmax": np.fmax,
    "nanmin": np.fmin,
}

FLUSHING = {"add": "add_flushing", "sub": "sub_flushing"}
"""What an operation becomes where a device flushes subnormal float32 numbers to zero."""
PLAIN = {flushing: plain for plain, flushing in FLUSHING.items()}
SUBNORMAL = np.float32(2.0**-126)
FAR_FROM_SUBNORMAL = np.float32(2.0**-102)
"""All numbers at least this large are multiples of 2**-125, and so are their sums: none of these is subnormal."""


def apply(lanes: LaneSet, data: Any, address: Any, op: str, args: tuple[Any, ...], dtype: str, used: bool) -> Any:
    """Apply `op` to ``data[address]`` once for each lane.

    Parameters
    ----------
    data
        One-dimensional storage, changed in place.
    address
        Lane value: index into `data`.
    args
        Lane values: the operand; for ``cas`` the expected and the new value.
    used
        Whether the old values are wanted.

    Returns
    -------
    Old values, one per lane, as the engine carries them; None if not used.
    """
    cells = np.broadcast_to(np.asarray(address), lanes.shape).reshape(-1)
    kind = data.dtype.type
    operands = [
        np.broadcast_to(np.asarray(value), lanes.shape).reshape(-1).astype(data.dtype)
        if isinstance(value, np.ndarray)
        else np.full(lanes.size, kind(value) if op != "sub" or kind is not np.uint64 else value, data.dtype)
        for value in args
    ]
    if op in PLAIN and _never_subnormal(operands[0]) and _never_subnormal(data[cells]):
        op = PLAIN[op]
    ufunc = UFUNCS.get(op)
    if ufunc is not None and not used:
        ufunc.at(data, cells, operands[0])
        return None
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sorted_operands = [operand[order] for operand in operands]
    old = np.empty(lanes.size, data.dtype)
    ends = np.r_[starts[1:], lanes.size]
    if len(starts) == lanes.size:
        old[...] = data[ordered]
        data[ordered] = _combine(op, old, sorted_operands)
    elif ufunc is not None and len(starts) <= FEW_CELLS:
        for start, end in zip(starts, ends, strict=True):
            cell = ordered[start]
            chain = np.concatenate([data[cell : cell + 1], sorted_operands[0][start:end]])
            running = ufunc.accumulate(chain, dtype=data.dtype)
            old[start:end] = running[:-1]
            data[cell] = running[-1]
    elif op == "exch":
        old[1:] = sorted_operands[0][:-1]
        old[starts] = data[ordered[starts]]
        data[ordered[starts]] = sorted_operands[0][ends - 1]
    elif len(starts) == 1:
        _one_cell(op, data, int(ordered[0]), sorted_operands, old)
    else:
        # one round per occurrence of a cell; in each round all cells are distinct
        rank = np.arange(lanes.size) - np.repeat(starts, ends - starts)
        for turn in range(int(rank.max()) + 1):
            now = np.flatnonzero(rank == turn)
            old[now] = data[ordered[now]]
            data[ordered[now]] = _combine(op, old[now], [operand[now] for operand in sorted_operands])
    if not used:
        return None
    result = np.empty_like(old)
    result[order] = old
    return (
        to_lane(result.reshape(lanes.shape), dtype)
        if dtype in NARROW
        else result.reshape(lanes.shape).astype(lane_dtype(dtype), copy=False)
    )


def _one_cell(op: str, data: Any, cell: int, operands: list[Any], old: Any) -> None:
    current = data[cell]
    if op == "cas":
        start = 0
        while start < len(old):  # one round for each swap that changes the cell
            swaps = np.flatnonzero((operands[0][start:] == current) & (operands[1][start:] != current))
            end = start + int(swaps[0]) + 1 if len(swaps) else len(old)
            old[start:end] = current
            current = operands[1][end - 1] if len(swaps) else current
            start = end
        data[cell] = current
        return
    for position in range(len(old)):
        old[position] = current
        here = slice(position, position + 1)
        current = _combine(op, old[here], [operand[here] for operand in operands])[0]
    data[cell] = current


def _combine(op: str, old: Any, operands: list[Any]) -> Any:
    """New values of distinct cells."""
    if op in UFUNCS:
        return UFUNCS[op](old, operands[0])
    if op in PLAIN:
        return _flushed(UFUNCS[PLAIN[op]](_flushed(old), _flushed(operands[0])))
    if op == "exch":
        return operands[0]
    if op == "cas":
        return np.where(old == operands[0], operands[1], old)
    if op == "inc":
        return np.where(old >= operands[0], np.zeros_like(old), old + old.dtype.type(1))
    if op == "dec":
        return np.where((old == 0) | (old > operands[0]), operands[0], old - old.dtype.type(1))
    raise AssertionError(f"unknown atomic operation {op}")


def _never_subnormal(values: Any) -> bool:
    """True if no sum of such numbers can be subnormal."""
    return bool(((np.abs(values) >= FAR_FROM_SUBNORMAL) | (values == 0)).all())


def _flushed(values: Any) -> Any:
    """float32 numbers, with a zero of the same sign for a subnormal one."""
    return np.where(np.abs(values) < SUBNORMAL, np.copysign(np.float32(0), values), values)
