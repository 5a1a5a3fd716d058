"""Matrix units of devices: what each adds up at once, to how many bits, as a table; and that arithmetic in NumPy.

A fused dot product adds the products of `terms` pairs and the accumulator: every summand is cut (towards zero) to
`fraction_bits` bits below the largest exponent among them, the sum of what remains is exact, and is rounded once. A
product's exponent is the sum of its factors' exponents, those of subnormal numbers being the smallest one; the largest
exponent is at least that of `floors`. Longer dot products are chained. Models and numbers: Xie, Wang, Yang and Yang,
"MMA-Sim" (arXiv 2511.10909), Khattak and Mikaitis, "Accurate Models of NVIDIA Tensor Cores" (arXiv 2512.07004);
agrees bit for bit with the latter's 5000 measured results for each device and format, and with what an H200 answered
to every instruction, special values included (tests/refsim/data/matrix_units_h200.npz).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from refsim.engine.intrinsics.fused import fma_float64

Doubles = Any


@dataclass(frozen=True)
class FusedDot:
    """A fused dot product.

    Attributes
    ----------
    fraction_bits, terms
        Bits kept below the largest exponent, and products added at once.
    floors
        Least value of the largest exponent, for a float32 and for a float16 accumulator.
    result_bits
        Mantissa bits of a float32 result, towards which it is cut.
    halves
        The 8-bit floats are converted to float16, in two passes over alternating pairs of elements that start from
        zero, and the accumulator is added last, by an ordinary addition.
    """

    fraction_bits: int
    terms: int
    floors: tuple[int, int]
    result_bits: int = 23
    halves: bool = False


@dataclass(frozen=True)
class MatrixUnit:
    """Matrix unit of an architecture: its compute capability, and how it multiplies each element type."""

    capability: int
    dots: dict[str, FusedDot]


_VOLTA, _TURING, _HOPPER = (-131, -19), (-132, -20), (-133, -21)


def _unit(capability: int, half: FusedDot, eight: FusedDot | None = None) -> MatrixUnit:
    dots = {"float16": half}
    if capability >= 80:
        dots["bfloat16"] = half
        dots["tfloat32"] = replace(half, terms=half.terms // 2)
    if eight is not None:
        dots["float8_e4m3fn"] = dots["float8_e5m2"] = eight
    return MatrixUnit(capability, dots)


_AMPERE_HALF, _HOPPER_HALF = FusedDot(24, 8, _TURING), FusedDot(25, 16, _HOPPER)
_AS_HALVES = replace(_HOPPER_HALF, halves=True)
UNITS: dict[str, MatrixUnit] = {
    "sm_70": _unit(70, FusedDot(23, 4, _VOLTA)),
    "sm_75": _unit(75, _AMPERE_HALF),
    "sm_80": _unit(80, _AMPERE_HALF),
    "sm_86": _unit(86, _AMPERE_HALF),
    "sm_89": _unit(89, _AMPERE_HALF, FusedDot(13, 16, _TURING, result_bits=13)),
    "sm_90": _unit(90, _HOPPER_HALF, _AS_HALVES),
    "sm_100": _unit(100, _HOPPER_HALF, _AS_HALVES),
    "sm_120": _unit(120, _HOPPER_HALF, FusedDot(25, 32, _HOPPER)),
}

CANONICAL_NAN = {
    "float32": np.array(0x7FFFFFFF, np.uint32).view(np.float32)[()],
    "float16": np.array(0x7FFF, np.uint16).view(np.float16)[()],
}
LEAST_EXPONENT = {
    "float16": -14, "bfloat16": -126, "tfloat32": -126, "float32": -126, "float8_e4m3fn": -6, "float8_e5m2": -14,
}  # fmt: skip
ABSENT = -(1 << 20)  # exponent of a factor that is zero


def multiply(unit: MatrixUnit, kind: str, a: Any, b: Any, c: Any, saturate: bool) -> Any:
    """``a @ b + c`` for many warps at once.

    Parameters
    ----------
    kind
        Element type of `a`; ``tfloat32`` for float32 values of which the unit looks at 10 mantissa bits.
    a, b, c
        ``(m, k, warps)``, ``(k, n, warps)`` and ``(m, n, warps)``, of their element types.
    saturate
        For integers: limit the sum to int32 instead of wrapping it.
    """
    if c.dtype == np.int32:
        return _integers(a, b, c, saturate)
    if kind == "float64":
        for k in range(a.shape[1]):
            c = fma_float64(a[:, k, None], b[None, k], c)
        return c
    dot = unit.dots[kind]
    if kind == "tfloat32":
        a, b = (np.ascontiguousarray(x).view(np.uint32) & np.uint32(0xFFFFE000) for x in (a, b))
        a, b = a.view(np.float32), b.view(np.float32)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    if dot.halves:
        pairs = np.arange(a.shape[1]) // 2 % 2
        total = np.zeros_like(c)
        for part in (0, 1):
            chosen = pairs == part
            total = _chain(dot, "float16", wide_a[:, chosen], wide_b[chosen], total)
        total = total + c
        total[np.isnan(total)] = CANONICAL_NAN[c.dtype.name]
        return total
    return _chain(dot, kind, wide_a, wide_b, c)


def _integers(a: Any, b: Any, c: Any, saturate: bool) -> Any:
    total = np.einsum("mkw,knw->mnw", a.astype(np.int64), b.astype(np.int64)) + c
    if saturate:
        total = np.clip(total, -(2**31), 2**31 - 1)
    return total.astype(np.int32)


def _chain(dot: FusedDot, kind: str, a: Doubles, b: Doubles, c: Any) -> Any:
    """Fused dot products along the depth, each starting from the last one's result."""
    exponents_a, exponents_b = _exponents(a, LEAST_EXPONENT[kind]), _exponents(b, LEAST_EXPONENT[kind])
    for start in range(0, a.shape[1], dot.terms):
        part = slice(start, start + dot.terms)
        c = _fused(dot, a[:, part], b[part], exponents_a[:, part], exponents_b[part], c)
    return c


def _exponents(values: Doubles, least: int) -> Any:
    """Exponent of each number as the unit sees it: a significand in [1, 2), or below for the smallest exponent."""
    exponents = np.maximum(np.frexp(values)[1] - 1, least)
    return np.where(values == 0, ABSENT, exponents)


def _fused(dot: FusedDot, a: Doubles, b: Doubles, exponents_a: Any, exponents_b: Any, c: Any) -> Any:
    accumulator = c.dtype.name
    wide_c = c.astype(np.float64)
    products = a[:, :, None] * b[None]  # exact
    largest = (exponents_a[:, :, None] + exponents_b[None]).max(axis=1)
    largest = np.maximum(largest, _exponents(wide_c, LEAST_EXPONENT[accumulator]))
    largest = np.maximum(largest, dot.floors[accumulator == "float16"])
    special: Any = None
    if not (np.isfinite(a).all() and np.isfinite(b).all() and np.isfinite(wide_c).all()):
        special = products.sum(axis=1) + wide_c
        products = np.where(np.isfinite(products), products, 0)
        wide_c = np.where(np.isfinite(wide_c), wide_c, 0)
        largest = np.where(np.isfinite(special), largest, 0)
    scale = np.ldexp(1.0, dot.fraction_bits - largest)
    total = np.trunc(products * scale[:, None]).sum(axis=1) + np.trunc(wide_c * scale)
    total = np.ldexp(total, largest - dot.fraction_bits)
    rounded = cut_to_float32(total, dot.result_bits) if accumulator == "float32" else total.astype(np.float16)
    rounded = rounded + rounded.dtype.type(0)  # -0 becomes +0
    if special is not None:
        rounded = np.where(np.isfinite(special), rounded, special.astype(c.dtype))
        rounded[np.isnan(special)] = CANONICAL_NAN[accumulator]
    return rounded


def cut_to_float32(values: Doubles, bits: int) -> Any:
    """Numbers cut towards zero to float32 with some mantissa bits; what is too large becomes infinite."""
    kept = np.ascontiguousarray(values).view(np.int64) & np.int64(-1 << (52 - bits))
    unit = 2.0 ** (-126 - bits)
    cut = np.where(np.abs(values) < 2.0**-126, np.trunc(values / unit) * unit, kept.view(np.float64))
    return np.where(np.abs(cut) >= 2.0**128, np.copysign(np.inf, cut), cut).astype(np.float32)
