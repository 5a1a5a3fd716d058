"""The Numba corpus, whose launches and answers the C++ corpus shares, is importable here."""

import sys
from pathlib import Path

NUMBA_CORPUS = Path(__file__).parents[1] / "defects"

if str(NUMBA_CORPUS) not in sys.path:
    sys.path.append(str(NUMBA_CORPUS))
