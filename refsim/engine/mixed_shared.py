"""Dynamic shared memory that a kernel declares as arrays of types of different size: words of the smallest size."""

from __future__ import annotations

from typing import Any

import numpy as np

from refsim.engine.lane_types import NARROW, to_lane
from refsim.engine.lanes import LaneSet
from refsim.engine.memory import SharedMemory
from refsim.engine.pointers import UNSIGNED
from refsim.engine.views import View


class MixedSharedMemory:
    """The same memory as `words`, read and written as elements of one or more words each."""

    space = "shared"
    shadow = None
    address = 0

    def __init__(self, words: SharedMemory) -> None:
        self.words = words
        self.name = words.name
        self.word = words.word
        self.bytes = words.bytes
        self.kind = UNSIGNED[words.word]

    def array(self, dtype: str) -> View:
        """The whole memory as a one-dimensional array of a type."""
        count = self.bytes // np.dtype(dtype).itemsize
        return View(self, np.empty(0), dtype, 0, (count,), (1,), True)

    def _as_words(self, view: View) -> tuple[View, int]:
        """The view over words in which an element's first word has the element's subscript, and words per element."""
        each = np.dtype(view.dtype).itemsize // self.word
        if each == 1:
            data = self.words.data.view(np.dtype(view.dtype))
            return View(self.words, data, view.dtype, view.offset, view.shape, view.strides, view.wraps), 1
        strides = tuple(stride * each for stride in view.strides)
        data = self.words.data.view(np.dtype(self.kind))
        return View(self.words, data, self.kind, view.offset * each, view.shape, strides, view.wraps), each

    def read(self, lanes: LaneSet, view: View, address: Any, site: int) -> Any:
        """See `Memory.read`."""
        words, each = self._as_words(view)
        if each == 1:
            return self.words.read(lanes, words, address, site)
        parts = [self.words.read(lanes, words, address * each + k, site) for k in range(each)]
        raw = np.stack([lanes.full(part, np.dtype(self.kind)) for part in parts], axis=-1)
        return to_lane(raw.view(np.dtype(view.dtype))[..., 0], view.dtype)

    def write(self, lanes: LaneSet, view: View, address: Any, value: Any, site: int) -> None:
        """See `Memory.write`."""
        words, each = self._as_words(view)
        if each == 1:
            self.words.write(lanes, words, address, value, site)
            return
        raw = np.ascontiguousarray(lanes.full(value, np.dtype(view.dtype)))[..., None].view(np.dtype(self.kind))
        for k in range(each):
            part = raw[..., k]
            self.words.write(
                lanes, words, address * each + k, part.astype(np.int64) if self.kind in NARROW else part, site
            )

    def atomic(
        self, lanes: LaneSet, view: View, address: Any, op: str, args: tuple[Any, ...], site: int, used: bool
    ) -> Any:
        """See `Memory.atomic`; the elements are put together and taken apart again."""
        words, each = self._as_words(view)
        if each == 1:
            return self.words.atomic(lanes, words, address, op, args, site, used)
        if self.words.shadow is not None:
            for k in range(each):
                self.words.shadow.atomic(lanes, words, address * each + k, site)
        count, columns = len(words.data) // each, self.words.columns
        apart = words.data[: count * each].reshape(count, each, columns)
        whole = np.ascontiguousarray(apart.transpose(0, 2, 1)).view(np.dtype(view.dtype))[..., 0].copy()
        flat = address * columns + lanes.b
        old = lanes.batch.apply_atomic(lanes, whole.reshape(-1), flat, op, args, view.dtype, used)
        apart[...] = whole[..., None].view(np.dtype(self.kind)).transpose(0, 2, 1)
        return old
