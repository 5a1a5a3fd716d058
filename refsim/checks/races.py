"""From a suspected conflict between two accesses to a finding, or to nothing.

A suspicion is dropped if both accesses are atomic, if a warp barrier separates two threads of one warp, or
if fences and atomics order them. Two writes of the same value are a note.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.checks.cells import each
from refsim.checks.spots import Spot
from refsim.checks.tags import MOST_WARPS, OF_WARP, UNKNOWN

if TYPE_CHECKING:
    from refsim.engine.batch import Batch
    from refsim.engine.lanes import LaneSet
    from refsim.engine.views import View


class Conflict:
    """One access of a set of lanes that meets other agents in the cells it touches."""

    def __init__(
        self, batch: Batch, lanes: LaneSet, view: View, address: Any, serial: int, shape: tuple[int, ...]
    ) -> None:
        self.batch = batch
        self.run = batch.run
        self.lanes = lanes
        self.view = view
        self.address = each(address)
        self.serial = serial
        self.site = self.run.operations[serial]
        self.shape = shape

    def _spread(self, value: Any) -> Any:
        """One entry for each lane considered; the first block stands for all while a shadow is narrow."""
        array = np.asarray(value)
        if array.ndim == 1 and len(self.shape) == 2:
            return array
        if array.ndim == 2 and len(self.shape) == 2 and self.shape[1] == 1 and array.shape[1] > 1:
            array = array[:, :1]
        return np.broadcast_to(array, self.shape).reshape(-1)

    def with_threads(self, suspects: Any, threads: Any, serials: Any, *, earlier: bool, same: Any = None) -> None:
        """Other agents are threads of the same block; `earlier` if they came first.

        `same` says where a write stores what the cell holds; two writes of one value are a note.
        """
        chosen = np.flatnonzero(self._spread(suspects))
        other_threads = self._spread(threads)[chosen]
        columns = self._spread(self.lanes.b)[chosen]
        self._settle(chosen, other_threads, columns, self.batch.number, self._spread(serials)[chosen], earlier, same)

    def with_lanes(self, suspects: Any, lane_numbers: Any, serials: Any, same: Any = None) -> None:
        """Other agents are lanes of this batch or of an earlier one, and came first."""
        chosen = np.flatnonzero(self._spread(suspects))
        serials = self._spread(serials)[chosen]
        lane_numbers = self._spread(lane_numbers)[chosen]
        batches = self.run.batch_of(serials)
        columns = self.run.columns_of_batch[batches]
        lane_numbers = np.where(lane_numbers == UNKNOWN, UNKNOWN * columns, lane_numbers)
        self._settle(chosen, lane_numbers // columns, lane_numbers % columns, batches, serials, True, same)

    def write_write_at_once(self, lost: Any, winners: Any, cells: Any, value: Any) -> None:
        """Several lanes wrote one cell in one instruction; `winners` are the agents whose tag stayed, plus one."""
        if not self.run.unreported("race", self.site, self.site):
            return
        values = np.broadcast_to(np.asarray(value), self.lanes.shape).reshape(-1)
        if len(cells) != values.size:  # narrow: one block stands for all; any block may differ
            lanes_values = np.broadcast_to(np.asarray(value), self.lanes.shape)
            differ = np.zeros(len(cells), bool)
            order = np.argsort(cells, kind="stable")
            same_cell = cells[order][1:] == cells[order][:-1]
            unequal = (lanes_values[order][1:] != lanes_values[order][:-1]).any(axis=1)
            differ[order[1:]] = same_cell & unequal
        else:
            order = np.argsort(cells, kind="stable")
            differ = np.zeros(len(cells), bool)
            differ[order[1:]] = (cells[order][1:] == cells[order][:-1]) & (values[order][1:] != values[order][:-1])
        chosen = np.flatnonzero(lost)
        harmful = bool(differ.any())
        if harmful:
            bad_cells = np.unique(cells[differ])
            chosen = np.flatnonzero(lost & np.isin(cells, bad_cells))
            if not len(chosen):
                chosen = np.flatnonzero(lost)
        lane = int(chosen[0])
        winner = int(np.asarray(winners).reshape(-1)[lane]) - 1
        if self.view.memory.space == "shared":
            thread, column = winner, int(self._spread(self.lanes.b)[lane])
        else:
            thread, column = divmod(winner, self.batch.columns)
        self._report(lane, thread, column, self.batch.number, self.serial, True, not harmful)

    # ------------------------------------------------------------------------------------------------

    def _settle(
        self, chosen: Any, threads: Any, columns: Any, batches: Any, serials: Any, earlier: bool, same: Any
    ) -> None:
        """Drop what is ordered, then report the first pair of each pair of source lines."""
        if not len(chosen):
            return
        batches = np.broadcast_to(np.asarray(batches), chosen.shape)
        operations, sites = self.run.operations, self.run.sites
        unique, inverse = np.unique(serials, return_inverse=True)
        other_sites = np.array([operations[int(s)] for s in unique])
        open_pairs = np.array(
            [not self._agree(int(s)) and self.run.unreported("race", self.site, int(s)) for s in other_sites]
        )
        keep = open_pairs[inverse]
        my_threads = self._spread(self.lanes.t)[chosen]
        my_columns = self._spread(self.lanes.b)[chosen]
        if sites[self.site].atomic:  # of which those of one block agree, whatever their scope
            others = np.array([sites[int(s)].atomic for s in other_sites])[inverse]
            keep = keep & ~(others & (batches == self.batch.number) & (columns == my_columns))
        if keep.any() and self.batch.warp_barriers:
            size = self.run.device.warp_size
            several = (threads <= OF_WARP) & (threads > OF_WARP - MOST_WARPS) & (batches == self.batch.number)
            warps = np.where(several, OF_WARP - threads, threads // size)
            mates = (batches == self.batch.number) & (columns == my_columns) & (warps == my_threads // size)
            for position in np.flatnonzero(keep & mates):
                first, last = sorted((int(serials[position]), self.serial))
                pair = (int(threads[position]), int(my_threads[position]))
                keep[position] = not self.batch.met_in_warp_barrier(pair, int(my_columns[position]), first, last)
        if keep.any() and self.batch.clocks is not None:
            first, second, times = (threads, my_threads, serials) if earlier else (my_threads, threads, self.serial)
            met = (batches == self.batch.number) & (columns == my_columns) & keep
            times = np.broadcast_to(times, chosen.shape)
            keep[met] &= ~self.batch.clocks.ordered(my_columns[met], first[met], second[met], times[met])
        alike = np.zeros(len(chosen), bool) if same is None else self._spread(same)[chosen]
        alike &= np.array([not sites[int(s)].atomic for s in other_sites])[inverse]
        seen: set[int] = set()
        for position in (*np.flatnonzero(keep & ~alike), *np.flatnonzero(keep & alike)):  # errors before notes
            site = int(other_sites[inverse[position]])
            if site in seen:
                continue
            lane = int(chosen[position])
            other = (int(batches[position]), int(columns[position]), int(threads[position]), int(serials[position]))
            me = (self.batch.number, int(my_columns[position]), int(my_threads[position]), self.serial)
            sync = self.run.sync
            first_atomic = sites[site if earlier else self.site].atomic
            if sync is not None and sync.ordered(*((other, me) if earlier else (me, other)), first_atomic):
                continue
            seen.add(site)
            self._report(lane, other[2], other[1], other[0], other[3], earlier, bool(alike[position]))

    def _agree(self, other: int) -> bool:
        """True for two sites whose accesses never race: atomic for each other, or a volatile flag and who awaits it."""
        a, b = self.run.sites[self.site], self.run.sites[other]
        if a.atomic and b.atomic:
            return a.scope != "block" != b.scope
        return a.flag and b.flag and (a.awaited or b.awaited)

    def _address_of(self, lane: int) -> int:
        return int(self._spread(self.address)[lane])

    def _report(
        self, lane: int, thread: int, column: int, batch: int, serial: int, earlier: bool, same_value: bool
    ) -> None:
        run = self.run
        site, other_site = run.sites[self.site], run.sites[run.operations[serial]]
        my_column = int(self._spread(self.lanes.b)[lane])
        # the index that the named lane used, in its own view
        index = self.view.index_of(self._address_of(lane))
        block, other_block = self.batch.block_of(my_column), run.batches[batch].block_of(column)
        memory = self.view.pointed_to
        thread_of_mine = run.thread_of(int(self._spread(self.lanes.t)[lane]))
        me = run.access(self.site, index, block, thread_of_mine, memory)
        known = None if thread > OF_WARP - MOST_WARPS else run.thread_of(thread)
        other = run.access(run.operations[serial], index, other_block, known, memory)
        first, second = (other_site, site) if earlier else (site, other_site)
        between = "within a block" if block == other_block else "between blocks"
        text = ", ".join(str(i) for i in index)
        what = f"{second.noun} after {first.noun}"
        if same_value:
            message = (
                f"several threads write the same value to {me.array}[{text}] ({self.view.memory.space}, {between})"
            )
        else:
            where = f"{me.array}[{text}] ({self.view.memory.space} memory, {between})"
            message = f"{what} of {where} with nothing that orders them"
        found = len(run.report_out.findings)
        run.report(
            "race",
            "note" if same_value else "error",
            message,
            me,
            other,
            self.view,
            pair=(self.site, run.operations[serial]),
        )
        if len(run.report_out.findings) > found and not same_value and known is not None:
            mine = int(self._spread(self.lanes.t)[lane])
            run.racing[found] = (
                Spot(int(self.batch.blocks[my_column]), mine, site.place.line),
                Spot(int(run.batches[batch].blocks[column]), thread, other_site.place.line),
            )
