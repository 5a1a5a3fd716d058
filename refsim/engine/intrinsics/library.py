"""Functions of CUDA's device library beyond those of `math`: a table of names, types, implementations and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from refsim.engine.intrinsics import bessel, directed, periodic, special, words
from refsim.engine.intrinsics.conversion import CARRIER, convert
from refsim.engine.intrinsics.entry import Entry

# float64 functions, and what they differ from the exact result at most, measured and rounded up (tests)
_UNARY: dict[str, tuple[Callable[..., Any], float]] = {
    "erfcx": (special.erfcx, 4.0), "erfinv": (special.erfinv, 4.0), "erfcinv": (special.erfcinv, 4.0),
    "normcdf": (special.normcdf, 5.0), "normcdfinv": (special.normcdfinv, 5.0), "sinpi": (periodic.sinpi, 2.0),
    "cospi": (periodic.cospi, 2.0), "rsqrt": (periodic.rsqrt, 0.51), "rcbrt": (periodic.rcbrt, 0.51),
    "exp10": (partial(np.power, 10.0), 2.0), "j0": (bessel.j0, 4.0), "j1": (bessel.j1, 4.0), "y0": (bessel.y0, 6.0),
    "y1": (bessel.y1, 6.0),
}  # fmt: skip
_EXACT: dict[str, Callable[..., Any]] = {
    "rint": np.rint, "round_away": periodic.round_away, "logb": periodic.unbiased_exponent,
}  # fmt: skip


def entries() -> Iterator[Entry]:
    """All of the table."""
    for name, (function, ulps) in _UNARY.items():
        yield Entry(name, ("float64",), ("float64",), function, ulps)
        yield Entry(name, ("float32",), ("float32",), partial(_through_float64, function), 0.51)
    # for orders up to 128 and |x| up to the order; beyond, 1e-15 in absolute terms, as near the zeros of the other ones
    for name, function in (("jn", bessel.jn), ("yn", bessel.yn)):
        yield Entry(name, ("int32", "float64"), ("float64",), function, 64.0)
        yield Entry(f"{name}f", ("int32", "float32"), ("float32",), partial(_order_and_float32, function), 0.51)
    for kind in ("float32", "float64"):
        for name, function in _EXACT.items():
            yield Entry(name, (kind,), (kind,), function, 0.0)
        yield Entry("ilogb", (kind,), ("int32",), periodic.integer_exponent, 0.0)
        yield Entry("signbit", (kind,), ("bool",), np.signbit, 0.0)
        yield Entry("saturate", (kind,), (kind,), periodic.saturate, 0.0)
        yield Entry("fdim", (kind, kind), (kind,), periodic.positive_difference, 0.5)
        yield Entry("remquo", (kind, kind), (kind, "int32"), periodic.remainder_and_quotient, 0.0)
        yield Entry("sincos", (kind,), (kind, kind), partial(_both_of, kind, np.sin, np.cos), 2.0)
        yield Entry("sincospi", (kind,), (kind, kind), partial(_both_of, kind, periodic.sinpi, periodic.cospi), 2.0)
    # against the power itself; the error grows with the exponent of the result
    yield Entry("fast_pow", ("float32", "float32"), ("float32",), _fast_power, 1e3)
    yield Entry("fdividef", ("float32", "float32"), ("float32",), _fast_division, 0.5)
    yield from _roundings()
    yield from _integers()
    yield from _bits()


def _through_float64(function: Callable[..., Any], x: Any) -> Any:
    return function(x.astype(np.float64)).astype(np.float32)


def _half_bits(x: Any) -> Any:
    return np.where(np.isnan(x), 0x7FFF, x.astype(np.float16).view(np.int16))


def _fast_power(x: Any, y: Any) -> Any:
    """``__powf``: 2 to the power of y times the logarithm, so that no negative base has a power, and 0**0 is NaN."""
    with_log = y * np.log2(x.astype(np.float64)).astype(np.float32)
    return np.exp2(with_log.astype(np.float64)).astype(np.float32)


def _fast_division(x: Any, y: Any) -> Any:
    """``__fdividef``: 0 for a divisor from 2**126 on, as documented, NaN if the dividend is infinite too."""
    return np.where((np.abs(y) > 2.0**126) & np.isfinite(y), x * np.float32(0.0) * np.sign(y), x / y)


def _order_and_float32(function: Callable[..., Any], order: Any, x: Any) -> Any:
    return function(order, x.astype(np.float64)).astype(np.float32)


def _both_of(kind: str, first: Callable[..., Any], second: Callable[..., Any], x: Any) -> Any:
    wide = x.astype(np.float64)
    return first(wide).astype(kind), second(wide).astype(kind)


def _roundings() -> Iterator[Entry]:
    floats, integers = ("float32", "float64"), ("int16", "uint16", "int32", "uint32", "int64", "uint64")
    for mode in directed.MODES:
        for kind in floats:
            for op, count in directed.OPERANDS.items():
                yield Entry(f"{op}_{mode}", (kind,) * count, (kind,), directed.arithmetic(op, kind, mode), 0.5)
            for integer in integers:
                to_integer = directed.to_integer(kind, integer, mode)
                yield Entry(f"to_{integer}_{mode}", (kind,), (integer,), to_integer, 0.5)
                from_integer = directed.from_integer(integer, kind, mode)
                yield Entry(f"to_{kind}_{mode}", (integer,), (kind,), from_integer, 0.5)
        for target in ("float32", "float16", "bfloat16"):
            yield Entry(f"to_{target}_{mode}", ("float64",), (target,), directed.narrowed(target, mode), 0.5)
    for kind in floats:
        yield Entry("round_to_int64", (kind,), ("int64",), partial(_rounded_to_int64, kind), 0.5)


def _rounded_to_int64(kind: str, x: Any) -> Any:
    return convert(periodic.round_away(x), kind, "int64")


def _integers() -> Iterator[Entry]:
    high = {
        "int32": words.multiply_high_int32, "uint32": words.multiply_high_uint32, "int64": words.multiply_high_int64,
        "uint64": words.multiply_high_uint64,
    }  # fmt: skip
    for kind, function in high.items():
        yield Entry("mulhi", (kind, kind), (kind,), function, 0.0)
    yield Entry("mul24", ("int32", "int32"), ("int32",), words.multiply_24_int32, 0.0)
    yield Entry("mul24", ("uint32", "uint32"), ("uint32",), words.multiply_24_uint32, 0.0)
    for kind in ("int32", "uint32"):
        yield Entry("hadd", (kind, kind), (kind,), words.average, 0.0)
        yield Entry("rhadd", (kind, kind), (kind,), words.average_rounded_up, 0.0)
    yield Entry("sad", ("int32", "int32", "int32"), ("int32",), words.difference_added("int32"), 0.0)
    yield Entry("sad", ("uint32", "uint32", "uint32"), ("uint32",), words.difference_added("uint32"), 0.0)
    yield Entry("byte_perm", ("uint32", "uint32", "uint32"), ("uint32",), words.permute_bytes, 0.0)


def _bits() -> Iterator[Entry]:
    pairs = (("float32", "int32"), ("float64", "int64"))
    for real, integer in pairs:
        yield Entry(f"as_{integer}", (real,), (integer,), partial(_reread, real, integer), 0.0)
        yield Entry(f"as_{real}", (integer,), (real,), partial(_reread, integer, real), 0.0)
    yield Entry("high_word", ("float64",), ("int32",), lambda x: x.view(np.int64) >> 32, 0.0)
    yield Entry("low_word", ("float64",), ("int32",), lambda x: x.view(np.int64).astype(np.int32), 0.0)
    yield Entry("to_half_bits", ("float32",), ("int16",), _half_bits, 0.5)
    yield Entry("from_half_bits", ("int16",), ("float32",), lambda x: x.astype(np.int16).view(np.float16), 0.0)
    yield Entry("from_words", ("int32", "int32"), ("float64",), _from_words, 0.0)


def _reread(source: str, target: str, x: Any) -> Any:
    return x.astype(np.dtype(source), copy=False).view(np.dtype(target)).astype(CARRIER[target], copy=False)


def _from_words(high: Any, low: Any) -> Any:
    return ((high << 32) | (low & 0xFFFFFFFF)).view(np.float64)
