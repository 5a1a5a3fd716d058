"""Integer operators and bit functions on lanes: floor division, power, shifts, counts of bits.

Rules where Python, C and NumPy differ are numba-cuda's: the quotient is floored and the remainder has the divisor's
sign; a division by zero gives 0 and 0, and so does the lowest integer divided by -1; shifts take the low 32 bits of the
amount, and from the width on give 0, or the sign for a signed right shift (PTX ``shl``, ``shr``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from refsim.engine.intrinsics.conversion import CARRIER, HIGHEST, LOWEST, SIGNED, WIDTH, Array, Lane, wrap

POWER_CUTOFF = 0x10000
"""Exponents above are raised through float64 by numba."""


def floor_divide(name: str) -> Callable[[Lane, Lane], Lane]:
    """``a // b`` for the integer type `name`."""

    def divide(a: Lane, b: Lane) -> Lane:
        if not isinstance(a, np.ndarray) and not isinstance(b, np.ndarray):
            return 0 if b == 0 or _overflows(a, b) else int(a) // int(b)
        quotient: Array = np.floor_divide(a, b)
        if name in SIGNED and np.any(b == -1):
            quotient = np.where(_overflows(a, b), 0, quotient)
        return quotient

    def _overflows(a: Lane, b: Lane) -> Lane:
        return (a == LOWEST[name]) & (b == -1) if name in SIGNED else False

    return divide


def modulo(name: str) -> Callable[[Lane, Lane], Lane]:
    """``a % b`` for the integer type `name`."""

    def remainder(a: Lane, b: Lane) -> Lane:
        if not isinstance(a, np.ndarray) and not isinstance(b, np.ndarray):
            return int(a) % int(b) if b != 0 else 0
        return np.remainder(a, b)

    return remainder


def divide_truncating(name: str) -> Callable[[Lane, Lane], Lane]:
    """C's ``a / b`` for the integer type `name`: rounded toward zero; 0 for a division by zero."""
    floor, remainder = floor_divide(name), modulo(name)
    if name not in SIGNED:
        return floor

    def divide(a: Lane, b: Lane) -> Lane:
        quotient = floor(a, b)
        inexact = (remainder(a, b) != 0) & ((a < 0) != (b < 0))
        return wrap(quotient + inexact, name)

    return divide


def remainder_truncating(name: str) -> Callable[[Lane, Lane], Lane]:
    """C's ``a % b`` for the integer type `name`: the sign of the dividend; 0 for a division by zero."""
    remainder = modulo(name)
    if name not in SIGNED:
        return remainder

    def rest(a: Lane, b: Lane) -> Lane:
        floored = remainder(a, b)
        moved = (floored != 0) & ((a < 0) != (b < 0))
        return floored - b * moved if isinstance(moved, np.ndarray) else floored - b * int(moved)

    return rest


def power(name: str) -> Callable[[Lane, Lane], Lane]:
    """``a ** b`` of integers: wraps; a negative exponent truncates 1 / a**-b, and 0 to it is the lowest int64."""

    lowest_bits = int(wrap(1 << (WIDTH[name] - 1), name))

    def raise_one(a: int, b: int) -> int:
        if b < 0:
            if a == 0:
                return lowest_bits
            return a if a in (1, -1) and b % 2 else int(a in (1, -1))
        if b > POWER_CUTOFF and a not in (0, 1, -1):
            return LOWEST[name] if a < 0 and b % 2 else HIGHEST[name]
        return int(wrap(pow(a, b, 1 << WIDTH[name]), name))

    def raise_to(a: Lane, b: Lane) -> Lane:
        if not isinstance(a, np.ndarray) and not isinstance(b, np.ndarray):
            return raise_one(int(a), int(b))
        if not isinstance(b, np.ndarray) and 0 <= b <= POWER_CUTOFF:
            return wrap(multiply_repeatedly(a, int(b)), name)
        bases, exponents = np.broadcast_arrays(np.asarray(a, CARRIER[name]), b)
        if np.min(exponents, initial=0) >= 0 and np.max(exponents, initial=0) <= POWER_CUTOFF:
            result = np.ones_like(bases)
            square, left = bases, exponents
            while np.any(left):
                result = np.where(left & 1, result * square, result)
                left = left >> 1
                square = square * square
            return wrap(result, name)
        each = (raise_one(x, y) for x, y in zip(bases.ravel().tolist(), exponents.ravel().tolist(), strict=True))
        return np.fromiter(each, CARRIER[name], bases.size).reshape(bases.shape)

    return raise_to


def multiply_repeatedly(base: Array, exponent: int) -> Array:
    """``base ** exponent`` by squaring, in the order in which numba multiplies."""
    result = np.ones_like(base)
    square = base
    while exponent:
        if exponent & 1:
            result = result * square
        exponent >>= 1
        if exponent:
            square = square * square
    return result


def shift_left(name: str) -> Callable[[Lane, Lane], Lane]:
    """``a << b`` for the integer type `name`; the result is wrapped."""
    bits = WIDTH[name]

    def shift(a: Lane, b: Lane) -> Lane:
        if not isinstance(b, np.ndarray):
            amount = int(b) & 0xFFFFFFFF
            if not isinstance(a, np.ndarray):
                return wrap(int(a) << amount, name) if amount < bits else 0
            return wrap(a << amount, name) if amount < bits else np.zeros_like(a)
        amounts = _amounts(b, name)
        shifted = np.left_shift(np.asarray(a, CARRIER[name]), np.minimum(amounts, bits - 1))
        return wrap(np.where(amounts < bits, shifted, 0), name)

    return shift


def shift_right(name: str) -> Callable[[Lane, Lane], Lane]:
    """``a >> b`` for the integer type `name`: arithmetic if signed."""
    bits = WIDTH[name]

    def shift(a: Lane, b: Lane) -> Lane:
        if not isinstance(b, np.ndarray):
            amount = int(b) & 0xFFFFFFFF
            if amount >= bits and name not in SIGNED:
                return np.zeros_like(a) if isinstance(a, np.ndarray) else 0
            return a >> min(amount, bits - 1)
        amounts = _amounts(b, name)
        shifted: Array = np.right_shift(np.asarray(a, CARRIER[name]), np.minimum(amounts, bits - 1))
        return shifted if name in SIGNED else np.where(amounts < bits, shifted, np.zeros_like(shifted))

    return shift


def _amounts(b: Array, name: str) -> Array:
    low: Array = b.astype(CARRIER[name], copy=False) & CARRIER[name].type(0xFFFFFFFF)
    return low


def maximum(*values: Lane) -> Lane:
    """The greatest of two or more integers."""
    if not any(isinstance(value, np.ndarray) for value in values):
        return max(int(value) for value in values)
    return reduce(np.maximum, values)


def minimum(*values: Lane) -> Lane:
    """The least of two or more integers."""
    if not any(isinstance(value, np.ndarray) for value in values):
        return min(int(value) for value in values)
    return reduce(np.minimum, values)


def absolute(name: str) -> Callable[[Lane], Lane]:
    """``abs(a)``; the lowest integer is its own absolute value."""
    return lambda a: wrap(np.abs(a) if isinstance(a, np.ndarray) else abs(int(a)), name)


def count_ones(name: str) -> Callable[[Lane], Lane]:
    """Number of bits that are set (``popc``)."""

    def count(a: Lane) -> Lane:
        bits = _bits(a, name)
        if not isinstance(bits, np.ndarray):
            return bits.bit_count()
        return np.bitwise_count(bits).astype(CARRIER[name])

    return count


def count_leading_zeros(name: str) -> Callable[[Lane], Lane]:
    """Number of zero bits above the highest bit that is set; the width for 0 (``clz``)."""

    def count(a: Lane) -> Lane:
        bits = _bits(a, name)
        if not isinstance(bits, np.ndarray):
            return WIDTH[name] - bits.bit_length()
        for step in (1, 2, 4, 8, 16, 32):  # set every bit below the highest one
            bits = bits | (bits >> step)
        return (WIDTH[name] - np.bitwise_count(bits).astype(np.int64)).astype(CARRIER[name])

    return count


def find_first_set(name: str) -> Callable[[Lane], Lane]:
    """1 + position of the lowest bit that is set; 0 for 0 (``ffs``, an unsigned 32-bit result)."""

    def find(a: Lane) -> Lane:
        bits = _bits(a, name)
        if not isinstance(bits, np.ndarray):
            return (bits & -bits).bit_length()
        below = (bits & (~bits + np.uint64(1))) - np.uint64(1)
        return np.where(bits != 0, np.bitwise_count(below).astype(np.int64) + 1, 0)

    return find


def reverse_bits(name: str) -> Callable[[Lane], Lane]:
    """The bits in reverse order (``brev``)."""
    masks = (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F, 0x00FF00FF00FF00FF, 0x0000FFFF0000FFFF,
             0x00000000FFFFFFFF)  # fmt: skip

    def reverse(a: Lane) -> Lane:
        bits = _bits(a, name)
        for level, mask in enumerate(masks):
            bits = ((bits >> (1 << level)) & mask) | ((bits & mask) << (1 << level))
        return wrap(bits >> (64 - WIDTH[name]), name)

    return reverse


def _bits(a: Lane, name: str) -> Lane:
    """The two's complement bits: a uint64 array or a Python int that is not negative."""
    mask = (1 << WIDTH[name]) - 1
    return a.astype(np.uint64) & np.uint64(mask) if isinstance(a, np.ndarray) else int(a) & mask
