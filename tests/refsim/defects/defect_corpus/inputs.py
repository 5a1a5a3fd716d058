"""Inputs of the pairs."""

import numpy as np


def ramp(*shape, dtype=np.float32):
    """0, 1, 2, ... in the given shape: small integers, exact in every float format used here."""
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
