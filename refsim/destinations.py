"""Where a report goes: standard output or a file, whole or not at all, with nothing of what the judged print in it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from refsim.conformance.backends import UsageError

STANDARD_OUTPUT = (Path("-"), Path("/dev/stdout"))
# What an encoding has no sign for is written as Python writes it: \u2013.
UNWRITABLE = "backslashreplace"


class Destination:
    """Standard output, or a file that is replaced once the report is there.

    Parameters
    ----------
    path : Path or None
        The file; None, ``-`` or ``/dev/stdout`` for standard output. A relative path stays what it is now, wherever
        the judged may change to.

    Raises
    ------
    UsageError
        Nothing can be written there.
    """

    def __init__(self, path: Path | None) -> None:
        self.shown = path
        if path in STANDARD_OUTPUT:
            path = None
        # A device or a pipe is written to, not replaced; a link is followed, so that it stays one.
        absolute = None if path is None else Path(os.path.abspath(path))
        self.special = absolute is not None and (
            absolute.parts[1:2] == ("dev",) or (absolute.exists() and not absolute.is_file() and not absolute.is_dir())
        )
        self.path = absolute.resolve() if absolute is not None and not self.special else absolute
        if self.path is not None and not self.special:
            self._try(self.path)

    @property
    def is_terminal(self) -> bool:
        """Whether a person sees it directly."""
        return self.path is None and sys.stdout is not None and sys.stdout.isatty()

    def write(self, content: str) -> None:
        """Write everything, or raise UsageError. A reader that has gone away wants no more, and that is no error."""
        try:
            if self.path is None:
                _print(content)
            elif self.special:
                with open(self.path, "a", encoding="utf-8", errors=UNWRITABLE) as file:
                    file.write(content)
            else:
                _replace(self.path, content)
        except BrokenPipeError:
            pass
        except OSError as error:
            where = self.shown or "standard output"
            raise UsageError(f"the report cannot be written to {where}: {error.strerror}") from error

    def _try(self, path: Path) -> None:
        """Find out before anything runs, not after minutes of judging."""
        if path.is_dir():
            raise UsageError(f"{self.shown} is a folder; name a file for the report")
        if not path.parent.is_dir():
            raise UsageError(f"no such folder: {path.parent}; the report cannot be written to {self.shown}")
        try:
            handle, temporary = _beside(path)
        except OSError as error:
            text = f"no file can be made in {path.parent}: {error.strerror}"
            raise UsageError(f"{text}; the report cannot be written to {self.shown}") from error
        os.close(handle)
        os.unlink(temporary)


@contextlib.contextmanager
def kept_clean() -> Iterator[None]:
    """Send to stderr whatever is printed to standard output inside, by Python, by a library in C or by a subprocess."""
    if sys.stdout is not None:
        sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # closed, so that nothing can be printed to it
        kept = None
    if kept is not None:
        try:
            os.dup2(2, 1)
        except OSError:
            discard(1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        if kept is not None:
            if sys.__stdout__ is not None and not sys.__stdout__.closed:
                sys.__stdout__.flush()
            with contextlib.suppress(OSError, AttributeError, TypeError):  # not everywhere is C's own library at hand
                ctypes.CDLL(None).fflush(None)
            os.dup2(kept, 1)
            os.close(kept)


def _print(content: str) -> None:
    if sys.stdout is None:
        return
    try:
        # A document says that it is UTF-8, whatever the terminal has.
        document = content.startswith("<")
        click.echo(content.encode("utf-8", UNWRITABLE) if document else content, nl=False)
    except OSError:
        discard(1)  # what is left in the buffer would raise again when Python ends
        raise


def discard(descriptor: int) -> None:
    """Let everything that is written to a descriptor vanish."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)


def _beside(path: Path) -> tuple[int, str]:
    return tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:64]}.")


def _replace(path: Path, content: str) -> None:
    """The whole content appears at once, or none of it."""
    handle, temporary = _beside(path)
    try:
        with open(handle, "w", encoding="utf-8", errors=UNWRITABLE) as file:
            file.write(content)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:  # Ctrl-C too
        os.unlink(temporary)
        raise
