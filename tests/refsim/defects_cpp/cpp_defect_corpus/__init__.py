"""Seeded defects in CUDA C++: the pairs of the Numba corpus again, and pairs that only C++ can have.

Every ``.cu`` file holds pairs of one family, each in a namespace with its kernels ``wrong`` and ``right``. A pair with
a name of the Numba corpus has that pair's launches, arguments and answers; the others are told in ``launches.py``.
"""

from .record import Pair, pairs_of_folder

PAIRS: list[Pair] = pairs_of_folder()

__all__ = ["PAIRS", "Pair"]
