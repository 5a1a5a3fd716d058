"""Finding clang and running its front end: preprocessing, and the JSON syntax tree."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from refsim.errors import RefsimError
from refsim.frontends.cuda_cpp.advice import advice

OLDEST = 17
INSTALL = "pip install 'refsim[cpp]'"


class ClangError(RefsimError):
    """clang is missing, too old, or failed to run."""


class CompileError(RefsimError):
    """Source that clang rejects; the message is clang's own, with file and line."""


@dataclass(frozen=True)
class Clang:
    """A clang that was found: the words of the command that runs it, and its major version."""

    command: tuple[str, ...]
    version: int


def find_clang() -> Clang:
    """The clang to use: ``REFSIM_CLANG``, a system clang, or the one in the PyPI package ``ziglang``.

    Raises
    ------
    ClangError
        If there is none of version 17 or later; the message has the line that installs one.
    """
    return _find(os.environ.get("REFSIM_CLANG", ""))


NAMES = ("clang", *(f"clang-{number}" for number in range(30, OLDEST - 1, -1)))


def identity() -> tuple[tuple[str, int, int], ...]:
    """What decides which clang is used, without running any: path, size and time of all that could be."""
    return _identity(os.environ.get("REFSIM_CLANG", ""), os.environ.get("PATH", ""))


@cache
def _identity(chosen: str, path: str) -> tuple[tuple[str, int, int], ...]:
    found = [chosen] if chosen else [each for name in NAMES if (each := shutil.which(name))]
    zig = None if chosen else _zig()
    stamps = []
    for each in [*found, *([str(zig)] if zig else [])]:
        try:
            status = os.stat(each)
        except OSError:
            continue
        stamps.append((each, status.st_size, status.st_mtime_ns))
    return tuple(stamps)


@cache
def _find(chosen: str) -> Clang:
    if chosen:
        version = _version((chosen,))
        if version is None:
            raise ClangError(f"REFSIM_CLANG is {chosen!r}, which does not run as clang; install one with: {INSTALL}")
        if version < OLDEST:
            raise ClangError(f"REFSIM_CLANG is clang {version}; version {OLDEST} or later is needed: {INSTALL}")
        return Clang((chosen,), version)
    too_old: list[str] = []
    for name in NAMES:
        path = shutil.which(name)
        version = _version((path,)) if path else None
        if path and version is not None:
            if version >= OLDEST:
                return Clang((path,), version)
            too_old.append(f"{path} is version {version}")
    zig = _zig()
    if zig is not None:
        version = _version((str(zig), "clang"))
        if version is not None and version >= OLDEST:
            return Clang((str(zig), "clang"), version)
    seen = f" ({'; '.join(too_old)})" if too_old else ""
    raise ClangError(
        f"C++ kernels need clang {OLDEST} or later, and there is none{seen}. Install one with: {INSTALL}\n"
        "or set REFSIM_CLANG to the path of a clang"
    )


def _zig() -> Path | None:
    found = importlib.util.find_spec("ziglang")
    if found is None or not found.submodule_search_locations:
        return None
    folder = Path(next(iter(found.submodule_search_locations)))
    return next((path for path in (folder / "zig", folder / "zig.exe") if path.is_file()), None)


def _version(command: tuple[str, ...]) -> int | None:
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"clang version (\d+)", done.stdout)
    return int(match[1]) if match else None


def run(arguments: list[str], source: str) -> bytes:
    """Standard output of ``clang -cc1 ARGUMENTS`` with the source on standard input.

    Raises
    ------
    CompileError
        If clang reports an error in the source.
    """
    output, errors, status = attempt(arguments, source)
    if status != 0:
        raise rejected(errors.strip() or f"clang failed with {status}", source)
    return output


def rejected(errors: str, source: str) -> CompileError:
    """The error to raise for clang's messages on a source, with what to do where that is known."""
    meaning = advice(errors, source)
    return CompileError(f"{errors.strip()}\n{meaning}" if meaning else errors.strip())


def attempt(arguments: list[str], source: str) -> tuple[bytes, str, int]:
    """Standard output, error output and exit status of ``clang -cc1 ARGUMENTS`` with the source on standard input."""
    command = [*find_clang().command, "-cc1", *arguments]
    done = subprocess.run(command, input=source.encode(), capture_output=True, check=False)
    return done.stdout, done.stderr.decode(errors="replace"), done.returncode
