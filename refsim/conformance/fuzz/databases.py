"""Where hypothesis keeps examples: a folder, or a Redis server."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase

from refsim.conformance.backends import UsageError

REDIS = ("redis://", "rediss://", "unix://")


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


def database(where: str | None) -> ExampleDatabase | None:
    """The database at a folder or a Redis URL; None for none.

    Raises
    ------
    UsageError
        A Redis URL where its client is not installed, or a path that is no folder.
    """
    if not where:
        return None
    if where.startswith(REDIS):
        try:
            from hypothesis.extra.redis import RedisExampleDatabase
            from redis import Redis
        except ImportError as error:
            text = f"database {where} needs the Redis client; install it with: python -m pip install redis"
            raise UsageError(text) from error
        return RedisExampleDatabase(Redis.from_url(where))
    path = Path(where)
    if path.exists() and not path.is_dir():
        raise UsageError(f"database {where} is not a folder; name a folder, or a URL such as redis://localhost:6379")
    return DirectoryBasedExampleDatabase(path)
