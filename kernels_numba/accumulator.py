"""Which type a kernel computes in: float16 and float32 inputs in float32, float64 inputs in float64."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np

DTYPES = ("float16", "float32", "float64")

NUMERICS = {"float16": "float32", "float32": "float32", "float64": "float64"}
"""What each input dtype promises, as a key of ``oracle.numerics.NUMERICS``: the type of every intermediate value."""


def accumulator_of(array: np.ndarray) -> np.dtype:
    """The dtype in which a kernel adds up the elements of ``array``."""
    return np.dtype(NUMERICS[array.dtype.name])


def per_accumulator(make: Callable[[Any], Any]) -> Callable[[np.dtype], Any]:
    """Turn ``make(real)``, which builds a kernel computing in the Numba type ``real``, into one kernel per NumPy dtype.

    ``real`` is a compile-time constant inside the kernel: it types shared arrays, and ``real(...)`` keeps literals and
    integers from widening float32 arithmetic to float64, as Numba's typing rules otherwise would.
    """

    @cache
    def kernel_for(dtype: np.dtype) -> Any:
        return make(numba.from_dtype(dtype))

    return kernel_for
