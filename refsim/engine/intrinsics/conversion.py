"""Scalar types as lanes hold them, wrap-around of integers, and conversions with the rounding of a GPU.

A lane value is an array or one scalar for all lanes. Integers narrower than 64 bits, and int64, are carried in int64
arrays or Python ints; uint64 in uint64 arrays or Python ints; bool in bool arrays or Python bools; floats in arrays or
NumPy scalars of their type.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt

from oracle.formats import cast

Lane = Any
"""An array of lane values, or one scalar for all lanes."""

Array = npt.NDArray[Any]

SIGNED: Final = ("int8", "int16", "int32", "int64")
UNSIGNED: Final = ("uint8", "uint16", "uint32", "uint64")
INTEGERS: Final = SIGNED + UNSIGNED
FLOATS: Final = ("float16", "float32", "float64")

WIDTH: Final = {name: np.dtype(name).itemsize * 8 for name in INTEGERS}
LOWEST: Final = {name: int(np.iinfo(name).min) for name in INTEGERS}
HIGHEST: Final = {name: int(np.iinfo(name).max) for name in INTEGERS}

COMPLEX: Final = ("complex64", "complex128")
NARROW_FLOATS: Final = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")

CARRIER: Final[dict[str, np.dtype[Any]]] = {
    **{name: np.dtype(np.int64) for name in INTEGERS},
    "uint64": np.dtype(np.uint64),
    "bool": np.dtype(np.bool_),
    **{name: np.dtype(name) for name in (*FLOATS, *COMPLEX)},
    **{name: np.dtype(getattr(ml_dtypes, name)) for name in NARROW_FLOATS},
}
"""dtype of the arrays that hold lanes of a scalar type."""


def wrap(value: Lane, name: str) -> Lane:
    """The integer of type `name` with the same low bits.

    Parameters
    ----------
    value : int or array of int64 or uint64
        Any integers; arrays may hold the low 64 bits of the true result.
    name : str
        int8 to uint64.

    Returns
    -------
    int or array
        Carried as the type is carried.
    """
    if isinstance(value, np.ndarray):
        if name in ("int64", "uint64"):
            return value.astype(CARRIER[name], copy=False)
        if value.size and value.dtype == np.int64 and LOWEST[name] <= value.min() and value.max() <= HIGHEST[name]:
            return value  # two reductions cost less than two conversions
        return value.astype(name).astype(np.int64)
    bits = WIDTH[name]
    low = int(value) & ((1 << bits) - 1)
    if name in SIGNED and low >> (bits - 1):
        low -= 1 << bits
    return low


def convert(value: Lane, source: str, target: str) -> Lane:
    """Convert between scalar types as an NVIDIA GPU does.

    Integers wrap. An integer or a wider float is rounded once, to nearest even. A float is truncated to an integer and
    saturates at the ends of the integer's range; a NaN gives 0, or the integer with only the top bit set where the
    float or the integer has 64 bits (PTX ISA, ``cvt``). There is no 8-bit conversion of float32 and float64: they
    become a 16-bit integer whose low half is taken. A float16 is rounded to nearest even, not truncated, and saturates
    at 8 bits too: so numba-cuda converts it. Everything but zero is True, NaN too. Compared with an H200.

    Parameters
    ----------
    value : scalar or array
        Carried as `source` is carried.
    source, target : str
        Scalar type names.

    Returns
    -------
    scalar or array
        Carried as `target` is carried.
    """
    return converter(source, target)(value)


@cache
def converter(source: str, target: str) -> Callable[[Lane], Lane]:
    """The function of one value that `convert` applies for these two types."""
    if source == target:
        return _unchanged
    if target == "bool":
        return _is_true
    if source == "bool":
        return partial(_from_bool, target)
    if target in COMPLEX:
        return partial(_to_float, CARRIER[source], CARRIER[target])
    if source in WIDTH and target in WIDTH:
        if LOWEST[target] <= LOWEST[source] and HIGHEST[source] <= HIGHEST[target]:
            return partial(_widened, CARRIER[target])
        return wrapper(target)
    if target in ("int8", "uint8") and source != "float16":
        return partial(_float_to_byte, source, target)
    if target in WIDTH:
        return partial(float_to_integer, source, target)
    if target in NARROW_FLOATS:
        return partial(_to_narrow_float, source, target)
    return partial(_to_float, CARRIER[source], CARRIER[target])


@cache
def wrapper(name: str) -> Callable[[Lane], Lane]:
    """`wrap` to one type, as a function of one value."""
    return lambda value: wrap(value, name)


def _unchanged(value: Lane) -> Lane:
    return value


def _is_true(value: Lane) -> Lane:
    return value != 0 if isinstance(value, np.ndarray) else bool(value != 0)


def _from_bool(target: str, value: Lane) -> Lane:
    if isinstance(value, np.ndarray):
        return value.astype(CARRIER[target])
    return int(value) if target in WIDTH else CARRIER[target].type(value)


def _widened(carrier: np.dtype[Any], value: Lane) -> Lane:
    return value.astype(carrier, copy=False) if isinstance(value, np.ndarray) else int(value)


def _to_float(source: np.dtype[Any], target: np.dtype[Any], value: Lane) -> Lane:
    return (value if isinstance(value, np.ndarray) else source.type(value)).astype(target)


def _to_narrow_float(source: str, target: str, value: Lane) -> Lane:
    """One rounding to nearest even; ml_dtypes rounds twice from float64. The 8-bit floats saturate."""
    if target == "bfloat16" and source in ("float16", "float32"):
        return _to_float(CARRIER[source], CARRIER[target], value)
    if source in ("int64", "uint64"):
        value = _rounded_to_odd(value)
    rounded = cast(np.asarray(value, np.float64), target)
    return rounded if isinstance(value, np.ndarray) else rounded[()]


def _rounded_to_odd(value: Lane) -> Lane:
    """A 64-bit integer with its low 11 bits folded into one, so that float64 holds it and no tie appears or is lost."""
    large = abs(value) >> 53 != 0
    folded = ((value >> 11) | ((value & 2047) != 0)) << 11
    return np.where(large, folded, value) if isinstance(value, np.ndarray) else (folded if large else value)


def _float_to_byte(source: str, target: str, value: Lane) -> Lane:
    return wrap(float_to_integer(source, target.replace("8", "16"), value), target)


def float_to_integer(source: str, target: str, value: Lane) -> Lane:
    """A float to an integer, saturating at 8 bits too; see `convert`."""
    nan = 0
    if source == "float64" or WIDTH[target] == 64:
        nan = wrap(1 << (WIDTH[target] - 1), target)
    lowest, highest = LOWEST[target], HIGHEST[target]
    if not isinstance(value, np.ndarray):
        number = float(np.rint(value) if source == "float16" else value)
        if math.isnan(number):
            return nan
        if math.isinf(number):
            return highest if number > 0 else lowest
        return min(max(math.trunc(number), lowest), highest)
    wide = value.astype(np.float64, copy=False)
    if source == "float16":
        wide = np.rint(wide)
    if wide.size == 0:
        return wide.astype(CARRIER[target])
    if lowest < np.min(wide) and np.max(wide) < highest:  # a NaN makes both comparisons false
        return wide.astype(CARRIER[target])
    over, under = wide >= highest, wide <= lowest  # 2**63 - 1 compares as 2**63, and so on: right for every double
    result = np.where(over | under | np.isnan(wide), 0.0, wide).astype(CARRIER[target])
    result[over] = highest
    result[under] = lowest
    result[np.isnan(wide)] = nan
    return result
