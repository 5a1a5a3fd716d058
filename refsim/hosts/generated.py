"""Source of functions that a script makes by ``exec``: kernels are read from their source, so it must be kept."""

from __future__ import annotations

import builtins
import contextlib
import itertools
import linecache
import sys
from collections.abc import Iterator
from typing import Any

_numbers = itertools.count(1)


def _remembered(source: str) -> str:
    """A file name under which Python's own tools find the text."""
    name = f"<exec {next(_numbers)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    return name


@contextlib.contextmanager
def kept_sources() -> Iterator[None]:
    """Within the block, text that is executed stays readable by its functions' file names."""
    real: Any = builtins.exec

    def execute(source: Any, globals: Any = None, locals: Any = None, /, *, closure: Any = None) -> None:
        if globals is None:
            frame = sys._getframe(1)
            globals, locals = frame.f_globals, frame.f_locals if locals is None else locals
        if not isinstance(source, str):
            real(source, globals, locals, closure=closure)
            return
        flags = sys._getframe(1).f_code.co_flags & _FUTURES
        real(compile(source, _remembered(source), "exec", flags, dont_inherit=True), globals, locals)

    builtins.exec = execute
    try:
        yield
    finally:
        builtins.exec = real


def _future_flags() -> int:
    import __future__

    return sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names[-3:])


_FUTURES = _future_flags()
