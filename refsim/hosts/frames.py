"""Which frames of a stack are refsim's own."""

from __future__ import annotations

import os
from pathlib import Path

OWN_CODE = str(Path(__file__).resolve().parents[1]) + os.sep


def is_own(file: str) -> bool:
    """Whether a source file belongs to refsim."""
    return file.startswith(OWN_CODE)
