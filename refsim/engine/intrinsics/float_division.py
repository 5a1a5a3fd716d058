"""``//``, ``%`` and ``divmod`` of floats as numba-cuda compiles them for an NVIDIA GPU.

numba's algorithm is CPython's, in the type of the operands. Its remainder is LLVM's ``frem``, which is not exact on
this target: it is ``fma(-trunc(x / y), y, x)``, so that a quotient beyond the mantissa leaves a remainder larger than
the divisor, and an infinite divisor gives NaN (``math.fmod`` is exact). Compared bit by bit with an H200.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refsim.engine.intrinsics.conversion import Lane
from refsim.engine.intrinsics.fused import fma_float32, fma_float64


def divmod_floats(name: str) -> Callable[[Lane, Lane], tuple[Lane, Lane]]:
    """Floored quotient and remainder with the sign of the divisor."""
    fma = fma_float32 if name == "float32" else fma_float64
    zero, one, half = (np.dtype(name).type(value) for value in (0.0, 1.0, 0.5))

    def divide(x: Lane, y: Lane) -> tuple[Lane, Lane]:
        quotient = x / y
        remainder = fma(-np.trunc(quotient), y, x)
        through = (x - remainder) / y
        other_sign = (remainder != zero) & ((y < zero) != (remainder < zero))
        through = np.where(other_sign, through - one, through)
        floor = np.floor(through)
        floor = np.where(through - floor > half, floor + one, floor)
        signed_zero = through * through * x / y
        floor = np.where((through < zero) | (through > zero), floor, signed_zero)
        modulo = np.where(remainder == zero, np.copysign(zero, y), np.where(other_sign, remainder + y, remainder))
        return np.where(y == zero, quotient, floor)[()], np.where(y == zero, remainder, modulo)[()]

    return divide


def floor_divide(name: str) -> Callable[[Lane, Lane], Lane]:
    """``x // y``."""
    both = divmod_floats(name)
    return lambda x, y: both(x, y)[0]


def modulo(name: str) -> Callable[[Lane, Lane], Lane]:
    """``x % y``."""
    both = divmod_floats(name)
    return lambda x, y: both(x, y)[1]
