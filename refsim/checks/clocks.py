"""What each thread of a block knows of the others, for kernels whose threads meet in barrier objects.

A thread that arrives at a barrier object hands on what it did and what it knows; one that has waited for the phase to
end knows what all who arrived had handed on. `known[column, thread, other]` is the time (a serial number) up to which
the thread knows what the other one did. While all events span all blocks of the batch, one block stands for all.
Barriers of a whole block need no entry: accesses before one are no suspects after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.checks.tags import OF_WARP, UNKNOWN

if TYPE_CHECKING:
    from refsim.engine.batch import Batch
    from refsim.engine.lanes import LaneSet

TIME = np.int32


class Clocks:
    """Clocks of the threads of a batch."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.wide = batch.columns == 1
        self.known = np.zeros((1, batch.threads, batch.threads), TIME)
        self.handed_on: dict[Any, Any] = {}  # by barrier object: what those hand on who arrived so far
        self.received: dict[Any, Any] = {}  # and what is known when its last phase has ended

    def _widen(self) -> None:
        self.wide = True
        for table in (self.handed_on, self.received):
            table.update({key: np.repeat(value, self.batch.columns, axis=0) for key, value in table.items()})
        self.known = np.repeat(self.known, self.batch.columns, axis=0)

    def _groups(self, lanes: LaneSet) -> list[tuple[int, Any]]:
        """Threads of a set in each block, (block column, thread numbers); column 0 for all while narrow."""
        if not self.wide and not lanes.whole_columns:
            self._widen()
        if lanes.flat is None:
            columns = [0] if not self.wide else lanes.b.reshape(-1).tolist()
            rows = lanes.t.reshape(-1)
            return [(column, rows) for column in columns]
        threads, blocks = lanes.t.reshape(-1), lanes.b.reshape(-1)
        return [(int(column), threads[blocks == column]) for column in np.unique(blocks)]

    def _table(self, table: dict[Any, Any], key: Any) -> Any:
        if key not in table:
            table[key] = np.zeros((self.known.shape[0], self.batch.threads), TIME)
        return table[key]

    def arrive(self, lanes: LaneSet, key: Any, serial: int) -> None:
        """The threads of a set hand on what they know to a barrier object."""
        for column, threads in self._groups(lanes):
            table = self._table(self.handed_on, key)[column]
            np.maximum(table, self.known[column, threads].max(axis=0), out=table)
            table[threads] = serial

    def complete(self, key: Any, columns: Any) -> None:
        """A phase of a barrier object has ended in some blocks: a truth value for each."""
        if not self.wide and not columns.all():
            self._widen()
        chosen = columns if self.wide else columns[:1]
        self._table(self.received, key)[chosen] = self._table(self.handed_on, key)[chosen]

    def waited(self, lanes: LaneSet, key: Any) -> None:
        """The threads of a set have waited for the end of a phase."""
        for column, threads in self._groups(lanes):
            received = self._table(self.received, key)[column]
            self.known[column, threads] = np.maximum(self.known[column, threads], received)

    def met(self, lanes: LaneSet, mask: Any, serial: int) -> None:
        """The lanes that a mask names met in a warp barrier: each knows what all of them knew."""
        size = self.batch.run.device.warp_size
        for column, threads in self._groups(lanes):
            if isinstance(mask, np.ndarray):
                return  # masks that differ between lanes hand on nothing here
            named = threads[(np.int64(int(mask)) >> (threads % size)) & 1 == 1]
            for warp in np.unique(named // size):
                mates = named[named // size == warp]
                together = self.known[column, mates].max(axis=0)
                together[mates] = serial
                self.known[column, mates] = together

    def ordered(self, columns: Any, first: Any, second: Any, serials: Any) -> Any:
        """Whether each second thread knows what the first did up to a time; `first` may be a mark for several."""
        columns = columns if self.wide else np.zeros_like(columns)
        single = first < self.batch.threads
        certain = second < self.batch.threads
        second = np.where(certain, second, 0)
        result = self.known[columns, second, np.where(single, first, 0)] >= serials
        size = self.batch.run.device.warp_size
        for position in np.flatnonzero(~single):
            row = self.known[columns[position], second[position]]
            if first[position] <= OF_WARP:
                warp = int(OF_WARP - first[position])
                row = row[warp * size : (warp + 1) * size]
            result[position] = first[position] <= UNKNOWN and len(row) > 0 and row.max() >= serials[position]
        return result & certain
