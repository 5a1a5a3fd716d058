"""Messages between judge and judged: a JSON header and raw bytes, so that reading one runs nobody's code."""

from __future__ import annotations

import json
import os
import select
import struct
import time
from typing import Any

LENGTHS = struct.Struct("<QQ")
MOST_HEADER = 1 << 20
CHUNK = 1 << 20


class Closed(Exception):
    """The other side is gone."""


class Late(Exception):
    """Nothing came in time."""


def send(descriptor: int, header: dict[str, Any], content: bytes = b"", seconds: float | None = None) -> None:
    """Write a message.

    Raises
    ------
    Closed
        The other side is gone.
    Late
        Nobody has read it after ``seconds``.
    """
    until = None if seconds is None else time.monotonic() + seconds
    text = json.dumps(header).encode()
    data = memoryview(LENGTHS.pack(len(text), len(content)) + text + content)
    try:
        while data:
            if until is not None and not select.select([], [descriptor], [], max(0.0, until - time.monotonic()))[1]:
                raise Late
            # A pipe that takes anything takes so much without waiting.
            data = data[os.write(descriptor, data[: select.PIPE_BUF]) :]
    except BrokenPipeError as error:
        raise Closed from error


def receive(descriptor: int, most: int, seconds: float | None = None) -> tuple[dict[str, Any], bytes]:
    """Read a message of at most ``most`` bytes of content.

    Raises
    ------
    Closed
        The other side is gone, or what it wrote is no message.
    Late
        It took more than ``seconds``.
    """
    until = None if seconds is None else time.monotonic() + seconds
    header_size, size = LENGTHS.unpack(_exactly(descriptor, LENGTHS.size, until))
    if header_size > MOST_HEADER or size > most:
        raise Closed
    try:
        header = json.loads(_exactly(descriptor, header_size, until))
    except ValueError as error:
        raise Closed from error
    if not isinstance(header, dict):
        raise Closed
    return header, _exactly(descriptor, size, until)


def _exactly(descriptor: int, size: int, until: float | None) -> bytes:
    parts = []
    while size:
        if until is not None:
            left = until - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise Late
        part = os.read(descriptor, min(size, CHUNK))
        if not part:
            raise Closed
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
