"""The process between judge and judged: it waits for the judged one, and ends whatever that left behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

CHILD_SUBREAPER = 36  # of prctl


def fork_under_a_keeper(life: int, folder: str) -> None:
    """Return in a new process. This one waits for it, and ends as it does.

    Parameters
    ----------
    life : int
        Read end of a pipe that the judge holds open; once it is closed, the judged process is ended, and with it every
        process that it started, whatever session or parent that has by now. A judge that ends the judged process
        writes to it before; one that was killed does not.
    folder : str
        What the judged process wrote; removed where the judge was killed, and so cannot do it.
    """
    ctypes.CDLL(None).prctl(CHILD_SUBREAPER, 1, 0, 0, 0)  # what loses its parent becomes a child of this process
    judged = os.fork()
    if judged == 0:
        os.close(life)
        return
    _keep(judged, life, folder)


def _keep(judged: int, life: int, folder: str) -> NoReturn:
    os.closerange(3, life)
    os.closerange(life + 1, 1024)
    orphaned = threading.Event()
    threading.Thread(target=_end_with_the_judge, args=(judged, life, orphaned), daemon=True).start()
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == judged:
            break
    _end_all()
    if orphaned.is_set():
        shutil.rmtree(folder, ignore_errors=True)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:  # by a signal, and so does this process
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 1)


def _end_with_the_judge(judged: int, life: int, orphaned: threading.Event) -> None:
    if not os.read(life, 1):
        orphaned.set()
    with contextlib.suppress(ProcessLookupError):
        os.kill(judged, signal.SIGKILL)


def _end_all() -> None:
    """Kill children until there are none; theirs become children of this process."""
    while True:
        for child in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> Iterator[int]:
    mine = str(os.getpid())
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            # "pid (name) state parent …", where the name may hold anything
            if (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1] == mine:
                yield int(folder.name)
