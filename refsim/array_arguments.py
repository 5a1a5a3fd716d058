"""What the memory of an array argument must be like: elements that a kernel can read as they lie there."""

from __future__ import annotations

from typing import Any

import numpy as np


def require_plain_memory(array: np.ndarray[Any, Any], what: str) -> None:
    """Refuse an array whose memory is not what a kernel would take it for.

    Parameters
    ----------
    what
        The argument, as the error calls it.

    Raises
    ------
    TypeError
        For elements in the other byte order, Python objects, and masked arrays.
    """
    dtype = array.dtype
    if not dtype.isnative:
        native = "dtype.newbyteorder('=')"
        raise TypeError(f"{what} has the other byte order ({dtype.str}): convert it with x.astype(x.{native})")
    if dtype.hasobject:
        raise TypeError(f"{what} holds Python objects (dtype {dtype}): pass an array of numbers")
    if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{what} is a masked array, whose mask a kernel would not see: pass x.filled(value)")


__all__ = ["require_plain_memory"]
