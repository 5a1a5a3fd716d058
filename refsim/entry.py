"""Where the command ``refsim`` enters. Nothing is imported here before Ctrl-C is taken care of."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn

# What ends a program unless it is caught: `kill`, `timeout`, a job that is cancelled, a terminal that is closed.
ENDING = (signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    """Run the command line; Ctrl-C during its imports, or while Python ends, leaves as quietly as at any other time.

    A signal that ends it does so as Ctrl-C does, so that nothing is left behind; the second one ends it at once.
    """
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeded:
        signal.signal(signal.SIGINT, _leave)
    from refsim.cli import main as command

    mine, ended = os.getpid(), []

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() != mine:  # a process that was forked has nothing to clear away
            os.kill(os.getpid(), number)
        ended.append(number)
        interrupt = signal.getsignal(signal.SIGINT)
        if callable(interrupt):
            interrupt(signal.SIGINT, frame)
        else:
            raise KeyboardInterrupt

    try:
        if heeded:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in ENDING:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, end)
        command(prog_name="refsim")
    finally:
        if heeded:
            signal.signal(signal.SIGINT, _leave)
        if ended:
            raise SystemExit(128 + ended[0])


def _leave(*_: object) -> NoReturn:
    os._exit(130)
