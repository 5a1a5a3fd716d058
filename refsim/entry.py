"""Where the command ``refsim`` enters. Nothing is imported here before Ctrl-C is taken care of."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import NoReturn


def main() -> None:
    """Run the command line; Ctrl-C during its imports, or while Python ends, leaves as quietly as at any other time."""
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeded:
        signal.signal(signal.SIGINT, _leave)
    from refsim.cli import main as command

    try:
        if heeded:
            sys.unraisablehook = _come_again
            signal.signal(signal.SIGINT, signal.default_int_handler)
        command(prog_name="refsim")
    finally:
        if heeded:
            signal.signal(signal.SIGINT, _leave)


def _come_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Send Ctrl-C once more where Python would drop it: in a finaliser, or another call that it makes by itself."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    again = threading.Timer(0.01, os.kill, [os.getpid(), signal.SIGINT])
    again.daemon = True
    again.start()


def _leave(*_: object) -> NoReturn:
    os._exit(130)
