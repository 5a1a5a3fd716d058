"""complex64 and complex128: operators as numba-cuda compiles them, and the functions of `cmath` and of NumPy.

Products and quotients are written out, so that no processor's fused multiply-add changes them. Functions are computed
in complex128, and rounded for complex64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from refsim.engine.intrinsics.conversion import CARRIER
from refsim.engine.intrinsics.entry import Entry

PART = {"complex64": "float32", "complex128": "float64"}
"""Type of the real and of the imaginary part."""

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "cos": np.cos, "cosh": np.cosh, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "sin": np.sin, "sinh": np.sinh,
    "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "reciprocal": np.reciprocal, "square": np.square,
}  # fmt: skip
_EXTREMES: dict[str, Callable[..., Any]] = {
    "maximum": np.maximum, "minimum": np.minimum, "numpy_fmax": np.fmax, "numpy_fmin": np.fmin,
}  # fmt: skip
_TESTS: dict[str, Callable[..., Any]] = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}


def entries() -> Iterator[Entry]:
    """All functions of complex numbers."""
    for kind, part in PART.items():
        for name, function in _FUNCTIONS.items():
            yield Entry(name, (kind,), (kind,), partial(_rounded, function, kind), 4.0)
        for name, function in _TESTS.items():
            yield Entry(name, (kind,), ("bool",), function, 0.0)
        for name, function in _EXTREMES.items():
            yield Entry(name, (kind, kind), (kind,), function, 0.0)
        yield Entry("*", (kind, kind), (kind,), multiply, 2.0)
        yield Entry("/", (kind, kind), (kind,), divide, 4.0)
        yield Entry("real", (kind,), (part,), np.real, 0.0)
        yield Entry("imag", (kind,), (part,), np.imag, 0.0)
        yield Entry("conjugate", (kind,), (kind,), np.conjugate, 0.0)
        yield Entry("negative", (kind,), (kind,), np.negative, 0.0)
        yield Entry("complex", (part, part), (kind,), partial(_together, kind), 0.0)
        yield Entry("log_base", (kind, kind), (kind,), partial(_rounded, _log_to_base, kind), 8.0)
        yield Entry("polar", (kind,), (part, part), partial(_polar, part), 1.0)
        yield Entry("rect", (part, part), (kind,), partial(_rect, kind), 2.0)
        for name in ("abs", "absolute"):
            yield Entry(name, (kind,), (part,), partial(_magnitude, part), 1.0)
        yield Entry("phase", (kind,), (part,), partial(_phase, part), 1.0)


def _together(kind: str, real: Any, imaginary: Any) -> Any:
    result = np.empty(real.shape, CARRIER[kind])
    result.real, result.imag = real, imaginary
    return result


def multiply(x: Any, y: Any) -> Any:
    """(a + bi)(c + di) = (ac - bd) + (ad + bc)i, every operation rounded."""
    a, b, c, d = x.real, x.imag, y.real, y.imag
    return _together(x.dtype.name, a * c - b * d, a * d + b * c)


def divide(x: Any, y: Any) -> Any:
    """CPython's algorithm (Smith's); NaN where the divisor is zero, which numba-cuda leaves undefined."""
    a, b, c, d = x.real, x.imag, y.real, y.imag
    by_real = np.abs(c) >= np.abs(d)
    large, small = np.where(by_real, c, d), np.where(by_real, d, c)
    ratio = small / large
    denominator = large + small * ratio
    real = np.where(by_real, a + b * ratio, a * ratio + b) / denominator
    imaginary = np.where(by_real, b - a * ratio, b * ratio - a) / denominator
    broken = (large == 0) | np.isnan(c) | np.isnan(d)
    nan = real.dtype.type(np.nan)
    return _together(x.dtype.name, np.where(broken, nan, real), np.where(broken, nan, imaginary))


def _rounded(function: Callable[..., Any], kind: str, *values: Any) -> Any:
    return function(*(value.astype(np.complex128) for value in values)).astype(kind)


def _log_to_base(x: Any, base: Any) -> Any:
    return divide(np.log(x), np.log(base))


def _magnitude(part: str, x: Any) -> Any:
    return np.hypot(x.real.astype(np.float64), x.imag.astype(np.float64)).astype(part)


def _phase(part: str, x: Any) -> Any:
    return np.arctan2(x.imag.astype(np.float64), x.real.astype(np.float64)).astype(part)


def _polar(part: str, x: Any) -> tuple[Any, Any]:
    return _magnitude(part, x), _phase(part, x)


def _rect(kind: str, radius: Any, angle: Any) -> Any:
    """Radius times (cos, sin); an infinite or NaN angle as `cmath` has it."""
    wide_radius, wide_angle = radius.astype(np.float64), angle.astype(np.float64)
    real, imaginary = wide_radius * np.cos(wide_angle), wide_radius * np.sin(wide_angle)
    odd = ~np.isfinite(wide_angle)
    if odd.any():
        infinite = np.isinf(radius)
        odd_real = np.where(radius == 0, 0.0, np.where(infinite, np.abs(wide_radius), math.nan))
        odd_imaginary = np.where(radius == 0, 0.0, np.where(infinite, wide_angle, math.nan))
        real, imaginary = np.where(odd, odd_real, real), np.where(odd, odd_imaginary, imaginary)
    return _together(kind, real, imaginary)
