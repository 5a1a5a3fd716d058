"""What one process may do to another of the same user, or of any, and how to give that up."""

from __future__ import annotations

import ctypes
import struct

# Of prctl.
SET_DUMPABLE, SET_SECUREBITS = 4, 28
# Executing a program as root brings no privileges back, for good.
NO_ROOT_LOCKED = 0b11
CAPABILITIES_VERSION = 0x20080522


def drop_privileges() -> None:
    """Give up what root may do beyond the rights of its files' owner; others have nothing to give up."""
    c = ctypes.CDLL(None)
    c.prctl(SET_SECUREBITS, NO_ROOT_LOCKED, 0, 0, 0)
    c.capset(struct.pack("=Ii", CAPABILITIES_VERSION, 0), struct.pack("=6I", 0, 0, 0, 0, 0, 0))


def hide_memory() -> None:
    """Forbid other processes of the same user to read this one's memory (and this one to leave a core file)."""
    ctypes.CDLL(None).prctl(SET_DUMPABLE, 0, 0, 0, 0)
