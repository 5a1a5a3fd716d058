"""Warp-wide operations: shuffles, votes, matches, masks, and the check that the named lanes are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.engine.lane_types import lane_dtype, poison
from refsim.engine.lanes import LaneSet

if TYPE_CHECKING:
    from refsim.engine.batch import Batch


class Dense:
    """A set's view of its warps, over all threads × blocks (or one column where blocks do not differ).

    `present` says which threads take part; values are spread out to that shape.
    """

    def __init__(self, batch: Batch, lanes: LaneSet) -> None:
        self.batch = batch
        self.lanes = lanes
        self.size = batch.run.device.warp_size
        self.regular = lanes.flat is None
        if lanes.flat is None:
            self.rows = np.arange(batch.threads) if lanes.rows is None else lanes.rows
            self.present = np.zeros((batch.threads, 1), bool)
            self.present[self.rows] = True
            self.columns = lanes.shape[1]
        else:
            self.present = np.zeros((batch.threads, batch.columns), bool)
            lanes.put(self.present, True)
            self.columns = batch.columns
        self.thread = np.arange(batch.threads, dtype=np.int64).reshape(-1, 1)
        self.lane = self.thread % self.size
        self.warp = self.thread // self.size

    def spread(self, value: Any, dtype: Any, fill: Any = 0) -> Any:
        """A lane value as ``(threads, 1)`` or ``(threads, columns)``."""
        if not self.regular:
            return self.lanes.expand(value, dtype, fill)
        if not isinstance(value, np.ndarray):
            value = np.full((1, 1), value, dtype)
        if value.shape[0] == self.batch.threads and self.lanes.rows is None:
            return value
        out = np.full((self.batch.threads, value.shape[1]), fill, value.dtype)
        out[self.rows] = value
        return out

    def collect(self, dense: Any) -> Any:
        """Back to a value of the set."""
        if not self.regular:
            return self.lanes.take(np.broadcast_to(dense, self.present.shape))
        return dense if self.lanes.rows is None else dense.take(self.rows, axis=0)

    def by_warp(self, dense: Any) -> Any:
        """``(warps, warp_size, columns)``, absent threads of the last warp False or 0."""
        threads, columns = dense.shape
        warps = -(-threads // self.size)
        if threads % self.size:
            padded = np.zeros((warps * self.size, columns), dense.dtype)
            padded[:threads] = dense
            dense = padded
        return dense.reshape(warps, self.size, columns)

    def ballot(self, votes: Any) -> Any:
        """Bit mask of the lanes that vote, per thread."""
        groups = self.by_warp(votes & self.present)
        bits = (np.uint64(1) << np.arange(self.size, dtype=np.uint64)).reshape(1, -1, 1)
        masks = (groups * bits).sum(axis=1, dtype=np.uint64)
        return np.repeat(masks, self.size, axis=0)[: self.batch.threads].astype(np.int64)


# reads of a named lane: instructions that all lanes of a warp must execute
WHOLE_WARP = frozenset({"ldmatrix", "stmatrix", "movmatrix"})


def _exited(batch: Batch) -> Any:
    gone = np.zeros((batch.threads, batch.columns), bool)
    for lanes in batch.exits:
        lanes.put(gone, True)
    return gone


def _check(batch: Batch, dense: Dense, mask: Any, site: int, names: str) -> Any:
    """Report lanes named in the mask that are not there; returns which threads each mask names, per thread bit."""
    full = batch.run.device.full_mask
    if (
        not isinstance(mask, np.ndarray)
        and int(mask) & full == full
        and dense.lanes.flat is None
        and dense.lanes.rows is None
    ):
        return
    masks = dense.spread(mask, np.int64)
    there = dense.ballot(np.ones_like(dense.present))
    exists = dense.by_warp(np.ones((batch.threads, 1), bool))
    bits = (np.int64(1) << np.arange(dense.size, dtype=np.int64)).reshape(1, -1, 1)
    valid = np.repeat((exists * bits).sum(axis=1), dense.size, axis=0)[: batch.threads]
    if batch.exited:
        gone = _exited(batch)
        if dense.regular:
            gone = gone if dense.lanes.cols is None else gone[:, dense.lanes.cols]
        whole = dense.by_warp(gone)
        valid = valid & ~np.repeat((whole * bits).sum(axis=1), dense.size, axis=0)[: batch.threads]
    absent = masks & valid & ~there
    own = (masks >> dense.lane) & 1
    wrong = dense.present & ((absent != 0) | (own == 0))
    if not wrong.any():
        return
    thread, column = (int(i) for i in np.argwhere(wrong)[0])
    column_name = int(np.broadcast_to(dense.lanes.b, dense.lanes.shape).reshape(-1)[0]) if dense.regular else column
    if dense.regular and wrong.shape[1] > 1:
        column_name = int(dense.lanes.b.reshape(-1)[column])
    missing = int(np.broadcast_to(absent, wrong.shape)[thread, column])
    if missing:
        listed = [lane for lane in range(dense.size) if missing >> lane & 1]
        shown = ", ".join(map(str, listed[:8])) + (", …" if len(listed) > 8 else "")
        message = f"the mask of {names} names lanes {shown} of the warp, which do not take part here"
    else:
        message = f"the mask of {names} does not name the lane that executes it"
    batch.report_warp(dense.lanes, site, column_name, thread, message)


class Meeting:
    """A warp barrier that some lanes came to: each waits for the lanes that its mask names."""

    def __init__(self, serial: int, batch: Batch, lanes: LaneSet, mask: Any) -> None:
        self.serial = serial
        self.batch = batch.number
        self.lanes = lanes
        self.size, self.threads = batch.run.device.warp_size, batch.threads
        full = batch.run.device.full_mask
        everyone = not isinstance(mask, np.ndarray) and int(mask) & full == full
        self._masks = None if everyone else lanes.expand(mask, np.int64)

    def joins(self, one: int, other: int, column: int) -> bool:
        """True if two threads of a block met here."""
        if one // self.size != other // self.size:
            return False
        if not (self.lanes.contains(one, column) and self.lanes.contains(other, column)):
            return False
        if self._masks is None:
            return True
        masks = self._masks[:, column]
        return bool(masks[one] >> (other % self.size) & 1 and masks[other] >> (one % self.size) & 1)

    def joins_warp(self, thread: int, column: int) -> bool:
        """True if a thread met all others of its warp here."""
        first = thread - thread % self.size
        return len(self.mates(thread, column)) == min(self.size, self.threads - first) - 1

    def mates(self, thread: int, column: int) -> list[int]:
        """The other threads that a thread met here."""
        first = thread - thread % self.size
        last = min(first + self.size, self.threads)
        return [t for t in range(first, last) if t != thread and self.joins(thread, t, column)]


def check_whole_warps(batch: Batch, dense: Dense, site: int, name: str) -> None:
    """Report warps of which not every lane executes an instruction that needs all of them."""
    there = dense.by_warp(dense.present)
    partial = there.any(axis=1) & ~there.all(axis=1)
    if not partial.any():
        return
    warp, column = (int(i) for i in np.argwhere(partial)[0])
    thread = warp * dense.size + int(np.flatnonzero(there[warp, :, column])[0])
    missing = [int(lane) for lane in np.flatnonzero(~there[warp, :, column])]
    shown = ", ".join(map(str, missing[:8])) + (", …" if len(missing) > 8 else "")
    columns = dense.lanes.b.reshape(-1) if dense.regular else np.arange(dense.columns)
    message = f"{name} needs all lanes of the warp; lanes {shown} do not take part here"
    batch.report_warp(dense.lanes, site, int(columns[min(column, len(columns) - 1)]), thread, message)


def check_mask(batch: Batch, lanes: LaneSet, mask: Any, site: int) -> None:
    """Check the mask of a warp barrier."""
    _check(batch, Dense(batch, lanes), mask, site, "syncwarp")


def run(batch: Batch, lanes: LaneSet, site: int, op: str, args: tuple[Any, ...], dtype: str) -> Any:
    """Perform a warp-wide operation for the lanes of a set.

    Parameters
    ----------
    op
        ``shfl_sync``, ``shfl_up_sync``, ``shfl_down_sync``, ``shfl_xor_sync``, ``all_sync``, ``any_sync``,
        ``eq_sync``, ``ballot_sync``, ``match_any_sync``, ``match_all_sync.mask``, ``match_all_sync.pred``,
        ``activemask`` or ``lanemask_lt``; or ``ldmatrix`` and its kin, which read a lane as ``shfl_sync`` does and
        need the whole warp.
    args
        Lane values; the mask first, except for the last two.
    dtype
        Scalar type of the shuffled or compared value.
    """
    dense = Dense(batch, lanes)
    if op == "activemask":
        return dense.collect(dense.ballot(np.ones_like(dense.present)))
    if op == "lanemask_lt":
        return dense.collect((np.int64(1) << dense.lane) - 1)
    if op in WHOLE_WARP:
        check_whole_warps(batch, dense, site, op)
        return _shuffle(batch, dense, op, args, dtype, site)
    _check(batch, dense, args[0], site, op)
    if op.startswith("shfl"):
        return _shuffle(batch, dense, op, args, dtype, site)
    return _vote(dense, op, args, dtype)


def _shuffle(batch: Batch, dense: Dense, op: str, args: tuple[Any, ...], dtype: str, site: int) -> Any:
    """Arguments: mask, value, lane or distance, and the width of the segments in which lanes are counted."""
    values = dense.spread(args[1], lane_dtype(dtype), poison(dtype))
    step = dense.spread(args[2], np.int64)
    width = dense.spread(args[3], np.int64) if len(args) > 3 else dense.size
    lane = dense.lane
    first = lane - lane % width
    if op == "shfl_sync" or op in WHOLE_WARP:
        source = first + step % width
    elif op == "shfl_up_sync":
        source = np.where(lane - step >= first, lane - step, lane)
    elif op == "shfl_down_sync":
        source = np.where(lane + step < first + width, lane + step, lane)
    else:  # lanes of later segments keep their own value
        source = np.where((lane ^ step) < first + width, lane ^ step, lane)
    source = dense.warp * dense.size + source
    inside = source < batch.threads
    safe = np.where(inside, source, dense.thread)
    if safe.shape[1] == 1 and dense.present.shape[1] == 1:
        from_there = dense.present[:, 0].take(safe)
        result = values.take(safe[:, 0], axis=0)
    else:
        columns = max(safe.shape[1], values.shape[1], dense.present.shape[1])
        safe = np.broadcast_to(safe, (batch.threads, columns))
        from_there = np.take_along_axis(np.broadcast_to(dense.present, safe.shape), safe, axis=0)
        result = np.take_along_axis(np.broadcast_to(values, safe.shape), safe, axis=0)
    wrong = dense.present & ~(from_there & inside)
    if wrong.any() and op in WHOLE_WARP:  # reported as a warp that is not whole; an address must not mislead further
        result = np.where(wrong, values, result)
    elif wrong.any():
        thread, column = (int(i) for i in np.argwhere(wrong)[0])
        columns_of = dense.lanes.b.reshape(-1) if dense.regular else np.arange(dense.columns)
        target = int(np.broadcast_to(source, wrong.shape)[thread, column]) % dense.size
        message = f"{op} reads lane {target} of the warp, which does not take part: the value is undefined"
        batch.report_warp(dense.lanes, site, int(columns_of[min(column, len(columns_of) - 1)]), thread, message)
        result = np.where(wrong, poison(dtype), result)
    return dense.collect(result)


def _vote(dense: Dense, op: str, args: tuple[Any, ...], dtype: str) -> Any:
    masks = dense.spread(args[0], np.int64)
    named = (
        (np.broadcast_to(masks, dense.present.shape if masks.shape[1] == 1 else masks.shape) >> dense.lane) & 1
    ) == 1
    if op in ("all_sync", "any_sync", "ballot_sync", "eq_sync"):
        votes = (dense.spread(args[1], np.int64) != 0) & named
        ballot = dense.ballot(votes)
        if op == "ballot_sync":
            return dense.collect(ballot & masks)
        voters = dense.ballot(np.ones_like(dense.present)) & masks
        ayes = ballot & masks
        result = {"all_sync": ayes == voters, "any_sync": ayes != 0, "eq_sync": (ayes == 0) | (ayes == voters)}[op]
        return dense.collect(result)
    values = dense.by_warp(
        np.broadcast_to(dense.spread(args[1], lane_dtype(dtype)), named.shape)
        if not dense.regular
        else dense.spread(args[1], lane_dtype(dtype))
    )
    present = dense.by_warp(
        np.broadcast_to(
            dense.present & named, (dense.present.shape[0], max(dense.present.shape[1], values.shape[2]))
        ).copy()
    )
    equal = (values[:, :, None, :] == values[:, None, :, :]) & present[:, None, :, :]
    bits = (np.uint64(1) << np.arange(dense.size, dtype=np.uint64)).reshape(1, 1, -1, 1)
    same = (equal * bits).sum(axis=2, dtype=np.uint64).astype(np.int64)
    same = same.reshape(-1, same.shape[2])[: dense.batch.threads] & masks
    if op == "match_any_sync":
        return dense.collect(same)
    agreed = same == (dense.ballot(np.ones_like(dense.present)) & masks)
    if op == "match_all_sync.pred":
        return dense.collect(agreed)
    return dense.collect(np.where(agreed, masks, 0))
