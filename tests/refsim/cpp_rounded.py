"""Exact rounding of fractions to a binary format, in one of four directions: the reference for directed rounding."""

import math
from fractions import Fraction

FORMATS = {  # digits, lowest exponent of a normal number, highest
    "float64": (53, -1022, 1023), "float32": (24, -126, 127), "bfloat16": (8, -126, 127), "float16": (11, -14, 15),
}  # fmt: skip


def rounded(exact: Fraction | float, kind: str, mode: str, negative_zero: bool = False) -> float:
    """The number of a format that an exact value is rounded to; infinities and NaN pass."""
    if isinstance(exact, float) and not math.isfinite(exact):
        return exact
    value = Fraction(exact)
    if value == 0:
        return -0.0 if negative_zero else 0.0
    digits, lowest, highest = FORMATS[kind]
    size, negative = abs(value), value < 0
    exponent = max(math.floor(math.log2(size.numerator) - math.log2(size.denominator)), lowest)
    while size >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while exponent > lowest and size < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (exponent - digits + 1)
    steps, rest = divmod(size, unit)
    nearer = rest * 2 > unit or (rest * 2 == unit and steps % 2 == 1)
    away = {"rn": nearer, "rz": False, "rd": negative, "ru": not negative}[mode]
    result = (steps + bool(rest and away)) * unit
    largest = (2 - Fraction(2) ** (1 - digits)) * Fraction(2) ** highest
    if result > largest:
        toward_zero = mode == "rz" or (mode == "rd" and not negative) or (mode == "ru" and negative)
        return math.copysign(float(largest) if toward_zero else math.inf, -1.0 if negative else 1.0)
    return math.copysign(float(result), -1.0 if negative else 1.0)
