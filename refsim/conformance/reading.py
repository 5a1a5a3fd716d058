"""Text and JSON files that commands are given: read whole, up to a size, with errors that name the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from refsim.conformance.backends.backend import UsageError

# Far more than any report; a device, or a pipe that never ends, shall not fill the memory.
MOST_BYTES = 256 << 20


def read_text(path: Path, form: str) -> str:
    """The text of a file in UTF-8, with a byte order mark or without one; ``form`` names in errors what it has to be.

    Raises
    ------
    UsageError
        It cannot be read, holds more than `MOST_BYTES`, or is not UTF-8.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise UsageError(f"{path} cannot be read: it holds more than {MOST_BYTES >> 20} MiB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not {form}: {error}") from error


def parse_json(text: str, what: str) -> Any:
    """The values of a JSON text; ``what`` says in errors where it comes from.

    Raises
    ------
    UsageError
        It is not JSON, or nested too deeply.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"{what} is not JSON: {error}") from error
    except RecursionError as error:
        raise UsageError(f"{what} is nested too deeply to be read") from error


def read_json(path: Path) -> Any:
    """The values of a JSON file.

    Raises
    ------
    UsageError
        It cannot be read, or is not JSON.
    """
    return parse_json(read_text(path, "JSON"), str(path))
