"""Variants of the matrix product."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from oracle.formats import round_to
from oracle.signature import Array
from oracle.variants.arithmetic import ORDERS, in_blocks, product, sequential, stored, wide
from oracle.variants.variant import control, mutant

Product = Callable[[Array, Array], Array]


def narrow(x: Array, like: Array) -> Array:
    """Rounded to the next narrower format: bfloat16 for 16-bit dtypes' compute type, float32 for float64."""
    return round_to(x, "float32" if like.dtype == np.float64 else "bfloat16").astype(x.dtype)


def truncated_bits(x: Array, bits: int) -> Array:
    """float32 numbers with their lowest significand bits cut off; TF32 keeps 10 of 23."""
    return (np.ascontiguousarray(x).view(np.uint32) & np.uint32(-(2**bits) % 2**32)).view(np.float32)


def fused(a: Array, b: Array) -> Array:
    """Sequential, each product unrounded on its way into the sum."""
    total = np.zeros((*a.shape[:-1], b.shape[-1]), a.dtype)
    for at in range(a.shape[-1]):
        total = (
            total.astype(np.longdouble) + a[..., at, np.newaxis].astype(np.longdouble) * b[..., at, np.newaxis, :]
        ).astype(a.dtype)
    return total


def halves(a: Array, b: Array) -> Array:
    """Split-K: each half on its own, then their sum."""
    half = a.shape[-1] // 2
    return product(a[..., :half], b[..., :half, :]) + product(a[..., half:], b[..., half:, :])


def blas(a: Array, b: Array) -> Array:
    """The order of the installed BLAS."""
    return np.asarray(a @ b)


def turned(a: Array, b: Array) -> Array:
    """(bᵀ aᵀ)ᵀ, with its last steps first."""
    return np.swapaxes(product(np.swapaxes(b, -1, -2)[..., ::-1], np.swapaxes(a, -1, -2)[..., ::-1, :]), -1, -2)


HONEST: dict[str, tuple[Product, str]] = {
    **{
        f"order_{name}": (partial(product, total=total), "The terms are added in an order of its own.")
        for name, total in ORDERS.items()
    },
    "fma": (fused, "Each product goes into the sum without a rounding of its own."),
    "split_k": (halves, "Two halves of k are summed apart."),
    "blas": (blas, "The order of the installed BLAS."),
    "turned": (turned, "The transposed product, from the last term to the first."),
}
"""Products of two matrices in the compute type, as honest kernels form them."""


def _missed(a: Array, b: Array) -> Array:
    return product(a[..., :-1], b[..., :-1, :])


def _tail_missed(a: Array, b: Array) -> Array:
    whole = a.shape[-1] // 16 * 16
    return product(a[..., :whole], b[..., :whole, :])


def _twice(a: Array, b: Array) -> Array:
    return product(a, b) + product(a[..., :1], b[..., :1, :]) if a.shape[-1] > 1 else product(a, b)


def _stale_row(a: Array, b: Array) -> Array:
    out = product(a, b)
    out[..., -1:, :] = 0
    return out


def _magnitudes(a: Array, b: Array) -> Array:
    return product(np.abs(a), b)


def _narrow_accumulator(a: Array, b: Array) -> Array:
    total = np.zeros((*a.shape[:-1], b.shape[-1]), a.dtype)
    for at in range(a.shape[-1]):
        total = narrow(total + a[..., at, np.newaxis] * b[..., at, np.newaxis, :], a)
    return total


def _narrow_partials(a: Array, b: Array) -> Array:
    return narrow(product(a[..., ::2], b[..., ::2, :]), a) + narrow(product(a[..., 1::2], b[..., 1::2, :]), a)


def _narrow_products(a: Array, b: Array) -> Array:
    return product(a, b, lambda terms: sequential(narrow(terms, a)))


def _zeros_skipped(a: Array, b: Array) -> Array:
    terms = a[..., :, np.newaxis, :] * np.swapaxes(b, -1, -2)[..., np.newaxis, :, :]
    return sequential(np.where(np.isnan(terms), 0, terms))[..., 0]


WRONG: dict[str, tuple[Product, str]] = {
    "last_k_missed": (_missed, "The last term is missed."),
    "tail_missed": (_tail_missed, "Terms beyond the last whole tile of 16 are missed."),
    "first_k_twice": (_twice, "The first term counts twice."),
    "stale_row": (_stale_row, "The last row is never written."),
    "magnitudes": (_magnitudes, "The left factor loses its signs."),
    "narrow_accumulator": (_narrow_accumulator, "The sum is kept in a narrower format."),
    "narrow_partials": (_narrow_partials, "Split-K partial sums are stored in a narrower format."),
    "narrow_products": (_narrow_products, "Each product is rounded to a narrower format."),
    "nan_skipped": (_zeros_skipped, "Terms that are NaN are left out."),
}
"""Products that are wrong."""


def _first_of_each_row(a: Array) -> Array:
    return a[..., :1] if a.shape[-1] else np.zeros((*a.shape[:-1], 1), a.dtype)


def by_sign_of_the_whole(a: Array, b: Array) -> Array:
    """Backwards if the first element of the left factor is negative, whichever row is summed."""
    return product(a, b, ORDERS["backwards"] if a.size and a.flat[0] < 0 else in_blocks(8))


def by_sign_of_the_row(a: Array, b: Array) -> Array:
    """Backwards for rows whose first element is negative."""
    negative = _first_of_each_row(a) < 0
    return np.where(negative, product(a, b, ORDERS["backwards"]), product(a, b, in_blocks(8)))


def by_size_of_the_row(a: Array, b: Array) -> Array:
    """Backwards for rows whose first element is a power of four or a little more."""
    even = np.frexp(_first_of_each_row(a))[1] % 2 == 1
    return np.where(even, product(a, b, ORDERS["backwards"]), product(a, b, in_blocks(8)))


BROKEN: dict[str, tuple[Product, str, str]] = {
    "order_by_others": (by_sign_of_the_whole, "The sum's order depends on other rows.", "other_rows_do_not_matter"),
    "order_by_sign": (by_sign_of_the_row, "The order of the sum depends on a sign.", "negation_of_a_factor"),
    "order_by_size": (by_size_of_the_row, "The order of the sum depends on magnitudes.", "doubling_of_a_factor"),
}  # fmt: skip
"""Products that only a relation tells from honest ones."""


def over(form: Product, doc: str) -> Callable[..., Array]:
    """An implementation of ``matmul`` from a product of two matrices in the compute type."""

    def matmul(a: Array, b: Array, bias: Array | None, *, transpose_a: bool, transpose_b: bool) -> Array:
        out = form(wide(a.T if transpose_a else a), wide(b.T if transpose_b else b))
        return stored(out if bias is None else out + wide(bias), a)

    matmul.__doc__ = doc
    return matmul


for _name, (_form, _doc) in HONEST.items():
    control("matmul", name=_name)(over(_form, _doc))
for _name, (_form, _doc) in WRONG.items():
    mutant("matmul", name=_name)(over(_form, _doc))
for _name, (_form, _doc, _relation) in BROKEN.items():
    mutant("matmul", name=_name, relation=_relation, dtypes=("float32",))(over(_form, _doc))


@control("matmul")
def bias_first(a: Array, b: Array, bias: Array | None, *, transpose_a: bool, transpose_b: bool) -> Array:
    """The accumulator starts from the bias."""
    left, right = wide(a.T if transpose_a else a), wide(b.T if transpose_b else b)
    total = np.zeros((left.shape[0], right.shape[1]), left.dtype)
    if bias is not None:
        total = total + wide(bias)
    for at in range(left.shape[1]):
        total = total + left[:, at, np.newaxis] * right[at]
    return stored(total, a)


@mutant("matmul", dtypes=("float32",))
def tf32_factors(a: Array, b: Array, bias: Array | None, *, transpose_a: bool, transpose_b: bool) -> Array:
    """The factors are cut off to TF32's 10 significand bits."""

    def form(x: Array, y: Array) -> Array:
        return product(truncated_bits(x, 13), truncated_bits(y, 13))

    return over(form, "")(a, b, bias, transpose_a=transpose_a, transpose_b=transpose_b)


@mutant("matmul", dtypes=("float32",))
def three_bfloat16_products(a: Array, b: Array, bias: Array | None, *, transpose_a: bool, transpose_b: bool) -> Array:
    """Each factor is a sum of two bfloat16 numbers, and three of their four products are formed."""

    def form(x: Array, y: Array) -> Array:
        (x0, x1), (y0, y1) = _in_two(x), _in_two(y)
        low: Array = product(x0, y1) + product(x1, y0)
        return product(x0, y0) + low

    return over(form, "")(a, b, bias, transpose_a=transpose_a, transpose_b=transpose_b)


def _in_two(x: Array) -> tuple[Array, Array]:
    high = round_to(x, "bfloat16").astype(x.dtype)
    return high, round_to(x - high, "bfloat16").astype(x.dtype)


@mutant("matmul")
def bias_left_out(a: Array, b: Array, bias: Array | None, *, transpose_a: bool, transpose_b: bool) -> Array:
    """The bias is left out."""
    return over(product, "")(a, b, None, transpose_a=transpose_a, transpose_b=transpose_b)


@mutant("matmul")
def bias_per_row(a: Array, b: Array, bias: Array | None, *, transpose_a: bool, transpose_b: bool) -> Array:
    """The bias is added to columns, one element per row."""
    left, right = wide(a.T if transpose_a else a), wide(b.T if transpose_b else b)
    out = product(left, right)
    return stored(out if bias is None or not bias.size else out + np.resize(wide(bias), (len(out), 1)), a)


@mutant("matmul", dtypes=("float16", "bfloat16"))
def stored_before_bias(a: Array, b: Array, bias: Array | None, *, transpose_a: bool, transpose_b: bool) -> Array:
    """The product is rounded to the output's dtype before the bias is added."""
    out = wide(over(product, "")(a, b, None, transpose_a=transpose_a, transpose_b=transpose_b))
    return stored(out if bias is None else out + wide(bias), a)


@mutant("matmul", dtypes=("float16", "bfloat16"))
def truncating_store(a: Array, b: Array, bias: Array | None, *, transpose_a: bool, transpose_b: bool) -> Array:
    """The result is cut off, not rounded, to the output's dtype."""
    out: Any = product(wide(a.T if transpose_a else a), wide(b.T if transpose_b else b))
    out = out if bias is None else out + wide(bias)
    return round_to(out.astype(np.float64), a.dtype.name, "toward_zero").astype(a.dtype)


@mutant("matmul")
def transpose_ignored(a: Array, b: Array, bias: Array | None, *, transpose_a: bool, transpose_b: bool) -> Array:
    """A transposed factor is read as if its memory were row-major."""
    left = a.reshape(a.shape[::-1]) if transpose_a else a
    right = b.reshape(b.shape[::-1]) if transpose_b else b
    return over(product, "")(left, right, bias, transpose_a=False, transpose_b=False)
