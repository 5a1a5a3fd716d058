"""Linux's Landlock: what a process and all its descendants may do to files, to the network and to other processes.

It needs no privileges and cannot be undone. Where the kernel has it (5.13 and later, if it is switched on), the judged
code reads everything but definitions and what tells of other processes, writes into a folder of its own only, and
cannot look into, or send signals to, a process that is not its own.

Source: the kernel's documentation, userspace-api/landlock.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

# Numbers of system calls, the same on all architectures.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_VERSION = 1
PATH_BENEATH = 1
NO_NEW_PRIVILEGES = 38  # of prctl

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REFER, TRUNCATE = 1 << 13, 1 << 14
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE
# Rights over files by the version that brought them; control of devices (version 5) is left to the devices.
SINCE = {1: (1 << 13) - 1, 2: REFER, 3: TRUNCATE}
TCP = 0b11  # bind and connect, version 4
SCOPES = 0b11  # abstract sockets and signals, version 6
# Devices that are written to: those without a memory, and accelerators.
DEVICES = ("null", "zero", "full", "random", "urandom", "nvidia", "kfd", "dri")


def version() -> int:
    """The version of Landlock that the kernel has, 0 for none."""
    return max(0, int(_call(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(ASK_VERSION))))


def restrict(withheld: Sequence[Path], writable: Sequence[Path]) -> None:
    """Restrict this process and its descendants.

    Parameters
    ----------
    withheld : sequence of Path
        Files and folders that are not read; nor is /proc of other processes.
    writable : sequence of Path
        Folders in which everything may be done.

    Raises
    ------
    OSError
        The kernel refuses. Nothing is restricted then.
    """
    known = version()
    rights = sum(right for since, right in SINCE.items() if since <= known)
    attributes = struct.pack("=QQQ", rights, TCP if known >= 4 else 0, SCOPES if known >= 6 else 0)
    size = 8 if known < 4 else 16 if known < 6 else 24
    ruleset = _checked(CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        _allow(ruleset, Path("/"), READ_DIR)
        for path in _readable(Path("/"), _Excluded(withheld)):
            _allow(ruleset, path, READ_FILE | EXECUTE)
        for path in writable:
            _allow(ruleset, path, rights)
        for path in Path("/dev").iterdir():
            if path.name.startswith(DEVICES):
                _allow(ruleset, path, rights & (WRITE_FILE | TRUNCATE))
        _prctl(NO_NEW_PRIVILEGES, 1)
        _checked(RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


class _Excluded:
    """What is withheld: paths, and what /proc tells of other processes."""

    def __init__(self, withheld: Sequence[Path]) -> None:
        self.paths = {path.resolve() for path in withheld}
        self.above = {folder for path in self.paths for folder in path.parents} | {Path("/proc")}

    def __call__(self, path: Path) -> bool:
        other = path.parent == Path("/proc") and path.name.isdigit() and path.name != str(os.getpid())
        return path in self.paths or other


def _readable(folder: Path, excluded: _Excluded) -> Iterator[Path]:
    """What covers everything in a folder but the excluded. Links are left out: they lead to what is covered anyway."""
    try:
        entries = list(folder.iterdir())
    except OSError:
        return
    for path in entries:
        if excluded(path) or path.is_symlink():
            continue
        if path in excluded.above:
            yield from _readable(path, excluded)
        else:
            yield path


def _allow(ruleset: int, path: Path, rights: int) -> None:
    """Add a rule; what cannot be opened now cannot be used later either."""
    try:
        there = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        chosen = rights if path.is_dir() else rights & OF_FILES
        beneath = struct.pack("=Qi", chosen, there)
        _checked(ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(PATH_BENEATH), beneath, ctypes.c_uint32(0))
    finally:
        os.close(there)


def _checked(number: int, *arguments: object) -> int:
    result = _call(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return result


def _call(number: int, *arguments: object) -> int:
    call: Callable[..., int] = ctypes.CDLL(None, use_errno=True).syscall
    return int(call(ctypes.c_long(number), *arguments))


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
