"""Arithmetic and conversions rounded to nearest (rn), down (rd), up (ru) or toward zero (rz), of float32 and float64.

A candidate next to the exact result is computed, and the sign of what it misses; it then moves by one step if it lies
on the wrong side. float32 is worked in float64. What float64 misses comes from error-free transformations, and from
exact fractions where those would overflow or lose bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from refsim.engine.intrinsics.conversion import CARRIER, INTEGERS, convert
from refsim.engine.intrinsics.fused import fma_float32, fma_float64

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]

OPERANDS: Final = {"add": 2, "sub": 2, "mul": 2, "div": 2, "rcp": 1, "sqrt": 1, "fma": 3}
"""Operations that have directed forms, and their number of operands."""
MODES: Final = ("rn", "rd", "ru", "rz")

_LOW, _HIGH = 2.0**-400, 2.0**400  # within, no product, quotient or error term leaves the normal numbers


def arithmetic(op: str, kind: str, mode: str) -> Callable[..., Array]:
    """One operation on arrays of one float type; all operands have the same shape."""

    def rounded(*operands: Array) -> Array:
        if op == "sub":
            operands = (operands[0], -operands[1])
        elif op == "rcp":
            operands = (np.ones_like(operands[0]), operands[0])
        name = {"sub": "add", "rcp": "div"}.get(op, op)
        nearest = _nearest(name, kind, operands)
        if mode == "rn":
            return nearest
        wide = [operand.astype(np.float64) for operand in operands]
        if kind == "float32":
            total = _nearest(name, "float64", wide)
            nearest = total.astype(np.float32)
            rest = total - nearest
            error = np.where(rest == 0, _missing(name, wide, total), rest)
        else:
            error = _missing(name, wide, nearest)
        result = step(nearest, error, mode)
        if mode == "rd" and name in ("add", "fma"):
            negative = _any_negative_term(wide)
            zero = (nearest == 0) & (error == 0)
            result = np.where(zero, np.copysign(nearest, np.where(negative, -1.0, 1.0).astype(nearest.dtype)), result)
        return result

    return rounded


def step(nearest: Array, error: Array, mode: str) -> Array:
    """A neighbour of the exact result moved to the side that the mode asks for; `error` is exact minus `nearest`."""
    infinity = nearest.dtype.type(np.inf)
    high, low = error < 0, error > 0
    if mode == "rz":
        high, low = high & (nearest > 0), low & (nearest < 0)
    elif mode == "rd":
        low = np.zeros_like(low)
    else:
        high = np.zeros_like(high)
    result = np.where(high, np.nextafter(nearest, -infinity), nearest)
    return np.where(low, np.nextafter(nearest, infinity), result)


def narrowed(target: str, mode: str) -> Callable[[Array], Array]:
    """float64 to a narrower float."""

    def convert_one(x: Array) -> Array:
        nearest = x.astype(CARRIER[target])
        return nearest if mode == "rn" else step(nearest, x - nearest.astype(np.float64), mode)

    return convert_one


def from_integer(source: str, target: str, mode: str) -> Callable[[Array], Array]:
    """An integer to a float."""

    def convert_one(x: Array) -> Array:
        nearest = x.astype(CARRIER[target])
        if mode == "rn":
            return nearest
        low_half = (x & x.dtype.type(0xFFFFFFFF)).astype(np.float64)
        high_half = (x >> x.dtype.type(32)).astype(np.float64) * 2.0**32
        total = high_half + low_half
        rest = total - nearest
        return step(nearest, rest + _sum_error(high_half, low_half, total), mode)

    assert source in INTEGERS
    return convert_one


def to_integer(source: str, target: str, mode: str) -> Callable[[Array], Array]:
    """A float to an integer, saturating as `convert` does."""
    whole = {"rn": np.rint, "rd": np.floor, "ru": np.ceil, "rz": np.trunc}[mode]
    return lambda x: convert(whole(x), source, target)


def _nearest(op: str, kind: str, operands: Any) -> Array:
    if op == "fma":
        return np.asarray((fma_float32 if kind == "float32" else fma_float64)(*operands))
    function = {"add": np.add, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt}[op]
    result: Array = function(*operands)
    return result


def _sum_error(a: Array, b: Array, total: Array) -> Array:
    part = total - a
    error: Array = (a - (total - part)) + (b - part)
    return error


def _missing(op: str, x: list[Doubles], total: Doubles) -> Doubles:
    """A number with the sign of the exact result minus `total`, its float64 rounding; NaN where there is none."""
    finite = np.logical_and.reduce([np.isfinite(each) for each in x])
    if op == "add":
        error = _sum_error(x[0], x[1], total)
        doubtful = np.isinf(total)
    elif op == "mul":
        error = fma_float64(x[0], x[1], -total)
        doubtful = ~_moderate(*x)
    elif op == "div":
        error = fma_float64(-total, x[1], x[0]) * np.copysign(1.0, x[1])
        doubtful = ~_moderate(*x)
    elif op == "sqrt":
        small = x[0] < _LOW
        scaled, root = np.where(small, x[0] * 2.0**400, x[0]), np.where(small, total * 2.0**200, total)
        return np.where(finite, fma_float64(-root, root, scaled), np.nan)
    else:
        error, doubtful = np.zeros_like(total), np.ones(total.shape, bool)
    doubtful = doubtful & finite & ~np.isnan(total)
    if op == "div":
        doubtful &= x[1] != 0
    error = np.where(finite, error, np.nan)
    if doubtful.any():
        flat = zip(*(each[doubtful].tolist() for each in x), total[doubtful].tolist(), strict=True)
        error[doubtful] = [_sign(op, numbers) for numbers in flat]
    return error


def _sign(op: str, numbers: tuple[float, ...]) -> float:
    *operands, total = numbers
    if math.isinf(total):
        return -total
    a, b, *rest = (Fraction(each) for each in operands)
    exact = a + b if op == "add" else a / b if op == "div" else a * b + sum(rest)
    difference = exact - Fraction(total)
    return float((difference > 0) - (difference < 0))


def _moderate(*x: Doubles) -> npt.NDArray[np.bool_]:
    sizes = [np.abs(each) for each in x]
    return np.asarray(np.logical_and.reduce([(size > _LOW) & (size < _HIGH) for size in sizes]))


def _any_negative_term(x: list[Doubles]) -> npt.NDArray[np.bool_]:
    """Whether a term of a sum, or of a product and a sum, has a minus sign."""
    first = np.signbit(x[0]) if len(x) == 2 else np.signbit(x[0]) != np.signbit(x[1])
    return np.asarray(first | np.signbit(x[-1]))
