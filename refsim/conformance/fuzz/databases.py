"""Where hypothesis keeps examples: a folder, or a Redis server."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase

from refsim.conformance.backends import UsageError

REDIS = ("redis://", "rediss://", "unix://")
# Seconds within which a server has to answer.
PATIENCE = 5.0
Answer = TypeVar("Answer")


class Shelf(ExampleDatabase):
    """The part of a database that belongs to one row."""

    def __init__(self, whole: ExampleDatabase, label: str) -> None:
        super().__init__()
        self.whole, self.label = whole, label.encode()

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """Examples kept under a key."""
        return self.whole.fetch(self.label + key)

    def save(self, key: bytes, value: bytes) -> None:
        """Keep an example."""
        self.whole.save(self.label + key, value)

    def delete(self, key: bytes, value: bytes) -> None:
        """Forget an example."""
        self.whole.delete(self.label + key, value)


class Remote(ExampleDatabase):
    """A database that may go away: then nothing is kept any more, which is told once, and the search goes on."""

    def __init__(self, whole: ExampleDatabase, shown: str, errors: type[Exception]) -> None:
        super().__init__()
        self.whole, self.shown, self.errors = whole, shown, errors
        self.lost = False

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """Examples kept under a key."""
        return self._asked(lambda: list(self.whole.fetch(key)), [])

    def save(self, key: bytes, value: bytes) -> None:
        """Keep an example."""
        self._asked(lambda: self.whole.save(key, value), None)

    def delete(self, key: bytes, value: bytes) -> None:
        """Forget an example."""
        self._asked(lambda: self.whole.delete(key, value), None)

    def _asked(self, question: Callable[[], Answer], otherwise: Answer) -> Answer:
        if self.lost:
            return otherwise
        try:
            return question()
        except self.errors as error:
            self.lost = True
            print(f"database {self.shown} was lost, and keeps no examples any more: {error}", file=sys.stderr)
            return otherwise


@contextlib.contextmanager
def nothing_else_kept() -> Iterator[None]:
    """Hypothesis writes down nothing but examples inside: no constants of the judged source in the current folder.

    It goes on where it cannot write. HYPOTHESIS_STORAGE_DIRECTORY, which names a folder for that, is obeyed.
    """
    set_hypothesis_home_dir(os.environ.get("HYPOTHESIS_STORAGE_DIRECTORY") or os.devnull)
    try:
        yield
    finally:
        set_hypothesis_home_dir(None)


def database(where: str | None) -> ExampleDatabase | None:
    """The database at a folder or a Redis URL; None for none.

    Raises
    ------
    UsageError
        A Redis URL where its client is not installed or no server answers, or a folder that cannot be written to.
    """
    if not where:
        return None
    if where.startswith(REDIS):
        try:
            from hypothesis.extra.redis import RedisExampleDatabase
            from redis import Redis, RedisError
        except ImportError as error:
            text = f"database {where} needs the Redis client; install it with: python -m pip install redis"
            raise UsageError(text) from error
        shown = re.sub(r"//[^@/]*@", "//", where)  # without a password
        try:
            server = Redis.from_url(where, socket_connect_timeout=PATIENCE, socket_timeout=PATIENCE)
            server.ping()
        except (RedisError, ValueError, OSError) as error:
            raise UsageError(f"database {shown} cannot be used: {error}") from error
        return Remote(RedisExampleDatabase(server), shown, RedisError)
    path = Path(where)
    if path.exists() and not path.is_dir():
        raise UsageError(f"database {where} is not a folder; name a folder, or a URL such as redis://localhost:6379")
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise UsageError(f"database {where}: nothing can be written there: {error.strerror}") from error
    return DirectoryBasedExampleDatabase(path)
