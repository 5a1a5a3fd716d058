"""Shadows: per element, who wrote it last and whether it was written at all.

A tag is ``serial << 20 | agent``: the number of the access in the launch, which names its source line, and
the thread (shared memory) or lane of the batch (global memory) plus one. Tag 0 means never written. Accesses
of one block are ordered by barriers, those of different blocks never are, unless `refsim.checks.order` finds
a chain of fences and atomics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.checks.races import Conflict

if TYPE_CHECKING:
    from refsim.engine.batch import Batch
    from refsim.engine.lanes import LaneSet
    from refsim.engine.launch import Run
    from refsim.engine.memory import View

SHIFT = 20
AGENT = (1 << SHIFT) - 1
LOG_LIMIT = 64


class SharedShadow:
    """Shadow of a shared array over all blocks of a batch.

    While every access depends on the thread only and spans all blocks, one block stands for all and `tag`
    has one entry an element (narrow); the first other access gives every block its own (wide).
    """

    def __init__(self, batch: Batch, size: int) -> None:
        self.batch = batch
        self.run = batch.run
        self.columns = batch.columns
        self.wide = False
        self.tag = np.zeros(size, np.int64)
        self.initialized = not batch.run.initcheck
        self.last_write = 0
        self.log: list[tuple[int, LaneSet, Any]] = []
        self.readers: Any = None
        self.last_spill = 0

    # -------------------------------------------------------------------------------------- addressing

    def _widen(self) -> None:
        self.wide = True
        self.tag = np.repeat(self.tag, self.columns)
        if self.readers is not None:
            self.readers = np.repeat(self.readers, self.columns)

    def _cells(self, lanes: LaneSet, address: Any) -> Any:
        """Positions in `tag`, one per lane: ``(R, 1)`` while narrow, else of the set's shape."""
        if not self.wide:
            if lanes.whole_columns and (type(address) is int or address.shape[1] == 1):
                return np.broadcast_to(np.asarray(address), (lanes.shape[0], 1))
            self._widen()
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
        if not (self.initialized and self.last_write < self.batch.bar_low):
            cells = self._cells(lanes, address)
            tag = self.tag.take(cells)
            if not self.initialized and not tag.all():
                self.batch.report_uninitialized(lanes, view, address, tag == 0, site)
            self._check_writers(lanes, view, address, tag, serial, None)
        if self.run.racecheck:
            self.log.append((serial, lanes, (address, view)))
            if len(self.log) > LOG_LIMIT:
                self._spill()

    def write(self, lanes: LaneSet, view: View, address: Any, value: Any, site: int) -> None:
        """Check a write against earlier writes and against reads that were spilled."""
        serial = self.run.operation(site)
        cells = self._cells(lanes, address)
        self.last_write = serial
        mine = (serial << SHIFT) | (self._threads(lanes) + 1)
        if self.run.racecheck:
            self._check_writers(lanes, view, address, self.tag.take(cells), serial, value)
            self._check_readers(lanes, view, address, cells, serial)
        if self.wide:
            mine = np.broadcast_to(mine, lanes.shape).reshape(-1)
            self.tag[cells.reshape(-1)] = mine
        else:
            self.tag[cells] = mine
        if self.run.racecheck:
            kept = self.tag.take(cells).reshape(-1)
            lost = kept != mine.reshape(-1)
            if lost.any():
                conflict = Conflict(self.batch, lanes, view, address, serial, self._shape(lanes))
                conflict.write_write_at_once(lost, kept & AGENT, cells.reshape(-1), value)

    def atomic(self, lanes: LaneSet, view: View, address: Any, site: int) -> None:
        """Check an atomic operation against plain accesses of other threads."""
        serial = self.run.operation(site)
        cells = self._cells(lanes, address)
        tag = self.tag.take(cells)
        if not self.initialized and not tag.all():
            self.batch.report_uninitialized(lanes, view, address, tag == 0, site)
        if self.run.racecheck:
            self._check_writers(lanes, view, address, tag, serial, None)
            self._check_readers(lanes, view, address, cells, serial)
        self.last_write = serial
        self.tag[cells.reshape(-1)] = np.broadcast_to(
            (serial << SHIFT) | (self._threads(lanes) + 1), cells.shape
        ).reshape(-1)
        self.batch.log_atomic(serial, view, lanes, address)

    def _shape(self, lanes: LaneSet) -> tuple[int, ...]:
        return lanes.shape if self.wide else (lanes.shape[0], 1)

    def _check_writers(self, lanes: LaneSet, view: View, address: Any, tag: Any, serial: int, value: Any) -> None:
        if not self.run.racecheck or int(tag.max()) < (self.batch.bar_low << SHIFT):
            return
        interval = self._interval(lanes)
        suspects = (tag >= interval << SHIFT) & ((tag & AGENT) != self._threads(lanes) + 1)
        if suspects.any():
            conflict = Conflict(self.batch, lanes, view, address, serial, self._shape(lanes))
            conflict.with_threads(suspects, (tag & AGENT) - 1, tag >> SHIFT, earlier=True, value=value)

    def _check_readers(self, lanes: LaneSet, view: View, address: Any, cells: Any, serial: int) -> None:
        if self.readers is None or self.last_spill < self.batch.bar_low:
            return
        tag = self.readers.take(cells)
        suspects = (tag >= self._interval(lanes) << SHIFT) & ((tag & AGENT) != self._threads(lanes) + 1)
        if suspects.any():
            conflict = Conflict(self.batch, lanes, view, address, serial, self._shape(lanes))
            conflict.with_threads(suspects, (tag & AGENT) - 1, tag >> SHIFT, earlier=True)

    # ------------------------------------------------------------------------------------ read log

    def _check_log(self) -> None:
        """Reads followed, in their own interval, by a write of another thread."""
        for serial, lanes, (address, view) in self.log:
            if serial > self.last_write:
                break
            cells = self._cells(lanes, address)
            tag = self.tag.take(cells)
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
        log, self.log = self.log, []
        for serial, lanes, (address, _view) in log:
            cells = self._cells(lanes, address)
            if self.readers is None:
                self.readers = np.zeros_like(self.tag)
            agent = np.broadcast_to(self._threads(lanes) + 1, cells.shape)
            tag = self.readers.take(cells)
            several = (tag >= self._interval(lanes) << SHIFT) & ((tag & AGENT) != agent)
            new = (serial << SHIFT) | np.where(several, AGENT, agent)
            flat, new = cells.reshape(-1), new.reshape(-1)
            self.readers[flat] = new
            lost = self.readers.take(flat) != new
            self.readers[flat[lost]] = (serial << SHIFT) | AGENT
            self.last_spill = serial

    def barrier(self, everywhere: bool) -> None:
        """Called before the interval of some blocks ends; `everywhere` if it ends in all of them."""
        if self.log and self.last_write > self.log[0][0]:
            self._check_log()
        if everywhere:
            self.log.clear()
        elif not self.wide:
            self._widen()
        if not self.initialized and self.last_write >= self.batch.bar_low:
            self.initialized = bool(self.tag.all())

    def forget_ended(self) -> None:
        """Drop logged reads whose interval has ended in every block."""
        low = self.batch.bar_low
        self.log = [entry for entry in self.log if entry[0] >= low]


class GlobalShadow:
    """Shadow of one allocation of global memory over a whole launch.

    `races` is False for memory that the kernel does not write; `initialized` holds which granules had a
    value before the launch, None standing for all; `reads` is False for memory the kernel only writes.
    """

    def __init__(self, run: Run, granules: int, initialized: Any, races: bool, reads: bool) -> None:
        self.run = run
        self.initialized = initialized
        self.races = races
        self.tag = np.zeros(granules if races or initialized is not None else 0, np.int64)
        self.reader = np.zeros(granules, np.int64) if races and reads else None
        self.spread = np.zeros(granules, np.uint8) if races and reads else None  # 0 one thread, 1 one block, 2 more

    def _cells(self, lanes: LaneSet, view: View, address: Any) -> list[Any]:
        """Granules touched by each lane: one array for each granule of an element."""
        address = np.broadcast_to(np.asarray(address), lanes.shape).reshape(-1)
        granule = view.memory.granule
        per_element = view.data.dtype.itemsize // granule
        first = (address * per_element if per_element > 1 else address) + view.base
        return [first + part for part in range(per_element)]

    def _same_block_ordered(self, lanes: LaneSet, tag: Any) -> Any:
        """Accesses by tag that the own block ordered before this one with a barrier."""
        batch = lanes.batch
        serial = tag >> SHIFT
        columns = np.broadcast_to(lanes.b, lanes.shape).reshape(-1)
        bar = batch.bar if type(batch.bar) is int else batch.bar[columns]
        return (serial >= batch.first_serial) & (((tag & AGENT) - 1) % batch.columns == columns) & (serial < bar)

    def _suspects(self, lanes: LaneSet, tag: Any) -> Any:
        """Lanes whose cell was touched by another agent without a barrier in between; None if there are none."""
        if not tag.any():
            return None
        mine = (tag >= lanes.batch.first_serial << SHIFT) & ((tag & AGENT) == lanes.lane.reshape(-1) + 1)
        suspects = (tag != 0) & ~mine
        if not suspects.any():
            return None
        suspects &= ~self._same_block_ordered(lanes, tag)
        return suspects if suspects.any() else None

    def read(self, lanes: LaneSet, view: View, address: Any, site: int) -> None:
        """Check a read against writes and remember the reader."""
        serial = self.run.operation(site)
        for cells in self._cells(lanes, view, address):
            tag = self.tag.take(cells)
            if self.initialized is not None:
                missing = (tag == 0) & ~self.initialized.take(cells)
                if missing.any():
                    lanes.batch.report_uninitialized(lanes, view, address, missing.reshape(lanes.shape), site)
            if not self.races:
                continue
            suspects = self._suspects(lanes, tag)
            if suspects is not None:
                conflict = Conflict(lanes.batch, lanes, view, address, serial, lanes.shape)
                conflict.with_lanes(suspects, (tag & AGENT) - 1, tag >> SHIFT)
            self._note_reader(lanes, cells, serial)

    def _note_reader(self, lanes: LaneSet, cells: Any, serial: int) -> None:
        reader, spread = self.reader, self.spread
        if reader is None or spread is None:
            return
        lanes.batch.dirty = True
        mine = (serial << SHIFT) | (lanes.lane.reshape(-1) + 1)
        before = reader.take(cells)
        reader[cells] = mine
        lost = reader.take(cells) != mine
        columns = lanes.batch.columns
        if not before.any():
            if not lost.any():
                return
            level = np.zeros(len(cells), np.uint8)
        else:
            ended = self._same_block_ordered(lanes, before)
            same_batch = before >= lanes.batch.first_serial << SHIFT
            own = same_batch & ((before & AGENT) == (mine & AGENT))
            own_block = same_batch & (((before & AGENT) - 1) % columns == ((mine & AGENT) - 1) % columns)
            level = np.where((before == 0) | own, 0, np.where(own_block, 1, 2)).astype(np.uint8)
            level = np.maximum(level, spread.take(cells))
            level[ended & (spread.take(cells) < 2)] = 0
            spread[cells] = 0
        if lost.any():
            winner = reader.take(cells[lost]) & AGENT
            level[lost] = np.maximum(level[lost], np.where((winner - 1) % columns == ((mine[lost] & AGENT) - 1) % columns, 1, 2))
        if level.any():
            np.maximum.at(spread, cells, level)

    def _check_readers(self, lanes: LaneSet, view: View, address: Any, cells: Any, serial: int) -> None:
        if self.reader is None or self.spread is None:
            return
        tag = self.reader.take(cells)
        if not tag.any():
            return
        ordered = self._same_block_ordered(lanes, tag)
        spread = self.spread.take(cells)
        mine = (tag >= lanes.batch.first_serial << SHIFT) & ((tag & AGENT) == lanes.lane.reshape(-1) + 1)
        suspects = (tag != 0) & np.where(spread == 2, True, np.where(spread == 1, ~ordered, ~mine & ~ordered))
        if suspects.any():
            conflict = Conflict(lanes.batch, lanes, view, address, serial, lanes.shape)
            conflict.with_lanes(suspects, (tag & AGENT) - 1, tag >> SHIFT)

    def write(self, lanes: LaneSet, view: View, address: Any, value: Any, site: int) -> None:
        """Check a write against writes and reads of other threads."""
        serial = self.run.operation(site)
        mine = (serial << SHIFT) | (lanes.lane.reshape(-1) + 1)
        for cells in self._cells(lanes, view, address):
            if self.races:
                tag = self.tag.take(cells)
                suspects = self._suspects(lanes, tag)
                if suspects is not None:
                    conflict = Conflict(lanes.batch, lanes, view, address, serial, lanes.shape)
                    conflict.with_lanes(suspects, (tag & AGENT) - 1, tag >> SHIFT, value=value)
                self._check_readers(lanes, view, address, cells, serial)
            self.tag[cells] = mine
            if self.races:
                kept = self.tag.take(cells)
                lost = kept != mine
                if lost.any():
                    conflict = Conflict(lanes.batch, lanes, view, address, serial, lanes.shape)
                    conflict.write_write_at_once(lost, kept & AGENT, cells, value)

    def atomic(self, lanes: LaneSet, view: View, address: Any, site: int) -> None:
        """Check an atomic operation against plain accesses of other threads."""
        serial = self.run.operation(site)
        mine = (serial << SHIFT) | (lanes.lane.reshape(-1) + 1)
        for cells in self._cells(lanes, view, address):
            tag = self.tag.take(cells)
            if self.initialized is not None:
                missing = (tag == 0) & ~self.initialized.take(cells)
                if missing.any():
                    lanes.batch.report_uninitialized(lanes, view, address, missing.reshape(lanes.shape), site)
            if self.races:
                suspects = self._suspects(lanes, tag)
                if suspects is not None:
                    conflict = Conflict(lanes.batch, lanes, view, address, serial, lanes.shape)
                    conflict.with_lanes(suspects, (tag & AGENT) - 1, tag >> SHIFT)
                self._check_readers(lanes, view, address, cells, serial)
            self.tag[cells] = mine
        lanes.batch.log_atomic(serial, view, lanes, address)
