"""float32 operations with the precision taken off: subnormal numbers flushed, and division by way of a reciprocal."""

from __future__ import annotations

import numpy as np

from refsim.engine.intrinsics.conversion import Lane

SMALLEST_NORMAL = np.float32(2.0**-126)
LARGEST_DIVISOR = np.float32(2.0**126)


def flush(x: Lane) -> Lane:
    """``x``, or a zero of its sign if it is subnormal."""
    small = np.abs(x) < SMALLEST_NORMAL
    if not np.any(small):
        return x
    return np.asarray(np.where(small, np.copysign(np.float32(0), x), x))[()]


def div_approx(x: Lane, y: Lane) -> Lane:
    """PTX ``div.approx``: x * (1 / y), both rounded; 1 / y is 0 for a divisor beyond 2**126."""
    reciprocal = (1.0 / np.asarray(y, np.float64)).astype(np.float32)
    reciprocal = np.where(np.abs(y) > LARGEST_DIVISOR, np.copysign(np.float32(0), y), reciprocal)
    return np.asarray(x * reciprocal)[()]


def div_full(x: Lane, y: Lane) -> Lane:
    """PTX ``div.full``: as `div_approx` with the operands scaled, so that every divisor is in range."""
    mantissa, exponent = np.frexp(np.asarray(y, np.float64))
    reciprocal = (1.0 / mantissa).astype(np.float32).astype(np.float64)
    product = np.ldexp(np.asarray(x, np.float64) * reciprocal, -exponent)
    return np.asarray(product.astype(np.float32))[()]
