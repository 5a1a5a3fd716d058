"""Streams: idle at any time, so callbacks are called at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any


def add_callback(stream: Any, callback: Callable[[Any, int, Any], None], arg: Any = None) -> None:
    """Call ``callback(stream, 0, arg)``; what it raises becomes a warning, as numba has it."""
    try:
        callback(stream, 0, arg)
    except Exception as error:
        warnings.warn(f"Exception in stream callback: {error}", stacklevel=2)


def number(stream: Any) -> int:
    """The handle of a stream."""
    return int(stream.handle)


def core_stream(stream: Any) -> Any:
    """The stream of a launch.

    Raises
    ------
    TypeError
        If it is none.
    """
    from cuda.bindings import driver as binding
    from numba.cuda.cudadrv.driver import Stream

    if not stream:
        return Stream(binding.CUstream(0))
    if isinstance(stream, Stream):
        return stream
    raise TypeError(f"Expected a Stream object, ExperimentalStream, GraphBuilder, or 0, got {type(stream).__name__}")
