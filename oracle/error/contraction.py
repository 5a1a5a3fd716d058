"""Error rules of matrix products: n·u·S over any order, with or without FMA; input errors leave as common ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oracle.error.array import ErrorBounded, lift
from oracle.error.facts import SumFacts
from oracle.error.fields import Array, Errors, plus
from oracle.error.lattice import distinct_share, lowest_bit, spread_picks
from oracle.error.registry import UnsupportedOperationError, function_rule, ufunc_rule
from oracle.error.settle import make, settle
from oracle.error.sums import deviation, holds_exactly, no_terms, rounding_of_sum
from oracle.numerics import Numerics

_TILES = 16
_CHUNK = 1 << 22  # elements of a partial product held at once


@ufunc_rule(np.matmul)
def matmul(numerics: Numerics, a: Any, b: Any) -> ErrorBounded:
    """a @ b over the last two axes."""
    left, right = settle(lift(a, numerics)), settle(lift(b, numerics))
    value = np.asarray(
        np.matmul(a.value if isinstance(a, ErrorBounded) else a, b.value if isinstance(b, ErrorBounded) else b)
    )
    flat = value.shape
    left_column, right_row = left.ndim == 1, right.ndim == 1
    if left_column:
        left = left.map(lambda field: field[None, :])
    if right_row:
        right = right.map(lambda field: field[:, None])
    full = (*np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), left.shape[-2], right.shape[-1])
    return _contract(numerics, value, value.reshape(full), left, right, flat)


def _product(x: Array | None, y: Array | None) -> Errors:
    return None if x is None or y is None else np.matmul(x, y)


def _contract(
    numerics: Numerics, value: Array, full: Array, left: ErrorBounded, right: ErrorBounded, shape: tuple[int, ...]
) -> ErrorBounded:
    length = left.shape[-1]
    if full.size == 0 or length == 0:
        empty = make(value, numerics)
        empty.facts = no_terms(shape, products=True)
        return empty
    a, b = left.value, right.value
    least = numerics.format.min_subnormal
    a_size, b_size = np.abs(a), np.abs(b)
    own: Errors = None
    a_whole, b_whole = a_size, b_size
    finite_inputs = bool(np.isfinite(a_size.max()) and np.isfinite(b_size.max()))
    if left.bound is not None:
        a_whole = a_size + left.bound
        # certainly 0 in the kernel: its product is no term, what it stands for is its bound
        a_whole = np.where(a_whole < least, 0.0, a_whole)
        own = np.matmul(left.bound, b_size)
    if right.bound is not None:
        b_whole = b_size + right.bound
        b_whole = np.where(b_whole < least, 0.0, b_whole)
        own = plus(own, np.matmul(a_size if left.bound is None else a_size + left.bound, right.bound))
    own = np.zeros(full.shape) if own is None else own
    magnitude = np.matmul(a_whole, b_whole)
    squares = np.matmul(a * a, b * b)
    terms = _terms(a_whole, b_whole, full.shape, length)
    step = _lattice_step(numerics, left, right, a_whole, b_whole, magnitude)
    with np.errstate(all="ignore"):
        repeats = _repeats(a, b, magnitude, numerics.accumulator_roundoff)
    if np.ndim(repeats):
        repeats = np.array(np.broadcast_to(repeats, full.shape))
    largest = np.maximum(a_whole.max(axis=-1)[..., :, None], b_whole.max(axis=-2)[..., None, :])
    largest = largest if largest.shape == full.shape else np.array(np.broadcast_to(largest, full.shape))
    facts = SumFacts(
        terms, magnitude, squares, step, own, True, repeats, largest, length, _raw_magnitude(numerics, a_whole, b_whole)
    )
    fresh = rounding_of_sum(numerics, facts, extra_roundings=1.0)
    if numerics.is_float64:
        fresh = np.where(holds_exactly(numerics, facts), 0.0, fresh + numerics.accumulator_roundoff * magnitude)
    sigma: Errors = None
    if fresh.any():
        sigma = _fresh_sigma(numerics, a, b, full, facts, length)
        sigma = sigma if fresh.min() > 0.0 else np.where(fresh > 0.0, sigma, 0.0)
    common = plus(_product(left.common, b_size), _product(a_size, right.common))
    independent = plus(
        _product(None if left.sigma is None else left.sigma**2, b_size**2),
        _product(a_size**2, None if right.sigma is None else right.sigma**2),
    )
    if independent is not None:
        common = np.sqrt(independent if common is None else independent + common * common)
    bound = own + fresh
    if not finite_inputs:
        strange = ~np.isfinite(full)
        bound = np.where(strange & (np.isnan(bound) | _surely_infinite(numerics, left, right)), 0.0, bound)
        sigma = None if sigma is None else np.where(strange, 0.0, sigma)
    exact = holds_exactly(numerics, facts) if numerics.is_float64 else np.zeros(1, bool)
    pending: Any = True if not exact.any() else ~exact.reshape(shape)
    result = make(
        value,
        numerics,
        bound.reshape(shape),
        None if sigma is None else sigma.reshape(shape),
        None if common is None else common.reshape(shape),
        pending,
    )
    result.facts = facts.reshaped(shape)
    return result


def _surely_infinite(numerics: Numerics, left: ErrorBounded, right: ErrorBounded) -> Any:
    """Where a sum that is not finite is what it is in the kernel too: of given infinities times what is not 0.

    inf·0 and inf − inf are NaN there as here; what else is added must not overflow on its own.
    """
    sides = []
    for x in (left, right):
        size, bound = np.abs(x.value), np.zeros(x.shape) if x.bound is None else x.bound
        given = np.isinf(x.value) & (bound == 0.0)
        sides.append((given, (bound > 0.0) & (bound >= size), np.where(given, 0.0, size + bound)))
    (a_given, a_unsure, a_rest), (b_given, b_unsure, b_rest) = sides

    def meet(x: Any, y: Any) -> Any:
        return np.matmul(x.astype(np.float64), y.astype(np.float64)) > 0.0

    rest = np.matmul(a_rest, b_rest)
    return ~meet(a_given, b_unsure) & ~meet(a_unsure, b_given) & (rest <= numerics.accumulator.max)


def _raw_magnitude(numerics: Numerics, a: Array, b: Array) -> Array | None:
    """Σ|a·b| with subnormal factors of a matrix unit's input format at their pinned exponent."""
    least = numerics.unit_min_normal
    if not numerics.unit_group or not least:
        return None
    pinned = [np.where(x > 0.0, np.maximum(x, least), 0.0) for x in (a, b)]
    return np.asarray(np.matmul(*pinned))


def _terms(a: Array, b: Array, shape: tuple[int, ...], length: int) -> Array:
    a_there, b_there = a != 0.0, b != 0.0
    if a_there.all() and b_there.all():
        return np.broadcast_to(np.float64(length), shape)
    if length < 1 << 24:
        return np.asarray(np.matmul(a_there.astype(np.float32), b_there.astype(np.float32)), np.float64)
    return np.asarray(np.matmul(a_there.astype(np.float64), b_there.astype(np.float64)))


def _lattice_step(
    numerics: Numerics, left: ErrorBounded, right: ErrorBounded, a_whole: Array, b_whole: Array, magnitude: Array
) -> Array:
    """The lattice of the products of each row and column, 0 where there is none that helps."""
    rows = _lowest(left, a_whole, -1)
    columns = _lowest(right, b_whole, -2)
    with np.errstate(all="ignore"):
        step: Array = rows[..., :, None] * columns[..., None, :]
    if max(rows.max(), columns.max()) < np.inf:
        return step
    step = np.where(np.isfinite(step), step, np.where(magnitude == 0.0, 1.0, 0.0))
    return np.where(np.isnan(step), 0.0, step)


def _lowest(x: ErrorBounded, whole: Array, axis: int) -> Array:
    if x.bound is not None and x.bound.min() > 0.0 and whole.min() > 0.0:
        return np.zeros_like(whole.min(axis=axis))
    bits = lowest_bit(x.value).reshape(x.shape)
    if x.bound is not None:
        bits = np.where(whole == 0.0, np.inf, np.where(x.bound > 0.0, 0.0, bits))
    return np.asarray(bits.min(axis=axis))


def _fresh_sigma(numerics: Numerics, a: Array, b: Array, y: Array, facts: SumFacts, length: int) -> Array:
    prefix, swamped = _tile_prefixes(a, b, y, length, numerics.accumulator_roundoff)
    return deviation(numerics, length, y, facts, prefix, swamped)


def _tile_prefixes(a: Array, b: Array, y: Array, length: int, u: float) -> tuple[Array, Any]:
    """Σ(partial sum)² in natural and reversed order from the sums over tiles, and the terms too small to register."""
    width = max(1, -(-length // _TILES))
    starts = range(0, length, width)
    running, squares, scratch = np.zeros(y.shape), np.zeros(y.shape), np.empty(y.shape)
    swamped: Any = 0.0
    largest, sizes = y, list[Array]()
    wide = _dynamic_range(a) * _dynamic_range(b) * u > 1.0 / 16.0 and y.size * len(starts) <= 4 * _CHUNK
    if wide:
        largest = np.abs(y)
    for start in starts:
        piece = slice(start, start + width)
        np.matmul(a[..., piece], b[..., piece, :], out=scratch)
        running += scratch
        np.multiply(running, running, out=scratch)
        squares += scratch
        if wide:
            np.maximum(largest, np.abs(running), out=largest)
            np.maximum(largest, np.abs(y - running), out=largest)
            sizes.append(np.matmul(np.abs(a[..., piece]), np.abs(b[..., piece, :])))
    for start, size in zip(starts, sizes):
        swamped = swamped + np.where(size < 2.0 * u * largest * min(width, length - start), size, 0.0)
    # tile t is in all partial sums from its own on
    sums = np.matmul(a * (len(starts) - np.arange(length) // width), b)
    backward = squares + y * (len(starts) * y - 2.0 * sums)  # Σ(y − s)²
    return width * np.maximum(squares, backward), swamped


def _dynamic_range(x: Array) -> float:
    """The largest element over a typical one."""
    size = np.abs(x)
    sample = size.reshape(-1)[:: max(1, size.size // 4096)]
    sample = sample[sample > 0.0]
    if not sample.size:
        return 1.0
    middle = sample.size // 2
    sample.partition([max(middle - 1, 0), middle])
    median = sample[middle] if sample.size % 2 else (sample[middle - 1] + sample[middle]) / 2.0
    return float(size.max() / median)


def _repeats(a: Array, b: Array, magnitude: Array, u: float) -> Any:
    """Low entropy of the products, from two sampled partners per row and per column."""
    columns, rows = b.shape[-1], a.shape[-2]
    length = a.shape[-1]
    picks = spread_picks(length, 96) if length > 96 else slice(None)
    a_part, b_part = a[..., picks], b[..., picks, :]
    b_part = np.swapaxes(b_part, -1, -2)
    grain = u * np.maximum(magnitude, 1e-300) / 4.0
    j, i = ([0, half] if half else [0] for half in (columns // 2, rows // 2))
    by_row = distinct_share(a_part[..., :, None, :] * b_part[..., None, j, :], grain[..., :, j]).max(axis=-1)
    by_column = distinct_share(b_part[..., None, :, :] * a_part[..., i, None, :], grain[..., i, :]).max(axis=-2)
    share = np.maximum(by_row[..., :, None], by_column[..., None, :])
    if np.max(share) == 1.0:
        return 1.0
    return np.minimum(np.where(share > 1.0, share * (length / a_part.shape[-1]), 1.0), float(length))


@function_rule(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> ErrorBounded:
    """np.dot of at most two-dimensional arrays."""
    numerics = a.numerics if isinstance(a, ErrorBounded) else b.numerics
    x, y = lift(a, numerics), lift(b, numerics)
    if x.ndim > 2 or y.ndim > 2 or x.ndim == 0 or y.ndim == 0:
        raise UnsupportedOperationError(
            f"np.dot of {x.ndim}- and {y.ndim}-dimensional arrays has no error rule; use @ or *."
        )
    return _revalued(matmul(numerics, a, b), np.dot(x.value, y.value))


def _revalued(x: ErrorBounded, value: Any) -> ErrorBounded:
    result = make(np.asarray(value), x.numerics, x.bound, x.sigma, x.common, x.pending)
    result.facts = x.facts
    return result


@function_rule(np.einsum)
def einsum(subscripts: str, *inputs: Any, **options: Any) -> ErrorBounded:
    """One or two operands, written with an explicit output (``ij,jk->ik``): a contraction over the letters left out."""
    numerics = next(x.numerics for x in inputs if isinstance(x, ErrorBounded))
    spec = subscripts.replace(" ", "") if isinstance(subscripts, str) else ""
    if "->" not in spec or "." in spec or len(inputs) > 2:
        raise UnsupportedOperationError(
            f"np.einsum({subscripts!r}) with {len(inputs)} operands has no error rule; "
            "give one or two operands, every letter and '->'."
        )
    sources, output = spec.split("->")
    letters = sources.split(",")
    if any(len(set(part)) != len(part) for part in letters):
        raise UnsupportedOperationError(f"np.einsum({subscripts!r}) takes a diagonal, which has no error rule.")
    arrays = [lift(x, numerics) for x in inputs]
    value = np.einsum(subscripts, *(x.value if isinstance(x, ErrorBounded) else x for x in inputs), **options)
    if len(arrays) == 1:
        (part,) = letters
        reduced = tuple(k for k, letter in enumerate(part) if letter not in output)
        total: Any = np.sum(arrays[0], axis=reduced) if reduced else arrays[0]
        kept = [letter for letter in part if letter in output]
        return _revalued(total.map(lambda field: np.transpose(field, [kept.index(letter) for letter in output])), value)
    one, two = letters
    for index, other in ((0, two), (1, one)):
        alone = tuple(k for k, letter in enumerate(letters[index]) if letter not in output and letter not in other)
        if alone:
            raise UnsupportedOperationError(
                f"np.einsum({subscripts!r}) sums one operand alone; sum it first, as its own step."
            )
    batch = [letter for letter in output if letter in one and letter in two]
    joint = [letter for letter in one if letter in two and letter not in output]
    rows, columns = [x for x in one if x not in two], [x for x in two if x not in one]
    extent = dict(zip(one, arrays[0].shape)) | dict(zip(two, arrays[1].shape))

    def arranged(x: ErrorBounded, part: str, first: list[str], second: list[str]) -> ErrorBounded:
        order = [part.index(letter) for letter in (*batch, *first, *second)]
        shape = [extent[letter] for letter in batch] + [
            math.prod(extent[k] for k in group) for group in (first, second)
        ]
        return x.map(lambda field: np.transpose(field, order).reshape(shape))

    product = matmul(numerics, arranged(arrays[0], one, rows, joint), arranged(arrays[1], two, joint, columns))
    layout = [*batch, *rows, *columns]
    back = product.map(
        lambda field: np.transpose(
            field.reshape([extent[letter] for letter in layout]), [layout.index(letter) for letter in output]
        )
    )
    return _revalued(back, value)
