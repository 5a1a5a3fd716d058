"""Rounding to a float format by its definition, in fractions."""

import math
from fractions import Fraction

LIMITS = {  # digits, exponent of the least number, largest number
    "float32": (24, -149, 3.4028234663852886e38), "float64": (53, -1074, 1.7976931348623157e308),
    "float16": (11, -24, 65504.0), "bfloat16": (8, -133, 3.3895313892515355e38),
}  # fmt: skip


def rounded(exact, kind, mode="rn"):
    """A fraction rounded to a float type by its definition."""
    digits, lowest, largest = LIMITS[kind]
    if exact == 0:
        return 0.0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent += 0 if Fraction(2) ** exponent <= size else -1
    unit = Fraction(2) ** max(exponent - digits + 1, lowest)
    steps = exact / unit
    whole = {"rn": round, "rd": math.floor, "ru": math.ceil, "rz": math.trunc}[mode](steps) * unit
    if abs(whole) > Fraction(largest):
        toward = {"rn": True, "rd": exact < 0, "ru": exact > 0, "rz": False}[mode]
        return math.copysign(math.inf if toward else largest, 1 if exact > 0 else -1)
    return math.copysign(float(abs(whole)), 1 if exact > 0 else -1)


def same(a, b):
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
