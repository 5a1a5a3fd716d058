"""Streams and events of ``numba.cuda``: in order, so every wait is over when it begins."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from refsim.hosts.clock import Mark

_handles = itertools.count(3)


class Stream:
    """A stream; what is enqueued is done at once."""

    def __init__(self, handle: int | None = None) -> None:
        self.handle = next(_handles) if handle is None else handle
        self.external = False

    def __int__(self) -> int:
        return self.handle

    def synchronize(self) -> None:
        """Nothing to wait for."""

    @contextlib.contextmanager
    def auto_synchronize(self) -> Iterator[Stream]:
        """Synchronise at the end of the block."""
        yield self

    def add_callback(self, callback: Callable[[Stream, int, Any], None], arg: Any = None) -> None:
        """Call ``callback(stream, 0, arg)``: the stream is idle."""
        callback(self, 0, arg)

    def async_done(self) -> asyncio.Future[None]:
        """A future that is done."""
        future = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future


class Event:
    """A point in a stream; times are host times."""

    def __init__(self, timing: bool = True) -> None:
        self.timing = timing
        self._mark = Mark()

    def record(self, stream: Any = 0) -> None:
        """Remember the present moment."""
        self._mark.record()

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait(self, stream: Any = 0) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """True: all work is done."""
        return True

    def elapsed_time(self, evtend: Event) -> float:
        """Milliseconds of host time until another event."""
        if not (self.timing and evtend.timing):
            raise RuntimeError("elapsed time needs events that were created with timing=True")
        return self._mark.milliseconds_until(evtend._mark)


def stream() -> Stream:
    """A new stream."""
    return Stream()


def default_stream() -> Stream:
    """The default stream."""
    return Stream(0)


def legacy_default_stream() -> Stream:
    """The legacy default stream."""
    return Stream(1)


def per_thread_default_stream() -> Stream:
    """The default stream of this thread."""
    return Stream(2)


def external_stream(ptr: int) -> Stream:
    """A stream that another library made."""
    made = Stream(ptr)
    made.external = True
    return made


def event(timing: bool = True) -> Event:
    """A new event."""
    return Event(timing)


def event_elapsed_time(evtstart: Event, evtend: Event) -> float:
    """Milliseconds of host time between two events."""
    return evtstart.elapsed_time(evtend)


def synchronize() -> None:
    """Nothing to wait for."""
