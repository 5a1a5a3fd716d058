"""The shadow of global memory: last writers, last readers, and what they hide, over a whole launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.checks.cells import Cells, Window, each, located
from refsim.checks.races import Conflict
from refsim.checks.rewrites import keeps_value
from refsim.checks.tags import AGENT, RANK, SHIFT

if TYPE_CHECKING:
    from refsim.engine.lanes import LaneSet
    from refsim.engine.run import Run
    from refsim.engine.views import View


LARGE_PAGES = 1 << 22, 1 << 28  # bytes from which NumPy asks for large pages, and from which few may ever be touched


def _no_tags(granules: int) -> Any:
    """A zero for each granule.

    NumPy asks the operating system for large pages where it is not to clear an array: to fetch memory in small ones
    takes longer than to clear it.
    """
    if not LARGE_PAGES[0] <= 8 * granules < LARGE_PAGES[1]:
        return np.zeros(granules, np.int64)
    tags = np.empty(granules, np.int64)
    tags.fill(0)
    return tags


class GlobalShadow:
    """Shadow of one allocation of global memory over a whole launch.

    `races` is False for memory that the kernel does not write; `initialized` holds which granules had a
    value before the launch, None standing for all; `reads` is False for memory the kernel only writes.
    """

    def __init__(self, run: Run, granules: int, initialized: Any, races: bool, reads: bool) -> None:
        self.run = run
        self.initialized = initialized
        self.races = races
        self.tag = _no_tags(granules if races or initialized is not None else 0)
        self.reader = _no_tags(granules) if races and reads else None
        # who read: 0 one thread, 1 several of a block, 2 several blocks; and the reader before the last one
        self.spread = np.zeros(granules, np.uint8) if races and reads else None
        self.earlier = np.zeros(granules, np.int64) if races and reads else None
        self.plain: Any = None  # the last plain writer, from the first atomic operation on
        self.foreign: Any = None  # an access of another agent than the last writer, which would hide it
        self.scoped = False  # an atomic operation of block scope was made here
        self.hides_writes = False  # some of them are plain writes
        self.changed: Any = None  # the last write whose value a later one replaced by another

    def _cells(self, lanes: LaneSet, view: View, address: Any) -> list[Cells]:
        """Granules touched by each lane: one entry for each granule of an element."""
        per_element = view.data.dtype.itemsize // view.memory.granule
        step = view.data.strides[0] // view.memory.granule  # fields of records lie closer than their size
        if isinstance(address, Window):
            return [address.scaled(step).moved(view.base + part) for part in range(per_element)]
        first = address * step if step > 1 else address
        if view.base:
            first = first + view.base
        return [located(lanes, first + part if part else first) for part in range(per_element)]

    def _current(self, tag: Any) -> Any:
        """Tags of accesses since the last barrier of the whole grid; 0 for others."""
        start = self.run.grid_serial << SHIFT
        return tag if not start else np.where(tag >= start, tag, 0)

    def _current_of(self, cells: Cells, tags: Any) -> Any:
        """`_current` tags of cells; None if no cell has one."""
        if isinstance(cells, Window) and cells.most(tags) < max(1, self.run.grid_serial << SHIFT):
            return None
        tag = self._current(cells.get(tags))
        return tag if isinstance(cells, Window) or tag.max() else None

    def _own(self, lanes: LaneSet, tag: Any) -> Any:
        """Cells whose tag is that of the lane itself."""
        return (tag >= lanes.batch.first_serial << SHIFT) & ((tag & AGENT) == lanes.numbers)

    def _same_block_ordered(self, lanes: LaneSet, tag: Any) -> Any:
        """Accesses by tag that the own block ordered before this one with a barrier."""
        batch = lanes.batch
        serial = tag >> SHIFT
        bar = batch.bar if type(batch.bar) is int else batch.bar[lanes.b]
        return (serial >= batch.first_serial) & (((tag & AGENT) - 1) % batch.columns == lanes.b) & (serial < bar)

    def _check_writers(self, lanes: LaneSet, view: View, address: Any, cells: Cells, tags: Any, serial: int) -> None:
        """Report lanes whose cell another agent wrote, by such tags, with nothing in between."""
        tag = self._current_of(cells, tags) if self.races else None
        if tag is None:
            return
        suspects = (tag != 0) & ~self._own(lanes, tag)
        if not suspects.any():
            return
        suspects &= ~self._same_block_ordered(lanes, tag)
        if suspects.any():
            conflict = Conflict(lanes.batch, lanes, view, address, serial, lanes.shape)
            conflict.with_lanes(suspects, (tag & AGENT) - 1, tag >> SHIFT)

    def _check_initialized(self, lanes: LaneSet, view: View, address: Any, cells: Cells, site: int) -> None:
        if self.initialized is None:
            return
        missing = (cells.get(self.tag) == 0) & ~cells.get(self.initialized)
        if missing.any():
            lanes.batch.report_uninitialized(lanes, view, each(address), missing, site)

    def read(self, lanes: LaneSet, view: View, address: Any, site: int) -> None:
        """Check a read against writes and remember the reader."""
        serial = self.run.operation(site)
        for cells in self._cells(lanes, view, address):
            self._check_initialized(lanes, view, address, cells, site)
            self._check_writers(lanes, view, address, cells, self.tag, serial)
            if self.foreign is not None:
                self._check_writers(lanes, view, address, cells, self.foreign, serial)
            if self.reader is not None:
                self._note_reader(lanes, cells, serial)

    def _note_reader(self, lanes: LaneSet, cells: Cells, serial: int) -> None:
        reader, spread = self.reader, self.spread
        assert reader is not None
        assert spread is not None
        lanes.batch.dirty = True
        before = self._current_of(cells, reader)
        known = before is not None
        if known and cells.distinct:
            before = before.copy()  # a window shows what is put there next
        columns = lanes.batch.columns
        level: Any = None
        if known:
            own = (before == 0) | self._own(lanes, before)
            was = np.where(before != 0, cells.get(spread), 0).astype(np.uint8)
            if not own.all() or was.any():
                same_batch = before >= lanes.batch.first_serial << SHIFT
                own_block = same_batch & (((before & AGENT) - 1) % columns == lanes.b)
                level = np.maximum(np.where(own, 0, np.where(own_block, 1, 2)).astype(np.uint8), was)
                level[self._same_block_ordered(lanes, before) & (was < 2)] = 0
                cells.put(spread, 0)
        cells.put_tags(reader, serial, lanes)
        mine: Any = None if cells.distinct and level is None else (serial << SHIFT) | lanes.numbers
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
            displaced = np.where(cells.get(reader) == mine, before if known else 0, mine)
            others = (level > 0) & (displaced != 0) & ((displaced & AGENT) != (cells.get(reader) & AGENT))
            self.earlier[cells.index[others]] = displaced[others]

    def _check_readers(self, lanes: LaneSet, view: View, address: Any, cells: Cells, serial: int) -> None:
        if self.reader is None or self.spread is None:
            return
        tag = self._current_of(cells, self.reader)
        if tag is None:
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
            other = np.where(own, self._current(cells.get(self.earlier)), tag)
            conflict.with_lanes(suspects & (other != 0), (other & AGENT) - 1, other >> SHIFT)

    def write(self, lanes: LaneSet, view: View, address: Any, value: Any, site: int) -> Window | None:
        """Check a write against writes and reads of other threads; where it goes in the view's data, if evenly."""
        serial = self.run.operation(site)
        all_cells = self._cells(lanes, view, address)
        for cells in all_cells:
            before = self._current_of(cells, self.tag) if self.races else None
            if before is not None:
                self._rewrite(lanes, view, address, cells, before, serial, value)
            self._check_readers(lanes, view, address, cells, serial)
            if self.plain is not None:
                cells.put_tags(self.plain, serial, lanes)
            cells.put_tags(self.tag, serial, lanes)
            if self.races and not cells.distinct:
                mine = (serial << SHIFT) | lanes.numbers
                kept = cells.get(self.tag)
                lost = kept != mine
                if lost.any():
                    self.hides_writes = True
                    self._hide(lanes, cells, kept, [np.where(lost, mine, 0)])
                    conflict = Conflict(lanes.batch, lanes, view, address, serial, lanes.shape)
                    conflict.write_write_at_once(
                        lost.reshape(-1), (kept & AGENT).reshape(-1), cells.index.reshape(-1), value
                    )
        plain = len(all_cells) == 1 and view.data.strides[0] == view.memory.granule
        return cells.moved(-view.base) if plain and isinstance(cells, Window) else None

    def _rewrite(
        self, lanes: LaneSet, view: View, address: Any, cells: Cells, before: Any, serial: int, value: Any
    ) -> None:
        """Check a write to cells that were written before, and remember what it hides."""
        conflict = Conflict(lanes.batch, lanes, view, address, serial, lanes.shape)
        same = keeps_value(lanes, view, conflict.address, value, lanes.shape)
        hidden = []
        for tag in [before] if self.foreign is None else [before, self._current(cells.get(self.foreign))]:
            others = (tag != 0) & ~self._own(lanes, tag)
            if others.any():
                others &= ~self._same_block_ordered(lanes, tag)
            if others.any():
                conflict.with_lanes(others, (tag & AGENT) - 1, tag >> SHIFT, same=same)
                others &= same
                if others.any():
                    hidden.append(np.where(others, tag, 0))
        if self.changed is not None and hidden:
            tag = self._current(cells.get(self.changed))
            others = (tag != 0) & same & ~self._own(lanes, tag)
            others &= ~self._same_block_ordered(lanes, tag)
            conflict.with_lanes(others, (tag & AGENT) - 1, tag >> SHIFT)
        replaced = (before != 0) & ~same
        if replaced.any():
            if self.changed is None:
                self.changed = np.zeros_like(self.tag)
            cells.put(self.changed, np.where(replaced, before, cells.get(self.changed)))
        if self.foreign is not None:
            cells.put(self.foreign, 0)
        if hidden:
            self.hides_writes = True
            self._hide(lanes, cells, (serial << SHIFT) | lanes.numbers, hidden)

    def atomic(self, lanes: LaneSet, view: View, address: Any, site: int) -> None:
        """Check an atomic operation against plain accesses of other threads."""
        serial = self.run.operation(site)
        for cells in self._cells(lanes, view, address):
            self._check_initialized(lanes, view, address, cells, site)
            if self.races:
                if self.plain is None:
                    self.plain = self.tag.copy()
                narrow = self.run.sites[site].scope == "block"
                self.scoped |= narrow
                self._check_writers(lanes, view, address, cells, self.tag if self.scoped else self.plain, serial)
                if (self.hides_writes or self.scoped) and self.foreign is not None:
                    self._check_writers(lanes, view, address, cells, self.foreign, serial)
                self._check_readers(lanes, view, address, cells, serial)
                self._note_atomic(lanes, cells, (serial << SHIFT) | lanes.numbers)
                if narrow and self.foreign is not None:  # blocks that meet in this very instruction
                    self._check_writers(lanes, view, address, cells, self.foreign, serial)
            else:
                cells.put_tags(self.tag, serial, lanes)
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

        known = [] if self.foreign is None else [self._current(cells.get(self.foreign))]
        best = np.maximum.reduce([ranked(tags) for tags in (*hidden, *known)])
        if not best.any():
            return
        if self.foreign is None:
            self.foreign = np.zeros_like(self.tag)
        cells.put(self.foreign, 0)
        index, best = cells.index.reshape(-1), best.reshape(-1)
        np.maximum.at(self.foreign, index, best)
        self.foreign[index] &= (1 << RANK) - 1
