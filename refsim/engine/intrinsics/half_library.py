"""Functions of float16 and bfloat16 beyond those of `halves`: saturated, unordered, and conversions by rounding mode.

Arithmetic is done in float64, exactly or rounded to odd, and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from refsim.engine.intrinsics import directed, elementary, fused
from refsim.engine.intrinsics.conversion import CARRIER, converter, float_to_integer
from refsim.engine.intrinsics.entry import Entry

KINDS = ("float16", "bfloat16")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")

_ARITHMETIC: dict[str, Callable[..., Any]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "eq": np.equal, "ne": np.not_equal, "ge": np.greater_equal, "gt": np.greater, "le": np.less_equal, "lt": np.less,
}  # fmt: skip
_WHOLE: dict[str, Callable[..., Any]] = {
    "habs": np.abs, "hneg": np.negative, "hceil": np.ceil, "hfloor": np.floor, "htrunc": np.trunc, "hrint": np.rint,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "hrcp": lambda x: 1.0 / x, "hsqrt": np.sqrt, "hrsqrt": lambda x: 1.0 / np.sqrt(x), "hsin": np.sin, "hcos": np.cos,
    "htanh": np.tanh, "htanh_approx": np.tanh, "hexp": np.exp, "hexp2": np.exp2,
    "hexp10": lambda x: np.power(10.0, x), "hlog": np.log, "hlog2": np.log2, "hlog10": np.log10,
}  # fmt: skip


def entries() -> Iterator[Entry]:
    """All of them; those of float16 in `halves` come first and stay as they are."""
    for kind in KINDS:
        two, three = (kind, kind), (kind, kind, kind)
        for op, function in _ARITHMETIC.items():
            plain = partial(_rounded, function, kind)
            for name in (f"h{op}", f"h{op}_rn"):
                yield Entry(name, two, (kind,), plain, 0.5)
            yield Entry(f"h{op}_sat", two, (kind,), partial(_saturated, plain), 0.5)
        fma = partial(_fma, kind)
        yield Entry("hfma", three, (kind,), fma, 0.5)
        yield Entry("hfma_sat", three, (kind,), partial(_saturated, fma), 0.5)
        yield Entry("hfma_relu", three, (kind,), partial(_rectified, fma), 0.5)
        for name, compare in _COMPARISONS.items():
            yield Entry(f"h{name}", two, ("bool",), partial(_compared, compare, False), 0.0)
            yield Entry(f"h{name}u", two, ("bool",), partial(_compared, compare, True), 0.0)
        for name, smaller in (("hmax", False), ("hmin", True)):
            yield Entry(name, two, (kind,), partial(_extreme, smaller, False), 0.0)
            yield Entry(f"{name}_nan", two, (kind,), partial(_extreme, smaller, True), 0.0)
        yield Entry("hisnan", (kind,), ("bool",), np.isnan, 0.0)
        yield Entry("hisinf", (kind,), ("int32",), _sign_of_infinity, 0.0)
        for name, function in _WHOLE.items():
            yield Entry(name, (kind,), (kind,), partial(_rounded, function, kind), 0.0)
        for name, function in _FUNCTIONS.items():
            yield Entry(name, (kind,), (kind,), partial(_rounded, function, kind), 0.51)
        yield from _conversions(kind)


def _conversions(kind: str) -> Iterator[Entry]:
    for mode in directed.MODES:
        for source in ("float32", "float64"):
            yield Entry(f"to_{kind}_{mode}", (source,), (kind,), partial(_narrowed, kind, mode), 0.5)
        for integer in INTEGERS:
            yield Entry(f"to_{kind}_{mode}", (integer,), (kind,), partial(_from_integer, kind, mode), 0.5)
            yield Entry(f"to_{integer}_{mode}", (kind,), (integer,), partial(_to_integer, integer, mode), 0.5)
    for integer in ("int16", "uint16"):
        yield Entry(f"as_{integer}", (kind,), (integer,), lambda x, to=integer: x.view(to), 0.0)
        yield Entry(f"as_{kind}", (integer,), (kind,), partial(_reread, integer, kind), 0.0)


def _reread(source: str, kind: str, x: Any) -> Any:
    return x.astype(source).view(CARRIER[kind])


def _sign_of_infinity(x: Any) -> Any:
    return np.where(np.isinf(x), np.sign(x.astype(np.float32)), 0)


def _once(kind: str, wide: Any) -> Any:
    """Rounded once; a NaN becomes the device's own, 0x7FFF."""
    result = converter("float64", kind)(wide)
    nan = np.isnan(wide)
    return np.where(nan, np.array(0x7FFF, np.uint16).view(result.dtype), result) if nan.any() else result


def _rounded(function: Callable[..., Any], kind: str, *values: Any) -> Any:
    return _once(kind, function(*(value.astype(np.float64) for value in values)))


def _fma(kind: str, a: Any, b: Any, c: Any) -> Any:
    """The product is exact in float64; the sum is rounded to odd, which leaves enough to round once more."""
    product = a.astype(np.float64) * b.astype(np.float64)
    return _once(kind, fused.sum_rounded_to_odd(product, c.astype(np.float64)))


def _saturated(function: Callable[..., Any], *values: Any) -> Any:
    result = function(*values)
    wide = result.astype(np.float32)
    return np.where(np.isnan(wide), np.float32(0), np.clip(wide, 0, 1) + np.float32(0)).astype(result.dtype)


def _rectified(function: Callable[..., Any], *values: Any) -> Any:
    result = function(*values)
    return np.where(result.astype(np.float32) < 0, result.dtype.type(0), result)


def _compared(compare: Callable[..., Any], unordered: bool, a: Any, b: Any) -> Any:
    nan = np.isnan(a) | np.isnan(b)
    result = compare(a.astype(np.float32), b.astype(np.float32))
    return result | nan if unordered else result & ~nan


def _extreme(smaller: bool, keeps_nan: bool, a: Any, b: Any) -> Any:
    x, y = a.astype(np.float32), b.astype(np.float32)
    result = (elementary.fmin if smaller else elementary.fmax)(x, y)
    if keeps_nan:
        result = np.where(np.isnan(x) | np.isnan(y), np.float32(np.nan), result)
    return _once(a.dtype.name, result.astype(np.float64))


def _narrowed(kind: str, mode: str, x: Any) -> Any:
    wide = x.astype(np.float64)
    nearest = converter("float64", kind)(wide)
    return nearest if mode == "rn" else directed.step(nearest, wide - nearest.astype(np.float64), mode)


def _from_integer(kind: str, mode: str, x: Any) -> Any:
    low_half = (x & x.dtype.type(0xFFFFFFFF)).astype(np.float64)
    high_half = (x >> x.dtype.type(32)).astype(np.float64) * 2.0**32
    return _narrowed(kind, mode, fused.sum_rounded_to_odd(high_half, low_half))


def _to_integer(integer: str, mode: str, x: Any) -> Any:
    whole = {"rn": np.rint, "rd": np.floor, "ru": np.ceil, "rz": np.trunc}[mode](x.astype(np.float32))
    return float_to_integer("float32", integer, whole)
