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
    from refsim.engine.views import View

SHIFT = 20
AGENT = (1 << SHIFT) - 1
LOG_LIMIT = 64
RANK = 60  # bits of a tag; ranks stand above


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
        self.foreign: Any = None  # an access of another thread than the last writer, which would hide it

    # -------------------------------------------------------------------------------------- addressing

    def _widen(self) -> None:
        self.wide = True
        self.tag = np.repeat(self.tag, self.columns)
        if self.readers is not None:
            self.readers = np.repeat(self.readers, self.columns)
        if self.foreign is not None:
            self.foreign = np.repeat(self.foreign, self.columns)

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
        if not (self.initialized and self.last_write < self.batch.interval_start(lanes)):
            cells = self._cells(lanes, address)
            tag = self.tag.take(cells)
            if not self.initialized and not tag.all():
                self.batch.report_uninitialized(lanes, view, address, tag == 0, site)
            self._check_writers(lanes, view, address, tag, serial, None)
            if self.foreign is not None:
                self._check_writers(lanes, view, address, self.foreign.take(cells), serial, None)
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
            if self.foreign is not None:
                self._check_writers(lanes, view, address, self.foreign.take(cells), serial, value)
        if self.wide:
            mine = np.broadcast_to(mine, lanes.shape).reshape(-1)
            self.tag[cells.reshape(-1)] = mine
        else:
            self.tag[cells] = mine
        if self.run.racecheck:
            kept = self.tag.take(cells).reshape(-1)
            lost = kept != mine.reshape(-1)
            if self.foreign is not None:
                self.foreign[cells.reshape(-1)] = 0
            if lost.any():
                self._hide(cells.reshape(-1)[lost], mine.reshape(-1)[lost])
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
        mine = np.broadcast_to((serial << SHIFT) | (self._threads(lanes) + 1), cells.shape)
        self.tag[cells.reshape(-1)] = mine.reshape(-1)
        kept = self.tag.take(cells)
        for hidden in (tag, mine):
            lost = (hidden != 0) & ((hidden & AGENT) != (kept & AGENT))
            self._hide(cells[lost], hidden[lost])
        self.batch.log_atomic(serial, view, lanes, address)

    def _hide(self, cells: Any, tags: Any) -> None:
        """Remember accesses whose tag gave way to another thread's."""
        if len(cells):
            if self.foreign is None:
                self.foreign = np.zeros_like(self.tag)
            self.foreign[cells] = tags

    def _shape(self, lanes: LaneSet) -> tuple[int, ...]:
        return lanes.shape if self.wide else (lanes.shape[0], 1)

    def _check_writers(self, lanes: LaneSet, view: View, address: Any, tag: Any, serial: int, value: Any) -> None:
        if not self.run.racecheck or int(tag.max()) < (self.batch.interval_start(lanes) << SHIFT):
            return
        interval = self._interval(lanes)
        suspects = (tag >= interval << SHIFT) & ((tag & AGENT) != self._threads(lanes) + 1)
        if suspects.any():
            conflict = Conflict(self.batch, lanes, view, address, serial, self._shape(lanes))
            conflict.with_threads(suspects, (tag & AGENT) - 1, tag >> SHIFT, earlier=True, value=value)

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

    def warp_barrier(self) -> None:
        """Called before a warp barrier: what follows may be ordered after the logged reads, what came is not."""
        if self.log and self.last_write > self.log[0][0]:
            self._check_log()

    def forget_ended(self) -> None:
        """Drop logged reads whose interval has ended in all the blocks that read."""
        start = self.batch.interval_start
        self.log = [entry for entry in self.log if entry[0] >= start(entry[1])]


class _Window:
    """Cells that form a grid with constant strides: reached as a view, and distinct by construction."""

    distinct = True

    def __init__(self, start: int, shape: tuple[int, ...], strides: tuple[int, int]) -> None:
        self.start, self.shape, self.strides = start, shape, strides

    def of(self, array: Any) -> Any:
        item = array.itemsize
        return np.lib.stride_tricks.as_strided(array[self.start :], self.shape, [s * item for s in self.strides])

    get = of

    def put(self, array: Any, values: Any) -> None:
        self.of(array)[...] = values

    @property
    def index(self) -> Any:
        rows, columns = (np.arange(n) * s for n, s in zip(self.shape, self.strides, strict=True))
        return self.start + rows[:, None] + columns


class _Scattered:
    """Cells at any positions, perhaps several lanes at one."""

    distinct = False

    def __init__(self, index: Any) -> None:
        self.index = index

    def get(self, array: Any) -> Any:
        return array.take(self.index)

    def put(self, array: Any, values: Any) -> None:
        array[self.index] = values


Cells = _Window | _Scattered


def _located(lanes: LaneSet, address: Any) -> Cells:
    """The cells at a lane value of addresses."""
    if not isinstance(address, np.ndarray) or address.shape != lanes.shape:
        return _Scattered(np.broadcast_to(np.asarray(address), lanes.shape))
    if address.ndim == 2:
        first = int(address[0, 0])
        down = int(address[1, 0]) - first if address.shape[0] > 1 else 0
        across = int(address[0, 1]) - first if address.shape[1] > 1 else 0
        rows, columns = address.shape
        apart = down * rows <= across or across * columns <= down or rows == 1 or columns == 1
        if down >= 0 and across >= 0 and apart and (down or rows == 1) and (across or columns == 1):
            column, row = address[:, :1], address[:1] - first
            if (address == column + row).all() and _evenly(column, down) and _evenly(row.T, across):
                return _Window(first, address.shape, (down, across))
    return _Scattered(address)


def _evenly(values: Any, step: int) -> bool:
    return bool((values[1:] - values[:-1] == step).all())


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
        # who read: 0 one thread, 1 several of a block, 2 several blocks; and the reader before the last one
        self.spread = np.zeros(granules, np.uint8) if races and reads else None
        self.earlier = np.zeros(granules, np.int64) if races and reads else None
        self.plain: Any = None  # the last plain writer, from the first atomic operation on
        self.foreign: Any = None  # an access of another agent than the last writer, which would hide it

    def _cells(self, lanes: LaneSet, view: View, address: Any) -> list[Cells]:
        """Granules touched by each lane: one entry for each granule of an element."""
        per_element = view.data.dtype.itemsize // view.memory.granule
        first = (address * per_element if per_element > 1 else address) + view.base
        return [_located(lanes, first + part) for part in range(per_element)]

    def _own(self, lanes: LaneSet, tag: Any) -> Any:
        """Cells whose tag is that of the lane itself."""
        return (tag >= lanes.batch.first_serial << SHIFT) & ((tag & AGENT) == lanes.lane + 1)

    def _same_block_ordered(self, lanes: LaneSet, tag: Any) -> Any:
        """Accesses by tag that the own block ordered before this one with a barrier."""
        batch = lanes.batch
        serial = tag >> SHIFT
        bar = batch.bar if type(batch.bar) is int else batch.bar[lanes.b]
        return (serial >= batch.first_serial) & (((tag & AGENT) - 1) % batch.columns == lanes.b) & (serial < bar)

    def _check_writers(
        self, lanes: LaneSet, view: View, address: Any, tag: Any, serial: int, value: Any = None
    ) -> None:
        """Report lanes whose cell another agent wrote with nothing in between."""
        if not self.races or not tag.max():
            return
        suspects = (tag != 0) & ~self._own(lanes, tag)
        if not suspects.any():
            return
        suspects &= ~self._same_block_ordered(lanes, tag)
        if suspects.any():
            conflict = Conflict(lanes.batch, lanes, view, address, serial, lanes.shape)
            conflict.with_lanes(suspects, (tag & AGENT) - 1, tag >> SHIFT, value=value)

    def _check_initialized(self, lanes: LaneSet, view: View, address: Any, cells: Cells, tag: Any, site: int) -> None:
        if self.initialized is None:
            return
        missing = (tag == 0) & ~cells.get(self.initialized)
        if missing.any():
            lanes.batch.report_uninitialized(lanes, view, address, missing, site)

    def read(self, lanes: LaneSet, view: View, address: Any, site: int) -> None:
        """Check a read against writes and remember the reader."""
        serial = self.run.operation(site)
        for cells in self._cells(lanes, view, address):
            tag = cells.get(self.tag)
            self._check_initialized(lanes, view, address, cells, tag, site)
            self._check_writers(lanes, view, address, tag, serial)
            if self.foreign is not None:
                self._check_writers(lanes, view, address, cells.get(self.foreign), serial)
            if self.reader is not None:
                self._note_reader(lanes, cells, serial)

    def _note_reader(self, lanes: LaneSet, cells: Cells, serial: int) -> None:
        reader, spread = self.reader, self.spread
        assert reader is not None
        assert spread is not None
        lanes.batch.dirty = True
        mine = (serial << SHIFT) | (lanes.lane + 1)
        before = cells.get(reader)
        known = bool(before.max())
        if known and cells.distinct:
            before = before.copy()  # a window shows what is put there next
        columns = lanes.batch.columns
        level: Any = None
        if known:
            own = (before == 0) | self._own(lanes, before)
            was = cells.get(spread)
            if not own.all() or was.any():
                same_batch = before >= lanes.batch.first_serial << SHIFT
                own_block = same_batch & (((before & AGENT) - 1) % columns == lanes.b)
                level = np.maximum(np.where(own, 0, np.where(own_block, 1, 2)).astype(np.uint8), was)
                level[self._same_block_ordered(lanes, before) & (was < 2)] = 0
                cells.put(spread, 0)
        cells.put(reader, mine)
        if not cells.distinct:
            winner = cells.get(reader)
            lost = winner != mine
            if lost.any():
                level = np.zeros(lanes.shape, np.uint8) if level is None else level
                near = ((winner & AGENT) - 1) % columns == lanes.b
                level[lost] = np.maximum(level[lost], np.where(near, 1, 2)[lost])
        if level is not None and level.any():
            np.maximum.at(spread, cells.index.reshape(-1), level.reshape(-1))
            assert self.earlier is not None
            displaced = np.where(cells.get(reader) == mine, before, mine)
            others = (level > 0) & (displaced != 0) & ((displaced & AGENT) != (cells.get(reader) & AGENT))
            self.earlier[cells.index[others]] = displaced[others]

    def _check_readers(self, lanes: LaneSet, view: View, address: Any, cells: Cells, serial: int) -> None:
        if self.reader is None or self.spread is None:
            return
        tag = cells.get(self.reader)
        if not tag.max():
            return
        own = (tag == 0) | self._own(lanes, tag)
        spread = cells.get(self.spread)
        if own.all() and not spread.any():
            return
        ordered = self._same_block_ordered(lanes, tag)
        suspects = (tag != 0) & np.where(spread == 2, True, np.where(spread == 1, ~ordered, ~own & ~ordered))
        if suspects.any():
            conflict = Conflict(lanes.batch, lanes, view, address, serial, lanes.shape)
            assert self.earlier is not None
            other = np.where(own, cells.get(self.earlier), tag)
            conflict.with_lanes(suspects & (other != 0), (other & AGENT) - 1, other >> SHIFT)

    def write(self, lanes: LaneSet, view: View, address: Any, value: Any, site: int) -> None:
        """Check a write against writes and reads of other threads."""
        serial = self.run.operation(site)
        mine = (serial << SHIFT) | (lanes.lane + 1)
        for cells in self._cells(lanes, view, address):
            self._check_writers(lanes, view, address, cells.get(self.tag), serial, value)
            self._check_readers(lanes, view, address, cells, serial)
            if self.foreign is not None:
                self._check_writers(lanes, view, address, cells.get(self.foreign), serial, value)
                cells.put(self.foreign, 0)
            if self.plain is not None:
                cells.put(self.plain, mine)
            cells.put(self.tag, mine)
            if self.races and not cells.distinct:
                kept = cells.get(self.tag)
                lost = kept != mine
                if lost.any():
                    self._hide(lanes, cells, kept, [np.where(lost, mine, 0)])
                    conflict = Conflict(lanes.batch, lanes, view, address, serial, lanes.shape)
                    conflict.write_write_at_once(
                        lost.reshape(-1), (kept & AGENT).reshape(-1), cells.index.reshape(-1), value
                    )

    def atomic(self, lanes: LaneSet, view: View, address: Any, site: int) -> None:
        """Check an atomic operation against plain accesses of other threads."""
        serial = self.run.operation(site)
        for cells in self._cells(lanes, view, address):
            tag = cells.get(self.tag)
            self._check_initialized(lanes, view, address, cells, tag, site)
            if self.races:
                if self.plain is None:
                    self.plain = self.tag.copy()
                self._check_writers(lanes, view, address, cells.get(self.plain), serial)
                self._check_readers(lanes, view, address, cells, serial)
                self._note_atomic(lanes, cells, (serial << SHIFT) | (lanes.lane + 1))
            else:
                cells.put(self.tag, (serial << SHIFT) | (lanes.lane + 1))
        lanes.batch.log_atomic(serial, view, lanes, address)

    def _note_atomic(self, lanes: LaneSet, cells: Cells, mine: Any) -> None:
        """Remember an atomic writer, and those whose tags give way to it."""
        before = cells.get(self.tag)
        if cells.distinct:
            before = before.copy()  # a window shows what is put there next
        cells.put(self.tag, mine)
        kept = mine if cells.distinct else cells.get(self.tag)
        self._hide(lanes, cells, kept, [before, mine])

    def _hide(self, lanes: LaneSet, cells: Cells, kept: Any, hidden: list[Any]) -> None:
        """Keep, per cell, one access of another agent than the tag's; rather one of another block, then the latest."""
        columns, first = lanes.batch.columns, lanes.batch.first_serial << SHIFT
        kept_block = ((kept & AGENT) - 1) % columns

        def ranked(tags: Any) -> Any:
            recent = tags >= first
            same_block = recent & (((tags & AGENT) - 1) % columns == kept_block)
            same_agent = recent & ((tags & AGENT) == (kept & AGENT))
            rank = np.where((tags == 0) | same_agent, 0, np.where(same_block, 1, 2))
            return np.where(rank > 0, (rank << RANK) | tags, 0)

        known = [] if self.foreign is None else [cells.get(self.foreign)]
        best = np.maximum.reduce([ranked(tags) for tags in (*hidden, *known)])
        if not best.any():
            return
        if self.foreign is None:
            self.foreign = np.zeros_like(self.tag)
        cells.put(self.foreign, 0)
        index, best = cells.index.reshape(-1), best.reshape(-1)
        np.maximum.at(self.foreign, index, best)
        self.foreign[index] &= (1 << RANK) - 1
