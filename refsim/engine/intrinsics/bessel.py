"""Bessel functions of integer order, on float64 arrays.

Up to 25, orders 0 and 1 are Taylor polynomials around tabulated points, 1/16 apart; where a zero of the function lies
between two points, around the zero, so that relative errors stay small there. The values at the points come from the
power series in exact integers, the coefficients from Bessel's differential equation. From 25 on, Hankel's asymptotic
expansion. Near zero the second kind is its series with the logarithm. Higher orders follow by recurrence.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_STEPS, _LAST, _DEGREE = 16, 25, 16
_BITS = 192  # of the fixed-point numbers that the tables are made from
_ONE = 1 << _BITS
_GAMMA = 3623241451845788717674757986998105140454839988496856039449  # Euler's constant in 192 bits
_FIRST_Y = 8  # the second kind's table starts at 8/16


def j0(x: Doubles) -> Doubles:
    """First kind, order 0."""
    return _first_kind(0, x)


def j1(x: Doubles) -> Doubles:
    """First kind, order 1."""
    return _first_kind(1, x)


def y0(x: Doubles) -> Doubles:
    """Second kind, order 0; minus infinity at 0, NaN below."""
    return _second_kind(0, x)


def y1(x: Doubles) -> Doubles:
    """Second kind, order 1; minus infinity at 0, NaN below."""
    return _second_kind(1, x)


def _first_kind(order: int, x: Doubles) -> Doubles:
    size = np.abs(x)
    near = np.where(size < _LAST, size, 0.0)
    points, rows = _table("J", order)
    value = _polynomial(near, near, points, rows)
    if order == 1:
        value = np.where(near < 0.125, near * _small_j1(near), value)
    value = np.where(size < _LAST, value, _hankel(order, size, 0.0))
    value = np.where(np.isinf(size), 0.0, np.where(np.isnan(x), x, value))
    return np.asarray(np.copysign(1.0, x) * value if order == 1 else value)


def _second_kind(order: int, x: Doubles) -> Doubles:
    start = _FIRST_Y / _STEPS
    inside = (x >= start) & (x < _LAST)
    points, rows = _table("Y", order)
    near = np.where(inside, x, start)
    value = _polynomial(near, near, points, rows)
    small = np.where((x > 0) & (x < start), x, start)
    value = np.where(x < start, _small_y0(small) if order == 0 else _small_y1(small), value)
    value = np.where(x >= _LAST, _hankel(order, np.abs(x), math.pi / 2), value)
    value = np.where(np.isposinf(x), 0.0, value)
    return np.where(x == 0, -np.inf, np.where(x > 0, value, np.nan))


def _polynomial(x: Doubles, size: Doubles, points: Doubles, rows: Doubles) -> Doubles:
    index = np.rint((size - points[0]) * _STEPS).astype(np.int64)
    step = x - points.take(index)
    total: Doubles = rows[-1].take(index)
    for row in rows[-2::-1]:
        total = total * step + row.take(index)
    return total


def _small_j1(x: Doubles) -> Doubles:
    square = x * x / 4.0
    return np.asarray(0.5 * (1.0 - square / 2.0 * (1.0 - square / 6.0 * (1.0 - square / 12.0 * (1.0 - square / 20.0)))))


def _small_y0(x: Doubles) -> Doubles:
    """2/pi * ((log(x/2) + gamma) * J0(x) + q - 3/8 q**2 * ...), with q = x**2 / 4."""
    quarter = x * x / 4.0
    total, term, harmonic = np.zeros_like(x), np.ones_like(x), 0.0
    for k in range(1, 9):
        term = term * (-quarter / (k * k))
        harmonic += 1.0 / k
        total = total - harmonic * term
    return np.asarray(2.0 / math.pi * ((np.log(x / 2.0) + float(np.euler_gamma)) * j0(x) + total))


def _small_y1(x: Doubles) -> Doubles:
    """-2/(pi x) + 2/pi log(x/2) J1(x) - 1/pi sum (psi(k+1) + psi(k+2)) (-q)**k / (k! (k+1)!) * x/2."""
    quarter = x * x / 4.0
    total, term = np.zeros_like(x), x / 2.0
    digamma = -float(np.euler_gamma)
    for k in range(9):
        total = total + (2.0 * digamma + 1.0 / (k + 1)) * term
        term = term * (-quarter / ((k + 1) * (k + 2)))
        digamma += 1.0 / (k + 1)
    return np.asarray((2.0 * np.log(x / 2.0) * j1(x) - total) / math.pi - 2.0 / math.pi / x)


def _hankel(order: int, x: Doubles, phase: float) -> Doubles:
    """Both kinds for large x; `phase` is pi/2 for the second."""
    large = np.where(np.isfinite(x) & (x >= _LAST), x, float(_LAST))
    p, q, term = np.ones_like(large), np.zeros_like(large), np.ones_like(large)
    for k in range(1, 25):
        term = term * ((4.0 * order * order - (2 * k - 1) ** 2) / (8.0 * k)) / large
        sign = 1.0 if k % 4 in (0, 1) else -1.0
        if k % 2:
            q = q + sign * term
        else:
            p = p + sign * term
    sine, cosine = np.sin(large), np.cos(large)
    root = math.sqrt(0.5)
    # of x - pi/4 and x - 3 pi/4
    shifted_cosine, shifted_sine = ((cosine + sine) * root, (sine - cosine) * root)
    if order == 1:
        shifted_cosine, shifted_sine = shifted_sine, -shifted_cosine
    if phase:
        wave = p * shifted_sine + q * shifted_cosine
    else:
        wave = p * shifted_cosine - q * shifted_sine
    return np.asarray(np.sqrt(2.0 / math.pi / large) * wave)


def jn(order: Integers, x: Doubles) -> Doubles:
    """First kind of each lane's order; NaN for a negative one."""
    result = np.full(x.shape, np.nan)
    for n in np.unique(order).tolist():
        here = order == n
        if n >= 0:
            result[here] = _order_n(n, x[here])
    return result


def yn(order: Integers, x: Doubles) -> Doubles:
    """Second kind of each lane's order, by forward recurrence; NaN for a negative one."""
    result = np.full(x.shape, np.nan)
    for n in np.unique(order).tolist():
        here = order == n
        if n >= 0:
            chosen = x[here]
            values = _upwards(n, chosen, y0(chosen), y1(chosen))
            values = np.where(np.isposinf(chosen), 0.0, values)
            result[here] = np.where(chosen == 0, -np.inf, np.where(np.isnan(values) & (chosen > 0), -np.inf, values))
    return result


def _upwards(n: int, x: Doubles, first: Doubles, second: Doubles) -> Doubles:
    if n == 0:
        return first
    before, value = first, second
    for k in range(1, n):
        before, value = value, 2.0 * k / x * value - before
        value = np.where(np.isinf(before), before, value)
    return value


def _order_n(n: int, x: Doubles) -> Doubles:
    if n < 2:
        return j0(x) if n == 0 else j1(x)
    size = np.abs(x)
    forward = size > n
    result = np.where(forward, _upwards(n, np.where(forward, size, 1.0), j0(size), j1(size)), 0.0)
    backward = ~forward & (size > 0)
    if backward.any():
        result[backward] = _downwards(n, size[backward])
    result = np.where(np.isinf(size), 0.0, np.where(np.isnan(x), x, result))
    return np.asarray(np.where(x < 0, -result, result) if n % 2 else result)


def _downwards(n: int, x: Doubles) -> Doubles:
    """J_n for x <= n: the ratio to J_(n-1) from its continued fraction, then the recurrence down to J_0 and J_1."""
    ratio = np.zeros_like(x)
    for k in range(n + n // 2 + 60, n - 1, -1):
        ratio = 1.0 / (2.0 * k / x - ratio)
    above, here, wanted = ratio.copy(), np.ones_like(x), ratio.copy()  # J_n, J_(n-1) and J_n, up to a factor
    for k in range(n - 1, 0, -1):
        above, here = here, 2.0 * k / x * here - above
        large = np.abs(here) > 1e100
        scale = np.where(large, 1e-100, 1.0)
        above, here, wanted = above * scale, here * scale, wanted * scale
    zero, one = j0(x), j1(x)
    use_zero = np.abs(zero) >= np.abs(one)
    return np.asarray(np.where(use_zero, wanted / here * zero, wanted / np.where(above == 0, 1.0, above) * one))


# ------------------------------------------------------------------------------------------------------- tables


@cache
def _table(kind: str, order: int) -> tuple[Doubles, Doubles]:
    """Points, and row n the coefficients of h**n around each."""
    first = 0 if kind == "J" else _FIRST_Y
    points, columns = [], []
    values = [_fixed(kind, order, (i << _BITS) // _STEPS) for i in range(first, _LAST * _STEPS + 1)]
    for i, (value, slope) in enumerate(values):
        at = ((i + first) << _BITS) // _STEPS
        if abs(value) * 20 * _STEPS <= abs(slope) * 11 and at:  # a zero is nearer than half a step, or nearly so
            moved = at
            for _ in range(4):
                moved -= (value << _BITS) // slope
                value, slope = _fixed(kind, order, moved)
            nearest = int(math.ldexp(moved / _ONE, 60)) << (_BITS - 60)  # a float64
            if abs(nearest - at) * 2 * _STEPS <= _ONE + (_ONE >> 4):
                at = nearest
            value, slope = _fixed(kind, order, at)
        points.append(at / _ONE)
        columns.append(_coefficients(order, at, value, slope))
    return np.array(points), np.array(columns).T.copy()


def _coefficients(order: int, x: int, value: int, slope: int) -> list[float]:
    """Taylor coefficients from ``x**2 y'' + x y' + (x**2 - order**2) y = 0``."""
    if x == 0:
        exact = [0] * _DEGREE
        term = _ONE if order == 0 else _ONE >> 1
        for k in range((_DEGREE - order + 1) // 2):
            exact[2 * k + order] = term
            term = -term // (4 * (k + 1) * (k + 1 + order))
        return [each / _ONE for each in exact]
    square = (x * x) >> _BITS
    a = [value, slope]
    for n in range(_DEGREE - 2):
        total = ((2 * n + 1) * (n + 1) * x * a[n + 1]) >> _BITS
        total += ((n * n * _ONE + square - order * order * _ONE) * a[n]) >> _BITS
        total += (2 * x * a[n - 1]) >> _BITS if n >= 1 else 0
        total += a[n - 2] if n >= 2 else 0
        a.append(-(total << _BITS) // ((n + 1) * (n + 2) * square))
    return [each / _ONE for each in a]


def _fixed(kind: str, order: int, x: int) -> tuple[int, int]:
    """Value and slope in fixed point, by the power series."""
    zero, one = _series(x)[:2] if kind == "J" else _series(x)[2:]
    if order == 0:
        return zero, -one
    return one, (zero - (one << _BITS) // x if x else _ONE >> 1)


@cache
def _series(x: int) -> tuple[int, int, int, int]:
    """J0, J1, Y0, Y1 in fixed point."""
    if x == 0:
        return _ONE, 0, 0, 0
    quarter = (x * x) >> (_BITS + 2)
    log_gamma = _logarithm(x) - _logarithm(2 << _BITS) + _GAMMA
    term, j_zero, sum_zero, harmonic = _ONE, _ONE, 0, 0
    other, j_one, sum_one = x >> 1, x >> 1, x >> 1  # the first coefficient of Y1's sum is H_0 + H_1 = 1
    k = 0
    while abs(term) > 1 or abs(other) > 1:
        k += 1
        term = -((term * quarter) >> _BITS) // (k * k)
        harmonic += _ONE // k
        j_zero += term
        sum_zero -= (harmonic * term) >> _BITS
        other = -((other * quarter) >> _BITS) // (k * (k + 1))
        j_one += other
        sum_one += ((2 * harmonic + _ONE // (k + 1)) * other) >> _BITS
    pi = _pi()
    y_zero = (2 * (((log_gamma * j_zero) >> _BITS) + sum_zero) << _BITS) // pi
    y_one = ((2 * ((log_gamma * j_one) >> _BITS) - sum_one - (2 << (2 * _BITS)) // x) << _BITS) // pi
    return j_zero, j_one, y_zero, y_one


@cache
def _pi() -> int:
    """Machin's formula."""

    def arccotangent(n: int) -> int:
        total, term, k = 0, _ONE // n, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term //= n * n
            k += 2
        return total

    return 4 * (4 * arccotangent(5) - arccotangent(239))


@cache
def _logarithm(x: int) -> int:
    """Natural logarithm by Newton-free reduction: powers of two, then the series of the inverse hyperbolic tangent."""
    twos = 0
    while x > (3 * _ONE) >> 1:
        x >>= 1
        twos += 1
    while x < (3 * _ONE) >> 2:
        x <<= 1
        twos -= 1
    result = _artanh_series(((x - _ONE) << _BITS) // (x + _ONE))
    return result + twos * _artanh_series(_ONE // 3)


def _artanh_series(z: int) -> int:
    square, total, term, k = (z * z) >> _BITS, 0, z, 1
    while abs(term) > 1:
        total += term // k
        term = (term * square) >> _BITS
        k += 2
    return 2 * total
