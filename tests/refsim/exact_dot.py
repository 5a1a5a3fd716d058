"""Matrix units in exact arithmetic, one element at a time: what the engine's arrays are compared with."""

import math
from fractions import Fraction

import numpy as np

LEAST = {"float16": -14, "bfloat16": -126, "float32": -126}


def exponent(x, least):
    """Exponent of a number whose significand is below 2; that of a subnormal number is the least one."""
    return max(math.frexp(float(x))[1] - 1, least)


def toward_zero(x: Fraction) -> int:
    return math.floor(x) if x >= 0 else -math.floor(-x)


def fused_dot(a, b, c, kind, accumulator, fraction_bits, floor):
    """One fused dot product of lists of numbers, rounded to the accumulator's type."""
    terms = [
        (Fraction(float(x)) * Fraction(float(y)), exponent(x, LEAST[kind]) + exponent(y, LEAST[kind]))
        for x, y in zip(a, b, strict=True)
    ]
    terms.append((Fraction(float(c)), exponent(c, LEAST[accumulator])))
    largest = max([e for value, e in terms if value] + [floor])
    unit = Fraction(2) ** (largest - fraction_bits)
    total = sum(toward_zero(value / unit) for value, _ in terms) * unit
    return float32_toward_zero(total) if accumulator == "float32" else float16_nearest(total)


def floor_log2(x: Fraction) -> int:
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def float32_toward_zero(x: Fraction, bits: int = 23) -> np.float32:
    if x == 0:
        return np.float32(0)
    size = abs(x)
    e = max(-126, floor_log2(size))
    unit = Fraction(2) ** (e - bits)
    cut = math.floor(size / unit) * unit
    value = math.inf if cut >= Fraction(2) ** 128 else float(cut)
    return np.float32(value if x > 0 else -value)


def float16_nearest(x: Fraction) -> np.float16:
    if x == 0:
        return np.float16(0)
    size = abs(x)
    e = max(-14, floor_log2(size))
    unit = Fraction(2) ** (e - 10)
    rounded = round(size / unit) * unit  # Python rounds ties to even
    value = math.inf if rounded >= 65520 else float(rounded)
    return np.float16(value if x > 0 else -value)


def chained(a, b, c, kind, accumulator, fraction_bits, terms, floor):
    """A longer dot product: fused ones after one another."""
    for start in range(0, len(a), terms):
        part = slice(start, start + terms)
        c = fused_dot(a[part], b[part], c, kind, accumulator, fraction_bits, floor)
    return c
