"""Elementary functions, minimum and maximum, rounding and remainders of float32 and float64 lanes.

A float64 function is NumPy's, or the C library's through `math` where NumPy has none. A float32 function is computed in
float64 and rounded once, which is the correctly rounded result but for one argument in many millions. A few take
NumPy's float32 loop instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import numpy as np

from refsim.engine.intrinsics.conversion import Lane, convert
from refsim.engine.intrinsics.error_function import erf, erfc
from refsim.engine.intrinsics.gamma_function import by_element, gamma, lgamma
from refsim.engine.intrinsics.integers import POWER_CUTOFF, multiply_repeatedly

Function = Callable[..., Lane]


def _remainder_exceptional(x: float, y: float) -> float:
    return math.nan


UNARY: dict[str, Function] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "cbrt": np.cbrt, "cos": np.cos, "cosh": np.cosh, "erf": erf, "erfc": erfc, "exp": np.exp,
    "exp2": np.exp2, "expm1": np.expm1, "gamma": gamma, "lgamma": lgamma, "log": np.log, "log10": np.log10,
    "log1p": np.log1p, "log2": np.log2, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip
"""Functions of one float64."""

BINARY: dict[str, Function] = {"atan2": np.arctan2, "hypot": np.hypot, "pow": np.power}
"""Functions of two float64."""

NATIVE_FLOAT32 = frozenset({"sqrt", "sin", "cos", "tanh"})
"""Functions whose float32 form is NumPy's float32 loop: at most 1.5 ulp measured, and 10 to 20 times faster.
(exp, exp2, log and log2 have 2.4, 2.5, 3.6 and 2.1 ulp there, more than a GPU's own.)"""

SAME_TYPE: dict[str, Function] = {
    "ceil": np.ceil, "copysign": np.copysign, "fabs": np.fabs, "floor": np.floor, "fmod": np.fmod,
    "nextafter": np.nextafter, "trunc": np.trunc, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "abs": np.abs, "/": np.divide,
}  # fmt: skip
"""Exact or correctly rounded in the type of the operand."""

ieee_remainder = by_element(math.remainder, _remainder_exceptional)


def through_float64(function: Function) -> Function:
    """The float32 form of a function: computed in float64, rounded once."""

    def rounded(*values: Lane) -> Lane:
        return function(*(np.asarray(value, np.float64) for value in values)).astype(np.float32)

    return rounded


def scaled(factor: float, name: str) -> Function:
    """Multiplication by a constant rounded to the type (`degrees`, `radians`)."""
    constant = np.dtype(name).type(factor)
    return lambda x: constant * x


def frexp(x: Lane) -> tuple[Lane, Lane]:
    """Mantissa in [1/2, 1) and exponent; a zero, NaN or infinity comes back with exponent 0."""
    mantissa, exponent = np.frexp(x)
    if isinstance(exponent, np.ndarray):
        return mantissa, exponent.astype(np.int64)
    return mantissa, int(exponent)


def modf(x: Lane) -> tuple[Lane, Lane]:
    """Fractional and integral part, both with the sign of x."""
    fraction, integral = np.modf(x)
    return fraction, integral


def ldexp(x: Lane, exponent: Lane) -> Lane:
    """``x * 2**exponent`` rounded once."""
    return np.ldexp(x, np.clip(exponent, -(2**30), 2**30))


def fmax(a: Lane, b: Lane) -> Lane:
    """The greater; the other operand for a NaN; +0 is greater than -0 (PTX ``max``)."""
    result = np.fmax(a, b)
    zero = result == 0
    return np.where(zero & (a == b), a + b, result)[()] if np.any(zero) else result


def fmin(a: Lane, b: Lane) -> Lane:
    """The lesser; the other operand for a NaN; -0 is less than +0 (PTX ``min``)."""
    result = np.fmin(a, b)
    zero = result == 0
    return np.where(zero & (a == b), -((-a) + (-b)), result)[()] if np.any(zero) else result


def numpy_fmax(a: Lane, b: Lane) -> Lane:
    """``np.fmax`` as numba compiles it: like `fmax`, but of zeros the first."""
    return _choose((a >= b) | (b != b), a, b)


def numpy_fmin(a: Lane, b: Lane) -> Lane:
    """``np.fmin`` as numba compiles it: like `fmin`, but of zeros the first."""
    return _choose((a <= b) | (b != b), a, b)


def maximum(a: Lane, b: Lane) -> Lane:
    """``np.maximum``: a NaN if there is one; of equal operands the first."""
    return _choose((a >= b) | (a != a), a, b)


def minimum(a: Lane, b: Lane) -> Lane:
    """``np.minimum``: a NaN if there is one; of equal operands the first."""
    return _choose((a <= b) | (a != a), a, b)


def select_max(*values: Lane) -> Lane:
    """``max`` as Python compares: from left to right ``v if v > best else best``."""
    return reduce(lambda best, value: _choose(value > best, value, best), values)


def select_min(*values: Lane) -> Lane:
    """``min`` as Python compares: from left to right ``v if v < best else best``."""
    return reduce(lambda best, value: _choose(value < best, value, best), values)


def _choose(condition: Lane, a: Lane, b: Lane) -> Lane:
    return np.where(condition, a, b) if isinstance(condition, np.ndarray) else (a if condition else b)


def divide_integers(name: str) -> Function:
    """``a / b`` of integers: both to float64, one division."""
    return lambda a, b: np.divide(convert(a, name, "float64"), convert(b, name, "float64"))


def round_to_integer(name: str) -> Function:
    """``round(x)``: to the nearest, ties to even, as an int64 (saturating)."""
    return lambda x: convert(np.rint(x), name, "int64")


def round_to_digits(name: str) -> Function:
    """``round(x, digits)`` by numba-cuda's algorithm, in float64 throughout."""

    def rounded(x: Lane, digits: Lane) -> Lane:
        wide, places = np.asarray(x, np.float64), np.asarray(digits, np.int64)
        first = 10.0 ** np.where(places > 22, places - 22, np.abs(places)).astype(np.float64)
        second = np.where(places > 22, 1e22, 1.0)
        up = places >= 0
        scaled_up = np.where(up, wide * first * second, wide / first)
        nearest = _through_int64(scaled_up)
        halfway = np.abs(scaled_up - nearest) == 0.5
        nearest = np.where(halfway, 2.0 * _through_int64(scaled_up / 2.0), nearest)
        result = np.where(up, nearest / second / first, nearest * first)
        keep = ~np.isfinite(wide) | (up & np.isinf(scaled_up))
        return np.where(keep, wide, result).astype(name)[()]

    return rounded


def _through_int64(x: Lane) -> Lane:
    return convert(convert(np.rint(x), "float64", "int64"), "int64", "float64")


def power(name: str) -> Function:
    """``x ** y`` of a float: ``pow`` for a float y; for an integer y repeated multiplication, inverted if y < 0."""
    to_integer = _power_by_integer(name)
    to_float = BINARY["pow"] if name == "float64" else through_float64(BINARY["pow"])

    def raise_to(x: Lane, y: Lane) -> Lane:
        return (to_float if np.asarray(y).dtype.kind == "f" else to_integer)(x, y)

    return raise_to


def _power_by_integer(name: str) -> Function:

    def raise_to(x: Lane, n: Lane) -> Lane:
        if isinstance(n, np.ndarray):
            return _raise_each(np.asarray(x), n)
        exponent = int(n)
        if abs(exponent) > POWER_CUTOFF:
            return np.power(np.asarray(x, np.float64), np.float64(exponent)).astype(name)[()]
        result = multiply_repeatedly(np.asarray(x), abs(exponent))
        return (_inverse(result) if exponent < 0 else result)[()]

    def _raise_each(x: Lane, n: Lane) -> Lane:
        base, exponent = np.broadcast_arrays(x, n)
        result = np.ones_like(base)
        for value in np.unique(exponent).tolist():
            chosen = exponent == value
            result[chosen] = raise_to(base[chosen], value)
        return result

    def _inverse(result: Lane) -> Lane:
        return (1.0 / result.astype(np.float64)).astype(name)

    return raise_to
