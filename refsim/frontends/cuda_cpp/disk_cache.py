"""Translations kept on disk between processes, each in a file named after all that it depends on.

A file holds a SHA-256 sum and a pickle. Pickles can run code when they are loaded, so they are read from a folder only
if it belongs to the user and nobody else may write there; the folder is made with mode 0700. A file is written under a
temporary name and renamed, so that processes can share the folder; one that is damaged is translated again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import stat
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import refsim
from refsim.devices import Device
from refsim.frontends.cuda_cpp import clang
from refsim.frontends.cuda_cpp.options import Options

VARIABLE = "REFSIM_CACHE_DIR"
SUFFIX = ".translation"
MOST_BYTES = 256 * 1024 * 1024
"""Size of the folder above which the entries that were not used for longest are removed, until half of it is left."""
STORES_PER_CHECK = 64

_stores = 0


@dataclass(frozen=True)
class Request:
    """What a translation is asked for with."""

    code: str
    options: Options
    expressions: tuple[str, ...]
    name: str
    device: Device
    file: str

    def key(self) -> str:
        """Name of the entry: a sum over the request, the compiler, this package's sources and the versions used."""
        folder = os.getcwd() if self._depends_on_the_working_folder() else ""
        parts = (
            self.code, repr(self.options), repr(self.expressions), self.name, repr(self.device), self.file, folder,
            repr(clang.identity()), _sources(), sys.version, np.__version__, ml_dtypes.__version__,
        )  # fmt: skip
        total = hashlib.sha256()
        for part in parts:
            data = part.encode(errors="surrogatepass")
            total.update(b"%d:" % len(data) + data)
        return total.hexdigest()

    def _depends_on_the_working_folder(self) -> bool:
        """True if a path is relative."""
        paths = [word.removeprefix("-I") for word in self.options.clang if word != "-include"]
        paths += [] if self.file.startswith("<") else [self.file]
        return not all(os.path.isabs(path) for path in paths)


def folder() -> Path | None:
    """The folder of the cache; None if it is turned off or must not be used."""
    chosen = os.environ.get(VARIABLE)
    if chosen is not None:
        return _usable(chosen) if chosen else None
    if os.name == "nt":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return _usable(os.path.join(base, "refsim", "translations"))


@cache
def _usable(path: str) -> Path | None:
    """A folder, made if need be, if only this user can write there."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        status = os.stat(path)
    except OSError:
        return None
    if os.name != "nt" and (status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        return None
    return Path(path)


def load(request: Request) -> tuple[Any, tuple[str, ...]] | None:
    """A stored translation and the headers it was made from, if these are still the same."""
    place = folder()
    if place is None:
        return None
    path = place / (request.key() + SUFFIX)
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if len(data) < 32 or hashlib.sha256(memoryview(data)[32:]).digest() != data[:32]:
        return None
    headers, translation = pickle.loads(memoryview(data)[32:])
    if any(digest(header) != known for header, known in headers):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # used just now
    return translation, tuple(header for header, _ in headers)


def store(request: Request, translation: Any, headers: tuple[str, ...]) -> None:
    """Keep a translation; where the folder cannot be written to, nothing happens."""
    place = folder()
    if place is None:
        return
    try:
        data = pickle.dumps((tuple((header, digest(header)) for header in headers), translation), protocol=5)
    except RecursionError:
        return  # nested more deeply than pickle follows
    try:
        with tempfile.NamedTemporaryFile(dir=place, delete=False) as file:
            file.write(hashlib.sha256(data).digest() + data)
        os.replace(file.name, place / (request.key() + SUFFIX))
    except OSError:
        return
    _limit(place)


def _limit(place: Path) -> None:
    """Now and then, remove the entries that were not used for longest if there are too many."""
    global _stores
    _stores += 1
    if _stores % STORES_PER_CHECK != 1:
        return
    entries = []
    for entry in os.scandir(place):
        try:
            status = entry.stat()
        except OSError:
            continue
        entries.append((status.st_mtime, status.st_size, entry.path))
    total = sum(size for _, size, _ in entries)
    if total <= MOST_BYTES:
        return
    for _, size, path in sorted(entries):
        try:
            os.unlink(path)
        except OSError:
            continue
        total -= size
        if total <= MOST_BYTES // 2:
            return


_digests: dict[str, tuple[tuple[int, int], str]] = {}


def digest(path: str) -> str:
    """SHA-256 of a file, read again only when its time or size changed; empty if there is none."""
    try:
        status = os.stat(path)
        stamp = (status.st_mtime_ns, status.st_size)
        if path not in _digests or _digests[path][0] != stamp:
            _digests[path] = stamp, hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""
    return _digests[path][1]


@cache
def _sources() -> str:
    """What would change if the files of this package did that a translation depends on: their times and sizes."""
    root = os.path.dirname(refsim.__file__)
    parts = [os.path.join(root, name) for name in ("dialect", "include")]
    stamps = [_stamp_of(os.path.join(root, name)) for name in ("devices.py", "errors.py")]
    for part in (*parts, os.path.join(root, "frontends", "cuda_cpp")):
        for folder, _, names in os.walk(part):
            stamps += [_stamp_of(os.path.join(folder, name)) for name in names if not name.endswith(".pyc")]
    return repr(sorted(stamps))


def _stamp_of(path: str) -> tuple[str, int, int]:
    status = os.stat(path)
    return path, status.st_mtime_ns, status.st_size
