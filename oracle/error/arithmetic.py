"""Error rules of arithmetic: sums, products, quotients, integer powers."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.error.array import ErrorBounded, lift, spread
from oracle.error.fields import (
    ROOT_THIRD,
    Array,
    Errors,
    Pending,
    full,
    over,
    plus,
    plus_zero,
    root_sum,
    times,
    ulp_share,
)
from oracle.error.lattice import is_power_of_two
from oracle.error.registry import UnsupportedOperationError, ufunc_rule
from oracle.error.settle import make, settle
from oracle.error.sums import holds_exactly
from oracle.numerics import Numerics, underflow_error


def operands(numerics: Numerics, *inputs: Any) -> tuple[list[ErrorBounded], tuple[int, ...]]:
    """The inputs lifted, rounded to the compute format, and prepared for broadcasting to their common shape."""
    lifted = [settle(lift(x, numerics)) for x in inputs]
    shape = np.broadcast_shapes(*(x.shape for x in lifted))
    return [spread(x, shape) for x in lifted], shape


def _plain(x: Any, lifted: ErrorBounded) -> Any:
    """The operand as the plain run sees it."""
    return lifted.value if isinstance(x, ErrorBounded) else x


@ufunc_rule(np.add)
def add(numerics: Numerics, a: Any, b: Any) -> ErrorBounded:
    """x + y: errors add."""
    if a is b:
        return scale_exactly(settle(lift(a, numerics)), 2.0)
    (x, y), _ = operands(numerics, a, b)
    return _sum(np.add(_plain(a, x), _plain(b, y)), numerics, x, y)


@ufunc_rule(np.subtract)
def subtract(numerics: Numerics, a: Any, b: Any) -> ErrorBounded:
    """x − y: errors add; x − x is 0; the error of a pivot does not count."""
    if a is b and isinstance(a, ErrorBounded):
        settled = settle(a)
        contracted = settled.bound is not None and a.pending is not False and numerics.fma
        noise = settled.bound if contracted else None  # fma(p, q, -p·q) is the rounding error of p·q
        return make(np.subtract(a.value, a.value), numerics, noise, None, noise)
    (x, y), _ = operands(numerics, a, b)
    value = np.subtract(_plain(a, x), _plain(b, y))
    if not y.is_pivot:
        return _sum(value, numerics, x, y)
    return _minus_pivot(value, numerics, x, y)


def _minus_pivot(value: Array, numerics: Numerics, x: ErrorBounded, m: ErrorBounded) -> ErrorBounded:
    frame = ErrorBounded(m.value, numerics)
    if m.dropped is None:
        result = _sum(value, numerics, x, frame)
    else:
        # the kernel subtracts its own maximum: it rounds x − m as it sees it, not the value of this run
        dropped = np.where(np.isfinite(m.dropped), m.dropped, np.inf)
        reach = np.abs(value) + plus_zero(x.bound) + dropped
        noise = numerics.unit_roundoff * reach + underflow_error(numerics.format)
        noise = np.where(np.isfinite(value) & (reach > 0.0), noise, 0.0)
        result = make(value, numerics, plus(x.bound, noise), root_sum(x.sigma, noise * ROOT_THIRD), x.common)
    if numerics.exp_form == "exp2_fma":
        reach = np.maximum(np.abs(x.value), np.abs(m.value))
        result.reach = np.where(np.isfinite(reach), reach, 0.0)
    return result


def _sum(value: Any, numerics: Numerics, x: ErrorBounded, y: ErrorBounded) -> ErrorBounded:
    value = np.asarray(value)
    bound = full(plus(_pivot_bound(x), _pivot_bound(y)), value.shape)
    sigma = full(root_sum(x.sigma, y.sigma), value.shape)
    common = full(plus(plus(x.common, _pivot_extra(x)), plus(y.common, _pivot_extra(y))), value.shape)
    # adding an exact zero changes nothing and rounds nothing
    return make(value, numerics, bound, sigma, common, _rounds(numerics, x, y))


def _rounds(numerics: Numerics, x: ErrorBounded, y: ErrorBounded) -> Pending:
    if numerics.is_float64:
        for operand in (x, y):
            if operand.bound is None and operand.size == 1 and not operand.value.any():
                return False
    return True


def _pivot_extra(x: ErrorBounded) -> Errors:
    """A pivot in the exp2 domain is m·log2(e) and back: 4u|m| wherever it is not subtracted."""
    if not x.is_pivot or x.numerics.exp_form != "exp2_fma":
        return None
    return np.where(np.isfinite(x.value), 4.0 * x.numerics.unit_roundoff * np.abs(x.value), 0.0)


def _pivot_bound(x: ErrorBounded) -> Errors:
    return plus(x.bound, _pivot_extra(x))


def scale_exactly(x: ErrorBounded, factor: float) -> ErrorBounded:
    """x times ±2^k; underflow apart, nothing is rounded."""
    size = abs(factor)

    def scaled(errors: Errors) -> Errors:
        return times(np.asarray(size), errors)

    value = x.value * factor
    pending: Pending = x.pending if size >= 1.0 and not x.numerics.flush_to_zero else True
    if x.numerics.is_float64:  # both runs round an equal number alike
        pending = x.pending
        if x.bound is not None and size < 1.0:
            below = (x.bound > 0.0) & (np.abs(value) + x.bound < 2.0 * x.numerics.format.min_normal)
            pending = below | pending if below.any() else pending
    if size > 1.0 and value.size and np.abs(value).max() + np.max(plus_zero(scaled(x.bound))) > x.numerics.format.max:
        pending = True  # overflow is a rounding too
    return make(value, x.numerics, scaled(x.bound), scaled(x.sigma), scaled(x.common), pending)


@ufunc_rule(np.multiply)
def multiply(numerics: Numerics, a: Any, b: Any) -> ErrorBounded:
    """x·y: |x|b_y + |y|b_x + b_x·b_y."""
    if a is b and isinstance(a, ErrorBounded):
        return _square(settle(a), np.multiply(a.value, a.value))
    (x, y), shape = operands(numerics, a, b)
    for scalar, other, plain in ((y, x, b), (x, y, a)):
        if (
            scalar.size == 1
            and scalar.bound is None
            and not isinstance(plain, ErrorBounded)
            and is_power_of_two(scalar.value).all()
        ):
            result = scale_exactly(other, float(scalar.value.reshape(-1)[0]))
            result.value = np.asarray(np.multiply(_plain(a, x), _plain(b, y)))
            return make(
                result.value,
                numerics,
                full(result.bound, shape),
                full(result.sigma, shape),
                full(result.common, shape),
                result.pending,
            )
    value = np.asarray(np.multiply(_plain(a, x), _plain(b, y)))
    x_bound, y_bound = _pivot_bound(x), _pivot_bound(y)
    x_size, y_size = np.abs(x.value), np.abs(y.value)
    bound = plus(times(x_size, y_bound), times(y_size, x_bound))
    if x_bound is not None and y_bound is not None:
        bound = plus(bound, times(x_bound, y_bound))
    sigma = root_sum(times(x_size, y.sigma), times(y_size, x.sigma))
    common = plus(times(x_size, plus(y.common, _pivot_extra(y))), times(y_size, plus(x.common, _pivot_extra(x))))
    return make(value, numerics, full(bound, value.shape), full(sigma, value.shape), full(common, value.shape), True)


def _square(x: ErrorBounded, value: Any) -> ErrorBounded:
    size = np.abs(x.value)
    bound = None if x.bound is None else plus(times(2.0 * size, x.bound), x.bound * x.bound)
    return make(value, x.numerics, bound, times(2.0 * size, x.sigma), times(2.0 * size, x.common), True)


@ufunc_rule(np.square)
def square(numerics: Numerics, a: ErrorBounded) -> ErrorBounded:
    """x²: 2|x|b + b²."""
    return _square(settle(a), np.square(a.value))


@ufunc_rule(np.power)
def power(numerics: Numerics, a: Any, b: Any) -> ErrorBounded:
    """x^n for a plain integer n: n − 1 products in any order, one more rounding for a negative n."""
    if isinstance(b, ErrorBounded) or np.ndim(b) != 0 or float(b) != int(b) or not isinstance(a, ErrorBounded):
        raise UnsupportedOperationError(
            f"np.power has an error rule for integer exponents only, got {type(b).__name__}; "
            "write exp(y·log(x)) or sqrt."
        )
    exponent = int(b)
    x = settle(a)
    value = np.power(a.value, b)
    if exponent == 2:
        return _square(x, value)
    if exponent in (0, 1):
        return make(value, numerics, *((None,) * 3 if exponent == 0 else (x.bound, x.sigma, x.common)))
    size, error = np.abs(x.value), plus_zero(x.bound)
    count = abs(exponent)
    if exponent > 0:
        bound = (size + error) ** count - size**count
    else:
        bound = np.where(size > error, (size - error) ** exponent - size**exponent, np.inf)
    slope = count * np.abs(np.power(x.value, float(exponent - 1)))
    fresh = (count + (exponent < 0)) * numerics.unit_roundoff * (np.abs(value) + bound)
    fresh = fresh + count * numerics.format.min_subnormal * np.maximum(1.0, size**count)
    # partial products may leave the range although the result does not
    fresh = np.where((size + error) ** count > numerics.format.max, np.inf, fresh)
    return make(
        value,
        numerics,
        bound + fresh,
        root_sum(times(slope, x.sigma), fresh * ROOT_THIRD),
        times(slope, x.common),
        True,
    )


@ufunc_rule(np.divide)
def divide(numerics: Numerics, a: Any, b: Any) -> ErrorBounded:
    """x / y: (b_x + |r|b_y)/(|y| − b_y), and what a reciprocal or an approximate division adds."""
    (x, y), _ = operands(numerics, a, b)
    least_size = np.abs(y.value) - plus_zero(y.bound)
    if a is b and isinstance(a, ErrorBounded):  # x/x is 1 whatever the error of x
        x = y = ErrorBounded(x.value, numerics)
    value = np.asarray(np.divide(_plain(a, x), _plain(b, y)))
    u, fmt = numerics.unit_roundoff, numerics.format
    quotient, y_size = np.abs(value), np.abs(y.value)
    x_bound, y_bound = _pivot_bound(x), _pivot_bound(y)
    below = y_size if y_bound is None else np.maximum(y_size - y_bound, 0.0)
    bound: Errors = None
    if x_bound is not None or y_bound is not None:
        bound = over(plus_zero(x_bound) + plus_zero(times(quotient, y_bound)), below)
    sigma = root_sum(x.sigma, times(quotient, y.sigma))
    common = plus(plus(x.common, _pivot_extra(x)), times(quotient, plus(y.common, _pivot_extra(y))))
    sigma, common = over(sigma, y_size), over(common, y_size)
    if not numerics.correct_division:
        shifts = is_power_of_two(y.value) & (np.asarray(plus_zero(y_bound)) == 0.0)
        shifts = (
            shifts & (least_size == y_size) & (y_size * fmt.min_normal <= 1.0) & (y_size * fmt.max >= 1.0)
        )  # 1/y is a normal number
        if not shifts.all():
            slack = max(2.0 * u, numerics.relative_error("division"))
            extra = np.where(quotient == 0.0, 0.0, slack * (quotient + plus_zero(bound)))
            x_size = np.abs(x.value) + plus_zero(x_bound)
            lost = fmt.min_normal if numerics.flush_to_zero else fmt.min_subnormal
            if (y_size * fmt.min_normal >= 0.5).any():  # 1/y is subnormal
                extra = extra + np.where(y_size * fmt.min_normal >= 0.5, x_size * lost, 0.0)
            if (least_size * fmt.max < 1.0).any():  # 1/y overflows, 0·(1/y) is NaN
                extra = np.where(least_size * fmt.max < 1.0, np.inf, extra)
            if shifts.any():
                extra = np.where(shifts, 0.0, extra)
            if not (np.max(x_size, initial=0.0) < np.inf and np.max(y_size, initial=0.0) < np.inf):
                extra = np.where(np.isinf(y.value) | np.isinf(x.value) & (y_size > 0.0), 0.0, extra)
            bound = plus(bound, extra)
            likely = extra if np.max(extra, initial=0.0) < np.inf else np.where(np.isfinite(extra), extra, 0.0)
            # the ulps of a division count its own rounding, which is pending here
            promised = np.maximum(2.0 * u, (slack - u) * ulp_share(quotient)) / slack
            sigma = root_sum(sigma, likely * promised * ROOT_THIRD)
    if x.facts is not None and x.facts.products and numerics.folded_scalar:
        fold = _divided_before(x, y_size, is_power_of_two(y.value) & (least_size == y_size))
        bound, common = plus(bound, fold), root_sum(common, fold / np.sqrt(np.maximum(x.facts.terms, 1.0)))
    return make(value, numerics, full(bound, value.shape), full(sigma, value.shape), full(common, value.shape), True)


def _divided_before(x: ErrorBounded, y_size: Array, shifts: Any) -> Array:
    """A sum of products over y, where the kernel divides one operand first: softmax weights before they meet V."""
    numerics, facts = x.numerics, x.facts
    assert facts is not None
    u = numerics.unit_roundoff
    each = max(2.0 * u, numerics.relative_error("division")) + u
    again = np.where(holds_exactly(numerics, facts), facts.terms * numerics.accumulator_roundoff, 0.0)
    rounding = np.where(shifts, 0.0, (each + again) * facts.magnitude / y_size)
    least = numerics.format.min_normal if numerics.flush_to_zero else numerics.format.min_subnormal
    on_grid = shifts & (facts.step >= least * y_size)
    # a divided factor may be subnormal, and what it loses meets the other factor
    lost = np.where(on_grid | (facts.magnitude == 0.0), 0.0, facts.terms * least * np.maximum(facts.largest, 1.0))
    return np.where(np.isfinite(y_size) & (y_size > 0.0), rounding + lost, 0.0)


def _unrounded(ufunc: np.ufunc) -> None:
    @ufunc_rule(ufunc)
    def rule(numerics: Numerics, a: ErrorBounded) -> ErrorBounded:
        def same(errors: Errors) -> Errors:
            return None if errors is None else errors.copy()

        pending = a.pending.copy() if isinstance(a.pending, np.ndarray) else a.pending
        return ErrorBounded(
            ufunc(a.value), numerics, bound=same(a.bound), sigma=same(a.sigma), common=same(a.common), pending=pending
        )


for _ufunc in (np.negative, np.positive, np.absolute, np.fabs):
    _unrounded(_ufunc)
