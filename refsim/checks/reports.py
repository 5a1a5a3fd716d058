"""What the lanes of a batch report and print: findings with their block, thread and cell, and kernel output."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from refsim.checks.findings import Raised
from refsim.dialect import ITEM_BYTES
from refsim.engine.intrinsics import wrap
from refsim.engine.lanes import LaneSet
from refsim.engine.views import View

if TYPE_CHECKING:
    from refsim.engine.run import Run

C_LENGTH = re.compile(r"%(?=[-+ #0-9.]*(?:hh|h|ll|l|z|t|j)+[a-zA-Z])")


class Reports:
    """The reporting half of `refsim.engine.batch.Batch`."""

    run: Run
    columns: int
    blocks: Any
    dirty: bool

    def block_of(self, column: int) -> tuple[int, int, int]:
        """Three-dimensional coordinates of a block."""
        gx, gy, _ = self.run.grid
        linear = int(self.blocks[column])
        return linear % gx, linear // gx % gy, linear // (gx * gy)

    def _offender(self, lanes: LaneSet, bad: Any) -> int:
        """First lane, in the set's order, for which a mask holds."""
        return int(np.flatnonzero(np.broadcast_to(np.asarray(bad), lanes.shape).reshape(-1))[0])

    def _spot(self, lanes: LaneSet, lane: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        column = int(np.broadcast_to(lanes.b, lanes.shape).reshape(-1)[lane])
        thread = int(np.broadcast_to(lanes.t, lanes.shape).reshape(-1)[lane])
        return self.block_of(column), self.run.thread_of(thread)

    @staticmethod
    def _of_lane(lanes: LaneSet, value: Any, lane: int) -> int:
        return int(np.broadcast_to(np.asarray(value), lanes.shape).reshape(-1)[lane])

    def report_outside(self, lanes: LaneSet, view: View, index: tuple[Any, ...], bad: Any, site: int) -> None:
        """An index lies outside its array."""
        if not self.run.unreported("out_of_bounds", site, site):
            self.run.outside_again(self, lanes, site)
            return
        lane = self._offender(lanes, bad)
        block, thread = self._spot(lanes, lane)
        where = tuple(self._of_lane(lanes, i, lane) for i in index if not isinstance(i, tuple))
        extent = tuple(self._of_lane(lanes, n, lane) for n in view.shape)
        me = self.run.access(site, where, block, thread)
        message = f"{me.action} {me.array}[{_text(where)}] is outside {view.memory.space} array of shape {extent}"
        if any(-n <= i < 0 for i, n in zip(where, extent, strict=False)) and not view.wraps:
            message += "; negative indices do not wrap here"
        self.run.report("out_of_bounds", "error", message, me, None, view, pair=(site, site))

    def note_wrapped(self, lanes: LaneSet, view: View, index: tuple[Any, ...], negative: Any, site: int) -> None:
        """A negative index wraps to the end of its array; noted where the launch asked for it."""
        if not self.run.note_negative or not self.run.unreported("out_of_bounds", site, -1):
            return
        lane = self._offender(lanes, negative)
        block, thread = self._spot(lanes, lane)
        where = tuple(self._of_lane(lanes, i, lane) for i in index)
        me = self.run.access(site, where, block, thread)
        message = f"{me.action} {me.array}[{_text(where)}] wraps to the end of the array, as in Python"
        self.run.report("out_of_bounds", "note", message, me, None, view, pair=(site, -1))

    def report_uninitialized(self, lanes: LaneSet, view: View, address: Any, bad: Any, site: int) -> None:
        """A cell is read that nothing wrote."""
        if not self.run.unreported("uninitialized_read", site, site):
            return
        bad = np.asarray(bad)
        lane = int(np.flatnonzero(np.broadcast_to(bad, lanes.shape).reshape(-1))[0])
        block, thread = self._spot(lanes, lane)
        index = view.index_of(self._of_lane(lanes, address, lane))
        me = self.run.access(site, index, block, thread, view.pointed_to)
        cell = f"{me.array}[{_text(index)}] ({view.memory.space} memory)"
        message = f"{me.action} {cell} before anything was written there"
        self.run.report("uninitialized_read", "error", message, me, None, view, pair=(site, site))

    def report_bad_pointer(self, lanes: LaneSet, memory: Any, offset: Any, dtype: str, site: int) -> None:
        """An access through a pointer is misaligned or lies outside its allocation."""
        size = ITEM_BYTES[dtype]
        lane = self._offender(lanes, True)
        first = self._of_lane(lanes, offset, lane)
        if first % size and 0 <= first <= memory.bytes - size:
            self.report_misaligned(lanes, memory, offset, np.asarray(offset) % size != 0, size, site)
            return
        if not self.run.unreported("out_of_bounds", site, site):
            self.run.outside_again(self, lanes, site)
            return
        block, thread = self._spot(lanes, lane)
        me = self.run.access(site, (first // size,), block, thread, memory)
        if memory.space == "null":
            message = f"{me.action} a null pointer"
        else:
            message = (
                f"{me.action} {size} bytes at byte {first} of {memory.space} memory {memory.name!r}, "
                f"which has {memory.bytes} bytes"
            )
        self.run.report("out_of_bounds", "error", message, me, None, None, pair=(site, site))

    def index32(self, lanes: LaneSet, site: int, value: Any) -> Any:
        """An int32 that indexes memory, from its exact value: wrapped as the device does, with a finding."""
        wrapped = wrap(value, "int32")
        if wrapped is value or np.array_equal(wrapped, value):
            return wrapped
        if self.run.unreported("out_of_bounds", site, site):
            lane = self._offender(lanes, np.asarray(wrapped) != value)
            block, thread = self._spot(lanes, lane)
            me = self.run.access(site, (self._of_lane(lanes, value, lane),), block, thread)
            message = (
                f"the 32-bit index {me.index[0] if me.index else 0} overflows and becomes "
                f"{self._of_lane(lanes, wrapped, lane)}; compute it in 64 bits"
            )
            self.run.report("out_of_bounds", "error", message, me, None, None, pair=(site, site))
        return wrapped

    def report_misaligned(self, lanes: LaneSet, memory: Any, offset: Any, wrong: Any, size: int, site: int) -> None:
        """A pointer is not a multiple of the size of the access."""
        if not self.run.unreported("misaligned", site, site):
            return
        lane = self._offender(lanes, wrong)
        block, thread = self._spot(lanes, lane)
        me = self.run.access(site, None, block, thread, memory)
        first = self._of_lane(lanes, offset, lane)
        message = f"{me.action} {size} bytes at byte {first} of {memory.name!r}, which is no multiple of {size}"
        self.run.report("misaligned", "error", message, me, None, None, pair=(site, site))

    def report_warp(self, lanes: LaneSet, site: int, column: int, thread: int, message: str) -> None:
        """A warp operation names or needs lanes that are not there."""
        me = self.run.access(site, None, self.block_of(column), self.run.thread_of(thread))
        self.run.report("warp_divergence", "error", message, me, None, None, pair=(site, site))

    def print(self, lanes: LaneSet, parts: tuple[Any, ...], printf: bool = False) -> None:
        """One line, or with `printf` one formatted text, per thread, block after block."""
        self.dirty = True
        columns = [
            part if isinstance(part, str) else lanes.full(part, np.asarray(part).dtype).reshape(-1) for part in parts
        ]
        order = np.lexsort(
            (np.broadcast_to(lanes.t, lanes.shape).reshape(-1), np.broadcast_to(lanes.b, lanes.shape).reshape(-1))
        )
        for lane in order:
            values = [part if isinstance(part, str) else part[lane].item() for part in columns]
            if printf:
                print(C_LENGTH.sub("%", values[0]) % tuple(values[1:]), end="")
            else:
                print(*values)

    def check_assertion(self, lanes: LaneSet, site: int, condition: Any, message: str, exception: Any = None) -> None:
        """An ``assert`` or ``raise`` of the kernel; the first exception is kept for a host that passes it on."""
        failed, _ = lanes.split(np.logical_not(condition) if isinstance(condition, np.ndarray) else not condition)
        if failed is not None and exception is not None and self.run.report_out.raised is None:
            kind, args = exception
            block, thread = self._spot(failed, 0)
            place = self.run.sites[site].place
            name = self.run.code.program.name
            self.run.report_out.raised = Raised(kind, args, name, place.file, place.line, block, thread)
        if failed is None or not self.run.unreported("assertion", site, site):
            return
        block, thread = self._spot(failed, 0)
        me = self.run.access(site, None, block, thread)
        self.run.report("assertion", "error", f"assertion failed: {message}", me, None, None, pair=(site, site))


def _text(index: tuple[int, ...]) -> str:
    return ", ".join(map(str, index))
