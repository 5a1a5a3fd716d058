"""What JAX serves: the table that the other files of this folder fill, and the arithmetic that JAX has on CPU."""

from __future__ import annotations

from oracle.numerics import Numerics
from refsim.conformance.backends import library
from refsim.conformance.backends.library import Table


def _flushed(numerics: Numerics) -> Numerics:
    """XLA runs its CPU code with subnormal numbers flushed to zero, of every format that is as wide as float32's."""
    if numerics.compute == "float16":
        return numerics
    return numerics.with_changes(name=f"{numerics.name}, flushed", flush_to_zero=True)


def usual(dtype: str) -> Numerics:
    """`library.usual`, with flushing."""
    return _flushed(library.usual(dtype))


def in_dtype(dtype: str) -> Numerics:
    """`library.in_dtype`, with flushing."""
    return _flushed(library.in_dtype(dtype))


TABLE = Table(usual)
