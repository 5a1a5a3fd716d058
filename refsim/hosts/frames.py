"""Which frames of a stack are not the script's business: refsim's own, and numba's host code above it."""

from __future__ import annotations

import os
from pathlib import Path

OWN_CODE = str(Path(__file__).resolve().parents[1]) + os.sep
NUMBA_CUDA = os.path.join("", "numba_cuda", "numba", "cuda", "")


def is_own(file: str) -> bool:
    """Whether a source file belongs to refsim, or to the host code of numba.cuda that calls it."""
    return file.startswith(OWN_CODE) or os.sep + NUMBA_CUDA in file
