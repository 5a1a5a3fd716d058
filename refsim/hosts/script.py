"""Runs a script as ``python script.py`` does, with the stand-ins in place."""

from __future__ import annotations

import builtins
import contextlib
import io
import sys
import threading
import traceback
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from refsim.hosts.frames import is_own
from refsim.hosts.generated import kept_sources
from refsim.hosts.session import Session, activate
from refsim.hosts.stand_ins import stand_ins

INTERRUPTED = 130


def run_script(path: str | Path, arguments: Sequence[str], session: Session, simulate: bool = True) -> int:
    """Run a script, its launches on the simulator.

    Parameters
    ----------
    path
        The script. It sees ``__name__ == "__main__"``, its folder in ``sys.path[0]`` and ``sys.argv`` as from Python.
    arguments
        What follows the script's name in ``sys.argv``.
    session
        Gathers the findings.
    simulate
        False leaves a real cupy, and a numba.cuda that has a GPU, in place.

    Returns
    -------
    The script's own exit status: 1 after an exception, whose traceback is printed without frames of refsim.

    Raises
    ------
    OSError
        If the script cannot be read.
    """
    with io.open_code(str(path)) as file:
        source = file.read()
    name = str(Path(path).absolute())
    module = types.ModuleType("__main__")
    module.__file__ = name
    vars(module).update(__builtins__=builtins, __cached__=None)
    with _as_main(module, [str(path), *arguments]), stand_ins(simulate), _active(session), kept_sources():
        try:
            exec(compile(source, name, "exec", dont_inherit=True), vars(module))
        except SystemExit as error:
            return _exit_status(error)
        except BaseException as error:
            sys.stdout.flush()
            _print_exception(error)
            return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
        finally:
            _join_threads()
            sys.stdout.flush()
    return 0


def _join_threads() -> None:
    """Wait for the threads that Python would wait for before it exits."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


@contextlib.contextmanager
def _as_main(module: types.ModuleType, argv: list[str]) -> Iterator[None]:
    """The module is ``__main__``; afterwards everything is as before."""
    before = sys.modules["__main__"], sys.argv, list(sys.path), set(sys.modules)
    sys.modules["__main__"] = module
    sys.argv = argv
    sys.path[:1] = [str(Path(str(module.__file__)).resolve().parent)]
    try:
        yield
    finally:
        folder = sys.path[0]
        sys.modules["__main__"], sys.argv, sys.path[:] = before[:3]
        for name in set(sys.modules) - before[3]:  # the script's own modules, which hold stand-ins
            file = str(getattr(sys.modules[name], "__file__", None))
            if file.startswith(folder) and not is_own(file) and "site-packages" not in file:
                del sys.modules[name]


@contextlib.contextmanager
def _active(session: Session) -> Iterator[None]:
    before = activate(session)
    try:
        yield
    finally:
        activate(before)


def _exit_status(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code
    print(error.code, file=sys.stderr)
    return 1


def _print_exception(error: BaseException) -> None:
    """As Python does for a script, or by the ``sys.excepthook`` that the script installed."""
    if sys.excepthook is not sys.__excepthook__:
        trace = error.__traceback__
        while trace is not None and is_own(trace.tb_frame.f_code.co_filename):
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return
    shown: Any = traceback.TracebackException.from_exception(error)
    _without_own_frames(shown)
    sys.stderr.write("".join(shown.format()))


def _without_own_frames(shown: Any) -> None:
    """Drop frames of refsim; and errors that led to another one, if they happened within refsim alone."""
    frames = [frame for frame in shown.stack if not is_own(frame.filename)]
    shown.stack = traceback.StackSummary.from_list(frames) if frames else None
    for link in ("__cause__", "__context__"):
        inner = getattr(shown, link)
        if inner is not None:
            _without_own_frames(inner)
            if inner.stack is None:
                setattr(shown, link, None)
    for inner in getattr(shown, "exceptions", None) or ():
        _without_own_frames(inner)
