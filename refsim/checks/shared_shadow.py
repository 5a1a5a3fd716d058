"""The shadow of a shared array: last writers, hidden writers, and the reads of the current barrier interval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.checks.races import Conflict
from refsim.checks.rewrites import keeps_value
from refsim.checks.tags import AGENT, OF_WARP, RANK, SHIFT

if TYPE_CHECKING:
    from refsim.engine.batch import Batch
    from refsim.engine.lanes import LaneSet
    from refsim.engine.views import View


LOG_LIMIT = 64  # reads of all lanes that are kept, in the interval at hand; four times as many where blocks agree

MOST_UNTAGGED = 1 << 22  # lanes of atomic operations that are kept without tags, in the interval at hand; each
FEWEST_UNTAGGED = 1 << 10  # operation counts so many at least
MOST_PENDING = 1 << 17  # reads that are kept while those of loops have no entry each, in the interval at hand


def _weight(lanes: LaneSet, address: Any) -> int:
    """What a logged read counts, in lanes."""
    return lanes.size if type(address) is not int and address.size == lanes.size else (lanes.size + 3) // 4


@dataclass(frozen=True)
class LoopReads:
    """The reads of one memory by a loop of equal trips, in place of an entry of the log for each.

    Attributes
    ----------
    first
        Serial number of the loop's first read.
    each, trips
        Reads of one trip, of this memory and others, and number of trips.
    reads
        For each read of this memory: its position in a trip, the view, the address in the first trip, and how much is
        added to it from one trip to the next.
    """

    first: int
    each: int
    trips: int
    reads: tuple[tuple[int, View, Any, int], ...]

    def entries(self, lanes: LaneSet) -> Iterator[tuple[int, LaneSet, Any]]:
        """The entries that the reads would have made one by one."""
        for trip in range(self.trips):
            for position, view, address, stride in self.reads:
                yield self.first + trip * self.each + position, lanes, (address + trip * stride, view)


class SharedShadow:
    """Shadow of a shared array over all blocks of a batch.

    While every access depends on the thread only and spans all blocks, one block stands for all and `tag`
    has one entry an element (narrow); the first other access gives every block its own (wide).
    """

    def __init__(self, batch: Batch, size: int) -> None:
        self.batch = batch
        self.run = batch.run
        self.columns = batch.columns
        self.racecheck = batch.run.racecheck
        self.log_limit = LOG_LIMIT * batch.everything.size
        self.wide = False
        self.tag = np.zeros(size, np.int64)
        self.initialized = not batch.run.initcheck
        self.last_write = 0
        self.last_plain = 0  # the last write that was not atomic
        self.log: list[tuple[int, LaneSet, Any]] = []
        self.logged = 0
        self.pending = 0  # reads from the first loop on whose reads are entries of the log yet to be written out
        self.readers: Any = None
        self.last_spill = 0
        self.in_flight: Any = None  # cells that an asynchronous copy may still be writing
        self.foreign: Any = None  # an access of another thread than the last writer, which would hide it
        self.plain: Any = None  # the last plain writer, from the first atomic operation on
        self.last_hidden = 0  # the last plain write that hid another
        self.changed: Any = None  # the last write of this interval whose value a later one replaced by another
        self.untagged: list[tuple[int, LaneSet, Any]] = []  # atomic operations of this interval that left no tag yet
        self.untagged_lanes = 0

    # -------------------------------------------------------------------------------------- addressing

    def _widen(self) -> None:
        self.wide = True
        self.tag = np.repeat(self.tag, self.columns)
        for name in ("readers", "foreign", "plain", "changed", "in_flight"):
            known = getattr(self, name)
            if known is not None:
                setattr(self, name, np.repeat(known, self.columns))

    def _widen_for(self, lanes: LaneSet, address: Any) -> None:
        """Give every block its own shadow if an access is not the same in all of them."""
        if not self.wide and not (lanes.whole_columns and (type(address) is int or address.shape[1] == 1)):
            self._widen()

    def _cells(self, lanes: LaneSet, address: Any) -> Any:
        """Positions in `tag`, one per lane: ``(R, 1)`` while narrow, else of the set's shape."""
        self._widen_for(lanes, address)
        if not self.wide:
            rows = (lanes.shape[0], 1)
            return address if np.shape(address) == rows else np.broadcast_to(np.asarray(address), rows)
        return np.broadcast_to(address * self.columns + lanes.b, lanes.shape)

    def _threads(self, lanes: LaneSet) -> Any:
        return lanes.t if not self.wide or lanes.flat is not None else np.broadcast_to(lanes.t, lanes.shape)

    def _interval(self, lanes: LaneSet) -> Any:
        """First serial of the current barrier interval, per lane."""
        bar = self.batch.bar
        return bar if type(bar) is int else bar[lanes.b]

    # ---------------------------------------------------------------------------------------- accesses

    def read(self, lanes: LaneSet, view: View, address: Any, site: int) -> None:
        """Check a read against earlier writes and remember it for later ones."""
        serial = self.run.operation(site)
        if self.in_flight is not None:
            self._check_in_flight(lanes, view, address, serial)
        if not self.initialized or self.last_write >= self.batch.interval_start(lanes):
            self._tag_atomics()
            cells = self._cells(lanes, address)
            tag = self.tag.take(cells)
            if not self.initialized and not tag.all():
                self.batch.report_uninitialized(lanes, view, address, tag == 0, site)
            self._check_writers(lanes, view, address, tag, serial)
            if self.foreign is not None:
                self._check_writers(lanes, view, address, self.foreign.take(cells), serial)
        if self.racecheck:
            self.log.append((serial, lanes, (address, view)))
            self.logged += _weight(lanes, address)
            if self.pending:
                self._postpone(1)
            elif self.logged > self.log_limit:
                self._spill()

    def settled(self, lanes: LaneSet) -> bool:
        """True if every cell is initialised and none was written since the last barrier: a read finds nothing."""
        return self.in_flight is None and self.initialized and self.last_write < self.batch.interval_start(lanes)

    def read_in_loop(self, lanes: LaneSet, reads: LoopReads) -> None:
        """Remember the reads of a loop in which everything was settled."""
        self.log.append((reads.first, lanes, reads))
        self._postpone(reads.trips * len(reads.reads))

    def _postpone(self, reads: int) -> None:
        self.pending += reads
        if self.pending > MOST_PENDING:
            self._write_out_log()

    def _write_out_log(self) -> None:
        """Log again, with an entry for each read of a loop, as if they had come one by one."""
        if not self.pending:
            return
        log, self.log, self.logged, self.pending = self.log, [], 0, 0
        for entry in log:
            for one in entry[2].entries(entry[1]) if isinstance(entry[2], LoopReads) else [entry]:
                self.log.append(one)
                self.logged += _weight(one[1], one[2][0])
                if self.logged > self.log_limit:
                    self._spill()

    def write(self, lanes: LaneSet, view: View, address: Any, value: Any, site: int) -> None:
        """Check a write against earlier writes and against reads that were spilled."""
        self._write_out_log()
        serial = self.run.operation(site)
        if self.in_flight is not None:
            self._check_in_flight(lanes, view, address, serial)
        self._tag_atomics()
        cells = self._cells(lanes, address)
        self.last_write = self.last_plain = serial
        mine = (serial << SHIFT) | (self._threads(lanes) + 1)
        if self.racecheck:
            before = self.tag.take(cells)
            if int(before.max()) >= self.batch.interval_start(lanes) << SHIFT:
                self._rewrite(lanes, view, address, cells, before, serial, value)
            self._check_readers(lanes, view, address, cells, serial)
        if self.wide:
            mine = np.broadcast_to(mine, lanes.shape).reshape(-1)
            cells = cells.reshape(-1)
        self.tag[cells] = mine
        if self.plain is not None:
            self.plain[cells] = mine
        if self.batch.copying:
            self._copy(lanes, address, cells, mine, serial)
        if self.racecheck:
            kept = self.tag.take(cells).reshape(-1)
            lost = kept != mine.reshape(-1)
            if lost.any():
                self._hide_from(lanes, kept, cells.reshape(-1), np.where(lost, mine.reshape(-1), 0))
                conflict = Conflict(self.batch, lanes, view, address, serial, self._shape(lanes))
                conflict.write_write_at_once(lost, kept & AGENT, cells.reshape(-1), value)

    def _rewrite(
        self, lanes: LaneSet, view: View, address: Any, cells: Any, before: Any, serial: int, value: Any
    ) -> None:
        """Check a write to cells that were written in this interval, and remember what it hides."""
        start, mine = self._interval(lanes) << SHIFT, self._threads(lanes) + 1
        same = keeps_value(lanes, view, address, value, self._shape(lanes))
        foreign = 0 if self.foreign is None else self.foreign.take(cells)
        sources = [before, foreign] if self.foreign is not None else [before]
        conflict = Conflict(self.batch, lanes, view, address, serial, self._shape(lanes))
        hidden = []
        for tag in sources:
            others = (tag >= start) & ((tag & AGENT) != mine)
            if others.any():
                conflict.with_threads(others, (tag & AGENT) - 1, tag >> SHIFT, earlier=True, same=same)
            hidden.append(np.where(others & same, tag, 0).reshape(-1))
        if self.changed is not None and (hidden[0].any() or hidden[-1].any()):
            tag = self.changed.take(cells)
            others = same & (tag >= start) & ((tag & AGENT) != mine)
            conflict.with_threads(others, (tag & AGENT) - 1, tag >> SHIFT, earlier=True)
        replaced = ~same & (before >= start)
        if replaced.any():
            if self.changed is None:
                self.changed = np.zeros_like(self.tag)
            self.changed[cells[replaced]] = before[replaced]
        if self.foreign is not None:
            self.foreign[cells.reshape(-1)] = 0
        self._hide_from(lanes, np.broadcast_to(mine, cells.shape).reshape(-1), cells.reshape(-1), *hidden)

    def _hide_from(self, lanes: LaneSet, kept: Any, cells: Any, *hidden: Any) -> None:
        """Keep, per cell, one access of another thread than the tag's; rather one of another warp, then the latest."""
        candidates = np.maximum.reduce(hidden)
        chosen = np.flatnonzero(candidates)
        if not len(chosen):
            return
        size = self.run.device.warp_size
        cells, warp = cells[chosen], ((kept[chosen] & AGENT) - 1) // size

        def ranked(tags: Any) -> Any:
            return np.where((tags != 0) & (((tags & AGENT) - 1) // size != warp), tags | 1 << RANK, tags)

        self.last_hidden = self.last_write
        if self.foreign is None:
            self.foreign = np.zeros_like(self.tag)
        known, start = self.foreign[cells], np.asarray(self._interval(lanes) << SHIFT)
        known[known < np.broadcast_to(start, self._shape(lanes)).reshape(-1)[chosen]] = 0
        self.foreign[cells] = ranked(known)
        for tags in hidden:
            np.maximum.at(self.foreign, cells, ranked(tags[chosen]))
        self.foreign[cells] &= (1 << RANK) - 1

    def _check_in_flight(self, lanes: LaneSet, view: View, address: Any, serial: int) -> None:
        """Report cells whose asynchronous copy has not been waited for, whichever thread made it."""
        tag = self.in_flight.take(self._cells(lanes, address))
        if self.racecheck and tag.any():
            conflict = Conflict(self.batch, lanes, view, address, serial, self._shape(lanes))
            conflict.with_threads(tag != 0, (tag & AGENT) - 1, tag >> SHIFT, earlier=True)

    def _copy(self, lanes: LaneSet, address: Any, cells: Any, mine: Any, serial: int) -> None:
        """Remember cells that an asynchronous copy writes."""
        if self.in_flight is None:
            self.in_flight = np.zeros_like(self.tag)
        self.in_flight[cells.reshape(-1)] = mine.reshape(-1)
        self.batch.copies.issue(self, lanes, address, serial)

    def copied(self, lanes: LaneSet, address: Any, done: Any, serial: int) -> None:
        """Asynchronous copies have been waited for, by the lanes that made them: what they wrote is written now."""
        self._write_out_log()
        if not self.wide and (not lanes.whole_columns or (done != done[:, :1]).any()):
            self._widen()
        cells = self._cells(lanes, address)
        chosen = (done if self.wide else done[:, :1]).reshape(-1)
        cells = cells.reshape(-1)[chosen]
        agents = (np.broadcast_to(self._threads(lanes), self._shape(lanes)).reshape(-1) + 1)[chosen]
        issued = (serial << SHIFT) | agents
        here = self.in_flight[cells] == issued
        self.in_flight[cells[here]] = 0
        last = self.tag[cells] == issued
        self.last_write = self.run.operation(self.run.operations[serial])
        self.tag[cells[last]] = (self.last_write << SHIFT) | agents[last]

    def atomic(self, lanes: LaneSet, view: View, address: Any, site: int) -> None:
        """Check an atomic operation against plain accesses of other threads.

        Its tag waits for the first access that looks for it: an interval of nothing but atomic operations needs none.
        """
        self._write_out_log()
        serial = self.run.operation(site)
        self._widen_for(lanes, address)
        missing = False
        if not self.initialized:
            tag = self.tag.take(self._cells(lanes, address))
            missing = not tag.all()
            if missing:
                self.batch.report_uninitialized(lanes, view, address, tag == 0, site)
        if self.racecheck:
            self._check_before_atomic(lanes, view, address, serial)
        self.last_write = serial
        self.untagged.append((serial, lanes, address))
        self.untagged_lanes += max(lanes.size, FEWEST_UNTAGGED)
        if missing or self.in_flight is not None or self.untagged_lanes > MOST_UNTAGGED:
            self._tag_atomics()
        self.batch.log_atomic(serial, view, lanes, address)

    def _check_before_atomic(self, lanes: LaneSet, view: View, address: Any, serial: int) -> None:
        """Check an atomic operation against plain writes, also hidden ones, and reads that were spilled."""
        start = self.batch.interval_start(lanes)
        written, hidden = self.last_plain >= start, self.last_hidden >= self.batch.bar_low
        if not (written or hidden or (self.readers is not None and self.last_spill >= start)):
            return
        self._tag_atomics()
        cells = self._cells(lanes, address)
        if written:
            plain = self.tag if self.plain is None else self.plain
            self._check_writers(lanes, view, address, plain.take(cells), serial)
        if hidden:
            self._check_writers(lanes, view, address, self.foreign.take(cells), serial)
        self._check_readers(lanes, view, address, cells, serial)

    def _tag_atomics(self) -> None:
        """Tag what atomic operations touched."""
        if not self.untagged:
            return
        if self.racecheck and self.plain is None:
            self.plain = self.tag.copy()
        for serial, lanes, address in self.untagged:
            cells = self._cells(lanes, address).reshape(-1)
            tag = self.tag.take(cells)
            agents = lanes.agents if self.wide else lanes.t + 1
            mine = ((serial << SHIFT) | agents).reshape(-1)
            self.tag[cells] = mine
            kept = self.tag.take(cells)
            if int(tag.max()) >= self.batch.bar_low << SHIFT:
                self._hide(cells, tag, (tag != 0) & (((tag ^ kept) & AGENT) != 0))
            self._hide(cells, mine, mine != kept)
        self._forget_atomics()

    def _forget_atomics(self) -> None:
        self.untagged.clear()
        self.untagged_lanes = 0

    def _hide(self, cells: Any, tags: Any, lost: Any) -> None:
        """Remember accesses whose tag was lost to another thread's."""
        chosen = np.flatnonzero(lost)
        if len(chosen):
            if self.foreign is None:
                self.foreign = np.zeros_like(self.tag)
            self.foreign[cells.take(chosen)] = tags.take(chosen)

    def _shape(self, lanes: LaneSet) -> tuple[int, ...]:
        return lanes.shape if self.wide else (lanes.shape[0], 1)

    def _check_writers(self, lanes: LaneSet, view: View, address: Any, tag: Any, serial: int) -> None:
        if not self.racecheck or int(tag.max()) < (self.batch.interval_start(lanes) << SHIFT):
            return
        interval = self._interval(lanes)
        suspects = (tag >= interval << SHIFT) & ((tag & AGENT) != self._threads(lanes) + 1)
        if suspects.any():
            conflict = Conflict(self.batch, lanes, view, address, serial, self._shape(lanes))
            conflict.with_threads(suspects, (tag & AGENT) - 1, tag >> SHIFT, earlier=True)

    def _check_readers(self, lanes: LaneSet, view: View, address: Any, cells: Any, serial: int) -> None:
        if self.readers is None or self.last_spill < self.batch.interval_start(lanes):
            return
        tag = self.readers.take(cells)
        suspects = (tag >= self._interval(lanes) << SHIFT) & ((tag & AGENT) != self._threads(lanes) + 1)
        if suspects.any():
            conflict = Conflict(self.batch, lanes, view, address, serial, self._shape(lanes))
            conflict.with_threads(suspects, (tag & AGENT) - 1, tag >> SHIFT, earlier=True)

    # ------------------------------------------------------------------------------------ read log

    def _check_log(self) -> None:
        """Reads followed, in their own interval, by a write of another thread."""
        self._write_out_log()
        self._tag_atomics()
        for serial, lanes, (address, view) in self.log:
            if serial > self.last_write:
                break
            cells = self._cells(lanes, address)
            for source in (self.tag, self.foreign):
                if source is not None:
                    self._check_later(lanes, view, address, source.take(cells), serial)

    def _check_later(self, lanes: LaneSet, view: View, address: Any, tag: Any, serial: int) -> None:
        """Report cells, read at a time, that another thread wrote since without a barrier in between."""
        suspects = (tag >= (serial + 1) << SHIFT) & ((tag & AGENT) != self._threads(lanes) + 1)
        bar = self.batch.bar
        if type(bar) is not int:
            suspects = suspects & (serial >= bar[lanes.b])
        if suspects.any():
            conflict = Conflict(self.batch, lanes, view, address, serial, self._shape(lanes))
            conflict.with_threads(suspects, (tag & AGENT) - 1, tag >> SHIFT, earlier=False)

    def _spill(self) -> None:
        """Fold the read log into one reader tag an element; agent `AGENT` stands for several threads."""
        self._check_log()
        log, self.log, self.logged = self.log, [], 0
        if self.readers is None:
            self.readers = np.zeros_like(self.tag)
        if self._spill_together(log):
            return
        for serial, lanes, (address, _view) in log:
            cells = self._cells(lanes, address)
            agent = np.broadcast_to(self._threads(lanes) + 1, cells.shape)
            tag = self.readers.take(cells)
            several = (tag >= self._interval(lanes) << SHIFT) & ((tag & AGENT) != agent)
            warp, before = (agent - 1) // self.run.device.warp_size, tag & AGENT
            of_warp = OF_WARP + 1 - warp
            mates = ((before - 1) // self.run.device.warp_size == warp) | (before == of_warp)
            new = (serial << SHIFT) | np.where(several, np.where(mates, of_warp, AGENT), agent)
            flat, new, of_warp = cells.reshape(-1), new.reshape(-1), of_warp.reshape(-1)
            self.readers[flat] = new
            lost = self.readers.take(flat) != new
            mixed = (several & ~mates).reshape(-1)
            if lost.any():  # several lanes of this read, of one warp or of several
                self.readers[flat[lost]] = (serial << SHIFT) | of_warp[lost]
                met = np.isin(flat, flat[lost])
                mixed |= met & (self.readers.take(flat) != (serial << SHIFT) | of_warp)
            self.readers[flat[mixed]] = (serial << SHIFT) | AGENT
            self.last_spill = serial

    def _spill_together(self, log: list[tuple[int, LaneSet, Any]]) -> bool:
        """Fold a log whose reads were all made by one set, one block standing for all, in one go; False if not."""
        lanes = log[0][1]
        if self.wide or not lanes.whole_columns or any(entry[1] is not lanes for entry in log):
            return False
        addresses = [address for _, _, (address, _) in log]
        if any(type(address) is not int and address.shape[1] > 1 for address in addresses):
            return False
        serials = np.array([serial for serial, _, _ in log], np.int64) << SHIFT
        self.last_spill = log[-1][0]
        size = self.run.device.warp_size
        if lanes.shape[0] > size and all(type(address) is int for address in addresses):
            self.readers[np.array(addresses)] = serials | AGENT
            return True
        rows = lanes.shape[0]
        cells = np.concatenate([np.broadcast_to(np.asarray(a).reshape(-1), (rows,)) for a in addresses])
        agent = np.tile(lanes.t.reshape(-1) + 1, len(log))
        before = self.readers.take(cells)
        self.readers[cells] = np.repeat(serials, rows) | agent
        now = self.readers.take(cells)
        several = ((before >= self._interval(lanes) << SHIFT) & ((before & AGENT) != agent)) | ((now & AGENT) != agent)
        of_warp = OF_WARP + 1 - (agent - 1) // size
        near = [((tags & AGENT) - 1) // size == (agent - 1) // size for tags in (before, now)]
        mates = (near[0] | ((before & AGENT) == of_warp) | (before < self._interval(lanes) << SHIFT)) & near[1]
        self.readers[cells[several & mates]] = (now & ~AGENT | of_warp)[several & mates]
        self.readers[cells[several & ~mates]] = now[several & ~mates] | AGENT
        return True

    def barrier(self, everywhere: bool) -> None:
        """Called before the interval of some blocks ends; `everywhere` if it ends in all of them."""
        if self.log and self.last_write > self.log[0][0]:
            self._check_log()
        if everywhere:
            self.log.clear()
            self.logged = self.pending = 0
            self._forget_atomics()
        else:
            self._write_out_log()
            if not self.wide:
                self._widen()
        if not self.initialized and self.last_write >= self.batch.bar_low:
            self.initialized = bool(self.tag.all())

    def warp_barrier(self) -> None:
        """Called before a warp barrier: what follows may be ordered after the logged reads, what came is not."""
        if self.log and self.last_write > self.log[0][0]:
            self._check_log()

    def forget_ended(self) -> None:
        """Drop logged reads whose interval has ended in all the blocks that read."""
        start = self.batch.interval_start
        self.log = [entry for entry in self.log if entry[0] >= start(entry[1])]
        self.logged = sum(_weight(lanes, address) for _, lanes, (address, _) in self.log)
