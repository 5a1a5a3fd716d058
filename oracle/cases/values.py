"""Value classes: families of numbers that each catch wrong kernels which random normals let pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from oracle.formats import Format
from oracle.signature import Array

Shape: TypeAlias = tuple[int, ...]
Rows: TypeAlias = Callable[[np.random.Generator, Shape, Format], Array]

# How far the smallest magnitude of a rising or falling row lies below the largest, in powers of two. float16 has
# 2**-14 as its smallest normal number, so its rows span less.
SPAN = {"float16": 10, "bfloat16": 20, "float32": 20, "float64": 40}

# Scores below the negative of this vanish under exp in each dtype's compute type: float32 up to 32 bits.
VANISHES = {"float64": 1024.0}
VANISHES_FLOAT32 = 128.0


def vanishing(number_format: Format) -> float:
    """A magnitude d at which exp(-d) underflows to zero in the compute type (a power of two)."""
    return VANISHES.get(number_format.name, VANISHES_FLOAT32)


def _signs(rng: np.random.Generator, shape: Shape) -> Array:
    """-1 and 1 at random."""
    return np.where(rng.random(shape) < 0.5, -1.0, 1.0)


def normal(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Standard normal numbers: any wrong index, and precision lost where nothing cancels."""
    return rng.standard_normal(shape)


def uniform(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Uniform in 0 … 1: all positive, so that biased and truncating accumulators drift."""
    return rng.random(shape)


def full_significand(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Numbers in ±1 … 2 whose last significand bit is set: a narrower intermediate must lose it."""
    steps: int = 2 ** (number_format.precision - 1)
    odd = 2 * rng.integers(0, steps // 2, shape) + 1
    return _signs(rng, shape) * (1.0 + odd / steps)


def one_hot(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """One element with a full significand per row, zeros around it: selects exactly, whatever the order."""
    return full_significand(rng, shape, number_format) * hot_mask(rng, shape)


def hot_mask(rng: np.random.Generator, shape: Shape) -> Array:
    """Rows of zeros with a single 1 at a random column."""
    columns = shape[-1]
    hot = rng.integers(0, max(columns, 1), (*shape[:-1], 1))
    mask: Array = (np.arange(columns) == hot).astype(np.float64)
    return mask


def sparse_integers(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Integers of up to 12 bits, a quarter of them (and each row's first and last) nonzero: every sum is exact."""
    largest = 2 ** min(12, number_format.precision)
    values: Array = rng.integers(1, largest, shape) * _signs(rng, shape)
    kept = rng.random(shape) < 0.25
    kept[..., :1] = True
    kept[..., -1:] = True
    return values * kept


def low_entropy(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Two values per row, neither a short binary fraction: rounding errors repeat instead of averaging out."""
    pair = rng.uniform(0.1, 1.0, (*shape[:-1], 2))
    which = rng.random(shape) < 0.5
    return np.where(which, pair[..., :1], pair[..., 1:])


def rising(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Magnitudes that rise along the row: the last element matters most, and a running maximum moves every step."""
    exponents = np.linspace(-SPAN[number_format.name], 0, max(shape[-1], 1))[: shape[-1]]
    return _signs(rng, shape) * rng.uniform(1.0, 2.0, shape) * 2.0**exponents


def falling(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Magnitudes that fall along the row: small terms arrive at a large partial sum."""
    return rising(rng, shape, number_format)[..., ::-1]


def all_below(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Every element so far below zero that exp of it vanishes: a maximum started at 0 shows."""
    depth = vanishing(number_format)
    return -depth - depth / 8 * rng.random(shape)


def far_below(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Every element below -50,000: a maximum started at a "large" negative number shows."""
    depth = min(2.0**17, 0.875 * number_format.max)
    return -depth - depth / 8 * rng.random(shape)


def offset(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """A mean far above the spread (by half of the significand's bits): cancellation in differences and variances."""
    mean = 2.0 ** min(13, number_format.precision - 3)
    return mean + rng.standard_normal(shape)


def subnormals(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Numbers below the smallest normal one of the dtype, every fourth just above it."""
    codes = rng.integers(1, 2**number_format.mantissa_bits, shape)
    values = codes * number_format.min_subnormal
    values = np.where(rng.random(shape) < 0.25, values + number_format.min_normal, values)
    return values * _signs(rng, shape)


def cancelling(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """A row's first half positive, its second half negative: partial sums grow, then cancel."""
    columns = shape[-1]
    sign = np.where(np.arange(columns) < (columns + 1) // 2, 1.0, -1.0)
    return sign * rng.uniform(0.5, 1.5, shape)


def heavy_tail(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Student's t with 1.5 degrees of freedom, within a quarter of a 16-bit range: few elements rule the result."""
    return np.clip(rng.standard_t(1.5, shape), -(2.0**12), 2.0**12)


def wide(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Normal numbers a hundred times wider: exp overflows unless the maximum is taken off first."""
    return rng.standard_normal(shape) * 100.0


def huge_exact(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Multiples of a magnitude at which exp vanishes: each row has exact winners and everything else is exactly 0."""
    multiples: Array = rng.integers(-8, 9, shape)
    return vanishing(number_format) * multiples


def spike(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Normal numbers with one in the last column whose exp overflows: a maximum that misses the last tile shows."""
    values = rng.standard_normal(shape)
    values[..., -1:] += vanishing(number_format)
    return values


def zeros(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Zeros: nothing may be divided by them."""
    return np.zeros(shape)


def _spoiled(values: Array, spoil: Array) -> Array:
    """One element of every third row, the first among them, is ``spoil``'s."""
    rows = np.arange(int(np.prod(values.shape[:-1]))).reshape((*values.shape[:-1], 1))
    return np.where((rows % 3 == 0) & (spoil != 0), spoil, values)


def not_a_number(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Normal numbers, every third row with a NaN: it must reach what depends on it, and nothing else."""
    return _spoiled(rng.standard_normal(shape), np.where(hot_mask(rng, shape) != 0, np.nan, 0.0))


def infinities(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Normal numbers, every third row with an infinity."""
    return _spoiled(rng.standard_normal(shape), np.where(hot_mask(rng, shape) != 0, np.inf * _signs(rng, shape), 0.0))


def masked(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Normal numbers, about half of them (each row's first, never its last) minus infinity, as masks make them."""
    hidden = rng.random(shape) < 0.5
    hidden[..., :1] = True
    hidden[..., -1:] = False
    return np.where(hidden, -np.inf, rng.standard_normal(shape))


def overflowing(rng: np.random.Generator, shape: Shape, number_format: Format) -> Array:
    """Ones, every third row full of 16,384: four of them are more than float16 holds, and an infinity there."""
    return _spoiled(np.ones(shape), np.full(shape, 16_384.0))


ROWS: dict[str, Rows] = {
    "normal": normal,
    "uniform": uniform,
    "full_significand": full_significand,
    "one_hot": one_hot,
    "sparse_integers": sparse_integers,
    "low_entropy": low_entropy,
    "rising": rising,
    "falling": falling,
    "all_below": all_below,
    "far_below": far_below,
    "offset": offset,
    "subnormals": subnormals,
    "cancelling": cancelling,
    "heavy_tail": heavy_tail,
    "wide": wide,
    "huge_exact": huge_exact,
    "spike": spike,
    "zeros": zeros,
    "not_a_number": not_a_number,
    "infinities": infinities,
    "masked": masked,
    "overflowing": overflowing,
}


def draw_rows(
    name: str, rng: np.random.Generator, shape: Shape, number_format: Format, mixed: tuple[str, ...] = ()
) -> Array:
    """Rows (last axis) of one value class; ``mixed`` gives every row a class of its own out of the given ones."""
    if name != "mixed":
        return ROWS[name](rng, shape, number_format)
    drawn = np.stack([ROWS[member](rng, shape, number_format) for member in mixed])
    chosen = rng.integers(0, len(mixed), shape[:-1])
    rows: Array = np.take_along_axis(drawn, chosen[np.newaxis, ..., np.newaxis], axis=0)[0]
    return rows
