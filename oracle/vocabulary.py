"""Words an operator says to declare what honest kernels may do; on plain float arrays they are ordinary arithmetic.

An operator is plain NumPy. The same code runs on float64 arrays (the value) and on `oracle.error.ErrorBounded` arrays
(value, bound, sigma). NumPy code does not show which rewrites are legal, so an operator names them with these words. On
float arrays each word returns the plain value named in its docstring, so the formula stays readable and the value does
not change.

How to write the operators of this package
------------------------------------------

**Sum**: ``np.sum(x, axis=axis)``. One sum over all axes at once, never a sum of sums: any order is covered then.

**Softmax**: one pass, online tiles and exp2 forms are all covered by::

    shift = pivot(np.max(x, axis=-1, keepdims=True))         # cancels in the quotient: its error does not count
    weight = rescaled(np.exp(x - shift))                     # an online softmax rescales its weights per tile
    total = np.sum(weight, axis=-1, keepdims=True)
    return hull(weight / total, 0.0, 1.0, terms=x.shape[-1])  # a weight never leaves [0, 1]

**Matrix product**: the bias may be what the accumulator starts from, so it is not a plain ``+``::

    product = a @ b
    return product if bias is None else accumulate(product, bias)

**RMSNorm**: ``x / sqrt(..) * w``, ``x * rsqrt(..) * w``, ``(x * w) * r`` are one freedom, `chain`::

    mean_square = np.mean(x * x, axis=-1, keepdims=True)
    return chain(x, rsqrt(mean_square + eps), weight)

**Attention**: flash-style tiles, exp or exp2, scale applied to q or to the scores::

    scores = scaled(q @ np.swapaxes(k, -1, -2), scale)       # scale folded into q, or applied afterwards
    scores = np.where(visible, scores, -np.inf)              # visible: plain bool array
    seen = np.any(visible, axis=-1, keepdims=True)           # plain bool array
    shift = pivot(np.where(seen, np.max(scores, axis=-1, keepdims=True, initial=-np.inf), 0.0))
    weight = rescaled(np.exp(scores - shift))                # exp(-inf) is exactly 0
    total = np.where(seen, np.sum(weight, axis=-1, keepdims=True), 1.0)
    out = (may_round(weight) @ v) / total                    # weights may be stored in a narrower format
    out = hull(out, np.min(v, axis=-2, keepdims=True), np.max(v, axis=-2, keepdims=True), terms=k.shape[-2])
    lse = np.where(seen, shift + np.log(total), -np.inf)[..., 0]

Rows that see nothing come out as exactly 0 (weights 0, total 1) and exactly -inf. ``np.max`` and ``np.min`` of zero
keys need ``initial=``. Grouped heads: reshape q to (batch, kv_heads, group, queries, d) and k to
(batch, kv_heads, 1, keys, d). A quotient of a matrix product also covers kernels that divide the weights first.

**RoPE**: products and a sum; FMA is covered; untouched lanes are copied and so stay bitwise::

    c, s = cos[positions][:, None, :], sin[positions][:, None, :]
    rotated = np.concatenate([x1 * c - x2 * s, x2 * c + x1 * s, tail], axis=-1)       # NeoX
    pairs = np.stack([x1 * c - x2 * s, x2 * c + x1 * s], axis=-1)                     # GPT-J: reshape afterwards

Rules
-----
Constants such as ``eps`` are Python floats (rounded to the compute format by the analysis where they are not
representable). Use shapes, never values, in ``if``; ``np.where`` takes plain or three-valued conditions. Write into
``np.zeros_like(x)`` or ``np.empty_like(x)``, not ``np.zeros(shape)``. ``astype``, ``float()``, ``np.array([...])``,
``np.sort``, ``np.rint`` and ``np.sign`` are refused on error-bounded arrays. Integer and bool arrays stay plain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from oracle.error.arithmetic import multiply, scale_exactly
from oracle.error.array import ErrorBounded, SumFacts, lift, spread
from oracle.error.fields import Array, Errors, plus, plus_zero, root_sum, times
from oracle.error.functions import add_absolute, exp_log_constant, monotone, reciprocal_root
from oracle.error.lattice import is_power_of_two, lowest_bit
from oracle.error.registry import UnsupportedOperationError
from oracle.error.settle import make, settle
from oracle.error.sums import deviation, lifted_sum_facts, rounding_of_sum
from oracle.formats import Rounding, format_of, round_to
from oracle.numerics import Numerics, underflow_error

__all__ = [
    "accumulate",
    "chain",
    "erf",
    "hull",
    "may_round",
    "pivot",
    "rescaled",
    "round_to_format",
    "rsqrt",
    "scaled",
    "sigmoid",
]

Operand = TypeVar("Operand")
_ROOT_THIRD = 3.0**-0.5


def _arithmetic(*inputs: Any) -> Numerics | None:
    """The Numerics of the error-bounded arrays among the inputs, None on a plain run."""
    return next((x.numerics for x in inputs if isinstance(x, ErrorBounded)), None)


def _value(x: Any) -> Any:
    return x.value if isinstance(x, ErrorBounded) else x


def round_to_format(x: Any, fmt: str, rounding: Rounding = "nearest_even") -> Any:
    """A rounding that the specification demands: `x` cast to `fmt` (and back to float64).

    Parameters
    ----------
    x
        Array of any shape.
    fmt
        Name of the format (``bfloat16``).
    rounding
        Rounding mode, see `oracle.formats`.

    Notes
    -----
    Only elements whose error straddles a rounding boundary may come out one step off.
    """
    target = format_of(fmt)
    if not isinstance(x, ErrorBounded):
        return round_to(np.asarray(x, dtype=np.float64), target, rounding)
    settled = settle(x)
    value = round_to(x.value, target, rounding)
    if settled.bound is None:
        return make(value, x.numerics)
    with np.errstate(all="ignore"):

        def steps(reach: Array) -> Array:
            reach = np.where(reach > 0.0, reach + np.abs(x.value) * 2.0**-51, 0.0)
            above: Array = round_to(x.value + reach, target, rounding) - value
            return np.maximum(above, value - round_to(x.value - reach, target, rounding))

        bound = steps(settled.bound)
        likely = np.minimum(6.0 * plus_zero(root_sum(settled.sigma, settled.common)), settled.bound)
        sigma = steps(likely + np.zeros_like(bound))
    return make(value, x.numerics, np.where(np.isfinite(value), bound, settled.bound), sigma)


def may_round(x: Operand, fmt: str | None = None) -> Operand:
    """A rounding that a kernel may do or leave out, at any power-of-two scale; the value stays.

    Parameters
    ----------
    x
        Array of any shape, for attention the softmax weights before they meet V.
    fmt
        Name of the format; None = `Numerics.probability_format` (and nothing is granted where that is None).
    """
    if not isinstance(x, ErrorBounded):
        return x
    name = x.numerics.probability_format if fmt is None else fmt
    if name is None:
        return x
    settled, target = settle(x), format_of(name)
    size = np.abs(x.value)
    with np.errstate(all="ignore"):
        step = target.unit_roundoff * (size + plus_zero(settled.bound)) + np.where(
            size > 0.0, underflow_error(target), 0.0
        )
        step = np.where(np.isfinite(size), step, 0.0)
        sigma = root_sum(settled.sigma, step * _ROOT_THIRD)
    result = make(x.value, x.numerics, plus(settled.bound, step), sigma, settled.common)
    result.may_overflow = x.may_overflow
    return result  # type: ignore[return-value]


def pivot(m: Operand) -> Operand:
    """A shift that cancels from the operator's result: a kernel may use its own, whatever its error.

    Only for a shift whose every value gives the same result in exact arithmetic: the row maximum of a softmax, of a
    log-sum-exp ``m + log(sum(exp(x - m)))``. The claim can be tested: add a constant to the pivot and the float64
    result must not move.
    """
    if not isinstance(m, ErrorBounded):
        return m
    settled = settle(m)
    result = ErrorBounded(m.value, m.numerics)
    result.is_pivot, result.dropped = True, settled.bound
    return result  # type: ignore[return-value]


def rescaled(weight: Operand, axis: int = -1) -> Operand:
    """Softmax weights exp(x - m) that an online kernel may first compute against a smaller running maximum.

    Parameters
    ----------
    weight
        exp(x - m) with m the maximum along `axis`.
    axis
        The axis the tiles run along.

    Notes
    -----
    Each of the T = ceil(n / tile) rescalings costs an exp and a product, and the argument's rounding adds up over them;
    weights that are exactly 1 or 0 have no error. Nothing is granted where `Numerics.online_tile` is None.
    """
    if not isinstance(weight, ErrorBounded):
        return weight
    x, numerics = settle(weight), weight.numerics
    if numerics.online_tile is None or x.size == 0:
        return weight
    u, fmt = numerics.unit_roundoff, numerics.format
    tiles = -(-x.shape[axis] // numerics.online_tile)
    if tiles <= 1:
        return x  # type: ignore[return-value]
    value, own = x.value, plus_zero(x.bound)
    with np.errstate(all="ignore"):
        argument = np.where(value > 0.0, -np.log(np.minimum(value, 1.0)), 0.0)
        each = max(numerics.relative_error("exp"), numerics.relative_error("exp2")) + 2.0 * u
        along = (1.0 + exp_log_constant(numerics) + 2.0 * numerics.exp_argument_ulps) * u * argument
        touched = ~((value == 1.0) & (own == 0.0)) & (value + own >= fmt.min_subnormal)
        touched &= value > 0.0
        least = fmt.min_normal if numerics.flush_to_zero else fmt.min_subnormal
        fresh = np.where(touched, (value + own) * np.expm1(tiles * each + along) + tiles * least, 0.0)
        relative = (np.sqrt(_rescalings(value, axis, tiles)) * each + along) * _ROOT_THIRD
        typical = np.where(touched, value * relative + least, 0.0)
    result = make(value, numerics, plus(x.bound, fresh), x.sigma, plus(x.common, typical))
    result.may_overflow = x.may_overflow
    return result  # type: ignore[return-value]


def _rescalings(weight: Array, axis: int, tiles: int) -> Array:
    """How often a running maximum changes in honest orders: in natural and reversed order, or as in random data."""
    ordered = np.ascontiguousarray(np.moveaxis(weight, axis, 0))  # many rows at once are quicker than one after another
    counts: Array = np.full(ordered.shape[1:], 1.0 + math.log2(len(ordered)))
    for direction in (ordered, ordered[::-1]):
        running = np.maximum.accumulate(direction, axis=0)
        np.maximum(counts, np.count_nonzero(running[1:] != running[:-1], axis=0), out=counts)
    return np.expand_dims(np.minimum(counts, tiles), axis)


def chain(first: Any, *factors: Any) -> Any:
    """A product whose factors may be multiplied in any order: ``chain(x, r, w)`` is ``x * r * w``.

    Parameters
    ----------
    first, factors
        Arrays that broadcast. A reciprocal root among them (`rsqrt`) also stands for a division by the root.

    Notes
    -----
    A product of some of the factors may underflow or overflow where the whole does not; that is charged.
    """
    numerics = _arithmetic(first, *factors)
    if numerics is None:
        return math.prod(factors, start=first)
    with np.errstate(all="ignore"):
        value = math.prod((_value(factor) for factor in factors), start=_value(first))
    inputs = [settle(lift(x, numerics)) for x in (first, *factors)]
    with np.errstate(all="ignore"):
        result: Any = inputs[0]
        for factor in inputs[1:]:
            result = multiply(numerics, settle(result), factor)
        if len(inputs) == 2:
            return make(value, numerics, result.bound, result.sigma, result.common, result.pending)
        sizes = [np.abs(x.value) + plus_zero(x.bound) for x in inputs]
        fmt = numerics.format
        least = fmt.min_normal if numerics.flush_to_zero else underflow_error(fmt)
        whole = np.abs(value)
        extra: Any = 0.0
        for chosen in range(3, 2 ** len(inputs)):
            picked = [size for k, size in enumerate(sizes) if chosen >> k & 1]
            if not 2 <= len(picked) < len(inputs):
                continue
            partial, rest = math.prod(picked), math.prod(size for k, size in enumerate(sizes) if not chosen >> k & 1)
            # a float64 product may have become 0 here as well as in the kernel
            there = math.prod((size > 0.0 for size in picked), start=np.True_)
            small = np.asarray((partial < fmt.min_normal) & there)
            if small.any():
                extra = extra + np.where(small, rest * np.minimum(least, partial + least), 0.0)
            extra = np.where(np.asarray(partial > fmt.max) & np.isfinite(whole), np.inf, extra)
        # the plain product may be exact in one order and not in another
        roundings = (len(inputs) - 2) * numerics.unit_roundoff * whole
        inexact = (
            sum(
                (np.asarray(~is_power_of_two(x.value)) | (np.asarray(plus_zero(x.bound)) > 0.0)).astype(int)
                for x in inputs
            )
            > 1
        )
        roundings = np.where(np.isfinite(whole) & inexact, roundings, 0.0)
        own = plus_zero(_product_bound(inputs)) + roundings
        bound = np.maximum(plus_zero(result.bound), own * (1.0 + len(inputs) * numerics.unit_roundoff)) + extra
        sigma = root_sum(result.sigma, np.minimum(extra, whole) + np.zeros_like(bound))
    return make(value, numerics, np.broadcast_to(bound, value.shape), sigma, result.common, True)


def _product_bound(inputs: list[ErrorBounded]) -> Errors:
    total: Any = np.zeros(())
    size: Any = np.ones(())
    for x in inputs:
        total = plus_zero(times(np.abs(x.value) + plus_zero(x.bound), total)) + plus_zero(times(size, x.bound))
        size = size * np.abs(x.value)
    return np.asarray(total)


def hull(x: Any, low: Any, high: Any, terms: int) -> Any:
    """A weighted mean with weights ≥ 0: a kernel's result lies in [low, high] but for the roundings of the mean itself.

    Parameters
    ----------
    x
        The mean, ``(weight @ v) / total``.
    low, high
        Ends of the hull of what is averaged; they broadcast to the shape of `x`.
    terms
        Number of elements averaged.

    Notes
    -----
    Nothing is promised where an honest kernel may meet an infinity: where a score has overflowed, and where the sum
    of elements under weights that are not divided yet (each at most 1) may.
    """
    if not isinstance(x, ErrorBounded) or x.bound is None:
        return x
    numerics = x.numerics
    low_end, high_end = lift(low, numerics), lift(high, numerics)
    below, above = low_end.value - plus_zero(low_end.bound), high_end.value + plus_zero(high_end.bound)
    tiles = 0 if numerics.online_tile is None else -(-terms // numerics.online_tile)
    each = max(numerics.relative_error("exp"), numerics.relative_error("exp2")) + 2.0 * numerics.unit_roundoff
    slack = 2.0 * (terms + 4.0) * max(numerics.unit_roundoff, numerics.accumulator_roundoff) + 2.0 * tiles * each
    slack += numerics.relative_error("division")
    if numerics.probability_format is not None:
        slack += 2.0 * format_of(numerics.probability_format).unit_roundoff
    if numerics.unit_group:
        slack += math.ceil(terms / numerics.unit_group) * (
            (numerics.unit_group + 1) * 2.0**-numerics.unit_fraction_bits + 2.0**-numerics.unit_result_bits
        )
    least = numerics.format.min_normal if numerics.flush_to_zero else numerics.format.min_subnormal
    with np.errstate(all="ignore"):
        reach = np.maximum(np.abs(below), np.abs(above))
        limit = np.maximum(above - x.value, x.value - below) + (slack * 1.1 * reach + (terms + 1) * least)
        inside = (x.value >= low_end.value) & (x.value <= high_end.value) & np.isfinite(limit) & (slack < 1.0)
        if x.may_overflow:  # a score that overflows makes NaN of its row
            inside &= np.isfinite(x.bound)
        bound = np.where(inside, np.minimum(x.bound, limit), x.bound)
        if x.facts is not None:  # before the division the weights add up to anything from 1 to `terms`
            bound = np.where(terms * np.minimum(x.facts.magnitude, reach) > numerics.accumulator.max, np.inf, bound)
    return make(x.value, numerics, bound, x.sigma, x.common, x.pending)


def rsqrt(x: Any) -> Any:
    """1/√x, by the hardware's rsqrt, or a root and a reciprocal, or (in a `chain`) a division by the root."""
    if not isinstance(x, ErrorBounded):
        return 1.0 / np.sqrt(x)
    with np.errstate(all="ignore"):
        return reciprocal_root(x)


def scaled(product: Any, scale: float) -> Any:
    """A sum of products times a number that a kernel may fold into one operand: ``(q @ k) * s``.

    Parameters
    ----------
    product
        The direct result of a matrix product or sum.
    scale
        A plain number. Powers of two change no rounding; others cost 2u·S where `Numerics.folded_scalar` is granted.
    """
    if not isinstance(product, ErrorBounded):
        return product * scale
    if isinstance(scale, ErrorBounded):
        raise UnsupportedOperationError(
            "scaled() takes a plain number as scale; multiply by an ErrorBounded array with *."
        )
    numerics = product.numerics
    array, facts = lifted_sum_facts(product, numerics)
    size = abs(float(scale))
    with np.errstate(all="ignore"):
        value = product.value * scale
        if bool(is_power_of_two(scale).all()):
            result = scale_exactly(array, float(scale))
            underflow = facts.terms * numerics.format.min_subnormal * max(1.0, size)
            near = (facts.magnitude * min(1.0, size) < numerics.format.min_normal / numerics.unit_roundoff**2) & (
                facts.magnitude > 0.0
            )
            coarse = np.minimum(facts.step, facts.step * size) < numerics.format.min_subnormal
            bound = (
                plus(result.bound, np.where(near & coarse, underflow, 0.0)) if (near & coarse).any() else result.bound
            )
            return make(value, numerics, bound, result.sigma, result.common, result.pending)
        result = multiply(numerics, array, scale)
        if not numerics.folded_scalar:
            return make(value, numerics, result.bound, result.sigma, result.common, True)
        u = numerics.unit_roundoff
        folded = np.where(facts.magnitude > 0.0, 2.0 * u * size * facts.magnitude, 0.0)
        likely = u * size * np.sqrt(2.0 * facts.squares + np.square(array.value)) * _ROOT_THIRD
        return make(value, numerics, plus(result.bound, folded), result.sigma, root_sum(result.common, likely), True)


def accumulate(total: Any, addend: Any) -> Any:
    """A sum of products plus one more term, which may enter the accumulator at any point: ``a @ b + bias``.

    Parameters
    ----------
    total
        The direct result of a matrix product or sum.
    addend
        Array that broadcasts to it.
    """
    numerics = _arithmetic(total, addend)
    if numerics is None:
        return total + addend
    array, facts = lifted_sum_facts(total, numerics)
    with np.errstate(all="ignore"):
        value = np.asarray(array.value + _value(addend))
    if value.shape != array.shape:
        raise ValueError(
            f"accumulate(): the addend of shape {np.shape(addend)} does not broadcast to the sum's shape {array.shape}."
        )
    more = spread(settle(lift(addend, numerics)), value.shape)
    with np.errstate(all="ignore"):
        size = np.abs(more.value) + plus_zero(more.bound)
        bits = lowest_bit(more.value).reshape(more.shape)
        joined = SumFacts(
            facts.terms + (size > 0.0),
            facts.magnitude + size,
            facts.squares + np.square(more.value),
            np.minimum(facts.step, np.where(np.asarray(plus_zero(more.bound)) > 0.0, 0.0, bits)),
            facts.own + plus_zero(more.bound),
            products=facts.products,
            repeats=facts.repeats,
            largest=facts.largest,
        )
        fresh = rounding_of_sum(numerics, joined, extra_roundings=1.0)
        if numerics.is_float64:
            fresh = fresh + 2.0 * numerics.accumulator_roundoff * joined.magnitude
        if numerics.accumulator.precision > numerics.format.precision:
            fresh = fresh + numerics.unit_roundoff * (np.abs(array.value) + size)
        fresh = np.where(np.isfinite(value), fresh, 0.0)
        started = joined.terms * np.square(more.value)  # every partial sum holds it
        lost = np.where(size * numerics.accumulator_roundoff * facts.terms > facts.magnitude, np.abs(array.value), 0.0)
        likely = deviation(numerics, joined.terms, value, joined, 2.0 * started + np.square(array.value), lost)
        sigma = root_sum(array.sigma, np.where(fresh > 0.0, likely, 0.0))
        sigma = root_sum(sigma, more.sigma)
    result = make(value, numerics, joined.own + fresh, sigma, plus(array.common, more.common), True)
    result.facts = joined
    return result


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)); exp may overflow on the way without harm to the result."""
    if not isinstance(x, ErrorBounded):
        return _sigmoid(x)
    numerics = x.numerics
    with np.errstate(all="ignore"):
        result = monotone(x, _sigmoid, "exp", lambda z: _sigmoid(z) * (1.0 - _sigmoid(z)), zero=math.nan)
        size = np.where(np.isfinite(x.value), np.abs(x.value), 0.0)
        u = numerics.unit_roundoff
        steps = 1.0 + exp_log_constant(numerics) * size + 2.0 * numerics.exp_argument_ulps * size
        steps = steps * u + max(2.0 * u, numerics.relative_error("division"))
        extra = result.value * steps + np.where(
            size > math.log(numerics.format.max) - 1.0, 2.0 / numerics.format.max, 0.0
        )
        extra = np.where(np.isneginf(x.value), 0.0, extra)
        return make(
            result.value,
            numerics,
            plus(result.bound, extra),
            root_sum(result.sigma, extra * _ROOT_THIRD),
            result.common,
        )


def _sigmoid(x: Any) -> Any:
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-x))


def erf(x: Any) -> Any:
    """The error function."""
    if not isinstance(x, ErrorBounded):
        return _erf(x)
    with np.errstate(all="ignore"):
        result = monotone(x, _erf, "erf", lambda z: 2.0 / math.sqrt(math.pi) * np.exp(-z * z))
        absolute = x.numerics.absolute.get("erf", 0.0)
        return add_absolute(result, absolute, x.value == 0.0) if absolute else result


_erf: Callable[[Any], Array] = np.vectorize(math.erf, otypes=[np.float64])
