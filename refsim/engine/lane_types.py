"""How scalar types travel in lanes: carrier dtypes, poison, bit casts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes  # noqa: F401 (makes bfloat16 and the 8-bit floats NumPy types)
import numpy as np

from refsim.dialect import COMPLEX, FLOATS, INTEGERS

NARROW = frozenset(INTEGERS - {"int64", "uint64"})


def lane_dtype(name: str) -> np.dtype[Any]:
    """NumPy type that carries a scalar type in lanes: narrow integers travel as int64."""
    return np.dtype(np.int64) if name in NARROW else np.dtype(name)


def poison(dtype: str) -> Any:
    """What an access that must not happen reads: NaN, or a conspicuous integer."""
    if dtype == "bool":
        return False
    if dtype in FLOATS or dtype in COMPLEX:
        return np.dtype(dtype).type(np.nan)
    bits = np.iinfo(dtype)
    return int(0x5A5A5A5A5A5A5A5A % (int(bits.max) + 1))


def to_lane(raw: Any, dtype: str) -> Any:
    """An element or an array of elements as the engine carries it."""
    if isinstance(raw, np.ndarray):
        return raw.astype(np.int64) if dtype in NARROW else raw
    return raw if dtype in FLOATS or dtype in COMPLEX else raw.item()


@cache
def bitcast(source: str, target: str) -> Callable[[Any], Any]:
    """Function of a lane value that reads its bits as another scalar type of the same size."""
    from_dtype, to_dtype = np.dtype(source), np.dtype(target)

    def cast(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            raw = value.astype(from_dtype) if source in NARROW else value
            return to_lane(np.ascontiguousarray(raw).view(to_dtype), target)
        return to_lane(np.array([value]).astype(from_dtype).view(to_dtype)[0], target)

    return cast


def same_value(a: Any, b: Any) -> bool:
    """True if two lane values are the same in every lane; a NaN is the same as a NaN."""
    if a is b:
        return True
    if hasattr(a, "same_as"):
        return bool(a.same_as(b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return bool(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=np.asarray(a).dtype.kind in "fc"))
    return bool(a == b or (a != a and b != b))
