"""Integer functions of CUDA's device library: high halves of products, averages, sums of differences, bytes.

All take and give arrays as lanes carry them: int64 for 32-bit types and int64, uint64 for uint64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from refsim.engine.intrinsics.conversion import wrap

Array = npt.NDArray[Any]
_LOW = np.uint64(0xFFFFFFFF)


def multiply_high_int32(a: Array, b: Array) -> Array:
    """The upper 32 bits of a product of int32."""
    return (a * b) >> 32


def multiply_high_uint32(a: Array, b: Array) -> Array:
    """The upper 32 bits of a product of uint32."""
    return ((a.astype(np.uint64) * b.astype(np.uint64)) >> np.uint64(32)).astype(np.int64)


def multiply_high_uint64(a: Array, b: Array) -> Array:
    """The upper 64 bits of a product of uint64."""
    half = np.uint64(32)
    a_high, a_low, b_high, b_low = a >> half, a & _LOW, b >> half, b & _LOW
    middle = a_high * b_low + ((a_low * b_low) >> half)
    other = a_low * b_high + (middle & _LOW)
    return np.asarray(a_high * b_high + (middle >> half) + (other >> half))


def multiply_high_int64(a: Array, b: Array) -> Array:
    """The upper 64 bits of a product of int64."""
    high = multiply_high_uint64(a.astype(np.uint64), b.astype(np.uint64)).astype(np.int64)
    return np.asarray(high - np.where(a < 0, b, 0) - np.where(b < 0, a, 0))


def multiply_24_int32(a: Array, b: Array) -> Array:
    """The low 32 bits of the product of the low 24 bits, signed."""
    return np.asarray(wrap(_signed_24(a) * _signed_24(b), "int32"))


def multiply_24_uint32(a: Array, b: Array) -> Array:
    """The low 32 bits of the product of the low 24 bits, unsigned."""
    return np.asarray(wrap((a & 0xFFFFFF) * (b & 0xFFFFFF), "uint32"))


def _signed_24(a: Array) -> Array:
    return np.asarray(((a & 0xFFFFFF) ^ 0x800000) - 0x800000)


def average(a: Array, b: Array) -> Array:
    """``(a + b) >> 1`` without overflow."""
    return (a + b) >> 1


def average_rounded_up(a: Array, b: Array) -> Array:
    """``(a + b + 1) >> 1`` without overflow."""
    return (a + b + 1) >> 1


def difference_added(kind: str) -> Any:
    """``|a - b| + c``, wrapped to the type."""
    return lambda a, b, c: wrap(np.abs(a - b) + c, kind)


def permute_bytes(a: Array, b: Array, selector: Array) -> Array:
    """Four bytes of the eight of a (0 to 3) and b (4 to 7), chosen by the low three bits of the selector's nibbles."""
    both = (b.astype(np.uint64) << np.uint64(32)) | a.astype(np.uint64)
    result = np.zeros_like(both)
    for position in range(4):
        choice = ((selector >> (4 * position)) & 7).astype(np.uint64)
        result |= ((both >> (choice * np.uint64(8))) & np.uint64(0xFF)) << np.uint64(8 * position)
    return result.astype(np.int64)
