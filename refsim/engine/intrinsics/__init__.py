"""Element-wise functions of lane code: one NumPy implementation for each function and operand type.

`INTRINSICS` maps ``(name, operand type)`` to an `Intrinsic`. An implementation takes arrays or scalars of the operand
type, as lanes hold them (see `conversion`), and returns the result type. It never warns if the caller holds
``np.errstate(all="ignore")``, never raises for a value, and never changes its arguments.

Names are those of ``math`` and ``cuda`` without the module, and for operators the operator: ``/ // % ** << >>``.
Operands have one type, but for ``**`` and ``pow`` of a float, whose exponent may be an integer, ``ldexp``,
``round_digits``, shifts and ``selp`` (its type is that of the two choices). ``min`` and ``max`` compare as Python does;
``fmin`` and ``fmax`` skip a NaN: `numba_types.min_max_skips_nan` tells which one numba-cuda means.

Code generation asks for `binary`, `function`, `converter` and `wrapper`, by the names that the dialect uses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from refsim.engine.intrinsics import (
    approximate,
    complex_numbers,
    eight_bits,
    elementary,
    float_division,
    half_library,
    halves,
    integers,
    library,
)
from refsim.engine.intrinsics.conversion import CARRIER, FLOATS, INTEGERS, Lane, convert, converter, wrap, wrapper
from refsim.engine.intrinsics.fused import fma_float32, fma_float64

__all__ = [
    "CARRIER", "INTRINSICS", "Intrinsic", "Lane", "binary", "convert", "converter", "function", "implementation",
    "intrinsic_name", "wrap", "wrapper",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A function on lanes of one operand type.

    Attributes
    ----------
    name, operand : str
        The key in `INTRINSICS`.
    function : callable
        The implementation.
    ulps : float
        Most that a result differs from the exact one, in units of the last place of the result: 0 exact, 0.5 correctly
        rounded, 0.51 correctly rounded but for rare arguments, otherwise measured (tests) and rounded up.
    """

    name: str
    operand: str
    function: Callable[..., Lane]
    ulps: float


INTRINSICS: dict[tuple[str, str], Intrinsic] = {}

_SPELLINGS = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctanh": "atanh", "arctan2": "atan2", "deg2rad": "radians", "rad2deg": "degrees", "fmax": "numpy_fmax",
    "fmin": "numpy_fmin",
}  # fmt: skip


def implementation(name: str, operand: str) -> Callable[..., Lane]:
    """The function to call on lanes.

    Raises
    ------
    KeyError
        If there is no such function on this operand type; the message lists the types that have it.
    """
    found = INTRINSICS.get((name, operand))
    if found is None:
        types = [kind for known, kind in INTRINSICS if known == name]
        raise KeyError(f"no intrinsic {name!r} on {operand}; it exists on {', '.join(types) or 'no type'}")
    return found.function


def binary(operator: str, kind: str) -> Callable[[Lane, Lane], Lane]:
    """Implementation of a binary operator of the dialect that is not simply NumPy's: ``/ // % ** << >>``."""
    return implementation(operator, kind)


@cache
def function(name: str, operand: str) -> Callable[..., Lane]:
    """Implementation of an intrinsic of the dialect.

    Parameters
    ----------
    name : str
        As the source writes it (``math.exp``, ``cuda.popc``, ``abs``), with a suffix where the name is not enough:
        ``min.skips_nan`` and ``max.skips_nan``; ``power.int64`` for ``**`` with an exponent of another type;
        ``math.frexp.1`` for one item of a tuple.
    operand : str
        Scalar type of the first operand.

    Raises
    ------
    KeyError
        If there is no such function on this operand type.
    """
    base, _, last = name.rpartition(".")
    if last == "skips_nan":
        return implementation(f"f{base}", operand)
    if base == "power" or name == "pow":
        return implementation("**", operand)
    if last.isdigit():
        return partial(_item, int(last), function(base, operand))
    if name == "round":
        return partial(_round, implementation("round", operand), implementation("round_digits", operand))
    return implementation(intrinsic_name(name), operand)


def intrinsic_name(source: str) -> str:
    """Name here of a function of ``math``, ``np``, ``cuda`` or ``cuda.fp16``: ``"np.arcsin"`` is ``"asin"``."""
    name = source.rpartition(".")[2]
    return _SPELLINGS.get(name, name) if source.startswith("np.") else name


def _add(name: str, operand: str, function: Callable[..., Lane], ulps: float = 0.0) -> None:
    INTRINSICS[name, operand] = Intrinsic(name, operand, function, ulps)


# measured against 64-bit mantissas on 4e6 arguments and rounded up, since NumPy's loops differ between processors;
# lgamma's does not hold near its zeros below 0, where only the absolute error is small
_FLOAT64_ULPS = {"sqrt": 0.5, "erf": 3.0, "erfc": 4.0, "gamma": 10.0, "lgamma": 10.0}
_FLOAT32_ULPS = {"sqrt": 0.5}


def _integer_functions() -> None:
    for kind in INTEGERS:
        _add("//", kind, integers.floor_divide(kind))
        _add("%", kind, integers.modulo(kind))
        _add("div", kind, integers.divide_truncating(kind))
        _add("rem", kind, integers.remainder_truncating(kind))
        _add("/", kind, elementary.divide_integers(kind), 1.5 if kind in ("int64", "uint64") else 0.5)
        _add("**", kind, integers.power(kind))
        _add("<<", kind, integers.shift_left(kind))
        _add(">>", kind, integers.shift_right(kind))
        _add("abs", kind, integers.absolute(kind))
        for name in ("min", "minimum", "numpy_fmin"):
            _add(name, kind, integers.minimum)
        for name in ("max", "maximum", "numpy_fmax"):
            _add(name, kind, integers.maximum)
        _add("popc", kind, integers.count_ones(kind))
        _add("clz", kind, integers.count_leading_zeros(kind))
        _add("ffs", kind, integers.find_first_set(kind))
        _add("brev", kind, integers.reverse_bits(kind))
        _add("divmod", kind, partial(_both, integers.floor_divide(kind), integers.modulo(kind)))


def _float_functions() -> None:
    for name, function in elementary.UNARY.items():
        _add(name, "float64", function, _FLOAT64_ULPS.get(name, 2.0))
        native = name in elementary.NATIVE_FLOAT32
        float32 = function if native else elementary.through_float64(function)
        _add(name, "float32", float32, _FLOAT32_ULPS.get(name, 2.0 if native else 0.51))
    for name, function in elementary.BINARY.items():
        _add(name, "float64", function, 2.0)
        _add(name, "float32", elementary.through_float64(function), 0.51)
    for kind in ("float32", "float64"):
        for name, function in elementary.SAME_TYPE.items():
            _add(name, kind, function, 0.5 if name == "/" else 0.0)
        _add("**", kind, elementary.power(kind), 2.0)
        _add("remainder", kind, partial(_as_type, kind, elementary.ieee_remainder))
        _add("//", kind, float_division.floor_divide(kind))
        _add("%", kind, float_division.modulo(kind))
        _add("divmod", kind, float_division.divmod_floats(kind))
        _add("degrees", kind, elementary.scaled(180.0 / math.pi, kind), 1.5)
        _add("radians", kind, elementary.scaled(math.pi / 180.0, kind), 1.5)
        _add("frexp", kind, elementary.frexp)
        _add("modf", kind, elementary.modf)
        _add("ldexp", kind, elementary.ldexp, 0.5)
        _add("fmax", kind, elementary.fmax)
        _add("fmin", kind, elementary.fmin)
        _add("round", kind, elementary.round_to_integer(kind))
        _add("round_digits", kind, elementary.round_to_digits(kind), 2.0)
    _add("flush", "float32", approximate.flush)
    for name in ("div_approx", "div_full"):
        _add(name, "float32", getattr(approximate, name), 2.0)
    _add("fma", "float32", fma_float32, 0.5)
    _add("fma", "float64", fma_float64, 0.5)
    for kind in (*FLOATS, "bool"):
        _add("max", kind, elementary.select_max)
        _add("min", kind, elementary.select_min)
        for name in ("maximum", "minimum", "numpy_fmax", "numpy_fmin"):
            _add(name, kind, getattr(elementary, name))


def _half_functions() -> None:
    for table, ulps in ((halves.EXACT, 0.0), (halves.ROUNDED_ONCE, 0.5), (halves.NEARLY_ROUNDED, 0.51)):
        for name, function in table.items():
            _add(name, "float16", function, ulps)
    for name, half in halves.MATH_NAMES.items():
        _add(name, "float16", INTRINSICS[half, "float16"].function, INTRINSICS[half, "float16"].ulps)


def _math_functions_of_integers() -> None:
    """``math`` on an integer: the argument becomes a float64."""
    names = [*elementary.UNARY, *elementary.BINARY]
    names += ["ceil", "floor", "trunc", "fabs", "isnan", "isinf", "isfinite", "degrees", "radians"]
    for kind in ("int64", "uint64"):
        for name in names:
            found = INTRINSICS[name, "float64"]
            _add(name, kind, partial(_of_integers, kind, found.function), found.ulps)


def _both(first: Callable[..., Lane], second: Callable[..., Lane], a: Lane, b: Lane) -> tuple[Lane, Lane]:
    return first(a, b), second(a, b)


def _item(index: int, whole: Callable[..., tuple[Lane, ...]], *values: Lane) -> Lane:
    return whole(*values)[index]


def _round(to_integer: Callable[..., Lane], to_digits: Callable[..., Lane], *values: Lane) -> Lane:
    return (to_integer if len(values) == 1 else to_digits)(*values)


def _as_type(kind: str, function: Callable[..., Lane], *values: Lane) -> Lane:
    return function(*values).astype(kind)


def _of_integers(kind: str, function: Callable[..., Lane], *values: Lane) -> Lane:
    return function(*(convert(value, kind, "float64") for value in values))


def _selp(kind: str, test: Lane, a: Lane, b: Lane) -> Lane:
    if isinstance(test, np.ndarray):
        return np.where(test != 0, np.asarray(a, CARRIER[kind]), np.asarray(b, CARRIER[kind]))
    return a if test else b


_integer_functions()
_float_functions()
_half_functions()
_math_functions_of_integers()
for _kind in CARRIER:
    _add("selp", _kind, partial(_selp, _kind))
for _entry in (*library.entries(), *half_library.entries(), *eight_bits.entries(), *complex_numbers.entries()):
    if (_entry.name, _entry.operands[0]) not in INTRINSICS:
        _add(_entry.name, _entry.operands[0], _entry, _entry.ulps)
for _name, _half in halves.MATH_NAMES.items():
    _add(_name, "bfloat16", INTRINSICS[_half, "bfloat16"].function, INTRINSICS[_half, "bfloat16"].ulps)
